"""Kernels: frozen values that are combined with `*` and `+`, each evaluated for K hyperparameter samples at once.

Notation: a point is a row of the cube, the configuration `x` first, then the fidelities `u` (u = 1 is the target).
theta is (K, p): a row is a hyperparameter sample, a column a sampled coordinate. `pairs(A, B)` takes points that
broadcast against each other, (..., D) each. It computes what does not depend on theta (distances, basis functions)
once and returns a function theta -> (K, ...), which MCMC then calls many times.

    eq6 = Amplitude() * Matern52(n_choices) * FiniteRank(column=d, features=phi)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Protocol

import numpy as np

from fabolas._types import Array, IntArray
from fabolas.gp.priors import Normal, Prior, Uniform

# theta (K, p) -> (K, ...), a new array, or an array that broadcasts to this shape
Evaluate = Callable[[Array], Array]
# Log-scaled size u (n,) and relative size s (n,) of one fidelity -> phi (n, m)
Basis = Callable[[Array, Array], Array]


class Kernel(Protocol):
    """A positive semi-definite function of two points with sampled hyperparameters."""

    @property
    def priors(self) -> tuple[Prior, ...]: ...

    def pairs(self, A: Array, B: Array) -> Evaluate: ...

    def diagonal(self, theta: Array, A: Array) -> Array: ...


def between(kernel: Kernel, A: Array, B: Array) -> Evaluate:
    """theta -> (K, a, b) or an array that broadcasts to it: each row of A (a, D) with each row of B (b, D)."""
    return kernel.pairs(A[:, None], B[None])


class Composable:
    """Defines `*` and `+` for kernels."""

    def __mul__(self: Kernel, other: Kernel) -> Product:
        return Product((self, other))

    def __add__(self: Kernel, other: Kernel) -> Sum:
        return Sum((self, other))


@dataclass(frozen=True)
class _Combined(Composable):
    """Several kernels combined; their hyperparameters are concatenated in order."""

    parts: tuple[Kernel, ...]

    @cached_property
    def priors(self) -> tuple[Prior, ...]:
        return tuple(prior for part in self.parts for prior in part.priors)

    @cached_property
    def _columns(self) -> list[slice]:
        """The columns of theta that belong to each part."""
        ends = list(accumulate(len(part.priors) for part in self.parts))
        return [slice(i, j) for i, j in zip([0, *ends[:-1]], ends, strict=True)]

    def _combine(self, A: Array, B: Array, operation: np.ufunc) -> Evaluate:
        evaluators = list(zip([part.pairs(A, B) for part in self.parts], self._columns, strict=True))
        shape = broadcast_shape(A, B)

        def evaluate(theta: Array) -> Array:
            values = [f(theta[:, columns]) for f, columns in evaluators]
            full = next((v for v in values if v.shape == (len(theta), *shape)), None)
            if full is None:
                full = np.broadcast_to(values[0], (len(theta), *shape)).copy()
                values = values[1:]
            else:
                values = [v for v in values if v is not full]
            for value in values:
                operation(full, value, out=full)  # in place, because memory traffic dominates
            return full

        return evaluate

    def _diagonals(self, theta: Array, A: Array) -> list[Array]:
        return [
            k.diagonal(theta[:, columns], A) for k, columns in zip(self.parts, self._columns, strict=True)
        ]


@dataclass(frozen=True)
class Product(_Combined):
    """k1 * k2 * ..."""

    def pairs(self, A: Array, B: Array) -> Evaluate:
        return self._combine(A, B, np.multiply)

    def diagonal(self, theta: Array, A: Array) -> Array:
        return np.asarray(np.prod(self._diagonals(theta, A), axis=0))


@dataclass(frozen=True)
class Sum(_Combined):
    """k1 + k2 + ..."""

    def pairs(self, A: Array, B: Array) -> Evaluate:
        return self._combine(A, B, np.add)

    def diagonal(self, theta: Array, A: Array) -> Array:
        return np.asarray(np.sum(self._diagonals(theta, A), axis=0))


def broadcast_shape(A: Array, B: Array) -> tuple[int, ...]:
    """The shape of the pairs of points."""
    return np.broadcast(A[..., 0], B[..., 0]).shape


@dataclass(frozen=True)
class Amplitude(Composable):
    """A constant factor, the amplitude, with a lognormal prior (Klein et al. 2017, section 3.4)."""

    prior: Prior = Normal(0.0, 1.0)

    @property
    def priors(self) -> tuple[Prior, ...]:
        return (self.prior,)

    def pairs(self, A: Array, B: Array) -> Evaluate:
        trailing = (1,) * len(broadcast_shape(A, B))
        return lambda theta: np.exp(theta).reshape(-1, *trailing)

    def diagonal(self, theta: Array, A: Array) -> Array:
        return np.broadcast_to(np.exp(theta), (len(theta), len(A)))


def uniform_length_prior(d: int) -> Prior:
    """The paper's prior on a length scale, on its logarithm: uniform on [-5, 1] (Klein et al. 2017, section 3.4).

    Section 3.4 gives [-10, 2] for all length scales in log space. We read this as the log squared length: lengths from
    0.007 to 2.7. Read literally, lambda of eq. 1 would give lengths from 0.37 to 148, far larger than the cube.
    """
    return Uniform(-5.0, 1.0)


def scaled_length_prior(d: int) -> Prior:
    """A lognormal prior around 0.3 sqrt(d): two random points of the cube are typically sqrt(d / 6) apart.

    In many dimensions the uniform prior puts most of its mass on functions that are noise between any two trials.
    """
    return Normal(np.log(0.3) + 0.5 * np.log(d), 1.0)


@dataclass(frozen=True)
class Matern52(Composable):
    """(1 + r + r^2/3) exp(-r), r^2 = 5 sum_i d_i / length_i^2 (Klein et al. 2017, eq. 1).

    d_i is the squared difference of a numeric coordinate; of a categorical one it is 0 if equal, else 1.

    Attributes:
        n_choices: For each of the first d coordinates 0 if it is numeric, else the number of categories; category i
            of m has its centre at (i + 1/2) / m.
        length_prior: Of the logarithm of each length scale; None for `scaled_length_prior`.
    """

    n_choices: tuple[int, ...]
    length_prior: Prior | None = None

    @property
    def priors(self) -> tuple[Prior, ...]:
        d = len(self.n_choices)
        return (self.length_prior or scaled_length_prior(d),) * d

    def pairs(self, A: Array, B: Array) -> Evaluate:
        distances = self._distances(A, B)  # (d, ...)
        shape, flat = distances.shape[1:], distances.reshape(len(distances), -1)

        def evaluate(theta: Array) -> Array:
            r = (5.0 * np.exp(-2.0 * theta)) @ flat
            np.sqrt(r, out=r)
            value = r / 3.0  # in place from here on, because memory traffic dominates
            value += 1.0
            value *= r
            value += 1.0
            np.negative(r, out=r)
            np.exp(r, out=r)
            value *= r
            return value.reshape(len(theta), *shape)

        return evaluate

    def diagonal(self, theta: Array, A: Array) -> Array:
        return np.ones((len(theta), len(A)))

    def _distances(self, A: Array, B: Array) -> Array:
        distances = np.empty((len(self.n_choices), *broadcast_shape(A, B)))
        for i, count in enumerate(self.n_choices):
            if count:
                distances[i] = _category(A[..., i], count) != _category(B[..., i], count)
            else:
                np.square(A[..., i] - B[..., i], out=distances[i])
        return distances


def _category(x: Array, count: int) -> Array:
    return np.minimum(np.floor(x * count), count - 1.0)


def power_law_basis(u: Array, s: Array) -> Array:
    """phi = (1, 1 - u): linear in log-size. The exponential of such a curve is a power law in the size.

    Losses are modelled on a log scale, and learning curves are mostly power laws; so are costs. To change the
    learning-curve basis of `fabolas`, pass another function as `ModelSpec(loss_basis=...)`.

    Args:
        u: (n,) log-scaled sizes, 1 at the target.
        s: (n,) relative sizes, 1 at the target.

    Returns:
        (n, 2)
    """
    return np.column_stack([np.ones_like(u), 1.0 - u])


def paper_loss_basis(u: Array, s: Array) -> Array:
    """phi_f(s) = (1, (1 - s)^2): flat at the target (Klein et al. 2017, section 3.1); arguments as above."""
    return np.column_stack([np.ones_like(s), (1.0 - s) ** 2])


def paper_cost_basis(u: Array, s: Array) -> Array:
    """phi_c(s) = (1, s), for log-cost (Klein et al. 2017, section 3.1); arguments as above."""
    return np.column_stack([np.ones_like(s), s])


@dataclass(frozen=True)
class FiniteRank(Composable):
    """phi(u)' S phi(u') with S = L L' learnt, L lower triangular (Klein et al. 2017, eq. 6).

    L[0, 0] = 1, because the overall scale belongs to the amplitude. The sampled coordinates are, row by row, the
    entries left of the diagonal and the logarithm of the diagonal entry.

    Attributes:
        column: The column of the points that holds u.
        features: u (n,) -> phi (n, m).
        chol_offdiag_prior: Prior of the entries L[i, 0]. With phi = (1, 1 - u), L[1, 0] > -1 means that losses at the
            smallest size and at the target are positively correlated.
        chol_logdiag_prior: Prior of log L[i, i].
    """

    column: int
    features: Callable[[Array], Array]
    chol_offdiag_prior: Prior = Normal(0.0, 0.5)
    chol_logdiag_prior: Prior = Normal(-1.0, 1.0)

    @cached_property
    def rank(self) -> int:
        """Number of basis functions m."""
        return int(self.features(np.ones(1)).shape[1])

    @property
    def priors(self) -> tuple[Prior, ...]:
        inner = Normal(0.0, 0.5)  # of the entries L[i, j], 0 < j < i, which exist from rank 3 on
        return sum(
            (
                (self.chol_offdiag_prior, *(inner,) * (row - 1), self.chol_logdiag_prior)
                for row in range(1, self.rank)
            ),
            (),
        )

    def factor(self, theta: Array) -> Array:
        """The Cholesky factors L: theta (K, p) -> (K, m, m)."""
        L = np.zeros((len(theta), self.rank, self.rank))
        L[:, 0, 0] = 1.0
        start = 0
        for row in range(1, self.rank):
            L[:, row, :row] = theta[:, start : start + row]
            L[:, row, row] = np.exp(theta[:, start + row])
            start += row + 1
        return L

    def pairs(self, A: Array, B: Array) -> Evaluate:
        phi_a, phi_b = (self._phi(points) for points in (A, B))
        # phi(u)' S phi(u') is linear in S; each entry left of the diagonal counts twice.
        rows, columns = self._triangle
        products = np.empty((len(rows), *broadcast_shape(A, B)))
        for k, (i, j) in enumerate(zip(rows, columns, strict=True)):
            np.multiply(phi_a[i], phi_b[j], out=products[k])
            if i != j:
                products[k] += phi_a[j] * phi_b[i]
        shape, flat = products.shape[1:], products.reshape(len(products), -1)

        def evaluate(theta: Array) -> Array:
            L = self.factor(theta)
            S = L @ np.swapaxes(L, 1, 2)
            return np.asarray(S[:, rows, columns] @ flat).reshape(len(theta), *shape)

        return evaluate

    @cached_property
    def _triangle(self) -> tuple[IntArray, ...]:
        """Rows and columns of a lower triangle."""
        return np.tril_indices(self.rank)

    def _phi(self, points: Array) -> Array:
        """Points (..., D) -> (m, ...)."""
        u = points[..., self.column]
        return np.asarray(self.features(u.reshape(-1)).T.reshape(self.rank, *u.shape))

    def diagonal(self, theta: Array, A: Array) -> Array:
        squares: Array = np.sum((self.features(A[:, self.column]) @ self.factor(theta)) ** 2, axis=2)
        return squares


def quadratic_time(u: Array) -> Array:
    """t(u) = u^2: the random walk starts at the smallest size, slowly.

    On few rows many configurations are no better than chance, so their losses are equal. They differ at larger sizes.
    A walk that is zero at the smallest size allows that.
    """
    return u**2


def cubic_time(u: Array) -> Array:
    """t(u) = u^3: the random walk is mostly near the target."""
    return u**3


def late_time(u: Array) -> Array:
    """t(u) = u^6: nearly all of the change is near the target, so small sizes do not show it."""
    return u**6


@dataclass(frozen=True)
class BrownianKernel(Composable):
    """v * sum_j min(t(u_j), t(u_j')): Brownian motion in each fidelity, with learnt variance v.

    The basis functions of eq. 6 are an assumption: with them alone, two sizes of one configuration would determine
    its loss on all the data. With this term a curve deviates from the basis by a random walk, so that extrapolation
    is never certain and improves towards u = 1.

    Attributes:
        columns: The fidelities' columns of the points.
        time_warp: t(u), zero where the walk starts.
        log_variance_prior: Of log v.
    """

    columns: tuple[int, ...]
    time_warp: Callable[[Array], Array]
    log_variance_prior: Prior

    @property
    def priors(self) -> tuple[Prior, ...]:
        return (self.log_variance_prior,)

    def pairs(self, A: Array, B: Array) -> Evaluate:
        common = np.zeros((1, *broadcast_shape(A, B)))
        for column in self.columns:
            common += np.minimum(self.time_warp(A[..., column]), self.time_warp(B[..., column]))
        rest = (1,) * (common.ndim - 1)
        return lambda theta: np.exp(theta).reshape(-1, *rest) * common

    def diagonal(self, theta: Array, A: Array) -> Array:
        times: Array = np.sum(self.time_warp(A[:, list(self.columns)]), axis=1)
        return np.exp(theta) * times


@dataclass(frozen=True)
class LinearTrend(Composable):
    """sum_i v_i phi_i(u) phi_i(u'): Bayesian linear regression on fixed features, without hyperparameters.

    It is shared by all configurations: "more data costs more" is learnt once, not for each configuration.

    Attributes:
        features: Points (n, D) -> (n, m), each already multiplied by the prior standard deviation of its weight.
    """

    features: Callable[[Array], Array] = field(repr=False)

    @property
    def priors(self) -> tuple[Prior, ...]:
        return ()

    def pairs(self, A: Array, B: Array) -> Evaluate:
        a, b = (self.features(points.reshape(-1, points.shape[-1])) for points in (A, B))
        a, b = a.reshape(*A.shape[:-1], a.shape[1]), b.reshape(*B.shape[:-1], b.shape[1])
        products = np.einsum("...m,...m->...", a, b)
        return lambda theta: products

    def diagonal(self, theta: Array, A: Array) -> Array:
        return np.broadcast_to(np.sum(self.features(A) ** 2, axis=1), (len(theta), len(A)))
