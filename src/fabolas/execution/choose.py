"""Choose where trials run by the arguments of the user: this process, worker processes, an Executor, Dask or Ray."""

import operator
import time
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from fabolas.execution.backends import Inline, Pool
from fabolas.execution.base import Backend, Objective
from fabolas.execution.evaluate import evaluate
from fabolas.execution.executors import FutureWorker, SharedObjective, capacity_of
from fabolas.execution.limits import NO_LIMITS, Limits
from fabolas.execution.processes import process_pool

if TYPE_CHECKING:
    from distributed import Client

_EXPECTED = (
    "executor must be a concurrent.futures.Executor, a Dask Client, or the address of a Ray cluster such as 'auto' or "
    "'ray://head:10001'"
)


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


def executor_for(given: "Executor | Client | str") -> tuple[Executor, Callable[[], None]]:
    """The Executor, and what to call when it is no longer needed. What the user made is not shut down.

    Raises:
        TypeError: If it is none of these.
        ValueError: If the text is not an address of Ray.
        ImportError: If it needs a package that is not installed.
        ConnectionError: If Ray is not running there.
    """
    if isinstance(given, str):
        return _ray(given)
    client: Any = given
    if callable(getattr(client, "get_executor", None)) and hasattr(client, "nthreads"):
        # pure=False: the same trial may be run twice, so its result must not be cached.
        return client.get_executor(pure=False), _nothing
    if not callable(getattr(client, "submit", None)):
        raise TypeError(f"{_EXPECTED}; got {given!r}")
    return client, _nothing


def _ray(address: str) -> tuple[Executor, Callable[[], None]]:
    """Connect to Ray, unless this program is connected, and disconnect at the end."""
    if address not in ("auto", "local") and ":" not in address:
        raise ValueError(f"{_EXPECTED}; got {address!r}")
    if find_spec("ray") is None:
        raise ImportError(
            f"executor={address!r} is the address of a Ray cluster, and Ray is not installed; "
            "install it with: pip install 'fabolas[ray]'"
        )
    import ray

    from fabolas.execution.ray_executor import RayExecutor

    connected = ray.is_initialized()
    if not connected:
        ray.init(address, log_to_driver=False)
    executor = RayExecutor()

    def release() -> None:
        executor.shutdown(wait=False, cancel_futures=True)
        if not connected:
            ray.shutdown()

    return executor, release


def _nothing() -> None:
    pass
