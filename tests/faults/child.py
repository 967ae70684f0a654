"""The run that gets killed: ``python -m tests.faults.child STUDY JOURNAL KIND TRIALS``.

Beside the study's file it keeps a journal of its own, every line on the disk before the next step: ``asked``
when the file has a suggestion, ``finished`` when the objective has a loss, wherever it runs, ``arrived`` when the
file has an outcome that the study has not heard of, ``kept`` when it has one that it has heard of. Costs and
thinking times are stated, so that with one worker suggestions follow from the record alone.
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
from fabolas.history import Suggestion, Trial
from fabolas.run import minimize
from fabolas.storage import SqliteStorage
from fabolas.strategies import Proposal, make
from fabolas.strategies.random import Random

SPACE = fabolas.Space(
    {"x": fabolas.Float(0.0, 1.0), "y": fabolas.Float(1e-3, 1e3, log=True)}, {"size": (10, 1000)}
)
SETTINGS: dict[str, Any] = {"seed": 7, "overhead": 0.01}


@dataclass(frozen=True)
class Kind:
    """A kind of run.

    Attributes:
        strategy: Its strategy.
        trials: How many it is to have.
        sleep: Seconds that its shortest trial takes; the longest takes four times as long.
        seconds: About what the run takes.
        workers: How many trials at once.
        burn: Seconds that it thinks besides.
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
    "fabolas": Kind("fabolas", 12, 0.01, 1.0, options={"initial": 4, "effort": 0.0}),
    "workers": Kind("fabolas", 16, 0.1, 3.0, workers=3, options={"initial": 4, "effort": 1.0}),
    # Thinks for longer than its trials take: most kills find it thinking, and outcomes that it has not heard of.
    "thinking": Kind("random", 10, 0.05, 5.0, workers=3, burn=0.5),
}


class Thinking(Random):
    """Suggests at random after long thought, in which it shares the interpreter's lock as little as Python can."""

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

    def add_arrival(self, trial: Trial) -> None:
        super().add_arrival(trial)
        self._journal.write("arrived", id=trial.id, status=trial.status, loss=trial.loss)

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
        strategy=Thinking(SPACE, kind.burn) if kind.burn else kind.strategy,
        storage=JournaledStorage(Path(study), notes),
        workers=kind.workers,
        progress=False,
        **SETTINGS,
        **kind.options,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
