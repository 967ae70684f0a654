"""The trials that are being evaluated: handed to the backend, waited for, cancelled or abandoned when the run ends."""

import math
import time
from collections.abc import Iterator

import numpy as np

from fabolas.budget import Timer
from fabolas.execution import Backend, Event, EventOrReport, Job, Limits
from fabolas.policy import RunState
from fabolas.run_log import warn
from fabolas.stopping import Shutdown
from fabolas.training_curves import TrainingCurves
from fabolas.trials import Suggestion

# A suggestion is prepared before a worker is free if workers would otherwise wait for more than this share of
# their time.
_NEGLIGIBLE_WAIT = 0.02
# How long a run waits for running trials after a time budget, and for the first worker to start: this long, or
# this share of the budget if that is longer.
_MIN_GRACE_SECONDS, _GRACE_SHARE = 60.0, 0.5


class Dispatcher:
    """Hands the suggestions of a study to a backend.

    Args:
        backend: Evaluates trials.
        run: How far the run is.
        shutdown: Whether the run is ending.
        curves: Prepares the jobs of trainings that report on the way.
        limits: What one trial may use.
        trial_directory: Where trials get directories of their own.
        timer: The timer of the run.
        grace: See ``Engine``.
    """

    def __init__(
        self,
        backend: Backend,
        run: RunState,
        shutdown: Shutdown,
        curves: TrainingCurves,
        limits: Limits,
        trial_directory: str,
        timer: Timer,
        grace: float | None,
    ) -> None:
        self._backend, self._run, self._study, self._shutdown = backend, run, run.study, shutdown
        self._curves, self._limits, self._trial_directory = curves, limits, trial_directory
        seconds = run.budget.seconds or 0.0
        self._grace = max(_MIN_GRACE_SECONDS, _GRACE_SHARE * seconds) if grace is None else grace
        self._timer = timer
        self._used_up_at: float | None = None  # by the timer, when the time budget was used up
        # Whether the objective runs in this thread, where only an exception can end it.
        self._in_objective = False
        backend.listen(self._save_event)

    def start_workers(self) -> None:
        """Start the workers. The budget starts when one of them can run a trial, or after the grace period."""
        if self._backend.asynchronous and not self._is_over():
            self._backend.start(self._grace)
            self._run.restart_timer()

    def has_room(self) -> bool:
        """Whether a worker is free, or a suggestion should be prepared for the next one that becomes free."""
        return len(self._study.pending) < self._backend.capacity + self._prepares_next()

    def submit(self, suggestion: Suggestion) -> None:
        """Have the trial of a suggestion evaluated."""
        left = self._run.seconds_left
        complete = self._study.history.costs[self._study.history.complete]
        longest = float(complete.max()) if len(complete) else None
        job = Job(
            suggestion.id,
            suggestion.config,
            suggestion.fidelity,
            self._limits.timeout(suggestion.predicted_cost, longest),
            None if math.isinf(left) else time.time() + left,
            self._trial_directory,
            curve=self._curves.curve(suggestion),
        )
        self._backend.submit(job)

    def next_event(self, timeout: float | None) -> Event | None:
        """The next event of the backend; None if there was none for ``timeout`` seconds, or after ``wake``."""
        self._in_objective = not self._backend.asynchronous
        try:
            if self._in_objective and self._shutdown.at_once:  # by a Ctrl-C just before the line above
                raise KeyboardInterrupt
            return self._backend.next(timeout)
        finally:
            self._in_objective = False

    def seconds_to_wait(self) -> float | None:
        """Seconds until the time budget is used up, or, after that, until the grace period ends; None for no limit."""
        if self._run.budget.seconds is None or not self._backend.asynchronous:
            return None
        if self._run.seconds_left > 0:
            return max(self._run.seconds_left, 0.001)
        if self._used_up_at is None:
            self._used_up_at = self._timer()
        left = self._used_up_at + self._grace - self._timer()
        return max(left, 0.001) if left > 0 else 0.0

    def abandon_running(self) -> None:
        """Wait no longer for running trials: the grace period after the budget is over."""
        pending = self._study.pending
        reason = f"it had not ended {self._grace:.4g} s after the end of the time budget (see grace)"
        for suggestion in pending:
            if not self._backend.abandon(suggestion.id, reason):
                self._study.abandon(suggestion, reason, elapsed=self._run.trial_elapsed)
        ids = ", ".join(f"#{suggestion.id}" for suggestion in pending)
        n, they_are = ("1 trial", "it is") if len(pending) == 1 else (f"{len(pending)} trials", "they are")
        text = (
            f"{n} ({ids}) had not ended {self._grace:.4g} s after the end of the time budget, so "
            f"{they_are} no longer waited for and recorded as abandoned; give a longer time_budget or grace"
        )
        warn(text)

    def cancel_queued(self) -> None:
        """Once the run is over, cancel the suggestions that no worker has started."""
        if not self._is_over():
            return
        for suggestion in self._study.pending[::-1]:
            if self._backend.cancel(suggestion.id):
                self._study.cancel(suggestion)

    def stop_running(self) -> Iterator[Event]:
        """Cancel what is queued, stop what is running, and give the events of what has ended by now."""
        self._in_objective = False  # so that a third Ctrl-C does not raise in the lines below
        self._shutdown.begun = True
        self.cancel_queued()
        self._backend.close()
        while self._study.pending and (event := self._backend.next(0.0)):
            yield event

    def wake(self) -> None:
        """Make ``next_event`` return now. A signal handler may call this.

        Raises:
            KeyboardInterrupt: If running trials are to be stopped too, and the objective runs in this thread.
        """
        if self._in_objective and self._shutdown.at_once:
            raise KeyboardInterrupt
        self._backend.wake()

    def _is_over(self) -> bool:
        return self._shutdown.begun or self._run.used_up

    def _prepares_next(self) -> bool:
        """Whether to prepare a suggestion before a worker is free, so that the worker does not wait for it.

        A suggestion that is prepared early knows one outcome less. So one is prepared only if it saves time: if n
        suggestions for n workers take longer than 2 % of a trial. Before a trial is complete, one is always prepared.
        """
        if not self._backend.asynchronous:
            return False
        history = self._study.history
        if not history.complete.any():
            return True
        overhead = float(np.mean(history.overheads[-10:]))
        trial = float(np.median(history.costs[history.complete][-10:]))
        return self._backend.capacity * overhead > _NEGLIGIBLE_WAIT * trial

    def _save_event(self, event: EventOrReport) -> None:
        """Have the storage keep an event at once; called by the threads that wait for workers."""
        self._study.save_event(event, self._run.trial_elapsed)
