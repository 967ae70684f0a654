"""Trials by any ``concurrent.futures.Executor``: threads, process pools, Dask, Ray.

The objective and its data go to each worker process once. A job carries only a token; a worker that does not know
it yet says so, and is sent the job again with the objective and the data, which it keeps. So nothing is assumed of
an executor but ``submit``, and a worker that joins late or comes back from the dead is served like the first.
"""

import pickle
import secrets
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent import futures
from dataclasses import replace
from functools import cached_property
from typing import Any

from fabolas.execution.base import Ended, Job, Objective
from fabolas.execution.processes import pickled
from fabolas.execution.task import RESOLUTION, evaluate

_ATTEMPTS = 6  # to find a worker that knows the objective
_KEPT = 2  # objectives that a worker process keeps at once; the data may be large
_known: dict[str, tuple[Objective, Any]] = {}
_lock = threading.Lock()


class Shared:
    """The objective and its data, under a token that every worker comes to know.

    They are pickled when a worker first asks, and never where it lives in this process.
    """

    def __init__(self, objective: Objective, data: Any = None) -> None:
        self.token = secrets.token_hex(8)
        self._content = (objective, data)
        with _lock:
            _known[self.token] = self._content

    @cached_property
    def payload(self) -> bytes:
        """Objective and data as bytes.

        Raises:
            TypeError: If they cannot be pickled.
        """
        return pickled(*self._content)

    def forget(self) -> None:
        """Let this process forget them."""
        with _lock:
            _known.pop(self.token, None)


def perform(token: str, job: Job, payload: bytes | None) -> Ended | None:
    """Run a job in a worker; None if the worker does not know the token's objective and was not given it."""
    with _lock:
        if payload is not None and token not in _known:
            while len(_known) >= _KEPT:
                del _known[next(iter(_known))]
            try:
                _known[token] = pickle.loads(payload)
            except BaseException:  # noqa: BLE001 - whatever it is, the trial is told
                reason = f"the worker could not load the objective or its data:\n{traceback.format_exc()}"
                return Ended(job.id, "failed", error=reason)
        known = _known.get(token)
    if known is None:
        return None
    begun = _mark(f"fabolas-{token}-{job.id}")
    if begun is None:
        return evaluate(*known, job)
    again = bool(begun.is_set())
    if again:
        reason = "the worker that ran it died; Dask sent it to another one, which refused to run it again"
        ended = Ended(job.id, "failed", error=reason)
    else:
        begun.set()
        ended = evaluate(*known, job)
    begun.clear()
    return ended


def _mark(name: str) -> Any:
    """An event on Dask's scheduler that says whether a trial was begun; None elsewhere, where a task is run once.

    Dask runs the tasks of a dead worker again, and the mark outlives the worker.
    """
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        distributed.get_worker()
    except ValueError:  # Dask is loaded, but this is none of its workers
        return None
    return distributed.Event(name)


class _RefusedError(Exception):
    """The executor, or pickle, does not take a trial, and will not take the next either."""


class FutureSlot:
    """One job at a time given to an executor. What runs there cannot be killed, only no longer waited for.

    Args:
        executor: Any Executor; it stays its owner's, and is not shut down.
        shared: The objective and its data.
    """

    def __init__(self, executor: futures.Executor, shared: Shared) -> None:
        self._executor = executor
        self._shared = shared
        self._stop: futures.Future[Any] = futures.Future()

    def run(self, job: Job, started: Callable[[], None]) -> Ended:
        begin = time.perf_counter()
        started()
        try:
            ended = self._evaluated(job)
        except _RefusedError as refused:
            return Ended(job.id, "lost", error=str(refused), fatal=True)
        except futures.BrokenExecutor as error:
            # A broken pool takes all its trials with it, and does not say whose fault it was.
            reason = f"the executor broke down: {_said(error)}"
            return Ended(job.id, "lost", cost=_since(begin), error=reason, fatal=True)
        except (futures.CancelledError, KeyboardInterrupt) as error:
            return Ended(job.id, "lost", cost=_since(begin), error=f"no longer waited for: {_said(error)}")
        except BaseException as error:  # noqa: BLE001 - an executor's own kinds of failure, as Dask's KilledWorker
            reason = f"the executor could not run it, its worker may have died: {_said(error)}"
            return Ended(job.id, "failed", cost=_since(begin), error=reason)
        return ended if ended.cost > 0.0 else replace(ended, cost=_since(begin))

    def _evaluated(self, job: Job) -> Ended:
        """What a worker made of the job; it is given the objective and the data if it has to ask for them."""
        payload: bytes | None = None
        for _ in range(_ATTEMPTS):
            try:
                ended = self._result(job, payload)
            except futures.CancelledError:
                # Dask cancels a trial whose payload has died together with its worker. Another worker, asked anew,
                # finds the trial's claim.
                if self._stop.done() or payload is None:
                    raise
                payload = None
            else:
                if ended is not None:
                    return ended
                payload = self._payload()
        raise futures.CancelledError("no worker could be given the objective and its data")

    def _result(self, job: Job, payload: bytes | None) -> Ended | None:
        try:
            shipped = payload if payload is None else self._ship(payload)
            future: futures.Future[Any] = self._executor.submit(perform, self._shared.token, job, shipped)
        except Exception as error:
            raise _RefusedError(f"the executor takes no trials: {_said(error)}") from error
        futures.wait([future, self._stop], return_when=futures.FIRST_COMPLETED)
        if not future.done():
            future.cancel()
            raise futures.CancelledError("stopped")
        ended: Ended | None = future.result()
        return ended

    def _payload(self) -> bytes:
        try:
            return self._shared.payload
        except TypeError as error:
            raise _RefusedError(str(error)) from error

    def _ship(self, payload: bytes) -> Any:
        """What to give the executor for the payload: Dask is given large things apart from the task."""
        scatter = getattr(getattr(self._executor, "_client", None), "scatter", None)
        return payload if scatter is None else scatter(payload, hash=False)

    def stop(self) -> None:
        if not self._stop.done():
            self._stop.set_result(None)

    def close(self) -> None:
        """Nothing: the executor is its owner's."""


def capacity(executor: futures.Executor) -> int:
    """How many trials an executor can run at once.

    Raises:
        ValueError: If it does not say.
    """
    workers = getattr(executor, "_max_workers", None)  # the standard library's, loky's, ours for Ray
    client = getattr(executor, "_client", None)
    if workers is None and client is not None and hasattr(client, "nthreads"):  # Dask's
        workers = sum(client.nthreads().values())
    if not workers:
        raise ValueError(
            f"{type(executor).__name__} does not say how many trials it can run at once; say it: workers=8"
        )
    return int(workers)


def _since(begin: float) -> float:
    return max(time.perf_counter() - begin, RESOLUTION)


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".strip().rstrip(":")
