"""The normal distribution cut off at zero, exact to rounding however far out the cut is.

A variable g ~ N(z, 1) given g > 0 has the cumulants below; they are also the derivatives of log Phi(z).
With x = -z large, the textbook expressions subtract numbers that agree in all digits. Laplace's fraction

    phi(x) / Phi(-x) = x + 1 / (x + 2 / (x + 3 / (x + 4 / (x + ...))))

has the tails u = 1 / (x + c), c = 2 / (x + d), d = 3 / (x + e), e = 4 / (x + ...). Because u x = 1 - u c,
c x = 2 - c d and so on, every cumulant is a product of differences of tails. These differences lose no digits, because
the tails differ much from each other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import erfcx

from fabolas._types import Array

_FAR = 6.0  # beyond it the continued fraction has converged to rounding within _DEPTH levels
_DEPTH = 40


class Truncated(NamedTuple):
    """Hazard and moments of g ~ N(z, 1) given g > 0, each with the shape of z.

    With h = d/dz log Phi(z): mean = z + h, variance = 1 + h', skewness and excess kurtosis from h'' and h'''.
    """

    hazard: Array  # h = phi(z) / Phi(z)
    mean: Array  # z + h
    variance: Array  # 1 - h (z + h)
    skewness: Array
    kurtosis: Array  # in excess of the normal distribution's


def moments(z: Array) -> tuple[Array, Array, Array]:
    """Hazard, mean and variance alone: what the inner loop of expectation propagation needs."""
    z = np.asarray(z, dtype=float)
    near = np.maximum(z, -_FAR)
    h = np.sqrt(2.0 / np.pi) / erfcx(near * -np.sqrt(0.5))
    mean = near + h
    variance = 1.0 - h * mean
    far = z < -_FAR
    if np.any(far):
        h[far], mean[far], variance[far] = _far(-z[far])[:3]
    return h, mean, variance


def truncated(z: Array) -> Truncated:
    """The cumulants of g ~ N(z, 1) given g > 0; valid from z = -1e30 to any z."""
    h, mean, variance = moments(z)
    beta = h * mean  # -h'
    slope = h * variance - beta * mean  # d beta / dz
    bend = -slope * (mean + h) - 2.0 * beta * variance  # d^2 beta / dz^2
    skewness, kurtosis = -slope / variance**1.5, -bend / variance**2
    far = z < -_FAR
    if np.any(far):
        skewness[far], kurtosis[far] = _far(-z[far])[3:]
    return Truncated(h, mean, variance, skewness, kurtosis)


def _far(x: Array) -> Truncated:
    """The cumulants at z = -x, x >= 6, from the tails of the continued fraction."""
    e = 4.0 / _continue(x, 5)
    d = 3.0 / (x + e)
    c = 2.0 / (x + d)
    u = 1.0 / (x + c)
    h = x + u
    variance = u * (c - u)
    skewness = h * u**2 * c * (d - c) / variance**1.5
    kurtosis = h * u**2 * c * (d * (e - c) - 3.0 * u * (d - c)) / variance**2
    return Truncated(h, u, variance, skewness, kurtosis)


def _continue(x: Array, level: int) -> Array:
    """x + level / (x + (level + 1) / (x + ...)), evaluated from the innermost fraction outwards."""
    value = x
    for k in range(level + _DEPTH, level - 1, -1):
        value = x + k / value
    return value
