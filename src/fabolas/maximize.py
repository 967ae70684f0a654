"""Maximisers of a batched function over the unit cube: candidates with refinement, DIRECT, CMA-ES.

All have one signature. `value` maps points (m, D) to numbers (m,), as many at a time as there are; -inf marks
a point that may not be taken. `snap` maps points onto representable ones: only those are ever evaluated or
returned. None returns less than the best of its start, and none evaluates more points than it was allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fabolas._types import Array, BoolArray, IntArray

Value = Callable[[Array], Array]  # (m, D) -> (m,)
Snap = Callable[[Array], Array]  # (m, D) -> (m, D)

_POINT = 1e-3  # the width of the cube that counts as a point when a run of CMA-ES asks whether to end
_WORST = 1e100  # what stands for +inf where a minimiser computes with the numbers


@dataclass(frozen=True)
class Maximum:
    """The best point found, its value, and how many points were evaluated for it."""

    point: Array  # (D,)
    value: float
    evaluations: int

    def __post_init__(self) -> None:
        if self.point.ndim != 1 or np.isnan(self.value) or self.evaluations < 1:
            raise ValueError(
                f"expected a point (D,), a number and a positive count, got {self.point.shape}, {self.value} "
                f"and {self.evaluations}"
            )


class Maximizer(Protocol):
    """What `candidates`, `direct` and `cma` have in common."""

    def __call__(
        self, value: Value, start: Array, snap: Snap, rng: np.random.Generator, *, evaluations: int
    ) -> Maximum: ...


class _Search:
    """Evaluates snapped points, counts them and remembers the best: the first of equals."""

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
        self.count = 0
        self.point, self.best = start[0], -np.inf
        self.start, self.start_values = self.evaluate(start)

    def evaluate(self, points: Array) -> tuple[Array, Array]:
        """The points as they were evaluated, (m, D), and their values, (m,)."""
        points = self._snap(np.clip(points, 0.0, 1.0))
        values = self._value(points)
        assert values.shape == (len(points),), f"value: expected shape {(len(points),)}, got {values.shape}"
        assert not np.any(np.isnan(values)), f"value: {np.sum(np.isnan(values))} of {len(values)} are NaN"
        self.count += len(points)
        self.left -= len(points)
        i = int(np.argmax(values))
        if self.count == len(points) or values[i] > self.best:
            self.point, self.best = points[i].copy(), float(values[i])
        return points, values

    def result(self) -> Maximum:
        return Maximum(self.point, self.best, self.count)


def candidates(
    value: Value,
    start: Array,
    snap: Snap,
    rng: np.random.Generator,
    *,
    evaluations: int,
    rounds: int = 4,
    keep: int = 4,
    width: float = 0.2,
    shrink: float = 0.5,
    choices: Sequence[int] = (),
) -> Maximum:
    """Evaluate a candidate set in one call, then refine around the best few, one call a round.

    Half of a round's points move in all coordinates, half in a single one: a ridge along an axis is followed,
    and what is right already is left alone.

    Args:
        value: see the head of the file.
        start: (m, D) the candidates.
        snap: see the head of the file.
        rng: where the steps come from.
        evaluations: points in all; what is left after the start is shared by the rounds.
        rounds: of refinement.
        keep: how many of the best points each round starts from.
        width: largest standard deviation of a step in the first round; each point draws its share of it.
        shrink: by which the width is multiplied from round to round.
        choices: (D,) or shorter, the number of categories of a coordinate and 0 where it is a number. A step
            there is a category drawn anew.
    """
    search = _Search(value, snap, start, evaluations)
    points, values = search.start, search.start_values
    categorical = np.zeros(start.shape[1], dtype=bool)
    categorical[: len(choices)] = np.asarray(choices, dtype=int) > 0
    for i in range(rounds):
        n = search.left // (rounds - i)
        if n == 0:
            continue
        best = _best(points, values, keep)
        tried, gained = search.evaluate(_steps(points[best], n, width * shrink**i, categorical, rng))
        points, values = np.vstack([points[best], tried]), np.append(values[best], gained)
    return search.result()


def direct(value: Value, start: Array, snap: Snap, rng: np.random.Generator, *, evaluations: int) -> Maximum:
    """The start in one call, then DIRECT (Jones et al. 1993, locally biased), without chance."""
    from scipy.optimize import Bounds  # a fifth of a second to import, which only this maximiser needs
    from scipy.optimize import direct as minimise

    search = _Search(value, snap, start, evaluations)

    def loss(x: Array) -> float:
        if search.left == 0:  # DIRECT finishes its round of divisions before it looks at the count
            return _WORST
        return float(_losses(search.evaluate(x[None, :])[1])[0])

    if search.left > 0:
        cube = Bounds(np.zeros(start.shape[1]), np.ones(start.shape[1]))
        minimise(loss, cube, maxfun=search.left, maxiter=search.left, vol_tol=0.0)
    return search.result()


def cma(
    value: Value, start: Array, snap: Snap, rng: np.random.Generator, *, evaluations: int, sigma: float = 0.2
) -> Maximum:
    """The start in one call, then CMA-ES from its best point, a generation a call, and again from elsewhere.

    A run ends when its generation has shrunk to a point; the next begins at the best start far from where the
    earlier ones began and ended, or at random.

    Args:
        value: see the head of the file.
        start: (m, D).
        snap: see the head of the file.
        rng: gives CMA-ES its seeds.
        evaluations: points in all; the last, incomplete generation is not begun.
        sigma: standard deviation of the first generation of a run.
    """
    from cmaes import CMA  # most of a second to import

    search = _Search(value, snap, start, evaluations)
    bounds = np.tile([0.0, 1.0], (start.shape[1], 1))
    known = np.empty((0, start.shape[1]))
    enough = True
    while enough:
        origin = _elsewhere(search, known, sigma, rng)
        seed = int(rng.integers(2**31))
        optimizer = CMA(origin.copy(), sigma, bounds=bounds, seed=seed, n_max_resampling=20)
        size = optimizer.population_size
        spread = np.inf
        while (enough := search.left >= size) and spread > _POINT and not optimizer.should_stop():
            points = np.array([optimizer.ask() for _ in range(size)])
            losses = _losses(search.evaluate(points)[1])
            optimizer.tell(list(zip(points, losses.tolist(), strict=True)))
            spread = np.max(np.ptp(points, axis=0))
        known = np.vstack([known, origin, np.clip(optimizer.mean, 0.0, 1.0)])
    return search.result()


def _elsewhere(search: _Search, known: Array, radius: float, rng: np.random.Generator) -> Array:
    """The best point of the start that is further than the radius from all known ones, or a random point."""
    distance = np.linalg.norm(search.start[:, None, :] - known[None, :, :], axis=2)
    far = np.flatnonzero(np.min(distance, axis=1, initial=np.inf) > radius)
    if len(far) == 0:
        return np.asarray(rng.random(search.start[0].shape))
    return np.asarray(search.start[far[np.argmax(search.start_values[far])]])


def _losses(values: Array) -> Array:
    """Values to minimise, finite."""
    return np.clip(-values, -_WORST, _WORST)


def _best(points: Array, values: Array, keep: int) -> IntArray:
    """The indices of the `keep` best points that differ, best first."""
    order = np.argsort(-values, kind="stable")[: 16 * keep]
    _, first = np.unique(points[order], axis=0, return_index=True)
    return order[np.sort(first)[:keep]]


def _steps(parents: Array, n: int, width: float, categorical: BoolArray, rng: np.random.Generator) -> Array:
    """n points around the parents in turn: even ones move in all coordinates, odd ones in a single one."""
    D = parents.shape[1]
    base = parents[np.arange(n) % len(parents)]
    single = (np.arange(n) // len(parents)) % 2 == 1
    moves = ~single[:, None] | (np.arange(D) == rng.integers(D, size=n)[:, None])
    # A step in all coordinates keeps most categories: it would otherwise be a jump to anywhere.
    moves &= ~categorical | single[:, None] | (rng.random((n, D)) < 0.2)
    length = width * rng.random((n, 1))
    moved = np.where(categorical, rng.random((n, D)), base + length * rng.normal(size=(n, D)))
    return np.where(moves, moved, base)
