"""Search spaces in scikit-learn's words (scipy distributions, lists) in ours."""

from collections.abc import Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from fabolas.space import Categorical, Fidelity, Float, Integer, Ordinal, Space

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace

_ACCEPTED = (
    "scipy.stats.uniform(low, width), loguniform(low, high) or randint(low, high), a list or range of choices, "
    "or fabolas.Float, Integer, Categorical or Ordinal"
)


def space_of(
    parameters: "Mapping[str, Any] | ConfigurationSpace | Space", fidelity: Fidelity | None
) -> Space:
    """The space to search, with the number of training rows as its fidelity if there is one.

    Raises:
        TypeError: If the parameters, or one of them, are of a kind that cannot be searched.
        ValueError: If a range is not one, or a Space comes with fidelities of its own.
    """
    if isinstance(parameters, list | tuple) and len(parameters) == 1:
        parameters = parameters[0]
    configspace = type(parameters).__module__.startswith("ConfigSpace")
    if not (configspace or isinstance(parameters, Space | Mapping)):
        what = "several spaces in a list" if isinstance(parameters, list | tuple) else repr(parameters)
        raise TypeError(
            f"param_distributions expected one dict name -> distribution or list, a fabolas.Space or a "
            f"ConfigurationSpace, got {what}; put alternatives into one ConfigurationSpace with conditions"
        )
    fidelities = None if fidelity is None else {_free_name(parameters): fidelity}
    if isinstance(parameters, Space):
        if parameters.fidelities:
            named = ", ".join(parameters.fidelities)
            raise ValueError(
                f"param_distributions expected a Space of parameters only, got one with the fidelity {named}; "
                "leave fidelities out: the number of training rows is chosen by the search"
            )
        return Space(parameters, fidelities)
    if configspace:
        return Space(parameters, fidelities)
    return Space({name: _named(name, spec) for name, spec in parameters.items()}, fidelities)


def _free_name(parameters: Any) -> str:
    """What the fidelity is called: ``n_samples``, unless a parameter is."""
    taken = (
        [p["name"] for p in parameters.describe()["parameters"]]
        if isinstance(parameters, Space)
        else parameters
    )
    return "n_samples" if "n_samples" not in taken else "n_samples (rows)"


def _named(name: str, spec: Any) -> Any:
    try:
        return _parameter(spec)
    except (TypeError, ValueError) as error:
        raise type(error)(f"parameter {name!r}: {error}") from None


def _parameter(spec: Any) -> Any:
    if hasattr(spec, "dist") and hasattr(spec, "support"):
        return _frozen(spec)
    if hasattr(spec, "rvs"):
        name = getattr(spec, "name", type(spec).__name__)
        raise TypeError(
            f"expected a distribution with its range, got scipy's {name} itself; call it: {name}(...)"
        )
    if isinstance(spec, range) and spec.step == 1 and len(spec) > 1:
        return Integer(spec.start, spec.stop - 1)
    if isinstance(spec, list | tuple | range | np.ndarray):
        choices = _distinct(list(spec))
        return Ordinal(tuple(choices)) if _ascends(choices) else Categorical(tuple(choices))
    if isinstance(spec, Float | Integer | Categorical) or type(spec).__module__.startswith("ConfigSpace"):
        return spec
    raise TypeError(_refusal(spec))


def _frozen(spec: Any) -> Float | Integer | Categorical:
    """A frozen scipy distribution as the range it draws from."""
    low, high = spec.support()
    kind = spec.dist.name
    _, loc, _ = spec.dist._parse_args(*spec.args, **spec.kwds)
    if kind == "randint" and low == high:
        return Categorical((int(low),))
    if not low < high:
        raise ValueError(f"expected a range from low to high, got {_words(spec)}")
    if kind == "uniform":
        return Float(float(low), float(high))
    if kind in ("loguniform", "reciprocal") and loc == 0:
        return Float(float(low), float(high), log=True)
    if kind == "randint":
        return Integer(int(low), int(high))
    raise TypeError(_refusal(spec))


def _refusal(spec: Any) -> str:
    return f"expected {_ACCEPTED}; got {_words(spec)}"


def _words(spec: Any) -> str:
    if not hasattr(spec, "dist"):
        return repr(spec)
    given = [*map(repr, spec.args), *(f"{name}={value!r}" for name, value in spec.kwds.items())]
    return f"scipy's {spec.dist.name}({', '.join(given)})"


def _distinct(choices: list[Any]) -> list[Any]:
    """Each choice once; scikit-learn takes a repeated one for a likelier one, of which a model has no use."""
    try:
        return list(
            {(type(choice), choice): choice for choice in choices}.values()
        )  # 1 is a row, 1.0 all of them
    except TypeError:  # some cannot be hashed
        return choices


def _ascends(choices: list[Any]) -> bool:
    """Whether these are three or more numbers in order: neighbours then behave alike, and the model may know."""
    if len(choices) < 3 or not all(
        isinstance(c, Real) and not isinstance(c, bool | np.bool_) for c in choices
    ):
        return False
    steps = np.diff(np.array(choices, dtype=float))
    return bool((steps > 0).all() or (steps < 0).all())
