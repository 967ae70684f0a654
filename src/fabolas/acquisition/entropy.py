"""Expected information about p_min, the distribution of the optimum's location at the target fidelity.

An outcome y at a point (x, u) moves the representers' values along b = cov(f_R, y) / sd(y) and reduces their
covariance by b b'. Let (F, e) be a joint sample of the representers and of the standardised outcome. By Matheron's
rule F + b (w - e) is a sample given the outcome w. So p_min after each hypothetical outcome is estimated from the same
samples that gave p_min now, and an evaluation without information has a gain of exactly zero.

Two quantities: by default the entropy of p_min now minus its expectation after the evaluation; with
`relative_to_uniform` the expected Kullback-Leibler divergence of p_min from the uniform distribution after the
evaluation (Klein et al. 2017, eq. 7). In one decision they differ by a constant, but divided by cost they do not
rank evaluations alike.

Notation: K hyperparameter samples, R representers, S joint samples with common random numbers Z, M candidate points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from fabolas._types import Array, IntArray
from fabolas.acquisition.ep_update import expected_entropy
from fabolas.acquisition.expectation_propagation import ep_pmin
from fabolas.acquisition.representers import Representers
from fabolas.optimize import sobol

Information = Callable[[Array], Array]  # points (M, D) -> (K, M), in nats

_CHUNK_NUMBERS = 1 << 17  # hypothetical samples computed at once: they fit into the processor's cache


def gauss_hermite(n: int) -> tuple[Array, Array]:
    """n standard-normal outcomes and their weights, exact for polynomials of degree 2n - 1."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n)
    return nodes, weights / weights.sum()


def normal_numbers(samples: int, dimension: int, rng: np.random.Generator) -> Array:
    """(S, dimension) quasi-random standard normal numbers."""
    normal: Array = ndtri(np.clip(sobol(samples, dimension, rng), 1e-9, 1.0 - 1e-9))
    return normal


def joint_samples(mean: Array, factor: Array, Z: Array) -> Array:
    """f_R = mean + factor Z: mean (K, R), factor (K, R, R) lower, Z (S, R) -> (K, S, R)."""
    return mean[:, None, :] + Z @ np.swapaxes(factor, 1, 2)


def frequencies(labels: IntArray, R: int) -> Array:
    """The relative frequency of each of R labels along the last axis: (..., S) -> (..., R)."""
    leading = labels.shape[:-1]
    rows = np.arange(int(np.prod(leading))) * R
    flat = labels.reshape(len(rows), -1) + rows[:, None]
    counts = np.bincount(flat.ravel(), minlength=len(rows) * R)
    share: Array = counts.reshape(*leading, R) / labels.shape[-1]
    return share


def lowest(values: Array | npt.NDArray[np.float32]) -> IntArray:
    """The index of the lowest value along the last axis."""
    labels: IntArray = np.argmin(values, axis=-1)
    return labels


def entropy(p: Array) -> Array:
    """-sum p log p along the last axis, in nats; 0 log 0 = 0."""
    logarithm = np.log(p, out=np.zeros_like(p), where=p > 0)
    total: Array = -np.sum(p * logarithm, axis=-1)
    return total


@dataclass(frozen=True)
class PosteriorSamples:
    """Joint samples of the representers, their common random numbers, and which representer is lowest in each."""

    Z: Array  # (S, R) standard normal
    rest: Array  # (S,) standard normal: for the part of an outcome that the representers do not explain
    values: Array  # (K, S, R)
    labels: IntArray  # (K, S)

    @classmethod
    def draw(cls, representers: Representers, samples: int, rng: np.random.Generator) -> PosteriorSamples:
        """S joint samples for each hyperparameter sample."""
        R = representers.mean.shape[1]
        numbers = normal_numbers(samples, R + 1, rng)
        Z, rest = numbers[:, :R], numbers[:, R]
        values = joint_samples(representers.mean, representers.factor, Z)
        return cls(Z, rest, values, lowest(values))

    @property
    def pmin(self) -> Array:
        """(K, R)."""
        return frequencies(self.labels, self.Z.shape[1])


class InformationEstimator(Protocol):
    """The signature of `monte_carlo_information` and `ep_information`."""

    def __call__(
        self,
        representers: Representers,
        samples: PosteriorSamples,
        n_outcomes: int = 5,
        *,
        relative_to_uniform: bool = False,
    ) -> Information:
        """A function from points to their expected information, with `n_outcomes` hypothetical outcomes each."""
        ...


def monte_carlo_information(
    representers: Representers,
    samples: PosteriorSamples,
    n_outcomes: int = 5,
    *,
    relative_to_uniform: bool = False,
) -> Information:
    """A Monte Carlo estimate from joint samples, in single precision: only their order matters."""
    K, S, R = samples.values.shape
    now = entropy(samples.pmin)[:, None]
    offset = np.log(R) - now if relative_to_uniform else 0.0
    nodes, weights = gauss_hermite(n_outcomes)
    # Only the order within a sample matters: subtract its lowest value before going to single precision.
    F = (samples.values - samples.values.min(axis=2, keepdims=True)).astype(np.float32)

    def information(points: Array) -> Array:
        b, a = representers.influence(points)
        unexplained = np.sqrt(np.maximum(1.0 - np.sum(a**2, axis=2), 0.0))  # (K, M)
        e = a @ samples.Z.T + unexplained[:, :, None] * samples.rest  # (K, M, S) outcomes of the samples
        pull = (nodes[:, None] - e[:, :, None, :]).astype(np.float32)  # (K, M, n_outcomes, S)
        b32 = b.astype(np.float32)
        after = np.empty((K, len(points)))
        step = max(1, _CHUNK_NUMBERS // (n_outcomes * S * R))
        for k in range(K):
            for i in range(0, len(points), step):
                moved = pull[k, i : i + step, :, :, None] * b32[k, i : i + step, None, None, :]
                moved += F[k]  # Matheron's rule
                after[k, i : i + step] = entropy(frequencies(lowest(moved), R)) @ weights
        # The information lies between zero and the present entropy; an estimate may not.
        return np.asarray(np.clip(now - after, 0.0, now) + offset)

    return information


def gaussian_information(
    representers: Representers, samples: PosteriorSamples, *, relative_to_uniform: bool = False
) -> Information:
    """Information from Gaussian moments: two matrix products per candidate, where Monte Carlo needs many samples.

    The information that y gives about the label r (which representer is lowest) equals the information that r gives
    about y, H(y) - sum_r p_r H(y | r is lowest). With each y | r taken as Gaussian it is -1/2 sum_r p_r log var(y | r)
    for standardised y. It screens many candidates before the best of them are estimated accurately.
    """
    S, R = samples.Z.shape
    is_lowest = np.eye(R)[samples.labels]  # (K, S, R)
    count = is_lowest.sum(axis=1)[:, None, :]  # (K, 1, R)
    now = entropy(samples.pmin)[:, None]
    offset = np.log(R) - now if relative_to_uniform else 0.0

    def information_of(points: Array) -> Array:
        _, a = representers.influence(points)
        explained = np.sum(a**2, axis=2, keepdims=True)  # (K, M, 1)
        e = a @ samples.Z.T
        total, squares = e @ is_lowest, (e * e) @ is_lowest  # (K, M, R)
        scatter = squares - total**2 / np.maximum(count, 1.0)
        # Two pseudo-observations of the unconditional variance: a rare label must not look certain.
        within = (scatter + 2.0 * explained) / (np.maximum(count - 1.0, 0.0) + 2.0)
        variance = within + np.maximum(1.0 - explained, 0.0)
        information = -0.5 * np.sum(count / S * np.log(np.maximum(variance, 1e-12)), axis=2)
        return np.asarray(np.clip(information, 0.0, now) + offset)

    return information_of


def ep_information(
    representers: Representers,
    samples: PosteriorSamples,
    n_outcomes: int = 5,
    *,
    relative_to_uniform: bool = False,
) -> Information:
    """Information by expectation propagation, as in the paper: slower than sampling, without its noise."""
    R = representers.mean.shape[1]
    covariance = representers.factor @ np.swapaxes(representers.factor, 1, 2)
    pmins = [ep_pmin(mean, cov) for mean, cov in zip(representers.mean, covariance, strict=True)]
    nodes, weights = gauss_hermite(n_outcomes)

    def information(points: Array) -> Array:
        b, _ = representers.influence(points)
        entropies = [expected_entropy(p, b[k], nodes, weights) for k, p in enumerate(pmins)]
        if relative_to_uniform:
            return np.array([np.log(R) - after for after, _ in entropies])
        return np.array([now - after for after, now in entropies])

    return information
