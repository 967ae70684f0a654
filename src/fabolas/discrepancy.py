"""The discrepancy: how far the GP's mean is off if curves bend near the target. Stated intervals add its variance.

The GP learns from small subsets that curves follow its terms. Its variance at the target is then too small. Assume that
the true curves have an additional term D(x, u) = t(u) g(x), where half of the variance of g is shared by all
configurations. The mean at a point is a weighted sum of the observations, so its error has the additional part
D(x, u) - sum_i w_i D(x_i, u_i). The variance of this part is known in closed form. There are two such terms
(docs/decisions/discrepancy.md):

- a late bend, t = u^6. Small sizes do not show it, so its standard deviation is given: a factor of the loss. The
  target may show that it is less: a part of what losses vary by (`late_std`).
- an early bend, t = u^3. Small sizes show a little of it, so its standard deviation is learnt from them: curves that
  have begun to fall faster will go on, and how far is then uncertain.

Suggestions of the strategies do not depend on the discrepancy. The numbers that are shown to the user depend on it, and
so do the choice of the configuration to verify and `patience`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from fabolas._types import Array, BoolArray, IntArray
from fabolas.gp.kernels import Matern52, between, cubic_time, late_time
from fabolas.gp.regression import Posterior, cholesky

# Standard deviations of the early bend in units of the late one. Real curves rarely bend like this: the prior
# probability of no early bend is 0.8. The other probabilities are in proportion to 1 / std.
EARLY_STDS = np.array([1.0, 2.0, 4.0, 8.0])
EARLY_PRIOR = np.append(0.8, 0.2 / EARLY_STDS / np.sum(1.0 / EARLY_STDS))
# Of the late bend by a factor, against one in proportion to the spread of the losses.
FACTOR_PRIOR = 0.95
# The evidence uses at most this many observations, those at the largest sizes: its time is cubic in their number.
MAX_EVIDENCE_TRIALS = 150


@dataclass(frozen=True)
class Discrepancy:
    """The variance of the error of a posterior mean under both bends.

    Attributes:
        model: The posterior of the standardised loss.
        observed: (n,) which points of the model have a measured loss: neither failed nor pending.
        over_x: The kernel over configurations; its length scales are the first hyperparameters of the model.
        fidelities: The columns of the fidelities, at least one.
        std: Standard deviation of the late bend of each fidelity at the target, in standardised losses.
        least_std: The same if losses near the target change no more than measured losses differ.
    """

    model: Posterior
    observed: BoolArray
    over_x: Matern52
    fidelities: tuple[int, ...]
    std: float
    least_std: float = np.inf

    def variance(self, points: Array) -> Array:
        """(m,) Variance of D(x, u) - sum_i w_i D(x_i, u_i) at points (m, D), D the sum of both bends."""
        weights = self.model.weights(self.model.project(points))  # (K, n, m)
        times, known = self._bends(points), self._bends(self.model.points)
        own = np.sum(times**2, axis=1)
        shared = self._shared(self.model.points, points, self._lengths)
        across = np.einsum("knm,knm->km", weights, known @ times.T * shared)
        among = (
            known @ known.T * self._shared(self.model.points, self.model.points, self._lengths)
        ) @ weights
        variance = own - 2.0 * across + np.einsum("knm,knm->km", weights, among)
        return np.asarray(self.late_std**2 * np.maximum(variance, 0.0).mean(axis=0))

    @cached_property
    def late_std(self) -> float:
        """The more probable standard deviation of the late bend: `std`, or `least_std` if that is less.

        Losses with a large constant part change little, whatever the size. Small sizes do not show that: an error rate
        at chance level is as flat before it falls. So only what the target adds counts: a jump of that size there.
        """
        at_target = (self._evidence_points[:, list(self.fidelities)] == 1.0).all(axis=1)[:, None]
        if self.least_std >= self.std or not at_target.any():
            return self.std
        stds = np.array([self.std, self.least_std])
        ratios = self._log_evidence_ratios(at_target.astype(float), stds)[:, 1:]
        factor, part = np.exp(ratios - ratios.max()).mean(axis=0)  # one of them is above zero
        return self.std if FACTOR_PRIOR * factor >= (1.0 - FACTOR_PRIOR) * part else self.least_std

    @property
    def early_variance(self) -> float:
        """The expected variance of the early bend given the observations, in units of that of the late one."""
        return float(self._early_posterior[1:] @ EARLY_STDS**2)

    @property
    def early_probability(self) -> float:
        """The probability of an early bend given the observations."""
        return float(self._early_posterior[1:].sum())

    @cached_property
    def _early_posterior(self) -> Array:
        """(1 + s,) The probabilities of no early bend and of each of `EARLY_STDS`, given the observations."""
        times = cubic_time(self._evidence_points[:, list(self.fidelities)])
        ratios = self._log_evidence_ratios(times, self.late_std * EARLY_STDS)
        posterior = np.exp(ratios - ratios.max()).mean(axis=0) * EARLY_PRIOR
        return np.asarray(posterior / posterior.sum())

    def _log_evidence_ratios(self, times: Array, stds: Array) -> Array:
        """(K, 1 + s) log p(y | theta_k, std) - log p(y | theta_k, none) for no bend and for each of stds (s,).

        The hyperparameters are samples of their posterior without the bend. So the evidence of a standard deviation,
        relative to none, is the mean of p(y | theta, std) / p(y | theta, none) over the samples.

        Args:
            times: (n, f) t(u) of the observations.
            stds: (s,) in standardised losses.
        """
        return np.array([self._of_sample(k, times, stds) for k in range(len(self.model.theta))])

    def _of_sample(self, k: int, times: Array, stds: Array) -> Array:
        """(1 + s,) The log evidence ratios of hyperparameter sample k.

        With G = L L' the Gram matrix and C the covariance of the bend, L^-1 C L'^-1 = Q diag(l) Q' and b = Q' L^-1 y
        give log N(y; 0, G + v C) = -1/2 sum_i (log(1 + v l_i) + b_i^2 / (1 + v l_i)) + constant for all v.
        """
        rows, points = self.model.L[k][self._evidence], self._evidence_points
        L = cholesky((rows @ rows.T)[None])[0]
        residual = solve_triangular(L, rows @ self.model.beta[k], lower=True)
        C = (times @ times.T) * self._shared(points, points, self._lengths[k : k + 1])[0]
        whitened = solve_triangular(L, solve_triangular(L, C, lower=True).T, lower=True)
        eigenvalues, Q = np.linalg.eigh(0.5 * (whitened + whitened.T))
        b = Q.T @ residual
        scaled = 1.0 + np.append(0.0, stds**2)[:, None] * np.maximum(eigenvalues, 0.0)
        return np.asarray(-0.5 * np.sum(np.log(scaled) + b**2 / scaled - b**2, axis=1))

    @cached_property
    def _evidence_points(self) -> Array:
        """(e, D) The points of the observations that count as evidence."""
        return self.model.points[self._evidence]

    @cached_property
    def _evidence(self) -> IntArray:
        """The observations that count as evidence: those at the largest sizes."""
        sizes = self.model.points[:, list(self.fidelities)].sum(axis=1)
        observed = np.flatnonzero(self.observed)
        return observed[np.argsort(-sizes[observed], kind="stable")[:MAX_EVIDENCE_TRIALS]]

    def _bends(self, points: Array) -> Array:
        """Points (n, D) -> (n, 2 f): t(u) of both bends in each fidelity, in standard deviations of the late bend."""
        u = points[:, list(self.fidelities)]
        return np.concatenate([late_time(u), np.sqrt(self.early_variance) * cubic_time(u)], axis=1)

    def _shared(self, A: Array, B: Array, lengths: Array) -> Array:
        """(1 + k52(x, x')) / 2, the correlation of g between configurations: (K, a, b)."""
        return np.asarray(0.5 * (1.0 + between(self.over_x, A, B)(lengths)))

    @property
    def _lengths(self) -> Array:
        """(K, d) The log length scales of the hyperparameter samples."""
        return self.model.theta[:, : len(self.over_x.n_choices)]
