"""Checkpoints: complete ones are continued, lost and damaged ones are not, and few are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fabolas import Fidelity
from fabolas.execution import CurveJob, Ended, Job
from fabolas.execution.checkpoints import (
    CheckpointDirectory,
    CheckpointLimits,
    damage,
    manifest_path,
    write_manifest,
)
from fabolas.execution.evaluate import evaluate

EPOCHS = Fidelity(1, 10, reports=True, resume=True)


def train(config: dict[str, Any], epochs: int, trial: Any) -> float:
    """The state is a number of epochs; it counts how many it trains."""
    file = trial.checkpoint / "state"
    start = 0 if trial.resume_from is None else int(file.read_text())
    assert start == (trial.resume_from or 0)
    if config.get("rejects") and trial.resume_from is not None:
        raise RuntimeError("size mismatch for layer 3")
    for epoch in range(start + 1, epochs + 1):
        trial.report(epochs=epoch, loss=1 / epoch, cost=float(epoch - start))
        file.write_text(str(epoch))
    return 1 / epochs


def trained(directory: Path, epochs: int, resume_from: int | None = None, **config: Any) -> Ended:
    curve = CurveJob("epochs", EPOCHS, str(directory / "checkpoints" / "0"), resume_from)
    return evaluate(train, None, Job(1, config, {"epochs": epochs}, directory=str(directory), curve=curve))


def epochs_of(ended: Ended) -> list[float]:
    return [reported.value for reported in ended.reports]


def test_a_training_continues_where_its_checkpoint_is(tmp_path: Path) -> None:
    assert epochs_of(trained(tmp_path, 4)) == [1, 2, 3, 4]
    ended = trained(tmp_path, 6, 4)
    assert epochs_of(ended) == [5, 6]
    assert not ended.restarted
    assert not ended.notice
    assert epochs_of(trained(tmp_path, 9, 6)) == [7, 8, 9]


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda state: state.unlink(), "its checkpoint is damaged (state)"),
        (lambda state: state.write_text("7"), "its checkpoint is damaged (state)"),
        (lambda state: (state.parent / "more").write_text("x"), "its checkpoint is damaged (more)"),
        (lambda state: manifest_path(state.parent).unlink(), "its checkpoint is missing"),
        (lambda state: manifest_path(state.parent).write_text("{"), "its checkpoint is missing"),
        (lambda state: write_manifest(state.parent, 3), "its checkpoint is at 3 instead of 4"),
    ],
)
def test_a_lost_or_damaged_checkpoint_means_starting_from_scratch(
    tmp_path: Path, harm: Any, message: str
) -> None:
    trained(tmp_path, 4)
    harm(tmp_path / "checkpoints" / "0" / "state")
    ended = trained(tmp_path, 6, 4)
    assert ended.status == "complete"
    assert epochs_of(ended) == [1, 2, 3, 4, 5, 6]
    assert ended.restarted
    assert ended.notice == f"trial 1 starts from scratch: {message}"


def test_a_checkpoint_that_the_objective_cannot_load_means_starting_from_scratch(tmp_path: Path) -> None:
    trained(tmp_path, 4)
    ended = trained(tmp_path, 6, 4, rejects=True)
    assert ended.status == "complete"
    assert epochs_of(ended) == [1, 2, 3, 4, 5, 6]
    assert "could not continue from its checkpoint (RuntimeError: size mismatch for layer 3)" in ended.notice


def test_a_new_training_does_not_see_an_old_checkpoint(tmp_path: Path) -> None:
    trained(tmp_path, 4)
    assert epochs_of(trained(tmp_path, 2)) == [1, 2]
    assert damage(tmp_path / "checkpoints" / "0", 2) == ""


def checkpoints(path: Path, *numbers: int) -> None:
    for number in numbers:
        (path / str(number)).mkdir(parents=True)
        (path / str(number) / "state").write_text("x" * 100)
        write_manifest(path / str(number), 3)


def test_the_best_checkpoints_within_the_limits_are_kept(tmp_path: Path) -> None:
    checkpoints(tmp_path, 1, 2, 3, 4, 5)
    best_first = [4, 1, 3, 2]

    def ranked(found: list[int]) -> list[int]:
        return sorted(found, key=best_first.index)

    kept = CheckpointDirectory(tmp_path, CheckpointLimits(count=3)).prune([1, 2, 3, 4], ranked, set())
    assert kept == [4, 1, 3]
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_dir()) == ["1", "3", "4"]
    smaller = CheckpointDirectory(tmp_path, CheckpointLimits(bytes=250))
    assert smaller.prune([1, 3, 4], ranked, set()) == [4, 1]


def test_a_training_that_runs_keeps_its_directory(tmp_path: Path) -> None:
    checkpoints(tmp_path, 1, 2)
    kept = CheckpointDirectory(tmp_path, CheckpointLimits(count=0)).prune([], lambda found: found, {2})
    assert kept == []
    assert [p.name for p in tmp_path.iterdir() if p.is_dir()] == ["2"]


def test_checkpoints_are_deleted_at_the_end_unless_they_are_to_be_kept(tmp_path: Path) -> None:
    checkpoints(tmp_path / "a", 1)
    CheckpointDirectory(tmp_path / "a", CheckpointLimits(keep=True)).close()
    assert (tmp_path / "a" / "1" / "state").exists()
    CheckpointDirectory(tmp_path / "a", CheckpointLimits()).close()
    assert not (tmp_path / "a").exists()
