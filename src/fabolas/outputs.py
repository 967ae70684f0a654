"""What the models see instead of losses and seconds: warped, then standardised. The only place that does so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fabolas._types import Array

Warp = Literal["none", "log", "excess"]


@dataclass(frozen=True)
class Output:
    """A monotone map from measured values y to standardised targets t = (w(y) - centre) / scale.

    Warps: `none`, w = y; `log`, w = log y; `excess`, w = log(y - lowest + offset), which works for losses of any
    sign and treats a loss the same whatever constant is added to it or factor it is multiplied by.
    """

    warp: Warp
    centre: float
    scale: float
    shift: float = 0.0  # added to y before the logarithm

    @classmethod
    def fit(cls, y: Array, warp: Warp = "none") -> Output:
        """The map that gives y (n,) zero mean and unit spread. `log` needs positive values, else it is `none`."""
        y = np.asarray(y, dtype=float)
        shift = 0.0
        if warp == "log" and y.min() <= 0.0:
            warp = "none"
        if warp == "excess":
            spread = float(np.median(y) - y.min())
            if spread <= 0.0:
                warp = "none"
            else:
                shift = 0.1 * spread - float(y.min())
        warped = _warped(y, warp, shift)
        scale = float(warped.std())
        # A constant has no spread to standardise; below rounding error of its own size it is one.
        if not scale > 1e-12 * (1.0 + float(np.abs(warped).max())):
            scale = 1.0
        return cls(warp, float(warped.mean()), scale, shift)

    def forward(self, y: Array) -> Array:
        """y -> t, any shape."""
        return (_warped(np.asarray(y, dtype=float), self.warp, self.shift) - self.centre) / self.scale

    def location(self, t: Array) -> Array:
        """t -> y: the inverse map, hence the median of y when t is the median of a Gaussian."""
        w = self.centre + self.scale * np.asarray(t, dtype=float)
        return w if self.warp == "none" else np.exp(w) - self.shift

    def moments(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of y when t is Gaussian (lognormal moments under a logarithm)."""
        w, v = self.centre + self.scale * mean, self.scale**2 * variance
        if self.warp == "none":
            return w, np.sqrt(v)
        # A huge variance in log space has astronomical moments; beyond this they only mean "not known".
        v = np.minimum(v, 8.0)
        expected = np.exp(w + 0.5 * v)
        return expected - self.shift, expected * np.sqrt(np.expm1(v))


def _warped(y: Array, warp: Warp, shift: float) -> Array:
    if warp == "none":
        return y
    # A later value below what the map was fitted on must not break it: the logarithm is held at a tiny excess.
    return np.log(np.maximum(y + shift, 1e-12 * max(abs(shift), 1e-300)))
