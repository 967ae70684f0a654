"""Continuing a training from its checkpoint: which trainings can be continued, at what cost, with what reports.

A point of the space is evaluated by continuing whenever there is a checkpoint of its configuration with a smaller
value of the fidelity: the beginning of a training is never repeated. So there is no separate decision to continue:
points that continue a training are candidates like all others, only cheaper.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fabolas._types import Array, IntArray
from fabolas.gp.regression import Posterior
from fabolas.gp.trainings import in_training
from fabolas.space import Fidelity, Space
from fabolas.strategies.curves import training_parts
from fabolas.surrogate import Surrogate
from fabolas.trials import History, Suggestion

# A candidate is assumed to report at these fractions of its way in u: from 0, or from its checkpoint.
REPORTED_FRACTIONS = (0.5, 1.0)
# Candidates that continue a training end at these fractions of the rest of its way to the target.
CONTINUED_FRACTIONS = (1 / 3, 2 / 3, 1.0)
MAX_CONTINUED = 12  # how many trainings have such candidates: those with the best predicted configurations
# The rest of a training costs at least this share of the whole, whatever the models predict.
MIN_COST_SHARE = 0.02


@dataclass(frozen=True)
class Continuations:
    """The trainings that can be continued.

    Attributes:
        space: The search space.
        column: The column of the fidelity that they pass through.
        ends: (c, D) where each of them has ended.
        trials: (c,) id of the last trial of each.
        trainings: (c,) number of each: the id of its first trial.
    """

    space: Space
    column: int
    ends: Array
    trials: IntArray
    trainings: IntArray

    @classmethod
    def of(cls, space: Space, history: History, pending: tuple[Suggestion, ...]) -> Continuations:
        """Those of a history: complete, below the target, not continued by another trial, and with a checkpoint."""
        column = space.curve_column
        assert column is not None, "only for a space with reports"
        continued = {s.continues for s in pending}
        found: dict[int, int] = {}  # trial id -> its index
        parts = training_parts(history)
        if space.resumes:
            for i, trial in enumerate(history.trials):
                if trial.suggestion.continues is not None and trial.status != "abandoned":
                    continued.add(trial.suggestion.continues)
                if trial.status == "complete" and trial.point[column] < 1.0:
                    found[trial.id] = i
        available = history.checkpoints  # None if every trial counts as having one
        kept = [n for n in found if n not in continued and (available is None or n in available)]
        D = space.dim + space.n_fidelities
        ends = np.array([history.points[found[n]] for n in kept]).reshape(len(kept), D)
        numbers = np.array([parts[n].training for n in kept], dtype=np.int64)
        return cls(space, column, ends, np.array(kept, dtype=np.int64), numbers)

    @property
    def fidelity(self) -> Fidelity:
        """The fidelity that they pass through."""
        return tuple(self.space.fidelities.values())[self.column - self.space.dim]

    def match(self, points: Array) -> IntArray:
        """(m,) For each point (m, D) the index of the training that it continues; -1 if it starts from scratch."""
        matched = np.full(len(points), -1)
        if not len(self.ends):
            return matched
        index: dict[bytes, list[int]] = {}
        for i, end in enumerate(self.ends):
            index.setdefault(self._key(end), []).append(i)
        for m, point in enumerate(points):
            below = [
                i for i in index.get(self._key(point), []) if self.ends[i, self.column] < point[self.column]
            ]
            if below:
                matched[m] = max(below, key=lambda i: float(self.ends[i, self.column]))
        return matched

    def continues(self, point: Array) -> int | None:
        """The id of the trial that an evaluation of the point (D,) continues; None to start from scratch."""
        (i,) = self.match(point[None])
        return None if i < 0 else int(self.trials[i])

    def paid(self, surrogate: Surrogate, points: Array) -> Array:
        """(m,) Predicted seconds of what an evaluation of each point (m, D) continues; 0 if it starts from scratch."""
        matched = self.match(points)
        known = np.flatnonzero(matched >= 0)
        seconds = np.zeros(len(points))
        if len(known):
            seconds[known] = surrogate.predict_cost(self.ends[matched[known]])
        return seconds

    def candidates(self, loss: Posterior) -> Array:
        """Points (m, D) that continue the trainings with the best predicted configurations."""
        if not len(self.ends):
            return self.ends
        target = self.ends.copy()
        target[:, self.space.dim :] = 1.0
        best = np.argsort(loss.mean_of(target).mean(axis=0), kind="stable")[:MAX_CONTINUED]
        points = np.repeat(self.ends[best], len(CONTINUED_FRACTIONS), axis=0)
        left = 1.0 - points[:, self.column]
        points[:, self.column] += np.tile(CONTINUED_FRACTIONS, len(best)) * left
        points = self.space.snap(points)
        return np.unique(points[self.match(points) >= 0], axis=0)

    def traces(self, points: Array) -> Array:
        """What the evaluations of points (M, D) report, with the numbers of their trainings: (M, m, D + 1).

        A new training gets a negative number of its own.
        """
        matched = self.match(points)
        known = matched >= 0
        start = np.zeros(len(points))
        start[known] = self.ends[matched[known], self.column]
        numbers: Array = -1.0 - np.arange(len(points), dtype=np.float64)
        numbers[known] = self.trainings[matched[known]]
        steps = []
        for fraction in REPORTED_FRACTIONS:
            step = points.copy()
            step[:, self.column] = start + fraction * (points[:, self.column] - start)
            steps.append(in_training(step if fraction == 1.0 else self.space.snap(step), numbers))
        return np.stack(steps, axis=1)

    def _key(self, point: Array) -> bytes:
        return bytes((np.delete(point, self.column) + 0.0).tobytes())


def pending_traces(space: Space, history: History, pending: tuple[Suggestion, ...]) -> Array:
    """The points (m, D + 1) that pending evaluations will report."""
    if not pending:
        return np.empty((0, space.dim + space.n_fidelities + 1))
    points = np.array([s.point for s in pending])
    traces = Continuations.of(space, history, ()).traces(points)
    return np.unique(traces.reshape(-1, traces.shape[2]), axis=0)
