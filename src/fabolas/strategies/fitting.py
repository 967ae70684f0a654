"""Fits the surrogate to a growing history, and keeps the MCMC walkers from one fit to the next."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fabolas import surrogate
from fabolas._types import Array, IntArray
from fabolas.model_spec import SurrogatePrior
from fabolas.strategies.curves import CurveReader
from fabolas.strategies.effort import Effort
from fabolas.strategies.failures import without_cause
from fabolas.surrogate import Data, HyperparameterSets, Surrogate
from fabolas.transforms import TargetTransform
from fabolas.trials import History


@dataclass(frozen=True)
class SurrogateWithTrials:
    """A surrogate, and for each row of its data the index of the trial in the history.

    Rows that were reported on the way (points of a curve) have -1.
    """

    surrogate: Surrogate
    loss_trials: IntArray  # (n,) of the rows of `surrogate.loss.points`
    cost_trials: IntArray  # (m,) of the rows of `surrogate.cost.points`


@dataclass(frozen=True)
class _Fit:
    """What one fit leaves for the next."""

    walkers: HyperparameterSets
    samples: HyperparameterSets  # the K walkers that the surrogate uses
    n_fitted: int  # trials that the surrogate was given
    n_refitted: int  # trials when MCMC last moved the walkers


_ALL = slice(None)
# A surrogate, and the parts of the history that its data come from, in the order of its rows.
_SurrogateParts = tuple[Surrogate, tuple[slice, ...]]


class SurrogateFitter:
    """The surrogate of one strategy.

    `fit` always updates the surrogate with the history. Only with `refit=True` does MCMC also move the walkers;
    otherwise the hyperparameter samples are chosen among the walkers as they are.
    """

    def __init__(self, prior: SurrogatePrior, curve_column: int | None = None) -> None:
        self.prior = prior
        self._curves = None if curve_column is None else CurveReader(curve_column)
        self._last: _Fit | None = None
        self._surrogate: Surrogate | None = None  # of the last fit; None if it must be built again
        self._cached: tuple[History, _SurrogateParts] | None = None  # the last history with its surrogate

    def __getstate__(self) -> dict[str, object]:
        # Surrogates can be built again, and they hold functions.
        return {**vars(self), "_surrogate": None, "_cached": None}

    @property
    def is_fitted(self) -> bool:
        """Whether there are walkers."""
        return self._last is not None

    @property
    def n_refitted(self) -> int:
        """How many trials there were when MCMC last moved the walkers; 0 before the first fit."""
        return 0 if self._last is None else self._last.n_refitted

    def refit_is_due(self, history: History, effort: Effort) -> bool:
        """Whether MCMC should move the walkers again."""
        return not self.is_fitted or len(history) - self.n_refitted >= effort.refit_interval

    def refit_is_overdue(self, history: History) -> bool:
        """Whether MCMC must move the walkers again even if there is no time for it.

        That is so if there are twice as many trials as when they last moved. It is also so if the scale of the losses
        has doubled or halved, or the transform has changed: the hyperparameters then describe other losses.
        """
        before = self._transform_after(history, self.n_refitted)
        if before is None or len(history) >= 2 * self.n_refitted:
            return True
        now = self._data(history).fit_transform(self.prior.spec.transform)
        return now.logarithmic != before.logarithmic or not 0.5 < now.scale / before.scale < 2.0

    def fit(self, history: History, effort: Effort, refit: bool, rng: np.random.Generator) -> Surrogate:
        """The surrogate given the history; with `refit`, MCMC moves the walkers first."""
        n_refitted = len(history) if refit else self.n_refitted
        self._surrogate = self._cached = None  # free the old ones first: each takes up to 50 MB
        fitted, walkers, samples = surrogate.fit(
            self.prior,
            self._data(history),
            None if self._last is None else self._last.walkers,
            effort.mcmc_steps if refit else 0,
            effort.K,
            rng,
            units=self._transform_after(history, n_refitted),
        )
        self._surrogate, self._last = fitted, _Fit(walkers, samples, len(history), n_refitted)
        return fitted

    def points(self, history: History) -> Array:
        """The points (n, D) that the surrogate is given."""
        return self._data(history).points

    def surrogate_of(self, history: History) -> Surrogate:
        """The surrogate given the history, without moving the walkers that later suggestions start from."""
        return self._parts(history)[0]

    def surrogate_with_trials(self, history: History) -> SurrogateWithTrials:
        """The same, and which trials its data are."""
        found, parts = self._parts(history)
        rows = [self._rows(history, part) for part in parts]
        # The centre of log-cost is that of the first part. It decides which costs of a later part are used.
        centres = [None, found.log_cost_centre][: len(rows)]
        with_cost = [
            trials[data.cost_is_used(self.prior, centre)]
            for (data, trials), centre in zip(rows, centres, strict=True)
        ]
        return SurrogateWithTrials(
            found, np.concatenate([trials for _, trials in rows]), np.concatenate(with_cost)
        )

    def _parts(self, history: History) -> _SurrogateParts:
        """The surrogate of a history. It is cached, because the answer and several predictions use the same one."""
        if self._cached is None or self._cached[0] is not history:
            self._cached = None
            self._cached = history, self._new_parts(history)
        return self._cached[1]

    def _new_parts(self, history: History) -> _SurrogateParts:
        """The surrogate built from all trials, or that of the last fit conditioned on the trials since then."""
        if self._last is None:  # during the initial design
            least, rng = Effort.at(0.0, len(history)), np.random.default_rng(len(history))
            data = self._data(history)
            return surrogate.fit(self.prior, data, None, least.mcmc_steps, least.K, rng)[0], (_ALL,)
        before, since = slice(self._last.n_fitted), slice(self._last.n_fitted, None)
        seen, new = self._data(history, before), self._data(history, since)
        # A later success at the same point removes a failure from the data, so the data of the last fit may differ.
        if self._surrogate is None or not np.array_equal(self._surrogate.loss.points, seen.points):
            self._surrogate = self._build(history, seen, self._last)
        if not len(new.points):
            return self._surrogate, (before,)
        # Build again from all data in two cases: the floor of the fitted transform would raise a new lowest loss, and
        # new repeats change the nugget fraction.
        everything = self._data(history)
        if new.lowest < seen.lowest or everything.n_repeats(self.prior) > seen.n_repeats(self.prior):
            return self._build(history, everything, self._last), (_ALL,)
        return self._surrogate.condition(new), (before, since)

    def _build(self, history: History, data: Data, last: _Fit) -> Surrogate:
        """The surrogate of the data with the samples of the last fit."""
        return surrogate.build(
            self.prior, data, last.samples, self._transform_after(history, last.n_refitted)
        )

    def _data(self, history: History, which: slice = slice(None)) -> Data:
        """The trials as the models see them."""
        return self._rows(history, which)[0]

    def _rows(self, history: History, which: slice) -> tuple[Data, IntArray]:
        """The data that the models see, and the trial of each row; -1 for a point that was reported on the way."""
        wanted = np.arange(len(history))[which]
        chosen = self._chosen(history, wanted)
        if self._curves is None:
            return _data_of(history, chosen), chosen
        data = self._curves.data(
            history, wanted, np.isin(np.arange(len(history)), chosen), self.prior.spec.max_trials
        )
        if self.prior.spec.cost_from_fidelity:
            data = replace(data, costs=np.exp(self.prior.columns.log_sizes(data.points).sum(axis=1)))
        trials = np.full(len(data.points), -1)
        trials[: len(chosen)] = chosen  # the ends come first
        return data, trials

    def _chosen(self, history: History, wanted: IntArray) -> IntArray:
        """The trials that the models see, at most `max_trials`.

        Without abandoned trials, and without failures that say nothing about the configuration.
        """
        kept = np.zeros(len(history), dtype=np.bool_)
        kept[wanted] = True
        kept &= ~history.abandoned & ~without_cause(history, self.prior.columns.n_choices)
        index, most = np.flatnonzero(kept), self.prior.spec.max_trials
        if len(index) > most:
            losses = np.where(history.failed[index], np.inf, history.losses[index])
            log_sizes = self.prior.columns.log_sizes(history.points[index]).sum(axis=1)
            index = index[informative_subset(losses, log_sizes, most)]
        return index

    def _transform_after(self, history: History, n: int) -> TargetTransform | None:
        """The transform after the first n trials; hyperparameters are in the units of their last refit."""
        before = self._data(history, slice(n))
        return None if before.failed.all() else before.fit_transform(self.prior.spec.transform)

    def state(self) -> dict[str, Array]:
        """The walkers, which of them are samples, and how many trials they have seen."""
        if self._last is None:
            return {}
        return {
            "loss_walkers": self._last.walkers.loss,
            "cost_walkers": self._last.walkers.cost,
            "loss_samples": self._last.samples.loss,
            "cost_samples": self._last.samples.cost,
            "seen": np.array([float(self._last.n_fitted), float(self._last.n_refitted)]),
        }

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a saved state. If it is of other models (another version), start from the prior."""
        self._last = self._surrogate = self._cached = None
        if "seen" not in state:
            return
        n_loss, n_cost = len(self.prior.loss_gp().priors), len(self.prior.cost_gp().priors)
        if (state["loss_walkers"].shape[1], state["cost_walkers"].shape[1]) != (n_loss, n_cost):
            return
        n_fitted, n_refitted = (int(n) for n in state["seen"])
        self._last = _Fit(
            HyperparameterSets(state["loss_walkers"], state["cost_walkers"]),
            HyperparameterSets(state["loss_samples"], state["cost_samples"]),
            n_fitted,
            n_refitted,
        )


def _data_of(history: History, index: IntArray) -> Data:
    return Data(history.points[index], history.losses[index], history.costs[index], history.failed[index])


def informative_subset(losses: Array, log_sizes: Array, limit: int) -> IntArray:
    """The indices, ascending, of the trials that say most about the optimum at the target.

    A third are the lowest losses at the target. A third are, for each size class (within a factor of two), the lowest
    loss, then the second lowest, and so on. The rest is thinned evenly over all trials, so that the models know the
    whole space.

    Args:
        losses: (n,) infinite where a trial failed.
        log_sizes: (n,) log of the size relative to the target, 0 at the target.
        limit: Number of trials to keep.
    """
    n = len(losses)
    if n <= limit:
        return np.arange(n)
    size_class = np.floor(-log_sizes / np.log(2.0) + 1e-9)
    order = np.lexsort((losses, size_class))
    starts = np.searchsorted(size_class[order], size_class[order], side="left")
    rank = np.empty(n)
    rank[order] = np.arange(n) - starts  # among the trials of the same size_class, 0 for the lowest loss
    at_target = np.flatnonzero(log_sizes == 0.0)
    best_there = at_target[np.argsort(losses[at_target], kind="stable")[: limit // 3]]
    lowest = np.setdiff1d(np.arange(n), best_there)
    lowest = lowest[np.lexsort((losses[lowest], rank[lowest]))][: limit // 3]
    others = np.setdiff1d(np.arange(n), np.concatenate([best_there, lowest]))
    # Multiples of the golden ratio modulo one are evenly spread, and the same trials stay as n grows.
    spread = np.mod(others * (0.5 * (np.sqrt(5.0) - 1.0)), 1.0)
    rest = others[np.argsort(spread, kind="stable")[: limit - len(best_there) - len(lowest)]]
    return np.sort(np.concatenate([best_there, lowest, rest]))
