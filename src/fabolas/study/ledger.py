"""The ledger of a study: what was suggested, what has ended, and how much overhead it took.

Every suggestion and every trial is written to the storage before it counts here. So a step that cannot be written has
not happened. Reports and early outcomes of workers are the exception, see ``save_event``.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from fabolas._types import Array
from fabolas.budget import Clock, RunBudget
from fabolas.curve_reports import Report
from fabolas.execution import Ended, EventOrReport, Reported, Started
from fabolas.numeric_errors import default_error_state
from fabolas.storage import Identity, Storage
from fabolas.strategies import Strategy
from fabolas.study.open_suggestions import (
    NO_REASON,
    OpenSuggestion,
    OpenSuggestions,
    abandoned_trial,
    as_outcome,
    ended_trial,
    failed_trial,
    report_of,
    reported_value,
    trial_from_elsewhere,
    with_new_id,
)
from fabolas.study.opening import end_unfinished
from fabolas.trials import History, Incumbent, Outcome, Suggestion, Trial


class OverheadTimer:
    """Measures the time that a study spends on its own work. The next suggestion records it as its overhead.

    Args:
        clock: Seconds from any origin.
        fixed: Seconds to record for every suggestion; None records the measured time.

    Attributes:
        measured: Seconds that no suggestion has recorded yet.
    """

    def __init__(self, clock: Clock, fixed: float | None) -> None:
        self._clock, self._fixed = clock, fixed
        self.measured = 0.0

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Count the time of the body as overhead."""
        start = self._clock()
        try:
            with default_error_state():
                yield
        finally:
            self.measured += self._clock() - start

    @property
    def next(self) -> float:
        """Seconds of overhead that the next suggestion records."""
        return self.measured if self._fixed is None else self._fixed

    @property
    def unrecorded(self) -> float:
        """Seconds of overhead that no suggestion has recorded yet; 0 if each suggestion records a fixed time."""
        return self.measured if self._fixed is None else 0.0

    def take_back(self, seconds: float) -> None:
        """Count these seconds again: the suggestion that had recorded them was cancelled."""
        self.measured += seconds if self._fixed is None else 0.0


class Ledger:
    """The ended trials and the pending suggestions of a study.

    Args:
        storage: Where the record is kept; it is opened here.
        identity: Which study it must be.
        clock: Seconds from any origin.
        timer: Measures overhead.

    Attributes:
        history: The ended trials.
        open_suggestions: The suggestions that have not ended.
        next_id: The id of the next suggestion.
        seed: The seed of the study.
        direction: Whether losses are minimised or maximised.
        strategy_state: The strategy's state that the storage held when it was opened; None if no suggestion was
            recorded.
        trajectory: (elapsed, incumbent) pairs.
        closed: Whether the storage was released; nothing can be recorded then.
    """

    def __init__(self, storage: Storage, identity: Identity, clock: Clock, timer: OverheadTimer) -> None:
        self._storage, self._clock, self._timer = storage, clock, timer
        self._space = identity.space
        self.direction = identity.direction
        self.open_suggestions = OpenSuggestions()
        self.closed = False
        record = storage.open(identity)
        try:
            self.seed, self.strategy_state = record.seed, record.state
            self.history = History(record.trials)
            self.trajectory = record.trajectory
            until = self.trajectory[-1][0] if self.trajectory else -1.0
            # Number of trials when the last incumbent of the trajectory was computed.
            self._n_noted = sum(trial.elapsed <= until for trial in self.history.trials)
            self.next_id = len(record.suggestions)
            for trial in end_unfinished(record, time.time()):
                self._append(trial)
            ended = {trial.id for trial in self.history.trials}
            for suggestion in record.open_suggestions:
                if suggestion.id not in ended:
                    self.open_suggestions.add(
                        OpenSuggestion(suggestion, waiting=True, kept_if_cancelled=True)
                    )
        except BaseException:
            storage.close()
            raise

    def restore(self, strategy: Strategy) -> None:
        """Give the strategy its state of the record, if there is one.

        Raises:
            ValueError: If the strategy cannot continue from it; the storage is then released.
        """
        if self.strategy_state is None:
            return
        try:
            strategy.restore(self.strategy_state)
        except Exception as error:
            self.close()
            raise ValueError(
                f"the storage holds a state that the strategy {strategy.name!r} cannot continue from ({error!r}); "
                "it is damaged, or was saved by another version of fabolas"
            ) from error

    @property
    def running_for(self) -> dict[int, float]:
        """Id -> seconds running, for all running suggestions."""
        return self.open_suggestions.running_for(self._clock())

    @property
    def overhead(self) -> float:
        """Seconds of overhead: of ended, pending and waiting suggestions, and what the next one will record."""
        still_open = sum(suggestion.overhead for suggestion in self.open_suggestions.all)
        return float(sum(self.history.overheads.tolist()) + still_open) + self._timer.unrecorded

    def hand_out(
        self, suggestion: Suggestion, state: dict[str, Array], state_before: dict[str, Array], *, queued: bool
    ) -> None:
        """Hand out a new suggestion.

        Args:
            suggestion: With the id ``next_id`` and the overhead ``OverheadTimer.next``.
            state: The strategy's state after it.
            state_before: The strategy's state before it.
            queued: Whether the evaluation starts later; until then the suggestion can be cancelled.
        """
        if queued:
            self._add(OpenSuggestion(suggestion, state_before=state_before), state)
        else:
            entry = OpenSuggestion(suggestion, started_at=time.time())
            self._add(entry, state)
            entry.clock_at_start = self._clock()

    def enqueue(self, suggestion: Suggestion, state: dict[str, Array]) -> None:
        """Record a suggestion that waits for the next ``ask``; arguments as for ``hand_out``."""
        self._add(OpenSuggestion(suggestion, waiting=True, kept_if_cancelled=True), state)

    def _add(self, entry: OpenSuggestion, state: dict[str, Array]) -> None:
        """Record a new suggestion, and with it the overhead until now."""
        recorded = self._timer.measured
        with self._timer.timed():
            self._storage.add_suggestion(entry.suggestion, state, entry.started_at)
        self._timer.measured -= recorded
        self.next_id += 1
        self.open_suggestions.add(entry)

    def start(self, suggestion: Suggestion | int, at: float | None) -> None:
        """The evaluation has started: now, or at a time in seconds since the epoch."""
        entry = self.find(suggestion)
        now = time.time()
        started_at = now if at is None else at
        started = self._clock() - max(now - started_at, 0.0)
        with self._timer.timed():
            self._storage.add_start(entry.suggestion.id, started_at)
        entry.clock_at_start, entry.started_at = started, started_at
        entry.waiting, entry.state_before = False, None

    def cancel(self, entry: OpenSuggestion) -> dict[str, Array] | None:
        """Take back the last suggestion; one with ``kept_if_cancelled`` waits for the next ``ask`` instead.

        Returns:
            The strategy's state before the suggestion; None if the suggestion waits.

        Raises:
            ValueError: If it is not the last one, or was started.
        """
        suggestion = entry.suggestion
        if entry.state_before is not None and self.open_suggestions.only_waiting_after(suggestion.id):
            entry.kept_if_cancelled = True  # later ids are taken, so it cannot be removed
        if entry.kept_if_cancelled and entry.clock_at_start is None:
            entry.waiting = True
            return None
        if entry.state_before is None or suggestion.id != self.next_id - 1:
            raise ValueError(
                f"only the last suggestion can be cancelled, and only before it is started, got {suggestion.id}; "
                "abandon it instead"
            )
        self._storage.remove_suggestion(suggestion.id, entry.state_before)
        self.open_suggestions.remove(suggestion.id)
        self.next_id -= 1
        self._timer.take_back(suggestion.overhead)
        return entry.state_before

    def tell(
        self,
        suggestion: Suggestion | int,
        loss: float | Outcome,
        cost: float | None,
        info: Mapping[str, Any] | None,
        state: dict[str, Array],
        *,
        stopped: bool,
        restarted: bool,
    ) -> Trial:
        """Record a loss: ``Study.tell``, with the strategy's state."""
        now = self._clock()
        entry = self.find(suggestion, or_abandoned=True)
        outcome = as_outcome(loss, cost, info)
        seconds = entry.cost(outcome.cost, now)
        trial = Trial(
            self._readmit(entry.suggestion, state),
            "complete",
            outcome.loss,
            seconds,
            outcome.info,
            reports=entry.reports,
            stopped=stopped,
            restarted=restarted,
        )
        return self._add_trial(trial)

    def _readmit(self, suggestion: Suggestion, state: dict[str, Array]) -> Suggestion:
        """The suggestion itself if it is pending; one that was abandoned is handed out again under a new id."""
        if self.open_suggestions.get(suggestion.id) is not None:
            return suggestion
        again = with_new_id(suggestion, self.next_id)
        with self._timer.timed():
            self._storage.add_suggestion(again, state, time.time())
        self.open_suggestions.add(OpenSuggestion(again))
        self.next_id += 1
        return again

    def tell_report(
        self, suggestion: Suggestion | int, loss: float, cost: float | None, fidelity: Mapping[str, float]
    ) -> bool:
        """Record a report: ``Study.tell_report``."""
        now = self._clock()
        entry = self.find(suggestion)
        value = reported_value(self._space, entry, fidelity)
        self._add_report(entry, value, loss, entry.cost(cost, now))
        rule = entry.suggestion.stop_rule
        return rule is not None and rule.stops(value, loss)

    def fail(
        self,
        suggestion: Suggestion | int,
        reason: str | BaseException,
        cost: float | None,
        info: Mapping[str, Any] | None,
    ) -> Trial:
        """Record a failure: ``Study.fail``."""
        now = self._clock()
        return self._add_trial(failed_trial(self.find(suggestion), reason, cost, info, now))

    def abandon(
        self, suggestion: Suggestion | int, reason: str, cost: float | None, elapsed: float | None
    ) -> Trial:
        """Record that nobody waits for a suggestion any more: ``Study.abandon``."""
        now = self._clock()
        entry = self.find(suggestion)
        if entry.outcome is not None:
            return self._add_trial(entry.outcome, elapsed)
        return self._add_trial(abandoned_trial(entry, reason, cost, now), elapsed)

    def tell_outcome(self, ended: Ended, elapsed: float | None) -> Trial:
        """Record the outcome that a worker returned, complete, failed or abandoned.

        Args:
            ended: The worker's report.
            elapsed: Seconds that the study has used by the clock, if trials run at the same time; None if they
                run one after another.

        Raises:
            ValueError: If the suggestion is unknown or has ended.
        """
        entry = self.find(ended.id)
        if ended.status == "abandoned":
            return self.abandon(ended.id, ended.error or NO_REASON, ended.cost, elapsed)
        return self._add_trial(self._trial_of(entry, ended), elapsed)

    def add_from_elsewhere(
        self,
        config: Mapping[str, Any],
        fidelity: Mapping[str, Any] | None,
        loss: float | None,
        cost: float,
        info: Mapping[str, Any] | None,
        state: dict[str, Array],
    ) -> Trial:
        """Record a result that was measured elsewhere: ``Study.add``. Its suggestion is new, and it takes no time."""
        self.check_open()
        trial = trial_from_elsewhere(self.next_id, self._space, config, fidelity, loss, cost, info)
        with self._timer.timed():
            self._storage.add_suggestion(trial.suggestion, state, time.time())
        self.next_id += 1
        return self._append(replace(trial, elapsed=self.history.elapsed))

    def _add_trial(self, trial: Trial, elapsed: float | None = None) -> Trial:
        """Record a trial that has ended.

        Args:
            trial: The trial, without its times.
            elapsed: Seconds that the study has used by the clock; None if trials run one after another.
        """
        return self._append(self._with_times(trial, elapsed))

    def _append(self, trial: Trial) -> Trial:
        with self._timer.timed():
            self._storage.add_trial(trial)
            self.history = self.history.append(trial)
            self.open_suggestions.remove(trial.id)
        return trial

    def _with_times(self, trial: Trial, elapsed: float | None) -> Trial:
        """The trial with the times at which it started and ended: now, or when a worker returned it."""
        entry = self.open_suggestions.get(trial.id)
        started = None if entry is None else entry.started_at
        ended = time.time() if entry is None or entry.outcome is None else entry.outcome.ended
        if elapsed is None:
            elapsed = self.history.elapsed + trial.suggestion.overhead + trial.cost
        return replace(trial, elapsed=elapsed, started=started, ended=ended)

    def save_event(self, event: EventOrReport, elapsed: float | None) -> None:
        """Have the storage keep at once what a worker reports, before the study records it.

        This is the only method of a study that any thread may call, even while a suggestion is computed. It does not
        change the trials of the study. If the process is killed before ``tell_outcome``, the next one to open the
        storage finds the outcome as if it had been recorded.
        """
        entry = self.open_suggestions.get(event.id)
        if entry is None or (isinstance(event, Ended) and event.status == "abandoned"):
            return
        if isinstance(event, Reported):
            self._add_report(entry, event.value, event.loss, event.cost)
            return
        outcome: Trial | None = None
        if isinstance(event, Ended):
            outcome = self._with_times(self._trial_of(entry, event), elapsed)
            entry.outcome = outcome
        # If this cannot be written now, `_add_trial` writes it later, or raises then.
        with suppress(RuntimeError):
            if outcome is not None:
                self._storage.add_early_outcome(outcome)
            elif isinstance(event, Started):
                self._storage.add_start(event.id, event.at)

    def _add_report(self, entry: OpenSuggestion, value: float, loss: float, cost: float) -> Report | None:
        """Keep what a training reports on the way; may be called from any thread.

        A value that was reported before, or is below the range of the fidelity, is left out.

        Raises:
            ValueError: If no fidelity has ``reports=True``, the value is above what was suggested, or the loss or the
                cost is not a finite number.
        """
        report = report_of(self._space, entry.suggestion, value, loss, cost)
        if report is None or any(known.fidelity == report.fidelity for known in entry.reports):
            return None
        entry.reports = (*entry.reports, report)
        # If this cannot be written now, `_add_trial` writes it later, or raises then.
        with suppress(RuntimeError):
            self._storage.add_report(entry.suggestion.id, report)
        return report

    def _trial_of(self, entry: OpenSuggestion, ended: Ended) -> Trial:
        """The trial of a worker's outcome that is complete or failed, with all its reports."""
        for reported in ended.reports:
            self._add_report(entry, reported.value, reported.loss, reported.cost)
        return ended_trial(entry, ended)

    def note_incumbent(self, incumbent: Incumbent) -> None:
        """Add the incumbent to the trajectory if a trial has ended since the last one."""
        if len(self.history) > self._n_noted:
            self._add_to_trajectory(incumbent)

    def note_answer(self, answer: Incumbent) -> None:
        """Add the answer of a run to the trajectory, unless it is already the last one there."""
        if not self.trajectory or self.trajectory[-1] != (self.history.elapsed, answer):
            self._add_to_trajectory(answer)

    def _add_to_trajectory(self, incumbent: Incumbent) -> None:
        self._storage.add_incumbent(self.history.elapsed, incumbent)
        self.trajectory = (*self.trajectory, (self.history.elapsed, incumbent))
        self._n_noted = len(self.history)

    def save_run_budget(self, run_budget: RunBudget) -> None:
        """Keep the budget of this run, for ``fabolas status``."""
        self._storage.save_run_budget(run_budget)

    def find(self, given: Suggestion | int, or_abandoned: bool = False) -> OpenSuggestion:
        """The open suggestion that belongs to a Suggestion or to an id; see ``OpenSuggestions.find``."""
        self.check_open()
        return self.open_suggestions.find(given, self.history.trials, or_abandoned)

    def check_open(self) -> None:
        """Raise an error if the storage was released."""
        if self.closed:
            raise RuntimeError("this study is closed; open it again with fabolas.Study(..., storage=...)")

    def close(self) -> None:
        """Free the storage; a second call does nothing."""
        self.closed = True
        self._storage.close()
