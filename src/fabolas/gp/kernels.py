"""Kernels as values that are multiplied and added; each is evaluated for K hyperparameter samples at once.

Notation: a point is a row of the cube, configuration `x` first, then the fidelities `u` (u = 1 is the target).
theta is (K, p): one row a hyperparameter sample, one column a sampled coordinate. `between(A, B)` computes what
does not depend on theta (distances, basis functions) once and returns a function theta -> (K, a, b), which MCMC
then calls many times.

    eq6 = Amplitude() * Matern52(choices) * FiniteRank(column=d, basis=loss_basis)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Protocol

import numpy as np

from fabolas._types import Array
from fabolas.gp.priors import Normal, Prior, Uniform

# theta (K, p) -> (K, a, b), a fresh array; or something of another shape that broadcasts to it
Evaluate = Callable[[Array], Array]
Basis = Callable[[Array], Array]  # u (n,) -> phi(u) (n, m)


class Kernel(Protocol):
    """A positive semi-definite function of two points with sampled hyperparameters."""

    @property
    def priors(self) -> tuple[Prior, ...]: ...

    def between(self, A: Array, B: Array) -> Evaluate: ...

    def diagonal(self, theta: Array, A: Array) -> Array: ...


class _Composable:
    """Gives kernels their arithmetic."""

    def __mul__(self: Kernel, other: Kernel) -> Product:
        return Product((self, other))

    def __add__(self: Kernel, other: Kernel) -> Sum:
        return Sum((self, other))


@dataclass(frozen=True)
class Product(_Composable):
    """k1 * k2 * ...: hyperparameters are concatenated in order."""

    parts: tuple[Kernel, ...]

    @cached_property
    def priors(self) -> tuple[Prior, ...]:
        return _priors(self.parts)

    def between(self, A: Array, B: Array) -> Evaluate:
        return _combine(self.parts, A, B, np.multiply)

    def diagonal(self, theta: Array, A: Array) -> Array:
        product: Array = np.prod([k.diagonal(t, A) for k, t in _slices(self.parts, theta)], axis=0)
        return product


@dataclass(frozen=True)
class Sum(_Composable):
    """k1 + k2 + ...: hyperparameters are concatenated in order."""

    parts: tuple[Kernel, ...]

    @cached_property
    def priors(self) -> tuple[Prior, ...]:
        return _priors(self.parts)

    def between(self, A: Array, B: Array) -> Evaluate:
        return _combine(self.parts, A, B, np.add)

    def diagonal(self, theta: Array, A: Array) -> Array:
        total: Array = np.sum([k.diagonal(t, A) for k, t in _slices(self.parts, theta)], axis=0)
        return total


def _priors(parts: tuple[Kernel, ...]) -> tuple[Prior, ...]:
    return tuple(prior for part in parts for prior in part.priors)


def _bounds(parts: tuple[Kernel, ...]) -> list[tuple[int, int]]:
    """Where each part's hyperparameters begin and end among all of them."""
    ends = list(accumulate(len(part.priors) for part in parts))
    return list(zip([0, *ends[:-1]], ends, strict=True))


def _slices(parts: tuple[Kernel, ...], theta: Array) -> list[tuple[Kernel, Array]]:
    return [(part, theta[:, i:j]) for part, (i, j) in zip(parts, _bounds(parts), strict=True)]


def _combine(parts: tuple[Kernel, ...], A: Array, B: Array, operation: np.ufunc) -> Evaluate:
    evaluators = list(zip([part.between(A, B) for part in parts], _bounds(parts), strict=True))
    shape = (len(A), len(B))

    def evaluate(theta: Array) -> Array:
        values = [f(theta[:, i:j]) for f, (i, j) in evaluators]
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


@dataclass(frozen=True)
class Amplitude(_Composable):
    """A constant factor theta with a lognormal prior (Klein et al. 2017, section 3.4)."""

    prior: Prior = Normal(0.0, 1.0)

    @property
    def priors(self) -> tuple[Prior, ...]:
        return (self.prior,)

    def between(self, A: Array, B: Array) -> Evaluate:
        return lambda theta: np.exp(theta)[:, :, None]

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

    def between(self, A: Array, B: Array) -> Evaluate:
        distances = self._distances(A, B)  # (d, a * b)
        shape = (len(A), len(B))

        def evaluate(theta: Array) -> Array:
            r = (5.0 * np.exp(-2.0 * theta)) @ distances
            np.sqrt(r, out=r)
            tail = np.exp(-r)
            value = r / 3.0
            value += 1.0
            value *= r
            value += 1.0
            value *= tail
            return value.reshape(len(theta), *shape)

        return evaluate

    def diagonal(self, theta: Array, A: Array) -> Array:
        return np.ones((len(theta), len(A)))

    def _distances(self, A: Array, B: Array) -> Array:
        distances = np.empty((len(self.choices), len(A), len(B)))
        for i, choices in enumerate(self.choices):
            if choices:
                distances[i] = _category(A[:, None, i], choices) != _category(B[None, :, i], choices)
            else:
                np.square(A[:, None, i] - B[None, :, i], out=distances[i])
        return distances.reshape(len(self.choices), -1)


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

    def between(self, A: Array, B: Array) -> Evaluate:
        phi_a, phi_b = self.basis(A[:, self.column]), self.basis(B[:, self.column])

        def evaluate(theta: Array) -> Array:
            L = self.factor(theta)
            return (phi_a @ L) @ np.swapaxes(phi_b @ L, 1, 2)

        return evaluate

    def diagonal(self, theta: Array, A: Array) -> Array:
        squares: Array = np.sum((self.basis(A[:, self.column]) @ self.factor(theta)) ** 2, axis=2)
        return squares


@dataclass(frozen=True)
class Drift(_Composable):
    """v * sum_j (1 - max(u_j, u_j')): a random walk in the fidelity, pinned to zero at the target.

    The basis functions of eq. 6 are an assumption: two sizes of one configuration would settle its loss on all
    the data. With this term smaller sizes deviate from the basis by a Brownian motion of learnt variance v, so
    that extrapolation is never certain and gets better towards u = 1.
    """

    columns: tuple[int, ...]
    prior: Prior = Normal(-3.0, 1.5)

    @property
    def priors(self) -> tuple[Prior, ...]:
        return (self.prior,)

    def between(self, A: Array, B: Array) -> Evaluate:
        walk = np.zeros((len(A), len(B)))
        for column in self.columns:
            walk += 1.0 - np.maximum(A[:, None, column], B[None, :, column])
        return lambda theta: np.exp(theta)[:, :, None] * walk

    def diagonal(self, theta: Array, A: Array) -> Array:
        distance: Array = np.sum(1.0 - A[:, list(self.columns)], axis=1)
        return np.exp(theta) * distance


@dataclass(frozen=True)
class Trend(_Composable):
    """sum_i v_i phi_i(u) phi_i(u'): Bayesian linear regression on fixed functions of the point, no hyperparameters.

    It lets what all configurations share, such as "more data costs more", be learnt once for all of them.
    """

    features: Callable[[Array], Array] = field(repr=False)  # points (n, D) -> (n, m), variances already in it

    @property
    def priors(self) -> tuple[Prior, ...]:
        return ()

    def between(self, A: Array, B: Array) -> Evaluate:
        gram = self.features(A) @ self.features(B).T
        return lambda theta: gram

    def diagonal(self, theta: Array, A: Array) -> Array:
        return np.broadcast_to(np.sum(self.features(A) ** 2, axis=1), (len(theta), len(A)))
