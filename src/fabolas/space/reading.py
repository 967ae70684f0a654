"""Reads what the user wrote, a plain dict or a ConfigurationSpace, into axes and rules."""

from collections.abc import Mapping
from numbers import Number
from typing import Any

import numpy as np

from fabolas.space.parameters import Axis, Categorical, Constant, Float, Integer
from fabolas.space.rules import Rule


def read_parameters(parameters: object) -> tuple[dict[str, Axis], dict[str, Rule], tuple[Rule, ...]]:
    """Axes by name, the condition of each conditional one, and the forbidden clauses."""
    if not isinstance(parameters, Mapping):
        raise TypeError(
            "a space expected a mapping name -> range or a ConfigSpace.ConfigurationSpace, got "
            f'{type(parameters).__name__}; write {{"C": fabolas.Float(1e-5, 1e5, log=True)}}'
        )
    if not parameters:
        raise ValueError(
            "a space expected at least one hyperparameter, got an empty one; add what is to be tuned"
        )
    conditions: dict[str, Rule] = {}
    forbidden: tuple[Rule, ...] = ()
    if type(parameters).__module__.startswith("ConfigSpace"):
        from fabolas.space.configspace import read_configuration_space

        axes, conditions, forbidden = read_configuration_space(parameters)  # type: ignore[arg-type]
    else:
        axes = {_checked_name(name): _read_parameter(name, spec) for name, spec in parameters.items()}
    return {name: _collapsed(axis) for name, axis in axes.items()}, conditions, forbidden


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise TypeError(f"a hyperparameter's name expected a non-empty string, got {name!r}; rename it")
    return name


def _read_parameter(name: str, spec: Any) -> Axis:
    if isinstance(spec, Float | Integer | Categorical):
        return spec
    if spec is None or isinstance(spec, str | bool | Number | np.generic):
        return Constant((spec,))
    if type(spec).__module__.startswith("ConfigSpace"):
        from fabolas.space.configspace import read_hyperparameter

        return read_hyperparameter(spec)
    if isinstance(spec, tuple) and len(spec) == 2 and all(_is_number(end) for end in spec):
        raise TypeError(
            f"hyperparameter {name!r} expected a range or a list of choices, got {spec!r}, which is unclear; "
            f"write fabolas.Float{spec!r} or fabolas.Integer{spec!r} for a range, {list(spec)!r} for choices"
        )
    if isinstance(spec, list | tuple | np.ndarray):
        try:
            return Categorical(spec)  # type: ignore[arg-type]
        except (TypeError, ValueError) as error:
            raise type(error)(f"hyperparameter {name!r}: {error}") from None
    raise TypeError(
        f"hyperparameter {name!r} expected fabolas.Float, Integer, Categorical or Ordinal, a list of choices "
        f"or a constant, got {spec!r} of type {type(spec).__name__}; use one of these"
    )


def _is_number(value: object) -> bool:
    return isinstance(value, Number) and not isinstance(value, bool)


def _collapsed(axis: Axis) -> Axis:
    """An axis with a single value is a constant: it needs no column."""
    if isinstance(axis, Integer) and axis.low == axis.high:
        return Constant((axis.low,))
    if isinstance(axis, Categorical) and len(axis.choices) == 1:
        return Constant(axis.choices)
    return axis
