"""Random search on all the data: the baseline that every other strategy has to beat."""

import numpy as np

from fabolas._types import Array, BoolArray
from fabolas.space import Space
from fabolas.strategies.base import Proposal
from fabolas.trials import RANDOM, History, Incumbent, Suggestion

_DRAWS_PER_ROUND = 64
_MAX_ROUNDS = 1000


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
        at_target: bool = False,
    ) -> Proposal:
        return uniform_at_target(self._space, rng)

    def incumbent(self, history: History, *, verified_only: bool = False) -> Incumbent | None:
        return best_observed(self._space, history)

    def state(self) -> dict[str, Array]:
        return {}

    def restore(self, state: dict[str, Array]) -> None:
        if state:
            raise ValueError(f"random search has no state to restore, got {', '.join(state)}")


def uniform_at_target(space: Space, rng: np.random.Generator) -> Proposal:
    """A uniform configuration at the target fidelity."""
    return Proposal(np.concatenate([uniform(space, rng), np.ones(space.n_fidelities)]), origin=RANDOM)


def uniform(space: Space, rng: np.random.Generator) -> Array:
    """A configuration (d,), uniform over the legal part of the cube (by rejection)."""
    for _ in range(_MAX_ROUNDS):
        x = space.snap(rng.random((_DRAWS_PER_ROUND, space.dim)))
        legal: Array = x[space.is_legal(x)]
        if len(legal):
            return np.asarray(legal[0])
    raise RuntimeError(
        f"the forbidden clauses of the space allow none of {_DRAWS_PER_ROUND * _MAX_ROUNDS} random configurations; "
        "relax them or narrow the ranges"
    )


def best_observed(space: Space, history: History) -> Incumbent | None:
    """The lowest loss observed at the target. It is a measurement, so its standard deviation is given as 0."""
    if not len(history):
        return None
    at_target: BoolArray = space.is_at_target(history.points)
    losses = np.where(at_target & history.complete, history.losses, np.inf)
    best = int(np.argmin(losses))
    if not np.isfinite(losses[best]):
        return None
    configs = history.points[:, : space.dim]
    same = np.all(configs == configs[best], axis=1) & history.complete
    ids = tuple(history.trials[i].id for i in np.flatnonzero(same))
    return Incumbent(history.trials[best].config, float(losses[best]), 0.0, True, ids)
