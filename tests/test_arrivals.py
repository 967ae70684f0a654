"""Outcomes that workers report while the study thinks: kept at once, and not lost with the process."""

import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fabolas
from fabolas import Float, Result, Space, Study
from fabolas.execution import Ended, Started
from fabolas.history import Suggestion, Trial
from fabolas.reader import read
from fabolas.storage import SCHEMA, Identity, SqliteStorage
from fabolas.strategies.random import Random

SPACE = Space({"x": Float(0.0, 1.0)}, {"size": (10, 1000)})
IDENTITY = Identity(SPACE, "random", {}, seed=3)


def study(path: Any, **settings: Any) -> Study:
    return Study(SPACE, strategy="random", storage=path, seed=3, overhead=0.1, **settings)


def suggestion(number: int) -> Suggestion:
    point = SPACE.snap(np.random.default_rng(number).random((1, 2)))[0]
    return Suggestion(number, *SPACE.decode(point), point)


def test_an_arrival_comes_back_until_its_trial_is_kept(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "study.db")
    storage.open(IDENTITY)
    for number in range(3):
        storage.add_suggestion(suggestion(number), {}, 1.0)
    trials = [Trial(suggestion(n), "complete", 1 / 3, 0.5, {"n": n}, elapsed=n / 7) for n in range(3)]
    trials[1] = Trial(suggestion(1), "failed", None, 0.0, error="ä: boom")
    for number in (2, 0, 1):
        storage.add_arrival(trials[number])
    storage.add_trial(replace(trials[0], loss=0.25))
    storage.close()
    record = storage.open(IDENTITY)
    assert record.arrivals == (trials[2], trials[1])
    assert [trial.loss for trial in record.trials] == [0.25]
    assert [s.id for s in record.pending] == [1, 2]


def test_an_arrival_of_nothing_or_of_what_has_ended_or_a_second_one_is_refused(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "study.db")
    storage.open(IDENTITY)
    for number in range(2):
        storage.add_suggestion(suggestion(number), {}, 1.0)
    storage.add_trial(Trial(suggestion(0), "complete", 0.5, 1.0))
    storage.add_arrival(Trial(suggestion(1), "complete", 0.5, 1.0))
    for number, message in {0: "already ended", 1: "once", 7: "once"}.items():
        with pytest.raises(ValueError, match=message):
            storage.add_arrival(Trial(suggestion(number), "complete", 0.25, 1.0))
    storage.close()
    with pytest.raises(RuntimeError, match="not open"):
        storage.add_arrival(Trial(suggestion(1), "complete", 0.5, 1.0))


@pytest.mark.parametrize(
    "ended",
    [
        Ended(0, "complete", 1 / 3, 0.7, {"rows": (1, 2)}),
        Ended(0, "complete", 0.5, 0.0),
        Ended(0, "failed", None, 0.7, error="boom"),
        Ended(0, "failed", None, 0.0, error=""),
    ],
)
def test_an_outcome_that_was_never_told_is_what_the_run_would_have_told(ended: Ended, tmp_path: Path) -> None:
    """The run tells one study; another one's process is gone when the outcome has arrived."""

    def result(config: dict[str, Any], size: int) -> Any:
        if ended.status == "failed":
            raise ZeroDivisionError
        return fabolas.Outcome(ended.loss or 0.0, info=ended.info)

    with ThreadPoolExecutor(1) as executor:
        told = fabolas.minimize(
            result, SPACE, max_trials=1, strategy="random", seed=3, executor=executor, progress=False
        )
    with study(tmp_path / "study.db") as gone:
        gone.elapsed_by = lambda: 2.5
        gone.ask(queued=True)
        gone.arrived(Started(0, at=100.0))
        gone.arrived(ended)
        assert (gone.trials, len(gone.pending)) == ((), 1)  # it has heard of nothing
    with study(tmp_path / "study.db") as again:
        (trial,) = again.trials
        assert (trial.status, trial.loss, trial.info) == (
            told.trials[0].status,
            told.trials[0].loss,
            told.trials[0].info,
        )
        assert trial.cost == (ended.cost if ended.cost or ended.status == "failed" else 1e-6)
        assert trial.error == (None if ended.status == "complete" else ended.error or "no reason given")
        assert trial.elapsed == again.elapsed == 2.5
        assert again.ask().id == 1
    assert read(tmp_path / "study.db").started[0] == 100.0


def test_what_has_arrived_ends_before_what_is_lost_and_the_clock_never_goes_back(tmp_path: Path) -> None:
    with study(tmp_path / "study.db") as s:
        s.elapsed_by = lambda: 2.0
        for _ in range(4):
            s.ask()
        s.arrived(Ended(3, "complete", 0.5, 1.0))
        s.arrived(Ended(1, "complete", 0.25, 1.0))
        s.elapsed_by = lambda: 4.0
        s.tell(3, 0.5, 1.0)  # it was heard of later than the other one came
    with study(tmp_path / "study.db") as s:
        assert [(t.id, t.status) for t in s.trials] == [
            (3, "complete"),
            (1, "complete"),
            (2, "lost"),  # it was begun with last
            (0, "lost"),
        ]
        stamps = [trial.elapsed or 0.0 for trial in s.trials]
        assert stamps[:2] == [4.0, 4.0]
        assert stamps == sorted(stamps)


def test_what_has_arrived_is_not_given_up(tmp_path: Path) -> None:
    with study(tmp_path / "study.db") as s:
        for _ in range(3):
            s.ask()
        s.arrived(Ended(0, "complete", 0.5, 1.0, {"rows": 7}))
        s.arrived(Ended(1, "failed", None, 1.0, error="boom"))
        for number in range(3):
            s.lose(number, "interrupted")
        assert [(t.status, t.loss, t.info) for t in s.trials] == [
            ("complete", 0.5, {"rows": 7}),
            ("failed", None, {}),
            ("lost", None, {}),
        ]
        assert read(tmp_path / "study.db").trials == s.trials


def test_a_lost_outcome_is_not_kept_at_once_since_it_would_be_lost_anyway(tmp_path: Path) -> None:
    with study(tmp_path / "study.db") as s:
        s.ask()
        s.arrived(Ended(0, "lost", error="the executor broke down"))
        assert read(tmp_path / "study.db").trials == ()


def test_whoever_reads_the_file_sees_an_arrival_as_a_trial(tmp_path: Path) -> None:
    with study(tmp_path / "study.db") as s:
        s.ask()
        s.ask()
        s.arrived(Ended(1, "complete", 0.5, 1.0))
        file = read(tmp_path / "study.db")
        assert ([t.id for t in file.trials], [w.id for w in file.begun]) == ([1], [0])


def test_a_reader_never_sees_the_clock_go_back_where_what_was_heard_of_came_between(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    with study(path) as s:
        for _ in range(5):
            s.ask()
        for number, at in ((1, 2.0), (2, 2.5), (3, 3.0)):
            s.elapsed_by = lambda at=at: at
            s.arrived(Ended(number, "complete", number / 8, 1.0))
        s.elapsed_by = lambda: 4.0
        s.tell(2, 0.25, 1.0)
        s.elapsed_by = lambda: 5.0
        s.arrived(Ended(0, "failed", None, 1.0, error="boom"))
        file = read(path)
        assert [(t.id, t.loss, t.elapsed) for t in file.trials] == [
            (2, 0.25, 4.0),
            (1, 0.125, 4.0),
            (3, 0.375, 4.0),
            (0, None, 5.0),
        ]
        assert [waiting.id for waiting in file.pending] == [4]
        assert file.history.elapsed == 5.0
    with study(path) as s:
        assert s.trials[:4] == file.trials  # what was seen is what it is


def as_schema_2(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP TABLE arrival")
        connection.execute("PRAGMA user_version = 2")


def version(path: Path) -> int:
    return int.from_bytes(path.read_bytes()[60:64], "big")


def test_a_file_of_the_schema_before_is_read_as_it_is_and_upgraded_when_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    with study(path) as s:
        s.tell(s.ask(), 0.5, cost=1.0)
        s.ask()
    as_schema_2(path)
    before = path.read_bytes()
    assert len(read(path).trials) == 1
    with pytest.raises(ValueError, match="another study"):
        Study(SPACE, strategy="random", storage=path, seed=4)
    assert path.read_bytes() == before
    with study(path) as s:
        assert version(path) == SCHEMA  # also if this process is killed now
        assert [trial.status for trial in s.trials] == ["complete", "lost"]
        s.ask()
        s.arrived(Ended(2, "complete", 0.25, 1.0))
    with study(path) as s:
        assert [trial.loss for trial in s.trials] == [0.5, None, 0.25]


def test_threads_may_report_while_the_study_asks_and_tells(tmp_path: Path) -> None:
    with study(tmp_path / "study.db") as s:
        asked = [s.ask(queued=True) for _ in range(40)]

        def report(own: list[Suggestion]) -> None:
            for one in own:
                s.arrived(Started(one.id))
                s.arrived(Ended(one.id, "complete", one.config["x"], 1.0))

        threads = [threading.Thread(target=report, args=(asked[k::4],)) for k in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(20):
            s.tell(s.ask(), 0.5, cost=1.0)
        for thread in threads:
            thread.join()
        for one in asked[:10]:
            s.start(one)
            s.tell(one, one.config["x"], 1.0)
    with study(tmp_path / "study.db") as s:
        assert sorted(trial.id for trial in s.trials) == list(range(60))
        assert all(trial.status == "complete" for trial in s.trials)


class Waiting(Random):
    """Thinks until it is told to stop."""

    def __init__(self, until: Callable[[], bool]) -> None:
        super().__init__(SPACE)
        self.until = until

    def suggest(self, *arguments: Any, **named: Any) -> Any:
        deadline = time.monotonic() + 60.0
        while not self.until():
            assert time.monotonic() < deadline, "thought in vain"
            time.sleep(0.01)
        return super().suggest(*arguments, **named)


def run(**settings: Any) -> Result:
    def objective(config: dict[str, Any], size: int) -> float:
        return float(config["x"])

    with ThreadPoolExecutor(2) as executor:
        return fabolas.minimize(
            objective, SPACE, max_trials=6, seed=3, executor=executor, progress=False, **settings
        )


def test_an_outcome_is_in_the_file_before_the_thought_ends_in_which_it_came(tmp_path: Path) -> None:
    """Each suggestion is thought of until all those before it are in the file with their outcomes."""
    path = tmp_path / "study.db"

    def all_there() -> bool:
        file = read(path)
        return len(file.trials) == len(file.suggestions) == len(file.started)

    result = run(strategy=Waiting(all_there), storage=path)
    assert [trial.status for trial in result.trials] == ["complete"] * 6
    assert read(path).trials == result.trials


def test_an_outcome_that_cannot_be_kept_at_once_is_kept_when_it_is_heard_of(tmp_path: Path) -> None:
    class Full(SqliteStorage):
        """Has room now and then."""

        def add_arrival(self, trial: Trial) -> None:
            raise RuntimeError("no room")

    result = run(strategy="random", storage=Full(tmp_path / "study.db"))
    assert len(read(tmp_path / "study.db").trials) == len(result.trials) == 6


def test_a_storage_that_keeps_no_arrivals_is_written_to_by_one_thread_only(tmp_path: Path) -> None:
    class Plain:
        """The six methods that every storage has."""

        def __init__(self, inner: SqliteStorage) -> None:
            self.inner, self.threads = inner, set[int]()

        def open(self, identity: Identity) -> Any:
            return self.inner.open(identity)

        def add_suggestion(self, *arguments: Any) -> None:
            self.threads.add(threading.get_ident())
            self.inner.add_suggestion(*arguments)

        def add_start(self, *arguments: Any) -> None:
            self.threads.add(threading.get_ident())
            self.inner.add_start(*arguments)

        def remove_suggestion(self, *arguments: Any) -> None:
            self.threads.add(threading.get_ident())
            self.inner.remove_suggestion(*arguments)

        def add_trial(self, trial: Trial) -> None:
            self.threads.add(threading.get_ident())
            self.inner.add_trial(trial)

        def close(self) -> None:
            self.inner.close()

    storage = Plain(SqliteStorage(tmp_path / "study.db"))
    assert len(run(strategy="random", storage=storage).trials) == 6
    assert storage.threads == {threading.get_ident()}
