"""Kernels as values that are multiplied and added; each is evaluated for K hyperparameter samples at once.

Notation: a point is a row of the cube, configuration `x` first, then the fidelities `u` (u = 1 is the target).
theta is (K, p): one row a hyperparameter sample, one column a sampled coordinate. `pairs(A, B)` takes points that
broadcast against each other, (..., D) each, computes what does not depend on theta (distances, basis functions)
once and returns a function theta -> (K, ...), which MCMC then calls many times.

    eq6 = Amplitude() * Matern52(choices) * FiniteRank(column=d, basis=loss_basis)
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

# theta (K, p) -> (K, ...), a fresh array; or something of another shape that broadcasts to it
Evaluate = Callable[[Array], Array]
Basis = Callable[[Array], Array]  # u (n,) -> phi(u) (n, m)


class Kernel(Protocol):
    """A positive semi-definite function of two points with sampled hyperparameters."""

    @property
    def priors(self) -> tuple[Prior, ...]: ...

    def pairs(self, A: Array, B: Array) -> Evaluate: ...

    def diagonal(self, theta: Array, A: Array) -> Array: ...


def between(kernel: Kernel, A: Array, B: Array) -> Evaluate:
    """theta -> (K, a, b), or what broadcasts to it: each row of A (a, D) with each row of B (b, D)."""
    return kernel.pairs(A[:, None], B[None])


class _Composable:
    """Gives kernels their arithmetic."""

    def __mul__(self: Kernel, other: Kernel) -> Product:
        return Product((self, other))

    def __add__(self: Kernel, other: Kernel) -> Sum:
        return Sum((self, other))


@dataclass(frozen=True)
class _Combined(_Composable):
    """Several kernels made one; their hyperparameters are concatenated in order."""

    parts: tuple[Kernel, ...]

    @cached_property
    def priors(self) -> tuple[Prior, ...]:
        return tuple(prior for part in self.parts for prior in part.priors)

    @cached_property
    def _columns(self) -> list[slice]:
        """Where each part's hyperparameters are among all of them."""
        ends = list(accumulate(len(part.priors) for part in self.parts))
        return [slice(i, j) for i, j in zip([0, *ends[:-1]], ends, strict=True)]

    def _combine(self, A: Array, B: Array, operation: np.ufunc) -> Evaluate:
        evaluators = list(zip([part.pairs(A, B) for part in self.parts], self._columns, strict=True))
        shape = _shape(A, B)

        def evaluate(theta: Array) -> Array:
            values = [f(theta[:, columns]) for f, columns in evaluators]
            full = next((v for v in values if v.shape == (len(theta), *shape)), None)
            if full is None:
                full = np.broadcast_to(values[0], (len(theta), *shape)).copy()
                values = values[1:]
            else:
                values = [v for v in values if v is not full]
            for value in values:
                operation(full, value, out=full)  # in place: these arrays are the bulk of the memory traffic
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


def _shape(A: Array, B: Array) -> tuple[int, ...]:
    """That of the pairs of points."""
    return np.broadcast(A[..., 0], B[..., 0]).shape


@dataclass(frozen=True)
class Amplitude(_Composable):
    """A constant factor theta with a lognormal prior (Klein et al. 2017, section 3.4)."""

    prior: Prior = Normal(0.0, 1.0)

    @property
    def priors(self) -> tuple[Prior, ...]:
        return (self.prior,)

    def pairs(self, A: Array, B: Array) -> Evaluate:
        rest = (1,) * len(_shape(A, B))
        return lambda theta: np.exp(theta).reshape(-1, *rest)

    def diagonal(self, theta: Array, A: Array) -> Array:
        return np.broadcast_to(np.exp(theta), (len(theta), len(A)))


# The paper's lambda multiplies squared distances, so a range for log(lambda) is minus twice one for the length.
# Section 3.4 gives [-10, 2] to "length scales"; read as log squared lengths that is lengths from 0.007 to 2.7.
LENGTH_PRIOR = Uniform(-5.0, 1.0)


def scaled_length_prior(d: int) -> Prior:
    """Lognormal around 0.3 sqrt(d): two points of the cube are typically sqrt(d / 6) apart.

    In many dimensions the uniform prior puts its mass on functions that are noise between any two trials.
    """
    return Normal(np.log(0.3) + 0.5 * np.log(d), 1.0)


@dataclass(frozen=True)
class Matern52(_Composable):
    """(1 + r + r^2/3) exp(-r), r^2 = 5 sum_i d_i / length_i^2 (Klein et al. 2017, eq. 1).

    d_i is the squared difference of a numeric coordinate, and 0 or 1 (equal or not) of a categorical one.

    Args:
        choices: for each of the first d coordinates 0 if numeric, else the number of categories; the centre
            of category i of m is (i + 1/2) / m.
    """

    choices: tuple[int, ...]
    length_prior: Prior = LENGTH_PRIOR

    @property
    def priors(self) -> tuple[Prior, ...]:
        return (self.length_prior,) * len(self.choices)

    def pairs(self, A: Array, B: Array) -> Evaluate:
        distances = self._distances(A, B)  # (d, ...)
        shape, flat = distances.shape[1:], distances.reshape(len(distances), -1)

        def evaluate(theta: Array) -> Array:
            r = (5.0 * np.exp(-2.0 * theta)) @ flat
            np.sqrt(r, out=r)
            value = r / 3.0  # from here on in place: what takes the time is to write and read these arrays
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
        distances = np.empty((len(self.choices), *_shape(A, B)))
        for i, choices in enumerate(self.choices):
            if choices:
                distances[i] = _category(A[..., i], choices) != _category(B[..., i], choices)
            else:
                np.square(A[..., i] - B[..., i], out=distances[i])
        return distances


def _category(x: Array, choices: int) -> Array:
    return np.minimum(np.floor(x * choices), choices - 1.0)


def loss_basis(u: Array) -> Array:
    """phi_f(u) = (1, (1 - u)^2): flat at the target (Klein et al. 2017, section 3.1)."""
    return np.column_stack([np.ones_like(u), (1.0 - u) ** 2])


def power_law_basis(u: Array) -> Array:
    """phi(u) = (1, 1 - u): a logarithm linear in log-size is a power law, as learning curves mostly are.

    Costs are too; they have the span of phi_c(s) = (1, s) (Klein et al. 2017, section 3.1), from the target's side.
    """
    return np.column_stack([np.ones_like(u), 1.0 - u])


@dataclass(frozen=True)
class FiniteRank(_Composable):
    """phi(u)' S phi(u') with S = L L' learnt, L lower triangular (Klein et al. 2017, eq. 6).

    L[0, 0] = 1: the overall scale belongs to the amplitude. The sampled coordinates are, row by row, the
    entries left of the diagonal as they are and the diagonal as its logarithm.
    """

    column: int
    basis: Basis
    rank: int = 2
    # The first column below the diagonal. Above -1 the ranking on small sizes is like the target's: the usual case.
    mixing: Prior = Normal(0.0, 0.5)
    further: Prior = Normal(0.0, 0.5)  # the other entries left of the diagonal
    spread: Prior = Normal(-1.0, 1.0)  # logarithms of the diagonal

    @property
    def priors(self) -> tuple[Prior, ...]:
        rows = range(1, self.rank)
        return sum(((self.mixing, *(self.further,) * (row - 1), self.spread) for row in rows), ())

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
        phi_a, phi_b = (self._basis(points) for points in (A, B))
        # phi(u)' S phi(u') is linear in S, whose entries left of the diagonal are there twice.
        rows, columns = self._triangle
        products = np.empty((len(rows), *_shape(A, B)))
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

    def _basis(self, points: Array) -> Array:
        """Points (..., D) -> (m, ...)."""
        u = points[..., self.column]
        return np.asarray(self.basis(u.reshape(-1)).T.reshape(self.rank, *u.shape))

    def diagonal(self, theta: Array, A: Array) -> Array:
        squares: Array = np.sum((self.basis(A[:, self.column]) @ self.factor(theta)) ** 2, axis=2)
        return squares


def from_the_smallest(u: Array) -> Array:
    """t(u) = u^2: a walk that begins on the smallest subset, slowly at first.

    On few rows many configurations are no better than chance and so all alike. What tells them apart comes later,
    and a walk that begins there, at nothing, leaves room for it.
    """
    return u**2


def from_the_target(u: Array) -> Array:
    """t(u) = 1 - u: a walk that begins at the target, and whose largest deviations are on the smallest subset."""
    return 1.0 - u


@dataclass(frozen=True)
class Drift(_Composable):
    """v * sum_j min(t(u_j), t(u_j')): a Brownian motion in the fidelity, whose time t begins at one of its ends.

    The basis functions of eq. 6 are an assumption: two sizes of one configuration would settle its loss on all
    the data. With this term sizes deviate from the basis by a random walk of learnt variance v, so that
    extrapolation is never certain and gets better towards u = 1.
    """

    columns: tuple[int, ...]
    elapsed: Callable[[Array], Array] = from_the_target
    prior: Prior = Normal(-3.0, 1.5)

    @property
    def priors(self) -> tuple[Prior, ...]:
        return (self.prior,)

    def pairs(self, A: Array, B: Array) -> Evaluate:
        walk = np.zeros((1, *_shape(A, B)))
        for column in self.columns:
            walk += np.minimum(self.elapsed(A[..., column]), self.elapsed(B[..., column]))
        rest = (1,) * (walk.ndim - 1)
        return lambda theta: np.exp(theta).reshape(-1, *rest) * walk

    def diagonal(self, theta: Array, A: Array) -> Array:
        lasted: Array = np.sum(self.elapsed(A[:, list(self.columns)]), axis=1)
        return np.exp(theta) * lasted


@dataclass(frozen=True)
class Trend(_Composable):
    """sum_i v_i phi_i(u) phi_i(u'): Bayesian linear regression on fixed functions of the point, no hyperparameters.

    It lets what all configurations share, such as "more data costs more", be learnt once for all of them.
    """

    features: Callable[[Array], Array] = field(repr=False)  # points (n, D) -> (n, m), variances already in it

    @property
    def priors(self) -> tuple[Prior, ...]:
        return ()

    def pairs(self, A: Array, B: Array) -> Evaluate:
        a, b = (self.features(points.reshape(-1, points.shape[-1])) for points in (A, B))
        a, b = a.reshape(*A.shape[:-1], -1), b.reshape(*B.shape[:-1], -1)
        products = np.einsum("...m,...m->...", a, b)
        return lambda theta: products

    def diagonal(self, theta: Array, A: Array) -> Array:
        return np.broadcast_to(np.sum(self.features(A) ** 2, axis=1), (len(theta), len(A)))
