"""A fidelity: how much of something (rows, epochs, pixels) an evaluation uses; the upper end is the goal."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np

from fabolas._types import Array
from fabolas.space.parameters import Float
from fabolas.space.scale import Record, Scale, checked_integer, checked_number


@dataclass(frozen=True)
class Fidelity(Record):
    """The range of a fidelity: u = (log n - log low) / (log high - log low), u = 1 the target.

    Args:
        low: The smallest value an evaluation may use, above zero.
        high: The target, which the answer is about.
        log: Whether u is affine in the logarithm (the usual case) or in the value itself.
        integer: Whether only whole numbers make sense.
    """

    low: float
    high: float
    log: bool = True
    integer: bool = True

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            number = checked_number(getattr(self, name), f"Fidelity's {name}")
            if self.integer and number != np.floor(number):
                raise ValueError(
                    f"Fidelity's {name} expected a whole number, got {number!r}; "
                    "round it, or pass integer=False"
                )
            object.__setattr__(self, name, int(number) if self.integer else number)
        if self.low <= 0:
            raise ValueError(
                f"Fidelity expected low > 0, got low={self.low!r}; start from the smallest useful value"
            )
        if self.low == self.high:
            raise ValueError(
                f"Fidelity expected low < high, got {self.low!r} for both; widen it, or leave it out"
            )
        if self.low > self.high:
            raise ValueError(
                f"Fidelity expected low < high, got low={self.low!r}, high={self.high!r}; swap them: "
                "the upper end is the target"
            )
        if self.integer and self.high > 1e12:
            raise ValueError(
                f"An integer Fidelity expected high <= 1e12, got {self.high!r}; "
                "pass integer=False, or count in larger units"
            )

        if not self.integer:
            Float(self.low, self.high, log=self.log)  # refuses what cannot be resolved

    @cached_property
    def _scale(self) -> Scale:
        return Scale(float(self.low), float(self.high), self.log)

    @cached_property
    def _real(self) -> Float:
        return Float(float(self.low), float(self.high), log=self.log)

    def values(self, u: Array) -> Array:
        """Coordinates of any shape to values in [low, high], whole ones if the fidelity is an integer."""
        values = self._scale.values(u)
        return np.rint(values) if self.integer else values

    def snap(self, u: Array) -> Array:
        """The nearest representable coordinates; the ends stay exactly 0 and 1."""
        return self._scale.unit(self.values(u)) if self.integer else self._real.snap(u)

    def value(self, u: float) -> float | int:
        """One coordinate to the python number it stands for."""
        return round(float(self.values(np.array([u]))[0])) if self.integer else self._real.value(u)

    def coordinate(self, value: Any) -> float:
        """One value to its coordinate in [0, 1]."""
        if not self.integer:
            return self._real.coordinate(value)
        number = checked_integer(value, "an integer fidelity")
        if not self.low <= number <= self.high:
            raise ValueError(
                f"expected a value in [{self.low}, {self.high}], got {value!r}; "
                "choose one in this range, or widen it"
            )
        return float(self._scale.unit(np.array([float(number)]))[0])

    def describe(self) -> dict[str, Any]:
        """JSON-able and complete."""
        return {"low": self.low, "high": self.high, "log": self.log, "integer": self.integer}


def read_fidelities(fidelities: object) -> dict[str, Fidelity]:
    """A mapping name -> Fidelity or (low, high), or None for no fidelity at all."""
    if fidelities is None:
        return {}
    if not isinstance(fidelities, Mapping):
        raise TypeError(
            "fidelities expected a mapping name -> (low, high) or fabolas.Fidelity, "
            f'got {type(fidelities).__name__}; write {{"size": (100, 50_000)}}'
        )
    return {_checked_name(name): _read_fidelity(name, spec) for name, spec in fidelities.items()}


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise TypeError(f"a fidelity's name expected a non-empty string, got {name!r}; rename it")
    return name


def _read_fidelity(name: str, spec: object) -> Fidelity:
    if isinstance(spec, Fidelity):
        return spec
    if not isinstance(spec, tuple | list) or len(spec) != 2:
        raise TypeError(
            f"fidelity {name!r} expected (low, high) or fabolas.Fidelity, got {spec!r}; "
            "the upper end is the target"
        )
    low, high = spec
    whole = all(isinstance(end, Integral) for end in spec)
    try:
        return Fidelity(low, high, log=True, integer=whole)
    except (TypeError, ValueError) as error:
        raise type(error)(f"fidelity {name!r}: {error}") from None
