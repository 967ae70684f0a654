"""Trials on a Ray cluster: ``fabolas.minimize(..., executor=fabolas.ray.RayExecutor())``."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import ray


class RayExecutor(Executor):
    """An Executor whose tasks are Ray's, each run once: a task whose worker dies is not run again.

        ray.init()
        with RayExecutor(num_cpus=2) as executor:
            fabolas.minimize(objective, space, executor=executor, time_budget="1h")

    Args:
        max_workers: Tasks at once, for those who ask; None for as many as the cluster has room for.
        **options: Of each task, as ``ray.remote`` takes them: ``num_cpus``, ``num_gpus``, ``resources``, ...

    Raises:
        RuntimeError: If Ray is not running; ``ray.init()`` starts it.
    """

    def __init__(self, max_workers: int | None = None, **options: Any) -> None:
        if not ray.is_initialized():
            raise RuntimeError("RayExecutor needs a running Ray; call ray.init() first")
        self._options = {"num_cpus": 1, **options, "max_retries": 0}
        self._max_workers = max_workers or _room(self._options)
        self._open: set[Future[Any]] = set()
        self._shut = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run ``fn`` somewhere in the cluster; cancelling the future ends it there."""
        if self._shut:
            raise RuntimeError("this RayExecutor was shut down and takes no more tasks; make another")
        reference = ray.remote(**self._options)(fn).remote(*args, **kwargs)
        future: Future[Any] = reference.future()
        self._open.add(future)
        future.add_done_callback(lambda done: self._finish(done, reference))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more tasks; Ray itself goes on."""
        self._shut = True
        for future in tuple(self._open):
            if cancel_futures:
                future.cancel()
            elif wait:
                future.exception()

    def _finish(self, future: "Future[Any]", reference: Any) -> None:
        self._open.discard(future)
        if future.cancelled():
            ray.cancel(reference, force=True)


def _room(options: dict[str, Any]) -> int:
    """How many tasks with these needs the cluster can run at once."""
    wanted = {
        "CPU": options.get("num_cpus"),
        "GPU": options.get("num_gpus"),
        **(options.get("resources") or {}),
    }
    total: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
    room = [total.get(name, 0.0) / amount for name, amount in wanted.items() if amount]
    return max(1, int(min(room, default=1.0)))
