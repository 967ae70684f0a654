"""What there is to run in a fit, and what of it was run: candidates on few and on all the rows."""

import math
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from fabolas._types import Array
from fabolas.sklearn.rows import Row
from fabolas.strategies.model_based import Forecast, ModelBased
from fabolas.study import Study

_FEW = 200  # configurations at most of which the models are asked whether all of them fit into the budget


class Candidates:
    """The candidates of a study.

    Args:
        study: What they were told to.
        rows: What was evaluated, by the trial's number; it grows with the search.
        full: Rows at full size.
        every: (m, d) all configurations that the space has; None unless these are not too many to count.
    """

    def __init__(self, study: Study, rows: Mapping[int, Row], full: int, every: Array | None) -> None:
        self._study, self._rows, self._full, self._every = study, rows, full, every

    def fidelity(self, size: int) -> dict[str, int]:
        """So many rows, in the words of the study."""
        return dict.fromkeys(self._study.space.fidelities, size)

    @property
    def smallest(self) -> int:
        """The fewest rows that a candidate may be run on."""
        return int(min((f.low for f in self._study.space.fidelities.values()), default=self._full))

    def is_full(self, point: Array) -> bool:
        """Whether it is on all the rows."""
        return bool(self._study.space.are_at_target(point[None])[0])

    def at_full_size(self) -> list[Row]:
        """What was run on all the rows."""
        return [row for row in self._rows.values() if row.size == self._full]

    def are_exhausted(self) -> bool:
        """Whether every configuration there is was run on all the rows."""
        return self.left() == 0

    def failed(self, config: dict[str, Any]) -> bool:
        """Whether it was run on all the rows and failed."""
        history, point = self._study.history, self._study.space.encode(config)
        return bool((history.points[history.failed] == point).all(axis=1).any())

    def left(self) -> float:
        """How many configurations were not run on all the rows; infinite if they cannot be counted."""
        left = self.untried(self._on_all_rows)
        return math.inf if left is None else len(left)

    def all_fit(self, seconds: float) -> bool:
        """Whether all configurations that were not run on all the rows surely can be in so many seconds.

        Of more than some hundred nobody asks the models.
        """
        left = self.untried(self._on_all_rows)
        if left is None or len(left) > _FEW or not self._study.history.complete.any():
            return False
        there = np.column_stack([left, np.ones((len(left), self._study.space.n_fidelities))])
        return float(self.forecast_of(there).seconds_at_most.sum()) <= seconds

    @property
    def _on_all_rows(self) -> Array:
        """(D,) Any point there."""
        return np.ones(self._study.space.dim + self._study.space.n_fidelities)

    def any(self, size: int) -> dict[str, Any]:
        """Any candidate, another one each time; of a finite space one that was not run on so many rows."""
        space = self._study.space
        rng = np.random.default_rng([self._study.seed, len(self._study.trials)])
        config, _ = space.decode(np.append(space.spread(1, rng)[0], np.ones(space.n_fidelities)))
        point = space.encode(config, self.fidelity(size))
        left = self.untried(point)
        if left is not None and len(left):
            point[: space.dim] = rng.choice(left)
        return space.decode(point)[0]

    def untried(self, point: Array) -> Array | None:
        """(m, d) The configurations of a finite space that were not run on as many rows as the point; else None."""
        every, d, history = self._every, self._study.space.dim, self._study.history
        if every is None or not len(history):
            return every
        run = history.points[~history.lost & (history.points[:, d:] == point[d:]).all(axis=1), :d]
        left: Array = every[~(every[:, None] == run[None]).all(axis=2).any(axis=1)]
        return left

    def instead_of(self, point: Array, seconds: float) -> Array | None:
        """The point, or in a finite space one that was not run on as many rows, or on more; None if there is none.

        The folds are the same each time, so nothing is run twice.
        """
        left = self.untried(point)
        if left is None or (left == point[: self._study.space.dim]).all(axis=1).any():
            return point
        other = self._untried_that_fits(point, seconds)
        while other is None and not self.is_full(point):  # all of them were: on more rows
            config, sizes = self._study.space.decode(point)
            twice = {name: min(2 * int(rows), self._full) for name, rows in sizes.items()}
            point = self._study.space.encode(config, twice)
            other = self._untried_that_fits(point, seconds)
        return other

    def _untried_that_fits(self, point: Array, seconds: float) -> Array | None:
        """Of those not run on as many rows as the point, the one of lowest predicted loss that can be afforded."""
        left = self.untried(point)
        if left is None or not len(left):
            return None
        others = np.column_stack([left, np.tile(point[self._study.space.dim :], (len(left), 1))])
        if not self._study.history.complete.any():
            return np.asarray(others[0])
        forecast = self.forecast_of(others)
        fits = (forecast.seconds_at_most if self.is_full(point) else forecast.seconds) <= seconds
        return (
            np.asarray(others[int(np.argmin(np.where(fits, forecast.losses, np.inf)))])
            if fits.any()
            else None
        )

    def on_enough_rows(self, point: Array) -> Array:
        """The point on as many rows as it takes, where few of them are why trials fail.

        That is so if two failed on fewer rows than ever worked, and from there on most do work.
        """
        space = self._study.space
        worked = [row.size for row in self._rows.values() if row.error is None]
        failed = [row.size for row in self._rows.values() if row.error is not None]
        least = min(worked, default=0)
        too_few = sum(size < least for size in failed)
        if too_few < 2 or len(worked) <= len(failed) - too_few:
            return point
        config, sizes = space.decode(point)
        return space.encode(config, {name: max(int(rows), least) for name, rows in sizes.items()})

    def finalist(self, seconds: float) -> dict[str, Any] | None:
        """Of the candidates never run on all the rows the one of lowest predicted loss that surely fits, if any."""
        history, d = self._study.history, self._study.space.dim
        tried = np.unique(history.points[history.complete, :d], axis=0)
        there = history.points[~history.lost & self._study.space.are_at_target(history.points), :d]
        left = tried[~(tried[:, None] == there[None]).all(axis=2).any(axis=1)]
        if not len(left):
            return None
        points = np.column_stack([left, np.ones((len(left), self._study.space.n_fidelities))])
        forecast = self.forecast_of(points)
        losses = np.where(forecast.seconds_at_most <= seconds, forecast.losses, np.inf)
        best = int(np.argmin(losses))
        return self._study.space.decode(points[best])[0] if math.isfinite(losses[best]) else None

    def forecast(self, config: dict[str, Any], size: int) -> Forecast:
        """What is expected of a run on so many rows."""
        return self.forecast_of(self._study.space.encode(config, self.fidelity(size))[None])

    def forecast_of(self, points: Array) -> Forecast:
        """What is expected of points (m, D)."""
        study = self._study
        return cast(ModelBased, study.strategy).forecast(study.history, points)
