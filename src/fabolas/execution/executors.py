"""Trials in any ``concurrent.futures.Executor``: threads, process pools, Dask, Ray.

Each worker process receives the objective and its data once. A job carries only a token. A worker that does not
know the token answers None; then the job is sent again with the objective and the data, which the worker keeps. So
an executor needs no method but ``submit``, and its workers may join late or restart.
"""

import json
import pickle
import secrets
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent import futures
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from fabolas.execution.base import Ended, Job, Objective, Reported, seconds_since
from fabolas.execution.evaluate import evaluate
from fabolas.execution.processes import pickle_objective
from fabolas.plain_values import safe_repr

# How often one job is submitted at most. It is submitted again if its worker does not have the objective.
_MAX_SUBMISSIONS = 6
# Seconds to wait before a job is submitted again after an error of ``submit``, once for each further attempt.
_PAUSES_SECONDS = (0.1, 1.0)
_HEALTH_SECONDS = 5.0  # between two checks whether the executor still works
_REPORT_SECONDS = 0.5  # between two looks at the reports of a training
_REPORT_FILE = "reports.jsonl"
# How long a Dask cluster may have no worker; a cluster manager may be starting one.
_NO_WORKERS_SECONDS = 600.0
_ANSWER_SECONDS = 10.0  # how long Dask's scheduler may take to answer
_MAX_OBJECTIVES = 2  # how many objectives one worker process holds; their data may be large
# With these executors, a future that could be cancelled was not running. Others can cancel running jobs too.
_CANCEL_ONLY_WAITING = (futures.ThreadPoolExecutor, futures.ProcessPoolExecutor)
_objectives: dict[str, tuple[Objective, Any]] = {}  # token -> objective and data that this process holds
_objectives_lock = threading.Lock()


class SharedObjective:
    """The objective and its data, under a token that the workers learn.

    They are pickled when a worker first asks for them. Threads of this process need no pickling.
    """

    def __init__(self, objective: Objective, data: Any = None) -> None:
        self.token = secrets.token_hex(8)
        self._content = (objective, data)
        with _objectives_lock:
            _objectives[self.token] = self._content

    @cached_property
    def payload(self) -> bytes:
        """Objective and data as bytes.

        Raises:
            TypeError: If they cannot be pickled.
        """
        return pickle_objective(*self._content)

    def forget(self) -> None:
        """Remove them from the memory of this process."""
        with _objectives_lock:
            _objectives.pop(self.token, None)


def run_job(token: str, job: Job, payload: bytes | None) -> Ended | None:
    """Run a job; executors call this in a worker. None if this worker needs the payload and it was not sent."""
    with _objectives_lock:
        if payload is not None and token not in _objectives:
            while len(_objectives) >= _MAX_OBJECTIVES:
                del _objectives[next(iter(_objectives))]
            try:
                _objectives[token] = pickle.loads(payload)
            except BaseException:  # noqa: BLE001 - every exception becomes the reason of the failed trial
                reason = f"the worker could not load the objective or its data:\n{traceback.format_exc()}"
                return Ended(job.id, "failed", error=reason)
        found = _objectives.get(token)
    if found is None:
        return None
    started = _dask_event(_event_name(token, job))
    publish = ReportFile(job).write
    if started is None:
        return evaluate(*found, job, publish=publish)
    if started.is_set():
        reason = (
            "the worker of this trial died; Dask sent the trial to another worker, which did not run it again"
        )
        ended = Ended(job.id, "failed", error=reason)
    else:
        started.set()
        ended = evaluate(*found, job, publish=publish)
    started.clear()
    return ended


def _event_name(token: str, job: Job) -> str:
    """The name of the Dask event that is set while a worker runs the job."""
    return f"fabolas-{token}-{job.id}"


def _dask_event(name: str) -> Any:
    """A Dask event that says whether a trial was started; None if this is not a Dask worker.

    Dask runs the tasks of a dead worker again. The event is kept by the scheduler and survives the worker.
    """
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        distributed.get_worker()
    except ValueError:  # Dask is imported, but this is not one of its workers
        return None
    return distributed.Event(name)


class _RefusedError(Exception):
    """The executor or pickle does not accept a job, and will not accept the next one."""


class _TimedOutError(Exception):
    """There is no result after the job's timeout."""


class _LateError(Exception):
    """The job waited in the executor's queue for most of its timeout, so its configuration is not to blame."""


class _Submission:
    """A call of an executor's ``submit`` in a thread of its own.

    Attributes:
        future: Its result is what ``submit`` returned.
    """

    def __init__(self, submit: Callable[[], object]) -> None:
        self.future: futures.Future[object] = futures.Future()
        self._submit = submit
        threading.Thread(target=self._run, name="fabolas-submit", daemon=True).start()

    def _run(self) -> None:
        try:
            self.future.set_result(self._submit())
        except BaseException as error:  # noqa: BLE001 - raised again where the future is read
            self.future.set_exception(error)

    def give_up(self) -> None:
        """Wait no longer: if ``submit`` returns later, what it returns is cancelled."""
        self.future.add_done_callback(_cancel_submitted)


class FutureWorker:
    """Gives one job at a time to an executor.

    Most executors cannot kill a running job, so the worker only stops waiting for it; ``RayExecutor`` kills it.
    A job's timeout counts from its submission, because an executor does not say when it starts a job.

    Args:
        executor: Any Executor. It belongs to the user and is not shut down.
        shared: The objective and its data.
    """

    def __init__(self, executor: futures.Executor, shared: SharedObjective) -> None:
        self._executor = executor
        self._shared = shared
        self._health = ExecutorHealth(executor)
        self._stopped = False
        self._job: int | None = None
        self._interrupt: futures.Future[None] = futures.Future()  # done when the present job is abandoned

    def start(self, ready: Callable[[], None]) -> None:
        """Do nothing: the executor starts its workers."""
        ready()

    def run(self, job: Job, started: Callable[[], None], report: Callable[[Reported], None]) -> Ended:
        self._interrupt, self._job = futures.Future(), job.id
        self._reports, self._report = ReportFile(job), report
        if job.curve is not None:
            self._reports.clear()
        if self._stopped:
            self._interrupt.set_result(None)
        start = time.perf_counter()
        started()
        try:
            ended = self._evaluate(job, start)
        except _RefusedError as refused:
            return Ended(job.id, "abandoned", error=str(refused), fatal=True)
        except _TimedOutError as error:
            return Ended(job.id, "failed", cost=seconds_since(start), error=str(error))
        except _LateError as error:
            return Ended(job.id, "abandoned", cost=seconds_since(start), error=str(error))
        except futures.BrokenExecutor as error:
            # A broken pool loses all its jobs, and does not say which of them broke it.
            reason = f"the executor broke down: {_describe(error)}"
            return Ended(job.id, "abandoned", cost=seconds_since(start), error=reason, fatal=True)
        except (futures.CancelledError, KeyboardInterrupt) as error:
            reason = f"the run stopped waiting for this trial: {_describe(error)}"
            return Ended(job.id, "abandoned", cost=seconds_since(start), error=reason)
        except BaseException as error:  # noqa: BLE001 - executors have their own errors, such as Dask's KilledWorker
            reason = f"the executor could not run it, its worker may have died: {_describe(error)}"
            return Ended(job.id, "failed", cost=seconds_since(start), error=reason)
        return ended if ended.cost > 0.0 else replace(ended, cost=seconds_since(start))

    def _evaluate(self, job: Job, start: float) -> Ended:
        """Submit the job, and again with the objective and the data if the worker does not have them."""
        payload: bytes | None = None
        for _ in range(_MAX_SUBMISSIONS):
            future = self._submit(job, payload, start)
            try:
                ended = self._result(job, future, start)
            except futures.CancelledError:
                # Dask cancels a job if the worker that kept its payload has died. Submit it again: if the trial was
                # already started, the other worker knows by the Dask event.
                if self._interrupt.done() or payload is None:
                    raise
                payload = None
            else:
                if ended is not None:
                    return ended
                payload = self._payload()
        raise futures.CancelledError("no worker accepted the objective and its data")

    def _submit(self, job: Job, payload: bytes | None, start: float) -> "futures.Future[Any]":
        """Submit the job. One error does not end the run: the network of a cluster can fail for a moment."""
        for pause in (*_PAUSES_SECONDS, None):
            try:
                return _checked_future(self._submitted(job, payload, start), self._executor)
            except (futures.BrokenExecutor, futures.CancelledError, _RefusedError, _TimedOutError):
                raise
            except Exception as error:
                if pause is None:
                    raise _RefusedError(f"the executor accepts no trials: {_describe(error)}") from error
            futures.wait([self._interrupt], timeout=pause)
            if self._interrupt.done():
                raise futures.CancelledError("stopped")
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _submitted(self, job: Job, payload: bytes | None, start: float) -> object:
        """What ``submit`` of the executor returns. It is called in a thread of its own, because it may never return."""
        submission = _Submission(lambda: self._submit_now(job, payload))
        timeout = None if job.timeout is None else max(start + job.timeout - time.perf_counter(), 0.0)
        either: list[futures.Future[Any]] = [submission.future, self._interrupt]
        futures.wait(either, timeout, return_when=futures.FIRST_COMPLETED)
        if submission.future.done():
            return submission.future.result()
        submission.give_up()
        if self._interrupt.done():
            raise futures.CancelledError("stopped")
        raise _TimedOutError(
            f"timed out: the executor had not accepted it after {job.timeout:.4g} s (trial_timeout), so the run "
            "stopped waiting for it"
        )

    def _submit_now(self, job: Job, payload: bytes | None) -> object:
        shipped = payload if payload is None else self._ship(payload)
        return self._executor.submit(run_job, self._shared.token, job, shipped)

    def _result(self, job: Job, future: "futures.Future[Any]", start: float) -> Ended | None:
        """Wait for the result, as long as the job is wanted, has time left, and the executor seems to work."""
        longest = _HEALTH_SECONDS if job.curve is None else _REPORT_SECONDS
        timeout = float("inf") if job.timeout is None else job.timeout
        last_waiting = start
        while True:
            left = start + timeout - time.perf_counter()
            wait = min(max(left, 0.0), longest, timeout / 4)
            futures.wait([future, self._interrupt], timeout=wait, return_when=futures.FIRST_COMPLETED)
            if job.curve is not None:
                for reported in self._reports.read():
                    self._report(reported)
            if future.done():
                return _checked_ended(future.result(), job)
            if self._interrupt.done():
                future.cancel()
                raise futures.CancelledError("stopped")
            if job.timeout is not None and self._waits_in_dask(job):
                last_waiting = time.perf_counter()
            if left <= 0.0:
                raise self._timed_out(future, job, began_late=last_waiting > start + 0.5 * timeout)
            if problem := self._health.problem():
                raise futures.BrokenExecutor(problem)

    def _timed_out(self, future: "futures.Future[Any]", job: Job, *, began_late: bool) -> Exception:
        """The error of a job whose time is over."""
        waits = future.cancel() and isinstance(self._executor, _CANCEL_ONLY_WAITING)
        if waits or began_late:
            return _LateError(
                f"not started by the executor in time (trial_timeout is {job.timeout:.4g} s), so the run stopped "
                "waiting for it"
            )
        return _TimedOutError(
            f"timed out: no result after {job.timeout:.4g} s (trial_timeout), so the run stopped waiting for it; "
            "most executors cannot kill it, so it may still be running"
        )

    def _waits_in_dask(self, job: Job) -> bool:
        """Whether the executor is Dask's and no worker has started the job yet; False if that is not known."""
        client, distributed = getattr(self._executor, "_client", None), sys.modules.get("distributed")
        if distributed is None or not isinstance(client, distributed.Client) or self._health.problem():
            return False
        return not distributed.Event(_event_name(self._shared.token, job), client=client).is_set()

    def _payload(self) -> bytes:
        try:
            return self._shared.payload
        except TypeError as error:
            raise _RefusedError(str(error)) from error

    def _ship(self, payload: bytes) -> Any:
        """The payload as the executor wants it: Dask transfers large objects separately from the task."""
        scatter = getattr(getattr(self._executor, "_client", None), "scatter", None)
        return payload if scatter is None else scatter(payload, hash=False)

    def abandon(self, job_id: int) -> None:
        if self._job == job_id and not self._interrupt.done():
            self._interrupt.set_result(None)

    def stop(self) -> None:
        self._stopped = True
        if self._job is not None:
            self.abandon(self._job)

    def close(self) -> None:
        """Do nothing: the executor belongs to the user."""


def _cancel_submitted(submission: "futures.Future[object]") -> None:
    submitted = None if submission.exception() is not None else submission.result()
    if isinstance(submitted, futures.Future):
        submitted.cancel()


def _checked_future(future: object, executor: futures.Executor) -> "futures.Future[Any]":
    """The future, checked: ``futures.wait`` on another object would block for ever."""
    if not isinstance(future, futures.Future):
        raise _RefusedError(
            f"{type(executor).__name__}.submit must return a concurrent.futures.Future, got {safe_repr(future, 60)}"
        )
    return future


def _checked_ended(returned: object, job: Job) -> Ended | None:
    """What ``run_job`` returned, checked: with the outcome of another job the run would wait for this one for ever."""
    if returned is None or (isinstance(returned, Ended) and returned.id == job.id):
        return returned
    raise TypeError(f"it returned {safe_repr(returned, 60)} instead of the outcome of this trial")


def capacity_of(executor: futures.Executor) -> int:
    """How many trials an executor can run at the same time.

    Raises:
        ValueError: If the executor does not say.
    """
    workers = getattr(executor, "_max_workers", None)  # the standard library, loky, RayExecutor
    client = getattr(executor, "_client", None)
    if workers is None and client is not None and hasattr(client, "nthreads"):  # Dask
        workers = sum(client.nthreads().values())
    if not workers:
        raise ValueError(
            f"{type(executor).__name__} does not say how many trials it can run at the same time; "
            "give the number: workers=8"
        )
    return int(workers)


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".strip().rstrip(":")


class ReportFile:
    """The reports of a trial as lines of a file in its directory. One process writes it, another one reads it.

    An executor returns nothing but the result of its job. So the engine's process reads this file while the trial
    runs, if both see the same files. In any case all reports come again with the outcome.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._path = Path(job.directory) / str(job.id) / _REPORT_FILE
        self._position = 0

    def write(self, reported: Reported) -> None:
        """Add a report."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(reported)) + "\n")

    def read(self) -> list[Reported]:
        """The reports since the last call; none if the file cannot be seen from here."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._position)
                text = file.read()
        except OSError:
            return []
        whole = text[: text.rfind(b"\n") + 1]
        self._position += len(whole)
        return [Reported(**json.loads(line)) for line in whole.splitlines()]

    def clear(self) -> None:
        """Remove the file of an earlier trial with this number."""
        self._path.unlink(missing_ok=True)


class ExecutorHealth:
    """Notices that an executor will never complete its futures, where the executor does not say so itself.

    Known problems: Ray was shut down (``RayExecutor.problem`` says so), a Dask client was closed, a Dask cluster
    lost all its workers. Nothing is known about other executors.

    Args:
        executor: Any Executor.
        no_workers: Seconds that a Dask cluster may be without workers.
    """

    def __init__(self, executor: futures.Executor, no_workers: float = _NO_WORKERS_SECONDS) -> None:
        self._own_check = getattr(executor, "problem", None)
        client = getattr(executor, "_client", None)
        self._client = client if hasattr(client, "nthreads") else None
        self._no_workers = no_workers
        self._last_worker_seen = time.monotonic()
        self._error = ""  # why the scheduler did not answer the last time

    def problem(self) -> str:
        """Why no further result will come, as a sentence; empty if no reason is known."""
        if callable(self._own_check):
            return str(self._own_check())
        if self._client is None:
            return ""
        if self._client.status in ("closing", "closed"):
            return "the Dask client is closed"
        if self._has_workers():
            self._last_worker_seen = time.monotonic()
        elif time.monotonic() - self._last_worker_seen >= self._no_workers:
            return f"the Dask cluster has had no workers for {self._no_workers:.0f} s{self._error}"
        return ""

    def _has_workers(self) -> bool:
        self._error = ""
        try:
            return bool(self._client.nthreads(callback_timeout=_ANSWER_SECONDS))  # type: ignore[union-attr]
        except Exception as error:  # noqa: BLE001 - the scheduler does not answer; Dask raises many kinds of errors
            self._error = f" (its scheduler does not answer: {error!r})"
            return False
