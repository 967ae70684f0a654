"""Outcomes that workers return while the study computes a suggestion: they are kept at once."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import fabolas
from fabolas import Float, Result, Space, Study
from fabolas.execution import Ended, Started
from fabolas.storage import SqliteStorage
from fabolas.storage.reader import read
from fabolas.strategies.random import Random
from fabolas.trials import Suggestion, Trial
from tests.helpers.waiting import wait_until

SPACE = Space({"x": Float(0.0, 1.0)}, {"size": (10, 1000)})


def study(path: Any, **settings: Any) -> Study:
    return Study(SPACE, strategy="random", storage=path, seed=3, overhead=0.1, **settings)


@pytest.mark.parametrize(
    "ended",
    [
        Ended(0, "complete", 1 / 3, 0.7, {"rows": (1, 2)}),
        Ended(0, "complete", 0.5, 0.0),
        Ended(0, "failed", None, 0.7, error="boom"),
        Ended(0, "failed", None, 0.0, error=""),
    ],
)
def test_an_early_outcome_becomes_the_trial_that_tell_would_have_made(ended: Ended, tmp_path: Path) -> None:
    """One study is told the outcome; the process of the other one ends when the storage had the outcome."""

    with study(tmp_path / "told.db") as told:
        suggestion = told.ask()
        if ended.status == "complete":
            told.tell(suggestion, ended.loss or 0.0, cost=1.0, info=ended.info)
        else:
            told.fail(suggestion, "boom", cost=1.0)
    with study(tmp_path / "study.db") as gone:
        gone.ask(queued=True)
        gone.save_event(Started(0, at=100.0), 2.5)
        gone.save_event(ended, 2.5)
        assert (gone.trials, len(gone.pending)) == ((), 1)  # it was told nothing
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


def test_early_outcomes_come_before_abandoned_ones_and_elapsed_never_decreases(tmp_path: Path) -> None:
    with study(tmp_path / "study.db") as s:
        for _ in range(4):
            s.ask()
        s.save_event(Ended(3, "complete", 0.5, 1.0), 2.0)
        s.save_event(Ended(1, "complete", 0.25, 1.0), 2.0)
        s.tell_outcome(Ended(3, "complete", 0.5, 1.0), 4.0)  # told after the other one was stored
    with study(tmp_path / "study.db") as s:
        assert [(t.id, t.status) for t in s.trials] == [
            (3, "complete"),
            (1, "complete"),
            (2, "abandoned"),  # it was started last
            (0, "abandoned"),
        ]
        stamps = [trial.elapsed for trial in s.trials]
        assert stamps[:2] == [4.0, 4.0]
        assert stamps == sorted(stamps)


def test_an_early_outcome_is_kept_when_its_suggestion_is_abandoned(tmp_path: Path) -> None:
    with study(tmp_path / "study.db") as s:
        for _ in range(3):
            s.ask()
        s.save_event(Ended(0, "complete", 0.5, 1.0, {"rows": 7}))
        s.save_event(Ended(1, "failed", None, 1.0, error="boom"))
        for number in range(3):
            s.abandon(number, "interrupted")
        assert [(t.status, t.loss, t.info) for t in s.trials] == [
            ("complete", 0.5, {"rows": 7}),
            ("failed", None, {}),
            ("abandoned", None, {}),
        ]
        assert read(tmp_path / "study.db").trials == s.trials


def test_an_abandoned_outcome_is_not_kept_as_an_early_one(tmp_path: Path) -> None:
    with study(tmp_path / "study.db") as s:
        s.ask()
        s.save_event(Ended(0, "abandoned", error="the executor broke down"))
        assert read(tmp_path / "study.db").trials == ()


def test_a_reader_sees_an_early_outcome_as_a_trial(tmp_path: Path) -> None:
    with study(tmp_path / "study.db") as s:
        s.ask()
        s.ask()
        s.save_event(Ended(1, "complete", 0.5, 1.0))
        file = read(tmp_path / "study.db")
        assert ([t.id for t in file.trials], [w.id for w in file.started_suggestions]) == ([1], [0])


def test_a_reader_never_sees_elapsed_decrease(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    with study(path) as s:
        for _ in range(5):
            s.ask()
        for number, at in ((1, 2.0), (2, 2.5), (3, 3.0)):
            s.save_event(Ended(number, "complete", number / 8, 1.0), at)
        s.tell_outcome(Ended(2, "complete", 0.25, 1.0), 4.0)
        s.save_event(Ended(0, "failed", None, 1.0, error="boom"), 5.0)
        file = read(path)
        assert [(t.id, t.loss, t.elapsed) for t in file.trials] == [
            (2, 0.25, 4.0),
            (1, 0.125, 4.0),
            (3, 0.375, 4.0),
            (0, None, 5.0),
        ]
        assert [waiting.id for waiting in file.open_suggestions] == [4]
        assert file.history.elapsed == 5.0
    with study(path) as s:
        assert s.trials[:4] == file.trials  # a reader and the study agree


def test_threads_may_report_while_the_study_asks_and_tells(tmp_path: Path) -> None:
    with study(tmp_path / "study.db") as s:
        asked = [s.ask(queued=True) for _ in range(40)]

        def report(own: list[Suggestion]) -> None:
            for one in own:
                s.save_event(Started(one.id))
                s.save_event(Ended(one.id, "complete", one.config["x"], 1.0))

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
    """Suggests nothing until a condition holds."""

    def __init__(self, until: Callable[[], bool]) -> None:
        super().__init__(SPACE)
        self.until = until

    def suggest(self, *arguments: Any, **named: Any) -> Any:
        wait_until(self.until)
        return super().suggest(*arguments, **named)


def run(**settings: Any) -> Result:
    def objective(config: dict[str, Any], size: int) -> float:
        return float(config["x"])

    with ThreadPoolExecutor(2) as executor:
        return fabolas.minimize(
            objective, SPACE, max_trials=6, seed=3, executor=executor, progress=False, **settings
        )


def test_an_early_outcome_is_in_the_file_while_the_next_suggestion_is_computed(tmp_path: Path) -> None:
    """Each suggestion waits until all suggestions before it are in the file with their outcomes."""
    path = tmp_path / "study.db"

    def all_there() -> bool:
        file = read(path)
        return len(file.trials) == len(file.suggestions) == len(file.started)

    result = run(strategy=Waiting(all_there), storage=path)
    assert [trial.status for trial in result.trials] == ["complete"] * 6
    assert read(path).trials == result.trials


def test_an_outcome_that_cannot_be_written_early_is_written_when_told(tmp_path: Path) -> None:
    class Full(SqliteStorage):
        """Cannot write early outcomes."""

        def add_early_outcome(self, trial: Trial) -> None:
            raise RuntimeError("no room")

    result = run(strategy="random", storage=Full(tmp_path / "study.db"))
    assert len(read(tmp_path / "study.db").trials) == len(result.trials) == 6
