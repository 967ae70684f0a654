"""Verification: the recommended configuration is evaluated at the target before the run ends.

Without it, the answer of a short run may be a prediction from small subsets that was never checked. The target
evaluations of a strategy (``target_share`` of ``fabolas``) are different: they improve the search, and may evaluate
other configurations than the incumbent. A policy with a ``Verification`` spends its budget like this:

1. Steps. As long as no trial is complete near the target, the cost there is only a guess. So the incumbent is evaluated
   between the largest size so far and the target, whenever its predicted cost is at most the time since the last step.
   With ``target_steps`` it is then evaluated at the target in the same way.
2. Reserve. The time of one evaluation of the incumbent at the target is not spent on anything else.
3. Final phase. In the last part of the time, or the last few trials, all evaluations are at the target. If the
   incumbent turns out worse than predicted, the next best is evaluated there, as long as the budget lasts.

If the budget cannot hold one evaluation at the target, a warning says so as soon as it is predicted, and
``why_unverified`` says it again after the run.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fabolas.budget import Budget
from fabolas.caller_warning import warn_caller
from fabolas.display import error_summary, safe_text
from fabolas.policy import RunState
from fabolas.progress import duration
from fabolas.study import Study
from fabolas.trials import VERIFICATION, Incumbent, Suggestion, Trial

N_FINALISTS = 3  # trials of a budget, at most, that are kept for the best configurations at the target
_TRIALS_PER_FINALIST = 3  # with fewer trials there are fewer finalists
_FINAL_SHARE = (
    1 / 3
)  # of a time budget, at most, for the final phase; it always has time for one target evaluation
_NEAR_TARGET = 1 / 4  # from this share of the target's size on, the cost at the target is well predicted
_STEP_SHARE = 0.25  # of the time left, at most, for a step in the final phase
_STEP_FRACTIONS = (1 / 2, 1 / 4, 1 / 8)  # of the way to the target; the first one whose cost fits
_MAX_FAILED = 10  # failures at the target without a success, after which verification is given up
# A target evaluation probably fits if its predicted cost is at most this share of the time left, and its cost limit
# exceeds the time left by at most this share of the budget.
_FITTING_SHARE, _MAX_EXCESS = 0.8, 0.5
_ANNOUNCING_SHARE = 0.1  # with less of a time budget left, no early warning: the result says it soon
# Warn if a trial is predicted to end later than the budget by more than this share of it, and more than these seconds.
_LATE_SHARE, _LATE_SECONDS = 0.1, 5.0


@dataclass(frozen=True)
class VerificationRules:
    """How a run verifies its answer.

    Attributes:
        refit: Time needed after the run (by ``refit`` of scikit-learn), as a multiple of one evaluation at the target.
        may_exceed: Whether the budget may be exceeded, in seconds or by one trial, if no trial is complete at the
            target.
        target_steps: Whether steps also go to the target, before the final phase.
        final_evaluations: The final phase is at most as long as this many evaluations at the target.
        reserved_share: The reserve is at most this share of a time budget, however long an evaluation at the target
            takes.
    """

    refit: float = 0.0
    may_exceed: bool = False
    target_steps: bool = False
    final_evaluations: float = 2.0
    reserved_share: float = 0.7


@dataclass(frozen=True)
class _Cost:
    """Predicted seconds of an evaluation: the median, and a limit that it hardly exceeds."""

    median: float = 0.0
    limit: float = 0.0

    @property
    def least(self) -> float:
        """Seconds that it hardly falls below, about the 2.5 % quantile."""
        return self.median**2 / self.limit if self.limit > 0 else 0.0


@dataclass(frozen=True)
class _Step:
    """The next evaluation of the incumbent on its way to the target.

    Attributes:
        config: The incumbent; None if it was evaluated at the target, or is being evaluated there.
        fidelity: Where to evaluate it next; None for the target.
        cost: Predicted cost of that evaluation.
        target: Predicted cost of an evaluation at the target.
    """

    config: dict[str, Any] | None = None
    fidelity: dict[str, float | int] | None = None
    cost: _Cost = _Cost()
    target: _Cost = _Cost()


class Verification:
    """Decides when to evaluate the incumbent at the target, and how much of the budget to keep for that."""

    def __init__(self, rules: VerificationRules) -> None:
        self._rules = rules
        self._step = _Step()
        self._n_trials_at_update = 0  # trials when the step was last computed
        self._last_step: float | None = None  # seconds of the budget when the last step ended
        self._announced = False

    def seconds_left(self, run: RunState) -> float:
        """Seconds left of the budget, without those needed after the run; infinite without a time budget."""
        return run.seconds_left - self._rules.refit * self._target_seconds(run)

    def reserve(self, run: RunState) -> float:
        """Seconds to keep for an evaluation of the incumbent at the target; 0 if it had one."""
        return self._target_seconds(run) if self._step.config is not None else 0.0

    def is_final(self, run: RunState) -> bool:
        """Whether the final phase has started: from now on only evaluations at the target."""
        seconds, trials = run.budget.seconds, run.budget.trials
        one = self._target_seconds(run)
        final_seconds = 0.0
        if seconds is not None:
            final_seconds = max(min(_FINAL_SHARE * seconds, self._rules.final_evaluations * one), one)
        finalists = min(N_FINALISTS, max(1, (trials or 0) // _TRIALS_PER_FINALIST))
        return self.seconds_left(run) <= final_seconds or run.trials_left <= finalists

    def next(self, run: RunState, over: bool) -> Suggestion | None:
        """The next evaluation of the incumbent, if it is time for one; else None.

        Args:
            run: The run; at least one trial has ended.
            over: Whether the budget is used up. Then the incumbent is evaluated only if the rules allow to exceed the
                budget and no trial is complete at the target.
        """
        # Without a time budget, time must not decide anything, so the incumbent is always up to date.
        if (
            run.budget.seconds is None
            or run.incumbent_is_due
            or run.n_trials_at_update == len(run.study.trials)
        ):
            self._update(run)
        final = over or self.is_final(run)
        if not final and not self._is_due(run):
            return None
        if over or self._step.config is not None:
            self._update(run)
        step = self._step = self._without_tried(run)
        if step.config is None:
            return None
        if not final:
            return ask_to_verify(run.study, step.config, step.fidelity) if self._is_due(run) else None
        if not over and step.target.limit <= self.seconds_left(run):
            return ask_to_verify(run.study, step.config)
        if not self._rules.may_exceed:
            return self._as_near_as_fits(run, step.config)
        return self.evaluate_over_budget(run) if self.should_try_target(run) else None

    def evaluate_over_budget(self, run: RunState) -> Suggestion | None:
        """The incumbent at the target, although it may end after the budget; None if it was evaluated there."""
        self._update(run)
        self._step = self._without_tried(run)
        if self._step.config is None:
            return None
        self._warn_if_late(run)
        return ask_to_verify(run.study, self._step.config)

    def should_try_target(self, run: RunState) -> bool:
        """Whether no trial is complete at the target, and not too many have failed there.

        If the trials are used up, or twice the seconds of the budget, one failure is too many.
        """
        history = run.study.history
        at_target = run.study.space.is_at_target(history.points)
        if (history.complete & at_target).any():
            return False
        very_late = run.budget.seconds is not None and run.seconds_used > 2 * run.budget.seconds
        most = 1 if very_late or run.trials_left <= 0 else _MAX_FAILED
        return int((history.failed & at_target).sum()) < most

    def finalist(self, run: RunState, seconds: float) -> dict[str, Any] | None:
        """The best configuration that was not evaluated at the target, and whose evaluation there fits; else None.

        Args:
            run: The run.
            seconds: Seconds that it may take.
        """
        study, d = run.study, run.study.space.dim
        history = study.history
        if not history.complete.any():
            return None
        evaluated = np.unique(history.points[history.complete, :d], axis=0)
        tried = [*history.points[~history.abandoned], *(suggestion.point for suggestion in study.pending)]
        tried_at_target = np.array(tried)[study.space.is_at_target(np.array(tried)), :d]
        left = evaluated[~(evaluated[:, None] == tried_at_target[None]).all(axis=2).any(axis=1)]
        if not len(left):
            return None
        points = np.column_stack([left, np.ones((len(left), study.space.n_fidelities))])
        prediction = study.predict_points(points)
        fits = prediction.cost_limit <= seconds
        if not self._rules.may_exceed:
            fits |= _probably_fits(prediction.cost, prediction.cost_limit, seconds, run.budget)
        losses = np.where(fits, study.sign * prediction.loss, np.inf)
        best = int(np.argmin(losses))
        return study.space.decode(points[best])[0] if math.isfinite(losses[best]) else None

    def ended(self, trial: Trial, run: RunState) -> None:
        """Remember when the last step ended; every evaluation at the target counts as one."""
        at_target = bool(run.study.space.is_at_target(trial.point[None])[0])
        if trial.status != "abandoned" and (trial.suggestion.origin == VERIFICATION or at_target):
            self._last_step = run.seconds_used

    def _target_seconds(self, run: RunState) -> float:
        """Seconds to keep for an evaluation at the target; with those after the run at most a share of the budget."""
        seconds, rules = run.budget.seconds, self._rules
        most = math.inf if seconds is None else rules.reserved_share * seconds / (1 + rules.refit)
        target = self._step.target
        needed = target.limit if rules.may_exceed else min(target.limit, target.median / _FITTING_SHARE)
        return min(needed, most)

    def _is_due(self, run: RunState) -> bool:
        """Whether the step takes at most the time since the last one, and leaves enough of the budget."""
        step = self._step
        one_runs = any(suggestion.origin == VERIFICATION for suggestion in run.study.pending)
        if run.budget.seconds is None or step.config is None or one_runs:
            return False
        if step.fidelity is not None:
            return self._leaves_enough(run, step.cost)
        # If only one evaluation at the target fits, it comes last, when most is known.
        two_fit = 2 * step.target.limit <= self.seconds_left(run)
        return self._rules.target_steps and two_fit and self._since_last_step(run) >= step.cost.median

    def _leaves_enough(self, run: RunState, cost: _Cost) -> bool:
        """Whether a step below the target is short enough, and leaves the time for an evaluation at the target."""
        needed = cost.median + self._target_seconds(run)
        return self._since_last_step(run) >= cost.median and needed <= self.seconds_left(run)

    def _since_last_step(self, run: RunState) -> float:
        """Seconds since the last step ended, or since the run started."""
        return run.seconds_used - (run.seconds_used_before if self._last_step is None else self._last_step)

    def _as_near_as_fits(self, run: RunState, config: dict[str, Any]) -> Suggestion | None:
        """The incumbent at the target if that is likely to fit, else on the way there; None if nothing fits.

        A step towards the target also improves the prediction of the cost there, which may then fit.
        """
        left, study, target = self.seconds_left(run), run.study, self._step.target.median
        if left <= 0 or run.trials_left <= 0:
            return None
        if _probably_fits(target, self._step.target.limit, left, run.budget):
            return ask_to_verify(study, config)
        # If a target evaluation fits, it must still fit after the step. If not, the step may show that it is cheaper.
        most = left - target if target <= left else _STEP_SHARE * left
        one_runs = any(suggestion.origin == VERIFICATION for suggestion in study.pending)
        for fidelity in [] if one_runs else _towards_target(study, config):
            if _predicted_cost(study, config, fidelity).median <= most:
                return ask_to_verify(study, config, fidelity)
        return ask_to_verify(study, config) if target <= left and not one_runs else None

    def _update(self, run: RunState) -> None:
        """Compute the incumbent and its next step, if a trial has ended since the last time."""
        history = run.study.history
        if len(history) == self._n_trials_at_update or not history.complete.any():
            return
        if run.n_trials_at_update < len(history) or run.incumbent is None:
            run.update_incumbent()
        self._n_trials_at_update = len(history)
        if run.incumbent is not None:
            self._step = self._step_of(run, run.incumbent)
            if not self._rules.may_exceed:
                self._announce(run)

    def _step_of(self, run: RunState, incumbent: Incumbent) -> _Step:
        study, config = run.study, incumbent.config
        target = _predicted_cost(study, config)
        if incumbent.verified or _failed_or_pending_at_target(study, config):
            return _Step(target=target)
        self._step = _Step(config, target=target)  # `_leaves_enough` reads its target cost
        for fidelity in _towards_target(study, config):
            cost = _predicted_cost(study, config, fidelity)
            if self._leaves_enough(run, cost):
                break
        else:
            fidelity, cost = None, target
        return _Step(config, fidelity, cost, target)

    def _without_tried(self, run: RunState) -> _Step:
        """The step, without the incumbent if it has become pending at the target since the step was computed."""
        config = self._step.config
        return (
            replace(self._step, config=None)
            if config and _failed_or_pending_at_target(run.study, config)
            else self._step
        )

    def _announce(self, run: RunState) -> None:
        """Say once that the budget cannot hold an evaluation at the target, as soon as that is predicted."""
        left, budget = self.seconds_left(run), run.budget.seconds
        if self._announced or budget is None or self._step.target.least <= left:
            return
        if left < _ANNOUNCING_SHARE * budget:  # the result says it soon
            return
        if self._step.config is not None and self.should_try_target(run):
            self._announced = True
            warn_caller(
                f"an evaluation at the target is predicted to take {duration(self._step.target.median)}, and "
                f"{duration(left)} of the budget are left; unless it is faster than predicted, the answer will not be "
                "verified. Give a longer time_budget"
            )

    def _warn_if_late(self, run: RunState) -> None:
        """Warn before an evaluation that will end well after the budget."""
        budget, cost, left = run.budget.seconds, self._step.target.median, max(self.seconds_left(run), 0.0)
        if budget is not None and cost - left > max(_LATE_SHARE * budget, _LATE_SECONDS):
            warn_caller(
                f"the evaluation at the target that the answer needs is predicted to take {cost:.0f} s, and "
                f"{left:.0f} s are left for it; it is made nevertheless. Give a longer time_budget, or verify=False "
                "to get an unverified answer in time"
            )


class VerifyingPolicy:
    """Asks the study until the budget is used up, and verifies the answer: ``AskUntilUsedUp`` with a reserve.

    The budget is a limit: an evaluation at the target that does not fit is not made. The answer is a configuration
    that was evaluated there, unless another one is clearly better (``Study.verified_incumbent``).
    """

    verifies = True

    def __init__(self, rules: VerificationRules = VerificationRules()) -> None:
        self._verification = Verification(rules)

    def next(self, run: RunState) -> Suggestion | None:
        study, verification = run.study, self._verification
        seconds = verification.seconds_left(run)
        over = seconds <= 0 or run.trials_left <= 0
        if not over and (waiting := study.ask_waiting(queued=True)) is not None:
            return waiting
        if study.trials and (suggestion := verification.next(run, over)) is not None:
            return suggestion
        if over:
            return None
        final = verification.is_final(run)
        if final and run.trials_left <= N_FINALISTS:
            finalist = verification.finalist(run, seconds)
            if finalist is not None:
                return ask_to_verify(study, finalist)
        proposal = study.propose(remaining=spendable(seconds, verification.reserve(run)), at_target=final)
        if final and not study.space.is_at_target(proposal.point[None])[0]:
            finalist = verification.finalist(run, seconds)
            if finalist is not None:
                return ask_to_verify(study, finalist)
        return study.accept(proposal, queued=True)

    def ended(self, trial: Trial, run: RunState) -> None:
        self._verification.ended(trial, run)

    def answer(self, run: RunState) -> Incumbent | None:
        return run.study.verified_incumbent()


def why_unverified(study: Study, budget: Budget, incumbent: Incumbent | None) -> str | None:
    """Why the answer of a run that should be verified is not, as the end of a sentence; None if it is.

    Args:
        study: The study after the run; its strategy has a model.
        budget: The limits of the run.
        incumbent: The answer; None if there is none.
    """
    if incumbent is None or incumbent.verified:
        return None
    history = study.history
    at_target = study.space.is_at_target(history.points)
    failed = np.flatnonzero(history.failed & at_target)
    if len(failed) and not (history.complete & at_target).any():
        error = safe_text(error_summary(history.trials[int(failed[-1])].error))
        how_many = "one evaluation" if len(failed) == 1 else f"{len(failed)} evaluations"
        return f"{how_many} at the target failed, the last one with: {error}"
    cost = float(study.predict(incumbent.config).cost[0])
    if budget.seconds is not None and not (history.complete & at_target).any():
        return (
            f"an evaluation at the target is predicted to take {duration(cost)}, which did not fit into what was left "
            f"of the budget of {duration(budget.seconds)}"
        )
    return (
        "the run ended before this configuration was evaluated at the target, which is predicted to take "
        f"{duration(cost)}"
    )


def _probably_fits(cost: Any, limit: Any, seconds: float, budget: Budget) -> Any:
    """Whether target evaluations with this predicted cost and cost limit probably end within `seconds`."""
    excess = math.inf if budget.seconds is None else _MAX_EXCESS * budget.seconds
    return (cost <= _FITTING_SHARE * seconds) & (limit <= seconds + excess)


def ask_to_verify(
    study: Study, config: Mapping[str, Any], fidelity: Mapping[str, float | int] | None = None
) -> Suggestion:
    """A suggestion that verifies a configuration: at the target, or at a fidelity on the way there."""
    cost = _predicted_cost(study, config, fidelity).median
    return study.ask_for(config, fidelity, queued=True, origin=VERIFICATION, predicted_cost=cost)


def spendable(seconds: float, reserve: float) -> float | None:
    """Seconds that the next trial may use, for `study.propose`; None without a time budget."""
    if math.isinf(seconds):
        return None
    return seconds - reserve if seconds > reserve else seconds


def _failed_or_pending_at_target(study: Study, config: dict[str, Any]) -> bool:
    """Whether the configuration failed at the target, or is pending there."""
    point, history = study.space.encode(config), study.history
    failed = bool((history.points[history.failed] == point).all(axis=1).any())
    return failed or any(np.array_equal(suggestion.point, point) for suggestion in study.pending)


def _towards_target(study: Study, config: dict[str, Any]) -> list[dict[str, float | int]]:
    """Fidelities between the largest evaluated one and the target, from high to low; none if it is near."""
    space, history = study.space, study.history
    points = history.points[history.complete]
    shares = np.exp(space.log_fractions(points).sum(axis=1))
    largest = int(np.argmax(shares))
    if shares[largest] >= _NEAR_TARGET:
        return []
    u, point = points[largest, space.dim :], space.encode(config)
    fidelities = []
    for share in _STEP_FRACTIONS:
        point[space.dim :] = u + share * (1 - u)
        step = space.snap(point[None])[0]
        if (step[space.dim :] > u).any():
            fidelities.append(space.decode(step)[1])
    return fidelities


def _predicted_cost(
    study: Study, config: Mapping[str, Any], fidelity: Mapping[str, float | int] | None = None
) -> _Cost:
    prediction = study.predict(config, fidelity)
    return _Cost(float(prediction.cost[0]), float(prediction.cost_limit[0]))
