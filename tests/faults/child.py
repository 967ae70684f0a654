"""The run that gets killed: ``python -m tests.faults.child STUDY JOURNAL STRATEGY TRIALS``.

Beside the study's file it keeps a journal of its own, every line on the disk before the next step: ``asked``
when the file has a suggestion, ``finished`` when the objective has a loss, ``kept`` when the file has an outcome.
Costs and thinking times are stated, so that suggestions follow from the record alone.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import fabolas
from fabolas._types import Array
from fabolas.history import Suggestion, Trial
from fabolas.run import minimize
from fabolas.storage import SqliteStorage
from fabolas.strategies import make

SPACE = fabolas.Space(
    {"x": fabolas.Float(0.0, 1.0), "y": fabolas.Float(1e-3, 1e3, log=True)}, {"size": (10, 1000)}
)
OPTIONS: dict[str, dict[str, Any]] = {"random": {}, "fabolas": {"initial": 4, "effort": 0.0}}
SETTINGS: dict[str, Any] = {"seed": 7, "overhead": 0.01}


class Journal:
    """Lines of JSON that are on the disk when ``write`` returns."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write(self, event: str, **facts: Any) -> None:
        os.write(self._fd, (json.dumps({"event": event, **facts}) + "\n").encode())
        os.fsync(self._fd)


class JournaledStorage(SqliteStorage):
    """A study's file that notes each step after it was committed."""

    def __init__(self, path: Path, journal: Journal) -> None:
        super().__init__(path)
        self._journal = journal

    def add_suggestion(self, suggestion: Suggestion, state: dict[str, Array], started: float | None) -> None:
        super().add_suggestion(suggestion, state, started)
        self._journal.write("asked", id=suggestion.id)

    def add_trial(self, trial: Trial) -> None:
        super().add_trial(trial)
        self._journal.write("kept", id=trial.id, status=trial.status, loss=trial.loss)


def loss_of(config: dict[str, Any], size: int) -> float:
    return float((config["x"] - 0.3) ** 2 + 0.01 * abs(config["y"] - 1.0) ** 0.5 + 1 / size)


def main(study: str, journal: str, strategy: str, trials: str) -> None:
    notes = Journal(Path(journal))

    def objective(config: dict[str, Any], size: int) -> fabolas.Outcome:
        time.sleep(0.01)
        loss = loss_of(config, size)
        notes.write("finished", config=config, size=size, loss=loss)
        return fabolas.Outcome(loss, cost=0.05 + size / 1000)

    make(strategy, SPACE)  # loads its libraries: that moment is not the one to be killed in
    print("ready", flush=True)
    minimize(
        objective,
        SPACE,
        max_trials=int(trials),
        strategy=strategy,
        storage=JournaledStorage(Path(study), notes),
        progress=False,
        **SETTINGS,
        **OPTIONS[strategy],
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
