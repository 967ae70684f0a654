"""The incumbent: the evaluated configuration with the lowest expected loss at the target (Algorithm 1, line 6)."""

from __future__ import annotations

import numpy as np

from fabolas._types import Array, BoolArray
from fabolas.space import Space
from fabolas.strategies.candidate import point_key
from fabolas.strategies.stated_loss import stated_loss
from fabolas.surrogate import Surrogate, shrinkage
from fabolas.trials import History, Incumbent

CLEARLY_BETTER_STDS = 2.0  # see `prefer_verified`
SHORTLIST_SIZE = 24  # how many of the best predicted configurations are compared by expected loss


def recommend(
    space: Space, surrogate: Surrogate, history: History, *, verified_only: bool = False
) -> Incumbent | None:
    """The incumbent of a history with at least one complete trial; None with `verified_only` if none was verified.

    The choice uses measured values: a configuration measured at the target keeps most of its measured value
    (`predict_with_nugget`). One that failed there is excluded, unless there is no other. The *stated* loss and standard
    deviation are those of the GP, because the lowest of many measured values is too low by chance.
    `stated_loss.py` limits them to possible losses.
    """
    complete = np.flatnonzero(history.complete)
    if len(complete) > surrogate.prior.spec.max_trials:
        # Compare only configurations in the data of the models.
        known = {point_key(point[: history.points.shape[1]]) for point in surrogate.loss.points}
        complete = np.array([i for i in complete if point_key(history.points[i]) in known])
    possible = ~_fails_at_target(space, history, history.points[complete])
    complete = complete[possible] if possible.any() else complete
    points = history.points[complete]
    x, first, which = np.unique(points[:, : space.dim], axis=0, return_index=True, return_inverse=True)
    which = which.ravel()
    measured = space.is_at_target(points)
    losses = surrogate.transform.forward(history.losses[complete])
    counts: Array = np.bincount(which, measured).astype(float)
    averages = np.bincount(which, measured * losses) / np.maximum(counts, 1.0)

    target = space.at_target(x)
    mean = surrogate.loss.mean_of(target).mean(axis=0)
    mean = mean + shrinkage(counts, surrogate.nugget_fraction) * (averages - mean)
    order = np.argsort(mean, kind="stable")
    order = order[counts[order] > 0] if verified_only else order
    if not len(order):
        return None
    short = np.union1d(order[:SHORTLIST_SIZE], order[counts[order] > 0][:1])
    # Compare expected losses in the user's units: under a logarithm they grow with the uncertainty.
    expected, _ = surrogate.transform.moments(
        *surrogate.predict_with_nugget(target[short], counts[short], averages[short])
    )
    winner = int(short[np.argmin(expected)])
    verified = bool(counts[winner])
    every = history.losses[history.complete]
    loss, std, preliminary = stated_loss(surrogate, target[[winner]], every, verified)
    return Incumbent(
        config=history.trials[complete[first[winner]]].config,
        loss=loss,
        std=std,
        verified=verified,
        trial_ids=tuple(history.trials[i].id for i in complete[which == winner]),
        preliminary=preliminary,
    )


def prefer_verified(incumbent: Incumbent, verified: Incumbent | None, sign: float = 1.0) -> Incumbent:
    """The answer of a run that verifies it: the best verified configuration, unless the incumbent is clearly better.

    "Clearly" means by more than two of its standard deviations. Without this exception, the answer could be a bad
    configuration that was evaluated at the target only because it is cheap.

    Args:
        incumbent: The incumbent, which is not verified.
        verified: The best verified configuration; None if there is none.
        sign: 1 if lower losses are better, -1 if higher ones are.
    """
    if verified is None:
        return incumbent
    better_by = sign * (verified.loss - incumbent.loss)
    return incumbent if better_by > CLEARLY_BETTER_STDS * incumbent.std else verified


def _fails_at_target(space: Space, history: History, points: Array) -> BoolArray:
    """(m,) Which configurations of the points (m, D) failed at the target and were never complete there."""
    d, there = space.dim, space.is_at_target(history.points)
    failed, complete = (
        (points[:, None, :d] == history.points[None, there & outcome, :d]).all(axis=2).any(axis=1)
        for outcome in (history.failed, history.complete)
    )
    return np.asarray(failed & ~complete)
