"""How long a run may last: seconds of wall clock, a number of trials, or both."""

import math
import re
from dataclasses import asdict, dataclass
from numbers import Integral, Real
from typing import Any

_NUMBER = r"(\d+(?:\.\d*)?|\.\d+)"
_DURATION = re.compile("".join(rf"(?:{_NUMBER}\s*{unit})?\s*" for unit in "dhms"), re.IGNORECASE)
_SECONDS = (86_400.0, 3_600.0, 60.0, 1.0)
_REMEDY = "give seconds as a number, or text such as '90s', '30m', '2h' or '1h30m'"


@dataclass(frozen=True)
class Budget:
    """The limits of a run; it is used up as soon as one of them is reached.

    Attributes:
        seconds: Wall-clock time, thinking included; None for no such limit.
        trials: Number of trials, failed ones included; None for no such limit.
    """

    seconds: float | None = None
    trials: int | None = None

    @classmethod
    def of(cls, time_budget: float | str | None, max_trials: int | None) -> "Budget":
        """The budget in the user's words.

        Raises:
            ValueError: If neither limit is given, or one of them is not positive or cannot be read.
            TypeError: If a limit is of another type.
        """
        if time_budget is None and max_trials is None:
            raise ValueError(
                "a run needs an end, got neither; give time_budget='30m' or max_trials=100, or both"
            )
        if max_trials is not None:
            max_trials = _whole(max_trials)
        seconds = None if time_budget is None else seconds_of(time_budget)
        return cls(seconds, max_trials)

    def used_up(self, seconds: float, trials: int) -> bool:
        """Whether a run that took this long and had that many trials must end."""
        out_of_time = self.seconds is not None and seconds >= self.seconds
        return out_of_time or (self.trials is not None and trials >= self.trials)


@dataclass(frozen=True)
class Allowance:
    """A run's budget and from where it counts, as it is kept with the study for those who look at it.

    Attributes:
        budget: What the run may use.
        began: When it began, in seconds since the epoch.
        elapsed: Seconds that the study had used by then.
        uncounted_seconds: Seconds of the study that the budget leaves out of account.
        uncounted_trials: Trials of the study that it leaves out of account.
    """

    budget: Budget
    began: float
    elapsed: float = 0.0
    uncounted_seconds: float = 0.0
    uncounted_trials: int = 0

    def used(self, elapsed: float, trials: int, now: float | None = None) -> tuple[float, int]:
        """Seconds and trials that are used of the budget.

        Args:
            elapsed: Seconds that the study has used by its record.
            trials: Trials that have ended.
            now: Seconds since the epoch while the run goes on; None if it has ended.
        """
        by_clock = 0.0 if now is None else self.elapsed + now - self.began
        return max(elapsed, by_clock) - self.uncounted_seconds, trials - self.uncounted_trials

    def describe(self) -> dict[str, Any]:
        """The same in the types of JSON."""
        return asdict(self)

    @classmethod
    def of(cls, description: dict[str, Any]) -> "Allowance":
        """What ``describe`` has described."""
        return cls(**{**description, "budget": Budget(**description["budget"])})


def seconds_of(duration: float | str, what: str = "the time budget") -> float:
    """Seconds of a duration such as 90, "90s", "30m", "1h30m" or "1.5h"; ``what`` it is, for the errors.

    Raises:
        ValueError: If the text cannot be read or the duration is not positive and finite.
        TypeError: If it is neither a number nor text.
    """
    if isinstance(duration, str):
        match = _DURATION.fullmatch(duration.strip())
        if match is None or not any(match.groups()):
            raise ValueError(f"{what} must be a duration, got {duration!r}; {_REMEDY}")
        seconds = sum(float(n) * unit for n, unit in zip(match.groups(), _SECONDS, strict=True) if n)
    elif isinstance(duration, Real) and not isinstance(duration, bool):
        seconds = float(duration)
    else:
        raise TypeError(f"{what} must be a number or text, got {duration!r}; {_REMEDY}")
    if not (math.isfinite(seconds) and seconds > 0):
        raise ValueError(f"{what} must be more than 0 seconds and finite, got {duration!r}; {_REMEDY}")
    return seconds


def _whole(max_trials: object) -> int:
    if isinstance(max_trials, bool) or not isinstance(max_trials, Integral):
        raise TypeError(f"max_trials must be a whole number, got {max_trials!r}; leave it out for no limit")
    if max_trials < 1:
        raise ValueError(f"max_trials must be at least 1, got {max_trials}; leave it out for no limit")
    return int(max_trials)
