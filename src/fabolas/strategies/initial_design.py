"""The initial design: Sobol configurations on small subsets, cheapest first (Klein et al. 2017, section 3.3)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fabolas._types import Array
from fabolas.space import Space
from fabolas.strategies.options import check_whole_number
from fabolas.trials import History, Suggestion

SMALLEST_FRACTION = 1 / 256  # of the target, unless the user's smallest size is larger
SIZE_MULTIPLES = (1.0, 2.0, 4.0, 8.0)  # sizes of the design, in multiples of the smallest
MAX_COST = 0.2  # of the design, in full trainings, if cost grows linearly with the size


DrawDesign = Callable[[int, np.random.Generator], Array]
"""(number of configurations, rng) -> points (k, D) in the order of their evaluation."""


class InitialDesign:
    """Hands out the points of a design one after another. They are drawn once, for the first suggestion.

    Args:
        draw: Draws the design.
        n_initial: Number of configurations.

    Attributes:
        points: (k, D); None before the first suggestion. The state of the strategy keeps them.
    """

    def __init__(self, draw: DrawDesign, n_initial: int) -> None:
        check_whole_number("n_initial", n_initial, 1, "a number of initial configurations, 1 or more")
        self._draw, self._n_initial = draw, n_initial
        self.points: Array | None = None

    def next(
        self, history: History, pending: tuple[Suggestion, ...], at_target: bool, rng: np.random.Generator
    ) -> Array | None:
        """The next point (D,); None once the design is used up and a trial is complete.

        If the design is used up before a trial is complete, further points are drawn one by one. The design ends early
        if a trial is complete and the next evaluation should be at the target.
        """
        if self.points is None:
            self.points = self._draw(self._n_initial, rng)
        n_begun, any_complete = len(history) + len(pending), bool(history.complete.any())
        if n_begun < len(self.points) and not (at_target and any_complete):
            return np.asarray(self.points[n_begun])
        return None if any_complete else np.asarray(self._draw(1, rng)[0])


def n_initial_points(space: Space) -> int:
    """The number of configurations of the design.

    Ten as in the paper, or 2 d + 2 if that is more. Fewer if this many trainings at the smallest size together cost
    more than `MAX_COST`, but at least min(d + 2, 6). Without fidelities it is d + 2.
    """
    wanted = max(10, 2 * space.dim + 2)
    if not space.fidelities:
        return min(wanted, space.dim + 2)
    affordable = int(MAX_COST / float(np.prod(_smallest_fractions(space))))
    return max(min(wanted, affordable), min(space.dim + 2, 6))


def sobol_on_subsets(space: Space, k: int, rng: np.random.Generator) -> Array:
    """k points (k, d + f): Sobol configurations with increasing sizes, cheapest first.

    Half of the points are at the smallest size, a quarter at twice that, and so on. If that would cost more than
    `MAX_COST`, the sizes are reduced. With several fidelities each has its levels in its own order, so that their
    effects can be separated. Without fidelities all points are at the target.
    """
    x = space.sobol(k, rng)
    if not space.n_fidelities:
        return x
    fractions = _fractions(space, k, rng)
    values = [
        np.clip(fraction * fidelity.high, fidelity.low, fidelity.high)
        for fraction, fidelity in zip(fractions.T, space.fidelities.values(), strict=True)
    ]
    u = [
        [space.fidelity_coordinate(name, round(v) if fidelity.integer else v) for v in column]
        for column, (name, fidelity) in zip(values, space.fidelities.items(), strict=True)
    ]
    return space.snap(np.concatenate([x, np.array(u).T], axis=1))


def _smallest_fractions(space: Space) -> Array:
    """(f,) The smallest fraction of each fidelity's target; their product is `SMALLEST_FRACTION` if allowed."""
    each = SMALLEST_FRACTION ** (1.0 / space.n_fidelities)
    return np.array([max(float(f.low / f.high), each) for f in space.fidelities.values()])


def _fractions(space: Space, k: int, rng: np.random.Generator) -> Array:
    """Fractions of the targets (k, f), their products ascending."""
    weights = 0.5 ** np.arange(len(SIZE_MULTIPLES))
    edges = np.cumsum(weights) / weights.sum()
    multiples = np.array(SIZE_MULTIPLES)[np.searchsorted(edges, (np.arange(k) + 0.5) / k)]  # (k,) ascending
    smallest = _smallest_fractions(space)
    columns = [multiples] + [rng.permutation(multiples) for _ in range(space.n_fidelities - 1)]
    fractions = np.minimum(smallest * np.column_stack(columns), 1.0)
    while fractions.prod(axis=1).sum() > MAX_COST and (fractions > smallest).any():
        fractions = np.maximum(fractions / 1.25, smallest)
    ascending: Array = fractions[np.argsort(fractions.prod(axis=1), kind="stable")]
    return ascending
