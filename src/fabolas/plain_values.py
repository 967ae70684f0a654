"""Plain values of any object of the user: what JSON can hold, text that can be encoded, a single number, a loss."""

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np

LARGEST_LOSS = 1e100  # in size; the squares of such losses are finite

_Record = TypeVar("_Record")


class LossRangeError(ValueError):
    """A loss is finite, but too large to compute with."""


def to_json(value: Any) -> Any:
    """The value in the exact types of JSON; what JSON cannot represent becomes its ``repr``.

    Arrays and tensors of any library become numbers and lists.

    Subclasses become the plain type, because another process may not know them: for example an enumeration of the
    user's script.
    """
    value = _without_array(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        # Python refuses to convert integers of more than 4,300 digits to decimal text.
        return int.__int__(value) if value.bit_length() < 10_000 else hex(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, Mapping):
        return {
            encodable(key if isinstance(key, str) else str(key)): to_json(item) for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return safe_repr(value)


def _without_array(value: Any) -> Any:
    """Numbers and lists of an array of numpy, torch, jax, tensorflow, pandas or polars; other values as they are."""
    if isinstance(value, type):
        return value
    try:
        if callable(getattr(value, "tolist", None)):
            return value.tolist()
        return np.asarray(value).tolist() if hasattr(value, "__array__") else value
    except Exception:  # noqa: BLE001 - code of the user, which may raise anything
        return value


def safe_repr(value: object, width: int | None = None) -> str:
    """The ``repr`` of any object, even if that raises; with a width on one line of at most that many characters."""
    try:
        text = encodable(repr(value))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - code of the user, which may raise anything
        text = f"<{type(value).__name__}, whose repr raises {type(error).__name__}>"
    if width is None:
        return text
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 3] + "..."


def encodable(value: str) -> str:
    r"""The same text as a plain string that can be encoded: a lone surrogate becomes the text ``\udcff``."""
    return str.__str__(value).encode("utf-8", "backslashreplace").decode()


def copy_containers(value: Any) -> Any:
    """The value with its lists, dicts, sets and arrays copied, at any depth; other objects stay the same.

    Other objects are not copied because a choice may be found by its identity.
    """
    kind = type(value)
    if kind is dict:
        return {key: copy_containers(item) for key, item in value.items()}
    if kind is list or kind is tuple:
        return kind(map(copy_containers, value))
    if kind in (set, bytearray, np.ndarray):
        return value.copy()
    return value


def to_float(value: object, what: str) -> float:
    """A single real number as a plain float; errors call it ``what``.

    Raises:
        TypeError: If it is something else.
        ValueError: If it is too large for a float.
    """
    number = _single_number(value, what)
    try:
        return float(number)
    except OverflowError:
        raise ValueError(
            f"{what} must be a finite number, got {safe_repr(number, 60)}, too large for one"
        ) from None


def to_number(value: object, what: str) -> float | int:
    """A single real number as a plain int if it is an integer, else as a plain float; errors as for ``to_float``."""
    number = _single_number(value, what)
    return int(number) if isinstance(number, Integral) else to_float(number, what)


def _single_number(value: object, what: str) -> Real | Decimal:
    """A single real number of any library as a number of Python."""
    if np.ma.is_masked(value):  # its item would be the number under the mask
        raise TypeError(f"{what} must be a single number, got a masked value")
    # A 0-d array or tensor is a number too; its item is a Python scalar. Times are not: their item can be an int.
    is_time = getattr(getattr(value, "dtype", None), "kind", None) in ("m", "M")
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item") and not is_time:
        value = value.item()
    if isinstance(value, bool) or is_time or not isinstance(value, Real | Decimal):
        got = f"{safe_repr(value, 60)} of type {type(value).__name__}"
        raise TypeError(f"{what} must be a single number, got {got}")
    return value


def is_loss(number: float) -> bool:
    """Whether a number can be a loss: it is finite, and at most ``LARGEST_LOSS`` in size."""
    return abs(number) <= LARGEST_LOSS


def as_loss(value: object, what: str = "a loss") -> float:
    """A loss as a plain float; errors call it ``what``. Every loss of the user passes through here.

    Raises:
        TypeError: If it is not a single real number.
        LossRangeError: If it is finite, but too large to compute with.
        ValueError: If it is NaN or infinite.
    """
    loss = to_float(value, what)
    if is_loss(loss):
        return loss
    if not math.isfinite(loss):
        raise ValueError(
            f"{what} must be a finite number, got {loss}; let the evaluation fail: raise an exception in the "
            "objective, or record it with fail(...)"
        )
    raise LossRangeError(
        f"{what} must be between -{LARGEST_LOSS:g} and {LARGEST_LOSS:g}, got {loss:g}; scale it, or record the "
        "evaluation as failed"
    )


class _ReadAsCopy:
    """A field of a record that holds a dict: reading it returns a copy, so that nobody can change the record."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, record: object | None, owner: type | None = None) -> Any:
        if record is None:
            raise AttributeError(self._name)
        return copy_containers(record.__dict__[self._name])

    def __set__(self, record: object, value: Any) -> None:
        record.__dict__[self._name] = copy_containers(dict(value) if isinstance(value, Mapping) else value)


def read_as_copies(*names: str) -> Callable[[type[_Record]], type[_Record]]:
    """A decorator of a frozen dataclass: these fields hold dicts, and reading one returns a copy."""

    def protect(record_class: type[_Record]) -> type[_Record]:
        for name in names:
            setattr(record_class, name, _ReadAsCopy(name))
        return record_class

    return protect
