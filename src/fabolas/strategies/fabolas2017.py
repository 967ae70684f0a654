"""FABOLAS as published (Klein et al., AISTATS 2017), assembled from the parts of `fabolas`.

    section 3.1   phi_f(s) = (1, (1 - s)^2) for the loss, phi_c(s) = (1, s) for log-cost, on the relative size s
    section 3.2   eq. 7 as printed: expected divergence of p_min from uniform, per predicted cost plus overhead
    section 3.3   ten random configurations on subsets of 1/64, 1/32, 1/16 and 1/8
    section 3.4   the priors; emcee; p_min by expectation propagation; DIRECT and CMA-ES
    Algorithm 1   the incumbent is the evaluated configuration with the lowest predicted loss at s = 1

The paper leaves some things open, and we chose: the sizes of the approximations (`EFFORT`); emcee starts from walkers
near the mode; candidates are screened before DIRECT and CMA-ES; the divergence from uniform is taken over the
representers, without the correction for their density; failed and pending trials count as in `fabolas`.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from fabolas._types import Array
from fabolas.acquisition.entropy import ep_information
from fabolas.acquisition.representers import improvement_representers
from fabolas.gp.kernels import paper_cost_basis, paper_loss_basis, uniform_length_prior
from fabolas.model_spec import ModelSpec
from fabolas.optimize import direct_and_cma_es
from fabolas.space import Space
from fabolas.strategies.acquire import (
    AcquisitionConfig,
    configuration_pool,
    maximize_information,
    maximize_target_improvement,
)
from fabolas.strategies.base import Proposal
from fabolas.strategies.effort import Effort
from fabolas.strategies.initial_design import InitialDesign
from fabolas.strategies.models import Models, ModelStrategy, full_domain
from fabolas.strategies.options import changed_options
from fabolas.strategies.random import uniform
from fabolas.transforms import identity_transform
from fabolas.trials import DESIGN, History, Suggestion

INITIAL_FRACTIONS = (1 / 64, 1 / 32, 1 / 16, 1 / 8)  # section 3.3

MODEL = ModelSpec(
    loss_basis=paper_loss_basis,
    cost_basis=paper_cost_basis,
    transform=identity_transform,
    loss_deviations=(),
    cost_deviations=(),
    shared_trend=False,
    cost_terms=(),
    noise_by_size=False,
    length_prior=uniform_length_prior,
    discrepancy=0.0,
    nugget_fraction=0.0,
)
ACQUISITION = AcquisitionConfig(
    information_estimator=ep_information,
    relative_to_uniform=True,
    choose_representers=improvement_representers,
    maximizer=direct_and_cma_es,
    evaluations_per_dimension=20,
    cost_offset=0.0,
)
EFFORT = Effort(
    level=1.0,
    mcmc_steps=20,
    refit_interval=1,
    K=8,
    n_representers=40,
    n_samples=192,
    n_outcomes=5,
    pool_size=240,
    n_climbs=0,
    n_screened=600,
    n_estimated=24,
    n_refined=200,
)


class Fabolas2017(ModelStrategy):
    """The published algorithm.

    Args:
        space: The search space. Several fidelities, which the paper does not have, multiply their kernels.
        n_initial: Number of configurations of the initial design.
    """

    name = "fabolas2017"

    def __init__(self, space: Space, *, n_initial: int = 10) -> None:
        super().__init__(
            Models(space, MODEL, ACQUISITION, full_domain(space), space.n_fidelities),
            InitialDesign(partial(random_on_subsets, space), n_initial),
        )
        self.options = changed_options(Fabolas2017, n_initial=n_initial)

    def suggest(
        self,
        history: History,
        pending: tuple[Suggestion, ...],
        rng: np.random.Generator,
        *,
        remaining: float | None = None,
        at_target: bool = False,
    ) -> Proposal:
        """The next evaluation: of the initial design, then the maximum of eq. 7.

        The published algorithm has no budget and no target evaluations: `remaining` only limits the cost,
        and `at_target` takes the largest expected improvement at s = 1.
        """
        # Algorithm 1, line 1: the initial design.
        point = self._design.next(history, pending, at_target, rng)
        if point is not None:
            return Proposal(point, DESIGN)
        # Line 3: fit both GPs.
        surrogate = self.models.fit(history, pending, EFFORT, refit=True, rng=rng)
        # Line 4: maximise the acquisition.
        context = self.models.context(surrogate, history, pending, remaining, EFFORT)
        pool = configuration_pool(context, rng)
        candidate = maximize_target_improvement(context, pool, rng) if at_target else None
        if candidate is None:
            candidate = maximize_information(context, pool, rng)
        return Proposal(candidate.point, candidate.origin, EFFORT.level, candidate.cost)


def random_on_subsets(space: Space, k: int, rng: np.random.Generator) -> Array:
    """k random configurations, their sizes in turn those of section 3.3: (k, D)."""
    x = np.array([uniform(space, rng) for _ in range(k)])
    u = [space.fidelity_at(INITIAL_FRACTIONS[i % len(INITIAL_FRACTIONS)]) for i in range(k)]
    return np.concatenate([x, np.array(u).reshape(k, space.n_fidelities)], axis=1)
