"""A hyperparameter as an axis of a figure. Positions are coordinates of the unit cube, ticks are values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fabolas._types import Array
from fabolas.plots.drawing import FigureAxis
from fabolas.plots.labels import short_name, value_text
from fabolas.plots.ticks import Ticks, linear_values, log_ticks, number
from fabolas.space import Categorical, Float, Integer, Ordinal, Space

_MAX_TITLE = 32  # characters, as long as the side of a small panel
_NEAR_END = 0.1  # share of an axis between one of its ends and the next tick
_MAX_LEVELS = 12  # of ordered choices; with more, not every one gets a tick


@dataclass(frozen=True)
class ParameterAxis:
    """A hyperparameter as an axis.

    Attributes:
        name: Its name.
        ticks: (coordinate, label) pairs.
        positions: (m,) Coordinates where it is evaluated, ascending: all values if they are few.
        labels: (m,) The values there.
        ordered: Whether neighbours are similar, so that a line through them makes sense.
        names: Whether the ticks are names of choices, and not numbers.
    """

    name: str
    ticks: Ticks
    positions: Array
    labels: tuple[str, ...]
    ordered: bool
    names: bool = False

    def draw(self) -> FigureAxis:
        """The axis of a panel."""
        margin = 0.02 if self.ordered else 0.0
        ends = (-margin, 1.0 + margin)
        return FigureAxis(short_name(self.name, _MAX_TITLE), range=ends, ticks=self.ticks, names=self.names)


def parameter_axis(space: Space, name: str, n: int) -> ParameterAxis:
    """The axis of a hyperparameter, with at most n positions if it is numeric."""
    kind = space.axis(name)
    if isinstance(kind, Categorical):
        positions = (np.arange(len(kind.choices)) + 0.5) / len(kind.choices)
        labels = tuple(value_text(choice) for choice in kind.choices)
        ordered = isinstance(kind, Ordinal)
        every = -(-len(labels) // _MAX_LEVELS) if ordered else 1
        ticks = tuple(zip(positions.tolist()[::every], labels[::every], strict=True))
        names = not ordered or any(isinstance(choice, str) for choice in kind.choices)
        return ParameterAxis(name, ticks, positions, labels, ordered, names)
    if not isinstance(kind, Float | Integer):
        raise TypeError(f"expected a numeric or categorical hyperparameter, got {kind!r}")
    positions = np.unique(kind.snap(np.linspace(0.0, 1.0, n)))
    labels = tuple(value_text(kind.value(float(x))) for x in positions)
    return ParameterAxis(name, _numeric_ticks(kind), positions, labels, True)


def _numeric_ticks(kind: Float | Integer) -> Ticks:
    low, high = float(kind.low), float(kind.high)
    if kind.log and low > 0:
        values: Sequence[float] = [value for value, _ in log_ticks(low, high)]
    else:
        values = linear_values(low, high, 4, whole=isinstance(kind, Integer))
    if isinstance(kind, Integer):
        values = sorted({round(value) for value in values if kind.low <= round(value) <= kind.high})
    return ticks_with_ends(
        [min(max(v, kind.low), kind.high) for v in values], kind.low, kind.high, kind.coordinate
    )


def ticks_with_ends(
    values: Sequence[float], low: float, high: float, coordinate: Callable[[Any], float]
) -> Ticks:
    """Ticks at the values and at both ends of an axis; a value that is close to an end is left out."""
    first, last = coordinate(low), coordinate(high)
    inside = [v for v in values if first + _NEAR_END < coordinate(v) < last - _NEAR_END]
    return tuple((coordinate(v), number(float(f"{v:.6g}"))) for v in dict.fromkeys([low, *inside, high]))
