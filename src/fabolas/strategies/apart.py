"""Two workers are not sent to the same place: a suggestion keeps a distance from those under way."""

import numpy as np

from fabolas._types import Array, BoolArray
from fabolas.space import Space

DISTANCE = 1e-3  # in the cube, along the coordinate in which two points differ most
_TRIES = 8  # at each distance


def apart(space: Space, point: Array, pending: Array, rng: np.random.Generator) -> Array:
    """The point, or one beside it if it lies where an evaluation is already under way.

    Models know that an evaluation under way leaves nothing to learn at its place, but late in a run there may be
    nothing to learn anywhere else. Only the configuration is moved, ever further until that helps; where it does
    not help, because the space is small and discrete, the point stays.

    The distance is that of whole points: one configuration at two fidelities is two evaluations, and each of them
    says something that the other does not, so both may be under way.

    Args:
        space: What the points are of.
        point: (d + f,).
        pending: (p, d + f) where evaluations are under way.
        rng: The source of randomness, used only if the point is moved.

    Returns:
        (d + f,)
    """
    if _far(point[None], pending)[0]:
        return point
    radius = 2.0 * DISTANCE
    while radius < 1.0:
        moved = np.repeat(point[None], _TRIES, axis=0)
        moved[:, : space.dim] += rng.uniform(-radius, radius, (_TRIES, space.dim))
        moved = space.snap(np.clip(moved, 0.0, 1.0))
        good = space.legal(moved) & _far(moved, pending)
        if good.any():
            return np.asarray(moved[int(np.argmax(good))])
        radius *= 2.0
    return point


def _far(points: Array, pending: Array) -> BoolArray:
    """(m,) Whether points (m, D) keep the distance from all of (p, D)."""
    if not len(pending):
        return np.ones(len(points), dtype=bool)
    return np.asarray(np.abs(points[:, None] - pending[None]).max(axis=2).min(axis=1) >= DISTANCE)
