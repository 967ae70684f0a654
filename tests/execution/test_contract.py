"""The contract of every backend. A new kind of executor is one line in `conftest.KINDS`."""

import asyncio
import math
import os
import sys
import time
from enum import Enum, IntEnum
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fabolas import Outcome
from fabolas.execution import Backend, Ended, Inline, Job, Limits, Started, backend_for
from fabolas.execution.base import Event
from fabolas.execution.evaluate import evaluate
from tests.execution.conftest import Open
from tests.helpers.waiting import PATIENCE, wait_until


def job(number: int, **config: Any) -> Job:
    return Job(number, config, {"size": 10 * number})


def events_until(backend: Backend, ended: int) -> list[Event]:
    """The events until so many jobs have ended."""
    seen: list[Event] = []
    for _ in range(2 * ended + 1):  # a job starts once and ends once
        event = backend.next(PATIENCE)
        assert event is not None, f"nothing happened for {PATIENCE} s after {seen}"
        seen.append(event)
        if sum(isinstance(event, Ended) for event in seen) == ended:
            return seen
    raise AssertionError(f"more events than {ended} jobs have: {seen}")


def run(backend: Backend, *jobs: Job) -> dict[int, Ended]:
    for one in jobs:
        backend.submit(one)
    return {event.id: event for event in events_until(backend, len(jobs)) if isinstance(event, Ended)}


class Shy:
    def __repr__(self) -> str:
        raise RuntimeError("nobody looks at me")


def moody(config: dict[str, Any], size: int) -> Any:
    match config["do"]:
        case "return":
            return config["value"]
        case "raise":
            raise ZeroDivisionError("no rows of class 3")
        case "exit":
            sys.exit(3)
        case "cancel":
            raise asyncio.CancelledError("no exception like others")
        case "wait":
            wait_until(Path(config["until"]).exists)
            return 0.5
        case "sleep":
            start = time.perf_counter()
            time.sleep(config["seconds"])
            return Outcome(size / 2, info={"pid": os.getpid(), "seconds": time.perf_counter() - start})
        case "huge":
            return 10**400
        case "shy":
            return Shy()
        case "enumerate":
            # Of a class that only the process knows which made it, as those of a script are.
            kind = Enum("Kind", {"A": "a"}, type=str)
            level = IntEnum("Level", {"LOW": 1})
            return Outcome(0.5, info={"kind": kind["A"], "level": level["LOW"], "shy": Shy()})
    raise AssertionError(config)


@pytest.mark.slow
def test_losses_infos_and_costs_come_back_and_the_cost_is_the_time_inside_the_objective(
    open_backend: Open,
) -> None:
    ended = run(open_backend(moody), *(job(i, do="sleep", seconds=0.3) for i in range(5)))
    assert {number: one.loss for number, one in ended.items()} == {i: 5.0 * i for i in range(5)}
    assert all(one.status == "complete" and one.info["pid"] > 0 for one in ended.values())
    # The last ones waited for the first, and cost no more for that. A busy machine may delay one of them.
    beyond = sorted(one.cost - one.info["seconds"] for one in ended.values())
    assert beyond[0] > -0.01
    assert beyond[3] < 0.2


def test_a_backend_may_be_started_before_its_first_job(open_backend: Open) -> None:
    backend = open_backend(moody)
    backend.start(PATIENCE)
    assert backend.next(0.0) is None  # a start is no event
    assert run(backend, job(1, do="return", value=0.25))[1].loss == 0.25


def test_a_job_starts_before_it_ends_and_at_most_capacity_jobs_run_at_the_same_time(
    open_backend: Open,
) -> None:
    backend = open_backend(moody)
    for i in range(6):
        backend.submit(job(i, do="sleep", seconds=0.02))
    running: set[int] = set()
    for event in events_until(backend, 6):
        if isinstance(event, Started):
            running.add(event.id)
        else:
            running.remove(event.id)
        assert len(running) <= backend.capacity == 2
    assert not running


def test_a_listener_gets_every_event_before_next_returns_it(open_backend: Open) -> None:
    backend, heard = open_backend(moody), list[Event]()
    backend.listen(heard.append)
    for i in range(4):
        backend.submit(job(i, do="sleep", seconds=0.02))
    seen: list[Event] = []
    for _ in range(8):  # each of the four starts and ends
        event = backend.next(PATIENCE)
        assert event is not None
        assert event in heard
        seen.append(event)
    assert sorted(map(repr, seen)) == sorted(map(repr, heard))


def test_an_objective_that_raises_or_returns_no_number_is_a_failed_trial(open_backend: Open) -> None:
    returned = {0: math.nan, 1: None, 2: "0.5", 3: math.inf, 4: [0.1]}
    jobs = [job(i, do="return", value=value) for i, value in returned.items()]
    raised = [job(5, do="raise"), job(6, do="exit"), job(8, do="cancel")]
    ended = run(open_backend(moody), *jobs, *raised, job(7, do="return", value=2))
    assert {i for i, one in ended.items() if one.status == "complete"} == {7}
    assert {i for i, one in ended.items() if one.status == "failed"} == {*range(7), 8}
    for i in returned:
        assert (ended[i].error or "").startswith("the objective must return a finite number or an Outcome")
    assert "ZeroDivisionError: no rows of class 3" in (ended[5].error or "")
    assert "in moody" in (ended[5].error or "")
    assert "evaluate.py" not in (ended[5].error or "")
    assert "SystemExit: 3" in (ended[6].error or "")
    assert "CancelledError: no exception like others" in (ended[8].error or "")
    assert all(one.cost > 0 for one in ended.values())


def test_a_returned_object_without_a_repr_is_a_failed_trial(open_backend: Open) -> None:
    for backend in (Inline(partial(evaluate, moody, None)), open_backend(moody)):
        ended = run(backend, job(0, do="huge"), job(1, do="shy"))
        assert [ended[i].status for i in range(2)] == ["failed", "failed"]
        assert "finite number or an Outcome, got 1000" in (ended[0].error or "")
        assert "got <Shy, whose repr raises RuntimeError>" in (ended[1].error or "")


def test_the_info_comes_back_in_the_types_of_json(open_backend: Open) -> None:
    for backend in (Inline(partial(evaluate, moody, None)), open_backend(moody)):
        ended = run(backend, job(0, do="enumerate"))[0]
        assert (ended.status, ended.error) == ("complete", None)
        assert ended.info == {"kind": "a", "level": 1, "shy": "<Shy, whose repr raises RuntimeError>"}
        assert [type(ended.info[name]) for name in ("kind", "level")] == [str, int]


def test_closures_can_be_objectives_of_every_backend(open_backend: Open) -> None:
    factor = 3.0
    backend = open_backend(lambda config, size: factor * config["x"])
    assert run(backend, job(0, x=2.0))[0].loss == 6.0


class Counted:
    """Data that write to a file whenever they are loaded."""

    def __init__(self, log: Path) -> None:
        self.log = log

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state
        with self.log.open("a") as file:
            file.write(f"{os.getpid()}\n")


def test_data_are_passed_by_name_and_loaded_once_in_each_worker(open_backend: Open, tmp_path: Path) -> None:
    log = tmp_path / "loaded"
    log.touch()
    backend = open_backend(lambda config, size, data: len(str(data.log)), Counted(log))
    ended = run(backend, *(job(i) for i in range(8)))
    assert {one.loss for one in ended.values()} == {len(str(log))}
    loaded = log.read_text().split()
    assert len(loaded) == len(set(loaded)) <= 2


def test_a_waiting_job_can_be_cancelled_and_a_running_one_cannot(open_backend: Open, tmp_path: Path) -> None:
    backend = open_backend(moody)
    for i in range(3):
        backend.submit(job(i, do="wait", until=str(tmp_path / "go")))
    assert {backend.next(PATIENCE), backend.next(PATIENCE)} == {Started(0), Started(1)}
    assert [backend.cancel(i) for i in range(3)] == [False, False, True]
    (tmp_path / "go").touch()
    assert {event.id for event in events_until(backend, 2)} == {0, 1}
    assert backend.next(0.2) is None


def test_wake_makes_next_return(open_backend: Open) -> None:
    backend = open_backend(moody)
    backend.wake()
    assert backend.next(PATIENCE) is None


def test_wake_does_not_hide_events_from_next_without_a_timeout(open_backend: Open) -> None:
    backend, heard = open_backend(moody), list[Event]()
    backend.listen(heard.append)
    backend.wake()
    backend.wake()
    backend.submit(job(0, do="return", value=0.5))
    if backend.asynchronous:
        wait_until(lambda: len(heard) >= 2)
        backend.close()
    assert [type(event) for event in iter(lambda: backend.next(0.0), None)] == [Started, Ended]


def test_closing_does_not_wait_for_running_jobs(open_backend: Open, executor: Any) -> None:
    if type(executor).__name__ in ("ThreadPoolExecutor", "ProcessPoolExecutor"):
        pytest.skip("the executor itself waits for its tasks when it is shut down after the test")
    backend = open_backend(moody)
    backend.submit(job(0, do="sleep", seconds=500))
    assert backend.next(PATIENCE) == Started(0)
    backend.close()
    backend.close()
    ended = backend.next(0.0)
    assert isinstance(ended, Ended)
    assert ended.status == "abandoned"


def test_inline_runs_jobs_one_at_a_time_with_the_same_outcomes() -> None:
    backend: Backend = Inline(partial(evaluate, moody, None))
    ended = run(
        backend,
        job(0, do="return", value=0.25),
        job(1, do="raise"),
        job(2, do="exit"),
        job(3, do="sleep", seconds=0),
        job(4, do="cancel"),
    )
    assert [one.status for one in ended.values()] == ["complete", "failed", "failed", "complete", "failed"]
    assert (ended[0].loss, ended[3].info["pid"]) == (0.25, os.getpid())
    backend.submit(job(5, do="return", value=1))
    assert backend.cancel(5)
    assert backend.next() is None


def test_one_worker_runs_in_this_process_without_limits_and_in_another_one_with_limits() -> None:
    assert isinstance(backend_for(moody), Inline)
    assert isinstance(backend_for(moody, workers=1), Inline)
    backend = backend_for(lambda config, size: os.getpid(), limits=Limits(60.0))
    try:
        assert backend.capacity == 1
        assert run(backend, job(0))[0].loss != os.getpid()
    finally:
        backend.close()
