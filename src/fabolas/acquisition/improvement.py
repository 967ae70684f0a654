"""The logarithm of expected improvement, which stays exact where the number itself underflows.

For minimisation: EI = E[max(best - f, 0)], f ~ N(mean, s^2), is s (phi(z) + z Phi(z)), z = (best - mean) / s.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from fabolas._types import Array
from fabolas.acquisition.truncated_normal import moments

_MIN_Z = -1e30  # below it log phi alone determines log EI
_TAIL_Z = -1.0  # below it the two terms of EI cancel


def log_expected_improvement(mean: Array, variance: Array, best: Array | float) -> Array:
    """log EI to full relative precision: -5e7 at z = -1e4, where EI itself underflows to zero.

    Without variance it is log(best - mean), and -inf where there is nothing to gain.

    Args:
        mean: (..., m).
        variance: (..., m), not negative.
        best: The value to improve on, broadcast against the others.

    Returns:
        (..., m).
    """
    z, s, ahead, known = _standardised(mean, variance, best)
    certain = np.log(ahead, out=np.full(ahead.shape, -np.inf), where=ahead > 0.0)
    spread = np.log(s, out=np.zeros(s.shape), where=s > 0.0)
    return np.where(known, certain, spread + _log_standard(z))


def _standardised(mean: Array, variance: Array, best: Array | float) -> tuple[Array, Array, Array, Array]:
    """z, s, best - mean and whether s is zero, all of the broadcast shape; z = 0 where s is zero."""
    ahead, variance = np.broadcast_arrays(np.asarray(best, dtype=float) - mean, variance)
    if np.any(variance < 0.0):
        raise ValueError(f"expected variances >= 0, got {np.min(variance):.3g}; clip rounding errors before")
    s = np.sqrt(variance)
    known = s == 0.0
    with np.errstate(over="ignore"):  # an infinite z means an EI of zero, or of best - mean
        z = np.divide(ahead, s, out=np.zeros(s.shape), where=~known)
    return z, s, ahead, known


def _log_standard(z: Array) -> Array:
    """log(phi(z) + z Phi(z)).

    In the tail it is phi(z) (1 - x / h) with x = -z and the hazard h = phi / Phi; h - x is known to full
    precision (see `truncated_normal`), so that log phi(z) + log((h - x) / h) has no cancellation.
    """
    body = np.maximum(z, _TAIL_Z)
    with np.errstate(over="ignore"):
        log_phi = -0.5 * (z**2 + np.log(2.0 * np.pi))
        plain = np.log(np.exp(-0.5 * (body**2 + np.log(2.0 * np.pi))) + body * ndtr(body))
    h, excess, _ = moments(np.clip(np.atleast_1d(z), _MIN_Z, _TAIL_Z))
    tail = log_phi + (np.log(excess) - np.log(h)).reshape(np.shape(z))
    return np.asarray(np.where(z < _TAIL_Z, tail, plain))
