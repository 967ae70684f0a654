"""Ticks that people can read: decades and their halves on a logarithmic axis, and units of time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from fabolas._types import Array
from fabolas.plots.drawing import FigureAxis
from fabolas.plots.durations import decade_duration, tick_durations
from fabolas.plus_minus import MAX_DIGITS

Ticks = tuple[tuple[float, str], ...]

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# Steps of a linear axis of time, in seconds.
_TIME_STEPS = (
    *(m * 10.0**e for e in range(-6, 1) for m in (1, 2, 5)),
    *(10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 14400.0, 21600.0, 43200.0),
    *(86400.0 * m for m in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)),
)
_TIME_DECADES = (
    *(10.0**e for e in range(-6, 2)),
    *(60.0, 600.0, 3600.0, 36000.0, 86400.0, 864000.0, 8640000.0, 86400000.0),
)


def number(value: float, digits: int | None = None) -> str:
    """A number as short text: 1,250, 0.125, 3.2×10⁻⁵.

    Args:
        value: The number.
        digits: How many digits it may need; None for four, and three before a power of ten.
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if isinstance(value, int) or (value == round(value) and abs(value) < 1e6):
        return f"{int(value):,}".replace("-", "−")
    if 1e-3 <= abs(value) < 1e6:
        rounded = float(f"{value:.{max(digits or 4, len(str(int(abs(value)))))}g}")
        text = f"{int(rounded):,}" if rounded == round(rounded) else f"{rounded:,}"
        return text.replace("-", "−")
    mantissa, exponent = f"{value:.{(digits or 3) - 1}e}".split("e")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    power = power_of_ten(int(exponent))
    return power if mantissa == "1" else f"{mantissa.replace('-', '−')}×{power}"


def stated(value: float, deviation: float) -> str:
    """A predicted number with at least three digits, and with those that its standard deviation justifies.

    A number without a deviation is a measured one and has four digits.
    """
    if not 0 < deviation < math.inf or value == 0:
        return number(value, 4)
    justified = math.floor(math.log10(abs(value))) - math.floor(math.log10(deviation)) + 1
    return number(value, min(max(justified, 3), MAX_DIGITS))


def numbers(values: Sequence[float]) -> list[str]:
    """Ascending numbers as short texts, with the digits that the steps between them need.

    Those with equal steps have equal decimals, unless they need powers of ten.
    """
    steps = [math.inf, *(b - a for a, b in pairwise(values)), math.inf]
    largest = max(map(abs, values), default=0.0)
    if _are_equal(steps[1:-1]) and 1e-3 <= largest < 1e6:
        decimals = next((n for n in range(14) if _resolves(values, [round(v, n) for v in values], steps)), 14)
        return [f"{value:,.{decimals}f}".replace("-", "−") for value in values]
    for digits in range(2, 15):
        rounded = [float(f"{value:.{digits}g}") for value in values]
        if _resolves(values, rounded, steps):
            break
    return [number(value, max(digits, 3)) for value in rounded]


def _are_equal(steps: Sequence[float]) -> bool:
    return bool(steps) and max(steps) - min(steps) <= 1e-3 * max(steps)


def _resolves(values: Sequence[float], rounded: Sequence[float], steps: Sequence[float]) -> bool:
    """Whether every error of rounding is small against the steps before and after the value."""
    errors = [abs(a - b) for a, b in zip(values, rounded, strict=True)]
    return all(error <= 0.1 * min(around) for error, around in zip(errors, pairwise(steps), strict=True))


def power_of_ten(exponent: int) -> str:
    """A power of ten as text: 10⁻⁵."""
    return f"10{str(exponent).translate(_SUPERSCRIPT)}"


def percent(share: float) -> str:
    """A share as text: 95 %, or < 1 % if it is too small for a whole number."""
    return "<\u00a01\u00a0%" if 0 < share < 0.005 else f"{100.0 * share:.0f}\u00a0%"


def percent_axis(title: str, high: float) -> FigureAxis:
    """A linear axis of shares from 0 to high."""
    return FigureAxis(
        title, range=(0.0, high), ticks=tuple((v, percent(v)) for v in linear_values(0.0, min(high, 1.0)))
    )


def log_axis(title: str, low: float, high: float) -> FigureAxis:
    """A logarithmic axis from low to high; ticks at powers of ten, and at multiples of them if those are few."""
    return FigureAxis(title, log=True, range=(low, high), ticks=log_ticks(low, high))


def log_ticks(low: float, high: float, at_least: int = 3) -> Ticks:
    """Ticks of a logarithmic axis from low to high."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    every = max(1, (last - first) // 8 + 1)
    for factors in ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)):
        powers = (
            range(first - first % every, last + 1, every) if len(factors) == 1 else range(first, last + 1)
        )
        values = [m * 10.0**e for e in powers for m in factors]
        inside = [v for v in values if low * (1 - 1e-9) <= v <= high * (1 + 1e-9)]
        if len(inside) >= at_least:
            return tuple((v, number(float(f"{v:.6g}"))) for v in inside)
    values = linear_values(low, high)
    return tuple(zip(values, numbers(values), strict=True))


def linear_values(low: float, high: float, about: int = 5, *, whole: bool = False) -> list[float]:
    """Round numbers from low to high, also whole ones."""
    if not high > low:
        return [low]
    raw = (high - low) / about
    magnitude = 10.0 ** math.floor(math.log10(raw))
    step = next(m * magnitude for m in (1.0, 2.0, 2.5, 5.0, 10.0) if m * magnitude >= raw * 0.999)
    if whole:
        step = max(1.0, 3.0 if step == 2.5 else step)
    start = math.ceil(low / step - 1e-9)
    stop = math.floor(high / step + 1e-9)
    return [float(f"{i * step:.15g}") for i in range(start, stop + 1)]


def linear_axis(title: str, low: float, high: float) -> FigureAxis:
    """A linear axis from low to high with round ticks."""
    values = linear_values(low, high)
    return FigureAxis(title, range=(low, high), ticks=tuple(zip(values, numbers(values), strict=True)))


def time_axis(title: str, low: float, high: float, *, log: bool, few: bool = False) -> FigureAxis:
    """An axis of seconds with ticks at round durations; `few` for a small panel.

    The labels of a linear axis have one unit. On a logarithmic one, each decade has its own.
    """
    if not log:
        most = 4 if few else 7
        step = next((s for s in _TIME_STEPS if (high - low) / s <= most), _TIME_STEPS[-1])
        start, stop = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        stride = max(1, (stop - start) // most)
        values = [i * step for i in range(start, stop + 1, stride)]
        return FigureAxis(
            title, range=(low, high), ticks=tuple(zip(values, tick_durations(values), strict=True))
        )
    values = [v for v in _TIME_DECADES if low <= v <= high]
    for factors in ((1, 3), (1, 2, 5)):
        if len(values) < (2 if few else 3):
            values = sorted({m * v for v in _TIME_DECADES for m in factors if low <= m * v <= high})
            values = [v for v in values if v not in (30.0, 50.0)] if max(values, default=0) > 60 else values
    if few and len(values) > 4:
        values = values[:: -(-len(values) // 4)]
    texts = [decade_duration(value) for value in values]
    if len(values) < 2:
        values = linear_values(low, high)
        texts = tick_durations(values)
    return FigureAxis(title, log=True, range=(low, high), ticks=tuple(zip(values, texts, strict=True)))


def padded(values: Array, *, log: bool, share: float = 0.06) -> tuple[float, float]:
    """The range of the values with a margin. If all values are equal, the range still has a width."""
    finite = values[np.isfinite(values)]
    if log:
        finite = np.log(finite[finite > 0])
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    margin = share * (high - low)
    if not high - low > 1e-12 * max(abs(low), abs(high)):
        margin = 0.1 if log else 0.1 * max(abs(low), abs(high), 1e-6)
    ends = np.array([low - margin, high + margin])
    low, high = (float(end) for end in (np.exp(ends) if log else ends))
    return low, high


def suits_log(values: Array, ratio: float = 4.0) -> bool:
    """Whether the values are all positive and differ by more than this factor."""
    finite = values[np.isfinite(values)]
    return bool(len(finite) and finite.min() > 0 and finite.max() > ratio * finite.min())


def value_axis(title: str, values: Array, *, log: bool, share: float = 0.06) -> FigureAxis:
    """An axis for the values, with a margin around them."""
    low, high = padded(values, log=log, share=share)
    return log_axis(title, low, high) if log else linear_axis(title, low, high)


def row_axis(
    title: str, names: Sequence[str], narrow_names: Sequence[str] | None = None
) -> tuple[Array, FigureAxis]:
    """Places (n,) of rows, the first one on top, and the vertical axis that names them, also on a phone."""
    n = len(names)
    places = np.arange(n - 1, -1, -1, dtype=float)
    ticks = tuple(zip(places.tolist(), names, strict=True))
    narrow = None if narrow_names is None else tuple(zip(places.tolist(), narrow_names, strict=True))
    return places, FigureAxis(title, range=(-0.6, n - 0.4), ticks=ticks, grid=False, narrow_ticks=narrow)
