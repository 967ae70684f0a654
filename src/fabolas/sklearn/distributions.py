"""Translates scikit-learn's ``param_distributions`` to a search space.

Each parameter is parsed as in every other space, with two exceptions: three or more numbers in order are an Ordinal,
and a single value must be in a list, as in scikit-learn.
"""

from collections.abc import Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from fabolas.space import Categorical, Fidelity, Float, Integer, Ordinal, Space
from fabolas.space.distributions import SUPPORTED, distribution_text, is_distribution
from fabolas.space.parameters import Axis
from fabolas.space.parse import ParsedSpace, parse_parameter

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace

_ACCEPTED = f"{SUPPORTED}, a list or range of choices, or fabolas.Float, Integer, Categorical or Ordinal"


def parse_space(
    parameters: "Mapping[str, Any] | ConfigurationSpace | Space", fidelity: Fidelity | None
) -> Space:
    """Return the space to search, with the number of training rows as its fidelity if there is one.

    Raises:
        TypeError: If the parameters, or one of them, have a type that cannot be searched.
        ValueError: If a range is empty, or a Space has fidelities.
    """
    if isinstance(parameters, list | tuple) and len(parameters) == 1:
        parameters = parameters[0]
    configspace = type(parameters).__module__.startswith("ConfigSpace")
    if not (configspace or isinstance(parameters, Space | Mapping)):
        what = "several spaces in a list" if isinstance(parameters, list | tuple) else repr(parameters)
        raise TypeError(
            "expected param_distributions as one dict name -> distribution or list, a fabolas.Space or a "
            f"ConfigurationSpace, got {what}; put alternatives into one ConfigurationSpace with conditions"
        )
    fidelities = None if fidelity is None else {_fidelity_name(parameters): fidelity}
    if isinstance(parameters, Space):
        if parameters.fidelities:
            named = ", ".join(parameters.fidelities)
            raise ValueError(
                f"expected a Space of parameters only as param_distributions, got one with the fidelity {named}; "
                "leave fidelities out: the number of training rows is chosen by the search"
            )
        return Space(parameters, fidelities)
    if configspace:
        return Space(parameters, fidelities)
    axes = {name: _parse_named(name, spec) for name, spec in parameters.items()}
    return Space(_keep_single_choices(axes), fidelities)


def _fidelity_name(parameters: Any) -> str:
    """Return the name of the fidelity: ``n_samples``, unless a parameter has that name."""
    taken = (
        [p["name"] for p in parameters.describe()["parameters"]]
        if isinstance(parameters, Space)
        else parameters
    )
    return "n_samples" if "n_samples" not in taken else "n_samples (rows)"


def _parse_named(name: str, spec: Any) -> Any:
    try:
        return _parse_parameter(spec)
    except (TypeError, ValueError) as error:
        raise type(error)(f"parameter {name!r}: {error}") from None


def _parse_parameter(spec: Any) -> Any:
    if isinstance(spec, list | tuple | np.ndarray):
        choices = _distinct(list(spec))
        return Ordinal(tuple(choices)) if _is_ordered(choices) else Categorical(tuple(choices))
    from_configspace = type(spec).__module__.startswith("ConfigSpace")
    if from_configspace or is_distribution(spec) or isinstance(spec, range | Float | Integer | Categorical):
        return parse_parameter(spec)
    raise TypeError(f"expected {_ACCEPTED}; got {distribution_text(spec)}; put a single value into a list")


def _keep_single_choices(axes: dict[str, Axis]) -> dict[str, Axis] | ParsedSpace:
    """Return the parameters; if each has a single value, as a space of these choices.

    Otherwise a space makes constants of single values, and refuses to have nothing else. scikit-learn accepts a search
    of one candidate.
    """
    values = [axis.all_values() for axis in axes.values()]
    if not axes or any(each is None or len(each) > 1 for each in values):
        return axes
    single: dict[str, Axis] = {
        name: Categorical(tuple(each or ())) for name, each in zip(axes, values, strict=True)
    }
    return ParsedSpace(single, conditions={}, forbidden=())


def _distinct(choices: list[Any]) -> list[Any]:
    """Return each choice once. scikit-learn draws a repeated choice more often; the model does not need that."""
    try:
        # The type matters: as max_features, 1 is one column and 1.0 is all columns.
        return list({(type(choice), choice): choice for choice in choices}.values())
    except TypeError:  # a choice cannot be hashed
        return choices


def _is_ordered(choices: list[Any]) -> bool:
    """Whether these are three or more numbers in ascending or descending order; neighbours are then similar."""
    if len(choices) < 3 or not all(
        isinstance(c, Real) and not isinstance(c, bool | np.bool_) for c in choices
    ):
        return False
    steps = np.diff(np.array(choices, dtype=float))
    return bool((steps > 0).all() or (steps < 0).all())
