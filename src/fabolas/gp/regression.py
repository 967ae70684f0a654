"""Exact Gaussian process regression for K hyperparameter samples at once: evidence, posterior, conditioning.

Notation: points P (n, D), targets y (n,), theta (K, p), L the Cholesky factors of the Gram matrices (K, n, n).
`V = L^-1 k(P, A)` is the whitened cross-covariance of new points A; with beta = L^-1 (y - m(P)) the posterior is
mean = m(A) + V' beta, covariance = k(A, B) - V_A' V_B.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.blas import dtrsm
from scipy.special import expit

from fabolas._types import Array, BoolArray, IntArray
from fabolas.gp import priors as _priors
from fabolas.gp.kernels import Evaluate, Kernel, Sum, between
from fabolas.gp.priors import LogHorseshoe, Normal, Prior
from fabolas.gp.repeats import Repeats
from fabolas.gp.trainings import SameTraining

# Smallest noise variance of standardised targets: a standard deviation of a thousandth of their spread. It keeps Gram
# matrices of repeated points positive definite.
NOISE_FLOOR = 1e-6

_BLOCK_ENTRIES = 1 << 16  # of kernel matrices computed at once


@dataclass(frozen=True)
class Noise:
    """Noise variance sigma^2 with a horseshoe prior; it may decrease towards the target.

    With `subset_noise` g it is sigma^2 (r + (1 - r) g), a reparametrisation of the noise in supplement C. The choice of
    a random subset adds noise, which disappears on all the data. r is the part that remains there.

    Attributes:
        subset_noise: Points (n, D) -> g (n,), from 0 at the target to 1 at the smallest size; None for equal noise.
        prior: Of log sigma^2.
        remaining_prior: Of log(r / (1 - r)).
    """

    subset_noise: Callable[[Array], Array] | None = None
    prior: Prior = LogHorseshoe(0.1)  # Klein et al. 2017, section 3.4
    remaining_prior: Prior = Normal(0.0, 3.0)

    @property
    def priors(self) -> tuple[Prior, ...]:
        return (self.prior,) if self.subset_noise is None else (self.prior, self.remaining_prior)

    def variance(self, theta: Array, points: Array) -> Array:
        """Noise variances at the points: (K, n)."""
        variance = np.exp(np.minimum(theta[:, :1], 50.0))
        if self.subset_noise is None:
            return np.broadcast_to(variance, (len(theta), len(points))) + NOISE_FLOOR
        r = expit(theta[:, 1:2])
        return variance * (r + (1.0 - r) * self.subset_noise(points)) + NOISE_FLOOR


class Mean(Protocol):
    """A mean function with sampled hyperparameters."""

    @property
    def priors(self) -> tuple[Prior, ...]: ...

    def evaluate(self, theta: Array, points: Array) -> Array:
        """theta (K, p), points (n, D) -> (K, n)."""
        ...


@dataclass(frozen=True)
class ZeroMean:
    """The mean function 0."""

    @property
    def priors(self) -> tuple[Prior, ...]:
        return ()

    def evaluate(self, theta: Array, points: Array) -> Array:
        return np.zeros((len(theta), len(points)))


@dataclass(frozen=True)
class GaussianProcess:
    """A GP prior with noise. The hyperparameters are those of the kernel, the noise and the mean, in this order.

    Attributes:
        kernel: Of the function; its last term is the noise that a training shares, if there is such noise.
        noise: Independent noise of each observation.
        mean: The prior mean.
        trainings: The noise that the points of one training share; it is also the last term of `kernel`. None if there
            is none.
    """

    kernel: Kernel
    noise: Noise
    mean: Mean = ZeroMean()
    trainings: SameTraining | None = None

    def sharing_noise(self, trainings: SameTraining) -> GaussianProcess:
        """The same prior, with noise that the points of one training share."""
        return replace(self, kernel=Sum((self.kernel, trainings)), trainings=trainings)

    def new_training_variance(self, theta: Array, points: Array) -> Array:
        """(K, 1) The additional variance v of an observation of a new training, at points without a training number.

        It is 0 for points with the number of their training, because there v is part of the kernel.
        """
        if self.trainings is None or self.trainings.has_trainings(points):
            return np.zeros((len(theta), 1))
        return self.trainings.variance(self.split(theta)[0][:, -1:])

    @property
    def priors(self) -> tuple[Prior, ...]:
        return self.kernel.priors + self.noise.priors + self.mean.priors

    def split(self, theta: Array) -> tuple[Array, Array, Array]:
        """theta (K, p) as the columns of the kernel, of the noise and of the mean."""
        p = len(self.kernel.priors)
        q = p + len(self.noise.priors)
        return theta[:, :p], theta[:, p:q], theta[:, q:]

    def log_density(
        self, points: Array, y: Array, repeats: Repeats | None = None
    ) -> Callable[[Array], Array]:
        """A function theta (W, p) -> log p(y | theta) + log p(theta), exact with all constants: (W,).

        It needs one batched kernel and one batched Cholesky factorisation for all walkers. y is added to the Gram
        matrix as a last row, so that the last row of the factor is L^-1 y and no triangular solve is needed. With
        repeats, the Gram matrix uses the posterior mean of the nugget fraction f (see `repeats.py`). A correction then
        integrates f out of the deviations of repeats from their mean.
        """
        n = len(y)
        rows, columns = np.tril_indices(n)
        gram = self.kernel.pairs(points[rows], points[columns])  # the lower triangle
        m, diagonal = len(rows), np.flatnonzero(rows == columns)
        position = _packed(n + 1)

        def evaluate(theta: Array) -> Array:
            value = _priors.log_density(self.priors, theta)
            possible = np.isfinite(value)
            if not possible.any():
                return value
            kernel_theta, noise_theta, mean_theta = self.split(theta[possible])
            packed = np.empty((len(kernel_theta), m + n + 1))  # the lower triangle, row by row
            _in_blocks(gram, kernel_theta, out=packed[:, :m])
            packed[:, diagonal] += self.noise.variance(noise_theta, points)
            if repeats is not None:
                packed[:, position[repeats.pairs]] += self._nugget(noise_theta, points, repeats)
                value[possible] += self._integrated_fraction(noise_theta, points, repeats)
            residual = y - self.mean.evaluate(mean_theta, points)
            packed[:, m : m + n] = residual
            # r' K^-1 r <= r'r / NOISE_FLOOR, so the extended matrix is positive definite.
            packed[:, m + n] = 1.0 + 2.0 * np.sum(residual**2, axis=1) / NOISE_FLOOR
            extended = np.take(packed, position, axis=1, mode="clip")  # "clip" skips the check of indices
            L, fine = try_cholesky(extended)
            fit = np.sum(L[:, n, :n] ** 2, axis=1)
            log_determinant = np.sum(np.log(np.diagonal(L, axis1=1, axis2=2)[:, :n]), axis=1)
            evidence = -0.5 * fit - log_determinant - 0.5 * n * np.log(2.0 * np.pi)
            value[possible] += np.where(fine, evidence, -np.inf)
            return value

        return evaluate

    def _nugget(self, noise_theta: Array, points: Array, repeats: Repeats) -> Array:
        """f sigma^2, the covariance of repeats (K, 1); f is its posterior mean."""
        variance = self.noise.variance(noise_theta, points[repeats.pairs[0][:1]])  # that of all repeats
        return repeats.fraction(variance[:, 0], NOISE_FLOOR)[:, None] * variance

    def _integrated_fraction(self, noise_theta: Array, points: Array, repeats: Repeats) -> Array:
        """(K,) Log-density with f integrated out, minus log-density with f at its posterior mean."""
        variance = self.noise.variance(noise_theta, points[repeats.pairs[0][:1]])
        return repeats.log_evidence_ratio(variance[:, 0], NOISE_FLOOR)

    def posterior(self, points: Array, y: Array, theta: Array, repeats: Repeats | None = None) -> Posterior:
        """The GP given the data, for each row of theta.

        Repeats share the part f of their noise; f is its posterior mean given theta. All repeats must have the same
        noise variance.
        """
        kernel_theta, noise_theta, mean_theta = self.split(theta)
        gram = _matrices(self.kernel, points, points, kernel_theta)
        diagonal = np.arange(len(y))
        gram[:, diagonal, diagonal] += self.noise.variance(noise_theta, points)
        if repeats is not None:
            later, earlier = repeats.pairs
            nugget = self._nugget(noise_theta, points, repeats)
            gram[:, later, earlier] += nugget
            gram[:, earlier, later] += nugget
        L = cholesky(gram)
        residual = y - self.mean.evaluate(mean_theta, points)
        beta = _solve(L, residual[:, :, None].copy())[..., 0]
        return Posterior(self, theta, points, L, beta)


@dataclass(frozen=True)
class Projection:
    """Points and their whitened cross-covariance V, computed once and used for several quantities."""

    points: Array  # (m, D)
    V: Array  # (K, n, m)


@dataclass(frozen=True)
class Posterior:
    """The exact posterior for K hyperparameter samples. Values are noise-free unless stated otherwise."""

    model: GaussianProcess
    theta: Array  # (K, p)
    points: Array  # (n, D)
    L: Array  # (K, n, n)
    beta: Array  # (K, n)

    def project(self, points: Array) -> Projection:
        """Prepare new points: one cross-kernel and one triangular solve per hyperparameter sample."""
        kernel_theta = self.model.split(self.theta)[0]
        cross = _matrices(self.model.kernel, self.points, points, kernel_theta)
        return Projection(points, _solve(self.L, cross))

    @cached_property
    def alpha(self) -> Array:
        """(K, n) G^-1 (y - m), G the Gram matrix: with it a mean costs one product with the cross-kernel."""
        columns = [
            solve_triangular(L, beta, lower=True, trans=1, check_finite=False)
            for L, beta in zip(self.L, self.beta, strict=True)
        ]
        return np.array(columns)

    def mean_of(self, points: Array) -> Array:
        """The mean (K, m) alone; cheaper than `mean(project(points))`."""
        cross = _matrices(self.model.kernel, points, self.points, self.model.split(self.theta)[0])
        mean: Array = (cross @ self.alpha[:, :, None])[..., 0]
        return mean + self.prior_mean(points)

    def prior_mean(self, points: Array) -> Array:
        """(K, m)."""
        return self.model.mean.evaluate(self.model.split(self.theta)[2], points)

    def mean(self, at: Projection) -> Array:
        """(K, m)."""
        mean: Array = (self.beta[:, None, :] @ at.V)[:, 0, :]
        return mean + self.prior_mean(at.points)

    def variance(self, at: Projection) -> Array:
        """(K, m); never negative."""
        prior = self.model.kernel.diagonal(self.model.split(self.theta)[0], at.points)
        variance: Array = np.maximum(prior - np.einsum("knm,knm->km", at.V, at.V), 0.0)
        return variance

    def covariance(self, a: Projection, b: Projection) -> Array:
        """Joint covariance (K, a, b), not clipped."""
        kernel_theta = self.model.split(self.theta)[0]
        joint = between(self.model.kernel, a.points, b.points)(kernel_theta)
        joint -= np.swapaxes(a.V, 1, 2) @ b.V
        return joint

    def weights(self, at: Projection) -> Array:
        """G^-1 k, (K, n, m): the weights of the n observations in the mean at each of m points."""
        columns = [
            solve_triangular(L, V, lower=True, trans=1, check_finite=False)
            for L, V in zip(self.L, at.V, strict=True)
        ]
        return np.array(columns)

    def noise(self, points: Array) -> Array:
        """Noise variances of observations at the points: (K, m)."""
        own = self.model.noise.variance(self.model.split(self.theta)[1], points)
        return own + self.model.new_training_variance(self.theta, points)

    def one_step_ahead(self) -> tuple[Array, Array]:
        """Mean and variance (K, n) of each observation, noise included, given only those before it.

        They are in the Cholesky factor: y_i given y_1, ..., y_(i-1) has the mean y_i - L_ii beta_i and the variance
        L_ii^2, because beta = L^-1 (y - m) are the standardised one-step errors.
        """
        diagonal = np.diagonal(self.L, axis1=1, axis2=2)
        y = self.prior_mean(self.points) + (self.L @ self.beta[:, :, None])[..., 0]
        return y - diagonal * self.beta, diagonal**2

    def condition(self, points: Array, y: Array | None = None) -> Posterior:
        """The posterior after more observations: a block is appended to the Cholesky factors.

        Without outcomes the points are pending: the variance shrinks as it will with any outcome, and the mean stays
        (beta gets zeros).
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
    """The kernel (K, ...), computed for few hyperparameter samples at a time, so that temporaries fit the cache."""
    step = max(1, _BLOCK_ENTRIES // max(out[0].size, 1))
    for k in range(0, len(theta), step):
        out[k : k + step] = evaluate(theta[k : k + step])
    return out


def _packed(n: int) -> IntArray:
    """The indices (n, n) of a symmetric matrix's entries in its packed lower triangle (row by row)."""
    row, column = np.indices((n, n))
    high, low = np.maximum(row, column), np.minimum(row, column)
    return np.asarray(high * (high + 1) // 2 + low)


def try_cholesky(matrices: Array) -> tuple[Array, BoolArray]:
    """Factors (K, n, n), and which matrices are positive definite; the others get the identity."""
    fine: BoolArray = np.ones(len(matrices), dtype=np.bool_)
    try:
        return np.asarray(np.linalg.cholesky(matrices), dtype=np.float64), fine
    except np.linalg.LinAlgError:  # at least one failed: factorise one by one
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

    Where a factorisation fails, a number is added to the diagonal: minus the lowest eigenvalue plus rounding error, and
    ten times more until it succeeds.
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

    numpy has no batched triangular solve. BLAS sees the arrays transposed, so it solves X L' = B' from the right.
    """
    for k in range(len(L)):
        dtrsm(1.0, L[k].T, B[k].T, side=1, lower=0, overwrite_b=1)
    return B
