"""The answer of a run is the last one of its trajectory, and everything that shows a finished study shows it."""

import html
import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.svm import SVC

import fabolas
from fabolas import Float, Incumbent, Outcome, Result
from fabolas.cli import main
from fabolas.dashboard.comparison import compute as compare
from fabolas.dashboard.pages import directory_sections
from fabolas.dashboard.watched import WatchedDirectory
from fabolas.plots.history import compute as history_of
from fabolas.report.answer import Answer, plus_minus
from fabolas.sklearn import FabolasSearchCV
from tests.helpers.clock import Clock

FULL = 10_000
SPACE = {"x": Float(0.0, 1.0)}, {"size": (100, FULL)}
N_TRIALS = 14


def wobbly(config: dict[str, Any], size: int) -> Outcome:
    """A flat loss with an error like noise, so that the incumbent is often not a verified configuration."""
    error = 0.05 * np.sin(1e4 * config["x"] + size)
    loss = 0.1 + 0.05 * (config["x"] - 0.4) ** 2 + 0.02 * (FULL / size) ** 0.5 + error
    return Outcome(loss, cost=10.0 * size / FULL)


def minimized(objective: Any = wobbly, **settings: Any) -> Result:
    usual: dict[str, Any] = {"seed": 0, "max_trials": N_TRIALS, "overhead": 0.001, "effort": 0.0}
    return fabolas.minimize(objective, *SPACE, progress=False, clock=Clock(), **(usual | settings))


def answer_of(result: Result) -> Incumbent:
    """The answer of a run; the incumbent that it computed after the last trial must be another configuration."""
    incumbent, answer = result.strategy.incumbent(result.history), result.incumbent()
    assert incumbent is not None
    assert answer is not None
    assert answer.verified
    assert not incumbent.verified  # otherwise the test would show nothing
    return answer


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    path = tmp_path_factory.mktemp("finished") / "study.db"
    return minimized(storage=path), path


def test_the_trajectory_of_a_run_ends_with_its_answer(finished: tuple[Result, Path]) -> None:
    result, path = finished
    answer = answer_of(result)
    assert result.trajectory[-1] == (result.trials[-1].elapsed, answer)
    assert fabolas.load(path).trajectory == result.trajectory
    seconds = [when for when, _ in result.trajectory]
    assert seconds == sorted(seconds)
    assert len(seconds) == N_TRIALS + 1  # after each trial, and at the end


def test_the_trajectory_of_an_interrupted_run_ends_with_its_answer(tmp_path: Path) -> None:
    calls: list[int] = []

    def interrupted_in_last_trial(config: dict[str, Any], size: int) -> Outcome:
        calls.append(size)
        if len(calls) == N_TRIALS:
            os.kill(os.getpid(), signal.SIGINT)
        return wobbly(config, size)

    result = minimized(interrupted_in_last_trial, storage=tmp_path / "study.db")
    assert result.interrupted
    answer = answer_of(result)
    assert result.trajectory[-1][1] == answer
    assert fabolas.load(tmp_path / "study.db").trajectory[-1][1] == answer


def test_each_run_of_a_study_adds_its_answer_once(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    first, second = minimized(storage=path), minimized(storage=path, max_trials=N_TRIALS + 2)
    assert second.trajectory[: len(first.trajectory)] == first.trajectory
    assert second.trajectory[-1][1] == answer_of(second)
    again = minimized(storage=path, max_trials=N_TRIALS + 2)  # runs nothing
    assert again.trajectory == second.trajectory
    without = minimized(
        storage=path, max_trials=N_TRIALS + 2, verify=False
    )  # runs nothing, and answers otherwise
    assert without.trajectory[:-1] == second.trajectory
    assert not without.verified
    for result in (without, fabolas.load(path)):
        assert result.trajectory[-1][1] == result.incumbent() == without.incumbent()


def test_everything_that_shows_a_finished_study_shows_the_answer_of_its_run(
    finished: tuple[Result, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    result, path = finished
    answer, loaded = answer_of(result), fabolas.load(path)
    assert loaded.incumbent() == answer
    assert Answer.of(loaded).incumbent == Answer.of(result).incumbent == answer
    for study in (loaded, result):
        record = history_of(study)
        assert (record.loss[-1], record.verified[-1]) == (answer.loss, True)
        assert (np.diff(record.time) > 0).all()
    for command in ("status", "best"):
        assert main([command, str(path), "--json"]) == 0
        printed = json.loads(capsys.readouterr().out)
        shown = printed["best"] if command == "status" else printed
        assert (shown["config"], shown["predicted_loss"]) == (answer.config, answer.loss)
        assert shown["verified"]
    (line,) = compare({"study.db": loaded}).lines
    assert (line.loss[-1], line.verified) == (answer.loss, True)
    table = html.unescape(str(directory_sections(WatchedDirectory(path.parent))["studies"]))
    assert f"<td>{plus_minus(answer.loss, answer.std)}</td><td>yes</td>" in table


def test_the_file_of_a_scikit_learn_search_shows_one_answer(tmp_path: Path) -> None:
    X, y = load_digits(return_X_y=True)
    space = {"C": [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0], "gamma": [1e-5, 1e-4, 1e-3, 1e-2]}
    path = tmp_path / "search.db"
    search = FabolasSearchCV(SVC(), space, n_iter=8, cv=2, random_state=0, storage=path, refit=False)
    search.fit(X[:600], y[:600])
    loaded = fabolas.load(path)
    answer = loaded.incumbent()
    assert answer is not None
    assert answer.verified
    assert loaded.trajectory[-1][1] == search.trajectory_[-1][1] == answer
