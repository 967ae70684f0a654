"""The acquisition: from a fitted surrogate to the next evaluation. It sees points, no history and no clock.

pool = configuration_pool(context, rng)                  configurations that may be the best
candidate = maximize_information(context, pool, rng)     the most information per cost, eq. 7
candidate = maximize_improvement(context, pool, rng)     the largest expected improvement at the target, eq. 2

If a target evaluation is due, `maximize_target_improvement` replaces both: `maximize_improvement` and a batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from fabolas._types import Array, BoolArray
from fabolas.acquisition.batch import greedy_batch
from fabolas.acquisition.entropy import (
    InformationEstimator,
    PosteriorSamples,
    gaussian_information,
    monte_carlo_information,
)
from fabolas.acquisition.improvement import log_expected_improvement
from fabolas.acquisition.representers import (
    ChooseRepresenters,
    Representers,
    neighbourhood,
    thompson_representers,
)
from fabolas.optimize import Maximizer, candidate_search, lbfgs_maximize
from fabolas.strategies.candidate import Batch, Candidate, point_key
from fabolas.strategies.continuation import MIN_COST_SHARE, Continuations
from fabolas.strategies.effort import Effort
from fabolas.surrogate import Surrogate
from fabolas.trials import IMPROVEMENT, INFORMATION, TARGET

# Standard deviations of steps around promising configurations, in the cube.
NEIGHBOUR_STEPS = (0.2, 0.05, 0.0125)
N_BEST = 10  # the lowest mean is taken over this many configurations, those with the lowest mean
CLIMB_ITERATIONS = 2  # of L-BFGS, per dimension


@dataclass(frozen=True)
class AcquisitionConfig:
    """How information is computed, divided by cost and maximised; the defaults are those of `fabolas`.

    Attributes:
        information_estimator: For the best candidates: `monte_carlo_information` or `ep_information`.
        relative_to_uniform: The divergence of p_min from uniform (eq. 7 as printed), instead of the reduction of its
            entropy.
        final_samples: Factor by which the number of samples grows from screening to the final choice.
        choose_representers: `thompson_representers` or `improvement_representers`.
        maximizer: `optimize.candidate_search`, `direct`, `cma_es` or `direct_and_cma_es`.
        evaluations_per_dimension: Smallest number of evaluations of a maximiser, per dimension: about 20 for those that
            search the whole cube, 0 for `candidate_search`.
        divide_by_cost: Divide by cost (eq. 5); False for eq. 3.
        count_overhead: Add overhead and cost offset to the cost (eq. 7).
        cost_offset: Share of the time spent so far that is added to every predicted cost. Tiny differences in cost
            stop mattering as the search goes on, so sizes increase.
    """

    information_estimator: InformationEstimator = monte_carlo_information
    relative_to_uniform: bool = False
    final_samples: int = 1
    choose_representers: ChooseRepresenters = thompson_representers
    maximizer: Maximizer = candidate_search
    evaluations_per_dimension: int = 0
    divide_by_cost: bool = True
    count_overhead: bool = True
    cost_offset: float = 0.02

    def __post_init__(self) -> None:
        if not 0.0 <= self.cost_offset <= 1.0:
            raise ValueError(
                f"cost_offset: expected a share of the time spent so far, from 0 to 1, got {self.cost_offset}"
            )

    def divisor(self, costs: Array, added_seconds: float) -> Array:
        """The denominator of eq. 7, (m,): predicted costs (m,) plus overhead and cost offset; 1 for eq. 3."""
        if not self.divide_by_cost:
            return np.ones_like(costs)
        return costs + added_seconds


@dataclass(frozen=True)
class Domain:
    """Where points may lie: arrays and functions of arrays only. `full_domain` in models.py makes one.

    Attributes:
        d: Number of configuration columns, the first ones.
        f: Number of fidelity columns, the last ones.
        n_choices: (d,) 0 for a numeric column, else the number of categories.
        snap: Points (m, D) -> the nearest representable ones.
        is_legal: Points (m, D) -> (m,).
        sobol: n, rng -> (n, d) configurations.
        draw_fidelities: n, rng -> (n, f) fidelities to consider.
    """

    d: int
    f: int
    n_choices: tuple[int, ...]
    snap: Callable[[Array], Array]
    is_legal: Callable[[Array], BoolArray]
    sobol: Callable[[int, np.random.Generator], Array]
    draw_fidelities: Callable[[int, np.random.Generator], Array]

    def at_target(self, x: Array) -> Array:
        """Configurations (m, d) -> points (m, D) at the target fidelity."""
        return np.concatenate([x, np.ones((len(x), self.f))], axis=1)


@dataclass(frozen=True)
class AcquisitionContext:
    """All that a decision is made from.

    Attributes:
        domain: Where points may lie.
        surrogate: Loss and cost, given the history and the pending evaluations.
        evaluated_by_mean: (m, d) the evaluated configurations, each once, lowest predicted loss at the target first.
        measured_or_pending: (r, d) the configurations complete or pending at the target, each once, in the order of
            `evaluated_by_mean`.
        added_seconds: Seconds added to every predicted cost: overhead and cost offset.
        max_cost: Seconds left for the evaluation: a point is allowed if its `cost_limit` is at most this. None for all.
        effort: The sizes of this decision.
        config: How information is computed, divided by cost and maximised.
        evaluated_keys: The points (D,) that are complete, failed or pending, see `point_key`.
        continuations: The trainings that an evaluation may continue; None if the GPs read no curves.
    """

    domain: Domain
    surrogate: Surrogate
    evaluated_by_mean: Array
    measured_or_pending: Array
    added_seconds: float
    max_cost: float | None
    effort: Effort
    config: AcquisitionConfig
    evaluated_keys: frozenset[bytes] = frozenset()
    continuations: Continuations | None = None

    def lowest_mean_evaluated(self) -> Array:
        """(K,) The lowest mean at the target of an evaluated configuration."""
        return self._lowest_mean(self.evaluated_by_mean)

    def lowest_mean_measured(self) -> Array:
        """(K,) The same of those measured or pending at the target; of all evaluated ones if there are none."""
        return self._lowest_mean(
            self.measured_or_pending if len(self.measured_or_pending) else self.evaluated_by_mean
        )

    def _lowest_mean(self, x: Array) -> Array:
        best = self.domain.at_target(x[:N_BEST])
        return np.asarray(self.surrogate.loss.mean_of(best).min(axis=1))

    def divisor_and_allowed(self, points: Array) -> tuple[Array, BoolArray]:
        """What the information of each point (m, D) is divided by, and which points may be evaluated."""
        return self.config.divisor(self.cost(points), self.added_seconds), self.is_allowed(points)

    def cost(self, points: Array) -> Array:
        """Predicted seconds (m,) of evaluations of the points (m, D); only the rest if one continues a training."""
        whole = self.surrogate.predict_cost(points)
        return np.maximum(whole - self._paid(points), MIN_COST_SHARE * whole)

    def cost_limit(self, points: Array) -> Array:
        """Upper limits (m,) of these seconds, see `Surrogate.cost_limit`."""
        whole = self.surrogate.cost_limit(points)
        return np.maximum(whole - self._paid(points), MIN_COST_SHARE * whole)

    def fits(self, points: Array) -> BoolArray:
        """(m,) Whether `cost_limit` of the points (m, D) is at most `max_cost`."""
        if self.max_cost is None:
            return np.ones(len(points), dtype=np.bool_)
        # `cost_limit(points) <= max_cost`, solved for the limit of the whole training.
        whole = np.minimum(self.max_cost + self._paid(points), self.max_cost / MIN_COST_SHARE)
        return self.surrogate.costs_at_most(points, whole)

    def _paid(self, points: Array) -> Array:
        """(m,) Predicted seconds of what was trained before; 0 for an evaluation that starts from scratch."""
        if self.continuations is None:
            return np.zeros(len(points))
        return self.continuations.paid(self.surrogate, points)

    def choose_representers(self, pool: Array, rng: np.random.Generator) -> Array:
        """Points (R, D) at the target that represent the configurations (m, d) of the pool."""
        points, best = self.domain.at_target(pool), self.lowest_mean_evaluated()
        return self.config.choose_representers(
            self.surrogate.loss, points, best, self.effort.n_representers, rng
        )

    def represent(self, points: Array) -> Representers:
        """The representers at these points (R, D), for evaluations that report on the way if the GPs read curves."""
        traces = None if self.continuations is None else self.continuations.traces
        return Representers.at_points(self.surrogate.loss, points, traces)

    def is_new(self, points: Array) -> BoolArray:
        """(m,) Which points (m, D) are neither evaluated nor pending."""
        return np.array([point_key(point) not in self.evaluated_keys for point in points], dtype=np.bool_)

    def is_allowed(self, points: Array) -> BoolArray:
        """(m,) Which points (m, D) may be evaluated: legal ones that are new and whose cost limit fits.

        The predicted cost is not enough: half of the evaluations take longer, and the last one of a budget would then
        often end much too late.
        """
        return self.domain.is_legal(points) & self.is_new(points) & self.fits(points)

    def allowing_some(self, points: Array) -> AcquisitionContext:
        """The same context in which at least one of the points (m, D) may be evaluated.

        Repeats are allowed only if there is no new point. The cheapest point is allowed whatever it costs.
        """
        new = self.is_new(points)
        context = self if new.any() else replace(self, evaluated_keys=frozenset())
        considered = points[new] if new.any() else points
        if self.fits(considered).any():
            return context
        cheapest = float(self.cost_limit(considered).min())
        return replace(context, max_cost=cheapest * (1.0 + 1e-6))


def rank_by_prediction(surrogate: Surrogate, domain: Domain, x: Array) -> Array:
    """Configurations (n, d), each once, lowest predicted loss at the target first."""
    if not len(x):
        return x
    unique = np.unique(x, axis=0)
    mean = surrogate.loss.mean_of(domain.at_target(unique)).mean(axis=0)
    return unique[np.argsort(mean)]


def configuration_pool(context: AcquisitionContext, rng: np.random.Generator) -> Array:
    """Configurations (m, d) that may be the best.

    They are evaluated ones, Sobol points, minima of the predicted loss, and neighbours of these minima and of the five
    best evaluated ones.
    """
    domain, evaluated, n = context.domain, context.evaluated_by_mean, context.effort.pool_size
    known = np.concatenate([evaluated[: n // 4], domain.sobol(n // 4, rng)])
    minima = _predicted_minima(context, known)
    centres = [c for c in (evaluated[:5], minima) if len(c)]
    near = [neighbourhood(c, n // 2 // len(centres), NEIGHBOUR_STEPS, domain.n_choices, rng) for c in centres]
    points = domain.snap(domain.at_target(np.concatenate([known, minima, *near])))
    return np.unique(points[domain.is_legal(points)], axis=0)[:, : domain.d]


def _predicted_minima(context: AcquisitionContext, start: Array) -> Array:
    """(c, d) Local minima of the predicted loss at the target, from the best of the start.

    In six or more dimensions neither evaluated nor random configurations are near these minima.
    """
    domain, loss = context.domain, context.surrogate.loss

    def value(x: Array) -> Array:
        return np.asarray(-loss.mean_of(domain.at_target(x)).mean(axis=0))

    best = start[np.argsort(-value(start), kind="stable")[: context.effort.n_climbs]]
    return np.array([_climb(value, x, domain) for x in best]).reshape(len(best), domain.d)


def _climb(value: Callable[[Array], Array], x: Array, domain: Domain) -> Array:
    """L-BFGS from a configuration (d,) in its numeric coordinates; its categories stay."""
    fixed = np.array(domain.n_choices) > 0
    low, high = np.where(fixed, x, 0.0), np.where(fixed, x, 1.0)
    return lbfgs_maximize(value, x, low, high, CLIMB_ITERATIONS * domain.d)


def maximize_information(context: AcquisitionContext, pool: Array, rng: np.random.Generator) -> Candidate:
    """The point with the most information about the optimum per cost: eq. 7 of Klein et al. 2017.

    Many candidates are screened, which means: estimated quickly. The best of them are then estimated accurately and
    refined. A quick decision does not do that. It takes the best screened candidate, and greedily chooses a batch of
    further ones.

    Args:
        context: What is known.
        pool: (m, d) configurations that may be the best.
        rng: Draws representers, their samples, and candidates.
    """
    domain, effort, config = context.domain, context.effort, context.config
    representer_points = context.choose_representers(pool, rng)
    representers = context.represent(representer_points)
    samples = PosteriorSamples.draw(representers, effort.n_samples, rng)
    candidates = draw_candidates(domain, pool, representer_points, effort.n_screened, rng)
    if context.continuations is not None:
        continuing = context.continuations.candidates(context.surrogate.loss)
        candidates = np.unique(np.concatenate([candidates, continuing]), axis=0)
    context = context.allowing_some(candidates)
    screen = gaussian_information(representers, samples, relative_to_uniform=config.relative_to_uniform)
    information = screen(candidates).mean(axis=0)
    divisor, allowed = context.divisor_and_allowed(candidates)
    value = np.where(allowed, information / divisor, -np.inf)  # eq. 7
    if effort.is_quick:
        first, count = int(np.argmax(value)), 1 + effort.batch_size
        chosen = greedy_batch(representers, samples, candidates, divisor, allowed, first=first, count=count)
        points = candidates[chosen]
    else:
        start = candidates[np.argsort(-value, kind="stable")[: effort.n_estimated]]
        points = _refine(context, representers, samples, start, rng)[None]
    costs = context.cost(points)
    max_information = float(information[allowed].max(initial=0.0))
    return Candidate(points[0], float(costs[0]), INFORMATION, max_information, Batch(points[1:], costs[1:]))


def _refine(
    context: AcquisitionContext,
    representers: Representers,
    samples: PosteriorSamples,
    start: Array,
    rng: np.random.Generator,
) -> Array:
    """The point (D,) where the accurate estimate of eq. 7 is largest, searched from the start (m, D)."""
    domain, effort, config = context.domain, context.effort, context.config
    if config.final_samples > 1:
        samples = PosteriorSamples.draw(representers, config.final_samples * effort.n_samples, rng)
    information = config.information_estimator(
        representers, samples, effort.n_outcomes, relative_to_uniform=config.relative_to_uniform
    )

    def value(points: Array) -> Array:
        divisor, allowed = context.divisor_and_allowed(points)
        return np.where(allowed, information(points).mean(axis=0) / divisor, -np.inf)  # eq. 7

    further = max(effort.n_refined, config.evaluations_per_dimension * start.shape[1])
    return config.maximizer(
        value, start, domain.snap, rng, evaluations=len(start) + further, n_choices=domain.n_choices
    ).point


def maximize_improvement(
    context: AcquisitionContext, pool: Array, rng: np.random.Generator
) -> Candidate | None:
    """The configuration at the target with the largest expected improvement on the best measured there (eq. 2).

    A configuration that is predicted to be better but was never measured at the target counts as an improvement, so
    it will be measured.

    Args:
        context: What is known.
        pool: (m, d) configurations to start from.
        rng: Draws candidates.

    Returns:
        None if no configuration is allowed; see `AcquisitionContext.allowing_some`.
    """
    domain = context.domain
    value = partial(_improvement, context, context.lowest_mean_measured())
    snap = partial(_snap_at_target, domain)
    found = candidate_search(
        value, pool, snap, rng, evaluations=2 * len(pool), rounds=3, n_choices=domain.n_choices
    )
    if found.value == -np.inf:
        return None
    x = found.point[None]
    if not context.effort.is_quick:
        higher = snap(_climb(value, found.point, domain)[None])
        x = higher if float(value(higher)[0]) > found.value else x
    point = domain.at_target(x)
    cost = float(context.cost(point)[0])
    return Candidate(point[0], cost, IMPROVEMENT, 0.0, Batch.empty(point.shape[1]))


def maximize_target_improvement(
    context: AcquisitionContext, pool: Array, rng: np.random.Generator
) -> Candidate | None:
    """`maximize_improvement` when a target evaluation is due, and the batch of a quick decision; None if none fits."""
    improving = maximize_improvement(context, pool, rng)
    if improving is None:
        return None
    improving = replace(improving, origin=TARGET)
    if not context.effort.is_quick:
        return improving
    return improving.followed_by(maximize_information(context, pool, rng))


def _improvement(context: AcquisitionContext, best: Array, x: Array) -> Array:
    """log EI (m,) of configurations (m, d) at the target, averaged over hyperparameters; -inf if not allowed."""
    points, loss = context.domain.at_target(x), context.surrogate.loss
    at = loss.project(points)
    each = log_expected_improvement(loss.mean(at), loss.variance(at), best[:, None])
    averaged = np.logaddexp.reduce(each, axis=0) - np.log(len(each))
    return np.where(context.is_allowed(points), averaged, -np.inf)


def _snap_at_target(domain: Domain, x: Array) -> Array:
    return domain.snap(domain.at_target(x))[:, : domain.d]


def draw_candidates(
    domain: Domain, pool: Array, representers: Array, n: int, rng: np.random.Generator
) -> Array:
    """At most n points (m, D): two thirds have a representer's configuration; fidelities are drawn independently."""
    likely = representers[rng.integers(len(representers), size=2 * n // 3), : domain.d]
    other = pool[rng.integers(len(pool), size=n - len(likely))]
    x = np.concatenate([likely, other])
    return np.unique(domain.snap(np.concatenate([x, domain.draw_fidelities(n, rng)], axis=1)), axis=0)
