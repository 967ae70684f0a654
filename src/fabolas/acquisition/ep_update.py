"""p_min after a hypothetical evaluation, from EP's p_min now and its derivatives, without running EP again.

An outcome of w standard deviations moves the representers' mean by b w and their covariance by -b b',
b = cov(f_R, y) / sd(y). Log p_min is expanded to second order in the mean and first order in the covariance (Hennig
and Schuler, JMLR 2012). If an evaluation removes nearly all variance, the expansion underestimates its gain by about
half.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from fabolas._types import Array
from fabolas.acquisition.expectation_propagation import EpPmin


def updated(p: EpPmin, b: Array, outcomes: Array) -> Array:
    """log p_min after each outcome of each evaluation, normalised.

    Args:
        p: p_min now.
        b: (M, R) cov(f_R, y) / sd(y).
        outcomes: (Q,) standard-normal values w.

    Returns:
        (Q, M, R)
    """
    if b.ndim != 2 or b.shape[1] != len(p.log_z):
        R = len(p.log_z)
        raise ValueError(f"b: expected shape (M, {R}) for {R} representers, got {b.shape}")
    w = outcomes[:, None, None]
    mean, second = b @ p.d_mean.T, _quadratic(p.d2_mean, b)
    log_z = p.log_p + w * mean + 0.5 * w**2 * second - _quadratic(p.d_covariance, b)
    return np.asarray(log_z - logsumexp(log_z, axis=-1, keepdims=True))


def expected_entropy(p: EpPmin, b: Array, outcomes: Array, weights: Array) -> tuple[Array, float]:
    """The expected entropy (M,) of p_min after each of M evaluations, and the entropy now, in nats.

    A row b = 0 gives exactly the entropy now.

    Args:
        p: p_min now.
        b: (M, R) cov(f_R, y) / sd(y).
        outcomes: (Q,) standard-normal values w.
        weights: (Q,) of the outcomes, summing to one.
    """
    if outcomes.ndim != 1 or outcomes.shape != weights.shape:
        raise ValueError(
            f"expected outcomes and weights of one shape (Q,), got {outcomes.shape} and {weights.shape}"
        )
    now = float(_entropy(p.log_p))
    return now + weights @ (_entropy(updated(p, b, outcomes)) - now), now


def _quadratic(forms: Array, b: Array, step: int = 256) -> Array:
    """b' form_r b for each row of b (M, R) and each form (R, R, R): (M, R)."""
    flat = forms.reshape(len(forms), -1).T
    out = np.empty(b.shape)
    for i in range(0, len(b), step):
        part = b[i : i + step]
        out[i : i + step] = (part[:, :, None] * part[:, None, :]).reshape(len(part), -1) @ flat
    return out


def _entropy(log_p: Array) -> Array:
    return np.asarray(-np.sum(np.exp(log_p) * log_p, axis=-1))
