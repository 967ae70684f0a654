"""Multi-task Bayesian optimisation: a few fixed sizes, each a task (Swersky, Snoek and Adams 2013)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from fabolas import effort as efforts
from fabolas._types import Array
from fabolas.acquisition.entropy import Form
from fabolas.gp.kernels import Basis
from fabolas.gp.priors import Normal
from fabolas.outputs import Warp
from fabolas.space import Space
from fabolas.strategies.bayesian import few
from fabolas.strategies.decide import Rules
from fabolas.strategies.model_based import ModelBased, work_of
from fabolas.surrogate import Spec

# The function of an auxiliary task is L[t, 0] times the target's plus a part of its own, in units of the target's
# deviation: at 1 it is the target's function and a difference, which is what a subset of the same data is expected
# to be. Two deviations reach down to no relation at all.
LIKE_THE_TARGET = Normal(1.0, 0.5)


class Mtbo(ModelBased):
    """Most information about the target's optimum per predicted cost, over configurations and tasks (eq. 5).

    The task kernel is given by its Cholesky factor, whose entries are sampled with the other hyperparameters: the
    finite-rank kernel of FABOLAS with one-hot basis functions. Costs are modelled alike. The overhead of deciding
    does not enter the price, nor a grain: that is one of FABOLAS's two differences.

    The initial design is spread configurations on every auxiliary task, smallest first. None of them is at the
    target: an arbitrary configuration may cost many times a good one there, so what is to be learnt of the target
    is for the acquisition to decide, which knows the costs.

    Args:
        space: what to search; without fidelities the target is the only task.
        auxiliary: sizes of the auxiliary tasks as fractions of the target. With several fidelities each is taken
            at that fraction, and none below its smallest value.
        information: `gain`, the expected drop of the entropy of p_min, or `paper`, eq. 5 as printed.
        pmin: by joint `sampling` or by expectation propagation, `ep`.
        representers: by `thompson` sampling or by expected `improvement`.
        maximizer: `candidates`, `direct` or `cma`.
        warp: of the loss, `log`, `root`, `excess` or `none`.
        initial: number of configurations of the initial design on each auxiliary task.
        share: of the time, for thinking.
        effort: fixes the effort of each suggestion, from 0 (least) to 1 (full), instead.
    """

    name = "mtbo"

    def __init__(
        self,
        space: Space,
        *,
        auxiliary: tuple[float, ...] = (0.25,),
        information: Form = "gain",
        pmin: Literal["sampling", "ep"] = "sampling",
        representers: Literal["thompson", "improvement"] = "thompson",
        maximizer: Literal["candidates", "direct", "cma"] = "candidates",
        warp: Warp = "log",
        initial: int | None = None,
        share: float = efforts.SHARE,
        effort: float | None = None,
    ) -> None:
        self.tasks = tasks(space, auxiliary)
        T = len(self.tasks)
        basis = one_hot(self.tasks[:, 0] if T > 1 else np.ones(1))
        spec = Spec(
            space.choices,
            min(T - 1, 1),  # the tasks differ in the first fidelity
            work_of(space),
            loss=basis,
            cost=basis,
            rank=T,
            mixing=LIKE_THE_TARGET,
            spread=Normal(-1.0, 1.0),
            warp=warp,
            drift=False,
        )
        rules = Rules(information, pmin, representers, maximizer, price="cost")
        initial = few(space.dim) if initial is None else initial
        super().__init__(space, spec, rules, initial=initial, share=share, effort=effort)

    def draw_design(self, k: int, rng: np.random.Generator) -> Array:
        """The same k spread configurations on every auxiliary task, smallest first; without one, at the target."""
        x = self.space.spread(k, rng)
        begun = self.tasks[:0:-1] if len(self.tasks) > 1 else self.tasks
        return np.concatenate([np.concatenate([x, np.tile(u, (k, 1))], axis=1) for u in begun])

    def draw_fidelities(self, n: int, rng: np.random.Generator) -> Array:
        """Tasks (n, f), each as often."""
        return self.tasks[rng.integers(len(self.tasks), size=n)]

    def snap(self, points: Array) -> Array:
        """Points (m, D) to the nearest ones on a task."""
        d = self.space.dim
        points = self.space.snap(points)
        distance = np.abs(points[:, None, d:] - self.tasks).sum(axis=2)  # (m, T)
        points[:, d:] = self.tasks[np.argmin(distance, axis=1)]
        return points


def tasks(space: Space, auxiliary: tuple[float, ...]) -> Array:
    """The tasks' fidelities u (T, f): the target, then the auxiliary sizes, largest first.

    Those that rounding or the range of the first fidelity makes equal are one.

    Raises:
        ValueError: A fraction is not between 0 and 1, or there is none.
    """
    fractions = sorted(set(auxiliary), reverse=True)
    if not fractions or not all(0.0 < fraction < 1.0 for fraction in fractions):
        raise ValueError(
            f"auxiliary: expected fractions of the target between 0 and 1, such as (0.25,), got {auxiliary}"
        )
    rows = [np.ones(space.n_fidelities)]
    for fraction in fractions if space.n_fidelities else []:
        u = np.array(
            [space.coordinate(name, max(fraction * f.high, f.low)) for name, f in space.fidelities.items()]
        )
        if u[0] < rows[-1][0]:
            rows.append(u)
    return np.array(rows)


def one_hot(levels: Array) -> Basis:
    """phi(u): which of the levels (T,) is nearest, as a row of the identity matrix."""

    def basis(u: Array) -> Array:
        nearest = np.argmin(np.abs(u[:, None] - levels), axis=1)
        return np.asarray(np.eye(len(levels))[nearest])

    return basis
