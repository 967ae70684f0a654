"""The first trials: spread configurations on small subsets, cheapest first (Klein et al. 2017, section 3.3)."""

from __future__ import annotations

import numpy as np

from fabolas._types import Array
from fabolas.space import Space

FRACTIONS = (1 / 64, 1 / 32, 1 / 16, 1 / 8)  # of the target; of the data, not of log space
PRICE = 0.5  # what the design may cost at most, in full trainings, if cost grows linearly


def count(dim: int) -> int:
    """How many configurations to begin with: the paper's ten, more where there are more than four dimensions."""
    return max(10, 2 * dim + 2)


def initial(space: Space, k: int, rng: np.random.Generator) -> Array:
    """k points (k, d + f): Sobol configurations, sizes from small to less small, in that order.

    Sizes are the paper's fractions of the target as far as the smallest size allows. Half of the points are at
    the smallest, a quarter at the next and so on; where even that would cost more than half of a full training,
    sizes end earlier. Without fidelities all points are at the target.
    """
    x = space.spread(k, rng)
    if not space.n_fidelities:
        return x
    u = np.column_stack([_levels(space, name, k) for name in space.fidelities])
    return space.snap(np.concatenate([x, u], axis=1))


def _levels(space: Space, name: str, k: int) -> Array:
    fidelity = space.fidelities[name]
    smallest = fidelity.low / fidelity.high
    sizes = np.maximum(_shares(k, FRACTIONS), smallest)
    top = float(sizes.max())
    while sizes.sum() > PRICE and top > smallest:
        top = max(top / 1.25, smallest)
        sizes = np.minimum(sizes, top)
    values = np.clip(sizes * fidelity.high, fidelity.low, fidelity.high)
    return np.array([space.coordinate(name, round(v) if fidelity.integer else v) for v in values])


def _shares(k: int, fractions: tuple[float, ...]) -> Array:
    """k sizes in ascending order, halves as many of each as of the one before, at least one."""
    weights = 0.5 ** np.arange(len(fractions))
    edges = np.cumsum(weights) / weights.sum()
    return np.array([fractions[int(np.searchsorted(edges, (i + 0.5) / k))] for i in range(k)])
