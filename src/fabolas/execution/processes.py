"""Trials in worker processes. A worker that dies or exceeds a limit loses only its own trial."""

import os
import pickle
import threading
import time
from collections.abc import Callable
from typing import Any

import cloudpickle

from fabolas.execution.backends import Pool
from fabolas.execution.base import Ended, Job, Objective, Reported, Started, seconds_since
from fabolas.execution.limits import resident_memory
from fabolas.execution.worker_process import WorkerProcess

_LOAD_TIMEOUT_SECONDS = 60.0  # to load the objective and the data, if trials have a shorter timeout
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def process_pool(objective: Objective, data: Any, workers: int, memory: int | None = None) -> Pool:
    """A pool of ``workers`` processes. Each receives the objective and the data once.

    Raises:
        TypeError: If the objective or the data cannot be pickled.
        ValueError: If this is not a POSIX system.
    """
    if os.name != "posix":
        raise ValueError(
            f"worker processes need a POSIX system, this one is {os.name!r}; give an executor=, such as "
            "loky.get_reusable_executor(), or use workers=1 without limits"
        )
    payload = pickle_objective(objective, data)
    threads = max(1, _cores() // workers)
    return Pool([ProcessWorker(payload, threads, memory) for _ in range(workers)])


def pickle_objective(objective: Objective, data: Any) -> bytes:
    """Objective and data as bytes. Functions defined in a script, a notebook or a function work too.

    Raises:
        TypeError: If they cannot be pickled.
    """
    try:
        return bytes(cloudpickle.dumps((objective, data), protocol=pickle.HIGHEST_PROTOCOL))
    except Exception as error:
        raise TypeError(
            "the objective and its data must be picklable (by cloudpickle) to run in another process, got: "
            f"{type(error).__name__}: {error}; keep locks, open files and connections out of them, "
            "or use workers=1"
        ) from error


class ProcessWorker:
    """Runs jobs in one process. It is started by ``start`` or for the first job, and again after it died or was killed.

    Args:
        payload: The pickled objective and data.
        threads: How many threads numerical libraries may use in it, unless the environment sets this.
        memory: Bytes of physical memory that it may use; None for no limit.
        load_timeout: Seconds to load the objective and the data, if jobs have a shorter timeout.
    """

    def __init__(
        self,
        payload: bytes,
        threads: int = 1,
        memory: int | None = None,
        load_timeout: float = _LOAD_TIMEOUT_SECONDS,
    ) -> None:
        self._payload = payload
        self._memory_limit = memory
        self._initial_memory = 0  # bytes used before the first trial
        self._load_timeout = load_timeout
        chosen = any(name in os.environ for name in _THREAD_VARIABLES)  # by the user
        self._environment = {
            **os.environ,
            **({} if chosen else dict.fromkeys(_THREAD_VARIABLES, str(threads))),
        }
        self._stopped = threading.Event()
        self._abandoned: int | None = None
        self._process: WorkerProcess | None = None

    def start(self, ready: Callable[[], None]) -> None:
        try:
            process = self._process = WorkerProcess(self._payload, self._environment)
        except OSError:  # ``run`` tries again, and says why if that fails too
            ready()
            return

        def wait() -> None:
            process.wait_until_ready()
            ready()

        threading.Thread(target=wait, name="fabolas-starter", daemon=True).start()

    def run(self, job: Job, started: Callable[[], None], report: Callable[[Reported], None]) -> Ended:
        for attempt in range(2):
            try:
                return self._attempt(job, started, report)
            except (EOFError, OSError) as error:  # the process died before the trial, so not because of it
                how = f"could not be started ({error})" if self._process is None else self._kill()
                if attempt:
                    reason = f"the worker process {how} before it could start the trial, twice"
                    return Ended(job.id, "failed", error=reason)
        raise AssertionError("unreachable: the second attempt returns")

    def _attempt(self, job: Job, started: Callable[[], None], report: Callable[[Reported], None]) -> Ended:
        """Run the job; raises OSError or EOFError if the process dies before it calls the objective."""
        sent = time.perf_counter()
        if self._process is None:
            self._process, self._initial_memory = WorkerProcess(self._payload, self._environment), 0
        process = self._process
        process.send(pickle.dumps(job))
        start: float | None = None
        while True:
            if self._stopped.is_set() or self._abandoned == job.id:
                self._kill()
                return Ended(
                    job.id, "abandoned", cost=seconds_since(start), error="stopped while it was running"
                )
            try:
                message = process.receive()
            except EOFError:
                if start is None:
                    raise
                reason = f"the worker process {self._kill()}"
                return Ended(job.id, "failed", cost=seconds_since(start), error=reason)
            if isinstance(message, Started):
                start = time.perf_counter()
                self._initial_memory = self._initial_memory or self._used_memory()
                started()
            elif isinstance(message, Reported):
                report(message)
            elif isinstance(message, Ended):
                self._replace_if_memory_is_high()
                return message
            else:
                reason = (
                    self._load_timed_out(job, sent) if start is None else self._exceeded_limit(job, start)
                )
                if reason:
                    self._kill()
                    return Ended(job.id, "failed", cost=seconds_since(start), error=reason)

    def _exceeded_limit(self, job: Job, start: float) -> str:
        """Which limit the job exceeds, as a sentence; empty if none."""
        if job.timeout is not None and time.perf_counter() - start > job.timeout:
            return f"timed out: not finished after {job.timeout:.4g} s (trial_timeout), so it was killed"
        used = self._used_memory()
        if self._memory_limit is not None and used > self._memory_limit:
            amounts = f"{used / 1e6:,.0f} MB, more than {self._memory_limit / 1e6:,.0f} MB"
            return f"out of memory: it used {amounts} (trial_memory), so it was killed"
        return ""

    def _load_timed_out(self, job: Job, sent: float) -> str:
        """Which time limit the loading of the objective exceeds, as a sentence; empty if none."""
        limit = max(job.timeout or 0.0, self._load_timeout)
        if job.timeout is None or time.perf_counter() - sent <= limit:
            return ""
        return f"the worker process had not loaded the objective and its data after {limit:.4g} s, so it was killed"

    def _used_memory(self) -> int:
        """Bytes of memory that the process uses; 0 if there is no limit."""
        if self._memory_limit is None or self._process is None:
            return 0
        return resident_memory(self._process.pid)

    def _replace_if_memory_is_high(self) -> None:
        """Kill the process if it still uses much memory after a trial; the next trial starts a new one.

        Otherwise the next trial could exceed the limit because of memory that earlier trials left in use.
        """
        if self._memory_limit is None:
            return
        if self._used_memory() > (self._initial_memory + self._memory_limit) / 2:
            self._kill()

    def abandon(self, job_id: int) -> None:
        self._abandoned = job_id

    def stop(self) -> None:
        self._stopped.set()

    def close(self) -> None:
        if self._process is not None:
            self._kill()

    def _kill(self) -> str:
        """Kill the process and say how it ended."""
        process, self._process = self._process, None
        assert process is not None
        return process.kill()


def _cores() -> int:
    """How many processor cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
