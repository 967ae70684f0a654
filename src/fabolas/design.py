"""The first trials: spread configurations on small subsets, cheapest first (Klein et al. 2017, section 3.3)."""

from __future__ import annotations

import numpy as np

from fabolas._types import Array
from fabolas.space import Space

SMALLEST = 1 / 256  # of the target, where the user allows less: of the data, not of log space
LEVELS = (1.0, 2.0, 4.0, 8.0)  # sizes of the design, in multiples of the smallest
PRICE = 0.2  # what the design is to cost at most, in full trainings, if cost grows linearly


def count(space: Space) -> int:
    """How many configurations to begin with.

    The paper's ten, more where there are more than four dimensions; fewer where even the smallest size is so
    dear that they would cost more than `PRICE`, but enough for a slope in every direction.
    """
    wanted = max(10, 2 * space.dim + 2)
    affordable = int(PRICE / max(_start(space, name) for name in space.fidelities)) if space.fidelities else 0
    return max(min(wanted, affordable), space.dim + 2)


def initial(space: Space, k: int, rng: np.random.Generator) -> Array:
    """k points (k, d + f): Sobol configurations, sizes from small to less small, in that order.

    Half of the points are at the smallest size, a quarter at twice that and so on; where that would cost more
    than `PRICE`, sizes end earlier. Without fidelities all points are at the target.
    """
    x = space.spread(k, rng)
    if not space.n_fidelities:
        return x
    u = np.column_stack([_levels(space, name, k) for name in space.fidelities])
    return space.snap(np.concatenate([x, u], axis=1))


def _start(space: Space, name: str) -> float:
    fidelity = space.fidelities[name]
    return max(float(fidelity.low / fidelity.high), SMALLEST)


def _levels(space: Space, name: str, k: int) -> Array:
    """Coordinates u (k,) of one fidelity, ascending."""
    fidelity, start = space.fidelities[name], _start(space, name)
    weights = 0.5 ** np.arange(len(LEVELS))
    edges = np.cumsum(weights) / weights.sum()
    level = np.searchsorted(edges, (np.arange(k) + 0.5) / k)
    sizes = np.minimum(start * np.array(LEVELS)[level], 1.0)
    top = float(sizes.max())
    while sizes.sum() > PRICE and top > start:
        top = max(top / 1.25, start)
        sizes = np.minimum(sizes, top)
    values = np.clip(sizes * fidelity.high, fidelity.low, fidelity.high)
    return np.array([space.coordinate(name, round(v) if fidelity.integer else v) for v in values])
