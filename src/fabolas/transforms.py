"""Transform and standardisation of the loss: what the GP sees instead of measured losses.

A transform is fitted to the losses seen so far by one of three functions, which a `ModelSpec` names:
`log_transform`, `log_excess_transform` or `identity_transform`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fabolas._types import Array
from fabolas.plain_values import LARGEST_LOSS

# A later loss counts for at most this many standard deviations above the worst seen before.
MAX_ABOVE_WORST = 3.0
# A loss is an outlier if it is further above the upper quartile than this many times the distance from the upper
# quartile down to the lowest loss. Trials gather near the optimum, so that distance may be small.
OUTLIER_RANGE = 20.0
# The same for logarithms of losses.
LOG_OUTLIER_RANGE = 5.0
# For logarithms the distance counts as at least this much: a factor of e.
LOG_OUTLIER_MIN = 1.0

_LARGEST_LOG = float(np.log(LARGEST_LOSS)) + 10.0


@dataclass(frozen=True)
class TargetTransform:
    """A monotone map from a loss y to a standardised target t = (w(y) - centre) / scale.

    w(y) = log(y + shift) if `logarithmic`, else y.

    Attributes:
        logarithmic: Whether w is a logarithm.
        centre: Mean of w over the fitted losses.
        scale: Standard deviation of w over them.
        shift: Added to y before the logarithm.
        floor: Lower limit of the logarithm's argument.
        ceiling: Upper limit of t.
    """

    logarithmic: bool
    centre: float
    scale: float
    shift: float = 0.0
    floor: float = 0.0
    ceiling: float = np.inf

    def in_units_of(self, other: TargetTransform) -> TargetTransform:
        """This transform with the centre and scale of another one; unchanged if only one of them is logarithmic."""
        if self.logarithmic != other.logarithmic:
            return self
        ceiling = (self.centre + self.scale * self.ceiling - other.centre) / other.scale
        return replace(self, centre=other.centre, scale=other.scale, ceiling=ceiling)

    def forward(self, y: Array) -> Array:
        """y -> t, any shape."""
        w = _transformed(_clipped(y), self.logarithmic, self.shift, self.floor)
        return np.asarray(np.minimum((w - self.centre) / self.scale, self.ceiling))

    def inverse(self, t: Array) -> Array:
        """t -> y. If t is the median of a Gaussian, y is the median of the loss."""
        w = self.centre + self.scale * np.asarray(t, dtype=float)
        return np.exp(np.minimum(w, _LARGEST_LOG)) - self.shift if self.logarithmic else w

    def moments(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of y if t is Gaussian; y is then lognormal under a logarithm."""
        w, v = self.centre + self.scale * mean, self.scale**2 * variance
        if not self.logarithmic:
            return w, np.sqrt(v)
        # The far tail determines the moments of a lognormal with a large variance. Above a variance of one they say
        # only "not known", which a standard deviation larger than the mean says as well.
        v = np.minimum(v, 1.0)
        expected = np.exp(np.minimum(w + 0.5 * v, _LARGEST_LOG))
        return expected - self.shift, expected * np.sqrt(np.expm1(v))


FitTransform = Callable[[Array], TargetTransform]  # losses (n,) -> the transform fitted to them


def identity_transform(y: Array) -> TargetTransform:
    """Standardisation alone."""
    return _fit(_clipped(y), logarithmic=False, shift=0.0)


def log_transform(y: Array) -> TargetTransform:
    """log y: for losses with the lower limit zero, such as error rates.

    A loss of exactly zero (an error rate on few rows) counts as half the smallest positive one. With negative losses
    there is no logarithm, and the transform is the identity.
    """
    y = _clipped(y)
    if y.min() < 0.0 or y.max() <= 0.0:
        return identity_transform(y)
    return _fit(y, logarithmic=True, shift=0.5 * float(y[y > 0.0].min()) if y.min() == 0.0 else 0.0)


def log_excess_transform(y: Array) -> TargetTransform:
    """log(y - lowest + offset): for losses without a known lower limit.

    It does not depend on the unit of the loss, nor on a constant added to it.
    """
    y = _clipped(y)
    spread = float(np.median(y) - y.min())
    if not spread > 0.0:
        return identity_transform(y)
    return _fit(y, logarithmic=True, shift=0.1 * spread - float(y.min()))


def _fit(y: Array, *, logarithmic: bool, shift: float) -> TargetTransform:
    # A later loss below all seen so far must not send the logarithm to minus infinity.
    floor = 0.1 * float(y.min() + shift) if logarithmic else 0.0
    w = _transformed(y, logarithmic, shift, floor)
    # Limit outliers such as diverged trainings, so that they do not determine the scale.
    lowest, upper = float(w.min()), float(np.quantile(w, 0.75))
    times, least = (LOG_OUTLIER_RANGE, LOG_OUTLIER_MIN) if logarithmic else (OUTLIER_RANGE, 0.0)
    distance = max(upper - lowest, least)
    upper = upper + times * distance if distance > 0.0 else np.inf
    w = np.minimum(w, upper)
    centre, scale = float(w.mean()), float(w.std())
    rounding = 1e-12 * float(np.abs(w).max())
    if not scale > rounding:  # constant losses
        scale = max(1.0, rounding)
    ceiling = (min(upper, float(w.max()) + MAX_ABOVE_WORST * scale) - centre) / scale
    return TargetTransform(logarithmic, centre, scale, shift, floor, ceiling)


def _clipped(y: Array) -> Array:
    clipped: Array = np.clip(np.asarray(y, dtype=float), -LARGEST_LOSS, LARGEST_LOSS)
    return clipped


def _transformed(y: Array, logarithmic: bool, shift: float, floor: float) -> Array:
    if not logarithmic:
        return y
    logarithm: Array = np.log(np.maximum(y + shift, max(floor, 1e-300)))
    return logarithm
