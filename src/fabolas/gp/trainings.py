"""Noise that all points of one training share, for example because they share its random seed.

A training i that reports its loss at u_1, u_2, ... is observed as

    y_ij = f(x_i, u_j) + e_i + eps_ij,    e_i ~ N(0, v),    eps_ij ~ N(0, sigma^2(u_j)),

so Cov(y_ij, y_ik) = k + v for j != k, and k alone for points of two trainings. v is learnt. `SameTraining` is this term
as a kernel on a column of the data that holds the number of the training. Points without that column belong to no
training: predictions do not contain e_i, and an observation of a new training has v as additional variance
(`GaussianProcess.new_training_variance`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fabolas._types import Array
from fabolas.gp.kernels import Composable, Evaluate, broadcast_shape
from fabolas.gp.priors import LogHorseshoe, Prior


@dataclass(frozen=True)
class SameTraining(Composable):
    """v [g = g'], g the training of a point: 1 for two points of one training, 0 for all others.

    Attributes:
        column: The column of the points that holds g; points without it belong to no training.
        log_variance_prior: Prior of log v; a horseshoe, as for the independent noise.
    """

    column: int
    log_variance_prior: Prior = LogHorseshoe(0.1)

    @property
    def priors(self) -> tuple[Prior, ...]:
        return (self.log_variance_prior,)

    def pairs(self, A: Array, B: Array) -> Evaluate:
        if not (self.has_trainings(A) and self.has_trainings(B)):
            zero = np.zeros((1,) * (1 + len(broadcast_shape(A, B))))
            return lambda theta: zero
        same = (A[..., self.column] == B[..., self.column]).astype(float)[None]
        rest = (1,) * (same.ndim - 1)
        return lambda theta: self.variance(theta).reshape(-1, *rest) * same

    def diagonal(self, theta: Array, A: Array) -> Array:
        variance = self.variance(theta) if self.has_trainings(A) else np.zeros((len(theta), 1))
        return np.broadcast_to(variance, (len(theta), len(A)))

    def variance(self, theta: Array) -> Array:
        """v, (K, 1)."""
        return np.exp(np.minimum(theta, 50.0))

    def has_trainings(self, points: Array) -> bool:
        """Whether the points have the column."""
        return bool(points.shape[-1] > self.column)


def in_training(points: Array, trainings: Array) -> Array:
    """Points (m, D) with the numbers (m,) of their trainings as another column, (m, D + 1)."""
    return np.concatenate([points, np.asarray(trainings, dtype=float)[:, None]], axis=1)
