"""p_min after a hypothetical evaluation, from EP's p_min now and its derivatives, without running EP again.

An outcome of w standard deviations at a point moves the representers' mean by b w and their covariance by
-b b', b = cov(f_R, y) / sd(y). Two ways to follow it at the same price:

- `taylor`, Hennig and Schuler (JMLR 2012): log p_min to second order in the mean, first in the covariance.
  For evaluations that teach little; of one that removes nearly all variance it sees about half the gain.
- `bayes`: EP's approximation says how w is distributed if representer r is the lowest, N(s_r, t_r) with
  s_r = b . d_mean[r] and t_r = 1 - b' W_r b; Bayes' rule turns that into p_min given w. The same as `taylor`
  to second order in b, but a joint distribution of w and the lowest representer for any b: p_min after
  averages to p_min now, and the gain, a mutual information, is never negative.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.special import logsumexp

from fabolas._types import Array
from fabolas.acquisition.ep import EpPmin

Update = Literal["bayes", "taylor"]

_NARROWEST = 1e-8  # least variance of an outcome given who is lowest; below it is rounding


def updated(pmin: EpPmin, shift: Array, reduction: Array) -> Array:
    """log p_min, normalised, after the mean moves by `shift` and the covariance by -reduction reduction'.

    Second order in the mean, first in the covariance: for changes small against the representers' deviations.

    Args:
        pmin: what p_min is now.
        shift: (M, R).
        reduction: (M, R).

    Returns:
        (M, R).
    """
    _check(pmin, shift=shift, reduction=reduction)
    move = shift @ pmin.d_mean.T + 0.5 * _quadratic(pmin.d2_mean, shift)
    return _normalised(pmin.log_z + move - _quadratic(pmin.d_covariance, reduction))


def conditioned(pmin: EpPmin, b: Array, outcomes: Array) -> tuple[Array, Array]:
    """log p_min given each outcome w by Bayes' rule, and how likely w is relative to a standard normal one.

    Args:
        pmin: what p_min is now.
        b: (M, R) cov(f_R, y) / sd(y).
        outcomes: (Q,) values w.

    Returns:
        log p_min (Q, M, R), normalised, and the log-density of w (Q, M) minus that of the standard normal.
    """
    _check(pmin, b=b)
    w = outcomes[:, None, None]
    s = b @ pmin.d_mean.T
    t = np.clip(1.0 + 2.0 * _quadratic(pmin.d_covariance, b) - s**2, _NARROWEST, 1.0)
    log_joint = pmin.log_p - 0.5 * np.log(t) - 0.5 * (w - s) ** 2 / t + 0.5 * w**2
    log_ratio = logsumexp(log_joint, axis=-1)
    return log_joint - log_ratio[..., None], log_ratio


def expected_entropy_ep(
    pmin: EpPmin, b: Array, outcomes: Array, weights: Array, update: Update = "bayes"
) -> tuple[Array, float]:
    """The entropy of p_min expected after each of M evaluations, and the entropy now, in nats.

    A row b = 0 gives exactly the entropy now.

    Args:
        pmin: what p_min is now.
        b: (M, R) cov(f_R, y) / sd(y).
        outcomes: (Q,) standard-normal values w.
        weights: (Q,) theirs, summing to one.
        update: see the head of the file.
    """
    _check(pmin, b=b)
    if outcomes.ndim != 1 or outcomes.shape != weights.shape:
        raise ValueError(
            f"expected outcomes and weights of one shape (Q,), got {outcomes.shape} and {weights.shape}"
        )
    now = float(_entropy(pmin.log_p))
    if update == "bayes":
        log_p, log_ratio = conditioned(pmin, b, outcomes)
        information = np.sum(np.exp(log_p) * (log_p - pmin.log_p), axis=-1)  # (Q, M) Kullback-Leibler
        gain = weights @ (np.exp(log_ratio) * information)
        return now - np.where(np.any(b != 0.0, axis=1), gain, 0.0), now
    if update == "taylor":
        w = outcomes[:, None, None]
        mean, second = b @ pmin.d_mean.T, _quadratic(pmin.d2_mean, b)
        log_z = pmin.log_p + w * mean + 0.5 * w**2 * second - _quadratic(pmin.d_covariance, b)
        change = _entropy(_normalised(log_z)) - _entropy(_normalised(pmin.log_p))
        return now + weights @ change, now
    raise ValueError(f"update: expected 'bayes' or 'taylor', got {update!r}")


def _check(pmin: EpPmin, **changes: Array) -> None:
    R = len(pmin.log_z)
    for name, change in changes.items():
        if change.ndim != 2 or change.shape[1] != R:
            raise ValueError(f"{name}: expected shape (M, {R}) for {R} representers, got {change.shape}")


def _quadratic(forms: Array, b: Array, step: int = 256) -> Array:
    """b' form_r b for each row of b (M, R) and each form (R, R, R): (M, R)."""
    flat = forms.reshape(len(forms), -1).T
    out = np.empty(b.shape)
    for i in range(0, len(b), step):
        part = b[i : i + step]
        out[i : i + step] = (part[:, :, None] * part[:, None, :]).reshape(len(part), -1) @ flat
    return out


def _normalised(log_z: Array) -> Array:
    return np.asarray(log_z - logsumexp(log_z, axis=-1, keepdims=True))


def _entropy(log_p: Array) -> Array:
    return np.asarray(-np.sum(np.exp(log_p) * log_p, axis=-1))
