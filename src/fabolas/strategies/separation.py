"""Keeps a suggestion at a distance from pending ones, so that two workers do not evaluate the same point."""

import numpy as np

from fabolas._types import Array, BoolArray
from fabolas.space import Space

MIN_DISTANCE = 1e-3  # in the cube, in the coordinate where two points differ most
_TRIES_PER_DISTANCE = 8


def separate_from_pending(space: Space, point: Array, pending: Array, rng: np.random.Generator) -> Array:
    """The point, or a point next to it if it coincides with a pending evaluation.

    To the models, a pending evaluation leaves little information at its point. Late in a search there may be little
    elsewhere too, so the same point can be chosen again. Only the configuration is moved, by larger and larger steps
    until it is far enough. In a small discrete space there may be no such configuration; then the point stays.

    The distance is that of whole points: the same configuration at two fidelities is two different evaluations.

    Args:
        space: the search space.
        point: (d + f,).
        pending: (p, d + f).
        rng: used only if the point is moved.

    Returns:
        (d + f,)
    """
    if _is_far(point[None], pending)[0]:
        return point
    radius = 2.0 * MIN_DISTANCE
    while radius < 1.0:
        moved = np.repeat(point[None], _TRIES_PER_DISTANCE, axis=0)
        moved[:, : space.dim] += rng.uniform(-radius, radius, (_TRIES_PER_DISTANCE, space.dim))
        moved = space.snap(np.clip(moved, 0.0, 1.0))
        good = space.is_legal(moved) & _is_far(moved, pending)
        if good.any():
            return np.asarray(moved[int(np.argmax(good))])
        radius *= 2.0
    return point


def _is_far(points: Array, pending: Array) -> BoolArray:
    """(m,) Whether points (m, D) keep the distance from all of (p, D)."""
    if not len(pending):
        return np.ones(len(points), dtype=bool)
    return np.asarray(np.abs(points[:, None] - pending[None]).max(axis=2).min(axis=1) >= MIN_DISTANCE)
