"""Run trials on a Ray cluster: ``fabolas.minimize(..., executor=fabolas.ray.RayExecutor())``."""

from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from typing import Any

import ray


class RayExecutor(Executor):
    """An Executor that runs its tasks in Ray. A task whose worker dies is not run again.

        ray.init()
        with RayExecutor(num_cpus=2) as executor:
            fabolas.minimize(objective, space, executor=executor, time_budget="1h")

    Args:
        max_workers: How many tasks run at the same time; None for as many as the cluster has resources for.
        **options: Options of each task, as for ``ray.remote``: ``num_cpus``, ``num_gpus``, ``resources``, ...

    Raises:
        RuntimeError: If Ray is not running.
    """

    def __init__(self, max_workers: int | None = None, **options: Any) -> None:
        if not ray.is_initialized():
            raise RuntimeError("RayExecutor needs Ray to be running; call ray.init() first")
        self._options = {"num_cpus": 1, **options, "max_retries": 0}
        self._job_id = _job_id()
        self._max_workers = max_workers or _task_capacity(self._options)
        self._futures: set[Future[Any]] = set()
        self._is_shut_down = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run ``fn`` on the cluster. Cancelling the future kills the task."""
        if self._is_shut_down:
            raise RuntimeError("this RayExecutor was shut down and accepts no more tasks; create another one")
        if problem := self.problem():  # Ray would start a new local cluster by itself
            raise BrokenExecutor(problem)
        reference = ray.remote(**self._options)(fn).remote(*args, **kwargs)
        future: Future[Any] = reference.future()
        self._futures.add(future)
        future.add_done_callback(lambda done: self._finish(done, reference))
        return future

    def problem(self) -> str:
        """Why tasks will not complete, as a sentence; empty if Ray is running."""
        if not ray.is_initialized():
            return "Ray was shut down; its tasks are lost"
        if _job_id() != self._job_id:
            return "Ray was shut down and started again; the tasks from before are lost"
        return ""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more tasks. Ray itself continues to run."""
        self._is_shut_down = True
        for future in tuple(self._futures):
            if cancel_futures:
                future.cancel()
            elif wait and not self.problem():
                future.exception()

    def _finish(self, future: "Future[Any]", reference: Any) -> None:
        self._futures.discard(future)
        if future.cancelled() and not self.problem():
            ray.cancel(reference, force=True)


def _job_id() -> str:
    """The id of this program in the Ray cluster. It changes when Ray is started again."""
    return str(ray.get_runtime_context().get_job_id())


def _task_capacity(options: dict[str, Any]) -> int:
    """How many tasks with these options the cluster can run at the same time."""
    needed = {
        "CPU": options.get("num_cpus"),
        "GPU": options.get("num_gpus"),
        **(options.get("resources") or {}),
    }
    total: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
    tasks = [total.get(name, 0.0) / amount for name, amount in needed.items() if amount]
    return max(1, int(min(tasks, default=1.0)))
