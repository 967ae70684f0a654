"""The trials of an Optuna study as a space, a history and pending suggestions: all that a strategy decides from."""

from __future__ import annotations

import datetime
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from fabolas._types import Array
from fabolas.direction import check_direction
from fabolas.execution import MIN_COST_SECONDS
from fabolas.numeric_errors import default_error_state
from fabolas.optuna.parameters import Parameter, learned_conditions, learned_parameters
from fabolas.plain_values import LARGEST_LOSS, as_loss
from fabolas.space import Fidelity, Float, Space
from fabolas.space.parameters import Axis
from fabolas.space.parse import ParsedSpace
from fabolas.space.rules import Rule
from fabolas.strategies import Proposal, Strategy, make
from fabolas.strategies.initial_design import n_initial_points
from fabolas.strategies.maximized import directed
from fabolas.study.proposer import separate_from_pending
from fabolas.trials import ADDED, DESIGN, ENQUEUED, History, Incumbent, Suggestion, Trial, as_cost

SUGGESTION = "fabolas:suggestion"  # system attribute of a trial: what was decided for it
COST = "fabolas:cost"  # user attribute: seconds of the objective
LOSS = "fabolas:loss"  # user attribute: the loss of a trial below the target

MIN_DURATION = 1e-3  # seconds; a trial that Optuna saw for less was not measured
# A running trial is taken for lost after this many times the longest cost, but not before this many seconds.
LOST_AFTER_COSTS, LOST_AFTER_SECONDS = 10.0, 600.0
_NOTHING_KNOWN = "no parameter is known yet"


@dataclass(frozen=True)
class Decision:
    """What the sampler has decided for a trial. Optuna's storage keeps it, so that other processes see it.

    Attributes:
        params: Values of Optuna by name, for the active parameters that were known.
        fidelity: Fidelities by name.
        origin: As in ``Suggestion``.
        overhead: As in ``Suggestion``.
        effort: As in ``Suggestion``.
        predicted_cost: As in ``Suggestion``.
    """

    params: dict[str, Any]
    fidelity: dict[str, float | int]
    origin: str
    overhead: float = 0.0
    effort: float = 0.0
    predicted_cost: float | None = None

    @classmethod
    def of(cls, trial: FrozenTrial) -> Decision | None:
        """The decision that the storage keeps; None if this sampler has made none."""
        kept = trial.system_attrs.get(SUGGESTION)
        return None if kept is None else cls(**kept)


class StudyModel:
    """Follows the trials of one study.

    The history has the trials in the order in which this object saw them end; those that had ended before are ordered
    by their end. If new trials show that the space is another one, the whole history is encoded again. A trial whose
    parameters or fidelities are out of the present range is left out of the history.

    Args:
        study: The study.
        fidelities: Fidelities by name.
        seed: Seed of the initial design.
        options: Options of the strategy ``fabolas``.

    Attributes:
        seed: As given.
        parameters: The known parameters by name.
        space: The space that the trials show.
        strategy: Decides in this space.
        history: The ended trials that lie in this space.
    """

    def __init__(
        self, study: Study, fidelities: Mapping[str, Fidelity], seed: int, options: dict[str, Any]
    ) -> None:
        self._fidelities, self.seed, self._options = dict(fidelities), seed, options
        self._direction = check_direction(study.direction.name.lower())
        self._ended: dict[int, FrozenTrial] = {}  # by number, in the order in which they were seen to end
        self._conditions: dict[str, str] = {}  # name -> text of its rule
        self._costs_known = False
        self.parameters: dict[str, Parameter] = {}
        self.history = History()
        self._rebuild({}, {}, None)

    def update(self, trials: list[FrozenTrial]) -> None:
        """Take in the trials that have ended, and what they show of the space.

        Raises:
            ValueError: If a trial has constraints, or a parameter the name of a fidelity.
            TypeError: If Optuna has a kind of distribution that is not known here.
        """
        try:
            self._take_in(trials)
        except Exception:
            # Start again with the next call. It raises too, and does not go on with a part of the trials.
            self._ended.clear()
            self._costs_known = False
            self._rebuild({}, {}, None)
            raise

    def _take_in(self, trials: list[FrozenTrial]) -> None:
        new = [t for t in trials if t.state.is_finished() and t.number not in self._ended]
        new.sort(key=lambda t: (t.datetime_complete or datetime.datetime.max, t.number))
        for trial in new:
            check_no_constraints(trial)
            self._ended[trial.number] = trial
        costs_known = self._costs_known or any(_cost_of(trial) > 0 for trial in new)
        if not self._learn(trials, costs_known):
            for trial in new:
                self._append(trial)

    def pending(self, trials: list[FrozenTrial], number: int) -> tuple[Suggestion, ...]:
        """The suggestions of all other running trials that are not taken for lost.

        During the initial design, an earlier trial that waits for its decision counts too: two processes that start
        at the same time must not take the same point of the design.
        """
        running = [t for t in trials if t.state == TrialState.RUNNING and t.number != number]
        now, longest = datetime.datetime.now(), float(self.history.costs.max(initial=0.0))
        limit = max(LOST_AFTER_COSTS * longest, LOST_AFTER_SECONDS)
        found = []
        for trial in running:
            if trial.datetime_start and (now - trial.datetime_start).total_seconds() > limit:
                continue
            if trial.params or Decision.of(trial):
                suggestion = self._suggestion_of(trial)
            elif trial.number < number and len(self.history) < self._n_initial:
                suggestion = self._undecided(trial.number)
            else:
                continue
            if suggestion is not None:
                found.append(suggestion)
        return tuple(found)

    def decide(self, trial: FrozenTrial, trials: list[FrozenTrial], started: float) -> Decision:
        """What to evaluate in a trial.

        Args:
            trial: The trial. Its fixed parameters and the fidelities among its user attributes are kept.
            trials: All trials of the study.
            started: When the decision was begun, by ``time.perf_counter``.
        """
        rng, pending = np.random.default_rng([self.seed, trial.number]), self.pending(trials, trial.number)
        with default_error_state():
            proposal = self._propose(pending, rng)
            occupied = np.array([s.point for s in pending]).reshape(-1, len(proposal.point))
            point = separate_from_pending(self.space, proposal.point, occupied, rng)
        config, fidelity = self.space.decode(point)
        params = {
            name: self.parameters[name].value(value) for name, value in config.items() if self.parameters
        }
        fixed = {n: v for n, v in trial.system_attrs.get("fixed_params", {}).items() if n in self.parameters}
        given = {name: trial.user_attrs[name] for name in fidelity if name in trial.user_attrs}
        return Decision(
            {**params, **fixed},
            {**fidelity, **given},
            ENQUEUED if given else proposal.origin,
            overhead=time.perf_counter() - started,
            effort=proposal.effort,
            predicted_cost=None if fixed or given else proposal.predicted_cost,
        )

    def _propose(self, pending: tuple[Suggestion, ...], rng: np.random.Generator) -> Proposal:
        """What the strategy suggests. If that is of the initial design, it is a point that no other trial has taken.

        The strategy counts the trials to find its place in the design. That is not enough here: trials that begin at
        the same time may be decided in another order than that of their numbers.
        """
        suggested = (*(trial.suggestion for trial in self.history.trials), *pending)
        taken = {suggestion.point.tobytes() for suggestion in suggested}
        proposal = self.strategy.suggest(self.history, pending, rng)
        for number in range(self._n_initial):
            if proposal.origin != DESIGN or proposal.point.tobytes() not in taken:
                break
            pending = (*pending, self._undecided(number))
            proposal = self.strategy.suggest(self.history, pending, rng)
        return proposal

    @default_error_state()
    def incumbent(self) -> Incumbent | None:
        """The answer. In a new process, the first call fits the models."""
        history = self.history
        if history.complete.any() and "seen" not in self.strategy.state():
            self.strategy.suggest(history, (), np.random.default_rng(self.seed))
        return self.strategy.incumbent(history)

    def _learn(self, trials: list[FrozenTrial], costs_known: bool) -> bool:
        """Learn the space and the costs from the trials. True if either changed; the history is then built again."""
        parameters = learned_parameters(trials)
        ended = [t for t in trials if t.number in self._ended and t.state != TrialState.FAIL]
        conditions = learned_conditions(parameters, ended) if _any_absent(parameters, ended) else {}
        texts = {name: rule.text for name, rule in conditions.items()}
        same_points = parameters == self.parameters and costs_known == self._costs_known
        if same_points and texts == self._conditions:
            return False
        self._costs_known = costs_known
        # If only conditions have changed, all points stay as they are, and so does what the strategy knows.
        self._rebuild(parameters, conditions, self.strategy.state() if same_points else None)
        return True

    def _rebuild(
        self, parameters: dict[str, Parameter], conditions: dict[str, Rule], state: dict[str, Array] | None
    ) -> None:
        axes: dict[str, Axis] = {name: parameter.axis for name, parameter in parameters.items()}
        parsed = ParsedSpace(axes or {_NOTHING_KNOWN: Float(0.0, 1.0)}, conditions, ())
        self.parameters, self._conditions = parameters, {n: rule.text for n, rule in conditions.items()}
        self.space = Space(parsed, self._fidelities)
        self._n_initial = self._options.get("n_initial") or n_initial_points(self.space)
        self.strategy: Strategy = directed(make("fabolas", self.space, **self._options), self._direction)
        if state is None:
            # Draw the initial design now, from the seed alone: it is the same in every process.
            self.strategy.suggest(History(), (), np.random.default_rng(self.seed))
        else:
            self.strategy.restore(state)
        self.history = History()
        for trial in self._ended.values():
            self._append(trial)

    def _append(self, frozen: FrozenTrial) -> None:
        trial = self._trial_of(frozen)
        if trial is not None:
            self.history = self.history.append(trial)

    def _suggestion_of(self, trial: FrozenTrial) -> Suggestion | None:
        """What the trial evaluates or has evaluated; None if that is not in the space."""
        decision = Decision.of(trial)
        params = {**(decision.params if decision else {}), **trial.params}
        fidelity = self._fidelity_of(trial, decision)
        point = self._point(params, fidelity)
        if point is None:
            return None
        if decision is None:
            return Suggestion(trial.number, dict(trial.params), fidelity, point, ADDED, effort=0.0)
        return Suggestion(
            trial.number,
            dict(trial.params),
            fidelity,
            point,
            decision.origin,
            overhead=decision.overhead,
            effort=decision.effort,
            predicted_cost=decision.predicted_cost,
        )

    def _undecided(self, number: int) -> Suggestion:
        """A stand-in for what an earlier trial is about to evaluate: a random configuration at the lowest fidelity."""
        x = self.space.sobol(1, np.random.default_rng([self.seed, number]))[0]
        point = np.concatenate([x, np.zeros(self.space.n_fidelities)])
        return Suggestion(number, {}, {}, point, DESIGN)

    def _trial_of(self, trial: FrozenTrial) -> Trial | None:
        suggestion = self._suggestion_of(trial)
        if suggestion is None:
            return None
        cost, loss = _cost_of(trial), _loss_of(trial)
        if not self._costs_known:  # then relative sizes stand for costs
            cost = float(np.exp(self.space.log_fractions(suggestion.point[None]).sum()))
        if loss is not None and trial.state != TrialState.FAIL:
            if suggestion.origin != ADDED:
                cost = max(cost, MIN_COST_SECONDS)
            return Trial(suggestion, "complete", loss, cost)
        if trial.state == TrialState.FAIL and COST not in trial.user_attrs:
            return Trial(suggestion, "abandoned", None, 0.0, error="the process ended before the trial did")
        error = f"{trial.state.name} without a finite value within ±{LARGEST_LOSS:g}"
        return Trial(suggestion, "failed", None, cost, error=error)

    def _fidelity_of(self, trial: FrozenTrial, decision: Decision | None) -> dict[str, float | int]:
        """The fidelities that the objective asked for; the target if it asked for none.

        While a trial runs it is not known whether it will ask.
        """
        given = {name: trial.user_attrs[name] for name in self._fidelities if name in trial.user_attrs}
        if not given and decision is not None and trial.state == TrialState.RUNNING:
            given = decision.fidelity
        return {name: given.get(name, fidelity.high) for name, fidelity in self._fidelities.items()}

    def _point(self, params: Mapping[str, Any], fidelity: Mapping[str, float | int]) -> Array | None:
        """The point (d + f,); None if a value is out of the present range, or no value of its kind at all."""
        x = []
        for name in self.space.names:
            if name not in params:
                x.append(self._default(name))
                continue
            coordinate = self.parameters[name].coordinate(params[name])
            if coordinate is None:
                return None
            x.append(coordinate)
        try:
            u = [kind.coordinate(fidelity[name]) for name, kind in self._fidelities.items()]
        except (TypeError, ValueError):  # enqueued with another value, or the range was another one
            return None
        return np.asarray(self.space.snap(np.array([[*x, *u]]))[0])

    def _default(self, name: str) -> float:
        return self.parameters[name].axis.default_coordinate() if name in self.parameters else 0.5


def check_no_constraints(trial: FrozenTrial) -> None:
    """Raise ValueError if the trial has constraints."""
    if any(key == "constraints" or key.startswith("constraints:") for key in trial.system_attrs):
        raise ValueError(
            f"expected a study without constraints, got some in trial {trial.number}; use a sampler "
            "that supports them, or add a penalty to the objective's value"
        )


def check_single_objective(study: Study) -> None:
    """Raise ValueError if the study has several objectives."""
    if len(study.directions) > 1:
        raise ValueError(
            f"expected a study with one objective, got {len(study.directions)}; combine them into one "
            "number, or use a sampler for several objectives"
        )


def _any_absent(parameters: Mapping[str, Parameter], ended: list[FrozenTrial]) -> bool:
    return any(name not in trial.distributions for trial in ended for name in parameters)


def _cost_of(trial: FrozenTrial) -> float:
    """Seconds of the objective; 0 if they are not known."""
    if COST in trial.user_attrs:
        try:
            return as_cost(trial.user_attrs[COST])
        except (TypeError, ValueError):  # of a trial that was added by hand; `finish` refuses such a cost
            return 0.0
    duration = trial.duration.total_seconds() if trial.duration is not None else 0.0
    return duration if duration >= MIN_DURATION else 0.0


def _loss_of(trial: FrozenTrial) -> float | None:
    """What the objective measured; None without a number that can be a loss."""
    try:
        return as_loss(trial.user_attrs.get(LOSS, trial.value))
    except (TypeError, ValueError):
        return None
