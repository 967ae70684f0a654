"""Bayesian optimisation on all the data: expected improvement and entropy search, with the same GP and MCMC."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from fabolas._types import Array
from fabolas.model_spec import ModelSpec
from fabolas.space import Space
from fabolas.strategies.acquire import (
    AcquisitionConfig,
    AcquisitionContext,
    maximize_improvement,
    maximize_information,
)
from fabolas.strategies.candidate import Candidate
from fabolas.strategies.effort import OVERHEAD_SHARE
from fabolas.strategies.fabolas import ChooseNext, ModelBasedSearch, target_or_information
from fabolas.strategies.models import full_domain
from fabolas.strategies.options import changed_options


def n_initial_at_target(d: int) -> int:
    """The number of initial configurations if each is expensive: d + 1 give a slope in every direction."""
    return max(3, d + 1)


class FullDataSearch(ModelBasedSearch):
    """Every trial is at the target, so the GPs are over x alone. `choose_next` chooses the next evaluation."""

    def __init__(
        self,
        space: Space,
        choose_next: ChooseNext,
        n_initial: int | None,
        overhead_share: float,
        effort: float | None,
    ) -> None:
        domain = replace(
            full_domain(space),
            snap=partial(_snap_to_target, space),
            draw_fidelities=partial(_draw_target, space.n_fidelities),
        )
        super().__init__(
            space,
            ModelSpec(),
            AcquisitionConfig(final_samples=4, divide_by_cost=False),
            domain,
            partial(_draw_design, space),
            n_initial=n_initial_at_target(space.dim) if n_initial is None else n_initial,
            n_model_fidelities=0,
            choose_next=choose_next,
            overhead_share=overhead_share,
            effort=effort,
        )
        self.options = changed_options(
            type(self), n_initial=n_initial, overhead_share=overhead_share, effort=effort
        )


class EntropySearch(FullDataSearch):
    """The configuration with the most information about the optimum, whatever it costs (Klein et al. 2017, eq. 3).

    If no evaluation gives information any more, the configuration with the largest expected improvement is taken.

    Args:
        space: The search space; its fidelities are always at the target.
        n_initial: Number of configurations of the initial design.
        overhead_share: Share of the time for overhead.
        effort: A fixed effort for each suggestion, from 0 (least) to 1 (full), instead of `overhead_share`.
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
        super().__init__(space, target_or_information, n_initial, overhead_share, effort)


class ExpectedImprovement(FullDataSearch):
    """The configuration with the largest expected improvement on the best measured (Klein et al. 2017, eq. 2).

    Arguments as for `EntropySearch`.
    """

    name = "ei"

    def __init__(
        self,
        space: Space,
        *,
        n_initial: int | None = None,
        overhead_share: float = OVERHEAD_SHARE,
        effort: float | None = None,
    ) -> None:
        super().__init__(space, _largest_improvement, n_initial, overhead_share, effort)


def _largest_improvement(
    context: AcquisitionContext, pool: Array, target_is_due: bool, rng: np.random.Generator
) -> Candidate:
    """Eq. 2, whether or not a target evaluation is due: every evaluation is at the target.

    If no configuration can be better, because all are known exactly, it is the one with the most information.
    """
    context = context.allowing_some(context.domain.at_target(pool))
    return maximize_improvement(context, pool, rng) or maximize_information(context, pool, rng)


def _draw_design(space: Space, k: int, rng: np.random.Generator) -> Array:
    """k Sobol configurations at the target, (k, D)."""
    return space.at_target(space.sobol(k, rng))


def _snap_to_target(space: Space, points: Array) -> Array:
    """The nearest points (m, D) at the target."""
    points = space.snap(points)
    points[:, space.dim :] = 1.0
    return points


def _draw_target(f: int, n: int, rng: np.random.Generator) -> Array:
    """The target, (n, f)."""
    return np.ones((n, f))
