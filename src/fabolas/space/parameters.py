"""The kinds of hyperparameter: frozen records that check their arguments, each one an axis of the unit cube."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Protocol

import numpy as np

from fabolas._types import Array
from fabolas.space.scale import PicklesFieldsOnly, Scale, cell_index
from fabolas.space.validation import (
    check_in_range,
    check_log_range,
    check_order,
    finite_number,
    readable,
    whole_number,
)


class Axis(Protocol):
    """One hyperparameter as an axis of the unit cube: a grid in [0, 1] with one value for each grid point."""

    def snap(self, x: Array) -> Array:
        """Move coordinates (m,) to the nearest grid coordinates (m,)."""

    def values_or_indices(self, x: Array) -> Array:
        """Map coordinates (m,) to the values (m,) of a numeric axis, or to the indices (m,) of the choices."""

    def value(self, x: float) -> Any:
        """Map one coordinate to its value, a plain Python object."""

    def coordinate(self, value: Any) -> float:
        """Map one value to its grid coordinate; raise ValueError or TypeError if the axis does not have it."""

    def all_values(self) -> Sequence[Any] | None:
        """Return all values; None for a real-valued axis."""

    def default_coordinate(self) -> float:
        """Return the coordinate that an inactive hyperparameter has."""

    def describe(self) -> dict[str, Any]:
        """Return everything that defines the axis, as values that JSON can represent."""


class _Unset:
    """The type of UNSET, which means "no default given". None cannot be used, because None may be a choice."""

    def __repr__(self) -> str:
        return "unset"

    def __reduce__(self) -> str:
        return "UNSET"


UNSET: Final = _Unset()


@dataclass(frozen=True)
class Float(PicklesFieldsOnly):
    """A real hyperparameter in [low, high].

    The grid has steps of 2^-45, or larger powers of two where floating point needs them. A grid point stands for
    the shortest decimal number in its cell, so that 0.1 is decoded as 0.1 and not as 0.10000000000000142. Decimal
    numbers of up to about 12 digits are encoded and decoded exactly.

    Args:
        low: Lower end, included.
        high: Upper end, included.
        log: Whether the axis is linear in the logarithm of the value.
        default: Value that stands for an inactive hyperparameter in the cube; the middle of the axis by default.
    """

    low: float
    high: float
    log: bool = False
    default: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", finite_number(self.low, "Float's low"))
        object.__setattr__(self, "high", finite_number(self.high, "Float's high"))
        check_order(self.low, self.high, "a Float")
        if self.low == self.high:
            raise ValueError(
                f"expected low < high for a Float, got {self.low!r} for both; write the number alone for a constant"
            )
        if not math.isfinite(self.high - self.low):
            raise ValueError(
                f"expected a finite width for a Float, got low={self.low!r}, high={self.high!r}; narrow the range"
            )
        if self.log:
            check_log_range(self.low, "a Float")
        if self._scale.bits == 0:
            raise ValueError(
                f"expected a Float whose ends differ by more than rounding errors, got low={self.low!r}, "
                f"high={self.high!r}; widen the range"
            )
        if self.default is not None:
            default = finite_number(self.default, "Float's default")
            check_in_range(default, self.low, self.high)
            object.__setattr__(self, "default", default)

    @cached_property
    def _scale(self) -> Scale:
        return Scale(self.low, self.high, self.log)

    @cached_property
    def _cells(self) -> float:
        return float(2**self._scale.bits)

    def snap(self, x: Array) -> Array:
        return np.rint(x * self._cells) / self._cells

    def values_or_indices(self, x: Array) -> Array:
        return self._scale.from_unit(x)

    def value(self, x: float) -> float:
        """Return the shortest decimal number that has this grid coordinate."""
        x = float(self.snap(np.array([x]))[0])
        if x in (0.0, 1.0):
            return self.low if x == 0.0 else self.high
        raw = float(self._scale.from_unit(np.array([x]))[0])
        # On a log scale digits are counted from the magnitude of the value, otherwise from that of the range.
        first = -math.floor(math.log10(raw if self.log else self.high - self.low))
        for digits in range(first, first + 17):
            short = round(raw, digits) + 0.0  # + 0.0 turns -0.0 into 0.0
            if self.low <= short <= self.high and self._to_grid(short) == x:
                return short
        return raw

    def coordinate(self, value: Any) -> float:
        number = finite_number(value, "a Float")
        check_in_range(number, self.low, self.high)
        return self._to_grid(number)

    def all_values(self) -> None:
        return None

    def _to_grid(self, value: float) -> float:
        return round(self._scale.number_to_unit(value) * self._cells) / self._cells

    def default_coordinate(self) -> float:
        return self.coordinate(self.value(0.5) if self.default is None else self.default)

    def describe(self) -> dict[str, Any]:
        default = self.value(self.default_coordinate())
        return {"kind": "float", "low": self.low, "high": self.high, "log": self.log, "default": default}


@dataclass(frozen=True)
class Integer(PicklesFieldsOnly):
    """A whole-number hyperparameter in [low, high]; the coordinate of a number is the centre of its bin.

    The bin of i is [i - 0.5, i + 0.5], also on a log scale, so that rounding is the same everywhere.

    Args:
        low: Lower end, included.
        high: Upper end, included.
        log: Whether the axis is linear in the logarithm of the value.
        default: Value that stands for an inactive hyperparameter in the cube; the middle of the axis by default.
    """

    low: int
    high: int
    log: bool = False
    default: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", whole_number(self.low, "Integer's low"))
        object.__setattr__(self, "high", whole_number(self.high, "Integer's high"))
        check_order(self.low, self.high, "an Integer")
        if self.log:
            check_log_range(self.low, "an Integer")
        if max(abs(self.low), abs(self.high)) > 10**12:
            raise ValueError(
                f"expected an Integer with bounds within ±10^12, got low={self.low}, high={self.high}; "
                "use a Float and round it"
            )
        if self.default is not None:
            default = whole_number(self.default, "Integer's default")
            check_in_range(default, self.low, self.high)
            object.__setattr__(self, "default", default)

    @cached_property
    def _scale(self) -> Scale:
        return Scale(self.low - 0.5, self.high + 0.5, self.log)

    def snap(self, x: Array) -> Array:
        return self._centre(self.values_or_indices(x))

    def values_or_indices(self, x: Array) -> Array:
        if not self.log:
            return self.low + cell_index(x, self.high - self.low + 1)
        return np.clip(np.rint(self._scale.from_unit(x)), self.low, self.high)

    def _centre(self, numbers: Array) -> Array:
        if not self.log:
            return (numbers - self.low + 0.5) / (self.high - self.low + 1)
        return 0.5 * (self._scale.to_unit(numbers - 0.5) + self._scale.to_unit(numbers + 0.5))

    def value(self, x: float) -> int:
        return int(self.values_or_indices(np.array([x]))[0])

    def coordinate(self, value: Any) -> float:
        number = whole_number(value, "an Integer")
        check_in_range(number, self.low, self.high)
        return float(self._centre(np.array([float(number)]))[0])

    def all_values(self) -> range:
        return range(self.low, self.high + 1)

    def default_coordinate(self) -> float:
        return self.coordinate(self.value(0.5) if self.default is None else self.default)

    def describe(self) -> dict[str, Any]:
        default = self.value(self.default_coordinate())
        return {"kind": "integer", "low": self.low, "high": self.high, "log": self.log, "default": default}


@dataclass(frozen=True)
class Categorical:
    """One of several unordered values of any type; the model only uses whether two values are equal.

    Args:
        choices: The values. ``decode`` returns these same objects. 1, True and 1.0 are three different choices.
        default: Choice that stands for an inactive hyperparameter in the cube; the first one by default.
    """

    choices: tuple[Any, ...]
    default: Any = field(default=UNSET)

    def __post_init__(self) -> None:
        what = type(self).__name__
        object.__setattr__(self, "choices", _checked_choices(self.choices, what))
        if self.default is not UNSET:
            self.index(self.default)

    def index(self, value: Any) -> int:
        """Return the index of the choice that equals the value.

        A choice of the same type is preferred, so 1 and 1.0 are different. The file of a study has the texts of
        choices that are functions, classes or other objects: the text stands for the choice, and the other way round.
        """
        value = _python_value(value)
        for test in (_same, _equal, _equal_as_sequence, _same_text):
            found = [i for i, choice in enumerate(self.choices) if test(choice, value)]
            if len(found) == 1:
                return found[0]
        listed = ", ".join(label(choice) for choice in self.choices)
        raise ValueError(
            f"expected one of {listed}, got {readable(value)}; choose one of them, or add it to the choices"
        )

    def snap(self, x: Array) -> Array:
        return (self.values_or_indices(x) + 0.5) / len(self.choices)

    def values_or_indices(self, x: Array) -> Array:
        return cell_index(x, len(self.choices))

    def value(self, x: float) -> Any:
        return self.choices[int(self.values_or_indices(np.array([x]))[0])]

    def coordinate(self, value: Any) -> float:
        return (self.index(value) + 0.5) / len(self.choices)

    def all_values(self) -> tuple[Any, ...]:
        return self.choices

    def default_coordinate(self) -> float:
        return self.coordinate(self.choices[0] if self.default is UNSET else self.default)

    def describe(self) -> dict[str, Any]:
        kind, default = type(self).__name__.lower(), label(self.value(self.default_coordinate()))
        return {"kind": kind, "choices": [label(choice) for choice in self.choices], "default": default}


@dataclass(frozen=True)
class Ordinal(Categorical):
    """One of several ordered values; the model sees the position of a value in the list.

    Args:
        choices: The values in their order.
        default: Choice that stands for an inactive hyperparameter in the cube; the first one by default.
    """


@dataclass(frozen=True)
class Constant(Categorical):
    """One fixed value. It is in every configuration in which it is active, and it has no column in the cube."""


def label(value: Any) -> str:
    """Return a text that distinguishes 1, True, 1.0 and '1' and is the same in every process."""
    if hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return repr(value)


def _python_value(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _same(choice: Any, value: Any) -> bool:
    return type(choice) is type(value) and (choice is value or label(choice) == label(value))


def _equal(choice: Any, value: Any) -> bool:
    if isinstance(choice, bool) != isinstance(value, bool):
        return False
    return bool(choice == value)


def _equal_as_sequence(choice: Any, value: Any) -> bool:
    """Compare a tuple and a list by their elements: JSON turns a tuple into a list."""
    if isinstance(choice, tuple | list) and isinstance(value, tuple | list):
        return len(choice) == len(value) and all(map(_equal_as_sequence, choice, value))
    return _equal(choice, value)


def _same_text(choice: Any, value: Any) -> bool:
    """Compare a choice that is no plain value with its text, either way round."""
    text, other = (choice, value) if isinstance(choice, str) else (value, choice)
    plain = isinstance(other, str | int | float | tuple | list | dict | None)
    return isinstance(text, str) and not plain and label(other) == text


def _checked_choices(choices: Any, what: str) -> tuple[Any, ...]:
    if isinstance(choices, np.ndarray):
        choices = choices.tolist()
    if isinstance(choices, str) or not isinstance(choices, Sequence):
        raise TypeError(
            f"expected a list or tuple of choices for {what}, got {readable(choices)} of type "
            f"{type(choices).__name__}; write the values in square brackets"
        )
    values = tuple(_python_value(choice) for choice in choices)
    if not values:
        raise ValueError(f"expected at least one choice for {what}, got none; list the values")
    for i, choice in enumerate(values):
        if any(_same(choice, other) for other in values[:i]):
            raise ValueError(f"expected different choices for {what}, got {label(choice)} twice; remove one")
    return values
