"""Conditions and forbidden clauses as small trees of comparisons, evaluated for all points at once."""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from fabolas._types import Array, BoolArray
from fabolas.space.parameters import Axis, Categorical, Float

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Rows:
    """m snapped configurations by hyperparameter: lattice coordinates, and where each is active."""

    axes: Mapping[str, Axis]
    coordinates: Mapping[str, Array]  # name -> (m,)
    active: Mapping[str, BoolArray]  # name -> (m,)

    def values(self, row: int) -> dict[str, Any]:
        """The active values of one row."""
        return {
            name: axis.value(float(self.coordinates[name][row]))
            for name, axis in self.axes.items()
            if self.active[name][row]
        }


class Rule(Protocol):
    """A statement about configurations; its text is complete, so that equal texts are equal rules."""

    @property
    def text(self) -> str:
        """The statement in words."""

    @property
    def names(self) -> frozenset[str]:
        """The hyperparameters it speaks of."""

    def holds(self, rows: Rows) -> BoolArray:
        """Where it is true, (m,)."""


@dataclass(frozen=True)
class Comparison:
    """``name op value``, decided on the lattice; about an inactive hyperparameter only "!=" is true.

    (That is ConfigSpace's verdict on its vectors, where inactive is NaN and NaN differs from everything.)
    """

    name: str
    op: str
    coordinate: float
    text: str

    @property
    def names(self) -> frozenset[str]:
        return frozenset({self.name})

    def holds(self, rows: Rows) -> BoolArray:
        true: BoolArray = _OPERATORS[self.op](rows.coordinates[self.name], self.coordinate)
        active = rows.active[self.name]
        return true | ~active if self.op == "!=" else true & active


@dataclass(frozen=True)
class Membership:
    """``name in values``, decided on the lattice; false where inactive."""

    name: str
    coordinates: tuple[float, ...]
    text: str

    @property
    def names(self) -> frozenset[str]:
        return frozenset({self.name})

    def holds(self, rows: Rows) -> BoolArray:
        return np.isin(rows.coordinates[self.name], self.coordinates) & rows.active[self.name]


@dataclass(frozen=True)
class Junction:
    """All of the parts, or any of them."""

    parts: tuple[Rule, ...]
    every: bool

    @property
    def text(self) -> str:
        return "(" + (" and " if self.every else " or ").join(part.text for part in self.parts) + ")"

    @property
    def names(self) -> frozenset[str]:
        return frozenset[str]().union(*(part.names for part in self.parts))

    def holds(self, rows: Rows) -> BoolArray:
        combine = np.logical_and if self.every else np.logical_or
        verdicts: BoolArray = combine.reduce([part.holds(rows) for part in self.parts])
        return verdicts


@dataclass(frozen=True)
class Relation:
    """``left op right`` between the values of two hyperparameters; false where either is inactive."""

    left: str
    right: str
    op: str

    @property
    def text(self) -> str:
        return f"{self.left} {self.op} {self.right}"

    @property
    def names(self) -> frozenset[str]:
        return frozenset({self.left, self.right})

    def holds(self, rows: Rows) -> BoolArray:
        left, right = rows.axes[self.left], rows.axes[self.right]
        x, y = rows.coordinates[self.left], rows.coordinates[self.right]
        if isinstance(left, Categorical) and isinstance(right, Categorical):
            table = self.table(left, right)
            true: BoolArray = table[left.numbers(x).astype(int), right.numbers(y).astype(int)]
        else:
            true = self._compare(left, right, x, y)
        return true & rows.active[self.left] & rows.active[self.right]

    def table(self, left: Categorical, right: Categorical) -> BoolArray:
        """The verdict on each pair of choices; a TypeError if python cannot compare them."""
        compare = _OPERATORS[self.op]
        return np.array([[bool(compare(a, b)) for b in right.choices] for a in left.choices])

    def _compare(self, left: Axis, right: Axis, x: Array, y: Array) -> BoolArray:
        a, b = _native(left, x), _native(right, y)
        # Near a tie the shortest decimal decides, because that is the value the objective will see.
        near = np.isclose(a, b, rtol=1e-9) & (isinstance(left, Float) or isinstance(right, Float))
        for row in np.flatnonzero(near):
            a[row], b[row] = left.value(float(x[row])), right.value(float(y[row]))
        true: BoolArray = _OPERATORS[self.op](a, b)
        return true


def _native(axis: Axis, x: Array) -> Array:
    numbers = axis.numbers(x)
    if isinstance(axis, Categorical):
        numbers = np.array(axis.choices, dtype=np.float64)[numbers.astype(int)]
    return numbers


@dataclass(frozen=True)
class Opaque:
    """A rule of a kind we do not know, asked row by row about plain values."""

    text: str
    names: frozenset[str]
    verdict: Callable[[dict[str, Any]], bool]
    inactive: Any  # what the verdict wants to see for an inactive value; None leaves it out

    def holds(self, rows: Rows) -> BoolArray:
        m = len(next(iter(rows.coordinates.values())))
        blank = {} if self.inactive is None else dict.fromkeys(rows.axes, self.inactive)
        return np.array([bool(self.verdict(blank | rows.values(row))) for row in range(m)], dtype=np.bool_)


def check_comparable(relation: Relation, axes: Mapping[str, Axis]) -> None:
    """A relation whose sides python cannot compare is an error at once, not during the search."""
    left, right = axes[relation.left], axes[relation.right]
    try:
        if isinstance(left, Categorical) and isinstance(right, Categorical):
            relation.table(left, right)
        else:
            for axis in (left, right):
                _native(axis, np.array([0.5]))
    except (TypeError, ValueError):
        raise TypeError(
            f"the forbidden relation '{relation.text}' expected values that can be compared, "
            f"got {left!r} and {right!r}; use numbers on both sides"
        ) from None
