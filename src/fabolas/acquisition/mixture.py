"""Information about p_min when the hyperparameters are not known either.

Each of K hyperparameter samples has a p_min of its own and predicts an outcome N(m_k, s_k^2) of its own. What is
believed is their mixture: p(r) = 1/K sum_k p_k(r) now, and given an outcome y

    p(r | y) = sum_k w_k(y) p_k(r | y),  w_k(y) in proportion to N(y; m_k, s_k^2),

so an outcome also tells which samples to believe. The information is H[p] - E_y H[p(. | y)]. The mean of what each
sample expects to learn by itself (`fabolas.acquisition.entropy`) is nothing where every sample is certain, even if
they are certain of different things: as when some of them trust small subsets and others do not.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import ndtri

from fabolas._types import Array
from fabolas.acquisition.entropy import Draws, Influence, Representers, moved_labels
from fabolas.acquisition.ep import ep_pmin
from fabolas.acquisition.ep_update import conditioned
from fabolas.acquisition.pmin import entropy, frequencies

Information = Callable[[Array], Array]  # points (M, D) -> (M,), in nats

_FINE = 9  # quantiles of each sample's outcome that the mixture's are made of


def by_moments(representers: Representers, draws: Draws) -> Information:
    """Information by matching moments, 1/2 log var(y) - 1/2 sum_r p_r log var(y | r is lowest): to screen many."""
    K, S = draws.labels.shape
    R = draws.Z.shape[1]
    lowest_is = np.eye(R)[draws.labels]  # (K, S, R)
    counts = lowest_is.sum(axis=1)  # (K, R)
    count = counts.sum(axis=0)
    p = count / (K * S)
    most = float(entropy(p))

    def information(points: Array) -> Array:
        found = representers.influence(points)
        means, overall = centred(found)
        e = means[..., None] + found.sd[..., None] * (found.a @ draws.Z.T)  # (K, M, S)
        rest = found.sd**2 * np.maximum(
            1.0 - np.sum(found.a**2, axis=2), 0.0
        )  # (K, M) explained by no representer
        total = (e @ lowest_is).sum(axis=0)  # (M, R)
        squares = ((e * e) @ lowest_is + rest[..., None] * counts[:, None, :]).sum(axis=0)
        scatter = squares - total**2 / np.maximum(count, 1.0)
        # Two pseudo-observations of the unconditional variance: a rare label must not look certain.
        variance = (scatter / overall[:, None] + 2.0) / (np.maximum(count - 1.0, 0.0) + 2.0)
        return np.asarray(np.clip(-0.5 * np.log(np.maximum(variance, 1e-12)) @ p, 0.0, most))

    return information


def by_sampling(representers: Representers, draws: Draws, Q: int = 5) -> Information:
    """Information by counting joint samples, Q hypothetical outcomes an evaluation."""
    R = draws.Z.shape[1]
    labels = moved_labels(draws)

    def information(points: Array) -> Array:
        found = representers.influence(points)
        w, weights = _outcomes(found, Q)
        after = np.zeros((len(points), Q, R))
        for k in range(len(w)):
            for chunk, lowest in labels(found, k, w[k]):
                after[chunk] += weights[k, chunk, :, None] * frequencies(lowest, R)
        return _dropped(after)

    return information


def by_ep(representers: Representers, Q: int = 5) -> Information:
    """Information by expectation propagation: p_min and its derivatives once for every hyperparameter sample."""
    R = representers.mean.shape[1]
    covariance = representers.factor @ np.swapaxes(representers.factor, 1, 2)
    pmins = [ep_pmin(mean, cov) for mean, cov in zip(representers.mean, covariance, strict=True)]

    def information(points: Array) -> Array:
        found = representers.influence(points)
        w, weights = _outcomes(found, Q)
        after = np.zeros((len(points), Q, R))
        for k, pmin in enumerate(pmins):
            log_p, _ = conditioned(pmin, found.b[k], w[k].T)  # (Q, M, R)
            after += weights[k, :, :, None] * np.swapaxes(np.exp(log_p), 0, 1)
        return _dropped(after)

    return information


def centred(found: Influence) -> tuple[Array, Array]:
    """The samples' means of each outcome less their mean (K, M), and the mixture's variance (M,)."""
    means = found.mean - found.mean.mean(axis=0)
    return means, np.mean(found.sd**2 + means**2, axis=0)


def _outcomes(found: Influence, Q: int) -> tuple[Array, Array]:
    """Q equally likely outcomes of the mixture: as each sample sees them, and how much each is then believed.

    Returns:
        w (K, M, Q): (y_q - m_k) / s_k, where y_q is the median of the q-th of Q equally likely intervals: a mean
            might lie between two samples' outcomes, where nobody expects any.
        weights (K, M, Q): w_k(y_q), summing to one over the samples.
    """
    M = found.mean.shape[1]
    z = ndtri((np.arange(_FINE * Q) + 0.5) / (_FINE * Q))
    each = found.mean[..., None] + found.sd[..., None] * z  # (K, M, _FINE Q)
    together = np.sort(np.swapaxes(each, 0, 1).reshape(M, -1), axis=1)  # (M, K _FINE Q)
    y = together.reshape(M, Q, -1)[:, :, (_FINE * len(each)) // 2]
    w = (y - found.mean[..., None]) / found.sd[..., None]
    log_density = -0.5 * w**2 - np.log(found.sd)[..., None]
    density = np.exp(log_density - log_density.max(axis=0))
    return w, density / density.sum(axis=0)


def _dropped(after: Array) -> Array:
    """H[p] - E H[p(. | y)] from p(. | y_q) (M, Q, R) of equally likely outcomes, whose mean is p."""
    drop = entropy(after.mean(axis=1)) - entropy(after).mean(axis=1)
    return np.asarray(np.maximum(drop, 0.0))  # below it is rounding
