"""Which place suits what the user asked for, and which wishes cannot be fulfilled there."""

import operator
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Literal

from fabolas.budget import seconds_of
from fabolas.execution.base import Objective, Place
from fabolas.execution.futures import FutureSlot, Shared, capacity
from fabolas.execution.inline import Inline
from fabolas.execution.memory import bytes_of, check_resident
from fabolas.execution.pool import Pool
from fabolas.execution.processes import processes

# "auto": so many times as long as expected, since a good trial that is killed teaches the wrong thing; never less
# than so many seconds; where nothing predicts the cost, as in the initial design, so many times the longest yet.
_PATIENCE, _FLOOR, _BLIND = 10.0, 30.0, 100.0


@dataclass(frozen=True)
class Limits:
    """What one trial may use.

    Attributes:
        seconds: Its time; "auto" follows the predictions; None for no limit.
        memory: Bytes it may hold; None for no limit.
    """

    seconds: float | Literal["auto"] | None = None
    memory: int | None = None

    @classmethod
    def of(cls, trial_timeout: float | str | None, trial_memory: float | str | None) -> "Limits":
        """The limits in the user's words.

        Raises:
            ValueError: If one cannot be read, or cannot be watched on this system.
            TypeError: If one is of another type.
        """
        seconds: float | Literal["auto"] | None = None
        if trial_timeout == "auto":
            seconds = "auto"
        elif trial_timeout is not None:
            seconds = seconds_of(trial_timeout, "trial_timeout")
        if trial_memory is None:
            return cls(seconds)
        check_resident()
        return cls(seconds, bytes_of(trial_memory))

    def __bool__(self) -> bool:
        return self.seconds is not None or self.memory is not None

    def timeout(self, predicted: float | None, longest: float | None) -> float | None:
        """Seconds that a trial may take; None for no limit.

        Args:
            predicted: Seconds it is expected to take; None where nothing predicts it.
            longest: Seconds that the longest trial took that was completed; None before one.
        """
        if self.seconds != "auto":
            return self.seconds
        if predicted is not None:
            return max(_PATIENCE * predicted, _FLOOR)
        return None if longest is None else max(_BLIND * longest, _FLOOR)


NO_LIMITS = Limits()


def place_for(
    objective: Objective,
    data: Any = None,
    workers: int | None = None,
    executor: Executor | None = None,
    limits: Limits = NO_LIMITS,
    clock: Callable[[], float] = time.perf_counter,
) -> Place:
    """Inline for one worker without limits; processes for several, or for limits; else the executor.

    Raises:
        ValueError: If the wishes contradict each other, or cannot be fulfilled here.
        TypeError: If an argument is of another type, or the objective cannot be pickled where it must.
    """
    number = None if workers is None else _whole(workers)
    if executor is not None:
        if not callable(getattr(executor, "submit", None)):
            raise TypeError(f"executor must be a concurrent.futures.Executor, got {executor!r}")
        if limits:
            raise ValueError(
                "trial_timeout and trial_memory need processes of ours, since no Executor can kill what it runs; "
                "leave them out, or leave out executor= and give workers=n"
            )
        shared = Shared(objective, data)
        return Pool(
            [FutureSlot(executor, shared) for _ in range(number or capacity(executor))], shared.forget
        )
    if (number or 1) == 1 and not limits:
        return Inline(objective, data, clock)
    return processes(objective, data, number or 1, limits.memory)


def _whole(workers: object) -> int:
    try:
        number = operator.index(workers)  # type: ignore[arg-type]
    except TypeError:
        number = 0
    if isinstance(workers, bool) or number < 1:
        raise ValueError(f"workers must be a whole number >= 1, got {workers!r}; leave it out for one")
    return number
