"""Multi-task Bayesian optimisation: a few fixed sizes, each a task (Swersky, Snoek and Adams 2013)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from fabolas._types import Array
from fabolas.gp.kernels import Basis
from fabolas.gp.priors import Normal
from fabolas.model_spec import ModelSpec
from fabolas.space import Space
from fabolas.strategies.acquire import AcquisitionConfig
from fabolas.strategies.effort import OVERHEAD_SHARE
from fabolas.strategies.fabolas import ModelBasedSearch
from fabolas.strategies.full_data import n_initial_at_target
from fabolas.strategies.models import full_domain
from fabolas.strategies.options import changed_options

# Prior of L[t, 0]: an auxiliary task's function is L[t, 0] times the target's plus its own part. At 1 it is the
# target's function plus a difference, as expected of a subset of the same data. Zero, no correlation, is two
# standard deviations away.
TARGET_CORRELATION_PRIOR = Normal(1.0, 0.5)


class Mtbo(ModelBasedSearch):
    """The most information about the target's optimum per predicted cost, over configurations and tasks.

    Information is the reduction of the entropy, as Swersky et al. have it; eq. 5 of Klein et al. writes the divergence
    from uniform. The models are those of `fabolas` with one-hot basis functions: the task kernel is given by its
    Cholesky factor, whose entries are sampled with the other hyperparameters. Overhead is not counted, there is no
    cost offset, and there are no regular target evaluations.

    The initial design is the same Sobol configurations on every auxiliary task, smallest first. None is at the
    target, where an arbitrary configuration may cost many times a good one: the acquisition decides what to evaluate
    there, by the predicted costs.

    Args:
        space: The search space; without fidelities the target is the only task.
        auxiliary: Sizes of the auxiliary tasks as fractions of the target. With several fidelities each is taken
            at that fraction, and none below its smallest value.
        n_initial: Number of configurations of the initial design on each auxiliary task.
        overhead_share: Share of the time for overhead.
        effort: A fixed effort for each suggestion, from 0 (least) to 1 (full), instead of `overhead_share`.
    """

    name = "mtbo"

    def __init__(
        self,
        space: Space,
        *,
        auxiliary: tuple[float, ...] = (0.25,),
        n_initial: int | None = None,
        overhead_share: float = OVERHEAD_SHARE,
        effort: float | None = None,
    ) -> None:
        self.tasks = tasks(space, auxiliary)
        T = len(self.tasks)
        basis = one_hot(self.tasks[:, 0] if T > 1 else np.ones(1))
        model = ModelSpec(
            loss_basis=basis,
            chol_offdiag_prior=TARGET_CORRELATION_PRIOR,
            chol_logdiag_prior=Normal(-1.0, 1.0),
            loss_deviations=(),
            noise_by_size=False,
            discrepancy=0.0,
        )
        domain = replace(
            full_domain(space),
            snap=partial(_snap_to_tasks, space, self.tasks),
            draw_fidelities=partial(_draw_tasks, self.tasks),
        )
        super().__init__(
            space,
            model,
            AcquisitionConfig(final_samples=4, count_overhead=False, cost_offset=0.0),
            domain,
            partial(_draw_design, space, self.tasks),
            n_initial=n_initial_at_target(space.dim) if n_initial is None else n_initial,
            n_model_fidelities=min(
                T - 1, 1
            ),  # the tasks differ in the first fidelity: the GPs see that one alone
            overhead_share=overhead_share,
            effort=effort,
        )
        self.options = changed_options(
            Mtbo, auxiliary=auxiliary, n_initial=n_initial, overhead_share=overhead_share, effort=effort
        )


def _draw_design(space: Space, all_tasks: Array, k: int, rng: np.random.Generator) -> Array:
    """The same k configurations on every auxiliary task, smallest first; without one, at the target."""
    x = space.sobol(k, rng)
    design_tasks = all_tasks[:0:-1] if len(all_tasks) > 1 else all_tasks
    return np.concatenate([np.concatenate([x, np.tile(u, (k, 1))], axis=1) for u in design_tasks])


def _draw_tasks(all_tasks: Array, n: int, rng: np.random.Generator) -> Array:
    """Tasks (n, f), each equally likely."""
    return np.asarray(all_tasks[rng.integers(len(all_tasks), size=n)])


def _snap_to_tasks(space: Space, all_tasks: Array, points: Array) -> Array:
    """The nearest points (m, D) on a task."""
    points = space.snap(points)
    distance = np.abs(points[:, None, space.dim :] - all_tasks).sum(axis=2)  # (m, T)
    points[:, space.dim :] = all_tasks[np.argmin(distance, axis=1)]
    return points


def tasks(space: Space, auxiliary: tuple[float, ...]) -> Array:
    """The tasks' fidelities u (T, f): the target, then the auxiliary sizes, largest first.

    Sizes that rounding or the range of the first fidelity makes equal are one task.

    Raises:
        ValueError: If a fraction is not between 0 and 1, or there is none.
    """
    fractions = sorted(set(auxiliary), reverse=True)
    if not fractions or not all(0.0 < fraction < 1.0 for fraction in fractions):
        raise ValueError(
            f"auxiliary: expected fractions of the target between 0 and 1, such as (0.25,), got {auxiliary}"
        )
    rows = [np.ones(space.n_fidelities)]
    for fraction in fractions if space.n_fidelities else []:
        u = space.fidelity_at(fraction)
        if u[0] < rows[-1][0]:
            rows.append(u)
    return np.array(rows)


def one_hot(levels: Array) -> Basis:
    """phi(u): the row of the identity matrix of the nearest of the levels (T,)."""

    def basis(u: Array, s: Array) -> Array:
        nearest = np.argmin(np.abs(u[:, None] - levels), axis=1)
        return np.asarray(np.eye(len(levels))[nearest])

    return basis
