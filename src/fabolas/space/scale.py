"""Linear and logarithmic maps between an interval and [0, 1], and how finely floating point resolves them."""

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from fabolas._types import Array

_EPS = float(np.finfo(np.float64).eps)
_SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)

MAX_BITS = 45
"""The finest grid has steps of 2^-45 = 3e-14: far below any length scale, far above rounding errors."""


@dataclass(frozen=True)
class Scale:
    """Maps [low, high] to [0, 1] by (g(v) - g(low)) / (g(high) - g(low)); g is the logarithm or the identity.

    The ends are mapped exactly.
    """

    low: float
    high: float
    log: bool

    @cached_property
    def _ends(self) -> tuple[float, float]:
        """Return g(low) and g(high)."""
        if not self.log:
            return self.low, self.high
        ends = np.log(np.array([self.low, self.high]))
        return float(ends[0]), float(ends[1])

    def to_unit(self, values: Array) -> Array:
        """Map values in [low, high], of any shape, to coordinates in [0, 1]."""
        low, high = self._ends
        coordinates: Array = ((np.log(values) if self.log else values) - low) / (high - low)
        return np.clip(coordinates, 0.0, 1.0)

    def number_to_unit(self, value: float) -> float:
        """Map one number to its coordinate; equal to ``to_unit`` up to rounding, but faster."""
        low, high = self._ends
        return min(1.0, max(0.0, ((math.log(value) if self.log else value) - low) / (high - low)))

    def from_unit(self, x: Array) -> Array:
        """Map coordinates in [0, 1], of any shape, to values in [low, high]."""
        low, high = self._ends
        inner = low + x * (high - low)
        return np.clip(np.exp(inner) if self.log else inner, self.low, self.high)

    @property
    def bits(self) -> int:
        """The largest b for which a grid with steps of 2^-b is unchanged after conversion to values and back."""
        low, high = self._ends
        # Rounding moves g(v) by about eps * max(|g|), so x by that divided by the width; 16 is a safety factor.
        if not low < high:
            return 0
        magnitude = max(abs(low), abs(high), 1.0 if self.log else _SMALLEST_NORMAL)
        resolution = (high - low) / (16 * _EPS * magnitude)
        return max(0, min(MAX_BITS, math.floor(math.log2(max(resolution, 1.0)))))


def cell_index(x: Array, n_cells: int) -> Array:
    """Return which of n_cells equal cells of [0, 1] contains x: cell i has its centre at (i + 0.5) / n_cells."""
    return np.clip(np.floor(x * n_cells), 0.0, n_cells - 1.0)


@dataclass(frozen=True)
class PicklesFieldsOnly:
    """Base of the axes that cache what they compute: a pickle contains the fields and not the caches.

    Without it, using an axis would change its pickle. scikit-learn compares parameters by the hash of their pickle.
    """

    def __getstate__(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)}
