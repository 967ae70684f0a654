"""The kinds of hyperparameter: frozen records that validate themselves and know their axis of the cube."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Protocol

import numpy as np

from fabolas._types import Array
from fabolas.space.scale import Record, Scale, cell, check_log, checked_integer, checked_number


class Axis(Protocol):
    """One hyperparameter as a lattice in [0, 1], on which value and coordinate are inverses."""

    def snap(self, x: Array) -> Array:
        """Coordinates (m,) to the nearest lattice coordinates (m,)."""

    def numbers(self, x: Array) -> Array:
        """Coordinates (m,) to numbers (m,): the values of a numeric axis, the indices of the others."""

    def value(self, x: float) -> Any:
        """One coordinate to the plain python value."""

    def coordinate(self, value: Any) -> float:
        """One value to its lattice coordinate; a ValueError or TypeError if it is not of this axis."""

    def every(self) -> Sequence[Any] | None:
        """All its values; None if there are as many as floating-point numbers."""

    def default_coordinate(self) -> float:
        """Where the axis rests while its hyperparameter is inactive."""

    def describe(self) -> dict[str, Any]:
        """JSON-able and complete."""


class _Unset:
    """The type of 'no default given', because None may well be a choice."""

    def __repr__(self) -> str:
        return "unset"

    def __reduce__(self) -> str:
        return "UNSET"


UNSET: Final = _Unset()


def _check_order(low: float, high: float, what: str) -> None:
    if low > high:
        raise ValueError(f"{what} expected low < high, got low={low!r}, high={high!r}; swap them")


def _check_inside(value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise ValueError(
            f"expected a value in [{low!r}, {high!r}], got {value!r}; choose one in this range, or widen it"
        )


@dataclass(frozen=True)
class Float(Record):
    """A real hyperparameter in [low, high]; decimals of up to about 12 digits survive the cube exactly.

    The lattice is dyadic, 2^-45 wide or coarser where floating point demands it; a lattice point stands for
    the shortest decimal in its cell, so that 0.1 comes back as 0.1.

    Args:
        low: Lower end, included.
        high: Upper end, included.
        log: Whether the cube is affine in the logarithm.
        default: Where the axis rests while inactive; the middle of the axis if not given.
    """

    low: float
    high: float
    log: bool = False
    default: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", checked_number(self.low, "Float's low"))
        object.__setattr__(self, "high", checked_number(self.high, "Float's high"))
        _check_order(self.low, self.high, "Float")
        if self.low == self.high:
            raise ValueError(
                f"Float expected low < high, got {self.low!r} for both; write the bare number for a constant"
            )
        if not math.isfinite(self.high - self.low):
            raise ValueError(
                f"Float expected a finite width, got low={self.low!r}, high={self.high!r}; narrow the range"
            )
        if self.log:
            check_log(self.low, "Float")
        if self._scale.bits == 0:
            raise ValueError(
                f"Float expected ends that differ in more than rounding, got low={self.low!r}, "
                f"high={self.high!r}; widen the range"
            )
        if self.default is not None:
            default = checked_number(self.default, "Float's default")
            _check_inside(default, self.low, self.high)
            object.__setattr__(self, "default", default)

    @cached_property
    def _scale(self) -> Scale:
        return Scale(self.low, self.high, self.log)

    @cached_property
    def _cells(self) -> float:
        return float(2**self._scale.bits)

    def snap(self, x: Array) -> Array:
        return np.rint(x * self._cells) / self._cells

    def numbers(self, x: Array) -> Array:
        return self._scale.values(x)

    def value(self, x: float) -> float:
        """The shortest decimal that has this lattice coordinate."""
        x = float(self.snap(np.array([x]))[0])
        if x in (0.0, 1.0):
            return self.low if x == 0.0 else self.high
        raw = float(self._scale.values(np.array([x]))[0])
        # On a log scale digits are counted from the value's own magnitude, otherwise from that of the range.
        first = -math.floor(math.log10(raw if self.log else self.high - self.low))
        for digits in range(first, first + 17):
            short = round(raw, digits) + 0.0  # no -0.0
            if self.low <= short <= self.high and self._lattice(short) == x:
                return short
        return raw

    def coordinate(self, value: Any) -> float:
        number = checked_number(value, "a Float")
        _check_inside(number, self.low, self.high)
        return self._lattice(number)

    def every(self) -> None:
        return None

    def _lattice(self, value: float) -> float:
        return round(self._scale.unit_of(value) * self._cells) / self._cells

    def default_coordinate(self) -> float:
        return self.coordinate(self.value(0.5) if self.default is None else self.default)

    def describe(self) -> dict[str, Any]:
        default = self.value(self.default_coordinate())
        return {"kind": "float", "low": self.low, "high": self.high, "log": self.log, "default": default}


@dataclass(frozen=True)
class Integer(Record):
    """A whole-numbered hyperparameter in [low, high]; each number sits at the centre of its bin.

    The bin of i is [i - 0.5, i + 0.5], on a log scale too, so that rounding is the same everywhere.

    Args:
        low: Lower end, included.
        high: Upper end, included.
        log: Whether the bins are laid out on a logarithmic scale.
        default: Where the axis rests while inactive; the middle of the axis if not given.
    """

    low: int
    high: int
    log: bool = False
    default: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", checked_integer(self.low, "Integer's low"))
        object.__setattr__(self, "high", checked_integer(self.high, "Integer's high"))
        _check_order(self.low, self.high, "Integer")
        if self.log:
            check_log(self.low, "Integer")
        if max(abs(self.low), abs(self.high)) > 10**12:
            raise ValueError(
                f"Integer expected bounds within ±10^12, got low={self.low}, high={self.high}; "
                "use a Float and round it"
            )
        if self.default is not None:
            default = checked_integer(self.default, "Integer's default")
            _check_inside(default, self.low, self.high)
            object.__setattr__(self, "default", default)

    @cached_property
    def _scale(self) -> Scale:
        return Scale(self.low - 0.5, self.high + 0.5, self.log)

    def snap(self, x: Array) -> Array:
        return self._centre(self.numbers(x))

    def numbers(self, x: Array) -> Array:
        if not self.log:
            return self.low + cell(x, self.high - self.low + 1)
        return np.clip(np.rint(self._scale.values(x)), self.low, self.high)

    def _centre(self, numbers: Array) -> Array:
        if not self.log:
            return (numbers - self.low + 0.5) / (self.high - self.low + 1)
        return 0.5 * (self._scale.unit(numbers - 0.5) + self._scale.unit(numbers + 0.5))

    def value(self, x: float) -> int:
        return int(self.numbers(np.array([x]))[0])

    def coordinate(self, value: Any) -> float:
        number = checked_integer(value, "an Integer")
        _check_inside(number, self.low, self.high)
        return float(self._centre(np.array([float(number)]))[0])

    def every(self) -> range:
        return range(self.low, self.high + 1)

    def default_coordinate(self) -> float:
        return self.coordinate(self.value(0.5) if self.default is None else self.default)

    def describe(self) -> dict[str, Any]:
        default = self.value(self.default_coordinate())
        return {"kind": "integer", "low": self.low, "high": self.high, "log": self.log, "default": default}


@dataclass(frozen=True)
class Categorical:
    """One of several unordered values of any kind; the model only asks whether two are equal.

    Args:
        choices: The values. They come back as the very objects given; 1, True and 1.0 are three choices.
        default: The choice while inactive; the first if not given.
    """

    choices: tuple[Any, ...]
    default: Any = field(default=UNSET)

    def __post_init__(self) -> None:
        what = type(self).__name__
        object.__setattr__(self, "choices", _checked_choices(self.choices, what))
        if self.default is not UNSET:
            self.index(self.default)

    def index(self, value: Any) -> int:
        """Which choice this is: the same value of the same kind, or else the only one that equals it."""
        value = _plain(value)
        for test in (_same, _equal, _alike):
            found = [i for i, choice in enumerate(self.choices) if test(choice, value)]
            if len(found) == 1:
                return found[0]
        listed = ", ".join(label(choice) for choice in self.choices)
        raise ValueError(
            f"expected one of {listed}, got {value!r}; choose one of them, or add it to the choices"
        )

    def snap(self, x: Array) -> Array:
        return (self.numbers(x) + 0.5) / len(self.choices)

    def numbers(self, x: Array) -> Array:
        return cell(x, len(self.choices))

    def value(self, x: float) -> Any:
        return self.choices[int(self.numbers(np.array([x]))[0])]

    def coordinate(self, value: Any) -> float:
        return (self.index(value) + 0.5) / len(self.choices)

    def every(self) -> tuple[Any, ...]:
        return self.choices

    def default_coordinate(self) -> float:
        return self.coordinate(self.choices[0] if self.default is UNSET else self.default)

    def describe(self) -> dict[str, Any]:
        kind, default = type(self).__name__.lower(), label(self.value(self.default_coordinate()))
        return {"kind": kind, "choices": [label(choice) for choice in self.choices], "default": default}


@dataclass(frozen=True)
class Ordinal(Categorical):
    """One of several values that have an order, the order given; the model sees their rank.

    Args:
        choices: The values, from one end to the other.
        default: The choice while inactive; the first if not given.
    """


@dataclass(frozen=True)
class Constant(Categorical):
    """One fixed value: it appears in every configuration (where active) and has no column."""


def label(value: Any) -> str:
    """A text that tells 1, True, 1.0 and '1' apart and is the same in every process."""
    if hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return repr(value)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _same(choice: Any, value: Any) -> bool:
    return type(choice) is type(value) and (choice is value or label(choice) == label(value))


def _equal(choice: Any, value: Any) -> bool:
    if isinstance(choice, bool) != isinstance(value, bool):
        return False
    return bool(choice == value)


def _alike(choice: Any, value: Any) -> bool:
    """A tuple that went through JSON comes back as a list."""
    if isinstance(choice, tuple | list) and isinstance(value, tuple | list):
        return len(choice) == len(value) and all(map(_alike, choice, value))
    return _equal(choice, value)


def _checked_choices(choices: Any, what: str) -> tuple[Any, ...]:
    if isinstance(choices, np.ndarray):
        choices = choices.tolist()
    if isinstance(choices, str) or not isinstance(choices, Sequence):
        raise TypeError(
            f"{what} expected a list or tuple of choices, got {choices!r} of type {type(choices).__name__}; "
            "list the values in the order you mean"
        )
    plain = tuple(_plain(choice) for choice in choices)
    if not plain:
        raise ValueError(f"{what} expected at least one choice, got none; list the values")
    for i, choice in enumerate(plain):
        if any(_same(choice, other) for other in plain[:i]):
            raise ValueError(f"{what} expected different choices, got {label(choice)} twice; remove one")
    return plain
