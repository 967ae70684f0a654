"""Several trials at once: a thread for each slot, which takes the next job as soon as its last one has ended.

The threads only wait: for a process, or for a future. So a slot begins with the next job at once, also while the
main thread thinks about the one after it.
"""

import queue
import threading
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from fabolas.execution.base import Ended, Event, Job, Started


class Slot(Protocol):
    """Runs one job at a time."""

    def run(self, job: Job, started: Callable[[], None]) -> Ended:
        """Run the job and say what came of it; call ``started`` when it begins."""
        ...

    def stop(self) -> None:
        """End the job that is running, if that can be done, and run no other; called from another thread."""
        ...

    def close(self) -> None:
        """Give up what the slot holds; called after the last job, from its own thread."""
        ...


class Pool:
    """Runs a job in every slot, and keeps the others waiting in their order.

    Args:
        slots: Where jobs run, one in each.
        release: Called when the pool is closed.
    """

    def __init__(self, slots: Sequence[Slot], release: Callable[[], None] = lambda: None) -> None:
        self.capacity, self.ahead = len(slots), True
        self._slots = slots
        self._release = release
        self._waiting: deque[Job] = deque()
        self._closed = False
        self._changed = threading.Condition()
        self._events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._listener: Callable[[Event], None] = lambda event: None
        self._threads = [
            threading.Thread(target=self._serve, args=(slot,), name=f"fabolas-slot-{i}", daemon=True)
            for i, slot in enumerate(slots)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, job: Job) -> None:
        with self._changed:
            if self._closed:
                raise RuntimeError("this pool is closed and takes no more jobs")
            self._waiting.append(job)
            self._changed.notify()

    def next(self, timeout: float | None = None) -> Event | None:
        try:
            event = self._events.get(timeout=timeout) if timeout != 0.0 else self._events.get_nowait()
            while event is None and timeout == 0.0:  # nobody waits who could be woken
                event = self._events.get_nowait()
        except queue.Empty:
            return None
        return event

    def listen(self, listener: Callable[[Event], None]) -> None:
        self._listener = listener

    def withdraw(self, number: int) -> bool:
        with self._changed:
            found = [job for job in self._waiting if job.id == number]
            for job in found:
                self._waiting.remove(job)
        return bool(found)

    def wake(self) -> None:
        self._events.put(None)  # a SimpleQueue may be put to from a signal handler

    def close(self) -> None:
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()
        for slot in self._slots:
            slot.stop()
        for thread in self._threads:
            thread.join()
        self._release()

    def _serve(self, slot: Slot) -> None:
        while (job := self._take()) is not None:
            try:
                self._happened(slot.run(job, partial(self._begin, job)))
            except BaseException:  # noqa: BLE001 - whoever waits would wait for ever
                reason = f"the slot it ran in broke down:\n{traceback.format_exc()}"
                self._events.put(Ended(job.id, "lost", error=reason, fatal=True))
        slot.close()

    def _begin(self, job: Job) -> None:
        self._happened(Started(job.id))

    def _happened(self, event: Event) -> None:
        self._listener(event)
        self._events.put(event)

    def _take(self) -> Job | None:
        with self._changed:
            while not self._waiting and not self._closed:
                self._changed.wait()
            return None if self._closed else self._waiting.popleft()
