"""FABOLAS: the most information about the best configuration on all the data, per second (Klein et al. 2017).

`ModelBasedSearch.suggest` is Algorithm 1 of the paper, to be read from top to bottom:

    design      points on small subsets                             initial_design.py
    fit         both GPs, given the history and pending trials      models.py, fitting.py, surrogate.py
    acquire     what an evaluation is worth, per second (eq. 7)     acquire.py, acquisition/
    maximise    over configurations and sizes                       acquire.py, optimize.py
    propose     one point, and what is known about it               base.py
    incumbent   the lowest expected loss at the target              incumbent.py

`Fabolas` chooses its parts; `mtbo`, `es` and `ei` choose others. The method departs from the paper where measurements
say so (docs/method/index.md); `fabolas2017.py` is the algorithm as published.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from fabolas._types import Array
from fabolas.model_spec import ModelSpec
from fabolas.space import Space
from fabolas.strategies.acquire import (
    AcquisitionConfig,
    AcquisitionContext,
    Domain,
    configuration_pool,
    maximize_improvement,
    maximize_information,
    maximize_target_improvement,
)
from fabolas.strategies.base import Proposal
from fabolas.strategies.candidate import Batch, Candidate
from fabolas.strategies.continuation import Continuations
from fabolas.strategies.early_stop import early_stop_rule
from fabolas.strategies.effort import OVERHEAD_SHARE, Effort, Pace, WorkerCount
from fabolas.strategies.initial_design import (
    DrawDesign,
    InitialDesign,
    n_initial_points,
    sobol_on_subsets,
)
from fabolas.strategies.models import Models, ModelStrategy, evaluated_keys, full_domain
from fabolas.strategies.options import changed_options, check_number
from fabolas.trials import (
    BATCH,
    DESIGN,
    ENQUEUED,
    IMPROVEMENT,
    TARGET,
    VERIFICATION,
    History,
    Suggestion,
)

# Origins of suggestions that count as target evaluations if the point is at the target.
_TARGET_ORIGINS = (TARGET, IMPROVEMENT, ENQUEUED, VERIFICATION)

NEGLIGIBLE_NATS = 1e-3  # if no evaluation gives more information, it is not worth its cost

ChooseNext = Callable[[AcquisitionContext, Array, bool, np.random.Generator], Candidate]
"""(context, pool of configurations, whether a target evaluation is due, rng) -> the next evaluation."""


def target_or_information(
    context: AcquisitionContext, pool: Array, target_is_due: bool, rng: np.random.Generator
) -> Candidate:
    """An evaluation at the target if one is due and fits; else the one with most information per second (eq. 7).

    If no evaluation gives information any more, it is the one with the largest expected improvement at the target.
    """
    if target_is_due:
        improving = maximize_target_improvement(context, pool, rng)
        if improving is not None:
            return improving
    informative = maximize_information(context, pool, rng)
    # The divergence from uniform is large even where there is nothing to learn.
    if context.config.relative_to_uniform or informative.max_information > NEGLIGIBLE_NATS:
        return informative
    return maximize_improvement(context, pool, rng) or informative


class ModelBasedSearch(ModelStrategy):
    """Algorithm 1 of the paper, and evaluations at the target from time to time. Strategies pass it their parts.

    Args:
        space: The search space.
        model: The parts of both GPs.
        acquisition: What an evaluation is worth, and how that is maximised.
        domain: Where points may lie.
        draw_design: Draws the initial design.
        n_initial: Number of configurations of the initial design.
        n_model_fidelities: How many fidelity columns the GPs see.
        reads_curves: Whether the GPs read what trainings report on the way.
        choose_next: Chooses the next evaluation by the fitted GPs.
        target_share: See `Fabolas`.
        overhead_share: See `Fabolas`.
        effort: See `Fabolas`.
        stop_early: See `Fabolas`.
    """

    def __init__(
        self,
        space: Space,
        model: ModelSpec,
        acquisition: AcquisitionConfig,
        domain: Domain,
        draw_design: DrawDesign,
        *,
        n_initial: int,
        n_model_fidelities: int,
        reads_curves: bool = False,
        choose_next: ChooseNext = target_or_information,
        target_share: float = 0.0,
        overhead_share: float = OVERHEAD_SHARE,
        effort: float | Effort | None = None,
        stop_early: bool = False,
    ) -> None:
        models = Models(space, model, acquisition, domain, n_model_fidelities, reads_curves=reads_curves)
        super().__init__(models, InitialDesign(draw_design, n_initial))
        check_number("target_share", target_share, 0.0, 1.0, "a share of the time from 0 to 1")
        check_number(
            "overhead_share", overhead_share, 1e-6, 1.0 - 1e-6, "a share of the time between 0 and 1"
        )
        if effort is not None and not isinstance(effort, Effort):
            check_number("effort", effort, 0.0, 1.0, "a number from 0 (least) to 1 (full)")
        if model.cost_from_fidelity and effort is None:
            raise ValueError(
                "expected a fixed effort with cost_from_fidelity=True, because overhead cannot be a share of costs "
                "that are no seconds; give effort=1.0 or another number from 0 to 1"
            )
        self.space, self.target_share, self.overhead_share = space, target_share, overhead_share
        self.effort, self.stop_early = effort, stop_early
        self._choose_next = choose_next
        self._batch = Batch.empty(space.dim + space.n_fidelities)
        self._workers = WorkerCount()

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
        history = self.models.with_model_costs(history)
        self._workers = self._workers.updated(history, pending)
        # A share of 1 also leaves out the rest of the design and the batch, whose points are on subsets.
        at_target = at_target or self.target_share >= 1.0
        # Algorithm 1, line 1: the initial design.
        point = self._design.next(history, pending, at_target, rng)
        if point is not None:
            return Proposal(point, DESIGN)
        # Not in the paper: if a decision takes too long for evaluations this cheap, take a point of the last batch.
        if len(self._batch):
            self._batch = self._batch.without(evaluated_keys(history, pending))
        if len(self._batch) and not at_target and self._decision_takes_too_long(history, pending, remaining):
            point, cost = self._batch.points[0], self._batch.costs[0]
            self._batch = self._batch.without_first()
            seconds = self.models.predicted_seconds(cost)
            continues = _continues(self.models.continuations(history, pending), point)
            return Proposal(point, BATCH, predicted_cost=seconds, continues=continues)
        # Line 3: fit both GPs. Line 4: maximise the acquisition.
        context, candidate = self._decide(history, pending, remaining, at_target, rng)
        self._batch = candidate.batch
        # Line 5 evaluates the point: the engine does that.
        return Proposal(
            candidate.point,
            candidate.origin,
            effort=context.effort.level,
            predicted_cost=self.models.predicted_seconds(candidate.cost),
            continues=_continues(context.continuations, candidate.point),
            stop_rule=early_stop_rule(context, candidate.point, rng) if self.stop_early else None,
        )

    def _decide(
        self,
        history: History,
        pending: tuple[Suggestion, ...],
        remaining: float | None,
        at_target: bool,
        rng: np.random.Generator,
    ) -> tuple[AcquisitionContext, Candidate]:
        """Fit and choose, with the fixed effort or with one in proportion to the cost of the evaluation.

        1. Decide with the least effort.
        2. If the predicted cost allows a higher effort, or a refit is due, decide again.
        """
        fitter, n = self.models.fitter, len(history)
        fit_and_choose = partial(self._fit_and_choose, history, pending, remaining, at_target, rng)
        if self.effort is not None:
            effort = self.effort if isinstance(self.effort, Effort) else Effort.at(self.effort, n)
            return fit_and_choose(effort, fitter.refit_is_due(history, effort))
        pace = self._pace(history, pending)
        least = Effort.at(0.0, n).with_batch(pace.batch_size)
        # With many workers, refit in the first decision, because there is no time for a second.
        refit = not fitter.is_fitted or (pace.limited_by_workers and fitter.refit_is_overdue(history))
        # Both decisions use the same rng. The second starts from the walkers that the first has left.
        context, candidate = fit_and_choose(least, refit)

        level = pace.affordable_level(candidate.cost)
        affordable = Effort.at(level or 0.0, n).with_batch(pace.batch_size)
        refit = fitter.refit_is_due(history, affordable)
        refit = refit and (level is not None or fitter.refit_is_overdue(history))
        if refit or not affordable.is_quick:
            return fit_and_choose(affordable, refit)
        return context, candidate

    def _fit_and_choose(
        self,
        history: History,
        pending: tuple[Suggestion, ...],
        remaining: float | None,
        at_target: bool,
        rng: np.random.Generator,
        effort: Effort,
        refit: bool,
    ) -> tuple[AcquisitionContext, Candidate]:
        """Lines 3 and 4 with this effort; `refit` says whether MCMC samples new hyperparameters."""
        surrogate = self.models.fit(history, pending, effort, refit, rng)
        context = self.models.context(surrogate, history, pending, remaining, effort)
        pool = configuration_pool(context, rng)
        is_due = at_target or target_evaluation_is_due(
            self.space, self.target_share, context, history, pending
        )
        return context, self._choose_next(context, pool, is_due, rng)

    def _decision_takes_too_long(
        self, history: History, pending: tuple[Suggestion, ...], remaining: float | None
    ) -> bool:
        """Whether a new decision would take too long, compared with the cost of the next point of the batch."""
        pace, next_cost = self._pace(history, pending), float(self._batch.costs[0])
        if remaining is not None and pace.is_near_end(next_cost, remaining):
            # A decision that takes longer than the evaluation would make most of the remaining time overhead.
            return pace.seconds_to_decide > next_cost
        return self.effort is None and pace.affordable_level(next_cost) is None

    def _pace(self, history: History, pending: tuple[Suggestion, ...]) -> Pace:
        """Overhead of past suggestions, and how much the next one may take (effort.py)."""
        # Costs that are relative sizes cannot be compared with the seconds of overhead of pending suggestions.
        counted = () if self.models.spec.cost_from_fidelity else pending
        return Pace.of(history, counted, self._workers.n, self.overhead_share)

    def state(self) -> dict[str, Array]:
        """The initial design, the number of workers, the walkers and the batch, as far as there are any."""
        state = super().state()
        if self._workers.n > 1:
            state["workers"] = np.array([float(self._workers.n), float(self._workers.since)])
        if self.models.fitter.is_fitted:
            state |= {"batch": self._batch.points, "batch_costs": self._batch.costs}
        return state

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a saved state. Walkers of another version are dropped, and the batch that they chose."""
        super().restore(state)
        self._workers = (
            WorkerCount(*(int(n) for n in state["workers"])) if "workers" in state else WorkerCount()
        )
        self._batch = Batch.empty(self.space.dim + self.space.n_fidelities)
        if self.models.fitter.is_fitted:
            self._batch = Batch(state["batch"], state["batch_costs"])


def target_evaluation_is_due(
    space: Space,
    share: float,
    context: AcquisitionContext,
    history: History,
    pending: tuple[Suggestion, ...],
) -> bool:
    """Whether enough time has passed since the last target evaluation for another one.

    So target evaluations take `share` of the time.
    """
    if share <= 0:
        return False
    last = max((trial.id for trial in history.trials if _aims_at_target(space, trial.suggestion)), default=-1)
    # With several workers, trials suggested before a target evaluation may end after it: compare suggestions.
    since = np.array([trial.id > last for trial in history.trials]) & ~history.abandoned
    spent = float(np.sum((history.costs + history.overheads)[since & ~history.added]))
    best = context.domain.at_target(context.evaluated_by_mean[:1])
    cost = float(context.cost(best)[0])
    n_pending = sum(_aims_at_target(space, suggestion) for suggestion in pending)
    return spent >= (1 + n_pending) * cost * (1.0 - share) / share


def _continues(continuations: Continuations | None, point: Array) -> int | None:
    """The trial whose training an evaluation of the point (D,) continues; None to start from scratch."""
    return None if continuations is None else continuations.continues(point)


def _aims_at_target(space: Space, suggestion: Suggestion) -> bool:
    """Whether the suggestion counts as a target evaluation."""
    return suggestion.origin in _TARGET_ORIGINS and bool(space.is_at_target(suggestion.point[None])[0])


class Fabolas(ModelBasedSearch):
    """Initial design on small subsets, then eq. 7 on two GPs over (x, u), and regular evaluations at the target.

    Args:
        space: The search space. Without fidelities eq. 7 is entropy search per second.
        n_initial: Number of configurations of the initial design; None for a number that suits the space.
        target_share: Share of the time for target evaluations. One is due when its predicted cost is at most this share
            of (the time since the last target evaluation + its predicted cost). It evaluates the configuration with the
            largest expected improvement at the target. If small subsets mislead the search, this share of its time
            still works as a search on all the data. 0 for never, 1 for always.
        overhead_share: Share of the time for overhead.
        effort: A fixed effort for each suggestion, from 0 (least) to 1 (full), instead of `overhead_share`; an
            `Effort` for experiments.
        stop_early: Whether trainings that report on the way may be stopped early: `trial.should_stop()` is then True
            when the rest of the training gives less information per second than the best other evaluation.
        model: A `ModelSpec` instead of the default one; for experiments.
        acquisition: An `AcquisitionConfig` instead of the default one; for experiments.
    """

    name = "fabolas"

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
        super().__init__(
            space,
            ModelSpec() if model is None else model,
            AcquisitionConfig() if acquisition is None else acquisition,
            full_domain(space),
            partial(sobol_on_subsets, space),
            n_initial=n_initial_points(space) if n_initial is None else n_initial,
            n_model_fidelities=space.n_fidelities,
            reads_curves=True,
            target_share=target_share,
            overhead_share=overhead_share,
            effort=effort,
            stop_early=stop_early,
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
