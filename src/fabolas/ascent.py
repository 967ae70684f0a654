"""Uphill on a batched function: L-BFGS whose gradients are finite differences, all of them in one call."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

from fabolas._types import Array

_STEP = 1e-4  # of the differences, in coordinates whose scale is about one
_IMPOSSIBLE = -1e10  # what stands for -inf where a gradient is to be computed


def climb(value: Callable[[Array], Array], start: Array, low: Array, high: Array, iterations: int) -> Array:
    """A point (p,) of higher value than the start, if there is one nearby.

    Args:
        value: Points (m, p) -> (m,); -inf where a point is impossible.
        start: (p,).
        low: (p,) lower bounds.
        high: (p,) upper bounds; a coordinate whose bounds are equal stays where it is.
        iterations: At most; twice as many gradients at most.
    """
    free = np.flatnonzero(low < high)
    if not len(free):
        return start

    def descent(t: Array) -> tuple[float, Array]:
        # Differences are taken towards the inside, so that none of their points is out of bounds.
        inward = np.where(t + _STEP > high[free], -_STEP, _STEP)
        points = np.repeat(start[None], len(free) + 1, axis=0)
        points[:, free] = np.vstack([t, t + np.diag(inward)])
        values = value(points)
        values = np.where(np.isfinite(values), values, _IMPOSSIBLE)
        return -float(values[0]), -(values[1:] - values[0]) / inward

    found = minimize(
        descent, np.clip(start, low, high)[free], jac=True, method="L-BFGS-B",
        bounds=list(zip(low[free], high[free], strict=True)),
        options={"maxiter": iterations, "maxfun": 2 * iterations, "maxls": 10},
    )  # fmt: skip
    top = start.copy()
    top[free] = found.x
    return top
