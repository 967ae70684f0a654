"""An objective with a parameter ``trial`` learns its number, its worker, the budget left and its directory."""

import shutil
import time
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import fabolas
from fabolas import Outcome, TrialContext
from tests.helpers.problems import bowl, minimize


def curious(config: dict[str, Any], size: int, trial: TrialContext) -> Outcome:
    time.sleep(0.05)
    (trial.directory / "checkpoint").write_text(str(trial.number))
    left = trial.seconds_left
    return Outcome(0.5, info={"number": trial.number, "worker": trial.worker, "left": left})


def checked(result: fabolas.Result, directory: Path, workers: int) -> None:
    for trial in result.trials:
        assert trial.info["number"] == trial.id
        assert (directory / str(trial.id) / "checkpoint").read_text() == str(trial.id)
    assert {trial.info["worker"] for trial in result.trials} == set(range(workers))


def test_in_this_process(tmp_path: Path) -> None:
    result = minimize(curious, max_trials=3, trial_directory=tmp_path / "here")
    checked(result, tmp_path / "here", 1)
    assert [trial.info["left"] for trial in result.trials] == [None] * 3


@pytest.mark.slow
def test_in_worker_processes_each_of_two_workers_has_its_number(tmp_path: Path) -> None:
    result = minimize(curious, max_trials=6, workers=2, storage=tmp_path / "run.db")
    checked(result, tmp_path / "run.db-trials", 2)


@pytest.mark.parametrize("kind", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_in_executors(kind: type[Executor], tmp_path: Path) -> None:
    with kind(2) as executor:  # type: ignore[call-arg]
        result = minimize(curious, max_trials=6, executor=executor, trial_directory=tmp_path)
    checked(result, tmp_path, 2)


def test_the_time_left_is_that_of_the_budget() -> None:
    result = minimize(curious, time_budget=0.6, max_trials=3)
    left = [trial.info["left"] for trial in result.trials]
    assert all(0.0 <= seconds <= 0.6 for seconds in left)
    assert left == sorted(left, reverse=True)
    assert left[0] - left[-1] > 0.08


def test_without_a_storage_the_directories_are_temporary_files_and_kept() -> None:
    def objective(config: dict[str, Any], size: int, *, trial: TrialContext) -> Outcome:
        (trial.directory / "log.txt").touch()
        return Outcome(0.5, info={"directory": str(trial.directory)})

    result = minimize(objective, max_trials=2)
    paths = [Path(trial.info["directory"]) for trial in result.trials]
    assert [path.name for path in paths] == ["0", "1"]
    assert all(path.is_dir() for path in paths)
    shutil.rmtree(paths[0].parent)


@pytest.mark.parametrize("workers", [1, 2])
def test_only_directories_in_which_something_was_written_are_left(tmp_path: Path, workers: int) -> None:
    (tmp_path / "99").mkdir()

    def objective(config: dict[str, Any], size: int, *, trial: TrialContext) -> float:
        assert trial.directory.is_dir()
        if trial.number == 1:
            (trial.directory / "log.txt").touch()
        return 0.5

    result = minimize(objective, max_trials=3, workers=workers, trial_directory=tmp_path)
    assert [trial.status for trial in result.trials] == ["complete"] * 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "99"]


def test_an_objective_that_does_not_ask_gets_no_context_and_no_directory(tmp_path: Path) -> None:
    def anything(config: dict[str, Any], **arguments: Any) -> float:
        return float(len(arguments))

    assert minimize(anything, max_trials=1, trial_directory=tmp_path).trials[0].loss == 1.0
    minimize(bowl, max_trials=1, trial_directory=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_fidelity_named_trial_stays_a_fidelity() -> None:
    result = minimize(lambda config, trial: float(trial), fidelities={"trial": (1, 10)}, max_trials=1)
    assert result.trials[0].loss == 10.0


def test_a_directory_that_cannot_be_made_is_a_failed_trial(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RuntimeError, match="NotADirectoryError"):
        minimize(curious, max_trials=1, trial_directory=tmp_path / "file")
