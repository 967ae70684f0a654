"""How often a page may be updated, so that an open page does not slow down a run on the same machine."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Seconds of rest for each processor second of work, while a processor is idle and while all of them are busy: the work
# for updates is then less than 4 % and less than 1 % of one processor.
IDLE_MACHINE, BUSY_MACHINE = 25.0, 100.0
LONGEST_REST = 60.0  # seconds


def rest_per_work() -> float:
    """Return how many seconds to rest for each second of work, as busy as the machine is now."""
    try:
        load = os.getloadavg()[0]
    except (AttributeError, OSError):  # Windows
        return BUSY_MACHINE
    return IDLE_MACHINE if load < (os.cpu_count() or 1) - 0.5 else BUSY_MACHINE


class UpdateRest:
    """Says when the work for the last update has been followed by enough rest. It can be used by threads.

    Args:
        rest_per_work: Returns the seconds of rest for each processor second of work.
        clock: Returns seconds.
    """

    def __init__(
        self,
        rest_per_work: Callable[[], float] = rest_per_work,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rest_per_work, self._clock = rest_per_work, clock
        self._rest_until = 0.0
        self._lock = threading.Lock()
        self._within = threading.local()

    def rested(self) -> bool:
        """Return whether there may be more work now."""
        return self._clock() >= self._rest_until

    @contextmanager
    def work(self, *, free: bool = False) -> Iterator[None]:
        """Count the processor time of the body, once if bodies are nested.

        Args:
            free: Whether the body is what opens a page, which is not followed by a rest.
        """
        if getattr(self._within, "work", False):
            yield
            return
        self._within.work = True
        started = time.thread_time()
        try:
            yield
        finally:
            self._within.work = False
            if not free:
                self.add(time.thread_time() - started)

    def add(self, seconds: float) -> None:
        """Add the rest that follows this many processor seconds of work."""
        with self._lock:
            now = self._clock()
            end = max(self._rest_until, now) + seconds * self._rest_per_work()
            self._rest_until = min(end, now + LONGEST_REST)
