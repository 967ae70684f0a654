"""Options of strategies checked at birth: a misspelt one is a sentence, not another method."""

from __future__ import annotations

from numbers import Integral, Real


def one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """The value must be one of the allowed ones.

    Raises:
        ValueError: It is not.
    """
    if value not in allowed:
        *others, last = [repr(word) for word in allowed]
        raise ValueError(f"{name}: expected {', '.join(others)} or {last}, got {value!r}")


def number(name: str, value: object, low: float, high: float, what: str) -> None:
    """The value must be a number from low to high, which `what` describes.

    Raises:
        ValueError: It is not.
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not low <= float(value) <= high:
        raise ValueError(f"{name}: expected {what}, got {value!r}")


def whole_number(name: str, value: object, low: int, what: str) -> None:
    """The value must be an integer, at least low, which `what` describes.

    Raises:
        ValueError: It is not.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < low:
        raise ValueError(f"{name}: expected {what}, got {value!r}")
