"""The candidates of a search: which configurations were run on how many rows, and which are left."""

import math
from typing import Any

import numpy as np

from fabolas._types import Array
from fabolas.budget import Budget
from fabolas.few_trials import size_for_few_trials
from fabolas.study import Study
from fabolas.target_plan import PredictedCost, probably_fits
from fabolas.trials import DESIGN

# If more configurations than this are left, their costs are not predicted: running all is taken as not affordable.
_MAX_PREDICTED = 200
# If this many trials have failed on fewer rows than any trial that worked, such sizes are avoided.
_MIN_TOO_SMALL = 2


class Candidates:
    """The candidates of a study.

    Args:
        study: The study of the search.
        max_size: Number of rows of the largest training fold, when training is on all rows.
        configurations: (m, d) all configurations of the space; None if there are too many to list.
    """

    def __init__(self, study: Study, max_size: int, configurations: Array | None) -> None:
        self._study, self._max_size, self._configurations = study, max_size, configurations

    def fidelity(self, size: int) -> dict[str, int]:
        """A number of rows as a fidelity of the study."""
        return dict.fromkeys(self._study.space.fidelities, size)

    @property
    def min_size(self) -> int:
        """The smallest number of rows that a candidate may be run on."""
        return int(min((f.low for f in self._study.space.fidelities.values()), default=self._max_size))

    def is_at_target(self, point: Array) -> bool:
        """Whether the point is on all rows."""
        return bool(self._study.space.is_at_target(point[None])[0])

    @property
    def all_failed_at_target(self) -> bool:
        """Whether some candidates were run on all rows, and all of these failed."""
        history = self._study.history
        at_target = self._study.space.is_at_target(history.points)
        return bool((at_target & history.failed).any() and not (at_target & history.complete).any())

    def n_left(self) -> float:
        """How many configurations were not run on all rows; infinite if the space is not finite."""
        left = self._untried(self._any_target_point)
        return math.inf if left is None else len(left)

    def all_affordable(self, seconds: float) -> bool:
        """Whether all configurations that were not run on all rows can be run there in this many seconds."""
        left = self._untried(self._any_target_point)
        if left is None or len(left) > _MAX_PREDICTED or not self._study.history.complete.any():
            return False
        points = self._study.space.at_target(left)
        return float(self._study.predict_points(points).cost_limit.sum()) <= seconds

    def is_affordable(self, config: dict[str, Any], seconds: float, budget: Budget) -> bool:
        """Whether a trial on all rows probably ends in this many seconds; True before the first complete trial."""
        if not self._study.history.complete.any():
            return True
        cost = PredictedCost.of(self._study, config)
        return bool(probably_fits(self._study, cost.median, cost.limit, seconds, budget))

    def predicted_cost(self, point: Array) -> float:
        """Predicted seconds of a trial; 0 before the first complete trial."""
        if not self._study.history.complete.any():
            return 0.0
        return float(self._study.predict_points(point[None]).cost[0])

    def random_configuration(self, size: int) -> dict[str, Any]:
        """Return a random configuration, which depends on the seed and the number of trials.

        In a finite space it is one that was not yet run on `size` rows, if there is one.
        """
        space = self._study.space
        rng = np.random.default_rng([self._study.seed, len(self._study.trials)])
        config, _ = space.decode(np.append(space.sobol(1, rng)[0], np.ones(space.n_fidelities)))
        point = space.encode(config, self.fidelity(size))
        left = self._untried(point)
        if left is not None and len(left):
            point[: space.dim] = rng.choice(left)
        return space.decode(point)[0]

    def untried_like(self, point: Array, seconds: float) -> Array | None:
        """Return the point, or if it was run before, an untried point of a finite space.

        The folds are the same each time, so a second run of a point gives no information. The other point is the
        untried one of lowest predicted loss on the same number of rows. If all configurations were run on that
        many rows, or none is affordable, the number of rows is doubled. None if no point is affordable.

        Args:
            point: (d + f,).
            seconds: Seconds that the other point may take.
        """
        left = self._untried(point)
        if left is None or (left == point[: self._study.space.dim]).all(axis=1).any():
            return point
        other = self._best_untried(point, seconds)
        while other is None and not self.is_at_target(point):
            config, sizes = self._study.space.decode(point)
            doubled = {name: min(2 * int(rows), self._max_size) for name, rows in sizes.items()}
            point = self._study.space.encode(config, doubled)
            other = self._best_untried(point, seconds)
        return other

    def on_enough_rows(self, point: Array) -> Array:
        """The point on more rows, if trials fail because they have too few.

        That is assumed if two trials failed on fewer rows than ever worked, and most trials on more rows work.
        """
        trials = self._study.trials
        worked = [self._size(trial.fidelity) for trial in trials if trial.status == "complete"]
        failed = [self._size(trial.fidelity) for trial in trials if trial.status == "failed"]
        enough = min(worked, default=0)
        too_small = sum(size < enough for size in failed)
        if too_small < _MIN_TOO_SMALL or len(worked) <= len(failed) - too_small:
            return point
        return self._on_at_least(point, enough)

    def for_few_trials(self, point: Array, budget: float, seconds: float) -> Array:
        """The point of the initial design on more rows, if the time budget has room for few trials.

        Args:
            point: (d + f,).
            budget: Seconds of the whole search.
            seconds: Seconds that the first trial on four times the rows may take.
        """
        design = [
            trial
            for trial in self._study.trials
            if trial.suggestion.origin == DESIGN and trial.status == "complete" and trial.cost > 0.0
        ]
        sizes = np.array([self._size(trial.fidelity) for trial in design])
        costs = np.array([trial.cost for trial in design])
        size = size_for_few_trials(sizes, costs, budget, self._max_size)
        rows = None if size is None else round(size)
        if rows is None:
            return point
        larger = self._on_at_least(point, rows)
        first_step = len(np.unique(sizes)) == 1  # later steps are known to cost little more
        return point if first_step and self.predicted_cost(larger) > seconds else larger

    def _on_at_least(self, point: Array, rows: int) -> Array:
        """The point on this many rows, or on more if it has more."""
        config, sizes = self._study.space.decode(point)
        return self._study.space.encode(config, {name: max(int(n), rows) for name, n in sizes.items()})

    @property
    def _any_target_point(self) -> Array:
        """(d + f,) A point on all rows, of which only the fidelity is used."""
        return np.ones(self._study.space.dim + self._study.space.n_fidelities)

    def _size(self, fidelity: dict[str, float | int]) -> int:
        return int(next(iter(fidelity.values()), self._max_size))

    def _untried(self, point: Array) -> Array | None:
        """(m, d) The configurations of a finite space that were not run at the point's fidelity; else None."""
        configurations, d, history = self._configurations, self._study.space.dim, self._study.history
        if configurations is None or not len(history):
            return configurations
        run = history.points[~history.abandoned & (history.points[:, d:] == point[d:]).all(axis=1), :d]
        left: Array = configurations[~(configurations[:, None] == run[None]).all(axis=2).any(axis=1)]
        return left

    def _best_untried(self, point: Array, seconds: float) -> Array | None:
        """The affordable untried configuration of lowest predicted loss, at the point's fidelity; None if none."""
        left = self._untried(point)
        if left is None or not len(left):
            return None
        others = np.column_stack([left, np.tile(point[self._study.space.dim :], (len(left), 1))])
        if not self._study.history.complete.any():
            return np.asarray(others[0])
        prediction = self._study.predict_points(others)
        affordable = (prediction.cost_limit if self.is_at_target(point) else prediction.cost) <= seconds
        if not affordable.any():
            return None
        return np.asarray(others[int(np.argmin(np.where(affordable, prediction.loss, np.inf)))])
