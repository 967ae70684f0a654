"""Representers: the points at the target fidelity on which p_min is represented."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fabolas._types import Array
from fabolas.acquisition.improvement import log_expected_improvement
from fabolas.acquisition.traces import Traces, summary_influence
from fabolas.gp.regression import Posterior, Projection, cholesky

JITTER = 1e-6  # relative to the largest variance: a thousandth of a standard deviation

# Posterior of the loss, pool (m, D) at the target, best mean (K,) to improve on, R, rng -> R points (R, D)
ChooseRepresenters = Callable[[Posterior, Array, Array, int, np.random.Generator], Array]


@dataclass(frozen=True)
class Representers:
    """R points at the target, with all that does not depend on the candidate."""

    posterior: Posterior
    at: Projection  # R points
    mean: Array  # (K, R)
    factor: Array  # (K, R, R) lower Cholesky factor of their covariance
    traces: Traces | None = None  # what evaluations report on the way; None if they do not

    @classmethod
    def at_points(cls, posterior: Posterior, points: Array, traces: Traces | None = None) -> Representers:
        """The representers at these points (R, D)."""
        at = posterior.project(points)
        covariance = posterior.covariance(at, at)
        # Representers close to each other have a nearly singular covariance, and its inverse amplifies rounding.
        diagonal = np.arange(len(points))
        scale = covariance[:, diagonal, diagonal].max(axis=1, keepdims=True)
        covariance[:, diagonal, diagonal] += JITTER * scale
        return cls(posterior, at, posterior.mean(at), cholesky(covariance), traces)

    def influence(self, points: Array) -> tuple[Array, Array]:
        """What an evaluation of each of M points says about the representers.

        An evaluation that reports on the way counts with the linear combination that summarises its trace.

        Returns:
            b (K, M, R): cov(f_R, y) / sd(y).
            a (K, M, R): the same in whitened coordinates, factor^-1 b; 1 - |a|^2 is the part of the outcome's
                variance that the representers do not explain.
        """
        if self.traces is not None:
            return summary_influence(self.posterior, self.at, self.factor, self.traces(points))
        at = self.posterior.project(points)
        sd = np.sqrt(self.posterior.variance(at) + self.posterior.noise(points))
        b = np.swapaxes(self.posterior.covariance(self.at, at), 1, 2) / sd[:, :, None]
        a = np.linalg.solve(self.factor, np.swapaxes(b, 1, 2))
        return b, np.swapaxes(a, 1, 2)


def thompson_representers(
    posterior: Posterior, pool: Array, best: Array, R: int, rng: np.random.Generator
) -> Array:
    """R different points of the pool: those that are lowest in joint samples of the posterior.

    Each hyperparameter sample draws ceil(R / K) functions over the pool. The lowest point of each function enters
    first, then the second lowest of each, until R points are found. `best` is not used.
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


def improvement_representers(
    posterior: Posterior, pool: Array, best: Array, R: int, rng: np.random.Generator
) -> Array:
    """R different points of the pool, drawn in proportion to expected improvement over `best` (K,).

    The paper draws representers by MCMC from EI. Over a pool the draw is exact: Gumbel noise is added to the
    log-weights, and the R largest are a draw without replacement.
    """
    at = posterior.project(pool)
    log_ei = log_expected_improvement(posterior.mean(at), posterior.variance(at), best[:, None])
    weights = np.logaddexp.reduce(log_ei, axis=0)
    return pool[np.argsort(-(weights + rng.gumbel(size=len(pool))), kind="stable")[:R]]


def neighbourhood(
    centres: Array, n: int, scales: tuple[float, ...], n_choices: tuple[int, ...], rng: np.random.Generator
) -> Array:
    """n points (n, d) around the centres: Gaussian steps, reflected at the walls of the cube.

    Half of the points move in one coordinate only: in many dimensions a step in all of them is a long way. In a
    categorical coordinate a step draws a new category: always if only this coordinate moves, else with probability 1/5.
    """
    d = centres.shape[1]
    steps = rng.normal(size=(n, d)) * rng.choice(scales, size=(n, 1))
    single = rng.random(n) < 0.5
    steps[single] *= np.eye(d)[rng.integers(d, size=single.sum())]
    base = centres[rng.integers(len(centres), size=n)]
    folded = np.abs(np.mod(base + steps, 2.0))
    inside: Array = np.where(folded > 1.0, 2.0 - folded, folded)
    categorical = np.array(n_choices) > 0
    redrawn = (steps != 0.0) & (single[:, None] | (rng.random((n, d)) < 0.2))
    return np.where(categorical, np.where(redrawn, rng.random((n, d)), base), inside)
