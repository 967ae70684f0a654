"""Notice that an executor will never complete its futures, where the executor does not say so itself."""

import time
from concurrent.futures import Executor

# How long a Dask cluster may have no worker; a cluster manager may be starting one.
_NO_WORKERS_SECONDS = 600.0
_ANSWER_SECONDS = 10.0  # how long Dask's scheduler may take to answer


class ExecutorHealth:
    """Watches one executor.

    Known problems: Ray was shut down (``RayExecutor.problem`` says so), a Dask client was closed, a Dask cluster
    lost all its workers. Nothing is known about other executors.

    Args:
        executor: Any Executor.
        no_workers: Seconds that a Dask cluster may be without workers.
    """

    def __init__(self, executor: Executor, no_workers: float = _NO_WORKERS_SECONDS) -> None:
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
