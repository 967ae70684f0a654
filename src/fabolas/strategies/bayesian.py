"""Bayesian optimisation on all the data: expected improvement and entropy search with the same GP and MCMC."""

from __future__ import annotations

from typing import Literal

import numpy as np

from fabolas import effort as efforts
from fabolas._types import Array
from fabolas.acquisition.entropy import Form
from fabolas.history import History, Suggestion
from fabolas.outputs import Warp
from fabolas.space import Space
from fabolas.strategies.decide import Choice, Position, Rules, most_improving, pool
from fabolas.strategies.model_based import ModelBased, work_of
from fabolas.surrogate import Spec


def few(d: int) -> int:
    """How many configurations to begin with where each is dear: with d + 1 there is a slope in every direction."""
    return max(3, d + 1)


class OnAllData(ModelBased):
    """Every trial is at the target, so the models are over x alone.

    Args:
        space: what to search; its fidelities are always at the target.
        rules: how information is measured and its maximum sought.
        warp: of the loss, `log`, `root`, `excess` or `none`.
        initial: number of configurations of the initial design.
        share: of the time, for thinking.
        effort: fixes the effort of each suggestion, from 0 (least) to 1 (full), instead.
    """

    def __init__(
        self,
        space: Space,
        rules: Rules,
        *,
        warp: Warp,
        initial: int | None,
        share: float,
        effort: float | None,
    ) -> None:
        spec = Spec(space.choices, 0, work_of(space), warp=warp)
        initial = few(space.dim) if initial is None else initial
        super().__init__(space, spec, rules, initial=initial, share=share, effort=effort)

    def draw_design(self, k: int, rng: np.random.Generator) -> Array:
        """k spread configurations at the target, (k, D)."""
        return self.region.at_target(self.space.spread(k, rng))

    def draw_fidelities(self, n: int, rng: np.random.Generator) -> Array:
        """The target, n times."""
        return np.ones((n, self.space.n_fidelities))

    def snap(self, points: Array) -> Array:
        """Points (m, D) to the nearest ones at the target."""
        return self.region.at_target(self.space.snap(points)[:, : self.space.dim])


class ExpectedImprovement(OnAllData):
    """The configuration that is expected to improve most on the best of those measured (Klein et al. 2017, eq. 2).

    Arguments as for `OnAllData`.
    """

    name = "ei"

    def __init__(
        self,
        space: Space,
        *,
        warp: Warp = "log",
        initial: int | None = None,
        share: float = efforts.SHARE,
        effort: float | None = None,
    ) -> None:
        super().__init__(space, Rules(), warp=warp, initial=initial, share=share, effort=effort)

    def decide(
        self,
        position: Position,
        history: History,
        pending: tuple[Suggestion, ...],
        rng: np.random.Generator,
    ) -> tuple[Choice, str]:
        """The most improving configuration."""
        choice = most_improving(position, pool(position, rng), rng, check=False)
        assert choice is not None, "the cheapest configuration is always allowed"
        return choice, "improvement"


class EntropySearch(OnAllData):
    """The configuration of most information about where the optimum is, whatever it costs (eq. 3).

    Arguments as for `OnAllData` and for `Fabolas`, which in a space without fidelities divides by the predicted
    time in addition.
    """

    name = "es"

    def __init__(
        self,
        space: Space,
        *,
        information: Form = "gain",
        pmin: Literal["sampling", "ep"] = "sampling",
        representers: Literal["thompson", "improvement"] = "thompson",
        maximizer: Literal["candidates", "direct", "cma"] = "candidates",
        warp: Warp = "log",
        initial: int | None = None,
        share: float = efforts.SHARE,
        effort: float | None = None,
    ) -> None:
        rules = Rules(information, pmin, representers, maximizer, price="none")
        super().__init__(space, rules, warp=warp, initial=initial, share=share, effort=effort)
