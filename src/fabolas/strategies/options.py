"""Options of strategies: checks when a strategy is made, and which of them differ from their defaults."""

from __future__ import annotations

import inspect
from numbers import Integral, Real
from typing import Any


def check_number(name: str, value: object, low: float, high: float, expected: str) -> None:
    """Check that the value is a number from low to high.

    Raises:
        ValueError: If it is not.
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not low <= float(value) <= high:
        raise ValueError(f"{name}: expected {expected}, got {value!r}")


def check_whole_number(name: str, value: object, low: int, expected: str) -> None:
    """Check that the value is an integer of at least low.

    Raises:
        ValueError: If it is not.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < low:
        raise ValueError(f"{name}: expected {expected}, got {value!r}")


def changed_options(strategy: type, **options: Any) -> dict[str, Any]:
    """The options of a strategy that differ from their defaults.

    A study records them, so that it is not continued with a strategy that decides differently.
    """
    defaults = inspect.signature(strategy).parameters
    return {name: value for name, value in options.items() if value != defaults[name].default}
