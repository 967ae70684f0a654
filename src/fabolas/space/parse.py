"""Translates what the user wrote, a dict or a ConfigurationSpace, to axes and rules."""

from collections.abc import Mapping
from numbers import Number
from typing import Any, NamedTuple

import numpy as np

from fabolas.space.distributions import SUPPORTED, is_distribution, parse_distribution
from fabolas.space.parameters import Axis, Categorical, Constant, Float, Integer, Ordinal
from fabolas.space.rules import Rule
from fabolas.space.validation import checked_name, readable


class ParsedSpace(NamedTuple):
    """The parts of a search space.

    Attributes:
        axes: Name -> axis, constants included.
        conditions: Name of a conditional hyperparameter -> the rule that makes it active.
        forbidden: Rules of which none may be true.
    """

    axes: dict[str, Axis]
    conditions: dict[str, Rule]
    forbidden: tuple[Rule, ...]


def parse_parameters(parameters: object) -> ParsedSpace:
    """Return the parts of the space that the user wrote; parts that an adapter has made are returned as they are."""
    if isinstance(parameters, ParsedSpace):
        return parameters
    if not isinstance(parameters, Mapping):
        raise TypeError(
            "expected a space as a mapping name -> range or a ConfigSpace.ConfigurationSpace, got "
            f'{type(parameters).__name__}; write {{"C": fabolas.Float(1e-5, 1e5, log=True)}}'
        )
    if not parameters:
        raise ValueError(
            "expected a space with at least one hyperparameter, got none; add the hyperparameters to tune"
        )
    if type(parameters).__module__.startswith("ConfigSpace"):
        from fabolas.space.configspace import parse_configuration_space

        parsed = parse_configuration_space(parameters)  # type: ignore[arg-type]
    else:
        axes = {checked_name(name, "hyperparameter"): _parse(name, spec) for name, spec in parameters.items()}
        parsed = ParsedSpace(axes, conditions={}, forbidden=())
    return parsed._replace(axes={name: _constant_if_single(axis) for name, axis in parsed.axes.items()})


def _parse(name: str, spec: Any) -> Axis:
    try:
        return parse_parameter(spec)
    except (TypeError, ValueError) as error:
        raise type(error)(f"hyperparameter {name!r}: {error}") from None


def parse_parameter(spec: Any) -> Axis:
    """Return the axis for what the user wrote for one hyperparameter."""
    if isinstance(spec, Float | Integer | Categorical):
        return spec
    if spec is None or isinstance(spec, str | bool | Number | np.generic):
        return Constant((spec,))
    if type(spec).__module__.startswith("ConfigSpace"):
        from fabolas.space.configspace import parse_hyperparameter

        return parse_hyperparameter(spec)
    if isinstance(spec, tuple) and len(spec) == 2 and all(_is_number(end) for end in spec):
        raise TypeError(
            f"expected a range or a list of choices, got {spec!r}, which may mean both; "
            f"write fabolas.Float{spec!r} or fabolas.Integer{spec!r} for a range, {list(spec)!r} for choices"
        )
    if isinstance(spec, range):
        return _parse_range(spec)
    if isinstance(spec, list | tuple | np.ndarray):
        return Categorical(spec)  # type: ignore[arg-type]
    if is_distribution(spec):
        return parse_distribution(spec)
    raise TypeError(
        "expected fabolas.Float, Integer, Categorical or Ordinal, a list of choices, a range, a constant, or "
        f"{SUPPORTED}; got {readable(spec)} of type {type(spec).__name__}; use one of these"
    )


def _parse_range(numbers: range) -> Axis:
    """Return an Integer for consecutive numbers and an Ordinal for larger steps."""
    if not numbers:
        raise ValueError(f"expected at least one number, got the empty {numbers!r}; correct its ends")
    if numbers.step == 1:
        return Integer(numbers[0], numbers[-1])
    return Ordinal(tuple(numbers))


def _is_number(value: object) -> bool:
    return isinstance(value, Number) and not isinstance(value, bool)


def _constant_if_single(axis: Axis) -> Axis:
    """Return a constant for an axis with a single value, because it needs no column."""
    if isinstance(axis, Integer) and axis.low == axis.high:
        return Constant((axis.low,))
    if isinstance(axis, Categorical) and len(axis.choices) == 1:
        return Constant(axis.choices)
    return axis
