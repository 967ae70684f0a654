"""Expected information about p_min at the target fidelity from one evaluation at any (x, u).

An outcome y at a point shifts the representers' values along b = cov(f_R, y) / sd(y) and shrinks their
covariance by b b'. A joint sample (F, e) of the representers and of that outcome (standardised) becomes a sample
given the outcome w by Matheron's rule, F + b (w - e), so p_min after each hypothetical outcome is counted from
the same samples that gave p_min now: what an evaluation cannot teach has a gain of exactly zero.

Two forms: `gain`, the entropy of p_min now minus its expectation after, and `paper`, the expected
Kullback-Leibler divergence of p_min after from the uniform distribution (Klein et al. 2017, eq. 7).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fabolas._types import Array, IntArray
from fabolas.acquisition.ep import ep_pmin
from fabolas.acquisition.ep_update import expected_entropy_ep
from fabolas.acquisition.pmin import entropy, frequencies, joint_samples, lowest, normal_numbers
from fabolas.gp.process import Posterior, Projection, cholesky

Form = Literal["gain", "paper"]
Information = Callable[[Array], Array]  # points (M, D) -> (K, M), in nats

JITTER = 1e-6  # of the largest variance: a thousandth of a deviation
_CHUNK = 1 << 17  # numbers of hypothetical samples at once: what stays in the processor's cache


def outcomes(Q: int) -> tuple[Array, Array]:
    """Q standard-normal outcomes and their weights: Gauss-Hermite, exact for polynomials of degree 2Q - 1."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(Q)
    return nodes, weights / weights.sum()


@dataclass(frozen=True)
class Representers:
    """The target-fidelity points that p_min lives on, with what does not depend on the candidate."""

    posterior: Posterior
    at: Projection  # R points
    mean: Array  # (K, R)
    factor: Array  # (K, R, R) lower Cholesky factor of their covariance

    @classmethod
    def of(cls, posterior: Posterior, points: Array) -> Representers:
        at = posterior.project(points)
        covariance = posterior.covariance(at, at)
        # Representers close together have nearly singular covariances, whose inverse would amplify rounding errors.
        diagonal = np.arange(len(points))
        scale = covariance[:, diagonal, diagonal].max(axis=1, keepdims=True)
        covariance[:, diagonal, diagonal] += JITTER * scale
        return cls(posterior, at, posterior.mean(at), cholesky(covariance))

    def influence(self, points: Array) -> tuple[Array, Array]:
        """What an observation at each of M points says of the representers.

        Returns:
            b (K, M, R): cov(f_R, y) / sd(y).
            a (K, M, R): the same in the whitened coordinates, factor^-1 b; 1 - |a|^2 is the part of the
                outcome's variance that the representers do not explain.
        """
        at = self.posterior.project(points)
        sd = np.sqrt(self.posterior.variance(at) + self.posterior.noise(points))
        b = np.swapaxes(self.posterior.covariance(self.at, at), 1, 2) / sd[:, :, None]
        a = np.linalg.solve(self.factor, np.swapaxes(b, 1, 2))
        return b, np.swapaxes(a, 1, 2)


@dataclass(frozen=True)
class Draws:
    """Joint samples of the representers, their common random numbers and which of them is lowest in each."""

    Z: Array  # (S, R) standard normal
    rest: Array  # (S,) standard normal: the part of an outcome that the representers do not explain
    values: Array  # (K, S, R)
    labels: IntArray  # (K, S)

    @classmethod
    def of(cls, representers: Representers, samples: int, rng: np.random.Generator) -> Draws:
        R = representers.mean.shape[1]
        numbers = normal_numbers(samples, R + 1, rng)
        Z, rest = numbers[:, :R], numbers[:, R]
        values = joint_samples(representers.mean, representers.factor, Z)
        return cls(Z, rest, values, lowest(values))

    @property
    def pmin(self) -> Array:
        """(K, R)."""
        return frequencies(self.labels, self.Z.shape[1])


def by_sampling(representers: Representers, draws: Draws, Q: int = 5, form: Form = "gain") -> Information:
    """Information by counting joint samples, Q hypothetical outcomes an evaluation."""
    K, S, R = draws.values.shape
    now = entropy(draws.pmin)[:, None]
    offset = 0.0 if form == "gain" else np.log(R) - now
    nodes, weights = outcomes(Q)
    # Only the order within a sample matters: take out its level before going to single precision.
    F = (draws.values - draws.values.min(axis=2, keepdims=True)).astype(np.float32)

    def information(points: Array) -> Array:
        b, a = representers.influence(points)
        unexplained = np.sqrt(np.maximum(1.0 - np.sum(a**2, axis=2), 0.0))  # (K, M)
        # (K, M, S) outcomes that belong to the samples
        e = a @ draws.Z.T + unexplained[:, :, None] * draws.rest
        pull = (nodes[:, None] - e[:, :, None, :]).astype(np.float32)  # (K, M, Q, S)
        b32 = b.astype(np.float32)
        after = np.empty((K, len(points)))
        step = max(1, _CHUNK // (Q * S * R))
        for k in range(K):
            for i in range(0, len(points), step):
                moved = pull[k, i : i + step, :, :, None] * b32[k, i : i + step, None, None, :]
                moved += F[k]  # Matheron's rule
                after[k, i : i + step] = entropy(frequencies(lowest(moved), R)) @ weights
        # An outcome tells something or nothing, and no more than there is to know; an estimate may say otherwise.
        return np.asarray(np.clip(now - after, 0.0, now) + offset)

    return information


def by_moments(representers: Representers, draws: Draws, form: Form = "gain") -> Information:
    """Information by matching moments: two matrix products where counting needs Q S R numbers a candidate.

    The information that y gives about which representer is lowest is the information that this gives about y,
    H(y) - sum_r p_r H(y | r is lowest). With each y | r taken as Gaussian that is -1/2 sum_r p_r log var(y | r)
    for standardised y. It serves to screen many candidates before the best are counted.
    """
    S, R = draws.Z.shape
    lowest_is = np.eye(R)[draws.labels]  # (K, S, R)
    count = lowest_is.sum(axis=1)[:, None, :]  # (K, 1, R)
    now = entropy(draws.pmin)[:, None]
    offset = 0.0 if form == "gain" else np.log(R) - now

    def information_of(points: Array) -> Array:
        _, a = representers.influence(points)
        explained = np.sum(a**2, axis=2, keepdims=True)  # (K, M, 1)
        e = a @ draws.Z.T
        total, squares = e @ lowest_is, (e * e) @ lowest_is  # (K, M, R)
        scatter = squares - total**2 / np.maximum(count, 1.0)
        # Two pseudo-observations of the unconditional variance: a rare label must not look certain.
        within = (scatter + 2.0 * explained) / (np.maximum(count - 1.0, 0.0) + 2.0)
        variance = within + np.maximum(1.0 - explained, 0.0)
        information = -0.5 * np.sum(count / S * np.log(np.maximum(variance, 1e-12)), axis=2)
        return np.asarray(np.clip(information, 0.0, now) + offset)

    return information_of


def by_ep(representers: Representers, Q: int = 5, form: Form = "gain") -> Information:
    """Information by expectation propagation, the paper's way: slower than counting, free of its noise."""
    R = representers.mean.shape[1]
    covariance = representers.factor @ np.swapaxes(representers.factor, 1, 2)
    pmins = [ep_pmin(mean, cov) for mean, cov in zip(representers.mean, covariance, strict=True)]
    nodes, weights = outcomes(Q)

    def information(points: Array) -> Array:
        b, _ = representers.influence(points)
        entropies = [expected_entropy_ep(p, b[k], nodes, weights) for k, p in enumerate(pmins)]
        if form == "gain":
            return np.array([now - after for after, now in entropies])
        return np.array([np.log(R) - after for after, _ in entropies])

    return information
