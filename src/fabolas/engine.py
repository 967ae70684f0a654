"""The engine: the loop that asks for trials, has them evaluated and records the outcomes.

``minimize`` and ``FabolasSearchCV`` both run it. They differ in the backend, which evaluates trials, and in the
policy, which decides what runs next.
"""

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fabolas.budget import Budget, Timer
from fabolas.caller_warning import warn_caller
from fabolas.display import error_summary, safe_lines, safe_text
from fabolas.execution import NO_LIMITS, Backend, Ended, Event, Job, Limits, News, Started
from fabolas.execution.checkpoints import DEFAULT_LIMITS, CheckpointLimits
from fabolas.interrupts import Interrupts
from fabolas.numeric_errors import default_error_state
from fabolas.policy import AskUntilUsedUp, Policy, RunState
from fabolas.progress import ProgressDisplay, Snapshot, duration
from fabolas.progress.text import loss as loss_text
from fabolas.stopping import NO_STOP_RULES, StopConditions, StopRules
from fabolas.study import Study
from fabolas.training_curves import TrainingCurves
from fabolas.trials import Incumbent, Suggestion, Trial

# A suggestion is prepared before a worker is free if workers would otherwise wait for more than this share of
# their time.
_NEGLIGIBLE_WAIT = 0.02
_INTERRUPTED = "interrupted: Ctrl-C while it was running"
# How long the engine waits for running trials after a time budget, and for the first worker to start: this long, or
# this share of the budget if that is longer.
_MIN_GRACE_SECONDS, _GRACE_SHARE = 60.0, 0.5

log = logging.getLogger("fabolas")
log.addHandler(logging.NullHandler())  # nothing on the terminal unless the user configures logging


@dataclass(frozen=True)
class Run:
    """The result of one run of the engine; the trials are in the study.

    Attributes:
        incumbent: The best configuration when the run ended; None if there is none.
        elapsed: Seconds used of the budget.
        study_elapsed: Seconds that the study has used, those that do not count towards the budget included.
        interrupted: Whether Ctrl-C ended the run.
        given_up: Why the run gave up (too many failures in a row, or no worker is left), as a sentence; None if not.
        stopped: Why a stop condition or ``study.stop()`` ended the run; None if none did.
    """

    incumbent: Incumbent | None
    elapsed: float
    study_elapsed: float
    interrupted: bool
    given_up: str | None
    stopped: str | None = None


Callback = Callable[[Study, Trial], object]
"""Called after each trial, in the main thread."""


class Engine:
    """Keeps a backend busy with a study's suggestions until the policy wants no more.

    Args:
        study: Suggests trials and records them.
        backend: Evaluates trials.
        budget: The limits of the run.
        timer: Started with the run.
        policy: Decides what runs next; by default the study is asked until the budget is used up.
        fresh_budget: Whether to count the budget from now. Time and trials of earlier runs then do not count.
        max_failures: The run ends after this many failures in a row.
        limits: What one trial may use.
        finish_running: Whether the first Ctrl-C waits for running trials; otherwise it stops them at once.
        count_abandoned: Whether abandoned trials count towards the number of trials.
        callbacks: Called after each trial with the study and the trial. If one raises, the run ends as after Ctrl-C,
            and ``run`` raises the exception.
        stop_rules: When the run ends before its budget is used up.
        trial_directory: Where trials get directories of their own.
        checkpoint_limits: How many checkpoints of trainings are kept.
        grace: Seconds after the end of a time budget until running trials are abandoned, and seconds to wait for the
            first worker; None for a minute, or half of the budget if that is longer.
    """

    def __init__(
        self,
        study: Study,
        backend: Backend,
        budget: Budget,
        timer: Timer,
        *,
        policy: Policy | None = None,
        fresh_budget: bool = False,
        max_failures: float = 10,
        limits: Limits = NO_LIMITS,
        finish_running: bool = True,
        count_abandoned: bool = True,
        callbacks: Sequence[Callback] = (),
        stop_rules: StopRules = NO_STOP_RULES,
        trial_directory: str = "",
        checkpoint_limits: CheckpointLimits = DEFAULT_LIMITS,
        grace: float | None = None,
    ) -> None:
        self._study, self._backend, self._budget, self._timer = study, backend, budget, timer
        self._policy = AskUntilUsedUp() if policy is None else policy
        self._max_failures, self._limits, self._finish_running = max_failures, limits, finish_running
        self._state = RunState(
            study,
            budget,
            timer,
            workers=backend.capacity,
            asynchronous=backend.asynchronous,
            fresh_budget=fresh_budget,
            count_abandoned=count_abandoned,
            verify=self._policy.verifies,
        )
        self._progress: ProgressDisplay | None = None
        self._callbacks, self._trial_directory = tuple(callbacks), trial_directory
        self._curves = TrainingCurves(study, trial_directory, checkpoint_limits)
        self._callback_error: BaseException | None = None
        self._stop_conditions = StopConditions(stop_rules, study)
        self._grace = (
            max(_MIN_GRACE_SECONDS, _GRACE_SHARE * (budget.seconds or 0.0)) if grace is None else grace
        )
        self._used_up_at: float | None = None  # by the timer, when the time budget was used up
        self._failures = 0  # in a row
        self._given_up: str | None = None
        self._why_stopped: str | None = None
        self._interrupted = False
        self._ending = False  # no new trial is started
        self._stopped = False  # running trials are stopped too
        self._in_objective = False  # in this thread, where only an exception can end it
        backend.listen(self._save_event)

    def run(self, progress: ProgressDisplay | None = None, interrupts: Interrupts | None = None) -> Run:
        """Run until the policy wants no more trials, Ctrl-C, or too many failures in a row.

        Args:
            progress: Shows progress; None shows nothing.
            interrupts: Handles Ctrl-C, until the caller has closed everything; None leaves Ctrl-C to Python.
        """
        self._progress = progress
        interrupts = Interrupts() if interrupts is None else interrupts
        interrupts.begin_run(self._finish if self._finish_running else self._stop, self._stop)
        try:
            log.info("%s", self._started_text())
            try:
                self._stop_if(self._stop_conditions.why_stop())
                self._show()
                self._start_workers()
                while self._step():
                    pass
            except KeyboardInterrupt:
                self._stop_running()
            self._update()
            self._answer()
            self._curves.close()
            log.info("%s", self._ended_text())
        finally:
            interrupts.end_run()
        if self._callback_error is not None:
            raise self._callback_error
        return Run(
            self._state.incumbent,
            self._state.seconds_used,
            self._state.study_elapsed,
            interrupted=self._interrupted,
            given_up=self._given_up,
            stopped=self._why_stopped,
        )

    def _start_workers(self) -> None:
        """Start the workers. The budget starts when one of them can run a trial, or after the grace period."""
        if self._backend.asynchronous and not self._is_over():
            self._backend.start(self._grace)
            self._state.restart_timer()

    def _step(self) -> bool:
        """Start a trial if a worker is free, then record what has happened; False if nothing is left to do."""
        if self._stopped:
            raise KeyboardInterrupt
        timeout: float | None = 0.0
        if not self._start_next():
            self._cancel_queued()
            if not self._study.pending:
                return False
            timeout = self._seconds_to_wait()
            if timeout is not None and timeout <= 0.0:
                self._abandon_running()
        # An inline backend first returns Started; the next call runs the objective.
        while (event := self._next_event(timeout)) is not None:
            if isinstance(event, Started):
                self._study.start(event.id, event.at)
                self._show()
            else:
                self._call_back(self._tell(event))
                if self._state.incumbent_is_due or self._stop_conditions.answer_is_due:
                    self._update()
                self._stop_if(self._stop_conditions.why_stop())
            timeout = 0.0
        return True

    @default_error_state()
    def _start_next(self) -> bool:
        """Submit the trial that the policy wants next; False if there is no free worker, or it wants none."""
        self._stop_if(self._study.stop_requested)
        if self._ending or len(self._study.pending) >= self._backend.capacity + self._prepares_next():
            return False
        suggestion = self._policy.next(self._state)
        if suggestion is None:
            return False
        self._backend.submit(self._job(suggestion))
        if self._ending:  # Ctrl-C came while the suggestion was computed
            self._cancel_queued()
        self._show()
        return True

    def _job(self, suggestion: Suggestion) -> Job:
        left = self._state.seconds_left
        return Job(
            suggestion.id,
            suggestion.config,
            suggestion.fidelity,
            self._timeout(suggestion),
            None if math.isinf(left) else time.time() + left,
            self._trial_directory,
            curve=self._curves.curve(suggestion),
        )

    def _prepares_next(self) -> bool:
        """Whether to prepare a suggestion before a worker is free, so that the worker does not wait for it.

        A suggestion that is prepared early is based on one outcome less. So one is prepared only if n workers would
        wait for n suggestions longer than 2 % of a trial.
        """
        if not self._backend.asynchronous:
            return False
        history = self._study.history
        if not history.complete.any():
            return True
        overhead = float(np.mean(history.overheads[-10:]))
        trial = float(np.median(history.costs[history.complete][-10:]))
        return self._backend.capacity * overhead > _NEGLIGIBLE_WAIT * trial

    def _timeout(self, suggestion: Suggestion) -> float | None:
        complete = self._study.history.costs[self._study.history.complete]
        longest = float(complete.max()) if len(complete) else None
        return self._limits.timeout(suggestion.predicted_cost, longest)

    def _next_event(self, timeout: float | None) -> Event | None:
        self._in_objective = not self._backend.asynchronous
        try:
            if self._in_objective and self._stopped:  # by a Ctrl-C just before the line above
                raise KeyboardInterrupt
            return self._backend.next(timeout)
        finally:
            self._in_objective = False

    def _seconds_to_wait(self) -> float | None:
        """Seconds until the time budget is used up, and then until the end of the grace period; None for no limit."""
        if self._budget.seconds is None or not self._backend.asynchronous:
            return None
        if self._state.seconds_left > 0:
            return max(self._state.seconds_left, 0.001)
        if self._used_up_at is None:
            self._used_up_at = self._timer()
        left = self._used_up_at + self._grace - self._timer()
        return max(left, 0.001) if left > 0 else 0.0

    def _abandon_running(self) -> None:
        """Wait no longer for running trials: the grace period after the budget is over."""
        pending = self._study.pending
        reason = f"it had not ended {self._grace:.4g} s after the end of the time budget (see grace)"
        for suggestion in pending:
            if not self._backend.abandon(suggestion.id, reason):
                self._study.abandon(suggestion, reason, elapsed=self._state.study_elapsed)
        ids = ", ".join(f"#{suggestion.id}" for suggestion in pending)
        n, they_are = ("1 trial", "it is") if len(pending) == 1 else (f"{len(pending)} trials", "they are")
        text = (
            f"{n} ({ids}) had not ended {self._grace:.4g} s after the end of the time budget, so "
            f"{they_are} no longer waited for and recorded as abandoned; give a longer time_budget or grace"
        )
        log.warning("%s", text)
        warn_caller(text, RuntimeWarning)

    def _is_over(self) -> bool:
        return self._ending or self._state.used_up

    def _cancel_queued(self) -> None:
        """Once the run is over, cancel the suggestions that no worker has started."""
        if not self._is_over():
            return
        for suggestion in self._study.pending[::-1]:
            if self._backend.cancel(suggestion.id):
                self._study.cancel(suggestion)

    def _save_event(self, event: News) -> None:
        """Have the storage keep an event at once; called by the threads that wait for workers."""
        self._study.save_event(event, self._state.study_elapsed)

    @default_error_state()
    def _tell(self, ended: Ended) -> Trial:
        """Record the outcome of a trial, and end the run if there is no point in going on."""
        trial = self._study.tell_outcome(
            ended, self._state.study_elapsed if self._backend.asynchronous else None
        )
        if ended.fatal and self._given_up is None:
            self._given_up = (
                f"no trial can be run any more, so the run has ended; its record is kept: "
                f"{safe_lines(ended.error)}"
            )
        self._failures = self._failures + 1 if ended.status == "failed" else 0
        if self._failures >= self._max_failures and self._given_up is None:
            self._given_up = _too_many_failures(self._failures, trial)
        self._ending = self._ending or self._given_up is not None
        self._curves.update()
        if ended.notice:
            log.warning("%s", safe_text(ended.notice))
            warn_caller(safe_text(ended.notice), RuntimeWarning)
        self._policy.ended(trial, self._state)
        log.info("%s", _ended_trial_text(trial))
        self._stop_conditions.note(trial)
        return trial

    def _call_back(self, trial: Trial) -> None:
        """Call the callbacks. An exception ends the run after the running trials; ``run`` raises it."""
        for callback in self._callbacks if self._callback_error is None else ():
            try:
                callback(self._study, trial)
            except BaseException as error:  # noqa: BLE001 - raised again at the end of the run
                error.add_note(
                    f"fabolas: raised by a callback after trial {trial.id}; the running trials were waited for, and "
                    "every trial is in the storage, if there is one"
                )
                self._callback_error, self._ending = error, True
                return

    def _stop_if(self, why: str | None) -> None:
        """Start no new trial if there is a reason."""
        if why is not None and not self._ending:
            self._why_stopped, self._ending = why, True

    def _finish(self) -> None:
        """Start no new trial; called by the signal handler."""
        self._interrupted = self._interrupted or not self._ending
        self._ending = True
        self._backend.wake()
        if self._progress is not None:
            self._progress.notice("Ctrl-C: waiting for the running trials; press it again to stop them now")

    def _stop(self) -> None:
        """Stop running trials too, but not in the middle of a write; called by the signal handler."""
        self._interrupted = self._stopped = True
        if self._in_objective:
            raise KeyboardInterrupt
        self._backend.wake()

    def _stop_running(self) -> None:
        """Cancel what is queued, stop what is running, and keep what has ended by now."""
        self._in_objective = False  # so that a third Ctrl-C does not raise in the lines below
        self._ending = True
        self._cancel_queued()
        self._backend.close()
        while self._study.pending and (event := self._backend.next(0.0)):
            if isinstance(event, Started):
                self._study.start(event.id, event.at)
            else:
                ended = event if event.status != "abandoned" else replace(event, error=_INTERRUPTED)
                self._call_back(self._tell(ended))
        elapsed = self._state.study_elapsed if self._backend.asynchronous else None
        for suggestion in self._study.pending:
            self._study.abandon(suggestion, _INTERRUPTED, elapsed=elapsed)

    @default_error_state()
    def _update(self) -> None:
        self._state.update_incumbent()
        self._show()

    @default_error_state()
    def _answer(self) -> None:
        """Record the policy's answer as that of the run, and show it."""
        answer = self._policy.answer(self._state)
        if answer is not None:
            self._state.save_answer(answer)
            self._show()

    def _started_text(self) -> str:
        """What the log says when the run starts."""
        budget, study = self._budget, self._study
        limits = [] if budget.seconds is None else [duration(budget.seconds)]
        limits += [] if budget.trials is None else [f"{budget.trials} trials"]
        at_once = f"{self._backend.capacity} at once" if self._backend.capacity > 1 else "one at a time"
        before = f", after {len(study.trials)} earlier trials" if study.trials else ""
        return (
            f"run started: {study.strategy.name}, seed {study.seed}, {' or '.join(limits)}, {at_once}{before}"
        )

    def _ended_text(self) -> str:
        """What the log says when the run ends."""
        incumbent, why = self._state.incumbent, self._given_up or self._why_stopped
        why = "interrupted" if why is None and self._interrupted else why
        best = "no answer"
        if incumbent is not None:
            best = f"best {loss_text(incumbent, self._study.history.best_measurement(self._study.sign))}"
        counts = f"{self._state.trials_used} trials in {duration(self._state.seconds_used)}"
        return f"run ended: {counts}, {best}{'' if why is None else f' ({safe_text(why)})'}"

    @default_error_state()
    def _show(self) -> None:
        # A snapshot looks at every trial: with thousands of short ones, that is most of a step.
        if self._progress is None:
            return
        study = self._study
        self._progress.update(
            Snapshot.of(
                study.space,
                study.history,
                study.running,
                study.running_for,
                elapsed=self._state.seconds_used,
                study_elapsed=self._state.study_elapsed,
                overhead=study.overhead,
                incumbent=self._state.incumbent,
                trials_before=len(study.trials) - self._state.trials_used,
                sign=study.sign,
            )
        )


def _ended_trial_text(trial: Trial) -> str:
    """What the log says when a trial ends."""
    where = ", ".join(f"{name}={value}" for name, value in trial.fidelity.items())
    how = f"loss {trial.loss:.6g}" if trial.loss is not None else error_summary(trial.error)
    return safe_text(
        f"trial {trial.id} {trial.status}: {how}, {trial.cost:.4g} s{f', {where}' if where else ''}"
    )


def _too_many_failures(failures: int, trial: Trial) -> str:
    last = (trial.error or "unknown").strip()
    return (
        f"{failures} trials in a row failed (max_failures), so the run has ended; its record is kept. "
        f"The last error was: {safe_text(error_summary(last))}\n{safe_lines(last)}"
    )
