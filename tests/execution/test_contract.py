"""What every place does, whatever runs the trials. A new member is one line in `conftest.KINDS`."""

import asyncio
import math
import os
import sys
import time
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any

import pytest

from fabolas import Outcome
from fabolas.execution import Ended, Inline, Job, Limits, Place, Started, place_for
from fabolas.execution.base import Event

from .conftest import Open

PATIENCE = 60.0


def job(number: int, **config: Any) -> Job:
    return Job(number, config, {"size": 10 * number})


def events_until(place: Place, ended: int) -> list[Event]:
    """What happens until so many jobs have ended."""
    seen: list[Event] = []
    while sum(isinstance(event, Ended) for event in seen) < ended:
        event = place.next(PATIENCE)
        assert event is not None, f"nothing happened for {PATIENCE} s after {seen}"
        seen.append(event)
    return seen


def run(place: Place, *jobs: Job) -> dict[int, Ended]:
    for one in jobs:
        place.submit(one)
    return {event.id: event for event in events_until(place, len(jobs)) if isinstance(event, Ended)}


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
            while not Path(config["until"]).exists():
                time.sleep(0.01)
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


def test_losses_infos_and_costs_come_back_and_the_cost_is_the_objectives_own(open_place: Open) -> None:
    ended = run(open_place(moody), *(job(i, do="sleep", seconds=0.1) for i in range(5)))
    assert {number: one.loss for number, one in ended.items()} == {i: 5.0 * i for i in range(5)}
    assert all(one.status == "complete" and one.info["pid"] > 0 for one in ended.values())
    # The last ones waited for the first, and cost no more for that.
    for one in ended.values():
        assert one.cost == pytest.approx(one.info["seconds"], abs=0.05)


def test_a_job_begins_before_it_ends_and_no_more_than_the_capacity_run_at_once(open_place: Open) -> None:
    place = open_place(moody)
    for i in range(6):
        place.submit(job(i, do="sleep", seconds=0.02))
    running: set[int] = set()
    for event in events_until(place, 6):
        if isinstance(event, Started):
            running.add(event.id)
        else:
            running.remove(event.id)
        assert len(running) <= place.capacity == 2
    assert not running


def test_a_listener_hears_of_everything_before_whoever_waits_for_it(open_place: Open) -> None:
    place, heard = open_place(moody), list[Event]()
    place.listen(heard.append)
    for i in range(4):
        place.submit(job(i, do="sleep", seconds=0.02))
    seen: list[Event] = []
    while sum(isinstance(event, Ended) for event in seen) < 4:
        event = place.next(PATIENCE)
        assert event is not None
        assert event in heard
        seen.append(event)
    assert sorted(map(repr, seen)) == sorted(map(repr, heard))


def test_whatever_the_objective_does_is_the_trials_outcome(open_place: Open) -> None:
    returned = {0: math.nan, 1: None, 2: "0.5", 3: math.inf, 4: [0.1]}
    jobs = [job(i, do="return", value=value) for i, value in returned.items()]
    raised = [job(5, do="raise"), job(6, do="exit"), job(8, do="cancel")]
    ended = run(open_place(moody), *jobs, *raised, job(7, do="return", value=2))
    assert {i for i, one in ended.items() if one.status == "complete"} == {7}
    assert {i for i, one in ended.items() if one.status == "failed"} == {*range(7), 8}
    for i in returned:
        assert (ended[i].error or "").startswith("the objective must return a finite number or an Outcome")
    assert "ZeroDivisionError: no rows of class 3" in (ended[5].error or "")
    assert "in moody" in (ended[5].error or "")
    assert "task.py" not in (ended[5].error or "")
    assert "SystemExit: 3" in (ended[6].error or "")
    assert "CancelledError: no exception like others" in (ended[8].error or "")
    assert all(one.cost > 0 for one in ended.values())


def test_an_answer_that_cannot_even_be_looked_at_fails_only_its_trial(open_place: Open) -> None:
    for place in (Inline(moody), open_place(moody)):
        ended = run(place, job(0, do="huge"), job(1, do="shy"))
        assert [ended[i].status for i in range(2)] == ["failed", "failed"]
        assert "finite number or an Outcome, got 1000" in (ended[0].error or "")
        assert "got <Shy, whose repr raises RuntimeError>" in (ended[1].error or "")


def test_an_info_of_types_that_others_do_not_know_comes_back_in_those_of_json(open_place: Open) -> None:
    for place in (Inline(moody), open_place(moody)):
        ended = run(place, job(0, do="enumerate"))[0]
        assert (ended.status, ended.error) == ("complete", None)
        assert ended.info == {"kind": "a", "level": 1, "shy": "<Shy, whose repr raises RuntimeError>"}
        assert [type(ended.info[name]) for name in ("kind", "level")] == [str, int]


def test_closures_go_wherever_trials_run(open_place: Open) -> None:
    factor = 3.0
    place = open_place(lambda config, size: factor * config["x"])
    assert run(place, job(0, x=2.0))[0].loss == 6.0


class Counted:
    """Data that count in a file how often they were loaded."""

    def __init__(self, log: Path) -> None:
        self.log = log

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state
        with self.log.open("a") as file:
            file.write(f"{os.getpid()}\n")


def test_data_arrive_by_name_and_are_loaded_once_a_worker(open_place: Open, tmp_path: Path) -> None:
    log = tmp_path / "loaded"
    log.touch()
    place = open_place(lambda config, size, data: len(str(data.log)), Counted(log))
    ended = run(place, *(job(i) for i in range(8)))
    assert {one.loss for one in ended.values()} == {len(str(log))}
    loaded = log.read_text().split()
    assert len(loaded) == len(set(loaded)) <= 2


def test_what_waits_can_be_withdrawn_and_what_runs_cannot(open_place: Open, tmp_path: Path) -> None:
    place = open_place(moody)
    for i in range(3):
        place.submit(job(i, do="wait", until=str(tmp_path / "go")))
    assert {place.next(PATIENCE), place.next(PATIENCE)} == {Started(0), Started(1)}
    assert [place.withdraw(i) for i in range(3)] == [False, False, True]
    (tmp_path / "go").touch()
    assert {event.id for event in events_until(place, 2)} == {0, 1}
    assert place.next(0.2) is None


def test_wake_ends_the_waiting(open_place: Open) -> None:
    place = open_place(moody)
    place.wake()
    assert place.next(PATIENCE) is None


def test_wake_does_not_hide_what_has_happened_from_who_does_not_wait(open_place: Open) -> None:
    place, heard = open_place(moody), list[Event]()
    place.listen(heard.append)
    place.wake()
    place.wake()
    place.submit(job(0, do="return", value=0.5))
    if place.ahead:
        deadline = time.monotonic() + PATIENCE
        while len(heard) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        place.close()
    assert [type(event) for event in iter(lambda: place.next(0.0), None)] == [Started, Ended]


def test_closing_does_not_wait_for_what_runs(open_place: Open, executor: Any) -> None:
    if type(executor).__name__ in ("ThreadPoolExecutor", "ProcessPoolExecutor"):
        pytest.skip("the executor itself waits for its tasks when it is shut down after the test")
    place = open_place(moody)
    place.submit(job(0, do="sleep", seconds=500))
    assert place.next(PATIENCE) == Started(0)
    place.close()
    place.close()
    ended = place.next(0.0)
    assert isinstance(ended, Ended)
    assert ended.status == "lost"


def test_inline_keeps_the_same_contract_one_at_a_time() -> None:
    place: Place = Inline(moody)
    ended = run(
        place,
        job(0, do="return", value=0.25),
        job(1, do="raise"),
        job(2, do="exit"),
        job(3, do="sleep", seconds=0),
        job(4, do="cancel"),
    )
    assert [one.status for one in ended.values()] == ["complete", "failed", "failed", "complete", "failed"]
    assert (ended[0].loss, ended[3].info["pid"]) == (0.25, os.getpid())
    place.submit(job(5, do="return", value=1))
    assert place.withdraw(5)
    assert place.next() is None


def test_one_worker_without_limits_is_inline_and_with_limits_a_process() -> None:
    assert isinstance(place_for(moody), Inline)
    assert isinstance(place_for(moody, workers=1), Inline)
    place = place_for(lambda config, size: os.getpid(), limits=Limits(60.0))
    try:
        assert place.capacity == 1
        assert run(place, job(0))[0].loss != os.getpid()
    finally:
        place.close()
