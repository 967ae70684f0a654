"""The (log-)affine map between an interval and [0, 1], and how finely it can be resolved both ways."""

import math
from dataclasses import dataclass, fields
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from fabolas._types import Array

_EPS = float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)

MAX_BITS = 45
"""The cube is resolved to 2^-45 = 3e-14 at best: far below any length scale, far above rounding errors."""


@dataclass(frozen=True)
class Record:
    """Its pickle is its fields alone, so that using it does not change it: scikit-learn compares by joblib's hash.

    What it has computed from them, and keeps, is computed again by a copy.
    """

    def __getstate__(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)}


@dataclass(frozen=True)
class Scale:
    """Maps [low, high] onto [0, 1]: (g(v) - g(low)) / (g(high) - g(low)), g = log or identity; exact ends."""

    low: float
    high: float
    log: bool

    @cached_property
    def _ends(self) -> tuple[float, float]:
        if not self.log:
            return self.low, self.high
        ends = np.log(np.array([self.low, self.high]))
        return float(ends[0]), float(ends[1])

    def unit(self, values: Array) -> Array:
        """Values in [low, high] to coordinates in [0, 1], of any shape."""
        low, high = self._ends
        coordinates: Array = ((np.log(values) if self.log else values) - low) / (high - low)
        return np.clip(coordinates, 0.0, 1.0)

    def unit_of(self, value: float) -> float:
        """One value to its coordinate, as ``unit`` up to rounding and faster."""
        low, high = self._ends
        return min(1.0, max(0.0, ((math.log(value) if self.log else value) - low) / (high - low)))

    def values(self, x: Array) -> Array:
        """Coordinates in [0, 1] to values in [low, high], of any shape."""
        low, high = self._ends
        inner = low + x * (high - low)
        return np.clip(np.exp(inner) if self.log else inner, self.low, self.high)

    @property
    def bits(self) -> int:
        """How many halvings of [0, 1] survive the way to the values and back."""
        low, high = self._ends
        # Rounding moves g(v) by about eps * max(|g|), hence x by that over the width; 16 is a safety factor.
        if not low < high:
            return 0
        magnitude = max(abs(low), abs(high), 1.0 if self.log else _TINY)
        resolution = (high - low) / (16 * _EPS * magnitude)
        return max(0, min(MAX_BITS, math.floor(math.log2(max(resolution, 1.0)))))


def cell(x: Array, m: int) -> Array:
    """Which of m equal cells of [0, 1] x lies in, 0 .. m - 1; cell i has its centre at (i + 0.5) / m."""
    return np.clip(np.floor(x * m), 0.0, m - 1.0)


def checked_number(value: Any, what: str) -> float:
    """A finite real number as a float; anything else, also a bool, is an error about ``what``."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(
            f"{what} expected a number, got {value!r} of type {type(value).__name__}; pass a number"
        )
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{what} expected a finite number, got {value!r}; choose a finite value")
    return number


def checked_integer(value: Any, what: str) -> int:
    """A whole number as an int, 3.0 included; anything else, also a bool, is an error about ``what``."""
    number = checked_number(value, what)
    if number != math.floor(number):
        raise ValueError(f"{what} expected a whole number, got {value!r}; round it or use a float range")
    return int(value)


def check_log(low: float, what: str) -> None:
    """A logarithmic scale needs a positive lower end that is a normal floating-point number."""
    if low <= 0:
        raise ValueError(
            f"{what} on a log scale expected low > 0, got low={low!r}; "
            f"choose a small positive low, or log=False"
        )
    if low < _TINY:
        raise ValueError(
            f"{what} on a log scale expected low >= {_TINY}, got low={low!r}; choose a larger low"
        )
