"""Translates the search space of Ray Tune into parameters of fabolas."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ray.tune.search import sample

from fabolas.space import Categorical, Float, Integer, Ordinal

MAX_STEPS = 1000  # values of a quantized parameter

_SUPPORTED = (
    "tune.uniform, loguniform, quniform, randint, lograndint, qrandint or choice, or a parameter of fabolas"
)


def split_param_space(param_space: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters to search, translated, and the constants, by name.

    Raises:
        TypeError: If a parameter has a distribution that we have no equivalent for.
    """
    searched: dict[str, Any] = {}
    constants: dict[str, Any] = {}
    for name, value in param_space.items():
        if isinstance(value, sample.Domain):
            searched[name] = _translate(name, value)
        elif isinstance(value, Float | Integer | Categorical):
            searched[name] = value
        elif isinstance(value, Mapping) and ("grid_search" in value or _has_domain(value)):
            raise TypeError(
                f"expected {_SUPPORTED} for the parameter {name!r}, got {dict(value)!r}; write the parameters of a "
                "nested dict side by side, and choices as tune.choice"
            )
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


def _has_domain(value: Mapping[str, Any]) -> bool:
    return any(
        isinstance(each, sample.Domain) or (isinstance(each, Mapping) and _has_domain(each))
        for each in value.values()
    )
