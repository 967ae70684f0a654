"""What the model-based strategies share: space and surrogate, incumbent, predictions, state."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module

import numpy as np

from fabolas._types import Array
from fabolas.model_spec import Columns, ModelSpec, SurrogatePrior
from fabolas.space import Fidelity, Space
from fabolas.strategies.acquire import (
    AcquisitionConfig,
    AcquisitionContext,
    Batch,
    Domain,
    point_key,
    rank_by_prediction,
)
from fabolas.strategies.base import Prediction
from fabolas.strategies.continuation import Continuations, following_curves, pending_traces
from fabolas.strategies.effort import Effort
from fabolas.strategies.fitting import SurrogateFitter, SurrogateWithTrials
from fabolas.strategies.incumbent import recommend
from fabolas.strategies.pace import WorkerCount
from fabolas.strategies.stated_loss import stated_losses
from fabolas.trials import History, Incumbent, Suggestion


class ModelBased:
    """Base of the strategies with a surrogate: initial design, incumbent, predictions, state. Subclasses add `suggest`.

    Args:
        space: the search space.
        model: the parts of both GPs.
        acquisition: what an evaluation is worth, and how that is maximised.
        domain: where points may lie.
        n_model_fidelities: how many fidelity columns the models see.
        n_initial: number of configurations of the initial design.

    Attributes:
        reads_curves: whether the models read what trainings report on the way.
    """

    name: str
    reads_curves = False

    def __init__(
        self,
        space: Space,
        model: ModelSpec,
        acquisition: AcquisitionConfig,
        domain: Domain,
        n_model_fidelities: int,
        n_initial: int,
    ) -> None:
        # Import slow modules now, so that the first `suggest` does not.
        for module in ("emcee", "scipy.optimize", "scipy.stats"):
            import_module(module)
        self.space = space
        self.model = model
        self.acquisition = acquisition
        self.n_initial = n_initial
        self._domain = domain
        self._curve_column = space.curve_column if self.reads_curves else None
        training = None if self._curve_column is None else space.dim + space.n_fidelities
        columns = Columns(
            space.n_choices, n_model_fidelities, relative_sizes(space), training, self._curve_column
        )
        self._fitter = SurrogateFitter(SurrogatePrior(model, columns), self._curve_column)
        self._design: Array | None = None  # (k, D)
        self._batch = Batch.empty(space.dim + space.n_fidelities)
        self._workers = WorkerCount()

    def incumbent(self, history: History, *, verified_only: bool = False) -> Incumbent | None:
        """The evaluated configuration with the lowest expected loss at the target; None before a complete trial."""
        if not history.complete.any():
            return None
        surrogate = self._fitter.posterior(self._seen_by_models(history))
        return recommend(self.space, surrogate, history, verified_only=verified_only)

    def predict(self, history: History, points: Array) -> Prediction:
        """Loss and cost of points (m, D), given a history with at least one complete trial."""
        surrogate = self._fitter.posterior(self._seen_by_models(history))
        loss, std = stated_losses(surrogate, points, history.losses[history.complete])
        return Prediction(loss, std, surrogate.predict_cost(points), surrogate.cost_limit(points))

    def surrogate(self, history: History) -> SurrogateWithTrials:
        """Both posteriors given a history with at least one complete trial."""
        return self._fitter.posterior_and_trials(self._seen_by_models(history))

    def state(self) -> dict[str, Array]:
        """The initial design, the number of workers, the walkers, and the batch."""
        state: dict[str, Array] = {} if self._design is None else {"design": self._design}
        if self._workers.n > 1:
            state["workers"] = np.array([float(self._workers.n), float(self._workers.since)])
        fitted = self._fitter.state()
        if fitted:
            state |= {**fitted, "batch": self._batch.points, "batch_costs": self._batch.costs}
        return state

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a saved state. Walkers of another version, with other hyperparameters, are dropped."""
        self._design = state.get("design")
        self._workers = (
            WorkerCount(*(int(n) for n in state["workers"])) if "workers" in state else WorkerCount()
        )
        self._batch = Batch.empty(self.space.dim + self.space.n_fidelities)
        if self._fitter.restore(state):
            self._batch = Batch(state["batch"], state["batch_costs"])

    def _draw_design(self, k: int, rng: np.random.Generator) -> Array:
        """k points (k, D) of the initial design."""
        raise NotImplementedError

    def _next_of_design(
        self,
        history: History,
        pending: tuple[Suggestion, ...],
        at_target: bool,
        rng: np.random.Generator,
    ) -> Array | None:
        """The next point (D,) of the initial design; None once it is used up and a trial is complete.

        While every trial fails the design goes on. It ends early if the next evaluation should be at the target.
        """
        if self._design is None:
            self._design = self._draw_design(self.n_initial, rng)
        n_begun, any_complete = len(history) + len(pending), bool(history.complete.any())
        if n_begun < len(self._design) and not (at_target and any_complete):
            return np.asarray(self._design[n_begun])
        return None if any_complete else np.asarray(self._draw_design(1, rng)[0])

    def _seen_by_models(self, history: History) -> History:
        """The history; with `cost_from_fidelity`, costs are relative sizes and overheads are 0."""
        if not (self.model.cost_from_fidelity and len(history)):
            return history
        return history.with_costs(np.exp(self.space.log_fractions(history.points).sum(axis=1)))

    def _context(
        self,
        history: History,
        pending: tuple[Suggestion, ...],
        remaining: float | None,
        effort: Effort,
        move_walkers: bool,
        rng: np.random.Generator,
    ) -> AcquisitionContext:
        """Fit both GPs to the history, condition on pending trials, and collect what a decision needs."""
        surrogate = self._fitter.fit(history, effort, move_walkers, rng)
        kept = history.points[~history.abandoned]
        evaluated = kept if len(kept) <= self.model.max_trials else surrogate.loss.points
        pending_points = np.array([s.point for s in pending]).reshape(len(pending), history.points.shape[1])
        if self._curve_column is None:
            surrogate = surrogate.condition_pending(pending_points)
        else:
            before = Continuations.of(self.space, history, ())
            surrogate = surrogate.condition_pending(pending_traces(self.space, before, pending))
        d = self.space.dim
        # A pending evaluation counts as measured: a second worker must not repeat it.
        measured = np.vstack([history.points[history.complete], pending_points])
        measured = measured[self.space.is_at_target(measured), :d]
        context = AcquisitionContext(
            domain=self._domain,
            surrogate=surrogate,
            ranked=rank_by_prediction(surrogate, self._domain, evaluated[:, :d]),
            measured=rank_by_prediction(surrogate, self._domain, measured),
            added_seconds=self._added_seconds(history),
            max_cost=remaining,
            effort=effort,
            config=self.acquisition,
            evaluated_keys=evaluated_keys(history, pending),
        )
        if self._curve_column is None:
            return context
        return following_curves(context, self.space, Continuations.of(self.space, history, pending))

    def _added_seconds(self, history: History) -> float:
        """Seconds added to every predicted cost: overhead (eq. 7) plus cost offset; 0 without `count_overhead`.

        Abandoned trials do not count: their cost may be the time that a machine was asleep.
        """
        if not self.acquisition.count_overhead:
            return 0.0
        spent = float(np.sum((history.costs + history.overheads)[~history.abandoned & ~history.added]))
        return history.typical_overhead() + self.acquisition.cost_offset * spent

    def _predicted_seconds(self, cost: float) -> float | None:
        """A predicted cost; None if costs are relative sizes and not seconds."""
        return None if self.model.cost_from_fidelity else float(cost)


def evaluated_keys(history: History, pending: tuple[Suggestion, ...]) -> frozenset[bytes]:
    """The points of complete, failed and pending trials, see `point_key`."""
    ended = history.points[~history.abandoned] if len(history) else history.points
    return frozenset(point_key(point) for point in [*ended, *(s.point for s in pending)])


def relative_sizes(space: Space) -> tuple[Callable[[Array], Array], ...]:
    """For each fidelity the function u (n,) -> s (n,), its value relative to the target."""
    return tuple(partial(_relative_size, fidelity) for fidelity in space.fidelities.values())


def _relative_size(fidelity: Fidelity, u: Array) -> Array:
    return np.asarray(fidelity.values(u) / float(fidelity.high))


def full_domain(space: Space) -> Domain:
    """All points of the space."""
    return Domain(
        space.dim,
        space.n_fidelities,
        space.n_choices,
        space.snap,
        space.is_legal,
        space.sobol,
        partial(_draw_fidelities, space.n_fidelities),
    )


def _draw_fidelities(f: int, n: int, rng: np.random.Generator) -> Array:
    """(n, f) Each fidelity is 0 or 1 with probability 1/7 each, else uniform.

    If there are several, all are set to 0, or all to 1, with the same probabilities.
    """
    u = np.clip(1.4 * rng.random((n, f)) - 0.2, 0.0, 1.0)
    if f > 1:
        together = 1.4 * rng.random(n) - 0.2
        u[together <= 0.0], u[together >= 1.0] = 0.0, 1.0
    return u
