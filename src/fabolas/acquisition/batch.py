"""A batch of evaluations: each has the most information per cost, given those before it.

Take the outcomes y_1 .. y_b as jointly Gaussian given each label r ("representer r is lowest"). Together they give
the information

    I(y_1 .. y_b) = 1/2 log det C - 1/2 sum_r p_r log det C_r,

where C is their covariance and C_r the covariance given r. By the chain rule y_i adds
1/2 log d_i - 1/2 sum_r p_r log d_ri to those already chosen, where the d are the variances of y_i given the chosen
ones. They are the pivots of Cholesky factorisations of C and of every C_r, which grow by one column per choice.
"""

from __future__ import annotations

import numpy as np

from fabolas._types import Array, BoolArray, IntArray
from fabolas.acquisition.entropy import PosteriorSamples
from fabolas.acquisition.representers import Representers

_MIN_VARIANCE = 1e-9  # of standardised outcomes


def greedy_batch(
    representers: Representers,
    samples: PosteriorSamples,
    points: Array,
    divisor: Array,
    allowed: BoolArray,
    *,
    first: int,
    count: int,
) -> IntArray:
    """Indices of up to `count` of the points (M, D), each the best per cost given those before it.

    Args:
        representers: Where p_min is represented.
        samples: Joint samples of the representers.
        points: (M, D) to choose from.
        divisor: (M,) what information is divided by.
        allowed: (M,) which points may be chosen.
        first: The index of the first choice.
        count: How many.
    """
    outcomes = Outcomes.at_points(representers, samples, points)
    chosen = [first]
    while len(chosen) < min(count, int(allowed.sum())):
        outcomes.choose(chosen[-1])
        worth = np.where(allowed, outcomes.information.mean(axis=0) / divisor, -np.inf)
        worth[chosen] = -np.inf
        chosen.append(int(np.argmax(worth)))
    return np.array(chosen)


class Outcomes:
    """The standardised outcomes of M possible evaluations, as Gaussians given each label and overall.

    The first R of the R + 1 covariances are given the labels, the last one is unconditional. `choose` conditions all
    of them on one outcome.
    """

    def __init__(self, e: Array, explained: Array, total: Array, samples: PosteriorSamples) -> None:
        """e (K, M, S) the outcomes' explained parts in the samples; explained, total (K, M, M) correlations."""
        R = samples.Z.shape[1]
        self._e = e
        self._explained, self._unexplained, self._total = explained, total - explained, total
        self._is_lowest = np.eye(R)[samples.labels]  # (K, S, R)
        self._count = self._is_lowest.sum(axis=1)  # (K, R)
        self._sum = e @ self._is_lowest  # (K, M, R)
        self._probability = self._count / e.shape[2]
        self._columns: list[Array] = []  # (K, M, R + 1) each, of the Cholesky factors
        self.variance = np.concatenate(  # (K, M, R + 1) given the chosen outcomes
            [self._within((e * e) @ self._is_lowest, self._sum**2, _diagonal(explained)), _diagonal(total)],
            axis=2,
        )
        self.variance[..., :R] += np.maximum(_diagonal(self._unexplained), 0.0)

    @classmethod
    def at_points(cls, representers: Representers, samples: PosteriorSamples, points: Array) -> Outcomes:
        """The outcomes at the points (M, D)."""
        loss = representers.posterior
        _, a = representers.influence(points)
        at = loss.project(points)
        sd = np.sqrt(loss.variance(at) + loss.noise(points))
        total = loss.covariance(at, at) / (sd[:, :, None] * sd[:, None, :])
        i = np.arange(len(points))
        total[:, i, i] = 1.0  # each evaluation has its own noise
        return cls(a @ samples.Z.T, a @ np.swapaxes(a, 1, 2), total, samples)

    @property
    def information(self) -> Array:
        """(K, M) nats that each outcome adds to those of the chosen ones."""
        logarithm = np.log(np.maximum(self.variance, _MIN_VARIANCE))
        return np.asarray(
            0.5 * logarithm[..., -1] - 0.5 * (logarithm[..., :-1] @ self._probability[..., None])[..., 0]
        )

    def choose(self, j: int) -> None:
        """Condition on the outcome of point j, whatever it will be."""
        products = (self._e * self._e[:, j : j + 1]) @ self._is_lowest
        given = self._within(products, self._sum * self._sum[:, j : j + 1], self._explained[:, :, j, None])
        covariance = np.concatenate(
            [given + self._unexplained[:, :, j, None], self._total[:, :, j, None]], axis=2
        )
        for column in self._columns:
            covariance -= column * column[:, j : j + 1]
        column = covariance / np.sqrt(np.maximum(self.variance[:, j : j + 1], _MIN_VARIANCE))
        # By Cauchy-Schwarz an outcome explains at most the variance of another one. Rounding of a tiny pivot could
        # break that.
        most = np.sqrt(np.maximum(self.variance, 0.0))
        column = np.clip(column, -most, most)
        self._columns.append(column)
        self.variance = self.variance - column**2

    def _within(self, products: Array, of_sums: Array, unconditional: Array) -> Array:
        """(K, M, R) Covariances of outcomes in the samples with each label, from sums of products and products of sums.

        Two pseudo-observations of the unconditional covariance: a rare label must not look certain.
        """
        count = self._count[:, None, :]
        scatter = products - of_sums / np.maximum(count, 1.0)
        return np.asarray((scatter + 2.0 * unconditional) / (np.maximum(count - 1.0, 0.0) + 2.0))


def _diagonal(matrices: Array) -> Array:
    """(K, M, M) -> (K, M, 1)."""
    return np.diagonal(matrices, axis1=1, axis2=2)[..., None]
