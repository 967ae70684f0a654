"""The loss at the target as the user sees it: a mean within the possible range, and an honest standard deviation.

The GPs model transformed and standardised losses. In the user's units, a wide posterior has moments that no error rate
can have: a mean above 1, for example. Before the target was measured, all curves may still bend. The rules
(docs/decisions/stated-loss.md):

- A posterior is limited to the losses that are possible, `possible_losses`: its moments are those of the truncated
  distribution.
- The measured losses are standardised, so their variance is one. If the GP predicts with a larger variance, it is less
  certain than the spread of the measured losses. For the answer, its moments are then replaced by `prior_moments`,
  which use only the range of the losses. For other points the mean is kept, and the standard deviation is at least
  that of `prior_moments`. Where a loss may pass through zero, the discrepancy counts here as well, see
  `may_become_negative`.
- A loss of zero stands for all losses that are too small to be measured, see `resolution`.
- Two variances are added to that of the GP: the discrepancy (curves may bend near the target) and the nugget (what
  belongs to one configuration), see `Surrogate.unmodelled_variance`.
"""

from __future__ import annotations

import numpy as np

from fabolas._types import Array, BoolArray
from fabolas.surrogate import Surrogate
from fabolas.transforms import TargetTransform

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(96)
_TAIL = 8.0  # standard deviations; what lies beyond has a probability of 1e-15


def stated_loss(
    surrogate: Surrogate, point: Array, losses: Array, verified: bool
) -> tuple[float, float, bool]:
    """Mean and standard deviation of the loss at a point (1, D), and whether the models know too little of it.

    Args:
        surrogate: The fitted models.
        point: (1, D) at the target.
        losses: (n,) all measured losses.
        verified: Whether the loss was measured at the point; then `prior_moments` are never used.
    """
    if verified and len(losses) > 1 and losses.min() == losses.max():  # nothing to model: all trials agree
        return float(losses[0]), 0.0, False
    mean, variance = surrogate.predict_loss(point)
    stated = variance + surrogate.unmodelled_variance(point)
    negative = may_become_negative(surrogate, losses)
    targets = surrogate.transform.forward(losses)
    known = knows_more_than_data(mean, stated if negative else variance, targets)
    if not (verified or known[0]):
        return *prior_moments(losses, negative=negative), True
    (loss,), (std,) = truncated_moments(surrogate.transform, mean, stated, possible_losses(losses))
    return float(loss), max(float(std), resolution(losses)), False


def stated_losses(surrogate: Surrogate, points: Array, losses: Array) -> tuple[Array, Array]:
    """Mean and standard deviation (m,) of the loss at any points (m, D), given all measured losses (n,).

    Where the models know too little, the mean is still that of the models, so that points can be compared. The standard
    deviation is then at least that of `prior_moments`.
    """
    mean, variance = surrogate.predict_loss(points)
    stated = variance + surrogate.unmodelled_variance(points)
    negative = may_become_negative(surrogate, losses)
    targets = surrogate.transform.forward(losses)
    known = knows_more_than_data(mean, stated if negative else variance, targets)
    loss, std = truncated_moments(surrogate.transform, mean, stated, possible_losses(losses))
    least = np.where(known, resolution(losses), prior_moments(losses, negative=negative)[1])
    return loss, np.maximum(std, least)


def possible_losses(losses: Array) -> tuple[float, float]:
    """The range that a loss can have, judged by the measured losses (n,).

    If all measured losses are in [0, 1], they are taken for rates, so that all losses are in [0, 1]. The same holds for
    [-1, 0], a score that is maximised. Otherwise no loss is above the worst measured one, and no loss is negative if no
    measured one is.
    """
    lowest, highest = float(losses.min()), float(losses.max())
    if lowest >= 0.0:
        return 0.0, 1.0 if highest <= 1.0 else highest
    if lowest >= -1.0 and highest <= 0.0:
        return -1.0, 0.0
    return -np.inf, highest


def may_become_negative(surrogate: Surrogate, losses: Array) -> bool:
    """Whether zero need not be the lowest loss, although none of the measured losses (n,) is negative.

    The logarithm of a loss that passes through zero falls ever faster, and the discrepancy shows that. That of a rate
    at chance level does so too, but rates cannot be negative.
    """
    limits = possible_losses(losses)
    return limits[0] == 0.0 and limits[1] > 1.0 and surrogate.transform.logarithmic and surrogate.curves_bend


def resolution(losses: Array) -> float:
    """The least standard deviation of a loss: half of the smallest step above the lowest possible one, if that was met.

    A loss of exactly zero (no errors on the rows of a validation set) says only that the loss is below the smallest one
    that can be measured. That is at most the smallest positive one of the measured losses (n,).
    """
    lowest, _ = possible_losses(losses)
    above = losses[losses > lowest]
    return 0.5 * float(above.min() - lowest) if losses.min() == lowest and len(above) else 0.0


def truncated_moments(
    transform: TargetTransform, mean: Array, variance: Array, limits: tuple[float, float]
) -> tuple[Array, Array]:
    """Mean and standard deviation (m,) of the loss, if the standardised loss is Gaussian and the loss has limits.

    Args:
        transform: From losses to standardised losses.
        mean: (m,) of the standardised loss.
        variance: (m,)
        limits: The lowest and the highest loss that is possible.
    """
    std = np.sqrt(np.maximum(variance, 1e-300))[:, None]
    low, high = (_standardised(transform, limit) for limit in limits)
    # Gauss-Legendre quadrature over the part of the Gaussian between the limits, in standard deviations. A mean
    # beyond a limit counts as the limit: the posterior and the limits contradict each other.
    centre = np.clip(mean, low, high)[:, None]
    # Under a logarithm the integrand of the second moment has its peak 2 scale std above the mean: extend the range.
    start = np.maximum((low - centre) / std, -_TAIL)
    width = np.minimum((high - centre) / std, _TAIL + 2.0 * transform.scale * std) - start
    z = start + 0.5 * width * (_NODES + 1.0)  # (m, q)
    weights = _WEIGHTS * np.exp(-0.5 * z**2)
    weights = weights / weights.sum(axis=1, keepdims=True)
    values = transform.inverse(centre + std * z)
    expected = np.sum(weights * values, axis=1)
    return expected, np.sqrt(np.sum(weights * (values - expected[:, None]) ** 2, axis=1))


def prior_moments(losses: Array, *, negative: bool = False) -> tuple[float, float]:
    """Mean and standard deviation of a loss about which only the range of the measured losses (n,) is known.

    The distribution is uniform from the lowest possible loss to the upper quartile of the measured ones, because a
    recommended configuration is not among the worst. If there is no lowest possible loss, the range goes as far below
    the lowest measured loss as the quartile is above it. The configuration's own loss on a subset does not count: where
    small subsets mislead, it is far below the loss at the target.

    Args:
        losses: (n,)
        negative: Whether a loss may be negative although none of the measured ones is.
    """
    lowest, quartile = float(losses.min()), float(np.quantile(losses, 0.75))
    low, _ = possible_losses(losses)
    if negative or not np.isfinite(low):
        low = lowest - ((quartile - lowest) or abs(lowest) or 1.0)
    return 0.5 * (low + quartile), (quartile - low) / float(np.sqrt(12.0))


def knows_more_than_data(mean: Array, variance: Array, targets: Array) -> BoolArray:
    """(m,) Whether a prediction is more certain than the spread of the measured losses, and not above all of them.

    Args:
        mean: (m,) of the standardised loss.
        variance: (m,); the measured losses have a variance of one.
        targets: (n,) the standardised measured losses.
    """
    return np.asarray((variance < 1.0) & (mean <= targets.max()))


def _standardised(transform: TargetTransform, loss: float) -> float:
    """The standardised loss, without the ceiling and the floor of `TargetTransform.forward`."""
    if not transform.logarithmic:
        return (loss - transform.centre) / transform.scale
    shifted = loss + transform.shift
    return (float(np.log(shifted)) - transform.centre) / transform.scale if shifted > 0.0 else -np.inf
