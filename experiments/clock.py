"""The clock of simulated runs: the process's own time for overhead, simulated seconds for trials."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Clock:
    """Process time plus simulated seconds. Process time, unlike wall time, does not see other work on the machine.

    Args:
        measured: Whether computation counts. Otherwise only simulated seconds pass, so that runs can be repeated.
    """

    def __init__(self, measured: bool = True) -> None:
        self._measured = measured
        self._simulated = 0.0
        self._left_out = 0.0  # seconds that passed while it was stopped
        self._stopped: float | None = None  # process time when it was stopped

    def __call__(self) -> float:
        """Seconds; only differences mean anything."""
        if not self._measured:
            return self._simulated
        now = time.process_time() if self._stopped is None else self._stopped
        return self._simulated + now - self._left_out

    def advance(self, seconds: float) -> None:
        """Let so many simulated seconds pass; none if the number is negative."""
        self._simulated += max(seconds, 0.0)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Computation in this block does not count, and the clock stands still."""
        self._stopped = start = time.process_time()
        try:
            yield
        finally:
            self._left_out += time.process_time() - start
            self._stopped = None
