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

_LEAST = 1e-12  # of a variance, in units of the outcome's


def by_moments(representers: Representers, draws: Draws) -> Information:
    """Information by matching moments, 1/2 log var(y) - 1/2 sum_r p_r log var(y | r is lowest): to screen many.

    A mixture of outcomes far apart is no Gaussian. But y tells no more of r than y and k together, which is what
    k tells, H[p] - 1/K sum_k H[p_k], and what y tells if k is known, the mean over the samples of their own.
    """
    K, S = draws.labels.shape
    lowest_is = np.eye(draws.Z.shape[1])[draws.labels]  # (K, S, R)
    counts = lowest_is.sum(axis=1)  # (K, R)
    count = counts.sum(axis=0)
    p = count / (K * S)
    most = float(entropy(p))
    by_sample = most - float(entropy(draws.pmin).mean())

    def information(points: Array) -> Array:
        found = representers.influence(points)
        means, overall = centred(found)
        w = found.a @ draws.Z.T  # (K, M, S) what representers explain of outcomes, standardised
        sums, squares = w @ lowest_is, (w * w) @ lowest_is  # (K, M, R)
        explained = np.sum(found.a**2, axis=2)  # (K, M)
        own = _within(squares - sums**2 / np.maximum(counts, 1.0)[:, None], explained, counts[:, None], 1)
        own += np.maximum(1.0 - explained, 0.0)[..., None]
        of_each = -0.5 * np.einsum("kmr,kr->m", np.log(np.maximum(own, _LEAST)), counts / S) / K

        sd, shift = found.sd[..., None], means[..., None]
        rest = (found.sd**2 * np.maximum(1.0 - explained, 0.0)).T @ counts / np.maximum(count, 1.0)  # (M, R)
        totals = np.sum(sd * sums + shift * counts[:, None], axis=0)
        squares = np.sum(sd**2 * squares + 2 * sd * shift * sums + shift**2 * counts[:, None], axis=0)
        variance = np.mean(found.sd**2 * explained + means**2, axis=0)  # (M,)
        within = _within(squares - totals**2 / np.maximum(count, 1.0), variance, count, K) + rest
        together = -0.5 * np.log(np.maximum(within / overall[:, None], _LEAST)) @ p
        return np.asarray(np.clip(np.minimum(together, by_sample + of_each), 0.0, most))

    return information


def _within(scatter: Array, unconditional: Array, count: Array, repeats: int) -> Array:
    """(..., R) variances given each label, from the scatter of so many samples of it.

    Two pseudo-observations of the unconditional variance: a rare label must not look certain. Hyperparameter
    samples have their random numbers in common, so what is seen in all of them was seen once.
    """
    return np.asarray(
        (scatter + 2.0 * repeats * unconditional[..., None])
        / (np.maximum(count - repeats, 0.0) + 2.0 * repeats)
    )


def by_sampling(representers: Representers, draws: Draws, Q: int = 5) -> Information:
    """Information by counting joint samples, at least Q hypothetical outcomes an evaluation."""
    R = draws.Z.shape[1]
    labels = moved_labels(draws)

    def information(points: Array) -> Array:
        found = representers.influence(points)
        w, log_density = _outcomes(found, Q)
        weights = _believed(log_density)
        after = np.zeros((*weights.shape[1:], R))
        for k in range(len(w)):
            for chunk, lowest in labels(found, k, w[k]):
                after[chunk] += weights[k, chunk, :, None] * frequencies(lowest, R)
        return _dropped(after)

    return information


def by_ep(representers: Representers, Q: int = 5) -> Information:
    """Information by expectation propagation: p_min and its derivatives once for every hyperparameter sample."""
    covariance = representers.factor @ np.swapaxes(representers.factor, 1, 2)
    pmins = [ep_pmin(mean, cov) for mean, cov in zip(representers.mean, covariance, strict=True)]

    def information(points: Array) -> Array:
        found = representers.influence(points)
        w, log_density = _outcomes(found, Q)
        each = [conditioned(pmin, b, outcomes.T) for pmin, b, outcomes in zip(pmins, found.b, w, strict=True)]
        # By EP's own joint distribution of outcome and label the outcome is not quite a Gaussian.
        weights = _believed(log_density + np.array([log_ratio.T for _, log_ratio in each]))
        after = sum(
            weight[..., None] * np.swapaxes(np.exp(log_p), 0, 1)
            for weight, (log_p, _) in zip(weights, each, strict=True)
        )
        return _dropped(np.asarray(after))

    return information


def centred(found: Influence) -> tuple[Array, Array]:
    """The samples' means of each outcome less their mean (K, M), and the mixture's variance (M,)."""
    means = found.mean - found.mean.mean(axis=0)
    return means, np.mean(found.sd**2 + means**2, axis=0)


def _outcomes(found: Influence, Q: int) -> tuple[Array, Array]:
    """T equally likely outcomes of the mixture, T the first multiple of K that is Q or more.

    Each sample has as many of them, y = m_k + s_k z with the z spread over all samples: quantiles of the normal
    distribution, scaled to have its variance. The samples' own order is random.

    Returns:
        w (K, M, T): (y - m_k) / s_k, as each sample sees the outcomes.
        log_density (K, M, T): log N(y; m_k, s_k^2), up to a constant.
    """
    K = len(found.mean)
    T = K * -(-Q // K)
    z = ndtri((np.arange(T) + 0.5) / T)
    z /= max(float(np.sqrt(np.mean(z**2))), 1e-12)  # a single one is the mean
    source = np.arange(T) % K
    y = (found.mean[source] + found.sd[source] * z[:, None]).T  # (M, T)
    w = (y - found.mean[..., None]) / found.sd[..., None]
    return w, -0.5 * w**2 - np.log(found.sd)[..., None]


def _believed(log_density: Array) -> Array:
    """w_k(y) (K, M, T), summing to one over the samples."""
    density = np.exp(log_density - log_density.max(axis=0))
    return np.asarray(density / density.sum(axis=0))


def _dropped(after: Array) -> Array:
    """H[p] - E H[p(. | y)] from p(. | y_q) (M, Q, R) of equally likely outcomes, whose mean is p."""
    drop = entropy(after.mean(axis=1)) - entropy(after).mean(axis=1)
    return np.asarray(np.maximum(drop, 0.0))  # below it is rounding
