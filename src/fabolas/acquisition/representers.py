"""Where p_min is represented: points at the target fidelity that could be the best."""

from __future__ import annotations

import numpy as np

from fabolas._types import Array
from fabolas.acquisition.improvement import log_expected_improvement
from fabolas.gp.process import Posterior, cholesky


def neighbourhood(
    centres: Array, n: int, scales: tuple[float, ...], choices: tuple[int, ...], rng: np.random.Generator
) -> Array:
    """n points (n, d) around the centres: each a Gaussian step, reflected at the walls of the cube.

    Half of them move in one coordinate only: in many dimensions a step in all of them at once is a long way.
    A categorical coordinate (one with `choices`) has no near and far: a step there draws a category anew, as the
    only coordinate that moves or else one time in five.
    """
    d = centres.shape[1]
    steps = rng.normal(size=(n, d)) * rng.choice(scales, size=(n, 1))
    single = rng.random(n) < 0.5
    steps[single] *= np.eye(d)[rng.integers(d, size=single.sum())]
    base = centres[rng.integers(len(centres), size=n)]
    folded = np.abs(np.mod(base + steps, 2.0))
    inside: Array = np.where(folded > 1.0, 2.0 - folded, folded)
    categorical = np.array(choices) > 0
    anew = (steps != 0.0) & (single[:, None] | (rng.random((n, d)) < 0.2))
    return np.where(categorical, np.where(anew, rng.random((n, d)), base), inside)


def thompson(posterior: Posterior, pool: Array, R: int, rng: np.random.Generator) -> Array:
    """R distinct points of the pool, those that are lowest in joint samples of the posterior.

    Each hyperparameter sample draws as many functions over the pool; a function's lowest point enters first,
    then the second lowest of each, until R are found.

    Args:
        pool: (m, D) points at the target fidelity.
    """
    K = len(posterior.theta)
    at = posterior.project(pool)
    factor = cholesky(posterior.covariance(at, at))
    draws = max(1, -(-R // K))
    Z = rng.normal(size=(K, len(pool), draws))
    functions = posterior.mean(at)[:, :, None] + factor @ Z  # (K, m, draws)
    ranks = np.argsort(functions, axis=1)[:, :R]  # (K, R, draws): the lowest first
    order = np.swapaxes(ranks, 0, 1).reshape(-1)  # all lowest, all second lowest, ...
    _, first = np.unique(order, return_index=True)
    return pool[order[np.sort(first)[:R]]]


def by_log_improvement(
    posterior: Posterior, pool: Array, best: Array, R: int, rng: np.random.Generator
) -> Array:
    """R distinct points of the pool, drawn in proportion to expected improvement over `best` (K,).

    The paper draws representers by MCMC from EI; over a pool the draw is exact, without a chain.
    Gumbel noise added to the log-weights and the R largest kept is a draw without replacement.
    """
    at = posterior.project(pool)
    log_ei = log_expected_improvement(posterior.mean(at), posterior.variance(at), best[:, None])
    weights = np.logaddexp.reduce(log_ei, axis=0)
    return pool[np.argsort(-(weights + rng.gumbel(size=len(pool))), kind="stable")[:R]]
