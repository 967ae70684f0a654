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

    The paper's ten, more where there are more than four dimensions; fewer where even the smallest sizes are so
    dear that they would cost more than `PRICE`, but enough for a slope in most directions.
    """
    wanted = max(10, 2 * space.dim + 2)
    if not space.fidelities:
        return min(wanted, space.dim + 2)
    affordable = int(PRICE / float(np.prod(_starts(space))))
    return max(min(wanted, affordable), min(space.dim + 2, 6))


def initial(space: Space, k: int, rng: np.random.Generator) -> Array:
    """k points (k, d + f): Sobol configurations, sizes from small to less small, cheapest first.

    Half of the points are at the smallest size, a quarter at twice that and so on; where that would cost more
    than `PRICE`, sizes end earlier. With several fidelities each has its levels in an order of its own, so that
    their effects can be told apart. Without fidelities all points are at the target.
    """
    x = space.spread(k, rng)
    if not space.n_fidelities:
        return x
    shares = _shares(space, k, rng)
    values = [
        np.clip(share * fidelity.high, fidelity.low, fidelity.high)
        for share, fidelity in zip(shares.T, space.fidelities.values(), strict=True)
    ]
    u = [
        [space.coordinate(name, round(v) if fidelity.integer else v) for v in column]
        for column, (name, fidelity) in zip(values, space.fidelities.items(), strict=True)
    ]
    return space.snap(np.concatenate([x, np.array(u).T], axis=1))


def _starts(space: Space) -> Array:
    """(f,) the smallest share of each fidelity's target; together they are `SMALLEST` where the user allows."""
    each = SMALLEST ** (1.0 / space.n_fidelities)
    return np.array([max(float(f.low / f.high), each) for f in space.fidelities.values()])


def _shares(space: Space, k: int, rng: np.random.Generator) -> Array:
    """Shares of the targets (k, f), their products ascending."""
    weights = 0.5 ** np.arange(len(LEVELS))
    edges = np.cumsum(weights) / weights.sum()
    multiples = np.array(LEVELS)[np.searchsorted(edges, (np.arange(k) + 0.5) / k)]  # (k,) ascending
    starts = _starts(space)
    columns = [multiples] + [rng.permutation(multiples) for _ in range(space.n_fidelities - 1)]
    shares = np.minimum(starts * np.column_stack(columns), 1.0)
    while shares.prod(axis=1).sum() > PRICE and (shares > starts).any():
        shares = np.maximum(shares / 1.25, starts)
    ascending: Array = shares[np.argsort(shares.prod(axis=1), kind="stable")]
    return ascending
