"""What runs next: the engine asks a policy, and the policy asks the study.

``minimize`` uses ``VerifyingPolicy`` (verification.py) if ``verify`` is true, the space has fidelities and the strategy
predicts; else ``AskUntilUsedUp``. ``FabolasSearchCV`` has a policy with more rules.
"""

import math
from dataclasses import replace
from typing import Protocol

from fabolas.budget import Budget, RunBudget, Timer, Usage
from fabolas.study import Study
from fabolas.trials import Incumbent, Suggestion, Trial

# Before the incumbent is computed again, this many times as much of the budget passes as the last computation took.
# With trials of milliseconds, computing it after each of them would be most of the overhead. Stated costs are time too.
_INCUMBENT_INTERVAL = 100.0


class RunState:
    """How far a run is: what it has used of its budget, and the incumbent. Policies read it.

    Args:
        study: The study of the run.
        budget: The limits of the run.
        timer: Started with the run.
        workers: Number of trials at once.
        asynchronous: Whether trials run while the engine does something else.
        fresh_budget: Whether to count the budget from now. Time and trials of earlier runs then do not count.
        count_abandoned: Whether abandoned trials count towards the number of trials.
        verify: Whether the answer of the run should be a configuration that was evaluated at the target.

    Attributes:
        study: The study of the run.
        budget: The limits of the run.
        n_workers: Number of trials at once.
        incumbent: The incumbent when it was last computed, in this run or before; None if there is none.
        n_trials_at_update: Number of trials when this run last computed the incumbent; 0 before.
    """

    def __init__(
        self,
        study: Study,
        budget: Budget,
        timer: Timer,
        *,
        workers: int = 1,
        asynchronous: bool = False,
        fresh_budget: bool = False,
        count_abandoned: bool = True,
        verify: bool = False,
    ) -> None:
        self.study, self.budget, self._timer = study, budget, timer
        self.n_workers, self._asynchronous = workers, asynchronous
        self._run_budget = RunBudget.start(
            budget,
            timer.started,
            study.history,
            study.elapsed,
            fresh=fresh_budget,
            count_abandoned=count_abandoned,
            verify=verify,
            workers=workers if asynchronous else None,
        )
        study.save_run_budget(self._run_budget)
        # A continued study starts with its last recorded incumbent: computing it can take longer than a short budget.
        self.incumbent: Incumbent | None = study.trajectory[-1][1] if study.trajectory else None
        self.n_trials_at_update = 0
        self._next_update = -math.inf

    def restart_timer(self) -> None:
        """Count the seconds of this run from now."""
        self._timer.restart()
        self._run_budget = replace(self._run_budget, started=self._timer.started)
        self.study.save_run_budget(self._run_budget)

    @property
    def used(self) -> Usage:
        """What the run has used of its budget until now."""
        return self._used(by_clock=True)

    @property
    def seconds_used_before(self) -> float:
        """Seconds used of the budget when the run started."""
        return self._run_budget.seconds_before

    @property
    def trial_elapsed(self) -> float | None:
        """``elapsed`` of a trial that ends now; None if trials run one after another: then the study computes it."""
        return self.used.study_seconds if self._asynchronous else None

    @property
    def trials_left(self) -> float:
        """The limit minus ended and pending trials; infinite without a limit."""
        limit = self.budget.trials
        return math.inf if limit is None else limit - self.used.trials - len(self.study.pending)

    @property
    def used_up(self) -> bool:
        """Whether the budget is used up."""
        used = self.used
        return self.budget.used_up(used.seconds, used.trials)

    @property
    def seconds_left(self) -> float:
        """Seconds left of the budget; infinite without a time budget."""
        return math.inf if self.budget.seconds is None else self.budget.seconds - self.used.seconds

    @property
    def remaining(self) -> float | None:
        """Seconds left of the budget, as `study.ask` and `study.propose` take them; None without a time budget.

        Unlike `seconds_left`, it is computed from the record and not from the clock if trials run one after another.
        So the same record gives the same suggestion.
        """
        if self.budget.seconds is None:
            return None
        if self._asynchronous:
            return self.seconds_left
        return self.budget.seconds - self._used(by_clock=False).seconds

    def _used(self, *, by_clock: bool) -> Usage:
        """What the run has used of its budget, by the clock or by the record alone.

        Threads that wait for workers call it too, so with workers it must not read the pending suggestions.
        """
        return self._run_budget.usage(
            self.study.history,
            () if self._asynchronous else self.study.pending,
            run_seconds=self._timer() if by_clock else None,
        )

    @property
    def incumbent_is_due(self) -> bool:
        """Whether it is time to compute the incumbent again."""
        return self.used.seconds >= self._next_update

    def update_incumbent(self) -> Incumbent | None:
        """Compute the incumbent from all trials."""
        start = self._timer()
        self.incumbent = self.study.incumbent()
        self._next_update = self.used.seconds + _INCUMBENT_INTERVAL * (self._timer() - start)
        self.n_trials_at_update = len(self.study.trials)
        return self.incumbent

    def save_answer(self, answer: Incumbent) -> None:
        """Make the answer of the run the last incumbent, and save it in the study."""
        self.study.save_answer(answer)
        self.incumbent = answer


class Policy(Protocol):
    """Decides what runs next, when the run is over, and what its answer is.

    Attributes:
        verifies: Whether the answer should be a configuration that was evaluated at the target.
    """

    verifies: bool

    def next(self, run: RunState) -> Suggestion | None:
        """The next trial, taken from the study with ``queued=True``; None if none is wanted.

        The engine calls this whenever a worker is free. When it returns None and no trial is pending, the run ends.
        """
        ...

    def trial_ended(self, trial: Trial, run: RunState) -> None:
        """Called after each trial."""
        ...

    def answer(self, run: RunState) -> Incumbent | None:
        """The answer of the run; called once when it ends, after the last ``run.update_incumbent``."""
        ...


class AskUntilUsedUp:
    """Asks the study for one suggestion after another until the budget is used up."""

    verifies = False

    def next(self, run: RunState) -> Suggestion | None:
        if run.used_up or run.trials_left <= 0:
            return None
        return run.study.ask(remaining=run.remaining, queued=True)

    def trial_ended(self, trial: Trial, run: RunState) -> None:
        """Do nothing: this policy remembers nothing."""

    def answer(self, run: RunState) -> Incumbent | None:
        return run.incumbent
