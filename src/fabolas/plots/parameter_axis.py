"""A hyperparameter as an axis of a figure. Positions are coordinates of the unit cube, ticks are values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fabolas._types import Array
from fabolas.plots.drawing import Axis
from fabolas.plots.labels import short_name, value_text
from fabolas.plots.ticks import Ticks, linear_values, log_ticks, number
from fabolas.space import Categorical, Float, Integer, Ordinal, Space

_MAX_TITLE = 32  # characters, as long as the side of a small panel
_MAX_CHOICES = 12  # with more, not every choice gets a tick


@dataclass(frozen=True)
class ParameterAxis:
    """A hyperparameter as an axis.

    Attributes:
        name: Its name.
        ticks: (coordinate, label) pairs.
        positions: (m,) Coordinates where it is evaluated, ascending: all values if they are few.
        labels: (m,) The values there.
        ordered: Whether neighbours are similar, so that a line through them makes sense.
    """

    name: str
    ticks: Ticks
    positions: Array
    labels: tuple[str, ...]
    ordered: bool

    def draw(self) -> Axis:
        """The axis of a panel."""
        margin = 0.02 if self.ordered else 0.0
        return Axis(short_name(self.name, _MAX_TITLE), range=(-margin, 1.0 + margin), ticks=self.ticks)


def parameter_axis(space: Space, name: str, n: int) -> ParameterAxis:
    """The axis of a hyperparameter, with at most n positions if it is numeric."""
    kind = space.axis(name)
    if isinstance(kind, Categorical):
        positions = (np.arange(len(kind.choices)) + 0.5) / len(kind.choices)
        labels = tuple(value_text(choice) for choice in kind.choices)
        every = -(-len(labels) // _MAX_CHOICES)
        ticks = tuple(zip(positions.tolist()[::every], labels[::every], strict=True))
        return ParameterAxis(name, ticks, positions, labels, isinstance(kind, Ordinal))
    if not isinstance(kind, Float | Integer):
        raise TypeError(f"expected a numeric or categorical hyperparameter, got {kind!r}")
    positions = np.unique(kind.snap(np.linspace(0.0, 1.0, n)))
    labels = tuple(value_text(kind.value(float(x))) for x in positions)
    return ParameterAxis(name, _numeric_ticks(kind), positions, labels, True)


def _numeric_ticks(kind: Float | Integer) -> Ticks:
    low, high = float(kind.low), float(kind.high)
    if kind.log and low > 0:
        values = [value for value, _ in log_ticks(low, high)]
    else:
        values = linear_values(low, high, 4, whole=isinstance(kind, Integer))
    if isinstance(kind, Integer):
        whole = sorted({round(value) for value in values})
        return tuple((kind.coordinate(v), number(v)) for v in whole if kind.low <= v <= kind.high)
    inside = [min(max(value, low), high) for value in values]
    return tuple((kind.coordinate(v), number(float(f"{v:.6g}"))) for v in dict.fromkeys(inside))
