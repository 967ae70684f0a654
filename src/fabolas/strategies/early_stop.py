"""When a training should stop early: limits for its reports, computed when it is suggested.

Let a training be on its way to the point p. At a report y at a smaller value it should stop if the rest of the training
gives less information per second than the best other evaluation does now:

    information about p_min in the end, given y           best information of another evaluation
    --------------------------------------------    <    --------------------------------------
             cost of the rest                                  its cost and overhead

The left side depends on y: a training that looks bad is unlikely to be the best, so its end gives little information
about p_min. We compute it on a grid of outcomes y that are worse than expected. The limit is the smallest y of the grid
such that the training should stop for this y and for all larger ones. The limits travel with the job, so that stopping
needs no message to a worker and works wherever trials run.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fabolas._types import Array
from fabolas.acquisition.entropy import PosteriorSamples, gaussian_information, joint_samples, lowest
from fabolas.acquisition.representers import Representers
from fabolas.curve_reports import EarlyStopRule
from fabolas.gp.trainings import in_training
from fabolas.strategies.acquire import AcquisitionContext, draw_candidates
from fabolas.strategies.continuation import MIN_COST_SHARE, Continuations
from fabolas.surrogate import Surrogate

FRACTIONS = (0.25, 0.5, 0.75)  # where a training may stop, as fractions of its way in u
# Outcomes in predicted standard deviations above the mean: only a training that is worse than expected stops.
OUTCOMES = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
N_CANDIDATES = 80  # how many other evaluations it is compared with


def early_stop_rule(
    context: AcquisitionContext, point: Array, rng: np.random.Generator
) -> EarlyStopRule | None:
    """The limits for an evaluation of the point (D,); None if it should not stop, or does not report."""
    continuations = context.continuations
    if continuations is None:
        return None
    stops, training = _where_to_stop(continuations, point)
    if not len(stops):
        return None
    representers, samples, best = _best_alternative(context, point, rng)
    end = in_training(point[None], training)
    limits = []
    for stop in stops:
        # Nats that the best other evaluation gives in the time that the rest of this training takes.
        alternative = best * _seconds_left(context.surrogate, stop, point)
        limit = _limit(representers, samples, in_training(stop[None], training), end, alternative)
        limits.append(
            float(context.surrogate.transform.inverse(np.array(limit))) if np.isfinite(limit) else np.inf
        )
    values = continuations.fidelity.values(stops[:, continuations.column])
    return EarlyStopRule(tuple(values.tolist()), tuple(limits)) if np.isfinite(limits).any() else None


def _best_alternative(
    context: AcquisitionContext, point: Array, rng: np.random.Generator
) -> tuple[Representers, PosteriorSamples, float]:
    """Representers, their samples, and the most information per second of an evaluation of another configuration."""
    domain = context.domain
    x = point[None, : domain.d]
    pool = np.unique(np.concatenate([context.evaluated_by_mean[:32], domain.sobol(32, rng), x]), axis=0)
    pool = pool[domain.is_legal(domain.at_target(pool))]
    chosen = context.choose_representers(pool, rng)
    with_point = np.unique(np.concatenate([chosen, domain.at_target(x)]), axis=0)
    representers = context.represent(with_point)
    samples = PosteriorSamples.draw(representers, context.effort.n_samples, rng)
    candidates = draw_candidates(domain, pool, chosen, N_CANDIDATES, rng)
    others = candidates[(candidates[:, : domain.d] != x).any(axis=1)]
    divisor, allowed = context.divisor_and_allowed(others)
    information = gaussian_information(representers, samples)(others).mean(axis=0)
    return representers, samples, float(np.max(np.where(allowed, information / divisor, 0.0), initial=0.0))


def _where_to_stop(continuations: Continuations, point: Array) -> tuple[Array, Array]:
    """Points (s, D) on the way to the point (D,) where its training may stop, and the number (1,) of that training."""
    column = continuations.column
    (matched,) = continuations.match(point[None])
    start = 0.0 if matched < 0 else float(continuations.ends[matched, column])
    training = np.array([-1.0 if matched < 0 else float(continuations.trainings[matched])])
    stops = np.repeat(point[None], len(FRACTIONS), axis=0)
    stops[:, column] = start + np.array(FRACTIONS) * (point[column] - start)
    stops = np.unique(continuations.space.snap(stops), axis=0)
    between = (stops[:, column] > start) & (stops[:, column] < point[column])
    return stops[between], training


def _limit(
    representers: Representers, samples: PosteriorSamples, stop: Array, end: Array, alternative: float
) -> float:
    """The standardised loss at the stop (1, D + 1) above which the end gives fewer nats than `alternative`."""
    loss = representers.posterior
    at = loss.project(stop)
    mean, variance = loss.mean(at)[:, 0], (loss.variance(at) + loss.noise(stop))[:, 0]  # (K,)
    centre, spread = float(mean.mean()), float(np.sqrt(variance.mean() + mean.var()))
    cross = loss.covariance(representers.at, at)[:, :, 0]  # (K, R)
    # The covariance after a report at the stop. It does not depend on the reported loss; the mean does (below).
    after = Representers.at_points(loss.condition(stop), representers.at.points, lambda points: end[:, None])
    limit = np.inf
    for outcome in reversed(OUTCOMES):
        y = centre + outcome * spread
        moved = after.mean + cross * ((y - mean) / variance)[:, None]
        values = joint_samples(moved, after.factor, samples.Z)
        given = replace(samples, values=values, labels=lowest(values))
        information = float(gaussian_information(after, given)(end[:, :-1]).mean())
        if information >= alternative:
            break
        limit = y
    return limit


def _seconds_left(surrogate: Surrogate, stop: Array, point: Array) -> float:
    """Predicted seconds from the stop (D,) to the point (D,)."""
    whole, part = surrogate.predict_cost(np.array([point, stop]))
    return float(max(whole - part, MIN_COST_SHARE * whole))
