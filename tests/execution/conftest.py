"""All kinds of backends. The clusters are real, and started once in a test process."""

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context
from typing import Any

import pytest

from fabolas.execution import Backend, backend_for

WORKERS = 2
KINDS = {
    "processes": (),
    "threads": (),
    "pool": (),
    "loky": (pytest.mark.slow,),
    "dask": (pytest.mark.slow,),
    "ray": (pytest.mark.slow,),
}
Open = Callable[..., Backend]


@contextmanager
def dask() -> Iterator[Executor]:
    """A real local cluster whose nannies restart dead workers."""
    from dask.distributed import Client, LocalCluster

    arguments: dict[str, Any] = {"dashboard_address": ":0", "processes": True, "threads_per_worker": 1}
    with LocalCluster(n_workers=WORKERS, **arguments) as cluster, Client(cluster) as client:
        yield client.get_executor(pure=False)


@contextmanager
def ray() -> Iterator[Executor]:
    """A real local Ray."""
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"  # what Ray would otherwise warn of
    import ray

    from fabolas.ray import RayExecutor

    # The objectives of the tests are looked up by name, so its workers need to find the tests.
    found = {"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}}
    ray.init(
        num_cpus=WORKERS,
        include_dashboard=False,
        log_to_driver=False,
        configure_logging=False,
        runtime_env=found,
    )
    try:
        with RayExecutor() as executor:
            yield executor
    finally:
        ray.shutdown()


@contextmanager
def loky() -> Iterator[Executor]:
    """The pool of joblib."""
    from joblib.externals.loky import ProcessPoolExecutor as LokyExecutor

    executor = LokyExecutor(max_workers=WORKERS)
    try:
        yield executor
    finally:
        executor.shutdown(wait=True, kill_workers=True)


@contextmanager
def executor_of(kind: str) -> Iterator[Executor | None]:
    """The executor of this kind; None for our own processes."""
    match kind:
        case "processes":
            yield None
        case "threads":
            with ThreadPoolExecutor(WORKERS) as threads:
                yield threads
        case "pool":
            with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
                yield pool
        case _:
            with {"dask": dask, "ray": ray, "loky": loky}[kind]() as executor:
                yield executor


@pytest.fixture(
    scope="session", params=[pytest.param(kind, marks=marks, id=kind) for kind, marks in KINDS.items()]
)
def executor(request: pytest.FixtureRequest) -> Iterator[Executor | None]:
    with executor_of(request.param) as made:
        yield made


@pytest.fixture
def ray_address(executor: Executor | None) -> str:
    """Where the Ray of the tests runs; for tests of other processes, with `executor` of the kind "ray"."""
    import ray

    assert type(executor).__name__ == "RayExecutor"
    return str(ray.get_runtime_context().gcs_address)


@pytest.fixture
def open_backend(executor: Executor | None) -> Iterator[Open]:
    """Opens a backend for an objective; it is closed after the test."""
    with ExitStack() as stack:

        def opened(objective: Any, data: Any = None, workers: int = WORKERS, **wishes: Any) -> Backend:
            backend = backend_for(objective, data, workers, executor, **wishes)
            stack.callback(backend.close)
            return backend

        yield opened
