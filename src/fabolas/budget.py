"""The budget of a run: durations, the timer, the limits, and what counts towards them.

``RunBudget.usage`` decides what counts. The recorded time itself is summed in ``Ledger._with_times``.
"""

import math
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from numbers import Integral, Real
from typing import Any

from fabolas.trials import History, Suggestion

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
            max_trials = _whole_number(max_trials)
        seconds = None if time_budget is None else seconds_of(time_budget)
        return cls(seconds, max_trials)

    def used_up(self, seconds: float, trials: int) -> bool:
        """Whether a run that has used this many seconds and trials must end."""
        out_of_time = self.seconds is not None and seconds >= self.seconds
        return out_of_time or (self.trials is not None and trials >= self.trials)


@dataclass(frozen=True)
class Usage:
    """What a run has used of its budget at one moment.

    Attributes:
        seconds: Seconds used of the budget.
        trials: Trials used of the budget.
        study_seconds: Seconds that the study has used, those that do not count towards the budget included.
    """

    seconds: float
    trials: int
    study_seconds: float


@dataclass(frozen=True)
class RunBudget:
    """A run's budget, and the rule for what counts towards it.

    The storage keeps it, so that ``fabolas status`` can show how far a run is.

    Attributes:
        budget: The limits of the run.
        started: When the run started, in seconds since the epoch.
        elapsed_before: Seconds that the study had used before the run.
        uncounted_seconds: Seconds of the study that do not count towards the budget.
        uncounted_trials: Trials of the study that do not count towards the budget.
        count_abandoned: Whether abandoned trials count towards the number of trials.
        verify: Whether the answer of the run should be a configuration that was evaluated at the target.
        trials_before: Number of trials that had ended before the run, whatever their origin.
        workers: If trials run at the same time, how many; None if they run one after another.
    """

    budget: Budget
    started: float
    elapsed_before: float = 0.0
    uncounted_seconds: float = 0.0
    uncounted_trials: int = 0
    count_abandoned: bool = True
    verify: bool = False
    trials_before: int = 0
    workers: int | None = None

    @classmethod
    def start(
        cls,
        budget: Budget,
        started: float,
        history: History,
        elapsed: float,
        *,
        fresh: bool,
        count_abandoned: bool,
        verify: bool,
        workers: int | None = None,
    ) -> "RunBudget":
        """The budget of a run that starts now.

        Args:
            budget: The limits of the run.
            started: Now, in seconds since the epoch.
            history: The trials that have ended before.
            elapsed: Seconds that the study has used before.
            fresh: Whether what the study has used before does not count.
            count_abandoned: Whether abandoned trials count towards the number of trials.
            verify: As the attribute.
            workers: As the attribute.
        """
        uncounted = (elapsed, _n_counted(history, count_abandoned)) if fresh else (0.0, 0)
        return cls(budget, started, elapsed, *uncounted, count_abandoned, verify, len(history), workers)

    @property
    def seconds_before(self) -> float:
        """Seconds used of the budget when the run started."""
        return self.elapsed_before - self.uncounted_seconds

    def usage(
        self,
        history: History,
        pending: Sequence[Suggestion] = (),
        *,
        run_seconds: float | None = None,
    ) -> Usage:
        """What a study has used of the budget.

        Time counts by the clock, or by the record if that is more: an objective may state costs that take no time.
        If trials run one after another, the recorded time is the sum of costs and overhead. If they run at the same
        time, it is at least the sum of the costs / workers. Trials that were measured elsewhere do not count.

        Args:
            history: The ended trials of the study.
            pending: Its pending suggestions; their overhead counts if trials run one after another, else give none.
            run_seconds: Seconds since the run started; None if it has ended, or if the record alone should count.
        """
        recorded = history.elapsed + sum(suggestion.overhead for suggestion in pending)
        if self.workers is not None:
            of_run = slice(self.trials_before, None)
            cost = float(history.costs[of_run][~history.added[of_run]].sum())
            recorded = max(history.elapsed, self.elapsed_before + cost / self.workers)
        by_clock = 0.0 if run_seconds is None else self.elapsed_before + run_seconds
        seconds = max(recorded, by_clock)
        n_trials = _n_counted(history, self.count_abandoned) - self.uncounted_trials
        return Usage(seconds - self.uncounted_seconds, n_trials, seconds)

    def describe(self) -> dict[str, Any]:
        """All fields as values that JSON can hold."""
        return asdict(self)

    @classmethod
    def of(cls, description: dict[str, Any]) -> "RunBudget":
        """The inverse of ``describe``."""
        return cls(**{**description, "budget": Budget(**description["budget"])})


def _n_counted(history: History, count_abandoned: bool) -> int:
    """Number of trials without those that were measured elsewhere, and without abandoned ones unless they count."""
    counted = ~history.added if count_abandoned else ~history.added & ~history.abandoned
    return int(counted.sum())


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


def _whole_number(max_trials: object) -> int:
    if isinstance(max_trials, bool) or not isinstance(max_trials, Integral):
        raise TypeError(f"max_trials must be a whole number, got {max_trials!r}; leave it out for no limit")
    if max_trials < 1:
        raise ValueError(f"max_trials must be at least 1, got {max_trials}; leave it out for no limit")
    return int(max_trials)
