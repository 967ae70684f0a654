"""What the models see instead of losses and seconds: warped, then standardised. The only place that does so."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from fabolas._types import Array

Warp = Literal["none", "log", "root", "excess"]


HUGE = 1e100  # what a loss is held within, so that its square is still a number
VERY_BAD = 3.0  # deviations above the worst loss that a map was fitted to
# How far above three quarters of the losses is far, in multiples of how far the lowest is below them. Trials gather
# at the optimum, so that may be little; a logarithm knows that a factor of e is nothing to speak of.
DIVERGED = {"log": (5.0, 1.0), "excess": (5.0, 1.0), "root": (20.0, 0.0), "none": (20.0, 0.0)}


@dataclass(frozen=True)
class Output:
    """A monotone map from measured values y to standardised targets t = (w(y) - centre) / scale.

    Warps: `none`, w = y; `root`, w = sqrt(y); `log`, w = log(y + shift) with shift zero unless a loss is exactly
    zero; `excess`, w = log(y - lowest + offset), which treats a loss the same whatever constant is added to it or
    factor it is multiplied by.
    """

    warp: Warp
    centre: float
    scale: float
    shift: float = 0.0  # added to y before the logarithm
    floor: float = 0.0  # what the logarithm's argument is held above
    ceiling: float = np.inf  # what t is held below

    @classmethod
    def fit(cls, y: Array, warp: Warp = "none") -> Output:
        """The map that gives y (n,) zero mean and unit spread.

        A logarithm is of ratios: with losses below zero there are none, and `log` is `none`, as `root` is. A loss
        of exactly zero, an error rate on few rows, counts as half the smallest one above it.
        """
        y = _held(y)
        shift = 0.0
        if warp in ("log", "root") and (y.min() < 0.0 or y.max() <= 0.0):
            warp = "none"
        elif warp == "log" and y.min() == 0.0:
            shift = 0.5 * float(y[y > 0.0].min())
        elif warp == "excess":
            spread = float(np.median(y) - y.min())
            warp, shift = ("excess", 0.1 * spread - float(y.min())) if spread > 0.0 else ("none", 0.0)
        # A later value below all that were seen must not send the logarithm to minus infinity.
        floor = 0.1 * float(y.min() + shift) if warp in ("log", "excess") else 0.0
        warped = _warped(y, warp, shift, floor)
        # A diverged training is very bad and no more. It must not leave all others without a spread,
        lowest, most = float(warped.min()), float(np.quantile(warped, 0.75))
        times, least = DIVERGED[warp]
        most += times * max(most - lowest, least) or np.inf
        warped = np.minimum(warped, most)
        centre, scale = float(warped.mean()), float(warped.std())
        # (a constant has none, and is one if that is below the rounding error of its own size)
        rounding = 1e-12 * float(np.abs(warped).max())
        if not scale > rounding:
            scale = max(1.0, rounding)
        # nor, if it comes later, speak for its whole neighbourhood.
        ceiling = (min(most, float(warped.max()) + VERY_BAD * scale) - centre) / scale
        return cls(warp, centre, scale, shift, floor, ceiling)

    def in_units_of(self, other: Output) -> Output:
        """The same map with the centre and the scale of another one of the same warp; else as it is."""
        if (self.warp, self.shift) != (other.warp, other.shift):
            return self
        ceiling = (self.centre + self.scale * self.ceiling - other.centre) / other.scale
        return replace(self, centre=other.centre, scale=other.scale, ceiling=ceiling)

    def forward(self, y: Array) -> Array:
        """y -> t, any shape."""
        t = (_warped(_held(y), self.warp, self.shift, self.floor) - self.centre) / self.scale
        return np.asarray(np.minimum(t, self.ceiling))

    def location(self, t: Array) -> Array:
        """t -> y: the inverse map, hence the median of y when t is the median of a Gaussian."""
        w = self.centre + self.scale * np.asarray(t, dtype=float)
        if self.warp == "root":
            return np.maximum(w, 0.0) ** 2
        return w if self.warp == "none" else np.exp(np.minimum(w, _LARGEST)) - self.shift

    def moments(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of y when t is Gaussian, hence y lognormal under a logarithm."""
        w, v = self.centre + self.scale * mean, self.scale**2 * variance
        if self.warp == "none":
            return w, np.sqrt(v)
        if self.warp == "root":
            return w**2 + v, np.sqrt(2.0 * v**2 + 4.0 * w**2 * v)
        # Moments of a lognormal with a large variance are made by its far tail; beyond one they only mean
        # "not known", and that is said by a deviation larger than the mean.
        v = np.minimum(v, 1.0)
        expected = np.exp(np.minimum(w + 0.5 * v, _LARGEST))
        return expected - self.shift, expected * np.sqrt(np.expm1(v))


_LARGEST = float(np.log(HUGE)) + 10.0


def _held(y: Array) -> Array:
    held: Array = np.clip(np.asarray(y, dtype=float), -HUGE, HUGE)
    return held


def _warped(y: Array, warp: Warp, shift: float, floor: float) -> Array:
    if warp == "none":
        return y
    if warp == "root":
        return np.sqrt(np.maximum(y, 0.0))
    logarithm: Array = np.log(np.maximum(y + shift, max(floor, 1e-300)))
    return logarithm
