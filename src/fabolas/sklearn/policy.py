"""What a search of scikit-learn runs next: the engine's policy with the rules that only such a search has.

- No candidate is run twice on the same number of rows, because the folds are the same each time. A finite space can
  be exhausted.
- If few rows make trials fail, later ones have more rows.
- If the time budget has room for few trials, and few rows are hardly cheaper than more, the initial design has more.
- At least one trial is run, however short the budget, because scikit-learn needs a result.
- Time is kept for the refit: without verification by ``refit_reserve.py``.
- Without verification no trial is begun that is predicted to end after the time that is left.

The verification on all rows is that of ``fabolas.verification``.
"""

import math
from dataclasses import replace

from fabolas._types import Array
from fabolas.policy import RunState
from fabolas.sklearn.candidates import Candidates
from fabolas.sklearn.refit_reserve import RefitReserve
from fabolas.study import Study
from fabolas.target_plan import N_FINALISTS, VerificationRules
from fabolas.trials import DESIGN, RANDOM, Incumbent, Suggestion, Trial
from fabolas.verification import Verification, ask_to_verify, spendable

# If this many trials have failed and none has succeeded, the search ends.
_MAX_FAILURES = 100


class SearchPolicy:
    """Decides what a search runs next.

    Args:
        study: The study of the search.
        max_size: Number of rows of the largest training fold, when training is on all rows.
        verify: Whether to run the best candidates on all rows.
        refit_ratio: Time of the refit, as a multiple of the time of a trial on all rows; 0 without a refit.
        configurations: (m, d) all configurations of the space; None if there are too many to list.
    """

    def __init__(
        self, study: Study, max_size: int, *, verify: bool, refit_ratio: float, configurations: Array | None
    ) -> None:
        self._candidates = Candidates(study, max_size, configurations)
        self._n_configurations = math.inf if configurations is None else len(configurations)
        self.verifies = verify
        rules = VerificationRules(
            refit_ratio, may_exceed=True, target_steps=True, final_evaluations=math.inf, reserved_share=0.5
        )
        self._verification = Verification(rules) if verify else None
        self._refit_reserve = RefitReserve(refit_ratio)  # if nothing is verified
        self._max_size = max_size
        self._n_before = len(study.trials)

    def next(self, run: RunState) -> Suggestion | None:
        suggestion = self._next_in_budget(run)
        return self._first_trial_of_fit(run) if suggestion is None else suggestion

    def trial_ended(self, trial: Trial, run: RunState) -> None:
        if self._verification is not None:
            self._verification.trial_ended(trial, run)

    def answer(self, run: RunState) -> Incumbent | None:
        # That of the study. The search itself chooses among the rows of `cv_results_`.
        return run.study.verified_incumbent() if self.verifies else run.incumbent

    def _next_in_budget(self, run: RunState) -> Suggestion | None:
        """The next trial; None if no trial is affordable, or none would change the answer."""
        study, verification = run.study, self._verification
        seconds = (self._refit_reserve if verification is None else verification).seconds_left(run)
        budget_used_up = seconds <= 0 or run.trials_left <= 0
        search_over = budget_used_up or self._candidates.n_left() == 0 or self._only_failures(run)
        if verification is not None and study.trials:
            suggestion = verification.next(run, search_over)
            if suggestion is not None:
                return suggestion
        if search_over:
            return None
        if self._can_run_all(run, seconds):
            config = self._candidates.random_configuration(self._max_size)
            affordable = self._candidates.is_affordable(config, seconds, run.budget)
            return study.ask_for(config, queued=True, origin=RANDOM) if affordable else None
        final = verification is not None and verification.is_final(run)
        if verification is not None and final and run.trials_left <= N_FINALISTS:
            finalist = verification.finalist(run, seconds)
            if finalist is not None:
                return ask_to_verify(study, finalist)
        if not study.history.complete.any() and study.history.failed.any():
            return self._retry_on_more_rows(study)
        suggestion = self._ask(run, seconds, final)
        if suggestion is not None or verification is None:
            return suggestion
        if verification.should_try_target(run):
            return verification.evaluate_over_budget(run)
        finalist = verification.finalist(run, seconds) if final else None
        return None if finalist is None else ask_to_verify(study, finalist)

    def _ask(self, run: RunState, seconds: float, final: bool) -> Suggestion | None:
        """The study's suggestion, or in a finite space an untried one in its place; None if the search is over.

        In the final phase only a trial on all rows is wanted, unless there was none yet.
        """
        study, verification = run.study, self._verification
        waiting = study.ask_waiting(queued=True)
        if waiting is not None:
            return waiting
        remaining = spendable(seconds, 0.0 if verification is None else verification.reserve(run))
        proposal = study.propose(remaining=remaining, at_target=final)
        point = self._candidates.on_enough_rows(proposal.point)
        if not self._may_begin(point, remaining):
            study.discard()
            return None
        if proposal.origin == DESIGN and run.budget.seconds is not None:
            affordable = math.inf if self.verifies else seconds
            point = self._candidates.for_few_trials(point, run.budget.seconds, affordable)
        too_late = final and not self._candidates.is_at_target(point)
        if too_late and verification is not None and not verification.should_try_target(run):
            study.discard()
            return None
        other = self._candidates.untried_like(point, math.inf if remaining is None else remaining)
        if other is None:
            study.discard()
            return None
        return study.accept(replace(proposal, point=other), queued=True)

    def _may_begin(self, point: Array, remaining: float | None) -> bool:
        """Whether a trial may begin: without verification, only if its predicted cost is at most `remaining`."""
        if self.verifies or remaining is None:
            return True
        return self._candidates.predicted_cost(point) <= remaining

    def _can_run_all(self, run: RunState, seconds: float) -> bool:
        """Whether the budget allows every candidate on all rows; trials on few rows are then useless."""
        limit = run.budget.trials
        if self._n_configurations == 1 or (limit is not None and limit <= N_FINALISTS):
            return True
        if math.isinf(self._n_configurations) or self._verification is None:
            return False
        if self._n_configurations <= N_FINALISTS:
            return True
        if self._candidates.all_failed_at_target:  # fewer rows may work
            return False
        n_left = self._candidates.n_left()
        if math.isinf(seconds):
            # One trial on few rows and one on all rows for each candidate: a search would use as many trials.
            return run.trials_left >= 2 * n_left
        return run.trials_left >= n_left and self._candidates.all_affordable(seconds)

    def _retry_on_more_rows(self, study: Study) -> Suggestion:
        """While every trial has failed, a random candidate on twice as many rows for each failure."""
        n_failed = int(study.history.failed.sum())
        size = min(round(self._candidates.min_size * 2.0 ** min(n_failed, 64)), self._max_size)
        config = self._candidates.random_configuration(size)
        return study.ask_for(config, self._candidates.fidelity(size), queued=True, origin=RANDOM)

    def _first_trial_of_fit(self, run: RunState) -> Suggestion | None:
        """One trial if this fit has run none, however short the budget.

        A continued search runs its incumbent: on all rows if that was never done, else on the smallest size,
        because the trial is not needed.
        """
        study, verify = run.study, self._verification is not None
        if len(study.trials) > self._n_before:
            return None
        incumbent = study.incumbent()
        if incumbent is None:
            if not verify:
                return study.ask(queued=True)
            return study.ask_for(
                self._candidates.random_configuration(self._max_size), queued=True, origin=RANDOM
            )
        size = self._max_size if verify and not incumbent.verified else self._candidates.min_size
        fidelity = self._candidates.fidelity(size)
        if not verify:
            return study.ask_for(incumbent.config, fidelity, queued=True)
        return ask_to_verify(study, incumbent.config, fidelity)

    def _only_failures(self, run: RunState) -> bool:
        history = run.study.history
        return not history.complete.any() and int(history.failed.sum()) >= _MAX_FAILURES
