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

Time is by the clock here, not by the record: the time that nobody records, for example of callbacks, must not make the
last evaluation end after the budget.

If the budget cannot hold one evaluation at the target, a warning says so as soon as it is predicted, and
``why_unverified`` says it again after the run.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fabolas import target_plan
from fabolas._types import Array
from fabolas.budget import Budget
from fabolas.caller_warning import warn_caller
from fabolas.display import error_summary, safe_text
from fabolas.few_trials import MAX_GROWTH, size_for_few_trials
from fabolas.policy import RunState
from fabolas.progress import duration
from fabolas.strategies import Proposal
from fabolas.study import Study
from fabolas.target_plan import (
    DEFAULT_VERIFICATION_RULES,
    N_FINALISTS,
    SHARE_UNTIL_KNOWN,
    PredictedCost,
    Remaining,
    TargetPlan,
    VerificationRules,
    as_near_as_fits,
    is_due,
    is_verifying,
    make_plan,
    probably_fits,
    seconds_for_run,
    target_is_measured,
    without_tried,
)
from fabolas.trials import DESIGN, VERIFICATION, Incumbent, Suggestion, Trial

_MAX_FAILED = 10  # failures at the target without a success, after which verification is given up
_ANNOUNCING_SHARE = 0.1  # with less of a time budget left, no early warning: the result says it soon
# Warn if a trial is predicted to end later than the budget by more than this share of it, and more than these seconds.
_LATE_SHARE, _LATE_SECONDS = 0.1, 5.0


class Verification:
    """Decides when to evaluate the incumbent at the target, and how much of the budget to keep for that.

    It remembers the plan of the last computed incumbent, when the last step ended, and whether it has warned.
    """

    def __init__(self, rules: VerificationRules) -> None:
        self._rules = rules
        self._plan = TargetPlan()
        self._n_planned = 0  # trials when the plan was made
        self._last_step: float | None = None  # seconds of the budget when the last step ended
        self._announced = False

    def seconds_left(self, run: RunState) -> float:
        """Seconds left of the budget, without those needed after the run; infinite without a time budget."""
        return seconds_for_run(self._plan, self._remaining(run), self._rules)

    def reserve(self, run: RunState) -> float:
        """Seconds to keep for an evaluation of the incumbent at the target; 0 if it had one."""
        return target_plan.reserve(self._plan, run.budget, self._rules)

    def is_final(self, run: RunState) -> bool:
        """Whether the final phase has started: from now on only evaluations at the target."""
        return target_plan.is_final(self._plan, self._remaining(run), self._rules)

    def waits_for_target(self, run: RunState) -> bool:
        """Whether there is an incumbent to verify, and no evaluation at the target was complete yet."""
        return self._plan.config is not None and not target_is_measured(run.study)

    def may_fit_later(self, run: RunState) -> bool:
        """Whether the target is predicted not to fit into the budget, but may fit once its cost is known better."""
        target, seconds = self._plan.target, self.seconds_left(run)
        return self.waits_for_target(run) and target.least <= seconds <= min(target.limit, self.reserve(run))

    def finalist(self, run: RunState, seconds: float) -> dict[str, Any] | None:
        """The best configuration that was not evaluated at the target, and whose evaluation there fits; else None.

        Args:
            run: The run.
            seconds: Seconds that it may take.
        """
        return target_plan.finalist(run.study, seconds, run.budget)

    def next(self, run: RunState, over: bool) -> Suggestion | None:
        """The next evaluation of the incumbent, if it is time for one; else None.

        Args:
            run: The run; at least one trial has ended.
            over: Whether the budget is used up. Then the incumbent is evaluated only if the rules allow to exceed the
                budget and no trial is complete at the target.
        """
        # Without a time budget, time must not decide anything, so the incumbent is always up to date.
        up_to_date = run.n_trials_at_update == len(run.study.trials)
        if run.budget.seconds is None or run.incumbent_is_due or up_to_date:
            self._update_plan(run)
        if self._plan.config is None and not over:
            return None
        return self._next_in_final_phase(run, over) if over or self.is_final(run) else self._next_step(run)

    def _next_step(self, run: RunState) -> Suggestion | None:
        """The incumbent on its way to the target, if that is due now and still is for the latest incumbent."""
        if not self._step_is_due(run):
            return None
        plan = self._latest_plan(run)
        if plan.config is None or not self._step_is_due(run):
            return None
        return ask_to_verify(run.study, plan.config, plan.fidelity)

    def _next_in_final_phase(self, run: RunState, over: bool) -> Suggestion | None:
        """The incumbent at the target if that fits; else as near as fits, or over budget if the rules allow it."""
        plan = self._latest_plan(run)
        if plan.config is None:
            return None
        if not self._rules.may_exceed:
            nearer = as_near_as_fits(run.study, plan, self._remaining(run), self._rules)
            return None if nearer is None else ask_to_verify(run.study, plan.config, nearer.fidelity)
        target, seconds = plan.target, self.seconds_left(run)
        if not over and probably_fits(run.study, target.median, target.limit, seconds, run.budget):
            return ask_to_verify(run.study, plan.config)
        return self.evaluate_over_budget(run) if self.should_try_target(run) else None

    def evaluate_over_budget(self, run: RunState) -> Suggestion | None:
        """The incumbent at the target, although it may end after the budget; None if it was evaluated there."""
        plan = self._latest_plan(run)
        if plan.config is None:
            return None
        self._warn_if_late(run)
        return ask_to_verify(run.study, plan.config)

    def should_try_target(self, run: RunState) -> bool:
        """Whether no trial is complete at the target, and not too many have failed there.

        If the trials are used up, or twice the seconds of the budget, one failure is too many.
        """
        if target_is_measured(run.study):
            return False
        very_late = run.budget.seconds is not None and run.used.seconds > 2 * run.budget.seconds
        most = 1 if very_late or run.trials_left <= 0 else _MAX_FAILED
        history = run.study.history
        return int((history.failed & run.study.space.is_at_target(history.points)).sum()) < most

    def trial_ended(self, trial: Trial, run: RunState) -> None:
        """Remember when the last step ended; every evaluation at the target counts as one."""
        at_target = bool(run.study.space.is_at_target(trial.point[None])[0])
        if trial.status != "abandoned" and (trial.suggestion.origin == VERIFICATION or at_target):
            self._last_step = run.used.seconds

    def _remaining(self, run: RunState) -> Remaining:
        """What is left of the budget now; the clock is read once."""
        used, limit = run.used.seconds, run.budget.seconds
        last = run.seconds_used_before if self._last_step is None else self._last_step
        return Remaining(
            run.budget, math.inf if limit is None else limit - used, run.trials_left, used - last
        )

    def _step_is_due(self, run: RunState) -> bool:
        """Whether the step of the plan is due, and no other one runs."""
        return is_due(self._plan, self._remaining(run), self._rules) and not is_verifying(run.study)

    def _update_plan(self, run: RunState) -> None:
        """Compute the incumbent and its plan, if a trial has ended since the last time."""
        history = run.study.history
        if len(history) == self._n_planned or not history.complete.any():
            return
        if run.n_trials_at_update < len(history) or run.incumbent is None:
            run.update_incumbent()
        self._n_planned = len(history)
        if run.incumbent is not None:
            self._plan = make_plan(run.study, run.incumbent, self._remaining(run), self._rules)
            self._announce_if_too_short(run)

    def _latest_plan(self, run: RunState) -> TargetPlan:
        """The plan for the incumbent of all trials; without its configuration if that is pending at the target."""
        self._update_plan(run)
        self._plan = without_tried(self._plan, run.study)
        return self._plan

    def _announce_if_too_short(self, run: RunState) -> None:
        """Say once that the budget cannot hold an evaluation at the target, as soon as that is predicted."""
        plan, left, budget = self._plan, self.seconds_left(run), run.budget.seconds
        if self._announced or self._rules.may_exceed or budget is None or plan.target.least <= left:
            return
        # A step, the search or a larger size of the initial design may show that it is cheaper.
        if plan.fidelity is not None or not self.is_final(run) or _design_grows(run.study, run.budget):
            return
        if left < _ANNOUNCING_SHARE * budget:  # the result says it soon
            return
        if plan.config is not None and self.should_try_target(run):
            self._announced = True
            warn_caller(
                f"an evaluation at the target is predicted to take {duration(plan.target.median)}, and "
                f"{duration(left)} of the budget are left; unless it is faster than predicted, the answer will not be "
                "verified. Give a longer time_budget"
            )

    def _warn_if_late(self, run: RunState) -> None:
        """Warn before an evaluation that will end well after the budget."""
        budget, cost, left = run.budget.seconds, self._plan.target.median, max(self.seconds_left(run), 0.0)
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

    def __init__(self, rules: VerificationRules = DEFAULT_VERIFICATION_RULES) -> None:
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
        remaining = spendable(seconds, verification.reserve(run))
        if verification.may_fit_later(run):
            remaining = SHARE_UNTIL_KNOWN * seconds
        at_target = final and not verification.waits_for_target(run)
        proposal = study.propose(remaining=remaining, at_target=at_target)
        if final and not study.space.is_at_target(proposal.point[None])[0]:
            finalist = verification.finalist(run, seconds)
            if finalist is not None:
                return ask_to_verify(study, finalist)
        if _ends_late(study, proposal, seconds):
            study.discard()
            return None
        return study.accept(_for_few_trials(study, proposal, run.budget, seconds), queued=True)

    def trial_ended(self, trial: Trial, run: RunState) -> None:
        self._verification.trial_ended(trial, run)

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
    history, measured = study.history, target_is_measured(study)
    failed = np.flatnonzero(history.failed & study.space.is_at_target(history.points))
    if len(failed) and not measured:
        error = safe_text(error_summary(history.trials[int(failed[-1])].error))
        how_many = "one evaluation" if len(failed) == 1 else f"{len(failed)} evaluations"
        return f"{how_many} at the target failed, the last one with: {error}"
    cost = float(study.predict(incumbent.config).cost[0])
    if budget.seconds is not None and not measured:
        return (
            f"an evaluation at the target is predicted to take {duration(cost)}, which did not fit into what was left "
            f"of the budget of {duration(budget.seconds)}"
        )
    return (
        "the run ended before this configuration was evaluated at the target, which is predicted to take "
        f"{duration(cost)}"
    )


def ask_to_verify(
    study: Study, config: Mapping[str, Any], fidelity: Mapping[str, float | int] | None = None
) -> Suggestion:
    """A suggestion that verifies a configuration: at the target, or at a fidelity on the way there."""
    cost = PredictedCost.of(study, config, fidelity).median
    return study.ask_for(config, fidelity, queued=True, origin=VERIFICATION, predicted_cost=cost)


def _for_few_trials(study: Study, proposal: Proposal, budget: Budget, seconds: float) -> Proposal:
    """A proposal of the initial design at a larger size, if the budget has room for few trials (`few_trials.py`).

    Args:
        study: The study.
        proposal: Of the strategy.
        budget: The limits of the run.
        seconds: Seconds that are left of it.
    """
    size = _design_size(study, budget) if proposal.origin == DESIGN else None
    if size is None:
        return proposal
    sizes, costs = _sizes_and_costs(study)
    if MAX_GROWTH * float(costs[sizes == sizes.max()].mean()) > seconds:
        return proposal
    [(name, fidelity)], d = study.space.fidelities.items(), study.space.dim
    u = study.space.fidelity_coordinate(name, round(size) if fidelity.integer else size)
    larger = replace(proposal, point=np.append(proposal.point[:d], max(u, float(proposal.point[d]))))
    first_step = len(np.unique(sizes)) == 1  # later steps are known to cost little more
    return proposal if first_step and _ends_late(study, larger, seconds) else larger


def _design_size(study: Study, budget: Budget) -> float | None:
    """The size of the next trial of the initial design if the budget has room for few trials; else None."""
    if budget.seconds is None or len(study.space.fidelities) != 1:
        return None
    [fidelity] = study.space.fidelities.values()
    return size_for_few_trials(*_sizes_and_costs(study), budget.seconds, float(fidelity.high))


def _design_grows(study: Study, budget: Budget) -> bool:
    """Whether the next trial of the initial design is on a larger size than any so far."""
    size = _design_size(study, budget)
    return size is not None and size > _sizes_and_costs(study)[0].max()


def _sizes_and_costs(study: Study) -> tuple[Array, Array]:
    """(n,) The values of the only fidelity, and the seconds, of the complete trials with a known cost."""
    known = [trial for trial in study.trials if trial.status == "complete" and trial.cost > 0.0]
    sizes = [float(next(iter(trial.fidelity.values()))) for trial in known]
    return np.array(sizes), np.array([trial.cost for trial in known])


def _ends_late(study: Study, proposal: Proposal, seconds: float) -> bool:
    """Whether an evaluation will probably end after the seconds that are left, while there is an answer without it."""
    if math.isinf(seconds) or not study.history.complete.any():
        return False
    return float(study.predict_points(proposal.point[None]).cost[0]) > seconds


def spendable(seconds: float, reserve: float) -> float | None:
    """Seconds that the next trial may use, for `study.propose`; None without a time budget."""
    if math.isinf(seconds):
        return None
    return seconds - reserve if seconds > reserve else seconds
