"""What a decision returns: a point to evaluate next, and a batch of further points for the next suggestions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fabolas._types import Array


@dataclass(frozen=True)
class Batch:
    """Points decided on and not suggested yet, the best first."""

    points: Array  # (b, D)
    costs: Array  # (b,) predicted seconds

    def __len__(self) -> int:
        return len(self.points)

    @classmethod
    def empty(cls, D: int) -> Batch:
        """A batch without points."""
        return cls(np.empty((0, D)), np.empty(0))

    def without_first(self) -> Batch:
        """All points but the first."""
        return Batch(self.points[1:], self.costs[1:])

    def without(self, evaluated: frozenset[bytes]) -> Batch:
        """All points that are not in `evaluated`, see `point_key`."""
        new = [i for i, point in enumerate(self.points) if point_key(point) not in evaluated]
        return Batch(self.points[new], self.costs[new])


@dataclass(frozen=True)
class Candidate:
    """A point to evaluate next.

    Attributes:
        point: (D,).
        cost: Predicted seconds.
        origin: Which maximum it is: INFORMATION, IMPROVEMENT, or TARGET if a target evaluation was due.
        max_information: The most information of an allowed candidate, in nats; 0 if the point was chosen by expected
            improvement.
        batch: More points for the next suggestions, used if there is no time for a new decision.
    """

    point: Array
    cost: float
    origin: str
    max_information: float
    batch: Batch

    def followed_by(self, other: Candidate) -> Candidate:
        """This candidate; `other` and the batch of `other` become its batch."""
        points = np.vstack([other.point, other.batch.points])
        return replace(self, batch=Batch(points, np.append(other.cost, other.batch.costs)))


def point_key(point: Array) -> bytes:
    """A point (D,) in a form that can be looked up in a set; 0.0 and -0.0 are equal."""
    return bytes((point + 0.0).tobytes())
