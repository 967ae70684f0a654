"""The knowledge gradient: by how much an evaluation is expected to lower the best predicted loss at the target.

An outcome y at a point (x, u) moves the predicted losses of points A at the target from `mean` to mean + b w, where
w = (y - E y) / sd(y) is standard normal and b = cov(f_A, y) / sd(y). So an evaluation is worth

    min_A mean - E_w min_A (mean + b w)          (Frazier, Powell and Dayanik 2009)

The minimum of lines is piecewise linear. The expectation is a sum over its breakpoints: exact, without random numbers.
A are the representers, the best configurations tried, and the candidate's own configuration.

Notation: K hyperparameter samples, A points at the target, M candidates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from fabolas._types import Array, BoolArray, IntArray
from fabolas.acquisition.representers import Representers
from fabolas.gp.regression import Posterior, Projection

BATCH_CANDIDATES = 32  # how many candidates compete for a batch
_UNDERFLOW = 40.0  # standard deviations; beyond this the normal density is zero in double precision


def expected_decrease(mean: Array, slope: Array) -> Array:
    """min_i mean_i - E min_i (mean_i + slope_i w) for standard normal w, along the last axis: (..., A) -> (...).

    We follow the lower envelope of the lines from w = -infinity, where the line with the largest slope is the lowest.
    The next line is always the one that crosses the present line first. A breakpoint c where the slope falls by d
    contributes d (phi(c) - |c| Phi(-|c|)).
    """
    m, b = mean.reshape(-1, mean.shape[-1]), slope.reshape(-1, mean.shape[-1])
    lowest = np.argmin(np.where(b == b.max(axis=1, keepdims=True), m, np.inf), axis=1)
    total, rows = np.zeros(len(m)), np.arange(len(m))  # rows with further breakpoints
    while len(rows):
        i = np.arange(len(rows))
        fall = b[i, lowest][:, None] - b
        crossing = np.full(m.shape, np.inf)
        with np.errstate(over="ignore"):  # nearly parallel lines
            np.divide(m - m[i, lowest][:, None], fall, out=crossing, where=fall > 0.0)
        lowest = np.argmin(crossing, axis=1)
        distance, d = np.minimum(np.abs(crossing[i, lowest]), _UNDERFLOW), fall[i, lowest]
        on = crossing[i, lowest] < np.inf
        density = np.exp(-0.5 * distance**2) / np.sqrt(2.0 * np.pi)
        total[rows] += np.where(on, d * np.maximum(density - distance * ndtr(-distance), 0.0), 0.0)
        rows, m, b, lowest = rows[on], m[on], b[on], lowest[on]
    return total.reshape(mean.shape[:-1])


@dataclass(frozen=True)
class KnowledgeGradient:
    """The criterion: expected decrease of the best predicted loss, in units of the standardised loss."""

    negligible = 0.0  # unlike the entropy, it is exactly zero where nothing can be gained

    def prepare(
        self,
        posterior: Posterior,
        representers: Array,
        tried: Array,
        *,
        n_fidelities: int,
        n_samples: int,
        n_outcomes: int,
        represent: Callable[[Posterior, Array], Representers],
        rng: np.random.Generator,
    ) -> PreparedGradient:
        """As `Criterion.prepare`. Nothing is sampled. The reports of a training do not count, only its end does."""
        at = posterior.project(np.unique(np.concatenate([representers, tried]), axis=0))
        return PreparedGradient(posterior, at, posterior.mean(at), n_fidelities)


@dataclass(frozen=True)
class PreparedGradient:
    """The knowledge gradient in one decision: all that does not depend on the candidate."""

    posterior: Posterior
    shared: Projection  # the A points that all candidates have in common
    mean: Array  # (K, A)
    n_fidelities: int

    def evaluate(self, points: Array) -> Array:
        """(K, M) The knowledge gradient of points (M, D)."""
        return self.screen(points).worth

    def screen(self, points: Array) -> ScreenedGradient:
        """The exact knowledge gradient, which is cheap enough for all candidates."""
        target = points.copy()
        target[:, points.shape[1] - self.n_fidelities :] = 1.0
        own, which = np.unique(target, axis=0, return_inverse=True)
        project = self.posterior.project
        return ScreenedGradient(self, project(points), project(own), which.ravel())


@dataclass(frozen=True)
class ScreenedGradient:
    """M candidates: how their outcomes move the predictions at the target, and what that is worth."""

    prepared: PreparedGradient
    at: Projection  # the candidates
    own: Projection  # their configurations at the target, each once
    which: IntArray  # (M,) for each candidate its index in `own`

    @cached_property
    def worth(self) -> Array:
        """(K, M) The knowledge gradient."""
        loss, points, which = self.prepared.posterior, self.at.points, self.which
        prior = loss.model.kernel.pairs(self.own.points[which], points)(loss.model.split(loss.theta)[0])
        own_cross = prior - np.einsum("knm,knm->km", self.own.V[:, :, which], self.at.V)
        variance = loss.variance(self.at) + loss.noise(points)
        return self._gradient(self._shared_cross, own_cross, variance)

    def batch(self, divisor: Array, allowed: BoolArray, *, first: int, count: int) -> IntArray:
        """Indices of up to `count` candidates, each the best per cost with those before it pending.

        A pending outcome removes variance and leaves the mean: a rank-one change of the covariances. Only the best
        `BATCH_CANDIDATES` and the first one compete.
        """
        value = np.where(allowed, self.worth.mean(axis=0) / divisor, -np.inf)
        value[first] = np.inf
        best = np.argsort(-value, kind="stable")[: max(BATCH_CANDIDATES, count)]
        return best[self._among(best)._greedy(divisor[best], allowed[best], count)]

    def _among(self, index: IntArray) -> ScreenedGradient:
        """Some of the candidates; `own` then has one entry for each, so that `which` is 0, 1, 2, ..."""
        own = self.which[index]
        at = Projection(self.at.points[index], self.at.V[:, :, index])
        return ScreenedGradient(
            self.prepared, at, Projection(self.own.points[own], self.own.V[:, :, own]), np.arange(len(index))
        )

    def _greedy(self, divisor: Array, allowed: BoolArray, count: int) -> IntArray:
        """`batch` with all candidates competing; candidate 0 is the first choice."""
        loss, A, each = self.prepared.posterior, self.prepared.mean.shape[1], np.arange(len(divisor))
        noise = loss.noise(self.at.points)
        outcomes = loss.covariance(self.at, self.at)  # (K, M, M)
        outcomes[:, each, each] += noise
        cross = np.concatenate([self._shared_cross, loss.covariance(self.own, self.at)], axis=1)
        chosen = [0]
        while len(chosen) < min(count, int(allowed.sum())):
            sd = np.sqrt(outcomes[:, chosen[-1], chosen[-1]])[:, None]
            column, influence = outcomes[:, :, chosen[-1]] / sd, cross[:, :, chosen[-1]] / sd
            outcomes -= column[:, :, None] * column[:, None, :]
            cross -= influence[:, :, None] * column[:, None, :]
            variance = np.maximum(outcomes[:, each, each], noise)
            gradient = self._gradient(cross[:, :A], cross[:, A + each, each], variance)
            worth = np.where(allowed, gradient.mean(axis=0) / divisor, -np.inf)
            worth[chosen] = -np.inf
            chosen.append(int(np.argmax(worth)))
        return np.array(chosen)

    @cached_property
    def _shared_cross(self) -> Array:
        """(K, A, M) covariances of the shared points with the outcomes."""
        return self.prepared.posterior.covariance(self.prepared.shared, self.at)

    @cached_property
    def _own_mean(self) -> Array:
        """(K, M) Predicted loss of each candidate's configuration at the target."""
        return self.prepared.posterior.mean(self.own)[:, self.which]

    def _gradient(self, shared_cross: Array, own_cross: Array, variance: Array) -> Array:
        """(K, M) from covariances (K, A, M) and (K, M) with the outcomes and the outcomes' variances (K, M)."""
        shared_mean = np.broadcast_to(self.prepared.mean[:, :, None], shared_cross.shape)
        mean = np.concatenate([shared_mean, self._own_mean[:, None]], axis=1)
        b = np.concatenate([shared_cross, own_cross[:, None]], axis=1) / np.sqrt(variance)[:, None]
        return expected_decrease(np.swapaxes(mean, 1, 2), np.swapaxes(b, 1, 2))
