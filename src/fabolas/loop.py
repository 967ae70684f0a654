"""The loop that asks, has evaluated and tells until the budget is used up."""

import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType

import numpy as np

from fabolas.budget import Allowance, Budget
from fabolas.execution import NO_LIMITS, RESOLUTION, Ended, Event, Job, Limits, Place, Started
from fabolas.history import Incumbent, Suggestion, Trial
from fabolas.progress import Report, Snapshot, reporting
from fabolas.result import Result
from fabolas.study import Study

# After looking at the incumbent, so many times as long passes before the next look: with trials of milliseconds a
# look after each of them would be most of our thinking.
_PATIENCE = 100.0
# A suggestion is prepared in advance if workers would otherwise wait for more than this share of their time.
_NEGLIGIBLE = 0.02
_INTERRUPTED = "interrupted: Ctrl-C while it was running"


class Loop:
    """Keeps a place busy with a study's suggestions, from its arguments checked to its result.

    Args:
        study: What asks and is told.
        place: Where trials run.
        budget: What the run may use.
        clock: Seconds from any origin.
        start: When the run began, by the clock.
        fresh_budget: Whether what the record has used already is left out of account.
        max_failures: So many failures in a row end the run.
        limits: What a trial may use.
    """

    def __init__(
        self,
        study: Study,
        place: Place,
        budget: Budget,
        clock: Callable[[], float],
        start: float,
        *,
        fresh_budget: bool = False,
        max_failures: int = 10,
        limits: Limits = NO_LIMITS,
    ) -> None:
        self._study, self._place, self._budget = study, place, budget
        self._clock, self._start = clock, start
        self._max_failures, self._limits = max_failures, limits
        self._used = study.elapsed  # before this run
        self._ended = len(study.trials)
        self._worked = float(study.history.costs.sum())
        self._uncounted = (self._used, self._ended) if fresh_budget else (0.0, 0)
        study.allow(Allowance(budget, time.time(), self._used, *self._uncounted))
        self._shown = True
        self._stopping = False
        self._failures = 0
        self._why: str | None = None  # the run ends before its budget does
        self._stopped = False  # at once
        self._inside = False  # the objective itself, which only an exception can end
        self._incumbent: Incumbent | None = None
        self._look_again = 0.0  # when to ask for the incumbent next
        self._seen = len(study.trials)  # trials when it was last asked for
        self._trajectory: list[tuple[float, Incumbent]] = []
        if place.ahead:
            study.elapsed_by = lambda: self._used + self._passed()
            place.listen(study.arrived)

    def __call__(self, progress: bool) -> Result:
        """Run to the end of the budget, of the user's patience, or of a row of failures."""
        study, self._shown = self._study, progress
        with (
            reporting(progress, self._budget, self._by_clock) as report,
            _interrupts(lambda: self._finish(report), self._stop),
        ):
            try:
                self._update(report)
                while self._step(report):
                    pass
            except KeyboardInterrupt:
                self._abandon()
            self._update(report)
        if self._why is not None:
            self._give_up(self._why)
        return Result(
            self._incumbent,
            study.trials,
            tuple(self._trajectory),
            self._elapsed(),
            study.thinking,
            study.seed,
            interrupted=self._stopping and self._why is None,
            given_up=self._why,
        )

    def _step(self, report: Report) -> bool:
        """Ask if there is room for more, then hear what has happened; whether there is anything left to do."""
        if self._stopped:
            raise KeyboardInterrupt
        if self._wants_more():
            self._ask()
            self._report(report)
            timeout: float | None = 0.0
        elif not self._study.pending:
            return False
        else:
            self._withdraw_what_waits()
            timeout = self._until_the_end() if self._study.pending else 0.0
        while (event := self._next(timeout)) is not None:
            if isinstance(event, Started):
                self._study.start(event.id, event.at)
                self._report(report)
            else:
                self._tell(event)
                if self._clock() >= self._look_again:
                    self._update(report)
            timeout = 0.0
        return True

    def _next(self, timeout: float | None) -> Event | None:
        self._inside = not self._place.ahead
        try:
            if self._inside and self._stopped:  # by a Ctrl-C that came too soon to end the objective itself
                raise KeyboardInterrupt
            return self._place.next(timeout)
        finally:
            self._inside = False

    def _wants_more(self) -> bool:
        if self._over():
            return False
        trials, waiting = self._budget.trials, len(self._study.pending)
        if trials is not None and len(self._study.trials) - self._uncounted[1] + waiting >= trials:
            return False
        return waiting < self._place.capacity + self._thinks_ahead()

    def _over(self) -> bool:
        trials = len(self._study.trials) - self._uncounted[1]
        return self._stopping or self._budget.used_up(self._elapsed(), trials)

    def _thinks_ahead(self) -> bool:
        """Whether a suggestion is to wait for the next worker, rather than the worker for a suggestion.

        A suggestion made later knows one outcome more. That is worth having where thinking is short against a
        trial: n workers wait for n suggestions while each of them runs one trial.
        """
        history = self._study.history
        if not self._place.ahead or not history.complete.any():
            return self._place.ahead
        thinking = float(np.mean(history.thinking[-10:]))
        trial = float(np.median(history.costs[history.complete][-10:]))
        return self._place.capacity * thinking > _NEGLIGIBLE * trial

    def _ask(self) -> None:
        suggestion = self._study.ask(remaining=self._remaining(), queued=True)
        self._place.submit(
            Job(suggestion.id, suggestion.config, suggestion.fidelity, self._timeout(suggestion))
        )
        if self._stopping:  # while it was thought about
            self._withdraw_what_waits()

    def _timeout(self, suggestion: Suggestion) -> float | None:
        complete = self._study.history.costs[self._study.history.complete]
        longest = float(complete.max()) if len(complete) else None
        return self._limits.timeout(suggestion.predicted_cost, longest)

    def _withdraw_what_waits(self) -> None:
        """Once the run is over, what no worker has begun with is taken back, as if never asked for."""
        if not self._over():
            return
        for suggestion in self._study.pending[::-1]:
            if self._place.withdraw(suggestion.id):
                self._study.withdraw(suggestion)

    def _tell(self, ended: Ended) -> None:
        study = self._study
        if ended.status == "complete":
            assert ended.loss is not None
            study.tell(ended.id, ended.loss, max(ended.cost, RESOLUTION), ended.info)
        elif ended.status == "failed":
            study.fail(ended.id, ended.error or "", ended.cost)
        else:
            study.lose(ended.id, ended.error or "", ended.cost)
        if ended.fatal and self._why is None:
            self._why = f"no trial can be run any more, so the run has ended; the record stays: {ended.error}"
        self._failures = self._failures + 1 if ended.status == "failed" else 0
        if self._failures >= self._max_failures and self._why is None:
            self._why = _too_many(self._failures, study.trials[-1])
        self._stopping = self._stopping or self._why is not None

    def _finish(self, report: Report) -> None:
        """Begin with nothing new; called from a signal handler."""
        self._stopping = True
        self._place.wake()
        report.notice("Ctrl-C: waiting for what is running; press it again to stop now")

    def _stop(self) -> None:
        """End even what runs, as soon as no step of the record is cut in two; called from a signal handler."""
        self._stopped = True
        if self._inside:
            raise KeyboardInterrupt
        self._place.wake()

    def _abandon(self) -> None:
        """Stop now: what waits is taken back, what runs is lost."""
        self._inside = False  # the third Ctrl-C may have come before that was said
        self._stopping = True
        self._withdraw_what_waits()
        self._place.close()
        while self._study.pending and (event := self._place.next(0.0)):
            # What has happened by now is kept, and what was stopped with the time it took.
            if isinstance(event, Started):
                self._study.start(event.id, event.at)
            else:
                self._tell(event if event.status != "lost" else replace(event, error=_INTERRUPTED))
        for suggestion in self._study.pending:
            self._study.lose(suggestion, _INTERRUPTED)

    def _give_up(self, why: str) -> None:
        """An error if nothing was ever found; else a warning, and the result so far."""
        if not self._study.history.complete.any():
            raise RuntimeError(why)
        warnings.warn(why, RuntimeWarning, stacklevel=4)

    def _by_clock(self) -> float:
        return self._clock() - self._start + self._used - self._uncounted[0]

    def _passed(self) -> float:
        """Seconds since the run began: by the clock, or by the record where an objective states its costs."""
        if self._place.ahead:
            recorded = (float(self._study.history.costs.sum()) - self._worked) / self._place.capacity
        else:
            recorded = self._study.elapsed - self._used
        return max(self._clock() - self._start, recorded)

    def _elapsed(self) -> float:
        """Seconds used of the budget."""
        return self._passed() + self._used - self._uncounted[0]

    def _remaining(self) -> float | None:
        """Seconds left of the budget: by the record where that can be repeated exactly, else by the clock."""
        if self._budget.seconds is None:
            return None
        if self._place.ahead:
            return self._budget.seconds - self._elapsed()
        return self._budget.seconds - (self._study.elapsed - self._uncounted[0])

    def _until_the_end(self) -> float | None:
        if self._budget.seconds is None or self._over():
            return None
        return max(self._budget.seconds - self._elapsed(), 0.001)

    def _update(self, report: Report) -> None:
        start = self._clock()
        self._incumbent = self._study.incumbent()
        now = self._clock()
        self._look_again = now + _PATIENCE * (now - start)
        if self._incumbent is not None and len(self._study.trials) > self._seen:
            self._trajectory.append((self._elapsed(), self._incumbent))
        self._seen = len(self._study.trials)
        self._report(report)

    def _report(self, report: Report) -> None:
        # A snapshot looks at every trial, which with thousands of short ones is most of a step.
        if not self._shown:
            return
        study = self._study
        news = Snapshot.of(
            study.space,
            study.history,
            study.running,
            study.running_for,
            elapsed=self._elapsed(),
            thinking=study.thinking,
            incumbent=self._incumbent,
        )
        report(news)


@contextmanager
def _interrupts(first: Callable[[], None], second: Callable[[], None]) -> Iterator[None]:
    """The first Ctrl-C calls ``first``, and each further one ``second``.

    So an impatient third one does not disturb what the second has set going. They can only be caught in the main
    thread, and a handler of the user's own is not replaced.
    """
    usual = threading.current_thread() is threading.main_thread()
    if not usual or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    calls = [first]

    def handler(number: int, frame: FrameType | None) -> None:
        (calls.pop() if calls else second)()

    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _too_many(failures: int, trial: Trial) -> str:
    last = (trial.error or "unknown").strip()
    return (
        f"{failures} evaluations in a row failed (max_failures), so the run has ended; the record stays. "
        f"The last error was: {last.splitlines()[-1]}\n{last}"
    )
