"""Checks that every kind of axis needs; each error says what was expected, what was given and what to do."""

import math
import re
from numbers import Real
from typing import Any

import numpy as np

_SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)


def finite_number(value: Any, what: str) -> float:
    """Return a finite real number as a float; raise an error about ``what`` for anything else, even for a bool."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(
            f"expected a number for {what}, got {readable(value)} of type {type(value).__name__}; pass a number"
        )
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"expected a finite number for {what}, got {value!r}; choose a finite value")
    return number


def whole_number(value: Any, what: str) -> int:
    """Return a whole number (3.0 is one) as an int; raise an error about ``what`` for anything else."""
    number = finite_number(value, what)
    if number != math.floor(number):
        raise ValueError(f"expected a whole number for {what}, got {value!r}; round it or use a float range")
    return int(value)


def checked_name(name: object, what: str) -> str:
    """Return the name of a hyperparameter or fidelity, which must be a non-empty string."""
    if not isinstance(name, str) or not name:
        raise TypeError(f"expected a non-empty string as the name of a {what}, got {name!r}; rename it")
    return name


def check_order(low: float, high: float, what: str) -> None:
    """Raise ValueError if ``low`` is above ``high``."""
    if low > high:
        raise ValueError(f"expected low < high for {what}, got low={low!r}, high={high!r}; swap them")


def check_in_range(value: float, low: float, high: float) -> None:
    """Raise ValueError if the value is outside [low, high]."""
    if not low <= value <= high:
        raise ValueError(
            f"expected a value in [{low!r}, {high!r}], got {value!r}; choose one in this range, or widen it"
        )


def check_log_range(low: float, what: str) -> None:
    """Raise ValueError if a range that starts at ``low`` cannot have a logarithmic scale."""
    if low <= 0:
        raise ValueError(
            f"expected low > 0 for {what} on a log scale, got low={low!r}; "
            f"choose a small positive low, or log=False"
        )
    if low < _SMALLEST_NORMAL:
        raise ValueError(
            f"expected low >= {_SMALLEST_NORMAL} for {what} on a log scale, got low={low!r}; choose a larger low"
        )


def readable(value: object) -> str:
    """Return the value as text for an error message, without a memory address."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
