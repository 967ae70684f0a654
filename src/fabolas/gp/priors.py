"""Priors over sampled coordinates, evaluated and drawn in batches.

Each prior is a density over one real coordinate `t`. For a positive parameter `t` is its logarithm. The density is
that of `t`, Jacobian included, so MCMC in `t` needs no correction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import hyperu

from fabolas._types import Array


class Prior(Protocol):
    """A density over one real coordinate, evaluated and sampled in batches."""

    @property
    def support(self) -> tuple[float, float]: ...

    def log_density(self, t: Array) -> Array: ...

    def sample(self, rng: np.random.Generator, n: int) -> Array: ...


@dataclass(frozen=True)
class Uniform:
    """Constant on [low, high], impossible outside."""

    low: float
    high: float

    @property
    def support(self) -> tuple[float, float]:
        return self.low, self.high

    def log_density(self, t: Array) -> Array:
        inside = (t >= self.low) & (t <= self.high)
        return np.where(inside, -np.log(self.high - self.low), -np.inf)

    def sample(self, rng: np.random.Generator, n: int) -> Array:
        return rng.uniform(self.low, self.high, n)


@dataclass(frozen=True)
class Normal:
    """Gaussian in `t`; a lognormal prior on a positive parameter is Gaussian in its logarithm."""

    mean: float
    sd: float

    @property
    def support(self) -> tuple[float, float]:
        return -np.inf, np.inf

    def log_density(self, t: Array) -> Array:
        standardised = (t - self.mean) / self.sd
        density: Array = -0.5 * standardised**2 - np.log(self.sd) - 0.5 * np.log(2 * np.pi)
        return density

    def sample(self, rng: np.random.Generator, n: int) -> Array:
        return rng.normal(self.mean, self.sd, n)


@dataclass(frozen=True)
class LogHorseshoe:
    """The logarithm of |v|, where v has a horseshoe density: most mass near zero, a heavy tail.

    v ~ N(0, (scale * lam)^2) with lam ~ half-Cauchy(1). Its density is exp(z) E1(z) / (scale sqrt(2 pi^3))
    with z = v^2 / (2 scale^2), and exp(z) E1(z) = U(1, 1, z) without overflow (Carvalho, Polson, Scott 2010).
    """

    scale: float

    @property
    def support(self) -> tuple[float, float]:
        return -40.0, 40.0  # beyond it the mass is negligible, and v^2 overflows or underflows

    def log_density(self, t: Array) -> Array:
        v = np.exp(np.clip(t, *self.support))
        z = 0.5 * (v / self.scale) ** 2
        log_half_density = np.log(2.0 * hyperu(1.0, 1.0, z)) - np.log(self.scale * np.sqrt(2.0 * np.pi**3))
        density: Array = log_half_density + t  # the Jacobian dv/dt = v
        return np.where(np.abs(t) <= 40.0, density, -np.inf)

    def sample(self, rng: np.random.Generator, n: int) -> Array:
        local = np.abs(rng.standard_cauchy(n))
        return np.log(np.maximum(np.abs(rng.normal(0.0, 1.0, n)) * local * self.scale, np.exp(-39.0)))


def log_density(priors: tuple[Prior, ...], theta: Array) -> Array:
    """The log-density of independent priors: theta (K, p) -> (K,)."""
    total = np.zeros(theta.shape[0])
    for column, prior in enumerate(priors):
        total += prior.log_density(theta[:, column])
    return total


def sample(priors: tuple[Prior, ...], rng: np.random.Generator, n: int) -> Array:
    """n draws from independent priors: (n, p)."""
    return np.column_stack([prior.sample(rng, n) for prior in priors])
