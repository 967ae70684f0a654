"""Translates the search space of Ray Tune into parameters of fabolas."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from ray.tune.search import sample

from fabolas.space import Categorical, Float, Integer, Ordinal

MAX_STEPS = 1000  # values of a quantized parameter
# Before Tune passes param_space on, it replaces what is no plain value by a pair of one of these and a hash.
_FUNCTION, _OBJECT = "__fn_ph", "__ref_ph"

_SUPPORTED = (
    "tune.uniform, loguniform, quniform, randint, lograndint, qrandint or choice, "
    "or a parameter of fabolas in FabolasSearch(space=...),"
)


def split_param_space(param_space: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters to search, translated, and the constants, by name.

    Raises:
        TypeError: If a parameter has a distribution that we have no equivalent for, or is inside of another value.
    """
    searched: dict[str, Any] = {}
    constants: dict[str, Any] = {}
    for name, value in param_space.items():
        _check_parts(name, value)
        if isinstance(value, sample.Domain):
            searched[name] = _translate(name, value)
        elif isinstance(value, Float | Integer | Categorical):
            searched[name] = value
        else:
            constants[name] = value
    return searched, constants


def _translate(name: str, domain: sample.Domain) -> Float | Integer | Categorical:
    sampler: Any = domain.get_sampler()  # type: ignore[no-untyped-call]
    step = sampler.q if isinstance(sampler, sample.Quantized) else None
    inner = sampler.sampler if isinstance(sampler, sample.Quantized) else sampler
    log = isinstance(inner, sample.LogUniform)
    if isinstance(domain, sample.Categorical) and isinstance(inner, sample.Uniform):
        return Categorical(tuple(domain.categories))
    if isinstance(domain, sample.Float | sample.Integer) and isinstance(
        inner, sample.Uniform | sample.LogUniform
    ):
        whole = isinstance(domain, sample.Integer)
        if step is not None and not (whole and step == 1):
            return _steps(name, domain, step)
        if not whole:
            return Float(domain.lower, domain.upper, log=log)
        # The upper end of Tune's integers is excluded, except that of quantized ones.
        return Integer(int(domain.lower), int(domain.upper) - (step is None), log=log)
    raise TypeError(f"expected {_SUPPORTED} for the parameter {name!r}, got {domain!r}; use one of these")


def _steps(name: str, domain: Any, step: float) -> Ordinal:
    """The multiples of the step in the range, in their order."""
    # The tolerance keeps an end of the range that is a multiple, in spite of rounding errors.
    first, last = math.ceil(domain.lower / step - 1e-9), math.floor(domain.upper / step + 1e-9)
    if last - first >= MAX_STEPS:
        raise TypeError(
            f"expected at most {MAX_STEPS} steps for the parameter {name!r}, got {last - first + 1}; "
            "search without the step and round in the trainable"
        )
    return Ordinal(tuple(round(i * step, 12) for i in range(first, last + 1)))


def _check_parts(name: str, value: Any) -> None:
    """Refuse what Tune would pass to the trials as it is, or without telling the search which value it has."""
    is_choice = isinstance(value, sample.Categorical)
    for part in _parts(value):
        if isinstance(part, sample.Function) or _is_placeholder(part, _FUNCTION):
            raise TypeError(
                f"expected {_SUPPORTED} for the parameter {name!r}, got tune.sample_from; compute its value in the "
                "trainable, from the other parameters"
            )
        if isinstance(part, Mapping) and "grid_search" in part:
            raise TypeError(
                f"expected {_SUPPORTED} for the parameter {name!r}, got tune.grid_search; write tune.choice"
            )
        if part is not value and isinstance(part, sample.Domain | Float | Integer | Categorical):
            where = "tune.choice" if is_choice else type(value).__name__
            raise TypeError(
                f"expected {_SUPPORTED} for the parameter {name!r}, got a {where} that contains one; give each "
                "parameter a name of its own, and put them together in the trainable"
            )
        if is_choice and _is_placeholder(part, _OBJECT):
            raise TypeError(
                f"expected plain values as choices for the parameter {name!r}, got objects, which Tune does not pass "
                "on; choose between their names, or write the choices in FabolasSearch(space=...)"
            )


def _parts(value: Any) -> Iterator[Any]:
    """The value and all that it contains, if it is a dict, a list, a tuple or a ``tune.choice``."""
    yield value
    inner: Any = ()
    if isinstance(value, Mapping):
        inner = value.values()
    elif isinstance(value, sample.Categorical):
        inner = value.categories
    elif isinstance(value, list | tuple):
        inner = value
    for each in inner:
        yield from _parts(each)


def _is_placeholder(value: Any, kind: str) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str) and value[0] == kind
