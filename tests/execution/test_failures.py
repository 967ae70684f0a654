"""Trials that hang, leak memory, crash or lose their worker: each fails alone."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import psutil
import pytest

from fabolas.execution import (
    NO_LIMITS,
    Backend,
    Ended,
    Job,
    Limits,
    Pool,
    ProcessWorker,
    Started,
    backend_for,
    process_pool,
)
from fabolas.execution.processes import pickle_objective
from tests.execution.conftest import Open, executor_of
from tests.execution.test_contract import events_until, job, run
from tests.helpers.marks import slow
from tests.helpers.waiting import PATIENCE, wait_until


def violent(config: dict[str, Any], size: int) -> float:
    match config["do"]:
        case "signal":
            os.kill(os.getpid(), config["signal"])
        case "exit":
            os._exit(7)
        case "hang":
            time.sleep(1000)
        case "deaf":  # to everything but SIGKILL, with a child that hangs too
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            subprocess.run(["sleep", "1000"], check=False)
        case "leak":
            held = []
            for _ in range(300):  # three times what is allowed
                held.append(bytearray(4_000_000))
                time.sleep(0.005)
        case "fork":  # dies and leaves a child behind that holds all it had open
            if os.fork() == 0:
                time.sleep(30)
                os._exit(0)
            os._exit(7)
    return float(config.get("x", size))


@pytest.fixture
def backend() -> Any:
    made = process_pool(violent, None, 2, memory=400_000_000)
    yield made
    made.close()


CASES = {
    "segfault": ({"do": "signal", "signal": signal.SIGSEGV}, "killed by signal 11 (SIGSEGV)"),
    "killed": ({"do": "signal", "signal": signal.SIGKILL}, "killed by signal 9 (SIGKILL)"),
    "exit": ({"do": "exit"}, "ended with exit code 7"),
    "hang": ({"do": "hang"}, "timed out: not finished after 0.3 s (trial_timeout)"),
    "deaf": ({"do": "deaf"}, "timed out: not finished after 0.3 s (trial_timeout)"),
    "leak": ({"do": "leak"}, "more than 400 MB (trial_memory)"),
    "fork": ({"do": "fork"}, "ended with exit code 7"),
}


@pytest.mark.parametrize(
    "case", ["killed", "hang", *slow(*(case for case in CASES if case not in ("killed", "hang")))]
)
def test_a_process_that_dies_or_is_killed_loses_only_its_own_trial(backend: Backend, case: str) -> None:
    config, reason = CASES[case]
    timeout = 0.3 if case in ("hang", "deaf") else None
    bad = Job(0, config, {"size": 1}, timeout)
    ended = run(backend, bad, *(job(i, do="work") for i in range(1, 5)))
    assert ended[0].status == "failed"
    assert reason in (ended[0].error or "")
    assert ended[0].cost >= (timeout or 0.0)
    assert {i: one.loss for i, one in ended.items() if i} == {i: 10.0 * i for i in range(1, 5)}


@pytest.mark.slow
def test_a_worker_that_died_between_trials_is_replaced_and_the_next_trial_completes(backend: Backend) -> None:
    first = run(backend, job(1, do="work"), job(2, do="work"))
    assert {one.status for one in first.values()} == {"complete"}
    for pid in _workers(os.getpid()):
        os.kill(pid, signal.SIGKILL)
    assert {one.status for one in run(backend, job(3, do="work"), job(4, do="work")).values()} == {"complete"}


def test_a_cluster_does_not_repeat_the_trial_of_a_killed_worker_and_runs_the_others(
    executor: Executor | None, open_backend: Open, tmp_path: Path
) -> None:
    if type(executor).__name__ not in ("ClientExecutor", "RayExecutor"):
        pytest.skip("for the clusters")
    log = tmp_path / "calls"

    def fatal(config: dict[str, Any], size: int) -> float:
        if config["do"] == "die":
            with log.open("a") as file:
                file.write(f"{os.getpid()}\n")
            os.kill(os.getpid(), signal.SIGKILL)
        return float(size)

    ended = run(open_backend(fatal), job(0, do="die"), *(job(i, do="work") for i in range(1, 6)))
    assert ended[0].status == "failed"
    assert "worker" in (ended[0].error or "")
    assert ended[0].cost > 0
    assert {i: one.loss for i, one in ended.items() if i} == {i: 10.0 * i for i in range(1, 6)}
    assert len(log.read_text().split()) == 1


@pytest.mark.parametrize("kind", ["pool", *slow("loky")])
def test_all_trials_of_a_broken_pool_are_abandoned_and_the_pool_can_run_no_other(kind: str) -> None:
    with executor_of(kind) as executor:
        backend = backend_for(violent, None, 2, executor)
        ended = run(backend, job(0, do="hang"), job(1, do="signal", signal=int(signal.SIGKILL)))
        assert {one.status for one in ended.values()} == {"abandoned"}
        assert all(one.fatal and "broke down" in (one.error or "") for one in ended.values())
        backend.close()


@pytest.mark.slow
def test_an_executor_that_was_shut_down_can_run_no_trial() -> None:
    with executor_of("threads") as executor:
        assert executor is not None
        executor.shutdown()
        backend = backend_for(violent, None, 1, executor)
        ended = run(backend, job(0, do="work"))[0]
        backend.close()
    assert ended.fatal
    assert "accepts no trials" in (ended.error or "")


def test_an_objective_that_cannot_be_pickled_is_refused_only_by_backends_that_pickle_it() -> None:
    lock = threading.Lock()

    def locked(config: dict[str, Any], size: int) -> float:
        with lock:
            return float(size)

    with pytest.raises(TypeError, match=r"must be picklable .*lock.*workers=1"):
        backend_for(locked, workers=2)
    for kind, fatal in (("threads", False), ("pool", True)):
        with executor_of(kind) as executor:
            backend = backend_for(locked, None, 1, executor)
            ended = run(backend, job(1))[1]
            backend.close()
        assert ended.fatal == fatal
        assert ("must be picklable" in (ended.error or "")) == fatal


class Unloadable:
    def __reduce__(self) -> Any:
        return os.path.join, (3,)  # raises where it is loaded


@pytest.mark.parametrize("kind", ["processes", *slow("pool")])
def test_data_that_cannot_be_loaded_in_a_worker_fail_the_trial_with_the_traceback(kind: str) -> None:
    with executor_of(kind) as executor:
        backend = backend_for(lambda config, size, data: 0.5, Unloadable(), 2, executor)
        ended = run(backend, job(0), job(1))
        backend.close()
    for one in ended.values():
        assert one.status == "failed"
        assert "could not load the objective or its data" in (one.error or "")
        assert "TypeError" in (one.error or "")


def test_a_future_that_fails_with_a_base_exception_is_a_failed_trial() -> None:
    class Torn(Executor):
        """Its futures fail with an error that is not an Exception."""

        def submit(self, *arguments: Any, **named: Any) -> Any:
            future: Future[Any] = Future()
            future.set_exception(GeneratorExit("torn down"))
            return future

    backend = backend_for(violent, None, 1, Torn())
    ended = run(backend, job(0, do="work"))[0]
    backend.close()
    assert ended.status == "failed"
    assert "GeneratorExit: torn down" in (ended.error or "")


def test_arguments_that_contradict_each_other_are_refused() -> None:
    with executor_of("threads") as executor:
        with pytest.raises(ValueError, match="trial_memory does not work with executor="):
            backend_for(violent, executor=executor, limits=Limits(memory=1_000_000))
        with pytest.raises(TypeError, match=r"must be a concurrent.futures.Executor, .*; got 3"):
            backend_for(violent, executor=3)  # type: ignore[arg-type]
    for workers in (0, -1, 1.5, "two", True):
        with pytest.raises(ValueError, match="workers must be a whole number >= 1"):
            backend_for(violent, workers=workers)  # type: ignore[arg-type]

    class Silent(Executor):
        """Does not say how many workers it has."""

    with pytest.raises(
        ValueError,
        match="does not say how many trials it can run at the same time; give the number: workers=8",
    ):
        backend_for(violent, executor=Silent())


@pytest.mark.parametrize(
    ("timeout", "memory", "expected"),
    [
        (None, None, NO_LIMITS),
        (90, "2GB", Limits(90.0, 2_000_000_000)),
        ("10m", 1e6, Limits(600.0, 1_000_000)),
        ("auto", "1.5 GiB", Limits("auto", 1_610_612_736)),
        (None, "500mb", Limits(None, 500_000_000)),
    ],
)
def test_limits_are_read_as_people_write_them(timeout: Any, memory: Any, expected: Limits) -> None:
    assert Limits.of(timeout, memory) == expected
    assert bool(expected) == (expected != NO_LIMITS)


@pytest.mark.parametrize(
    ("timeout", "memory", "message"),
    [
        ("soon", None, "trial_timeout must be a duration, got 'soon'"),
        (0, None, "trial_timeout must be more than 0"),
        (None, "much", "trial_memory must be an amount of bytes, got 'much'"),
        (None, "2 parsecs", "trial_memory must be an amount"),
        (None, 0, "trial_memory must be at least one byte"),
    ],
)
def test_limits_that_cannot_be_parsed_are_refused(timeout: Any, memory: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Limits.of(timeout, memory)


def test_the_automatic_timeout_follows_the_prediction_then_the_longest_trial_and_has_a_floor() -> None:
    auto = Limits("auto")
    assert auto.timeout(predicted=60.0, longest=1.0) == 600.0
    assert auto.timeout(predicted=0.1, longest=1.0) == 30.0
    assert auto.timeout(predicted=None, longest=2.0) == 200.0
    assert auto.timeout(predicted=None, longest=0.1) == 30.0
    assert auto.timeout(predicted=None, longest=None) is None
    assert Limits(5.0).timeout(predicted=60.0, longest=60.0) == 5.0
    assert NO_LIMITS.timeout(predicted=60.0, longest=60.0) is None


def talkative(config: dict[str, Any], size: int) -> float:
    print(f"line {config['x']} ünd \udcff")
    print("unended", end="", file=sys.stderr)
    os.system("echo from a process of its own")
    if config["x"] == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return 0.5


@pytest.mark.slow
def test_the_output_of_workers_goes_to_the_present_streams_of_this_process(
    capsys: pytest.CaptureFixture[str],
) -> None:
    backend = backend_for(talkative, workers=2)
    run(backend, *(job(i, x=i) for i in range(4)))
    backend.close()
    out, err = capsys.readouterr()
    assert sorted(line for line in out.splitlines() if "line" in line) == [
        f"line {i} ünd \\udcff" for i in range(4)
    ]
    assert out.count("from a process of its own\n") == 4
    assert err.count("unended") >= 3  # what was killed had no time to flush it


def hoarding(config: dict[str, Any], size: int) -> float:
    kept = sys.__dict__.setdefault("kept", [])
    kept.append(bytearray(os.urandom(1)) * 60_000_000)
    time.sleep(0.12)  # long enough to be looked at
    return float(os.getpid())


@pytest.mark.slow
def test_memory_that_earlier_trials_left_in_use_does_not_fail_a_later_one() -> None:
    backend = backend_for(hoarding, workers=1, limits=Limits(memory=400_000_000))
    ended = run(backend, *(job(i) for i in range(8)))
    backend.close()
    assert {(one.status, one.error) for one in ended.values()} == {("complete", None)}
    assert 2 <= len({one.loss for one in ended.values()}) <= 4  # processes


class Endless:
    def __setstate__(self, state: Any) -> None:
        time.sleep(1000)

    def __getstate__(self) -> Any:
        return {"not": "empty"}


@pytest.mark.slow
def test_data_that_never_finish_loading_fail_the_trial_if_trials_have_a_timeout() -> None:
    payload = pickle_objective(lambda config, size, data: 0.5, Endless())
    backend = Pool([ProcessWorker(payload, load_timeout=1.0)])
    ended = run(backend, Job(0, {}, {"size": 1}, timeout=0.5))[0]
    backend.close()
    assert ended.status == "failed"
    assert "had not loaded the objective and its data after 1 s" in (ended.error or "")


HANGING = "import os, time\nif 'FABOLAS_TEST_HANG' in os.environ: time.sleep(1000)\n"


@pytest.fixture
def hanging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is started now never gets to the first line of its program."""
    (tmp_path / "sitecustomize.py").write_text(HANGING)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("FABOLAS_TEST_HANG", "1")


@pytest.mark.usefixtures("hanging")
def test_a_worker_that_never_reads_its_data_fails_the_trial_if_trials_have_a_timeout() -> None:
    payload = pickle_objective(lambda config, size, data: 0.5, bytes(5_000_000))  # more than fits in a pipe
    backend = Pool([ProcessWorker(payload, load_timeout=0.5)])
    ended = run(backend, Job(0, {}, {"size": 1}, timeout=0.5))[0]
    backend.close()
    assert ended.status == "failed"
    assert "had not loaded the objective and its data after 0.5 s" in (ended.error or "")


@pytest.mark.usefixtures("hanging")
def test_a_worker_that_never_reads_its_data_can_be_stopped() -> None:
    backend = backend_for(lambda config, size, data: 0.5, bytes(5_000_000), workers=2)
    backend.submit(job(0))
    assert backend.next(0.5) is None
    before = threading.active_count()
    backend.close()
    assert [event.id for event in events_until(backend, 1)] == [0]
    assert (
        threading.active_count() == before - 6
    )  # two workers; two streams, sender and receiver of one process


def threads_of(config: dict[str, Any], size: int) -> float:
    return float(os.environ["OMP_NUM_THREADS"])


@pytest.mark.parametrize("mine", [None, "5"])
def test_numerical_libraries_share_the_cores_unless_the_user_has_said_otherwise(
    mine: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    if mine is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", mine)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    backend = backend_for(threads_of, workers=2)
    ended = run(backend, job(0))
    backend.close()
    assert ended[0].loss == (max(1, cores // 2) if mine is None else 5.0)


DEAF = """
import os, re, subprocess, sys, time
from fabolas.execution import Job, backend_for
def deaf(config):
    child = subprocess.Popen(["sleep", "1000"])
    with open(sys.argv[1] + ".draft", "w") as file:
        file.write(f"{os.getpid()} {child.pid}")
    os.rename(sys.argv[1] + ".draft", sys.argv[1])
    if sys.argv[2] == "sleeping":
        time.sleep(1000)
    re.match("(a+)+$", "a" * 60 + "b")  # for ever, and no other thread may run meanwhile
if sys.argv[2] == "starting":
    os.environ["FABOLAS_TEST_HANG"] = "1"
backend = backend_for(deaf, workers=2)
backend.submit(Job(0, {}, {}))
backend.next()
time.sleep(1000)
"""


def _workers(parent: int) -> list[int]:
    children = psutil.Process(parent).children()
    return [child.pid for child in children if any("fabolas.execution.worker" in a for a in child.cmdline())]


def test_a_worker_in_which_python_has_not_started_ends_with_its_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(HANGING)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    parent = subprocess.Popen([sys.executable, "-c", DEAF, str(tmp_path / "pid"), "starting"])
    left = wait_until(lambda: _workers(parent.pid))
    assert all(_alive(pid) for pid in left)
    parent.kill()
    parent.wait()
    assert wait_until(lambda: not any(_alive(pid) for pid in left))


@pytest.mark.parametrize("how", ["sleeping", "deaf"])
def test_workers_and_their_children_end_when_the_parent_is_killed(tmp_path: Path, how: str) -> None:
    mark = tmp_path / "pid"
    parent = subprocess.Popen([sys.executable, "-c", DEAF, str(mark), how])
    wait_until(mark.exists)
    parent.kill()
    parent.wait()
    left = [int(pid) for pid in mark.read_text().split()]
    assert left
    assert wait_until(lambda: not any(_alive(pid) for pid in left))


def _alive(pid: int) -> bool:
    try:
        # An orphan that nobody has waited for yet is a zombie, and dead.
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_closed_pool_accepts_no_job_and_leaves_no_thread(backend: Backend) -> None:
    backend.submit(job(0, do="hang"))
    assert backend.next(PATIENCE) == Started(0)
    before = threading.active_count()
    backend.close()
    ended = events_until(backend, 1)[-1]
    assert isinstance(ended, Ended)
    assert (ended.status, ended.id) == ("abandoned", 0)
    assert (
        threading.active_count() == before - 6
    )  # two workers; two streams, sender and receiver of one process
    with pytest.raises(RuntimeError, match="closed"):
        backend.submit(job(1, do="work"))
