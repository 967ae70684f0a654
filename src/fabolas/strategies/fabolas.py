"""FABOLAS: the most information about the best configuration on all the data, per second (Klein et al. 2017).

This file has the order of decisions. Fitting is in `model_based.py` and `fitting.py`, maximising in `acquire.py`.
The method departs from the paper where measurements say so (docs/method/index.md); `fabolas2017.py` is the algorithm as
published.
"""

from __future__ import annotations

import numpy as np

from fabolas._types import Array
from fabolas.model_spec import ModelSpec
from fabolas.reports import EarlyStopRule
from fabolas.space import Space
from fabolas.strategies.acquire import (
    AcquisitionConfig,
    AcquisitionContext,
    Candidate,
    Domain,
    configuration_pool,
    maximize_improvement,
    maximize_information,
)
from fabolas.strategies.base import Proposal
from fabolas.strategies.continuation import Continuations
from fabolas.strategies.early_stop import early_stop_rule
from fabolas.strategies.effort import OVERHEAD_SHARE, Effort
from fabolas.strategies.initial_design import initial_design, n_initial_points
from fabolas.strategies.model_based import ModelBased, evaluated_keys, full_domain
from fabolas.strategies.options import changed_options, check_number, check_whole_number
from fabolas.strategies.pace import Pace
from fabolas.trials import ENQUEUED, VERIFICATION, History, Suggestion

_TARGET_ORIGINS = (
    "target",
    "improvement",
    ENQUEUED,
    VERIFICATION,
)  # origins that count as target evaluations if the point is at the target


class InformationPerCost(ModelBased):
    """Algorithm 1 of the paper; `target_share` adds evaluations at the target. Base of `fabolas`, `mtbo`, `es`, `ei`.

    Args:
        space: the search space.
        model: the parts of both GPs.
        acquisition: what an evaluation is worth, and how that is maximised.
        domain: where points may lie.
        n_model_fidelities: how many fidelity columns the models see.
        n_initial: number of configurations of the initial design.
        target_share: see `Fabolas`.
        overhead_share: see `Fabolas`.
        effort: see `Fabolas`.
    """

    stop_early = False

    def __init__(
        self,
        space: Space,
        model: ModelSpec,
        acquisition: AcquisitionConfig,
        domain: Domain,
        n_model_fidelities: int,
        *,
        n_initial: int,
        target_share: float,
        overhead_share: float,
        effort: float | Effort | None,
    ) -> None:
        check_whole_number("n_initial", n_initial, 1, "a number of initial configurations, 1 or more")
        check_number("target_share", target_share, 0.0, 1.0, "a share of the time from 0 to 1")
        check_number(
            "overhead_share", overhead_share, 1e-6, 1.0 - 1e-6, "a share of the time between 0 and 1"
        )
        if effort is not None and not isinstance(effort, Effort):
            check_number("effort", effort, 0.0, 1.0, "a number from 0 (least) to 1 (full)")
        super().__init__(space, model, acquisition, domain, n_model_fidelities, n_initial)
        self.target_share = target_share
        self.overhead_share = overhead_share
        self.effort = effort

    def suggest(
        self,
        history: History,
        pending: tuple[Suggestion, ...],
        rng: np.random.Generator,
        *,
        remaining: float | None = None,
        at_target: bool = False,
    ) -> Proposal:
        """The next evaluation: from the initial design, from the last batch, or worth most per second (eq. 7)."""
        history = self._seen_by_models(history)
        self._workers = self._workers.updated(history, pending)
        at_target = at_target or self.target_share >= 1.0
        # Initial design (Algorithm 1, line 1).
        point = self._next_of_design(history, pending, at_target, rng)
        if point is not None:
            return Proposal(point, "design")
        # If a new decision takes too long for evaluations this cheap, take the next point of the last batch.
        if len(self._batch):
            self._batch = self._batch.without(evaluated_keys(history, pending))
        if len(self._batch) and not at_target and self._must_hurry(history, pending, remaining):
            point, cost = self._batch.points[0], self._batch.costs[0]
            self._batch = self._batch.without_first()
            continues = self._continues(point, history, pending)
            return Proposal(point, "batch", predicted_cost=self._predicted_seconds(cost), continues=continues)
        # Fit both GPs (line 3) and maximise the acquisition (line 4).
        candidate, origin, context = self._decide(history, pending, remaining, at_target, rng)
        self._batch = candidate.batch
        return Proposal(
            candidate.point,
            origin,
            effort=context.effort.level,
            predicted_cost=self._predicted_seconds(candidate.cost),
            continues=self._continues(candidate.point, history, pending),
            stop_rule=self._stop_rule(context, candidate.point, history, pending, rng),
        )

    def _continues(self, point: Array, history: History, pending: tuple[Suggestion, ...]) -> int | None:
        """The trial whose training an evaluation of the point (D,) continues; None to start from scratch."""
        if self._curve_column is None:
            return None
        return Continuations.of(self.space, history, pending).continues(point)

    def _stop_rule(
        self,
        context: AcquisitionContext,
        point: Array,
        history: History,
        pending: tuple[Suggestion, ...],
        rng: np.random.Generator,
    ) -> EarlyStopRule | None:
        """When an evaluation of the point (D,) should stop early; None for never."""
        if self._curve_column is None or not self.stop_early:
            return None
        continuations = Continuations.of(self.space, history, pending)
        return early_stop_rule(context, self.space, continuations, point, rng)

    def _decide(
        self,
        history: History,
        pending: tuple[Suggestion, ...],
        remaining: float | None,
        at_target: bool,
        rng: np.random.Generator,
    ) -> tuple[Candidate, str, AcquisitionContext]:
        """The candidate, its origin, and the models and the effort that it was chosen with.

        The right effort depends on the cost of the evaluation, which is known only after the decision. So a first
        decision takes the least effort. A second one replaces it if the predicted cost allows more than a quick
        decision, or if MCMC must move the hyperparameters (`move`).
        """
        if self.effort is not None:
            effort = self.effort if isinstance(self.effort, Effort) else Effort.at(self.effort, len(history))
            move = self._fitter.is_due(history, effort)
            context = self._context(history, pending, remaining, effort, move, rng)
            return *self._acquire(context, history, pending, at_target, rng), context
        pace = self._pace(history, pending)
        effort = Effort.at(0.0, len(history)).with_batch(pace.batch_size)
        # Many workers do not wait for two decisions.
        move = not self._fitter.is_fitted or (pace.workers_limit and self._fitter.is_overdue(history))
        context = self._context(history, pending, remaining, effort, move, rng)
        candidate, origin = self._acquire(context, history, pending, at_target, rng)

        level = pace.affordable_level(candidate.cost)
        affordable = Effort.at(level or 0.0, len(history)).with_batch(pace.batch_size)
        move = self._fitter.is_due(history, affordable)
        move = move and (level is not None or self._fitter.is_overdue(history))
        if move or not affordable.is_quick:
            context = self._context(history, pending, remaining, affordable, move, rng)
            candidate, origin = self._acquire(context, history, pending, at_target, rng)
        return candidate, origin, context

    def _acquire(
        self,
        context: AcquisitionContext,
        history: History,
        pending: tuple[Suggestion, ...],
        at_target: bool,
        rng: np.random.Generator,
    ) -> tuple[Candidate, str]:
        """An evaluation at the target if one is due, else the most informative one per second."""
        pool = configuration_pool(context, rng)
        if at_target or self._target_evaluation_is_due(context, history, pending):
            improving = maximize_improvement(context, pool, rng)
            if improving is not None and not context.effort.is_quick:
                return improving, "target"
            if improving is not None:  # a quick decision also fills the batch
                return improving.followed_by(maximize_information(context, pool, rng)), "target"
        informative = maximize_information(context, pool, rng)
        if informative.max_worth > context.config.criterion.negligible:
            return informative, "information"
        improving = maximize_improvement(context, pool, rng)
        return (informative, "information") if improving is None else (improving, "improvement")

    def _draw_design(self, k: int, rng: np.random.Generator) -> Array:
        """k points (k, D) of the initial design."""
        return initial_design(self.space, k, rng)

    def _target_evaluation_is_due(
        self, context: AcquisitionContext, history: History, pending: tuple[Suggestion, ...]
    ) -> bool:
        """Whether target evaluations have had less than their share of the time since the last one."""
        if self.target_share <= 0:
            return False
        last = max(
            (trial.id for trial in history.trials if self._aims_at_target(trial.suggestion)), default=-1
        )
        # With several workers, trials suggested before a target evaluation may end after it: compare suggestions.
        since = np.array([trial.id > last for trial in history.trials]) & ~history.abandoned
        spent = float(np.sum((history.costs + history.overheads)[since & ~history.added]))
        best = context.domain.at_target(context.ranked[:1])
        cost = float(context.surrogate.predict_cost(best)[0])
        n_pending = sum(self._aims_at_target(suggestion) for suggestion in pending)
        return spent >= (1 + n_pending) * cost * (1.0 - self.target_share) / self.target_share

    def _aims_at_target(self, suggestion: Suggestion) -> bool:
        """Whether the suggestion counts as a target evaluation."""
        aims = suggestion.origin in _TARGET_ORIGINS
        return aims and bool(self.space.is_at_target(suggestion.point[None])[0])

    def _must_hurry(self, history: History, pending: tuple[Suggestion, ...], remaining: float | None) -> bool:
        """Whether a new decision would take too long, compared with the cost of the next point of the batch."""
        pace, next_cost = self._pace(history, pending), float(self._batch.costs[0])
        if remaining is not None and pace.is_near_end(next_cost, remaining):
            return pace.seconds_to_decide > next_cost  # else most of the rest would be overhead
        return self.effort is None and pace.affordable_level(next_cost) is None

    def _pace(self, history: History, pending: tuple[Suggestion, ...]) -> Pace:
        """What past suggestions have taken, and what the next one may take."""
        # Costs that are relative sizes have no overhead to compare with.
        counted = () if self.model.cost_from_fidelity else pending
        return Pace.of(history, counted, self._workers.n, self.overhead_share)


class Fabolas(InformationPerCost):
    """Initial design on small subsets, then eq. 7 on two GPs over (x, u), and regular evaluations at the target.

    Args:
        space: the search space. Without fidelities eq. 7 is entropy search per second.
        n_initial: number of configurations of the initial design; None for a number that suits the space.
        target_share: share of the time for target evaluations. One is due when its predicted cost is at most this share
            of (the time since the last target evaluation + its predicted cost). It evaluates the configuration with the
            largest expected improvement at the target. So a search that is misled by small subsets still spends this
            share of its time as a search on all the data does. 0 for never, 1 for always.
        overhead_share: share of the time for overhead.
        effort: a fixed effort for each suggestion, from 0 (least) to 1 (full), instead of `overhead_share`; an
            `Effort` for experiments.
        stop_early: whether trainings that report on the way may be stopped early: `trial.should_stop()` is then True
            when the rest of the training gives less information per second than the best other evaluation.
        model: other parts of the GPs, for experiments.
        acquisition: another acquisition, for experiments.
    """

    name = "fabolas"
    reads_curves = True

    def __init__(
        self,
        space: Space,
        *,
        n_initial: int | None = None,
        target_share: float = 1 / 3,
        overhead_share: float = OVERHEAD_SHARE,
        effort: float | Effort | None = None,
        stop_early: bool = False,
        model: ModelSpec | None = None,
        acquisition: AcquisitionConfig | None = None,
    ) -> None:
        if not isinstance(stop_early, bool):
            raise ValueError(f"stop_early: expected True or False, got {stop_early!r}")
        self.stop_early = stop_early
        super().__init__(
            space,
            ModelSpec() if model is None else model,
            AcquisitionConfig() if acquisition is None else acquisition,
            full_domain(space),
            space.n_fidelities,
            n_initial=n_initial_points(space) if n_initial is None else n_initial,
            target_share=target_share,
            overhead_share=overhead_share,
            effort=effort,
        )
        self.options = changed_options(
            Fabolas,
            n_initial=n_initial,
            target_share=target_share,
            overhead_share=overhead_share,
            effort=effort,
            stop_early=stop_early,
            model=model,
            acquisition=acquisition,
        )
