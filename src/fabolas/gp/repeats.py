"""Repeats: several observations of one point tell which part of the noise belongs to the point and which is chance.

    y_ij = g(x_i) + d_i + eps_ij,    d_i ~ N(0, f sigma^2),    eps_ij ~ N(0, (1 - f) sigma^2)

d_i is the nugget. It is the same in every observation of x_i, so Cov(y_ij, y_ik) = k + f sigma^2 for j != k. A point
that was observed once says nothing about f. The deviations of repeats from the mean of their point depend on chance
alone: with Q their sum of squares and nu their degrees of freedom,

    p(deviations | f, sigma^2) ~ v^(-nu/2) exp(-Q / (2 v)),    v = (1 - f) sigma^2.

The prior of f is a beta distribution. The posterior given sigma^2 is a sum over a grid (docs/decisions/nugget.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import log_expit, logsumexp

from fabolas._types import Array, BoolArray, IntArray

# a + b of the beta prior of f. It is small, so the prior is large near 0 and near 1: training is mostly either
# deterministic or not, and few repeats tell which.
PRIOR_OBSERVATIONS = 0.5
_STEP = 0.05
_LOGITS = np.arange(-20.0, 20.0 + _STEP / 2.0, _STEP)  # log(f / (1 - f)); beyond it f is 0 or 1 up to 2e-9


@dataclass(frozen=True)
class Repeats:
    """The repeats among n observations.

    Attributes:
        group: (n,) a number for each point: repeats have the same one. -1 for observations that do not count.
        y: (n,) the observations.
        prior_mean: Of f, between 0 and 1.
    """

    group: IntArray
    y: Array
    prior_mean: float

    @classmethod
    def among(cls, points: Array, y: Array, which: BoolArray, prior_mean: float) -> Repeats | None:
        """The repeats among the marked points (n, D); None if there are none, or if a prior mean of 0 or 1 fixes f."""
        if not 0.0 < prior_mean < 1.0:
            return None
        group = np.full(len(y), -1)
        group[which] = np.unique(points[which], axis=0, return_inverse=True)[1].ravel()
        return cls(group, y, prior_mean)._or_none()

    def subset(self, chosen: IntArray) -> Repeats | None:
        """The repeats among these observations (m,); None if there are none."""
        return Repeats(self.group[chosen], self.y[chosen], self.prior_mean)._or_none()

    def _or_none(self) -> Repeats | None:
        return self if self.degrees else None

    @cached_property
    def pairs(self) -> tuple[IntArray, IntArray]:
        """All pairs of observations of the same point: the later ones (p,) and the earlier ones (p,)."""
        same = (self.group[:, None] == self.group[None]) & (self.group >= 0)
        later, earlier = np.nonzero(np.tril(same, -1))
        return later, earlier

    @cached_property
    def degrees(self) -> int:
        """nu, the degrees of freedom of the deviations."""
        counted = self.group[self.group >= 0]
        return len(counted) - len(np.unique(counted))

    @cached_property
    def squares(self) -> float:
        """Q, the sum of squares of the deviations."""
        counted = self.group >= 0
        group, y = self.group[counted], self.y[counted]
        means = np.bincount(group, y) / np.maximum(np.bincount(group), 1)
        return float(np.sum((y - means[group]) ** 2))

    def fraction(self, variance: Array, floor: float) -> Array:
        """The posterior mean of f (K,) given noise variances (K,). Chance has at least the variance `floor`."""
        fractions, weights = self._posterior(variance, floor)
        return np.asarray(
            np.sum(fractions * np.exp(weights - logsumexp(weights, axis=1, keepdims=True)), axis=1)
        )

    def log_evidence_ratio(self, variance: Array, floor: float) -> Array:
        """(K,) log p(deviations | sigma^2), f integrated out, minus the same with f at its posterior mean.

        Added to a log-density with f at its posterior mean, it gives the log-density with f integrated out.
        """
        _, weights = self._posterior(variance, floor)
        chance = (1.0 - self.fraction(variance, floor)) * variance
        return np.asarray(logsumexp(weights, axis=1) - self._log_likelihood(chance))

    def _posterior(self, variance: Array, floor: float) -> tuple[Array, Array]:
        """f on the grid, and log(prior probability times likelihood) of each: (K, q)."""
        chance = np.maximum(variance[:, None] * np.exp(log_expit(-_LOGITS)), floor)
        return 1.0 - chance / variance[:, None], self._log_prior + self._log_likelihood(chance)

    def _log_likelihood(self, chance: Array) -> Array:
        return np.asarray(-0.5 * (self.degrees * np.log(chance) + self.squares / chance))

    @cached_property
    def _log_prior(self) -> Array:
        """(q,) log-probabilities of the grid. Both ends include the probability beyond them: an exponential tail.

        On the logit scale f^(a - 1) (1 - f)^(b - 1) df is f^a (1 - f)^b.
        """
        a, b = PRIOR_OBSERVATIONS * self.prior_mean, PRIOR_OBSERVATIONS * (1.0 - self.prior_mean)
        density = a * log_expit(_LOGITS) + b * log_expit(-_LOGITS)
        density[0] += np.log(0.5 + 1.0 / (a * _STEP))
        density[-1] += np.log(0.5 + 1.0 / (b * _STEP))
        return np.asarray(density - logsumexp(density))
