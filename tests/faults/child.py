"""The run that is killed: ``python -m tests.faults.child STUDY JOURNAL KIND TRIALS``.

It also writes a journal, and each line is on the disk before the next step. The events are: ``asked`` when
the file has a suggestion, ``finished`` when the objective has computed a loss, ``reported`` when the file has
an outcome that the study was not told yet, ``kept`` when the file has a trial. Costs and overhead are fixed,
so that with one worker the suggestions depend on the record only.
"""

import json
import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fabolas
from fabolas._types import Array
from fabolas.api import minimize
from fabolas.storage import SqliteStorage
from fabolas.strategies import Proposal, make
from fabolas.strategies.random import Random
from fabolas.trials import Suggestion, Trial

SPACE = fabolas.Space(
    {"x": fabolas.Float(0.0, 1.0), "y": fabolas.Float(1e-3, 1e3, log=True)}, {"size": (10, 1000)}
)


@dataclass(frozen=True)
class Kind:
    """A kind of run.

    Attributes:
        strategy: Its strategy.
        trials: How many it is to have.
        sleep: Seconds that its shortest trial takes; the longest takes four times as long.
        seconds: About what the run takes.
        workers: How many trials at once.
        burn: Seconds of overhead of each suggestion.
        options: Of the strategy.
    """

    strategy: str
    trials: int
    sleep: float
    seconds: float
    workers: int = 1
    burn: float = 0.0
    options: dict[str, Any] = field(default_factory=dict)


KINDS = {
    "random": Kind("random", 30, 0.01, 0.5),
    "fabolas": Kind("fabolas", 12, 0.01, 1.0, options={"n_initial": 4, "effort": 0.0}),
    "workers": Kind("fabolas", 11, 0.1, 2.0, workers=3, options={"n_initial": 4, "effort": 1.0}),
    # A decision takes longer than a trial: most kills come during one, when there are outcomes not yet recorded.
    "overhead": Kind("random", 5, 0.05, 2.5, workers=3, burn=0.5),
}


def run_settings(kind: Kind) -> dict[str, Any]:
    """The arguments of ``minimize`` that decide what a run suggests."""
    strategy = SlowToDecide(SPACE, kind.burn) if kind.burn else kind.strategy
    fixed = {"seed": 7, "overhead": 0.01, "progress": False}
    return {"strategy": strategy, "workers": kind.workers, **fixed, **kind.options}


class SlowToDecide(Random):
    """Suggests at random after a long computation that gives other threads as little time as Python can."""

    def __init__(self, space: fabolas.Space, burn: float) -> None:
        super().__init__(space)
        self.burn = burn

    def suggest(self, *arguments: Any, **named: Any) -> Proposal:
        end = time.perf_counter() + self.burn
        while time.perf_counter() < end:
            pass
        return super().suggest(*arguments, **named)


class Journal:
    """Lines of JSON that are on the disk when ``write`` returns; several processes may write to one."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, event: str, **facts: Any) -> None:
        line = json.dumps({"event": event, "at": time.time(), **facts}) + "\n"
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(descriptor, line.encode())
        os.fsync(descriptor)
        os.close(descriptor)


class JournaledStorage(SqliteStorage):
    """A study's file that notes each step after it was committed."""

    def __init__(self, path: Path, journal: Journal) -> None:
        super().__init__(path)
        self._journal = journal

    def add_suggestion(self, suggestion: Suggestion, state: dict[str, Array], started: float | None) -> None:
        super().add_suggestion(suggestion, state, started)
        self._journal.write("asked", id=suggestion.id)

    def add_early_outcome(self, trial: Trial) -> None:
        super().add_early_outcome(trial)
        self._journal.write("reported", id=trial.id, status=trial.status, loss=trial.loss)

    def add_trial(self, trial: Trial) -> None:
        super().add_trial(trial)
        self._journal.write("kept", id=trial.id, status=trial.status, loss=trial.loss)


def loss_of(config: dict[str, Any], size: int) -> float:
    return float((config["x"] - 0.3) ** 2 + 0.01 * abs(config["y"] - 1.0) ** 0.5 + 1 / size)


def main(study: str, journal: str, name: str, trials: str) -> None:
    kind, notes = KINDS[name], Journal(Path(journal))
    sleep = kind.sleep

    def objective(config: dict[str, Any], size: int) -> fabolas.Outcome:
        time.sleep(sleep * (1 + 3 * config["x"]))
        loss = loss_of(config, size)
        notes.write("finished", config=config, size=size, loss=loss)
        return fabolas.Outcome(loss, cost=0.05 + size / 1000)

    make(kind.strategy, SPACE)  # loads its libraries: that moment is not the one to be killed in
    print("ready", flush=True)
    minimize(
        objective,
        SPACE,
        max_trials=int(trials),
        storage=JournaledStorage(Path(study), notes),
        **run_settings(kind),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
