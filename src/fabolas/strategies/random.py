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
        point = np.concatenate([uniform(self._space, rng), np.ones(self._space.n_fidelities)])
        return Proposal(point, origin="random")

    def incumbent(self, history: History) -> Incumbent | None:
        return best_observed(self._space, history)

    def state(self) -> dict[str, Array]:
        return {}

    def restore(self, state: dict[str, Array]) -> None:
        if state:
            raise ValueError(f"random search carries nothing from trial to trial, got {', '.join(state)}")


def uniform(space: Space, rng: np.random.Generator) -> Array:
    """A configuration (d,), uniform over what the forbidden clauses leave of the cube."""
    for _ in range(_BATCHES):
        x = space.snap(rng.random((_BATCH, space.dim)))
        legal: Array = x[space.legal(x)]  # rejection keeps the draw uniform
        if len(legal):
            return np.asarray(legal[0])
    raise RuntimeError(
        f"the forbidden clauses of the space allow none of {_BATCH * _BATCHES} random configurations; "
        "loosen them or narrow the ranges"
    )


def best_observed(space: Space, history: History) -> Incumbent | None:
    """The lowest loss observed at the target: a measurement, so its deviation is given as 0. None before one."""
    if not len(history):
        return None
    at_target: BoolArray = np.all(history.points[:, space.dim :] == 1.0, axis=1)
    losses = np.where(at_target & history.complete, history.losses, np.inf)
    best = int(np.argmin(losses))
    if not np.isfinite(losses[best]):
        return None
    configs = history.points[:, : space.dim]
    same = np.all(configs == configs[best], axis=1) & history.complete
    ids = tuple(history.trials[i].id for i in np.flatnonzero(same))
    return Incumbent(history.trials[best].config, float(losses[best]), 0.0, True, ids)
