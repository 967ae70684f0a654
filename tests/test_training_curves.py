"""`minimize` with trainings that report and can be continued: one worker, several, after a kill, with damage."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

import fabolas
from tests.helpers.marks import slow

SPACE = {"x": fabolas.Float(0.0, 1.0)}
EPOCHS = {"epochs": fabolas.Fidelity(1, 27, reports=True, resume=True)}


def train(config: dict[str, Any], epochs: int, trial: Any) -> fabolas.Outcome:
    """An epoch costs ten seconds, as stated; the state is the number of epochs and the configuration."""
    file, start = trial.checkpoint / "state.json", 0
    if trial.resume_from is not None:
        state = json.loads(file.read_text())
        assert state == {"epochs": trial.resume_from, "x": config["x"]}
        start = trial.resume_from
    loss = (config["x"] - 0.3) ** 2 + 0.1
    for epoch in range(start + 1, epochs + 1):
        trial.report(epochs=epoch, loss=loss + 1 / epoch, cost=10.0 * (epoch - start))
    file.write_text(json.dumps({"epochs": epochs, "x": config["x"]}))
    return fabolas.Outcome(loss + 1 / epochs, cost=10.0 * (epochs - start))


def run(directory: Path, **settings: Any) -> fabolas.Result:
    defaults: dict[str, Any] = {
        "seed": 0,
        "overhead": 0.1,
        "effort": 0.0,
        "progress": False,
        "max_trials": 24,
    }
    return fabolas.minimize(
        settings.pop("objective", train), SPACE, EPOCHS, trial_directory=directory, **{**defaults, **settings}
    )


def continued(result: Any) -> list[Any]:
    return [trial for trial in result.trials if trial.suggestion.continues is not None]


@pytest.mark.parametrize("workers", [1, *slow(2)])
def test_trainings_are_continued_and_checkpoints_deleted(tmp_path: Path, workers: int) -> None:
    result = run(tmp_path, workers=workers)
    assert {trial.status for trial in result.trials} == {"complete"}
    assert continued(result)
    for trial in continued(result):
        before = next(t for t in result.trials if t.id == trial.suggestion.continues)
        assert trial.cost == 10.0 * (trial.fidelity["epochs"] - before.fidelity["epochs"])
        assert trial.reports[0].fidelity["epochs"] == before.fidelity["epochs"] + 1
    assert not (tmp_path / "checkpoints").exists()


@pytest.mark.slow
def test_checkpoints_are_kept_if_asked_for_within_the_limit(tmp_path: Path) -> None:
    run(tmp_path, keep_checkpoints=True, max_checkpoints=3, max_trials=12, verify=False)
    kept = [path for path in (tmp_path / "checkpoints").iterdir() if path.is_dir()]
    assert 1 <= len(kept) <= 3


@pytest.mark.slow
def test_without_checkpoints_nothing_is_continued(tmp_path: Path) -> None:
    assert not continued(run(tmp_path, max_checkpoints=0, max_trials=14))
    with pytest.raises(ValueError, match="max_checkpoints must be a whole number >= 0, got -1"):
        run(tmp_path, max_checkpoints=-1)
    with pytest.raises(ValueError, match="checkpoint_space must be"):
        run(tmp_path, checkpoint_space="much")


@pytest.mark.slow
def test_a_later_run_continues_the_trainings_of_an_earlier_one(tmp_path: Path) -> None:
    storage = tmp_path / "run.db"
    first = run(tmp_path, storage=storage, keep_checkpoints=True, max_trials=12, verify=False)
    second = run(tmp_path, storage=storage, max_trials=20, verify=False)
    later = [trial for trial in continued(second) if trial.id >= len(first.trials)]
    assert any(trial.suggestion.continues < len(first.trials) for trial in later)


@pytest.mark.slow
def test_deleted_checkpoints_are_a_message_and_not_a_failure(tmp_path: Path) -> None:
    def careless(config: dict[str, Any], epochs: int, trial: Any) -> fabolas.Outcome:
        outcome = train(config, epochs, trial)
        for other in trial.checkpoint.parent.glob("*/state.json"):
            if other.parent != trial.checkpoint:
                other.write_text("nothing")  # after its manifest was written
        return outcome

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = run(tmp_path, objective=careless, max_trials=16)
    assert {trial.status for trial in result.trials} == {"complete"}
    restarted = [trial for trial in result.trials if trial.restarted]
    assert restarted
    messages = [str(warning.message) for warning in caught]
    assert any("starts from scratch: its checkpoint is damaged (state.json)" in text for text in messages)
    assert all(trial.cost == 10.0 * trial.fidelity["epochs"] for trial in restarted)


@pytest.mark.slow
def test_an_objective_that_cannot_report_runs_with_a_warning(tmp_path: Path) -> None:
    def silent(config: dict[str, Any], epochs: int) -> fabolas.Outcome:
        return fabolas.Outcome(config["x"] + 1 / epochs, cost=10.0 * epochs)

    with pytest.warns(
        UserWarning, match=r"'epochs' .* no parameter `trial`, .* on the way and continues none; add"
    ):
        result = run(tmp_path, objective=silent, max_trials=14)
    assert {trial.status for trial in result.trials} == {"complete"}
    assert not continued(result)
