"""Evenly spread numbers, cheap enough to be drawn anew for every decision."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from fabolas._types import Array


def spread(n: int, dimension: int, rng: np.random.Generator) -> Array:
    """(n, dimension) uniform numbers in [0, 1): a Sobol sequence under a random rotation of the torus.

    The rotation makes each point uniform and costs microseconds, where scrambling anew costs milliseconds.
    """
    rotated = _sobol(max(n - 1, 0).bit_length(), dimension)[:n] + rng.random(dimension)
    return np.mod(rotated, 1.0)


@lru_cache(maxsize=64)
def _sobol(exponent: int, dimension: int) -> Array:
    from scipy.stats import qmc  # slow to import, and needed here only

    points: Array = qmc.Sobol(dimension, scramble=True, rng=np.random.default_rng(0)).random_base2(exponent)
    points.flags.writeable = False
    return points
