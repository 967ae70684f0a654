"""Trials in this process, one after another: a debugger stops in them, and nothing is pickled."""

import time
from collections import deque
from collections.abc import Callable
from typing import Any

from fabolas.execution.base import Event, Job, Objective, Started
from fabolas.execution.task import evaluate


class Inline:
    """Runs a job when somebody waits for it.

    Args:
        objective: Called as ``objective(config, size=...)``.
        data: Handed to the objective as ``data=``; None for none.
        clock: Seconds from any origin.
    """

    capacity = 1
    ahead = False

    def __init__(
        self, objective: Objective, data: Any = None, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._objective, self._data, self._clock = objective, data, clock
        self._jobs: deque[Job] = deque()
        self._begun: int | None = None

    def submit(self, job: Job) -> None:
        self._jobs.append(job)

    def next(self, timeout: float | None = None) -> Event | None:
        if not self._jobs:
            return None
        if self._begun != self._jobs[0].id:
            self._begun = self._jobs[0].id
            return Started(self._begun)
        return evaluate(self._objective, self._data, self._jobs.popleft(), self._clock)

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Nothing: all that happens happens in ``next``."""

    def withdraw(self, number: int) -> bool:
        found = [job for job in self._jobs if job.id == number != self._begun]
        for job in found:
            self._jobs.remove(job)
        return bool(found)

    def wake(self) -> None:
        """Nothing: whoever waits is running the objective."""

    def close(self) -> None:
        self._jobs.clear()
