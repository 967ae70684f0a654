"""Bayesian optimisation on all the data: expected improvement and entropy search, with the same GP and MCMC."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from fabolas._types import Array
from fabolas.acquisition.criteria import EntropyReduction
from fabolas.model_spec import ModelSpec
from fabolas.space import Space
from fabolas.strategies.acquire import (
    AcquisitionConfig,
    AcquisitionContext,
    Candidate,
    configuration_pool,
    maximize_improvement,
)
from fabolas.strategies.effort import OVERHEAD_SHARE
from fabolas.strategies.fabolas import InformationPerCost
from fabolas.strategies.model_based import full_domain
from fabolas.strategies.options import changed_options
from fabolas.trials import History, Suggestion


def n_initial_at_target(d: int) -> int:
    """The number of initial configurations if each is expensive: d + 1 give a slope in every direction."""
    return max(3, d + 1)


class EntropySearch(InformationPerCost):
    """The configuration with the most information about the optimum, whatever it costs (Klein et al. 2017, eq. 3).

    If no evaluation gives information any more, the configuration with the largest expected improvement is taken. Every
    trial is at the target, so the models are over x alone.

    Args:
        space: the search space; its fidelities are always at the target.
        n_initial: number of configurations of the initial design.
        overhead_share: share of the time for overhead.
        effort: a fixed effort for each suggestion, from 0 (least) to 1 (full), instead of `overhead_share`.
    """

    name = "es"

    def __init__(
        self,
        space: Space,
        *,
        n_initial: int | None = None,
        overhead_share: float = OVERHEAD_SHARE,
        effort: float | None = None,
    ) -> None:
        domain = replace(
            full_domain(space),
            snap=partial(_snap_to_target, space),
            draw_fidelities=partial(_draw_target, space.n_fidelities),
        )
        super().__init__(
            space,
            ModelSpec(),
            AcquisitionConfig(EntropyReduction(final_samples=4), divide_by_cost=False),
            domain,
            0,
            n_initial=n_initial_at_target(space.dim) if n_initial is None else n_initial,
            target_share=0.0,
            overhead_share=overhead_share,
            effort=effort,
        )
        self.options = changed_options(
            EntropySearch, n_initial=n_initial, overhead_share=overhead_share, effort=effort
        )

    def _draw_design(self, k: int, rng: np.random.Generator) -> Array:
        """k Sobol configurations at the target, (k, D)."""
        return self._domain.at_target(self.space.sobol(k, rng))


class ExpectedImprovement(EntropySearch):
    """The configuration with the largest expected improvement on the best measured (Klein et al. 2017, eq. 2).

    Arguments as for `EntropySearch`.
    """

    name = "ei"

    def _acquire(
        self,
        context: AcquisitionContext,
        history: History,
        pending: tuple[Suggestion, ...],
        at_target: bool,
        rng: np.random.Generator,
    ) -> tuple[Candidate, str]:
        candidate = maximize_improvement(context, configuration_pool(context, rng), rng, must_fit=False)
        assert candidate is not None, "the cheapest configuration is always allowed"
        return candidate, "improvement"


def _snap_to_target(space: Space, points: Array) -> Array:
    """The nearest points (m, D) at the target."""
    points = space.snap(points)
    points[:, space.dim :] = 1.0
    return points


def _draw_target(f: int, n: int, rng: np.random.Generator) -> Array:
    """The target, (n, f)."""
    return np.ones((n, f))
