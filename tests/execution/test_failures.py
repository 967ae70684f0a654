"""What becomes of trials that hang, leak, crash or lose their worker: each takes only itself along."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest

from fabolas.execution import Ended, Job, Limits, Place, Pool, ProcessSlot, Started, place_for, processes
from fabolas.execution.choose import NO_LIMITS
from fabolas.execution.processes import pickled

from .conftest import Open, executor_of
from .test_contract import PATIENCE, events_until, job, run


def violent(config: dict[str, Any], size: int) -> float:
    match config["do"]:
        case "signal":
            os.kill(os.getpid(), config["signal"])
        case "exit":
            os._exit(7)
        case "hang":
            while True:
                time.sleep(0.01)
        case "deaf":  # to everything but SIGKILL, with a child that hangs too
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            subprocess.run(["sleep", "1000"], check=False)
        case "leak":
            held = []
            while True:
                held.append(bytearray(4_000_000))
                time.sleep(0.005)
        case "fork":  # dies and leaves a child behind that holds all it had open
            if os.fork() == 0:
                time.sleep(30)
                os._exit(0)
            os._exit(7)
    return float(config.get("x", size))


@pytest.fixture
def place() -> Any:
    made = processes(violent, None, 2, memory=400_000_000)
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


@pytest.mark.parametrize("case", CASES)
def test_a_process_that_dies_or_must_be_killed_takes_only_its_trial_along(place: Place, case: str) -> None:
    config, reason = CASES[case]
    timeout = 0.3 if case in ("hang", "deaf") else None
    bad = Job(0, config, {"size": 1}, timeout)
    ended = run(place, bad, *(job(i, do="work") for i in range(1, 5)))
    assert ended[0].status == "failed"
    assert reason in (ended[0].error or "")
    assert ended[0].cost >= (timeout or 0.0)
    assert {i: one.loss for i, one in ended.items() if i} == {i: 10.0 * i for i in range(1, 5)}


def test_a_worker_that_died_between_trials_is_replaced_and_the_next_one_not_blamed(place: Place) -> None:
    first = run(place, job(1, do="work"), job(2, do="work"))
    assert {one.status for one in first.values()} == {"complete"}
    for pid in _workers(os.getpid()):
        os.kill(pid, signal.SIGKILL)
    assert {one.status for one in run(place, job(3, do="work"), job(4, do="work")).values()} == {"complete"}


def test_a_cluster_whose_worker_is_killed_runs_the_other_trials_and_that_one_never_again(
    executor: Executor | None, open_place: Open, tmp_path: Path
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

    ended = run(open_place(fatal), job(0, do="die"), *(job(i, do="work") for i in range(1, 6)))
    assert ended[0].status == "failed"
    assert "worker" in (ended[0].error or "")
    assert ended[0].cost > 0
    assert {i: one.loss for i, one in ended.items() if i} == {i: 10.0 * i for i in range(1, 6)}
    assert len(log.read_text().split()) == 1


@pytest.mark.parametrize("kind", ["pool", "loky"])
def test_a_pool_that_breaks_down_loses_its_trials_blames_none_and_says_it_is_the_end(kind: str) -> None:
    with executor_of(kind) as executor:
        place = place_for(violent, None, 2, executor)
        ended = run(place, job(0, do="hang"), job(1, do="signal", signal=int(signal.SIGKILL)))
        assert {one.status for one in ended.values()} == {"lost"}
        assert all(one.fatal and "broke down" in (one.error or "") for one in ended.values())
        place.close()


def test_an_executor_that_was_shut_down_is_the_end() -> None:
    with executor_of("threads") as executor:
        assert executor is not None
        executor.shutdown()
        place = place_for(violent, None, 1, executor)
        ended = run(place, job(0, do="work"))[0]
        place.close()
    assert ended.fatal
    assert "takes no trials" in (ended.error or "")


def test_what_cannot_be_pickled_is_refused_with_a_sentence_where_it_would_have_to_be() -> None:
    lock = threading.Lock()

    def locked(config: dict[str, Any], size: int) -> float:
        with lock:
            return float(size)

    with pytest.raises(TypeError, match=r"must be picklable .*lock.*workers=1"):
        place_for(locked, workers=2)
    for kind, fatal in (("threads", False), ("pool", True)):
        with executor_of(kind) as executor:
            place = place_for(locked, None, 1, executor)
            ended = run(place, job(1))[1]
            place.close()
        assert ended.fatal == fatal
        assert ("must be picklable" in (ended.error or "")) == fatal


class Unloadable:
    def __reduce__(self) -> Any:
        return os.path.join, (3,)  # raises where it is loaded


@pytest.mark.parametrize("kind", ["processes", "pool"])
def test_what_cannot_be_loaded_in_a_worker_fails_with_its_traceback(kind: str) -> None:
    with executor_of(kind) as executor:
        place = place_for(lambda config, size, data: 0.5, Unloadable(), 2, executor)
        ended = run(place, job(0), job(1))
        place.close()
    for one in ended.values():
        assert one.status == "failed"
        assert "could not load the objective or its data" in (one.error or "")
        assert "TypeError" in (one.error or "")


def test_an_executor_that_breaks_like_no_other_never_leaves_the_run_waiting() -> None:
    class Torn(Executor):
        """Its futures fail with what is no Exception."""

        def submit(self, *arguments: Any, **named: Any) -> Any:
            future: Future[Any] = Future()
            future.set_exception(GeneratorExit("torn down"))
            return future

    place = place_for(violent, None, 1, Torn())
    ended = run(place, job(0, do="work"))[0]
    place.close()
    assert ended.status == "failed"
    assert "GeneratorExit: torn down" in (ended.error or "")


def test_wishes_that_contradict_each_other_are_sentences() -> None:
    with executor_of("threads") as executor:
        with pytest.raises(ValueError, match="no Executor can kill what it runs"):
            place_for(violent, executor=executor, limits=Limits(1.0))
        with pytest.raises(TypeError, match=r"must be a concurrent.futures.Executor, got 3"):
            place_for(violent, executor=3)  # type: ignore[arg-type]
    for workers in (0, -1, 1.5, "two", True):
        with pytest.raises(ValueError, match="workers must be a whole number >= 1"):
            place_for(violent, workers=workers)  # type: ignore[arg-type]

    class Silent(Executor):
        """Does not say how many workers it has."""

    with pytest.raises(
        ValueError, match="does not say how many trials it can run at once; say it: workers=8"
    ):
        place_for(violent, executor=Silent())


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
        (None, "much", "trial_memory must be an amount of memory, got 'much'"),
        (None, "2 parsecs", "trial_memory must be an amount"),
        (None, 0, "trial_memory must be at least one byte"),
    ],
)
def test_limits_that_are_none_are_sentences(timeout: Any, memory: Any, message: str) -> None:
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


def test_what_workers_print_goes_to_the_streams_of_this_process_as_they_are_then(
    capsys: pytest.CaptureFixture[str],
) -> None:
    place = place_for(talkative, workers=2)
    run(place, *(job(i, x=i) for i in range(4)))
    place.close()
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


def test_what_trials_leave_behind_is_not_blamed_on_a_later_one() -> None:
    place = place_for(hoarding, workers=1, limits=Limits(memory=400_000_000))
    ended = run(place, *(job(i) for i in range(8)))
    place.close()
    assert {(one.status, one.error) for one in ended.values()} == {("complete", None)}
    assert 2 <= len({one.loss for one in ended.values()}) <= 4  # processes


class Endless:
    def __setstate__(self, state: Any) -> None:
        time.sleep(1000)

    def __getstate__(self) -> Any:
        return {"not": "empty"}


def test_a_worker_that_never_has_its_data_loaded_is_not_waited_for_where_trials_are_limited() -> None:
    payload = pickled(lambda config, size, data: 0.5, Endless())
    place = Pool([ProcessSlot(payload, loading=1.0)])
    ended = run(place, Job(0, {}, {"size": 1}, timeout=0.5))[0]
    place.close()
    assert ended.status == "failed"
    assert "had not loaded the objective and its data after 1 s" in (ended.error or "")


HANGING = "import os, time\nif 'FABOLAS_TEST_HANG' in os.environ: time.sleep(1000)\n"


@pytest.fixture
def hanging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python itself never comes to its first line, in a process that is started now."""
    (tmp_path / "sitecustomize.py").write_text(HANGING)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("FABOLAS_TEST_HANG", "1")


@pytest.mark.usefixtures("hanging")
def test_a_worker_that_never_reads_its_data_is_not_waited_for_where_trials_are_limited() -> None:
    payload = pickled(lambda config, size, data: 0.5, bytes(5_000_000))  # more than fits in a pipe
    place = Pool([ProcessSlot(payload, loading=0.5)])
    ended = run(place, Job(0, {}, {"size": 1}, timeout=0.5))[0]
    place.close()
    assert ended.status == "failed"
    assert "had not loaded the objective and its data after 0.5 s" in (ended.error or "")


@pytest.mark.usefixtures("hanging")
def test_a_worker_that_never_reads_its_data_can_be_stopped() -> None:
    place = place_for(lambda config, size, data: 0.5, bytes(5_000_000), workers=2)
    place.submit(job(0))
    assert place.next(0.5) is None
    before = threading.active_count()
    place.close()
    assert [event.id for event in events_until(place, 1)] == [0]
    assert (
        threading.active_count() == before - 5
    )  # two slots; of one process two streams and what is sent to it


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
    place = place_for(threads_of, workers=2)
    ended = run(place, job(0))
    place.close()
    assert ended[0].loss == (max(1, cores // 2) if mine is None else 5.0)


DEAF = """
import os, re, subprocess, sys, time
from fabolas.execution import Job, place_for
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
place = place_for(deaf, workers=2)
place.submit(Job(0, {}, {}))
place.next()
time.sleep(1000)
"""


def _workers(parent: int) -> list[int]:
    found = subprocess.run(
        ["pgrep", "-P", str(parent), "-f", "fabolas.execution.worker"], capture_output=True, check=False
    )
    return [int(pid) for pid in found.stdout.split()]


def test_a_worker_does_not_outlive_its_parent_before_python_has_started_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(HANGING)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    parent = subprocess.Popen([sys.executable, "-c", DEAF, str(tmp_path / "pid"), "starting"])
    deadline = time.monotonic() + PATIENCE
    while not (left := _workers(parent.pid)):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    parent.kill()
    parent.wait()
    while any(_alive(pid) for pid in left):
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("how", ["sleeping", "deaf"])
def test_neither_workers_nor_what_they_started_outlive_a_parent_that_was_killed(
    tmp_path: Path, how: str
) -> None:
    mark = tmp_path / "pid"
    parent = subprocess.Popen([sys.executable, "-c", DEAF, str(mark), how])
    deadline = time.monotonic() + PATIENCE
    while not mark.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    parent.kill()
    parent.wait()
    left = [int(pid) for pid in mark.read_text().split()]
    while any(_alive(pid) for pid in left):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _alive(pid: int) -> bool:
    try:
        # An orphan that nobody has waited for yet is a zombie, and dead.
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_closed_pool_takes_nothing_and_leaves_no_thread(place: Place) -> None:
    place.submit(job(0, do="hang"))
    assert place.next(PATIENCE) == Started(0)
    before = threading.active_count()
    place.close()
    ended = events_until(place, 1)[-1]
    assert isinstance(ended, Ended)
    assert (ended.status, ended.id) == ("lost", 0)
    assert threading.active_count() == before - 4  # two slots, and the two streams of one process
    with pytest.raises(RuntimeError, match="closed"):
        place.submit(job(1, do="work"))
