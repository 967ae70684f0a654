"""Nothing that an executor, a worker or the data do makes a backend wait for ever."""

import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from fabolas.execution import Backend, Ended, Job, Limits, Pool, Started, backend_for
from fabolas.execution.executors import ExecutorHealth, FutureWorker, SharedObjective
from tests.execution.test_contract import events_until, job, run
from tests.helpers.marks import slow
from tests.helpers.waiting import PATIENCE, wait_until


def objective(config: dict[str, Any], size: int) -> float:
    return float(size)


class Losing(Executor):
    """Never completes a future."""

    def submit(self, *arguments: Any, **named: Any) -> Any:
        return Future()


class Blocking(Executor):
    """Its submit does not return."""

    def __init__(self) -> None:
        self.released = threading.Event()

    def submit(self, *arguments: Any, **named: Any) -> Any:
        self.released.wait(PATIENCE)
        raise RuntimeError("released")


@contextmanager
def within(seconds: float) -> Iterator[None]:
    start = time.monotonic()
    yield
    assert time.monotonic() - start < seconds


def ended_of(backend: Backend) -> Ended:
    ended = events_until(backend, 1)[-1]
    assert isinstance(ended, Ended)
    return ended


def test_a_future_that_the_executor_lost_can_be_abandoned_and_the_worker_goes_on() -> None:
    backend = backend_for(objective, None, 1, Losing())
    for number in (1, 2):
        backend.submit(job(number))
        assert backend.next(PATIENCE) == Started(number)
        assert backend.next(0.1) is None
        assert not backend.abandon(99, "no such job")
        assert backend.abandon(number, "the budget is used up")
        assert not backend.abandon(number, "twice")
        ended = ended_of(backend)
        assert (ended.id, ended.status, ended.error) == (number, "abandoned", "the budget is used up")
        assert ended.cost >= 0.1
    with within(5.0):
        backend.close()


def test_an_executor_whose_submit_blocks_delays_neither_abandoning_nor_closing() -> None:
    executor = Blocking()
    backend = backend_for(objective, None, 2, executor)
    backend.submit(job(1))
    backend.submit(job(2))
    assert {backend.next(PATIENCE), backend.next(PATIENCE)} == {Started(1), Started(2)}
    assert backend.abandon(1, "the budget is used up")
    assert ended_of(backend).id == 1
    with within(5.0):
        backend.close()
    ended = ended_of(backend)
    assert (ended.id, ended.status) == (2, "abandoned")
    executor.released.set()
    assert backend.next(0.5) is None  # the late answers are ignored


def test_the_timeout_of_a_trial_ends_the_waiting_for_submit_and_what_it_returns_later_is_cancelled() -> None:
    future, released = Future[Any](), threading.Event()

    class Late(Executor):
        def submit(self, *arguments: Any, **named: Any) -> Any:
            released.wait(PATIENCE)
            return future

    backend = backend_for(objective, None, 1, Late(), Limits(0.2))
    backend.submit(Job(0, {}, {"size": 1}, timeout=0.2))
    ended = ended_of(backend)
    backend.close()
    assert ended.status == "failed"
    assert "the executor had not accepted it after 0.2 s (trial_timeout)" in (ended.error or "")
    released.set()
    wait_until(future.cancelled)


def test_the_timeout_of_a_trial_ends_the_waiting_for_a_future_that_was_lost() -> None:
    backend = backend_for(objective, None, 1, Losing(), Limits(0.2))
    backend.submit(Job(0, {}, {"size": 1}, timeout=0.2))
    ended = ended_of(backend)
    backend.close()
    assert ended.status == "failed"
    assert "timed out: no result after 0.2 s (trial_timeout), so the run stopped waiting for it" in (
        ended.error or ""
    )


def test_a_trial_in_a_thread_that_exceeds_its_timeout_fails_and_one_in_the_queue_is_not_blamed() -> None:
    released = threading.Event()

    def waiting(config: dict[str, Any], size: int) -> float:
        released.wait(PATIENCE)
        return 0.5

    with ThreadPoolExecutor(1) as executor:
        backend = backend_for(waiting, None, 2, executor)
        jobs = [Job(number, {}, {"size": 1}, timeout=0.3) for number in range(2)]
        ended = run(backend, *jobs)
        released.set()
        backend.close()
    assert sorted(one.status for one in ended.values()) == ["abandoned", "failed"]


def sleeps(config: dict[str, Any], size: int) -> float:
    time.sleep(8.0)
    return 0.5


@pytest.mark.slow
def test_a_trial_that_dask_has_not_started_within_its_timeout_is_not_blamed() -> None:
    from dask.distributed import Client, LocalCluster

    arguments: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(n_workers=1, **arguments) as cluster, Client(cluster) as client:
        executor = client.get_executor()
        backend = backend_for(sleeps, None, 2, executor)
        ended = run(backend, *(Job(number, {}, {"size": 1}, timeout=4.0) for number in range(2)))
        backend.close()
        executor.shutdown(wait=False)
    assert sorted(one.status for one in ended.values()) == ["abandoned", "failed"]
    (waited,) = (one for one in ended.values() if one.status == "abandoned")
    assert "not started by the executor in time (trial_timeout is 4 s)" in (waited.error or "")


@pytest.mark.slow
def test_one_failed_submit_costs_nothing_and_repeated_ones_end_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fabolas.execution.executors._PAUSES_SECONDS", (0.01, 0.05))

    class Flaky(ThreadPoolExecutor):
        failures = 1

        def submit(self, *arguments: Any, **named: Any) -> Any:
            if self.failures:
                self.failures -= 1
                raise ConnectionError("the network is down")
            return super().submit(*arguments, **named)

    with Flaky(1) as executor:
        backend = backend_for(objective, None, 1, executor)
        ended = run(backend, job(0), job(1))
        assert [(one.status, one.loss) for one in ended.values()] == [("complete", 0.0), ("complete", 10.0)]
        executor.failures = 100
        ended = run(backend, job(2))
        backend.close()
    assert (ended[2].status, ended[2].fatal) == ("abandoned", True)
    assert "the executor accepts no trials: ConnectionError: the network is down" in (ended[2].error or "")


def test_an_executor_that_returns_no_future_ends_the_run() -> None:
    class Forgetful(Executor):
        def submit(self, *arguments: Any, **named: Any) -> Any:
            return None

    backend = backend_for(objective, None, 1, Forgetful())
    backend.submit(job(0))
    ended = ended_of(backend)
    backend.close()
    assert (ended.status, ended.fatal) == ("abandoned", True)
    assert ended.error == "Forgetful.submit must return a concurrent.futures.Future, got None"


@pytest.mark.parametrize("wrong", [42, Ended(999, "complete", 0.5, 1.0)])
def test_an_executor_that_returns_something_else_fails_the_trial(wrong: object) -> None:
    class Confused(Executor):
        def submit(self, *arguments: Any, **named: Any) -> Any:
            future: Future[Any] = Future()
            future.set_result(wrong)
            return future

    backend = backend_for(objective, None, 1, Confused())
    backend.submit(job(0))
    ended = ended_of(backend)
    backend.close()
    assert (ended.id, ended.status) == (0, "failed")
    assert "instead of the outcome of this trial" in (ended.error or "")


class Endless:
    """Data that never finish loading."""

    def __getstate__(self) -> Any:
        return {"not": "empty"}

    def __setstate__(self, state: Any) -> None:
        time.sleep(1000)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["abandon", "close"])
def test_data_that_never_finish_loading_can_be_abandoned_without_a_timeout(how: str) -> None:
    backend = backend_for(lambda config, size, data: 0.5, Endless(), workers=2)
    backend.submit(job(0))
    assert backend.next(1.0) is None
    with within(5.0):
        if how == "abandon":
            assert backend.abandon(0, "the budget is used up")
            assert ended_of(backend).error == "the budget is used up"
        backend.close()
        if how == "close":
            assert ended_of(backend).status == "abandoned"


def half_message(config: dict[str, Any], size: int) -> float:
    """Write half a message on the pipe to the parent process, then die or go on."""
    for descriptor in range(3, 64):
        try:
            is_socket = stat.S_ISSOCK(os.fstat(descriptor).st_mode)
        except OSError:
            continue
        if is_socket:
            os.write(descriptor, config.get("bytes", b"\0\x10\0\0half"))
    if config["do"] == "die":
        if os.fork() == 0:  # the child keeps the pipe open
            time.sleep(30)
            os._exit(0)
        os._exit(7)
    return 0.5


def test_half_a_message_of_a_dead_worker_is_a_failed_trial() -> None:
    backend = backend_for(half_message, workers=2)
    with within(20.0):
        ended = run(backend, job(0, do="die"))[0]
        backend.close()
    assert ended.status == "failed"
    assert "ended with exit code 7" in (ended.error or "")


@pytest.mark.slow
def test_half_a_message_of_a_living_worker_is_waited_for_until_the_timeout_or_until_it_is_abandoned() -> None:
    backend = backend_for(half_message, workers=1, limits=Limits(60.0))
    backend.submit(Job(0, {"do": "go on"}, {"size": 1}, timeout=0.3))
    assert "timed out" in (ended_of(backend).error or "")
    backend.submit(job(1, do="go on"))
    assert backend.next(PATIENCE) == Started(1)
    assert backend.abandon(1, "the budget is used up")
    assert ended_of(backend).id == 1
    with within(5.0):
        backend.close()


@pytest.mark.parametrize("what", [b"\0\0\0\x08no pickle", *slow(b"\xff" * 12, b"\0\0\0\0")])
def test_bytes_on_a_workers_pipe_that_are_no_message_are_a_failed_trial(what: bytes) -> None:
    backend = backend_for(half_message, workers=2)
    ended = run(backend, job(0, do="go on", bytes=what), job(1, do="go on", bytes=what))
    backend.close()
    assert {one.status for one in ended.values()} == {"failed"}
    for one in ended.values():
        assert "sent something that is not a message (" in (one.error or "")
        assert one.error.endswith("Error('Ran out of input')), and was killed") or what != b"\0\0\0\0"


class Loading:
    """Data whose loading does something else."""

    def __init__(self, what: Callable[[], object]) -> None:
        self.what = what

    def __setstate__(self, state: dict[str, Callable[[], object]]) -> None:
        state["what"]()


def sleep_long() -> None:
    time.sleep(1000)


def die() -> None:
    os._exit(3)


def test_a_started_pool_runs_its_jobs_in_the_processes_that_were_started() -> None:
    backend = backend_for(lambda config, size, data: float(os.getpid()), "data", workers=2)
    backend.start(PATIENCE)
    ended = run(backend, *(job(i) for i in range(8)))
    backend.close()
    assert 1 <= len({one.loss for one in ended.values()}) <= 2


@pytest.mark.slow
def test_a_pool_does_not_wait_for_a_worker_that_dies_while_it_starts() -> None:
    backend = backend_for(lambda config, size, data: 0.5, Loading(die), workers=1, limits=Limits(60.0))
    with within(PATIENCE):
        backend.start(2 * PATIENCE)
    ended = run(backend, job(0))[0]
    backend.close()
    assert ended.status == "failed"
    assert "exit code 3 before it could start the trial, twice" in (ended.error or "")


@pytest.mark.parametrize("seconds", [0.2, 2 * PATIENCE])
def test_the_start_of_a_worker_that_hangs_is_waited_for_until_the_timeout_or_a_wake(seconds: float) -> None:
    backend = backend_for(lambda config, size, data: 0.5, Loading(sleep_long), workers=2)
    threading.Timer(0.5, backend.wake).start()
    with within(PATIENCE):
        backend.start(seconds)
        backend.close()


class Client:
    """As much of a Dask client as the health check uses."""

    def __init__(self) -> None:
        self.status, self.workers = "running", {"worker": 1}

    def nthreads(self, callback_timeout: float) -> dict[str, int]:
        if self.status == "no scheduler":
            raise TimeoutError
        return self.workers


class Cluster(Losing):
    def __init__(self) -> None:
        self._client = Client()


def lose_workers(cluster: Cluster) -> None:
    cluster._client.workers = {}


def close_client(cluster: Cluster) -> None:
    cluster._client.status = "closed"


def lose_scheduler(cluster: Cluster) -> None:
    cluster._client.status = "no scheduler"


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (lose_workers, "no workers for 0 s"),
        (lose_scheduler, "no workers for 0 s"),
        (close_client, "the Dask client is closed"),
    ],
)
def test_a_cluster_that_cannot_answer_any_more_ends_the_waiting(
    event: Callable[[Cluster], None], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fabolas.execution.executors._HEALTH_SECONDS", 0.1)
    cluster = Cluster()
    worker = FutureWorker(cluster, SharedObjective(objective))
    worker._health = ExecutorHealth(cluster, no_workers=0.3)
    backend = Pool([worker])
    backend.submit(job(0))
    assert backend.next(PATIENCE) == Started(0)
    assert backend.next(0.5) is None  # a slow trial is waited for
    event(cluster)
    ended = ended_of(backend)
    backend.close()
    assert (ended.status, ended.fatal) == ("abandoned", True)
    assert reason in (ended.error or "")


GONE_RAY = """
import sys, time
import ray
from fabolas.execution import Job, backend_for, executors
from fabolas.ray import RayExecutor
executors._HEALTH_SECONDS = 0.2
ray.init(sys.argv[1], log_to_driver=False, configure_logging=False)
with RayExecutor() as executor:
    backend = backend_for(lambda config: time.sleep(1000), None, 2, executor)
    for number in range(3):
        backend.submit(Job(number, {}, {}))
    backend.next(60.0), backend.next(60.0)
    time.sleep(0.5)
    ray.shutdown()
    for number in range(4):  # two ends, then the start and the end of the last one
        print(backend.next(60.0))
    backend.close()
assert not ray.is_initialized(), "a new Ray was started"
"""


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["ray"], indirect=True)
def test_trials_end_when_ray_is_shut_down_and_no_new_ray_is_started(ray_address: str) -> None:
    command = [sys.executable, "-c", GONE_RAY, ray_address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Ray was shut down") == 3, done.stdout + done.stderr
    assert done.stdout.count("fatal=True") == 3


@pytest.mark.slow
def test_trials_end_when_a_dask_cluster_has_lost_its_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    from dask.distributed import Client as DaskClient
    from dask.distributed import LocalCluster

    monkeypatch.setattr("fabolas.execution.executors._HEALTH_SECONDS", 0.2)
    arguments: dict[str, Any] = {"dashboard_address": ":0", "processes": True, "threads_per_worker": 1}
    with LocalCluster(n_workers=1, **arguments) as cluster, DaskClient(cluster) as client:
        executor = client.get_executor(pure=False)
        worker = FutureWorker(executor, SharedObjective(lambda config, size: time.sleep(1000)))
        worker._health = ExecutorHealth(executor, no_workers=1.0)
        backend = Pool([worker])
        backend.submit(job(0))
        assert backend.next(PATIENCE) == Started(0)
        cluster.scale(0)
        ended = ended_of(backend)
        backend.close()
    assert (ended.status, ended.fatal) == ("abandoned", True)
    assert isinstance(BrokenExecutor(), Exception)
    assert "no workers for 1 s" in (ended.error or "")
