"""Choose the backend for the arguments that the user gave."""

import operator
import time
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, Any

from fabolas.execution.base import Backend, Objective
from fabolas.execution.clusters import executor_for
from fabolas.execution.evaluate import evaluate
from fabolas.execution.executors import FutureWorker, SharedObjective, capacity_of
from fabolas.execution.inline import Inline
from fabolas.execution.limits import NO_LIMITS, Limits
from fabolas.execution.pool import Pool
from fabolas.execution.processes import process_pool

if TYPE_CHECKING:
    from distributed import Client


def backend_for(
    objective: Objective,
    data: Any = None,
    workers: int | None = None,
    executor: "Executor | Client | str | None" = None,
    limits: Limits = NO_LIMITS,
    clock: Callable[[], float] = time.perf_counter,
) -> Backend:
    """The executor if there is one; processes for several workers or for limits; else this process.

    Raises:
        ValueError: If the arguments contradict each other, or are not possible on this system.
        TypeError: If an argument has the wrong type, or the objective cannot be pickled but must be.
    """
    n_workers = None if workers is None else _check_workers(workers)
    if executor is not None:
        return _executor_pool(objective, data, n_workers, executor, limits)
    if (n_workers or 1) == 1 and not limits:
        return Inline(partial(evaluate, objective, data, clock=clock), reports=True)
    return process_pool(objective, data, n_workers or 1, limits.memory)


def _executor_pool(
    objective: Objective, data: Any, workers: int | None, given: "Executor | Client | str", limits: Limits
) -> Pool:
    if limits.memory is not None:
        raise ValueError(
            "trial_memory does not work with executor=, because an Executor does not tell which process runs a "
            "trial; leave it out, or use workers=n instead of executor="
        )
    executor, disconnect = executor_for(given)
    shared = SharedObjective(objective, data)

    def release() -> None:
        shared.forget()
        disconnect()

    try:
        n_workers = workers or capacity_of(executor)
    except BaseException:
        release()
        raise
    return Pool([FutureWorker(executor, shared) for _ in range(n_workers)], release)


def _check_workers(workers: object) -> int:
    try:
        n_workers = operator.index(workers)  # type: ignore[arg-type]
    except TypeError:
        n_workers = 0
    if isinstance(workers, bool) or n_workers < 1:
        raise ValueError(f"workers must be a whole number >= 1, got {workers!r}; leave it out for one worker")
    return n_workers
