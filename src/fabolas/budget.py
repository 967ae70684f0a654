"""The limits of a run, durations, and the timer that measures them."""

import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from numbers import Integral, Real

Duration = float | str | timedelta
"""Seconds, text such as "90s", "30 min" or "1h30m", or a timedelta."""

_NUMBER = r"(\d+(?:\.\d*)?|\.\d+)"
_UNITS = {"d|days?": 86_400.0, "h|hrs?|hours?": 3_600.0, "m|mins?|minutes?": 60.0, "s|secs?|seconds?": 1.0}
_DURATION = re.compile("".join(rf"(?:{_NUMBER}\s*(?:{unit}))?[\s,]*" for unit in _UNITS), re.IGNORECASE)
_REMEDY = "give seconds as a number, a timedelta, or text such as '90s', '30m', '5 min', '2h' or '1h30m'"


Clock = Callable[[], float]
"""Returns seconds from any origin; tests and simulations pass their own."""


class Timer:
    """Seconds since it was made, or since ``restart``.

    Attributes:
        clock: What it measures with.
        started: When it was made or restarted, in seconds since the epoch.
    """

    def __init__(self, clock: Clock = time.perf_counter) -> None:
        self.clock = clock
        self.restart()

    def restart(self) -> None:
        """Count from now."""
        self.started = time.time()
        self._start = self.clock()

    def __call__(self) -> float:
        return self.clock() - self._start


@dataclass(frozen=True)
class Budget:
    """The limits of a run; the budget is used up as soon as one of them is reached.

    Attributes:
        seconds: Wall-clock time or recorded time, whichever is more, overhead included; None for no such limit.
        trials: Number of trials, failed ones included; None for no such limit.
    """

    seconds: float | None = None
    trials: int | None = None

    @classmethod
    def of(cls, time_budget: Duration | None, max_trials: int | None) -> "Budget":
        """The budget from the user's arguments.

        Raises:
            ValueError: If neither limit is given, or one of them is not positive or cannot be read.
            TypeError: If a limit is of another type.
        """
        if time_budget is None and max_trials is None:
            raise ValueError(
                "a run needs a limit, and neither was given; give time_budget='30m' or max_trials=100, or both"
            )
        if max_trials is not None:
            max_trials = _whole(max_trials)
        seconds = None if time_budget is None else seconds_of(time_budget)
        return cls(seconds, max_trials)

    def used_up(self, seconds: float, trials: int) -> bool:
        """Whether a run that has used this many seconds and trials must end."""
        out_of_time = self.seconds is not None and seconds >= self.seconds
        return out_of_time or (self.trials is not None and trials >= self.trials)


def seconds_of(duration: Duration, what: str = "the time budget") -> float:
    """Seconds of a duration such as 90, "90s", "30m", "1h30m", "5 min" or a timedelta; errors call it ``what``.

    Raises:
        ValueError: If the text cannot be read or the duration is not positive and finite.
        TypeError: If it has another type.
    """
    if isinstance(duration, str):
        match = _DURATION.fullmatch(duration.strip())
        if match is None or not any(match.groups()):
            raise ValueError(f"{what} must be a duration, got {duration!r}; {_REMEDY}")
        seconds = sum(float(n) * unit for n, unit in zip(match.groups(), _UNITS.values(), strict=True) if n)
    elif isinstance(duration, timedelta):
        seconds = duration.total_seconds()
    elif isinstance(duration, Real) and not isinstance(duration, bool):
        seconds = float(duration)
    else:
        raise TypeError(f"{what} must be a number, a timedelta or text, got {duration!r}; {_REMEDY}")
    if not (math.isfinite(seconds) and seconds > 0):
        raise ValueError(f"{what} must be more than 0 seconds and finite, got {duration!r}; {_REMEDY}")
    return seconds


def _whole(max_trials: object) -> int:
    if isinstance(max_trials, bool) or not isinstance(max_trials, Integral):
        raise TypeError(f"max_trials must be a whole number, got {max_trials!r}; leave it out for no limit")
    if max_trials < 1:
        raise ValueError(f"max_trials must be at least 1, got {max_trials}; leave it out for no limit")
    return int(max_trials)
