"""The ledger of a study: what was suggested, what has ended, and how much overhead it took.

Every change is written to the storage before it counts here. So a step that cannot be written has not happened.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

import numpy as np

from fabolas._types import Array
from fabolas.budget import Clock
from fabolas.execution import MIN_COST_SECONDS, Ended, News, Reported, Started
from fabolas.numeric_errors import default_error_state
from fabolas.reports import Report
from fabolas.run_budget import RunBudget
from fabolas.space import Space
from fabolas.storage import Identity, Storage
from fabolas.study.open_suggestions import OpenSuggestion, OpenSuggestions, with_new_id
from fabolas.study.opening import unfinished
from fabolas.trials import History, Incumbent, Suggestion, Trial


class Ledger:
    """The ended trials and the pending suggestions of a study.

    Args:
        storage: Where the record is kept; it is opened here.
        identity: Which study it must be.
        clock: Seconds from any origin.
        fixed_overhead: Seconds to record as overhead of every suggestion; None records the measured time.

    Attributes:
        history: The ended trials.
        open_suggestions: The suggestions that have not ended.
        next_id: The id of the next suggestion.
        seed: The seed of the study.
        direction: Whether losses are minimised or maximised.
        strategy_state: The strategy's state when the record was last written; None before the first suggestion.
        trajectory: (elapsed, incumbent) pairs.
    """

    def __init__(
        self, storage: Storage, identity: Identity, clock: Clock, fixed_overhead: float | None
    ) -> None:
        self._storage, self._clock, self._fixed_overhead = storage, clock, fixed_overhead
        self._space = identity.space
        self.direction = identity.direction
        self._unrecorded = 0.0  # seconds of overhead that no suggestion has recorded yet
        self.open_suggestions = OpenSuggestions()
        record = storage.open(identity)
        try:
            self.seed, self.strategy_state = record.seed, record.state
            self.history = History(record.trials)
            self.trajectory = record.trajectory
            until = self.trajectory[-1][0] if self.trajectory else -1.0
            # How many trials the last incumbent of the trajectory rests on.
            self._n_noted = sum(trial.elapsed <= until for trial in self.history.trials)
            self.next_id = len(record.suggestions)
            for trial in unfinished(record, time.time()):
                self._append(trial)
            ended = {trial.id for trial in self.history.trials}
            for suggestion in record.open_suggestions:
                if suggestion.id not in ended:
                    self.open_suggestions.add(OpenSuggestion(suggestion, waiting=True, permanent=True))
        except BaseException:
            storage.close()
            raise

    @contextmanager
    def timed_overhead(self) -> Iterator[None]:
        """Count the time of the body as overhead.

        The seconds are added to the overhead of the next suggestion, and are recorded with it.
        """
        start = self._clock()
        try:
            with default_error_state():
                yield
        finally:
            self._unrecorded += self._clock() - start

    @property
    def next_overhead(self) -> float:
        """Seconds of overhead that the next suggestion records."""
        return self._unrecorded if self._fixed_overhead is None else self._fixed_overhead

    @property
    def overhead(self) -> float:
        """Seconds of overhead, including what the next suggestion will record."""
        recorded = sum(self.history.overheads.tolist()) + self.open_suggestions.overhead
        return float(recorded) + (self._unrecorded if self._fixed_overhead is None else 0.0)

    def add(
        self, suggestion: Suggestion, state: dict[str, Array], undo: dict[str, Array], *, queued: bool
    ) -> None:
        """Hand out a new suggestion.

        Args:
            suggestion: With the id ``next_id`` and the overhead ``next_overhead``.
            state: The strategy's state after it.
            undo: The strategy's state before it.
            queued: Whether the evaluation starts later; until then the suggestion can be cancelled.
        """
        before, started_at = self._unrecorded, None if queued else time.time()
        with self.timed_overhead():
            self._storage.add_suggestion(suggestion, state, started_at)
        self._unrecorded -= before
        self.next_id += 1
        if queued:
            entry = OpenSuggestion(suggestion, undo=undo)
        else:
            entry = OpenSuggestion(suggestion, started=self._clock(), started_at=started_at)
        self.open_suggestions.add(entry)

    def enqueue(self, suggestion: Suggestion, state: dict[str, Array]) -> None:
        """Record a suggestion that waits for the next ``ask``.

        Args:
            suggestion: As in ``add``.
            state: The strategy's state after it.
        """
        before = self._unrecorded
        with self.timed_overhead():
            self._storage.add_suggestion(suggestion, state, None)
        self._unrecorded -= before
        self.next_id += 1
        self.open_suggestions.add(OpenSuggestion(suggestion, waiting=True, permanent=True))

    def add_from_elsewhere(self, trial: Trial, state: dict[str, Array]) -> Trial:
        """Record a trial that was measured elsewhere: its suggestion is new, and it takes no time."""
        with self.timed_overhead():
            self._storage.add_suggestion(trial.suggestion, state, time.time())
        self.next_id += 1
        return self._append(replace(trial, elapsed=self.history.elapsed))

    def start(self, entry: OpenSuggestion, at: float | None) -> None:
        """The evaluation has started: now, or at a time in seconds since the epoch."""
        now = time.time()
        started_at = now if at is None else at
        started = self._clock() - max(now - started_at, 0.0)
        with self.timed_overhead():
            self._storage.add_start(entry.suggestion.id, started_at)
        entry.started, entry.started_at = started, started_at
        entry.waiting, entry.undo = False, None

    def cancel(self, entry: OpenSuggestion) -> dict[str, Array] | None:
        """Take back the last suggestion; a permanent one waits for the next ``ask`` instead.

        Returns:
            The strategy's state before the suggestion; None if the suggestion waits.

        Raises:
            ValueError: If it is not the last one, or was started.
        """
        suggestion = entry.suggestion
        if entry.undo is not None and self.open_suggestions.only_waiting_after(suggestion.id):
            entry.permanent = True  # later ids are taken, so it cannot be removed
        if entry.permanent and entry.started is None:
            entry.waiting = True
            return None
        if entry.undo is None or suggestion.id != self.next_id - 1:
            raise ValueError(
                f"only the last suggestion can be cancelled, and only before it is started, got {suggestion.id}; "
                "abandon it instead"
            )
        self._storage.remove_suggestion(suggestion.id, entry.undo)
        self.open_suggestions.remove(suggestion.id)
        self.next_id -= 1
        self._unrecorded += suggestion.overhead if self._fixed_overhead is None else 0.0
        return entry.undo

    def readmit(self, suggestion: Suggestion, state: dict[str, Array]) -> Suggestion:
        """The suggestion itself if it is pending; one that was abandoned is handed out again under a new id."""
        if self.open_suggestions.get(suggestion.id) is not None:
            return suggestion
        again = with_new_id(suggestion, self.next_id)
        with self.timed_overhead():
            self._storage.add_suggestion(again, state, time.time())
        self.open_suggestions.add(OpenSuggestion(again))
        self.next_id += 1
        return again

    def add_trial(self, trial: Trial, elapsed: float | None = None) -> Trial:
        """Record a trial that has ended.

        Args:
            trial: The trial, without its times.
            elapsed: Seconds that the study has used by the clock; None if trials run one after another.
        """
        return self._append(self._timed(trial, elapsed))

    def _append(self, trial: Trial) -> Trial:
        with self.timed_overhead():
            self._storage.add_trial(trial)
            self.history = self.history.append(trial)
            self.open_suggestions.remove(trial.id)
        return trial

    def _timed(self, trial: Trial, elapsed: float | None) -> Trial:
        """The trial with the times at which it started and ended; it ends now, unless its end was reported."""
        entry = self.open_suggestions.get(trial.id)
        started = None if entry is None else entry.started_at
        ended = time.time() if entry is None or entry.outcome is None else entry.outcome.ended
        if elapsed is None:
            elapsed = self.history.elapsed + trial.suggestion.overhead + trial.cost
        return replace(trial, elapsed=elapsed, started=started, ended=ended)

    def save_event(self, event: News, elapsed: float | None) -> None:
        """Keep what a worker reports before it is recorded; may be called from any thread."""
        entry = self.open_suggestions.get(event.id)
        if entry is None or (isinstance(event, Ended) and event.status == "abandoned"):
            return
        if isinstance(event, Reported):
            self.add_report(entry, event.value, event.loss, event.cost)
            return
        outcome: Trial | None = None
        if isinstance(event, Ended):
            outcome = self._timed(self.trial_of(entry, event), elapsed)
            entry.outcome = outcome
        # If this cannot be written now, `add_trial` writes it later, or raises then.
        with suppress(RuntimeError):
            if outcome is not None:
                self._storage.add_reported(outcome)
            elif isinstance(event, Started):
                self._storage.add_start(event.id, event.at)

    def add_report(self, entry: OpenSuggestion, value: float, loss: float, cost: float) -> Report | None:
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
        # If this cannot be written now, `add_trial` writes it later, or raises then.
        with suppress(RuntimeError):
            self._storage.add_report(entry.suggestion.id, report)
        return report

    def trial_of(self, entry: OpenSuggestion, ended: Ended) -> Trial:
        """The trial of a worker's outcome that is complete or failed, with all its reports."""
        for reported in ended.reports:
            self.add_report(entry, reported.value, reported.loss, reported.cost)
        return _ended_trial(entry.suggestion, ended, entry.reports)

    def note_incumbent(self, incumbent: Incumbent) -> None:
        """Add the incumbent to the trajectory if a trial has ended since the last one."""
        if len(self.history) > self._n_noted:
            self._storage.add_incumbent(self.history.elapsed, incumbent)
            self.trajectory = (*self.trajectory, (self.history.elapsed, incumbent))
            self._n_noted = len(self.history)

    def save_run_budget(self, run_budget: RunBudget) -> None:
        """Keep the budget of this run, for ``fabolas status``."""
        self._storage.save_run_budget(run_budget)

    def close(self) -> None:
        """Free the storage; a second call does nothing."""
        self._storage.close()


def _ended_trial(suggestion: Suggestion, ended: Ended, reports: tuple[Report, ...] = ()) -> Trial:
    """The trial of a worker's outcome that is complete or failed."""
    failed = ended.status != "complete"
    return Trial(
        suggestion,
        "failed" if failed else "complete",
        None if failed else ended.loss,
        ended.cost if failed else max(ended.cost, MIN_COST_SECONDS),
        ended.info,
        (ended.error or "no reason given") if failed else None,
        reports=reports,
        stopped=ended.stopped and bool(reports) and not failed,
        restarted=ended.restarted,
    )


def report_of(space: Space, suggestion: Suggestion, value: float, loss: float, cost: float) -> Report | None:
    """The report of a suggestion's training at a value of its fidelity; None if the value is below the range.

    Raises:
        ValueError: If no fidelity has reports, or the value is above what was suggested.
        TypeError: If the value is not a number.
    """
    name, column = space.curve_name, space.curve_column
    if name is None or column is None:
        raise ValueError(
            "no fidelity of this space is declared with reports; write fabolas.Fidelity(low, high, reports=True)"
        )
    wanted = suggestion.fidelity[name]
    if value > wanted:
        raise ValueError(f"a report expected {name} of at most {wanted}, which was suggested, got {value}")
    if value < space.fidelities[name].low:
        return None
    point = np.array(suggestion.point)
    point[column] = space.fidelities[name].coordinate(value)
    return Report({**suggestion.fidelity, name: value}, point, loss, cost)
