"""Random search on all the data: the baseline that every other strategy has to beat."""

import numpy as np

from fabolas._types import Array, BoolArray
from fabolas.history import History, Incumbent, Suggestion
from fabolas.space import Space
from fabolas.strategies.base import Proposal

_BATCH = 64
_BATCHES = 1000


class Random:
    """Draws configurations uniformly from the cube and evaluates each at the target fidelity."""

    name = "random"

    def __init__(self, space: Space) -> None:
        self._space = space

    def suggest(
        self,
        history: History,
        pending: tuple[Suggestion, ...],
        rng: np.random.Generator,
        *,
        remaining: float | None = None,
    ) -> Proposal:
        # Rejection keeps the draw uniform over what the forbidden clauses leave.
        for _ in range(_BATCHES):
            points = np.ones((_BATCH, self._space.dim + self._space.n_fidelities))
            points[:, : self._space.dim] = rng.random((_BATCH, self._space.dim))
            points = self._space.snap(points)
            legal = points[self._space.legal(points)]
            if len(legal):
                return Proposal(legal[0], origin="random")
        raise RuntimeError(
            f"the forbidden clauses of the space allow none of {_BATCH * _BATCHES} random configurations; "
            "loosen them or narrow the ranges"
        )

    def incumbent(self, history: History) -> Incumbent | None:
        """The lowest loss observed at the target: a measurement, so its deviation is given as 0."""
        if not len(history):
            return None
        at_target: BoolArray = np.all(history.points[:, self._space.dim :] == 1.0, axis=1)
        losses = np.where(at_target & ~history.failed, history.losses, np.inf)
        best = int(np.argmin(losses))
        if not np.isfinite(losses[best]):
            return None
        configs = history.points[:, : self._space.dim]
        same = np.all(configs == configs[best], axis=1) & ~history.failed
        ids = tuple(history.trials[i].id for i in np.flatnonzero(same))
        return Incumbent(history.trials[best].config, float(losses[best]), 0.0, True, ids)

    def state(self) -> dict[str, Array]:
        return {}

    def restore(self, state: dict[str, Array]) -> None:
        if state:
            raise ValueError(f"random search carries nothing from trial to trial, got {', '.join(state)}")
