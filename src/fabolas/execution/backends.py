"""The two backends: ``Inline`` runs trials in this process, ``Pool`` in several workers at the same time.

Each worker of a pool has a thread, which takes the next job when the last one has ended. The threads only wait, for a
process or a future. So a worker starts its next job at once, even while the main thread computes a suggestion.
"""

import contextlib
import queue
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from fabolas.execution.base import (
    Ended,
    Event,
    EventOrReport,
    Job,
    Reported,
    Started,
    Worker,
    seconds_since,
)

_CLOSE_SECONDS = 10.0  # how long ``close`` waits for the workers; an executor can block for ever


class Inline:
    """Runs trials in this process, one at a time. A debugger works in the objective, and nothing is pickled.

    A job runs inside ``next``: the first call returns Started, the second one runs the objective.

    Args:
        run: Evaluates a job, for example ``partial(evaluate, objective, data)``.
        reports: Whether ``run`` also takes ``publish=``, a function that it calls with every report.
    """

    capacity = 1
    asynchronous = False

    def __init__(self, run: Callable[..., Ended], *, reports: bool = False) -> None:
        self._run, self._reports = run, reports
        self._listener: Callable[[EventOrReport], None] = lambda event: None
        self._jobs: deque[Job] = deque()
        self._started: int | None = None

    def start(self, timeout: float) -> None:
        """Do nothing: this process is running."""

    def submit(self, job: Job) -> None:
        self._jobs.append(job)

    def next(self, timeout: float | None = None) -> Event | None:
        if not self._jobs:
            return None
        if self._started != self._jobs[0].id:
            self._started = self._jobs[0].id
            return Started(self._started)
        job = self._jobs.popleft()
        return self._run(job, publish=self._listener) if self._reports else self._run(job)

    def listen(self, listener: Callable[[EventOrReport], None]) -> None:
        """Call it with reports; all other events happen inside ``next``."""
        self._listener = listener

    def cancel(self, job_id: int) -> bool:
        found = [job for job in self._jobs if job.id == job_id and job_id != self._started]
        for job in found:
            self._jobs.remove(job)
        return bool(found)

    def abandon(self, job_id: int, reason: str) -> bool:
        """Do nothing: a job runs inside ``next``, so nothing runs when this is called."""
        return False

    def wake(self) -> None:
        """Do nothing: ``next`` does not wait, it runs the objective."""

    def close(self) -> None:
        self._jobs.clear()


class Pool:
    """Runs one job in each worker. Further jobs wait in the order of their submission.

    Args:
        workers: The workers.
        release: Called when the pool is closed.
    """

    def __init__(self, workers: Sequence[Worker], release: Callable[[], None] = lambda: None) -> None:
        self.capacity, self.asynchronous = len(workers), True
        self._workers = workers
        self._release = release
        self._waiting: deque[Job] = deque()
        self._running: dict[int, Worker] = {}  # job id -> its worker
        self._start_times: dict[int, float] = {}  # job id -> when the objective started, by time.perf_counter
        self._closed = False
        self._condition = threading.Condition()
        self._events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._ready: queue.SimpleQueue[None] = (
            queue.SimpleQueue()
        )  # one entry for each worker that has started
        self._listener: Callable[[EventOrReport], None] = lambda event: None
        self._threads = [
            threading.Thread(target=self._serve, args=(worker, i), name=f"fabolas-worker-{i}", daemon=True)
            for i, worker in enumerate(workers)
        ]
        for thread in self._threads:
            thread.start()

    def start(self, timeout: float) -> None:
        for worker in self._workers:
            worker.start(partial(self._ready.put, None))
        with contextlib.suppress(queue.Empty):
            self._ready.get(timeout=timeout)

    def submit(self, job: Job) -> None:
        with self._condition:
            if self._closed:
                raise RuntimeError("this pool is closed and accepts no more jobs")
            self._waiting.append(job)
            self._condition.notify()

    def next(self, timeout: float | None = None) -> Event | None:
        try:
            event = self._events.get(timeout=timeout) if timeout != 0.0 else self._events.get_nowait()
            while event is None and timeout == 0.0:  # ``wake`` left this; without waiting it means nothing
                event = self._events.get_nowait()
        except queue.Empty:
            return None
        return event

    def listen(self, listener: Callable[[EventOrReport], None]) -> None:
        self._listener = listener

    def cancel(self, job_id: int) -> bool:
        with self._condition:
            found = [job for job in self._waiting if job.id == job_id]
            for job in found:
                self._waiting.remove(job)
        return bool(found)

    def abandon(self, job_id: int, reason: str) -> bool:
        with self._condition:
            worker = self._running.get(job_id)
        if worker is None:
            return False
        worker.abandon(job_id)
        return self._abandon(job_id, reason)

    def wake(self) -> None:
        self._events.put(None)  # SimpleQueue.put is safe in a signal handler
        self._ready.put(None)

    def close(self) -> None:
        with self._condition:
            if self._closed:
                return
            self._closed = True
            self._waiting.clear()
            self._condition.notify_all()
        for worker in self._workers:
            worker.stop()
        deadline = time.monotonic() + _CLOSE_SECONDS
        for thread in self._threads:
            thread.join(max(deadline - time.monotonic(), 0.0))
        for job_id in tuple(self._running):
            self._abandon(job_id, "stopped while it was running")
        self._release()

    def _serve(self, worker: Worker, number: int) -> None:
        while (job := self._next_job(worker)) is not None:
            try:
                numbered = replace(job, worker=number)
                self._end(worker.run(numbered, partial(self._start, job.id), self._report))
            except BaseException:  # noqa: BLE001 - without an event the engine would wait for ever
                reason = f"the worker of this trial raised an exception:\n{traceback.format_exc()}"
                self._end(Ended(job.id, "abandoned", error=reason, fatal=True))
        worker.close()

    def _next_job(self, worker: Worker) -> Job | None:
        """Wait for a job; None when the pool is closed."""
        with self._condition:
            while not self._waiting and not self._closed:
                self._condition.wait()
            if self._closed:
                return None
            job = self._waiting.popleft()
            self._running[job.id] = worker
            return job

    def _start(self, job_id: int) -> None:
        """Publish the start of a job, unless it was abandoned."""
        with self._condition:
            if job_id not in self._running:
                return
            self._start_times[job_id] = time.perf_counter()
        self._publish(Started(job_id))

    def _report(self, reported: Reported) -> None:
        """Pass on a report, unless the job was abandoned."""
        with self._condition:
            running = reported.id in self._running
        if running:
            self._listener(reported)

    def _end(self, ended: Ended) -> bool:
        """Publish the end of a job. Returns False if it has already ended: an abandoned job can still answer."""
        with self._condition:
            if self._running.pop(ended.id, None) is None:
                return False
            self._start_times.pop(ended.id, None)
        self._publish(ended)
        return True

    def _abandon(self, job_id: int, reason: str) -> bool:
        cost = seconds_since(self._start_times.get(job_id))
        return self._end(Ended(job_id, "abandoned", cost=cost, error=reason))

    def _publish(self, event: Event) -> None:
        try:
            self._listener(event)
        except BaseException:
            if isinstance(event, Started):
                raise
            reason = f"the outcome of this trial could not be recorded:\n{traceback.format_exc()}"
            event = Ended(event.id, "abandoned", cost=event.cost, error=reason, fatal=True)
        self._events.put(event)
