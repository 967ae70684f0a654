"""A record that lives as long as its object."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fabolas._types import Array
from fabolas.history import Suggestion, Trial
from fabolas.storage.base import Identity, Record, refuse_others


@dataclass
class MemoryStorage:
    """Keeps the record as long as this object lives; a closed study can be reopened from it."""

    _recorded: dict[str, Any] | None = None
    _suggestions: dict[int, Suggestion] = field(default_factory=dict)
    _trials: dict[int, Trial] = field(default_factory=dict)
    _state: dict[str, Array] | None = None
    _started: dict[int, float] = field(default_factory=dict)
    _open: bool = False

    def open(self, identity: Identity) -> Record:
        if self._open:
            raise RuntimeError(
                "this storage is in use by another study; close that one first (study.close())"
            )
        if self._recorded is None:
            self._recorded = identity.describe()
        refuse_others("this storage", identity, self._recorded)
        self._open = True
        suggestions, trials = tuple(self._suggestions.values()), tuple(self._trials.values())
        return Record(self._recorded["seed"], suggestions, trials, self._state, dict(self._started))

    def add_suggestion(self, suggestion: Suggestion, state: dict[str, Array], started: float | None) -> None:
        if suggestion.id in self._suggestions:
            raise ValueError(f"suggestion {suggestion.id} is already kept")
        self._suggestions[suggestion.id] = suggestion
        self._state = {name: np.array(array) for name, array in state.items()}
        if started is not None:
            self._started[suggestion.id] = started

    def add_start(self, number: int, started: float) -> None:
        if number not in self._suggestions:
            raise ValueError(f"suggestion {number} is unknown and cannot be begun with")
        self._started[number] = started

    def remove_suggestion(self, number: int, state: dict[str, Array]) -> None:
        if number not in self._suggestions or number in self._started or number in self._trials:
            raise ValueError(f"suggestion {number} is unknown or was begun with, and stays")
        del self._suggestions[number]
        self._state = {name: np.array(array) for name, array in state.items()}

    def add_trial(self, trial: Trial) -> None:
        if trial.id not in self._suggestions or trial.id in self._trials:
            raise ValueError(f"suggestion {trial.id} is unknown or has already ended")
        self._trials[trial.id] = trial

    def close(self) -> None:
        self._open = False
