"""Conditions and forbidden clauses as small trees of comparisons, evaluated for many configurations at once."""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from fabolas._types import Array, BoolArray
from fabolas.space.parameters import Axis, Categorical, Float

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class ConfigColumns:
    """m snapped configurations, stored by hyperparameter.

    Attributes:
        axes: Name -> axis.
        coordinates: Name -> (m,) grid coordinates.
        active: Name -> (m,) whether the hyperparameter is active.
    """

    axes: Mapping[str, Axis]
    coordinates: Mapping[str, Array]
    active: Mapping[str, BoolArray]

    def config(self, row: int) -> dict[str, Any]:
        """Return one configuration: the values of its active hyperparameters."""
        return {
            name: axis.value(float(self.coordinates[name][row]))
            for name, axis in self.axes.items()
            if self.active[name][row]
        }


class Rule(Protocol):
    """A statement that is true or false for a configuration. Two rules are equal if their descriptions are."""

    @property
    def text(self) -> str:
        """The whole statement as text."""

    @property
    def names(self) -> frozenset[str]:
        """The hyperparameters that the statement depends on."""

    def holds(self, configs: ConfigColumns) -> BoolArray:
        """Return where the statement is true, (m,)."""

    def describe(self) -> dict[str, Any]:
        """Return the rule as values that JSON can represent; ``described_rules`` reads them back."""


@dataclass(frozen=True)
class Comparison:
    """``name op value``, compared by grid coordinates. If the hyperparameter is inactive, only "!=" is true.

    ConfigSpace decides in the same way: it represents inactive values by NaN, and NaN differs from everything.
    """

    name: str
    op: str
    coordinate: float  # of the value
    text: str

    @property
    def names(self) -> frozenset[str]:
        return frozenset({self.name})

    def holds(self, configs: ConfigColumns) -> BoolArray:
        is_true: BoolArray = OPERATORS[self.op](configs.coordinates[self.name], self.coordinate)
        active = configs.active[self.name]
        return is_true | ~active if self.op == "!=" else is_true & active

    def describe(self) -> dict[str, Any]:
        own = {"name": self.name, "op": self.op, "coordinate": self.coordinate}
        return {"kind": "comparison", "text": self.text, **own}


@dataclass(frozen=True)
class Membership:
    """``name in values``, compared by grid coordinates; false if the hyperparameter is inactive."""

    name: str
    coordinates: tuple[float, ...]  # of the values
    text: str

    @property
    def names(self) -> frozenset[str]:
        return frozenset({self.name})

    def holds(self, configs: ConfigColumns) -> BoolArray:
        return np.isin(configs.coordinates[self.name], self.coordinates) & configs.active[self.name]

    def describe(self) -> dict[str, Any]:
        own = {"name": self.name, "coordinates": sorted(self.coordinates)}
        return {"kind": "membership", "text": self.text, **own}


@dataclass(frozen=True)
class _Connective:
    """Several rules joined by "and" or "or"."""

    parts: tuple[Rule, ...]

    _word: ClassVar[str]

    @property
    def text(self) -> str:
        return "(" + f" {self._word} ".join(part.text for part in self.parts) + ")"

    @property
    def names(self) -> frozenset[str]:
        return frozenset[str]().union(*(part.names for part in self.parts))

    def describe(self) -> dict[str, Any]:
        return {"kind": self._word, "text": self.text, "parts": [part.describe() for part in self.parts]}


class Conjunction(_Connective):
    """True where all parts are true."""

    _word = "and"

    def holds(self, configs: ConfigColumns) -> BoolArray:
        is_true: BoolArray = np.logical_and.reduce([part.holds(configs) for part in self.parts])
        return is_true


class Disjunction(_Connective):
    """True where at least one part is true."""

    _word = "or"

    def holds(self, configs: ConfigColumns) -> BoolArray:
        is_true: BoolArray = np.logical_or.reduce([part.holds(configs) for part in self.parts])
        return is_true


@dataclass(frozen=True)
class Relation:
    """``left op right`` between the values of two hyperparameters; false if one of them is inactive."""

    left: str
    right: str
    op: str

    @property
    def text(self) -> str:
        return f"{self.left} {self.op} {self.right}"

    @property
    def names(self) -> frozenset[str]:
        return frozenset({self.left, self.right})

    def holds(self, configs: ConfigColumns) -> BoolArray:
        left, right = configs.axes[self.left], configs.axes[self.right]
        x, y = configs.coordinates[self.left], configs.coordinates[self.right]
        if isinstance(left, Categorical) and isinstance(right, Categorical):
            table = self._compare_choices(left, right)
            is_true: BoolArray = table[
                left.values_or_indices(x).astype(int), right.values_or_indices(y).astype(int)
            ]
        else:
            is_true = self._compare_numbers(left, right, x, y)
        return is_true & configs.active[self.left] & configs.active[self.right]

    def describe(self) -> dict[str, Any]:
        return {"kind": "relation", "text": self.text, "left": self.left, "op": self.op, "right": self.right}

    def check_comparable(self, axes: Mapping[str, Axis]) -> None:
        """Raise TypeError now, and not during the search, if Python cannot compare the two sides."""
        left, right = axes[self.left], axes[self.right]
        try:
            if isinstance(left, Categorical) and isinstance(right, Categorical):
                self._compare_choices(left, right)
            else:
                for axis in (left, right):
                    _numeric_values(axis, np.array([0.5]))
        except (TypeError, ValueError):
            raise TypeError(
                f"expected values that can be compared in the forbidden relation '{self.text}', "
                f"got {left!r} and {right!r}; use numbers on both sides"
            ) from None

    def _compare_choices(self, left: Categorical, right: Categorical) -> BoolArray:
        """Return the truth for each pair of choices, (left choices, right choices)."""
        compare = OPERATORS[self.op]
        return np.array([[bool(compare(a, b)) for b in right.choices] for a in left.choices])

    def _compare_numbers(self, left: Axis, right: Axis, x: Array, y: Array) -> BoolArray:
        a, b = _numeric_values(left, x), _numeric_values(right, y)
        # Near a tie compare the decoded values, because these are the ones that the objective gets.
        near = np.isclose(a, b, rtol=1e-9) & (isinstance(left, Float) or isinstance(right, Float))
        for row in np.flatnonzero(near):
            a[row], b[row] = left.value(float(x[row])), right.value(float(y[row]))
        is_true: BoolArray = OPERATORS[self.op](a, b)
        return is_true


def _numeric_values(axis: Axis, x: Array) -> Array:
    """Map coordinates (m,) to values (m,); the choices of a categorical axis must be numbers."""
    numbers = axis.values_or_indices(x)
    if isinstance(axis, Categorical):
        numbers = np.array(axis.choices, dtype=np.float64)[numbers.astype(int)]
    return numbers


@dataclass(frozen=True)
class CustomRule:
    """A rule of a type that fabolas does not know. It is evaluated by calling it for each configuration.

    Attributes:
        text: The statement.
        names: The hyperparameters it may depend on.
        is_true: Called with a configuration.
        inactive: What ``is_true`` expects as the value of an inactive hyperparameter; None leaves the name out.
    """

    text: str
    names: frozenset[str]
    is_true: Callable[[dict[str, Any]], bool]
    inactive: Any

    def holds(self, configs: ConfigColumns) -> BoolArray:
        m = len(next(iter(configs.coordinates.values())))
        blank = {} if self.inactive is None else dict.fromkeys(configs.axes, self.inactive)
        return np.array([bool(self.is_true(blank | configs.config(row))) for row in range(m)], dtype=np.bool_)

    def describe(self) -> dict[str, Any]:
        return {"kind": "custom", "text": self.text, "names": sorted(self.names)}


@dataclass(frozen=True)
class UnknownRule:
    """A rule of a file that cannot be evaluated without the code of the study, for example a ``CustomRule``.

    Attributes:
        text: The statement.
        names: The hyperparameters it depends on.
        description: The rule as the file describes it.
        assumed: What it is taken for: a condition for true, a forbidden clause for false.
    """

    text: str
    names: frozenset[str]
    description: dict[str, Any]
    assumed: bool

    def holds(self, configs: ConfigColumns) -> BoolArray:
        return np.full(len(next(iter(configs.coordinates.values()))), self.assumed)

    def describe(self) -> dict[str, Any]:
        return self.description


def parents_first(axes: Mapping[str, Axis], conditions: Mapping[str, Rule]) -> tuple[str, ...]:
    """Return the conditional hyperparameters, each one after those that its condition depends on."""
    order: list[str] = []
    waiting = [name for name in axes if name in conditions]
    while waiting:
        ready = [name for name in waiting if not conditions[name].names & set(waiting)]
        if not ready:
            raise ValueError(
                f"expected conditions without cycles, got {', '.join(map(repr, waiting))}, which depend on each other; "
                "remove a condition"
            )
        order += ready
        waiting = [name for name in waiting if name not in ready]
    return tuple(order)
