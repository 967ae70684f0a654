"""Durations as text: in two units in sentences and hover texts, in one unit with round numbers beside an axis."""

from __future__ import annotations

from collections.abc import Sequence

_NO_BREAK = "\u00a0"  # a space at which no line ends
_UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
_DAYS_FROM = 2 * 86400.0  # seconds


def duration(seconds: float) -> str:
    """A duration in its two largest units, without a break: 450 ms, 12.3 s, 1 min 05 s, 3 h 52 min, 2 d 07 h.

    `table.js` writes the same in the table of trials, with all three digits even if the last ones are 0.
    """
    if seconds < 59.95:
        text = _of_seconds(seconds)
    elif seconds < 3599.5:
        text = _two_units(round(seconds), 60, "min", "s")
    elif seconds < _DAYS_FROM:
        text = _two_units(round(seconds / 60), 60, "h", "min")
    else:
        text = _two_units(round(seconds / 3600), 24, "d", "h")
    return text.replace(" ", _NO_BREAK)


def _of_seconds(seconds: float) -> str:
    """A duration below a minute, with three digits."""
    for unit, name in _UNITS[3:]:
        if abs(seconds) >= 0.9995 * unit:
            return f"{float(f'{seconds / unit:.3g}'):g} {name}"
    return "0 s" if seconds == 0 else f"{seconds:.1g} s"


def _two_units(total: int, per_unit: int, unit: str, small: str) -> str:
    whole, rest = divmod(total, per_unit)
    return f"{whole:,} {unit} {rest:02d} {small}" if rest else f"{whole:,} {unit}"


def tick_durations(values: Sequence[float]) -> list[str]:
    """Labels of the ticks of a linear axis, all in one unit: 0 min, 0.5 min, 1 min, 1.5 min.

    It is the largest unit of which every tick is a multiple of a half; below a minute, the usual unit of the last tick.
    """
    last = max(values)
    fitting = (
        (unit, name)
        for unit, name in _UNITS
        if unit <= last and (unit <= 1.0 or all(_is_whole(2 * value / unit) for value in values))
    )
    unit, name = next(fitting, _UNITS[-1])
    return [f"{float(f'{value / unit:.12g}'):,.15g} {name}" for value in values]


def decade_duration(seconds: float) -> str:
    """The label of a tick of a logarithmic axis, in the largest unit of which it is a multiple: 30 s, 10 min, 50 h."""
    for unit, name in _UNITS:
        count = seconds / unit
        if count > 0.5 and _is_whole(count):
            return f"{round(count):,} {name}"
    return _of_seconds(seconds)


def _is_whole(number: float) -> bool:
    return abs(number - round(number)) <= 1e-9 * abs(number)
