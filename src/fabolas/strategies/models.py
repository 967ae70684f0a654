"""The fitted GPs of a strategy: used to decide, to recommend and to predict."""

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
    Domain,
    rank_by_prediction,
)
from fabolas.strategies.base import Prediction
from fabolas.strategies.candidate import point_key
from fabolas.strategies.continuation import Continuations, pending_traces
from fabolas.strategies.effort import Effort
from fabolas.strategies.fitting import SurrogateFitter, SurrogateWithTrials
from fabolas.strategies.incumbent import recommend
from fabolas.strategies.initial_design import InitialDesign
from fabolas.strategies.stated_loss import stated_losses
from fabolas.surrogate import Surrogate
from fabolas.trials import History, Incumbent, Suggestion


class Models:
    """The GPs of loss and log-cost, fitted to the history of a study.

    Args:
        space: The search space.
        spec: The parts of both GPs.
        acquisition: What an evaluation is worth, and how that is maximised.
        domain: Where points may lie.
        n_fidelities: How many fidelity columns the GPs see.
        reads_curves: Whether the GPs read what trainings report on the way.

    Attributes:
        fitter: Fits the GPs, and keeps their hyperparameters.
    """

    def __init__(
        self,
        space: Space,
        spec: ModelSpec,
        acquisition: AcquisitionConfig,
        domain: Domain,
        n_fidelities: int,
        *,
        reads_curves: bool = False,
    ) -> None:
        # Import slow modules now, so that the first `suggest` does not.
        for module in ("emcee", "scipy.optimize", "scipy.stats"):
            import_module(module)
        self.space, self.spec, self.acquisition, self.domain = space, spec, acquisition, domain
        curve = space.curve_column if reads_curves else None
        self._has_curves = curve is not None
        training = None if curve is None else space.dim + space.n_fidelities
        columns = Columns(space.n_choices, n_fidelities, relative_sizes(space), training, curve)
        self.fitter = SurrogateFitter(SurrogatePrior(spec, columns), curve)

    def with_model_costs(self, history: History) -> History:
        """The history with the costs that the GPs model: with `cost_from_fidelity`, relative sizes and no overhead."""
        if not (self.spec.cost_from_fidelity and len(history)):
            return history
        return history.with_costs(np.exp(self.space.log_fractions(history.points).sum(axis=1)))

    def predicted_seconds(self, cost: float) -> float | None:
        """A predicted cost; None if costs are relative sizes and not seconds."""
        return None if self.spec.cost_from_fidelity else float(cost)

    def fit(
        self,
        history: History,
        pending: tuple[Suggestion, ...],
        effort: Effort,
        refit: bool,
        rng: np.random.Generator,
    ) -> Surrogate:
        """Both GPs given the history and the pending trials.

        Args:
            history: All trials that have ended, see `with_model_costs`.
            pending: Suggestions that have not ended.
            effort: The sizes of the decision.
            refit: Whether MCMC samples new hyperparameters; otherwise they are chosen among those of the last fit.
            rng: The source of randomness of MCMC.
        """
        surrogate = self.fitter.fit(history, effort, refit, rng)
        if self._has_curves:
            return surrogate.condition_pending(pending_traces(self.space, history, pending))
        return surrogate.condition_pending(self._points(pending))

    def context(
        self,
        surrogate: Surrogate,
        history: History,
        pending: tuple[Suggestion, ...],
        remaining: float | None,
        effort: Effort,
    ) -> AcquisitionContext:
        """All that a decision is made from: the fitted GPs and what was evaluated.

        Args:
            surrogate: As `fit` returned it.
            history: See `fit`.
            pending: See `fit`.
            remaining: Seconds left of the budget; None without a time budget.
            effort: The sizes of the decision.
        """
        d, evaluated = self.space.dim, history.points[~history.abandoned]
        if len(evaluated) > self.spec.max_trials:
            evaluated = self.fitter.points(history)
        # A pending evaluation counts like a measured one: a second worker must not repeat it.
        known = np.vstack([history.points[history.complete], self._points(pending)])
        known = known[self.space.is_at_target(known), :d]
        return AcquisitionContext(
            domain=self.domain,
            surrogate=surrogate,
            evaluated_by_mean=rank_by_prediction(surrogate, self.domain, evaluated[:, :d]),
            measured_or_pending=rank_by_prediction(surrogate, self.domain, known),
            added_seconds=self.added_seconds(history),
            max_cost=remaining,
            effort=effort,
            config=self.acquisition,
            evaluated_keys=evaluated_keys(history, pending),
            continuations=self.continuations(history, pending),
        )

    def _points(self, pending: tuple[Suggestion, ...]) -> Array:
        """(p, D) The points of pending suggestions."""
        D = self.space.dim + self.space.n_fidelities
        return np.array([s.point for s in pending]).reshape(len(pending), D)

    def added_seconds(self, history: History) -> float:
        """Seconds added to every predicted cost: overhead (eq. 7) plus cost offset; 0 without `count_overhead`.

        Abandoned trials do not count: their cost may be the time that a machine was asleep.
        """
        if not self.acquisition.count_overhead:
            return 0.0
        spent = float(np.sum((history.costs + history.overheads)[~history.abandoned & ~history.added]))
        return history.typical_overhead() + self.acquisition.cost_offset * spent

    def continuations(self, history: History, pending: tuple[Suggestion, ...]) -> Continuations | None:
        """The trainings that an evaluation may continue; None if the GPs read no curves."""
        return Continuations.of(self.space, history, pending) if self._has_curves else None


class ModelStrategy:
    """What strategies with fitted GPs share: the answer, predictions, and the state that they carry on.

    Args:
        models: The GPs.
        design: The initial design.
    """

    def __init__(self, models: Models, design: InitialDesign) -> None:
        self.models, self._design = models, design

    def incumbent(self, history: History, *, verified_only: bool = False) -> Incumbent | None:
        """Algorithm 1, line 6: the evaluated configuration with the lowest expected loss at the target.

        None before there is one.
        """
        if not history.complete.any():
            return None
        surrogate = self._surrogate_of(history)
        return recommend(self.models.space, surrogate, history, verified_only=verified_only)

    def predict(self, history: History, points: Array) -> Prediction:
        """Loss and cost of points (m, D), given a history with at least one complete trial."""
        surrogate = self._surrogate_of(history)
        loss, std = stated_losses(surrogate, points, history.losses[history.complete])
        return Prediction(loss, std, surrogate.predict_cost(points), surrogate.cost_limit(points))

    def surrogate(self, history: History) -> SurrogateWithTrials:
        """Both posteriors given a history with at least one complete trial, and which trials their data are."""
        return self.models.fitter.surrogate_with_trials(self.models.with_model_costs(history))

    def _surrogate_of(self, history: History) -> Surrogate:
        return self.models.fitter.surrogate_of(self.models.with_model_costs(history))

    def state(self) -> dict[str, Array]:
        """The initial design and the walkers, as far as there are any."""
        design: dict[str, Array] = {} if self._design.points is None else {"design": self._design.points}
        return design | self.models.fitter.state()

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a saved state. Walkers of another version, with other hyperparameters, are dropped."""
        self._design.points = state.get("design")
        self.models.fitter.restore(state)


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
