"""The engine: the loop that asks for trials, has them evaluated and records the outcomes.

``minimize`` and ``FabolasSearchCV`` both run it. They differ in the backend, which evaluates trials, and in the
policy, which decides what runs next.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from fabolas.budget import Budget, Timer
from fabolas.dispatch import Dispatcher
from fabolas.display import safe_text
from fabolas.execution import NO_LIMITS, Backend, Ended, Limits, Started
from fabolas.execution.checkpoints import DEFAULT_CHECKPOINT_LIMITS, CheckpointLimits
from fabolas.interrupts import Interrupts
from fabolas.numeric_errors import default_error_state
from fabolas.policy import AskUntilUsedUp, Policy, RunState
from fabolas.progress import ProgressDisplay
from fabolas.run_log import RunLog, warn
from fabolas.stopping import NO_STOP_RULES, Shutdown, StopConditions, StopRules
from fabolas.study import Study
from fabolas.training_curves import TrainingCurves
from fabolas.trials import Incumbent, Trial

_INTERRUPTED = "interrupted: Ctrl-C while it was running"


@dataclass(frozen=True)
class RunSummary:
    """How a run of the engine ended; the trials are in the study.

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
        checkpoint_limits: CheckpointLimits = DEFAULT_CHECKPOINT_LIMITS,
        grace: float | None = None,
    ) -> None:
        self._study, self._policy = study, AskUntilUsedUp() if policy is None else policy
        self._finish_running, self._callbacks = finish_running, tuple(callbacks)
        self._run = RunState(
            study,
            budget,
            timer,
            workers=backend.capacity,
            asynchronous=backend.asynchronous,
            fresh_budget=fresh_budget,
            count_abandoned=count_abandoned,
            verify=self._policy.verifies,
        )
        self._log = RunLog(self._run, None)
        self._shutdown = Shutdown(max_failures)
        self._stop_conditions = StopConditions(stop_rules, study)
        self._curves = TrainingCurves(study, trial_directory, checkpoint_limits)
        self._dispatcher = Dispatcher(
            backend, self._run, self._shutdown, self._curves, limits, trial_directory, timer, grace
        )

    def run(
        self, progress: ProgressDisplay | None = None, interrupts: Interrupts | None = None
    ) -> RunSummary:
        """Run until the policy wants no more trials, or until the run is stopped earlier (see ``Shutdown``).

        Args:
            progress: Shows progress; None shows nothing.
            interrupts: Handles Ctrl-C, until the caller has closed everything; None leaves Ctrl-C to Python.
        """
        self._log = RunLog(self._run, progress)
        interrupts = Interrupts() if interrupts is None else interrupts
        interrupts.begin_run(self._finish if self._finish_running else self._stop, self._stop)
        try:
            self._log.run_started()
            try:
                self._shutdown.stop_if(self._stop_conditions.why_stop())
                self._log.show()
                self._dispatcher.start_workers()
                while self._step():
                    pass
            except KeyboardInterrupt:
                self._stop_running()
            self._update_incumbent()
            self._answer()
            self._curves.close()
            self._log.run_ended(self._shutdown.why)
        finally:
            interrupts.end_run()
        run, used, shutdown = self._run, self._run.used, self._shutdown
        if shutdown.error is not None:
            raise shutdown.error
        return RunSummary(
            run.incumbent,
            used.seconds,
            used.study_seconds,
            interrupted=shutdown.interrupted,
            given_up=shutdown.given_up,
            stopped=shutdown.stopped,
        )

    def _step(self) -> bool:
        """Start a trial if a worker is free, then record what has happened; False if nothing is left to do."""
        if self._shutdown.at_once:
            raise KeyboardInterrupt
        timeout: float | None = 0.0
        if not self._start_next():
            self._dispatcher.cancel_queued()
            if not self._study.pending:
                return False
            timeout = self._dispatcher.seconds_to_wait()
            if timeout is not None and timeout <= 0.0:
                self._dispatcher.abandon_running()
        # Inline: the first `next` returns Started, the second runs the objective.
        while (event := self._dispatcher.next_event(timeout)) is not None:
            if isinstance(event, Started):
                self._study.start(event.id, event.at)
                self._log.show()
            else:
                trial = self._tell(event)
                self._call_back(trial)
                if self._run.incumbent_is_due or self._stop_conditions.answer_is_due:
                    self._update_incumbent()
                self._shutdown.stop_if(self._stop_conditions.why_stop())
            timeout = 0.0
        return True

    @default_error_state()
    def _start_next(self) -> bool:
        """Submit the trial that the policy wants next; False if there is no free worker, or it wants none."""
        self._shutdown.stop_if(self._study.stop_reason)
        if self._shutdown.begun or not self._dispatcher.has_room():
            return False
        suggestion = self._policy.next(self._run)
        if suggestion is None:
            return False
        self._dispatcher.submit(suggestion)
        if self._shutdown.begun:  # Ctrl-C came while the suggestion was computed
            self._dispatcher.cancel_queued()
        self._log.show()
        return True

    @default_error_state()
    def _tell(self, ended: Ended) -> Trial:
        """Record the outcome of a trial, and end the run if too many trials in a row have failed."""
        trial = self._study.tell_outcome(ended, self._run.trial_elapsed)
        self._shutdown.check_failures(ended, trial)
        self._curves.update()
        if ended.notice:
            warn(safe_text(ended.notice))
        self._policy.trial_ended(trial, self._run)
        self._log.trial_ended(trial)
        self._stop_conditions.note(trial)
        return trial

    def _call_back(self, trial: Trial) -> None:
        """Call the callbacks. An exception ends the run after the running trials; ``run`` raises it."""
        if self._shutdown.error is not None:
            return
        for callback in self._callbacks:
            try:
                callback(self._study, trial)
            except BaseException as error:  # noqa: BLE001 - raised again at the end of the run
                error.add_note(
                    f"fabolas: raised by a callback after trial {trial.id}; the running trials were waited for, and "
                    "every trial is in the storage, if there is one"
                )
                self._shutdown.fail(error)
                return

    def _finish(self) -> None:
        """Start no new trial; called by the signal handler."""
        self._shutdown.interrupt()
        self._dispatcher.wake()
        self._log.notice("Ctrl-C: waiting for the running trials; press it again to stop them now")

    def _stop(self) -> None:
        """Stop running trials too, but not in the middle of a write; called by the signal handler."""
        self._shutdown.interrupt_at_once()
        self._dispatcher.wake()

    def _stop_running(self) -> None:
        """Cancel what is queued, stop what is running, and keep what has ended by now."""
        for event in self._dispatcher.stop_running():
            if isinstance(event, Started):
                self._study.start(event.id, event.at)
            else:
                ended = event if event.status != "abandoned" else replace(event, error=_INTERRUPTED)
                self._call_back(self._tell(ended))
        for suggestion in self._study.pending:
            self._study.abandon(suggestion, _INTERRUPTED, elapsed=self._run.trial_elapsed)

    @default_error_state()
    def _update_incumbent(self) -> None:
        self._run.update_incumbent()
        self._log.show()

    @default_error_state()
    def _answer(self) -> None:
        """Record the policy's answer as that of the run, and show it."""
        answer = self._policy.answer(self._run)
        if answer is not None:
            self._run.save_answer(answer)
            self._log.show()
