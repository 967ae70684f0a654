"""A storage that keeps the record in memory: the simplest one, and the default."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fabolas._types import Array
from fabolas.budget import RunBudget
from fabolas.curve_reports import Report
from fabolas.storage.base import Identity, Record, check_same_study
from fabolas.trials import Incumbent, Suggestion, Trial


@dataclass
class MemoryStorage:
    """Keeps the record as long as this object lives. A closed study can be reopened from it."""

    _recorded: dict[str, Any] | None = None
    _suggestions: dict[int, Suggestion] = field(default_factory=dict)
    _started: dict[int, float] = field(default_factory=dict)
    _early_outcomes: dict[int, Trial] = field(default_factory=dict)
    _trials: dict[int, Trial] = field(default_factory=dict)
    _trajectory: list[tuple[float, Incumbent]] = field(default_factory=list)
    _state: dict[str, Array] | None = None
    _reports: dict[int, tuple[Report, ...]] = field(default_factory=dict)
    run_budget: RunBudget | None = None
    _open: bool = False

    @classmethod
    def of(cls, identity: Identity, record: Record) -> "MemoryStorage":
        """A storage that holds this record."""
        return cls(
            _recorded=identity.describe(),
            _suggestions={s.id: s for s in record.suggestions},
            _started=dict(record.started),
            _early_outcomes={trial.id: trial for trial in record.early_outcomes},
            _trials={trial.id: trial for trial in record.trials},
            _trajectory=list(record.trajectory),
            _state=record.state,
            _reports=dict(record.reports),
        )

    @property
    def counts(self) -> tuple[int, int]:
        """How many suggestions and how many trials it holds."""
        return len(self._suggestions), len(self._trials)

    @property
    def record(self) -> Record:
        """Everything that it holds.

        Raises:
            RuntimeError: If it was never opened.
        """
        if self._recorded is None:
            raise RuntimeError("this storage holds no study; open it first")
        return Record(
            self._recorded["seed"],
            tuple(self._suggestions.values()),
            tuple(self._trials.values()),
            self._state,
            dict(self._started),
            tuple(self._early_outcomes.values()),
            tuple(self._trajectory),
            dict(self._reports),
        )

    def open(self, identity: Identity) -> Record:
        if self._open:
            raise RuntimeError(
                "this storage is in use by another study; close that study first (study.close())"
            )
        if self._recorded is None:
            self._recorded = identity.describe()
        check_same_study("this storage", identity, self._recorded)
        self._open, self.run_budget = True, None
        return self.record

    def add_suggestion(self, suggestion: Suggestion, state: dict[str, Array], started: float | None) -> None:
        if suggestion.id in self._suggestions:
            raise ValueError(f"suggestion {suggestion.id} is already stored; a suggestion is added once")
        self._suggestions[suggestion.id] = suggestion
        self._state = _copy(state)
        if started is not None:
            self._started[suggestion.id] = started

    def add_start(self, suggestion_id: int, started: float) -> None:
        self._check_known(suggestion_id)
        self._started[suggestion_id] = started

    def remove_suggestion(self, suggestion_id: int, state: dict[str, Array]) -> None:
        self._check_known(suggestion_id)
        if suggestion_id in self._started or suggestion_id in self._trials:
            raise ValueError(f"suggestion {suggestion_id} has started and cannot be removed")
        del self._suggestions[suggestion_id]
        self._state = _copy(state)

    def add_report(self, suggestion_id: int, report: Report) -> None:
        self._check_unended(suggestion_id)
        self._reports[suggestion_id] = (*self._reports.get(suggestion_id, ()), report)

    def add_early_outcome(self, trial: Trial) -> None:
        self._check_unended(trial.id)
        if trial.id in self._early_outcomes:
            raise ValueError(f"suggestion {trial.id} already has an early outcome")
        self._early_outcomes[trial.id] = trial

    def add_trial(self, trial: Trial) -> None:
        self._check_unended(trial.id)
        self._trials[trial.id] = trial
        self._early_outcomes.pop(trial.id, None)
        self._reports.pop(trial.id, None)

    def add_incumbent(self, elapsed: float, incumbent: Incumbent) -> None:
        self._trajectory.append((elapsed, incumbent))

    def save_run_budget(self, run_budget: RunBudget) -> None:
        self.run_budget = run_budget

    def close(self) -> None:
        self._open = False

    def _check_known(self, suggestion_id: int) -> None:
        if suggestion_id not in self._suggestions:
            raise ValueError(f"suggestion {suggestion_id} is unknown; add it first")

    def _check_unended(self, suggestion_id: int) -> None:
        self._check_known(suggestion_id)
        if suggestion_id in self._trials:
            raise ValueError(f"suggestion {suggestion_id} has already ended")


def _copy(state: dict[str, Array]) -> dict[str, Array]:
    return {name: np.array(array) for name, array in state.items()}
