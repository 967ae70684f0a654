"""Optimisers over the unit cube: Sobol points, L-BFGS with batched differences, candidate search, DIRECT, CMA-ES.

All of them maximise a batched function: `value` maps points (m, D) to numbers (m,), all in one call. -inf marks a
point that must not be taken. The global maximisers have one signature, `Maximizer`. `snap` moves points to
representable ones; only snapped points are evaluated and returned. No maximiser returns less than the best of its
start, and none evaluates more points than it is allowed to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from fabolas._types import Array, BoolArray, IntArray

Value = Callable[[Array], Array]  # (m, D) -> (m,)
Snap = Callable[[Array], Array]  # (m, D) -> (m, D)

_DIFFERENCE = 1e-4  # step of the finite differences, in coordinates of scale one
_IMPOSSIBLE = -1e10  # replaces -inf where a gradient is computed
_CONVERGED_WIDTH = 1e-3  # a CMA-ES generation narrower than this has converged
_WORST = 1e100  # replaces +inf where a minimiser computes with the numbers


def sobol(n: int, dimension: int, rng: np.random.Generator) -> Array:
    """n uniform points in [0, 1)^dimension: a Sobol sequence, rotated at random on the torus.

    The rotation makes each point uniform. It costs microseconds, where new scrambling costs milliseconds.
    """
    rotated = _sobol_base2(max(n - 1, 0).bit_length(), dimension)[:n] + rng.random(dimension)
    return np.mod(rotated, 1.0)


@lru_cache(maxsize=64)
def _sobol_base2(exponent: int, dimension: int) -> Array:
    from scipy.stats import qmc  # slow to import

    points: Array = qmc.Sobol(dimension, scramble=True, rng=np.random.default_rng(0)).random_base2(exponent)
    points.flags.writeable = False
    return points


def lbfgs_maximize(value: Value, start: Array, low: Array, high: Array, iterations: int) -> Array:
    """Climb from the start to a nearby local maximum (p,) with L-BFGS; a gradient is one batched call.

    Args:
        value: Points (m, p) -> (m,); -inf where a point is impossible.
        start: (p,).
        low: (p,) lower bounds.
        high: (p,) upper bounds; a coordinate whose bounds are equal does not move.
        iterations: At most this many; at most twice as many gradients.
    """
    from scipy.optimize import minimize  # slow to import, and a search without a model does not use it

    free = np.flatnonzero(low < high)
    if not len(free):
        return start

    def negative_with_gradient(t: Array) -> tuple[float, Array]:
        # Take each difference towards the inside, so that no point leaves the bounds.
        inward = np.where(t + _DIFFERENCE > high[free], -_DIFFERENCE, _DIFFERENCE)
        points = np.repeat(start[None], len(free) + 1, axis=0)
        points[:, free] = np.vstack([t, t + np.diag(inward)])
        values = value(points)
        values = np.where(np.isfinite(values), values, _IMPOSSIBLE)
        return -float(values[0]), -(values[1:] - values[0]) / inward

    found = minimize(
        negative_with_gradient, np.clip(start, low, high)[free], jac=True, method="L-BFGS-B",
        bounds=list(zip(low[free], high[free], strict=True)),
        options={"maxiter": iterations, "maxfun": 2 * iterations, "maxls": 10},
    )  # fmt: skip
    top = start.copy()
    top[free] = found.x
    return top


@dataclass(frozen=True)
class Maximum:
    """The best point found, and its value."""

    point: Array  # (D,)
    value: float

    def __post_init__(self) -> None:
        if self.point.ndim != 1 or np.isnan(self.value):
            raise ValueError(f"expected a point (D,) and a number, got {self.point.shape} and {self.value}")


class Maximizer(Protocol):
    """The signature of `candidate_search`, `direct`, `cma_es` and `direct_and_cma_es`."""

    def __call__(
        self,
        value: Value,
        start: Array,
        snap: Snap,
        rng: np.random.Generator,
        *,
        evaluations: int,
        n_choices: Sequence[int] = (),
    ) -> Maximum:
        """Maximise from the points `start` (m, D).

        Args:
            value: See the head of the file.
            start: (m, D) evaluated first, in one call.
            snap: See the head of the file.
            rng: The source of randomness.
            evaluations: Points in all, those of the start included.
            n_choices: (D,) or shorter: the number of categories of a coordinate, 0 for a number.
        """
        ...


class _Search:
    """Evaluates snapped points and keeps the best one (the first one if several are equal).

    Attributes:
        left: How many more points may be evaluated.
        best: The best point so far.
        start: (m, D) the start, as it was evaluated.
        start_values: (m,) its values.
    """

    def __init__(self, value: Value, snap: Snap, start: Array, evaluations: int) -> None:
        if start.ndim != 2 or 0 in start.shape:
            raise ValueError(f"start: expected points (m, D), at least one, got shape {start.shape}")
        if evaluations < len(start):
            raise ValueError(
                f"evaluations: expected at least {len(start)}, one for each point of the start, "
                f"got {evaluations}"
            )
        self._value, self._snap = value, snap
        self.left = evaluations
        self.best: Maximum | None = None
        self.start, self.start_values = self.evaluate(start)

    def evaluate(self, points: Array) -> tuple[Array, Array]:
        """The points as they were evaluated, (m, D), and their values, (m,)."""
        points = self._snap(np.clip(points, 0.0, 1.0))
        values = self._value(points)
        assert values.shape == (len(points),), f"value: expected shape {(len(points),)}, got {values.shape}"
        assert not np.any(np.isnan(values)), f"value: {np.sum(np.isnan(values))} of {len(values)} are NaN"
        self.left -= len(points)
        i = int(np.argmax(values))
        if self.best is None or values[i] > self.best.value:
            self.best = Maximum(points[i].copy(), float(values[i]))
        return points, values

    def result(self) -> Maximum:
        assert self.best is not None, "the start was evaluated"
        return self.best


def candidate_search(
    value: Value,
    start: Array,
    snap: Snap,
    rng: np.random.Generator,
    *,
    evaluations: int,
    n_choices: Sequence[int] = (),
    rounds: int = 2,
    keep: int = 4,
    width: float = 0.2,
    shrink: float = 0.5,
) -> Maximum:
    """Evaluate the start in one call, then refine around the best few points, one call per round.

    Half of the points of a round move in all coordinates, half in a single one. A single move follows a ridge along
    an axis and keeps the coordinates that are right already.

    Args:
        value: See `Maximizer`.
        start: See `Maximizer`.
        snap: See `Maximizer`.
        rng: See `Maximizer`.
        evaluations: Points in all; the rounds share what the start leaves.
        n_choices: See `Maximizer`. A step in a categorical coordinate draws a category anew.
        rounds: Number of refinement rounds.
        keep: Number of best points that each round starts from.
        width: Largest standard deviation of a step in the first round; each point draws a fraction of it.
        shrink: Factor of the width from one round to the next.
    """
    search = _Search(value, snap, start, evaluations)
    points, values = search.start, search.start_values
    categorical = np.zeros(start.shape[1], dtype=bool)
    categorical[: len(n_choices)] = np.asarray(n_choices, dtype=int) > 0
    for i in range(rounds):
        n = search.left // (rounds - i)
        if n == 0:
            continue
        best = _best(points, values, keep)
        tried, gained = search.evaluate(_steps(points[best], n, width * shrink**i, categorical, rng))
        points, values = np.vstack([points[best], tried]), np.append(values[best], gained)
    return search.result()


def direct(
    value: Value,
    start: Array,
    snap: Snap,
    rng: np.random.Generator,
    *,
    evaluations: int,
    n_choices: Sequence[int] = (),
) -> Maximum:
    """Evaluate the start in one call, then run DIRECT (Jones et al. 1993, locally biased); deterministic."""
    from scipy.optimize import Bounds
    from scipy.optimize import direct as scipy_direct

    search = _Search(value, snap, start, evaluations)

    def loss(x: Array) -> float:
        if search.left == 0:  # DIRECT finishes its round of divisions before it checks maxfun
            return _WORST
        return float(_losses(search.evaluate(x[None, :])[1])[0])

    if search.left > 0:
        cube = Bounds(np.zeros(start.shape[1]), np.ones(start.shape[1]))
        scipy_direct(loss, cube, maxfun=search.left, maxiter=search.left, vol_tol=0.0)
    return search.result()


def cma_es(
    value: Value,
    start: Array,
    snap: Snap,
    rng: np.random.Generator,
    *,
    evaluations: int,
    n_choices: Sequence[int] = (),
    sigma: float = 0.2,
) -> Maximum:
    """Evaluate the start in one call, then run CMA-ES from its best point, with restarts elsewhere.

    A run ends when its generation has converged. The next run begins at the best start point that is far from where
    earlier runs began and ended, or at a random point. A generation is begun only if enough evaluations are left for
    all of it.

    Args:
        value: See `Maximizer`.
        start: See `Maximizer`.
        snap: See `Maximizer`.
        rng: See `Maximizer`; it seeds CMA-ES.
        evaluations: See `Maximizer`.
        n_choices: See `Maximizer`; not used.
        sigma: Standard deviation of the first generation of a run.
    """
    from cmaes import CMA  # slow to import

    search = _Search(value, snap, start, evaluations)
    bounds = np.tile([0.0, 1.0], (start.shape[1], 1))
    known = np.empty((0, start.shape[1]))
    enough = True
    while enough:
        origin = _far_start(search, known, sigma, rng)
        seed = int(rng.integers(2**31))
        optimizer = CMA(origin.copy(), sigma, bounds=bounds, seed=seed, n_max_resampling=20)
        size = optimizer.population_size
        width = np.inf
        while (enough := search.left >= size) and width > _CONVERGED_WIDTH and not optimizer.should_stop():
            points = np.array([optimizer.ask() for _ in range(size)])
            losses = _losses(search.evaluate(points)[1])
            optimizer.tell(list(zip(points, losses.tolist(), strict=True)))
            width = np.max(np.ptp(points, axis=0))
        known = np.vstack([known, origin, np.clip(optimizer.mean, 0.0, 1.0)])
    return search.result()


def direct_and_cma_es(
    value: Value,
    start: Array,
    snap: Snap,
    rng: np.random.Generator,
    *,
    evaluations: int,
    n_choices: Sequence[int] = (),
) -> Maximum:
    """DIRECT with half of the evaluations, then CMA-ES from its result (Klein et al. 2017, section 3.4)."""
    half = max(evaluations // 2, min(len(start), evaluations))
    found = direct(value, start, snap, rng, evaluations=half)
    again = np.vstack([found.point, start])
    if evaluations - half < len(again):
        return found
    best = cma_es(value, again, snap, rng, evaluations=evaluations - half)
    return best if best.value >= found.value else found


def _far_start(search: _Search, known: Array, radius: float, rng: np.random.Generator) -> Array:
    """The best point of the start that is further than the radius from all known points, or a random point."""
    distance = np.linalg.norm(search.start[:, None, :] - known[None, :, :], axis=2)
    far = np.flatnonzero(np.min(distance, axis=1, initial=np.inf) > radius)
    if len(far) == 0:
        return np.asarray(rng.random(search.start[0].shape))
    return np.asarray(search.start[far[np.argmax(search.start_values[far])]])


def _losses(values: Array) -> Array:
    """Values to minimise, finite."""
    return np.clip(-values, -_WORST, _WORST)


def _best(points: Array, values: Array, keep: int) -> IntArray:
    """The indices of the `keep` best different points, best first."""
    order = np.argsort(-values, kind="stable")[: 16 * keep]
    _, first = np.unique(points[order], axis=0, return_index=True)
    return order[np.sort(first)[:keep]]


def _steps(parents: Array, n: int, width: float, categorical: BoolArray, rng: np.random.Generator) -> Array:
    """n points around the parents in turn: first all coordinates move, then a single one, and so on."""
    D = parents.shape[1]
    base = parents[np.arange(n) % len(parents)]
    single = (np.arange(n) // len(parents)) % 2 == 1
    moves = ~single[:, None] | (np.arange(D) == rng.integers(D, size=n)[:, None])
    # A step in all coordinates keeps most categories; otherwise it would be a jump to anywhere.
    moves &= ~categorical | single[:, None] | (rng.random((n, D)) < 0.2)
    length = width * rng.random((n, 1))
    moved = np.where(categorical, rng.random((n, D)), base + length * rng.normal(size=(n, D)))
    return np.where(moves, moved, base)
