"""The plan of a verification: where the incumbent is evaluated next on its way to the target, and what that takes.

Functions that remember nothing; they read the study and its predictions. ``verification.py`` calls them during a run,
and explains the rules.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from fabolas._types import Array, BoolArray
from fabolas.budget import Budget
from fabolas.study import Study
from fabolas.surrogate import LIMIT_PROBABILITY
from fabolas.trials import VERIFICATION, Incumbent

N_FINALISTS = 3  # trials of a budget, at most, that are kept for the best configurations at the target
_TRIALS_PER_FINALIST = 3  # with fewer trials there are fewer finalists
# Of a time budget, at most, for the final phase; it always has time for one target evaluation.
_FINAL_SHARE = 1 / 3
_NEAR_TARGET = 1 / 4  # from this share of the target's size on, the cost at the target is well predicted
_STEP_FRACTIONS = (1 / 2, 1 / 4, 1 / 8)  # of the way to the target; the first one whose cost fits
_LAST_FRACTIONS = tuple(k / 8 for k in range(7, 0, -1))  # of that way, if the target cannot fit any more
_KEPT_CHANCE = 0.8  # a step in the final phase leaves this share of the probability that the target fits
# While the target is predicted not to fit, but may, a trial of the search takes at most this share of the time left.
SHARE_UNTIL_KNOWN = 1 / 16
_RESERVE = 1.25  # times the predicted cost
# A target evaluation probably fits if it ends in time with this probability. Before the target was measured, its cost
# limit must also exceed the time left by at most this share of the budget.
_FITTING, _MAX_EXCESS = 0.6, 0.5
# Once the target was measured, the cost limit of a further configuration may exceed the time left by at most this share
# of the budget: it can only improve an answer that is there.
_FINALIST_EXCESS = 0.1


@dataclass(frozen=True)
class VerificationRules:
    """How a run verifies its answer.

    Attributes:
        evaluations_after_run: Time needed after the run (by ``refit`` of scikit-learn), in evaluations at the target.
        may_exceed: Whether the budget may be exceeded, in seconds or by one trial, if no trial is complete at the
            target.
        target_steps: Whether steps also go to the target, before the final phase.
        final_evaluations: The final phase is at most as long as this many evaluations at the target.
        reserved_share: The reserve is at most this share of a time budget, however long an evaluation at the target
            takes.
    """

    evaluations_after_run: float = 0.0
    may_exceed: bool = False
    target_steps: bool = False
    final_evaluations: float = 2.0
    reserved_share: float = 0.8


_LIMIT_DEVIATIONS = float(ndtri(LIMIT_PROBABILITY))  # standard deviations from the median to the cost limit
_FITTING_WAY = float(ndtri(_FITTING)) / _LIMIT_DEVIATIONS

DEFAULT_VERIFICATION_RULES = VerificationRules()
"""Those of ``minimize``."""


@dataclass(frozen=True)
class PredictedCost:
    """Predicted seconds of an evaluation: the median, and a limit that is exceeded with a probability of about 1/40."""

    median: float = 0.0
    limit: float = 0.0

    @classmethod
    def of(
        cls, study: Study, config: Mapping[str, Any], fidelity: Mapping[str, float | int] | None = None
    ) -> "PredictedCost":
        """What the study predicts for a configuration; ``fidelity=None`` is the target."""
        prediction = study.predict(config, fidelity)
        return cls(float(prediction.cost[0]), float(prediction.cost_limit[0]))

    def chance(self, seconds: float) -> float:
        """The probability that it ends within these seconds."""
        if seconds <= 0.0 or self.median <= 0.0:
            return float(self.median <= seconds)
        deviation = math.log(self.limit / self.median) / _LIMIT_DEVIATIONS
        return float(ndtr(math.log(seconds / self.median) / max(deviation, 1e-9)))

    @property
    def least(self) -> float:
        """Seconds that it almost always exceeds (about the 2.5 % quantile)."""
        return self.median**2 / self.limit if self.limit > 0 else 0.0


@dataclass(frozen=True)
class TargetPlan:
    """The next evaluation of the incumbent on its way to the target.

    Attributes:
        config: The incumbent; None if it was evaluated at the target, has failed there, or is pending there.
        fidelity: Where to evaluate it next; None for the target.
        cost: Predicted cost of that evaluation.
        target: Predicted cost of an evaluation at the target.
    """

    config: dict[str, Any] | None = None
    fidelity: dict[str, float | int] | None = None
    cost: PredictedCost = PredictedCost()
    target: PredictedCost = PredictedCost()


@dataclass(frozen=True)
class Remaining:
    """What is left of the budget of a run at one moment.

    Attributes:
        budget: The limits of the run.
        seconds: Seconds left; infinite without a time budget.
        trials: Trials left; infinite without a limit.
        since_step: Seconds since the last step ended, or since the run started.
    """

    budget: Budget
    seconds: float
    trials: float
    since_step: float


def make_plan(study: Study, incumbent: Incumbent, left: Remaining, rules: VerificationRules) -> TargetPlan:
    """The plan for an incumbent: the largest step towards the target that leaves enough of the budget."""
    config = incumbent.config
    target = PredictedCost.of(study, config)
    if incumbent.verified or _failed_or_pending_at_target(study, config):
        return TargetPlan(target=target)
    for fidelity in _towards_target(study, config, _STEP_FRACTIONS):
        step = TargetPlan(config, fidelity, PredictedCost.of(study, config, fidelity), target)
        if _leaves_enough(step, left, rules):
            return step
    return TargetPlan(config, None, target, target)


def without_tried(plan: TargetPlan, study: Study) -> TargetPlan:
    """The plan, without the incumbent if it has failed or become pending at the target since the plan was made."""
    tried = plan.config is not None and _failed_or_pending_at_target(study, plan.config)
    return replace(plan, config=None) if tried else plan


def reserve(plan: TargetPlan, budget: Budget, rules: VerificationRules) -> float:
    """Seconds to keep for an evaluation of the incumbent at the target; 0 if it had one."""
    return _target_seconds(plan, budget, rules) if plan.config is not None else 0.0


def seconds_for_run(plan: TargetPlan, left: Remaining, rules: VerificationRules) -> float:
    """Seconds left of the budget, without those needed after the run; infinite without a time budget."""
    return left.seconds - rules.evaluations_after_run * _target_seconds(plan, left.budget, rules)


def is_final(plan: TargetPlan, left: Remaining, rules: VerificationRules) -> bool:
    """Whether the final phase has started: from now on only evaluations at the target."""
    seconds, trials = left.budget.seconds, left.budget.trials
    one = _target_seconds(plan, left.budget, rules)
    final_seconds = 0.0
    if seconds is not None:
        final_seconds = max(min(_FINAL_SHARE * seconds, rules.final_evaluations * one), one)
    finalists = min(N_FINALISTS, max(1, (trials or 0) // _TRIALS_PER_FINALIST))
    return seconds_for_run(plan, left, rules) <= final_seconds or left.trials <= finalists


def is_due(plan: TargetPlan, left: Remaining, rules: VerificationRules) -> bool:
    """Whether the step takes at most the time since the last one, and leaves enough of the budget.

    Without a time budget there are no steps.
    """
    if left.budget.seconds is None or plan.config is None:
        return False
    if plan.fidelity is not None:
        return _leaves_enough(plan, left, rules)
    # If only one evaluation at the target fits, it comes last, when most is known.
    two_fit = 2 * plan.target.limit <= seconds_for_run(plan, left, rules)
    return rules.target_steps and two_fit and left.since_step >= plan.cost.median


def as_near_as_fits(
    study: Study, plan: TargetPlan, left: Remaining, rules: VerificationRules
) -> TargetPlan | None:
    """The incumbent at the target if that is likely to fit, else on the way there; None if nothing fits.

    A step towards the target also improves the prediction of the cost there, which may then fit. If the target cannot
    fit any more, the incumbent is evaluated at the largest size that fits.
    """
    seconds, config, target = seconds_for_run(plan, left, rules), plan.config, plan.target
    if seconds <= 0 or left.trials <= 0 or config is None:
        return None
    if probably_fits(study, target.median, target.limit, seconds, left.budget):
        return TargetPlan(config, None, target, target)
    if is_verifying(study):
        return None
    cannot_fit = target.least > seconds
    for fidelity in _towards_target(study, config, _LAST_FRACTIONS if cannot_fit else _STEP_FRACTIONS):
        step = TargetPlan(config, fidelity, PredictedCost.of(study, config, fidelity), target)
        if step.cost.limit <= seconds if cannot_fit else _keeps_chance(step, seconds):
            return step
    return None


def finalist(study: Study, seconds: float, budget: Budget) -> dict[str, Any] | None:
    """The best configuration that was not evaluated at the target and whose evaluation there fits; else None.

    Args:
        study: The study.
        seconds: Seconds that it may take.
        budget: The limits of the run.
    """
    space, history = study.space, study.history
    if not history.complete.any():
        return None
    evaluated = np.unique(history.points[history.complete, : space.dim], axis=0)
    tried = np.array([*history.points[~history.abandoned], *(pending.point for pending in study.pending)])
    tried_at_target = tried[space.is_at_target(tried), : space.dim]
    untried = evaluated[~(evaluated[:, None] == tried_at_target[None]).all(axis=2).any(axis=1)]
    if not len(untried):
        return None
    points = space.at_target(untried)
    prediction = study.predict_points(points)
    fits = _finalist_fits(study, prediction.cost, prediction.cost_limit, seconds, budget)
    losses = np.where(fits, study.sign * prediction.loss, np.inf)
    best = int(np.argmin(losses))
    return space.decode(points[best])[0] if math.isfinite(losses[best]) else None


def _finalist_fits(study: Study, cost: Array, limit: Array, seconds: float, budget: Budget) -> BoolArray:
    """(n,) As `probably_fits`; once the target was measured, the cost limit may exceed the time left only a little."""
    fits = probably_fits(study, cost, limit, seconds, budget)
    if budget.seconds is None or not target_is_measured(study):
        return np.asarray(fits)
    return np.asarray(fits & (limit <= seconds + _FINALIST_EXCESS * budget.seconds))


def target_is_measured(study: Study) -> bool:
    """Whether a trial is complete at the target."""
    history = study.history
    return bool((history.complete & study.space.is_at_target(history.points)).any())


def is_verifying(study: Study) -> bool:
    """Whether an evaluation that verifies a configuration is pending."""
    return any(suggestion.origin == VERIFICATION for suggestion in study.pending)


def _target_seconds(plan: TargetPlan, budget: Budget, rules: VerificationRules) -> float:
    """Seconds to keep for an evaluation at the target; with those after the run at most a share of the budget."""
    most = (
        math.inf
        if budget.seconds is None
        else rules.reserved_share * budget.seconds / (1 + rules.evaluations_after_run)
    )
    limit, likely = plan.target.limit, _RESERVE * plan.target.median
    return min(limit if rules.may_exceed else min(limit, likely), most)


def _leaves_enough(step: TargetPlan, left: Remaining, rules: VerificationRules) -> bool:
    """Whether a step below the target is short enough, and leaves the time for an evaluation at the target."""
    cost = step.cost.median
    needed = cost + _target_seconds(step, left.budget, rules)
    return left.since_step >= cost and needed <= seconds_for_run(step, left, rules)


def _keeps_chance(step: TargetPlan, seconds: float) -> bool:
    """Whether the target is hardly less likely to fit after a step."""
    return _KEPT_CHANCE * step.target.chance(seconds) <= step.target.chance(seconds - step.cost.median)


def probably_fits(study: Study, cost: Any, limit: Any, seconds: float, budget: Budget) -> Any:
    """Whether target evaluations with this predicted cost and cost limit probably end within `seconds`.

    In the final phase there is no better use of the time, so the cost limit may exceed it: by a share of the budget as
    long as the cost of the target is only extrapolated, and by any amount once a trial was complete there.
    """
    excess = math.inf if target_is_measured(study) or budget.seconds is None else _MAX_EXCESS * budget.seconds
    likely = cost ** (1.0 - _FITTING_WAY) * limit**_FITTING_WAY  # a quantile: log-cost is normal
    return (likely <= seconds) & (limit <= seconds + excess)


def _failed_or_pending_at_target(study: Study, config: dict[str, Any]) -> bool:
    """Whether the configuration failed at the target, or is pending there."""
    point, history = study.space.encode(config), study.history
    failed = bool((history.points[history.failed] == point).all(axis=1).any())
    return failed or any(np.array_equal(suggestion.point, point) for suggestion in study.pending)


def _towards_target(
    study: Study, config: dict[str, Any], fractions: tuple[float, ...]
) -> list[dict[str, float | int]]:
    """Fidelities these fractions of the way from the largest evaluated one to the target; none if it is near."""
    space, history = study.space, study.history
    points = history.points[history.complete]
    shares = np.exp(space.log_fractions(points).sum(axis=1))
    largest = int(np.argmax(shares))
    if shares[largest] >= _NEAR_TARGET:
        return []
    u, point = points[largest, space.dim :], space.encode(config)
    fidelities = []
    for share in fractions:
        point[space.dim :] = u + share * (1 - u)
        step = space.snap(point[None])[0]
        if (step[space.dim :] > u).any():
            fidelities.append(space.decode(step)[1])
    return fidelities
