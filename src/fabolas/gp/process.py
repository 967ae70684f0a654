"""The exact Gaussian process for K hyperparameter samples at once: evidence, posterior, conditioning.

Notation: points P (n, D), targets y (n,), theta (K, p), L the Cholesky factors of the Gram matrices (K, n, n).
`V = L^-1 k(P, A)` is the whitened cross-covariance of new points A; with beta = L^-1 y the posterior is
mean = V' beta, covariance = k(A, B) - V_A' V_B.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.blas import dtrsm
from scipy.special import expit

from fabolas._types import Array, BoolArray, IntArray
from fabolas.gp import priors as _priors
from fabolas.gp.kernels import Evaluate, Kernel, between
from fabolas.gp.priors import LogHorseshoe, Normal, Prior

# Targets are standardised, so this floor is a noise of a thousandth of their spread. It keeps Gram matrices
# of duplicated points factorisable, and no measured loss is more exact than that.
NOISE_FLOOR = 1e-6

_BLOCK = 1 << 16  # entries of kernel matrices computed at once


@dataclass(frozen=True)
class Noise:
    """sigma^2 with a horseshoe prior; with `away`, sigma^2 (r + (1 - r) away), least at the target.

    What the choice of a random subset adds to the noise of training is gone on all the data. The second form is the
    heteroscedastic noise of supplement C so put; r is the logistic function of a Gaussian.

    Attributes:
        away: points (n, D) -> (n,), from 0 at the target to 1 far from it; None for the same noise everywhere.
        prior: of log(sigma^2).
        remaining: of log(r / (1 - r)): from hardly any noise at the target to nearly all of it.
    """

    away: Callable[[Array], Array] | None = None
    prior: Prior = LogHorseshoe(0.1)  # Klein et al. 2017, section 3.4
    remaining: Prior = Normal(-2.0, 2.0)

    @property
    def priors(self) -> tuple[Prior, ...]:
        return (self.prior,) if self.away is None else (self.prior, self.remaining)

    def variance(self, theta: Array, points: Array) -> Array:
        """Noise variances at the points: (K, n)."""
        variance = np.exp(np.minimum(theta[:, :1], 50.0))
        if self.away is None:
            return np.broadcast_to(variance, (len(theta), len(points))) + NOISE_FLOOR
        r = expit(theta[:, 1:2])
        return variance * (r + (1.0 - r) * self.away(points)) + NOISE_FLOOR


@dataclass(frozen=True)
class Model:
    """A zero-mean GP prior and its noise; the last hyperparameters are the noise's."""

    kernel: Kernel
    noise: Noise

    @property
    def priors(self) -> tuple[Prior, ...]:
        return self.kernel.priors + self.noise.priors

    def split(self, theta: Array) -> tuple[Array, Array]:
        """theta as (kernel's, noise's)."""
        p = len(self.kernel.priors)
        return theta[:, :p], theta[:, p:]

    def log_density(self, points: Array, y: Array) -> Callable[[Array], Array]:
        """theta (W, p) -> log p(y | theta) + log p(theta), up to no constant: (W,).

        One batched kernel and one batched Cholesky for all walkers. The Gram matrix is bordered by y, so that
        the last row of the factor is L^-1 y and no triangular solve is needed.
        """
        n = len(y)
        rows, columns = np.tril_indices(n)
        gram = self.kernel.pairs(points[rows], points[columns])  # symmetric: a half of it says all
        m, diagonal = len(rows), np.flatnonzero(rows == columns)
        # y' K^-1 y <= y'y / NOISE_FLOOR keeps the bordered matrix positive definite.
        border = np.append(y, 1.0 + 2.0 * float(y @ y) / NOISE_FLOOR)
        position = _packed(n + 1)

        def evaluate(theta: Array) -> Array:
            value = _priors.log_density(self.priors, theta)
            possible = np.isfinite(value)
            if not possible.any():
                return value
            kernel_theta, noise_theta = self.split(theta[possible])
            packed = np.empty((len(kernel_theta), m + n + 1))  # row after row of the lower triangle
            _in_blocks(gram, kernel_theta, out=packed[:, :m])
            packed[:, diagonal] += self.noise.variance(noise_theta, points)
            packed[:, m:] = border
            bordered = np.take(packed, position, axis=1, mode="clip")  # which checks no index
            L, fine = try_cholesky(bordered)
            fit = np.sum(L[:, n, :n] ** 2, axis=1)
            log_determinant = np.sum(np.log(np.diagonal(L, axis1=1, axis2=2)[:, :n]), axis=1)
            evidence = -0.5 * fit - log_determinant - 0.5 * n * np.log(2.0 * np.pi)
            value[possible] += np.where(fine, evidence, -np.inf)
            return value

        return evaluate

    def posterior(self, points: Array, y: Array, theta: Array) -> Posterior:
        """The GP given the data, for each row of theta."""
        kernel_theta, noise_theta = self.split(theta)
        gram = _matrices(self.kernel, points, points, kernel_theta)
        diagonal = np.arange(len(y))
        gram[:, diagonal, diagonal] += self.noise.variance(noise_theta, points)
        L = cholesky(gram)
        beta = _solve(L, np.broadcast_to(y[None, :, None], (len(theta), len(y), 1)).copy())[..., 0]
        return Posterior(self, theta, points, L, beta)


@dataclass(frozen=True)
class Projection:
    """Points together with their whitened cross-covariance, computed once and used for many quantities."""

    points: Array  # (m, D)
    V: Array  # (K, n, m)


@dataclass(frozen=True)
class Posterior:
    """The exact posterior process for K hyperparameter samples. Values are noise-free unless said otherwise."""

    model: Model
    theta: Array  # (K, p)
    points: Array  # (n, D)
    L: Array  # (K, n, n)
    beta: Array  # (K, n)

    def project(self, points: Array) -> Projection:
        """Prepare new points: one cross-kernel and one triangular solve a hyperparameter sample."""
        kernel_theta, _ = self.model.split(self.theta)
        cross = _matrices(self.model.kernel, self.points, points, kernel_theta)
        return Projection(points, _solve(self.L, cross))

    @cached_property
    def alpha(self) -> Array:
        """(K, n) K^-1 y: with it a mean is one product with the cross-kernel; a projection is n times that."""
        columns = [
            solve_triangular(L, beta, lower=True, trans=1, check_finite=False)
            for L, beta in zip(self.L, self.beta, strict=True)
        ]
        return np.array(columns)

    def mean_of(self, points: Array) -> Array:
        """The mean (K, m) at points of which nothing else is wanted."""
        kernel_theta, _ = self.model.split(self.theta)
        cross = _matrices(self.model.kernel, points, self.points, kernel_theta)
        mean: Array = (cross @ self.alpha[:, :, None])[..., 0]
        return mean

    def mean(self, at: Projection) -> Array:
        """(K, m)."""
        mean: Array = (self.beta[:, None, :] @ at.V)[:, 0, :]
        return mean

    def variance(self, at: Projection) -> Array:
        """(K, m); never negative."""
        kernel_theta, _ = self.model.split(self.theta)
        prior = self.model.kernel.diagonal(kernel_theta, at.points)
        variance: Array = np.maximum(prior - np.einsum("knm,knm->km", at.V, at.V), 0.0)
        return variance

    def covariance(self, a: Projection, b: Projection) -> Array:
        """Joint covariance (K, a, b): signs are kept, nothing is clipped."""
        kernel_theta, _ = self.model.split(self.theta)
        joint = between(self.model.kernel, a.points, b.points)(kernel_theta)
        joint -= np.swapaxes(a.V, 1, 2) @ b.V
        return joint

    def noise(self, points: Array) -> Array:
        """Noise variances of observations there: (K, m)."""
        return self.model.noise.variance(self.model.split(self.theta)[1], points)

    def condition(self, points: Array, y: Array | None = None) -> Posterior:
        """The process after further observations: a block is appended to the factors.

        Without outcomes the points are pending: whatever will be seen there, the variance shrinks and the
        mean stays (beta gets zeros).
        """
        m = len(points)
        at = self.project(points)
        block = self.covariance(at, at)
        block[:, np.arange(m), np.arange(m)] += self.noise(points)
        corner = cholesky(block)
        K, n = self.beta.shape
        L = np.zeros((K, n + m, n + m))
        L[:, :n, :n] = self.L
        L[:, n:, :n] = np.swapaxes(at.V, 1, 2)
        L[:, n:, n:] = corner
        if y is None:
            tail = np.zeros((K, m))
        else:
            tail = _solve(corner, (y[None] - self.mean(at))[..., None])[..., 0]
        return Posterior(
            self.model,
            self.theta,
            np.concatenate([self.points, points]),
            L,
            np.concatenate([self.beta, tail], axis=1),
        )


def _matrices(kernel: Kernel, A: Array, B: Array, theta: Array) -> Array:
    """The kernel (K, a, b) between the rows of A and those of B."""
    return _in_blocks(between(kernel, A, B), theta, out=np.empty((len(theta), len(A), len(B))))


def _in_blocks(evaluate: Evaluate, theta: Array, *, out: Array) -> Array:
    """The kernel (K, ...), for so few hyperparameter samples at a time that temporaries stay in the cache."""
    step = max(1, _BLOCK // max(out[0].size, 1))
    for k in range(0, len(theta), step):
        out[k : k + step] = evaluate(theta[k : k + step])
    return out


def _packed(n: int) -> IntArray:
    """Where the entries (n, n) of a symmetric matrix are among those of its lower triangle, row after row."""
    row, column = np.indices((n, n))
    high, low = np.maximum(row, column), np.minimum(row, column)
    return np.asarray(high * (high + 1) // 2 + low)


def try_cholesky(matrices: Array) -> tuple[Array, BoolArray]:
    """Factors (K, n, n) and which of them exist; the factor of one that does not is the identity."""
    fine: BoolArray = np.ones(len(matrices), dtype=np.bool_)
    try:
        return np.asarray(np.linalg.cholesky(matrices), dtype=np.float64), fine
    except np.linalg.LinAlgError:  # one of the batch failed: find out which, one by one
        factors = np.empty_like(matrices)
        for k, matrix in enumerate(matrices):
            try:
                factors[k] = np.linalg.cholesky(matrix)
            except np.linalg.LinAlgError:
                fine[k] = False
                factors[k] = np.eye(len(matrix))
        return factors, fine


def cholesky(matrices: Array) -> Array:
    """Factors (K, n, n) of matrices that are positive semi-definite up to rounding.

    A matrix that cannot be factorised as it is gets the smallest diagonal shift that helps, starting at the
    rounding error of its own scale.
    """
    factors, fine = try_cholesky(matrices)
    for k in np.flatnonzero(~fine):
        matrix = 0.5 * (matrices[k] + matrices[k].T)
        eigenvalues = np.linalg.eigvalsh(matrix)
        scale = max(float(np.abs(eigenvalues).max()), 1e-300)
        shift = max(-float(eigenvalues[0]), 0.0) + 4.0 * len(matrix) * np.finfo(float).eps * scale
        one, good = try_cholesky((matrix + shift * np.eye(len(matrix)))[None])
        while not good[0]:
            shift *= 10.0
            one, good = try_cholesky((matrix + shift * np.eye(len(matrix)))[None])
        factors[k] = one[0]
    return factors


def _solve(L: Array, B: Array) -> Array:
    """L^-1 B for each of K lower factors, in place in B (K, n, m), which must be C-contiguous.

    numpy has no batched triangular solve. Seen as Fortran arrays, L is upper and B is B': X L' = B' from the right.
    """
    for k in range(len(L)):
        dtrsm(1.0, L[k].T, B[k].T, side=1, lower=0, overwrite_b=1)
    return B
