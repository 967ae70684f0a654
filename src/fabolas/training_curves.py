"""Trainings that report on the way: the ``CurveJob`` of each job, and which checkpoints are kept."""

from pathlib import Path

import numpy as np

from fabolas.execution import CurveJob
from fabolas.execution.checkpoints import CheckpointDirectory, CheckpointLimits
from fabolas.execution.context import remove_empty_directories
from fabolas.strategies import PredictiveStrategy
from fabolas.strategies.continuation import Continuations
from fabolas.study import Study
from fabolas.trials import Suggestion


class TrainingCurves:
    """Gives each job its curve, and deletes checkpoints that nothing will continue.

    A checkpoint is kept while its training is below the target and could be continued. Beyond the limits, those with
    the best predicted loss at the target are kept.

    Args:
        study: The study of the run.
        directory: Where trials get directories of their own.
        limits: How many checkpoints are kept.
    """

    def __init__(self, study: Study, directory: str, limits: CheckpointLimits) -> None:
        self._study, self._directory = study, directory
        self._checkpoints = CheckpointDirectory(Path(directory) / "checkpoints", limits)
        self.update()

    def curve(self, suggestion: Suggestion) -> CurveJob | None:
        """What the job of a suggestion needs to report on the way; None if no fidelity has reports."""
        space = self._study.space
        name = space.curve_name
        if name is None:
            return None
        if not space.resumes:
            return CurveJob(name, space.fidelities[name], stop_rule=suggestion.stop_rule)
        before = next((t for t in self._study.trials if t.id == suggestion.continues), None)
        return CurveJob(
            name,
            space.fidelities[name],
            str(self._checkpoints.of(self._training(suggestion))),
            None if before is None else before.fidelity[name],
            suggestion.stop_rule,
        )

    def update(self) -> None:
        """Delete checkpoints that are not needed, and tell the study which ones exist."""
        study = self._study
        if not study.space.resumes:
            return
        possible = Continuations.of(study.space, study.history.with_checkpoints(None), ())
        continues = self._continues()
        last = {_first(int(n), continues): int(n) for n in possible.trials}  # training -> its last trial
        ends = dict(zip(possible.trials.tolist(), possible.ends, strict=True))

        def ranked(found: list[int]) -> list[int]:
            losses = self._losses_at_target(
                np.array([ends[last[n]] for n in found]), [last[n] for n in found]
            )
            return [found[i] for i in np.argsort(losses, kind="stable")]

        running = {self._training(suggestion) for suggestion in study.pending}
        kept = self._checkpoints.prune(list(last), ranked, running)
        name = study.space.curve_name
        reached = {t.id: t.fidelity.get(name or "") for t in study.trials}
        study.set_checkpoints(
            frozenset(last[n] for n in kept if self._checkpoints.value(n) == reached[last[n]])
        )

    def close(self) -> None:
        """Delete the checkpoints, unless they are to be kept, and the empty directories of trials.

        An abandoned trial may still run somewhere, so its directory stays.
        """
        ended = (trial.id for trial in self._study.trials if trial.status != "abandoned")
        remove_empty_directories(self._directory, ended)
        if self._study.space.resumes:
            self._checkpoints.close()

    def _losses_at_target(self, ends: np.ndarray, trials: list[int]) -> np.ndarray:
        """Predicted losses at the target, lower is better; measured losses if the strategy predicts none."""
        study = self._study
        if isinstance(study.strategy, PredictiveStrategy):
            ends[:, study.space.dim :] = 1.0
            return study.sign * study.predict_points(ends).loss
        measured = {trial.id: trial.loss for trial in study.trials}
        return np.array([study.sign * float(measured[n] or 0.0) for n in trials])

    def _training(self, suggestion: Suggestion) -> int:
        """The first trial of the training, by which its directory is named."""
        return (
            suggestion.id if suggestion.continues is None else _first(suggestion.continues, self._continues())
        )

    def _continues(self) -> dict[int, int | None]:
        """Trial id -> the trial whose training it continues."""
        return {trial.id: trial.suggestion.continues for trial in self._study.trials}


def _first(trial: int, continues: dict[int, int | None]) -> int:
    """The first trial of the training that a trial belongs to."""
    while (before := continues.get(trial)) is not None:
        trial = before
    return trial
