"""Curves as data of the models: thinned reports, each with the number of its training.

A trial that continues another one belongs to the same training: it shares its noise, and its points have the cost of
both together. Points are thinned on the scale of u, because a curve is smooth there and the computing time of a model
is cubic in its points. Each trial keeps its end. Further points are added in rounds: each round takes the next
of `POSITIONS` from every curve, the best trials first. The number of further points grows more slowly than the number
of trials, because many trainings already show the shape of curves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fabolas._types import Array, BoolArray, IntArray
from fabolas.gp.trainings import in_training
from fabolas.surrogate import MAX_MCMC_TRIALS, Data
from fabolas.trials import History, Trial

# Where a curve is read besides its end, as fractions of its range of u, the most informative first.
POSITIONS = (0.5, 0.0, 0.75, 0.25, 0.9)
# The points of all curves besides their ends: at least this many, or this many per trial if that is more.
MIN_CURVE_POINTS = 60
CURVE_POINTS_PER_TRIAL = 0.4
MIN_MCMC_POINTS = 80  # MCMC uses this many points, or as many as there are trials if that is more


@dataclass(frozen=True)
class TrainingPart:
    """One trial as a part of its training."""

    training: int  # id of the first trial of the training
    seconds_before: float  # cost of the training before this trial


def training_parts(history: History) -> dict[int, TrainingPart]:
    """Trial id -> its part of a training. A training is named by the id of its first trial."""
    parts: dict[int, TrainingPart] = {}
    ends: dict[int, float] = {}
    for trial in sorted(history.trials, key=lambda trial: trial.id):
        before = trial.suggestion.continues
        if before is None or before not in parts or trial.restarted:
            parts[trial.id] = TrainingPart(trial.id, 0.0)
        else:
            parts[trial.id] = TrainingPart(parts[before].training, ends[before])
        ends[trial.id] = parts[trial.id].seconds_before + trial.cost
    return parts


class CurveReader:
    """Reads the curves of a history as data.

    Args:
        column: The column of the fidelity that trainings pass through.
    """

    def __init__(self, column: int) -> None:
        self._column = column
        self._read: dict[tuple[int, int], list[int]] = {}  # (trial, number of reports) -> reports to read

    def data(self, history: History, trials: IntArray, with_end: BoolArray, limit: int) -> Data:
        """The ends of these trials and points of their curves, as the models see them.

        Args:
            history: All trials.
            trials: (m,) indices of the trials to read, ascending.
            with_end: (n,) which trials have a row for their end (its loss, or the failure).
            limit: Number of points, at most, unless there are more ends.
        """
        parts = training_parts(history)
        ends = [int(i) for i in trials if with_end[i]]
        n_further = min(max(MIN_CURVE_POINTS, int(CURVE_POINTS_PER_TRIAL * len(trials))), limit - len(ends))
        further = self._further_points(history, trials, max(n_further, 0))
        rows = [_end_row(history, i, parts[history.trials[i].id]) for i in ends]
        rows += [_report_row(history, i, j, parts[history.trials[i].id]) for i, j in further]
        if not rows:
            empty = np.empty((0, history.points.shape[1] + 1))
            return Data(empty, np.empty(0), np.empty(0), np.empty(0, dtype=np.bool_))
        points, losses, costs, failed, numbers = zip(*rows, strict=True)
        return Data(
            in_training(np.array(points), np.array(numbers)),
            np.array(losses),
            np.array(costs),
            np.array(failed, dtype=np.bool_),
            min(max(MIN_MCMC_POINTS, len(ends)), MAX_MCMC_TRIALS),
        )

    def _further_points(self, history: History, trials: IntArray, count: int) -> list[tuple[int, int]]:
        """At most `count` pairs (trial, report), in rounds over the trials, those with the lowest losses first."""
        reported = [int(i) for i in trials if history.trials[i].reports]
        order = sorted(reported, key=lambda i: history.trials[i].reports[-1].loss)
        chosen = {i: self._reports_to_read(history.trials[i]) for i in order}
        rounds = [(i, chosen[i][k]) for k in range(len(POSITIONS)) for i in order if k < len(chosen[i])]
        return sorted(rounds[:count])

    def _reports_to_read(self, trial: Trial) -> list[int]:
        key = (trial.id, len(trial.reports))
        if key not in self._read:
            self._read[key] = reports_to_read(trial, self._column)
        return self._read[key]


def _end_row(history: History, i: int, part: TrainingPart) -> tuple[Array, float, float, bool, int]:
    cost = float(history.costs[i])
    total = cost + part.seconds_before if cost > 0 else cost
    return history.points[i], float(history.losses[i]), total, bool(history.failed[i]), part.training


def _report_row(
    history: History, i: int, j: int, part: TrainingPart
) -> tuple[Array, float, float, bool, int]:
    report = history.trials[i].reports[j]
    return report.point, report.loss, report.cost + part.seconds_before, False, part.training


def reports_to_read(trial: Trial, column: int) -> list[int]:
    """The reports that say most about the curve of a trial besides its end, the most informative first."""
    reports = trial.reports
    if trial.status == "complete":  # its last report may repeat its end, which is in the data already
        reports = tuple(r for r in reports if not np.array_equal(r.point, trial.point))
    if not reports:
        return []
    u = np.array([report.point[column] for report in reports])
    # A failed or abandoned trial has no final loss, so its last report comes first.
    positions = POSITIONS if trial.status == "complete" else (1.0, *POSITIONS)
    wanted = u[0] + np.array(positions) * (u[-1] - u[0])
    nearest = np.argmin(np.abs(u[None] - wanted[:, None]), axis=1)
    return [int(j) for j in dict.fromkeys(nearest.tolist())][: len(POSITIONS)]
