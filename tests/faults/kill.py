"""Runs killed by SIGKILL at random moments and resumed: ``python -m tests.faults.kill --runs 100``.

What is checked after every kill and at the end, by the journal that the run kept on its own (see ``child``):

- the file passes SQLite's integrity check; suggestions are numbered 0, 1, 2, ... without a gap;
- whatever was committed is in the file, once, with the same number: nothing kept is missing, nothing is twice;
- whatever is in the file with a loss was really evaluated, once;
- an evaluation may have finished whose outcome is not in the file: the one, at most, whose outcome was not yet
  committed when its process was killed. It is in the file as a suggestion, and lost after the next start;
- at the end all suggestions are those of a study in memory that was given the same outcomes and never killed.
"""

import argparse
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from tests.faults.child import OPTIONS, SETTINGS, SPACE

import fabolas
from fabolas.history import Suggestion
from fabolas.reader import StudyFile, read
from fabolas.storage import MemoryStorage

ROOT = Path(__file__).parents[2]
TRIALS = {"random": 30, "fabolas": 12}
SECONDS = {"random": 0.5, "fabolas": 1.0}  # about what such a run takes


@dataclass
class Case:
    """One run: its file, its journal, and the kills it has seen."""

    directory: Path
    strategy: str
    kills: int = 0
    found: Counter[str] = field(default_factory=Counter)

    @property
    def study(self) -> Path:
        return self.directory / "study.db"

    @property
    def journal(self) -> Path:
        return self.directory / "journal"

    def start(self) -> "subprocess.Popen[str]":
        """The run in a process of its own, at the moment before it opens the file."""
        files = [str(self.study), str(self.journal)]
        command = [
            sys.executable,
            "-m",
            "tests.faults.child",
            *files,
            self.strategy,
            str(TRIALS[self.strategy]),
        ]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", "the run did not start"
        return process


def killed_and_resumed(directory: Path, strategy: str, rng: random.Random, times: int) -> Case:
    """A run that is killed up to so many times, then left to end, and checked after each."""
    case = Case(directory, strategy)
    for _ in range(times):
        with case.start() as process:
            time.sleep(_moment(strategy, rng))
            process.send_signal(signal.SIGKILL)
        if process.returncode != -signal.SIGKILL:
            break  # it had ended before
        case.kills += 1
        case.found[check(case)] += 1
    with case.start() as process:
        pass
    assert process.returncode == 0, f"the resumed run ended with code {process.returncode}"
    check(case)
    check_end(case)
    return case


def _moment(strategy: str, rng: random.Random) -> float:
    """Seconds until the kill: anywhere in the run, and every third time in its first instants."""
    return rng.uniform(0.0, 0.04 if rng.random() < 1 / 3 else SECONDS[strategy])


def check(case: Case) -> str:
    """All that must hold whenever a process has ended, however it did; returns what it was doing then."""
    lines = _journal(case.journal)
    if not case.study.exists():
        assert not lines, "steps were taken without a file"
        return "before there was a file"
    assert _integrity(case.study) == [("ok",)]
    study = read(case.study)
    assert study.holder is None, "a dead process holds the file"
    assert [s.id for s in study.suggestions] == list(range(len(study.suggestions)))
    _check_nothing_is_missing(study, lines)
    unkept = _check_nothing_is_invented(study, lines)
    assert len(unkept) <= case.kills, (
        f"{len(unkept)} finished evaluations are not kept after {case.kills} kills"
    )
    if not study.pending:
        return "thinking"
    assert len(study.pending) == 1
    waiting = _key(study.pending[0].config, study.pending[0].fidelity["size"])
    return "between an evaluation and its record" if waiting in unkept else "evaluating"


def _check_nothing_is_missing(study: StudyFile, lines: list[dict[str, Any]]) -> None:
    asked = Counter(line["id"] for line in lines if line["event"] == "asked")
    kept = Counter((line["id"], line["status"], line["loss"]) for line in lines if line["event"] == "kept")
    outcomes = Counter((trial.id, trial.status, trial.loss) for trial in study.trials)
    assert not [what for what, count in (asked | kept | outcomes).items() if count > 1], "something is twice"
    assert asked.keys() <= {s.id for s in study.suggestions}, "a suggestion is missing"
    assert kept.keys() <= outcomes.keys(), f"trials are missing: {kept.keys() - outcomes.keys()}"


def _check_nothing_is_invented(study: StudyFile, lines: list[dict[str, Any]]) -> set[str]:
    """Every loss in the file was measured; returns what was measured and is not in the file."""
    finished = Counter(_key(line["config"], line["size"]) for line in lines if line["event"] == "finished")
    assert not [what for what, count in finished.items() if count > 1], "something was evaluated twice"
    losses = {
        _key(line["config"], line["size"]): line["loss"] for line in lines if line["event"] == "finished"
    }
    complete = {_key(t.config, t.fidelity["size"]): t.loss for t in study.trials if t.status == "complete"}
    assert complete.items() <= losses.items(), "the file has a loss that was never measured"
    unkept = losses.keys() - complete.keys()
    ended = {_key(t.config, t.fidelity["size"]) for t in study.trials if t.status == "lost"}
    assert unkept <= ended | {_key(s.config, s.fidelity["size"]) for s in study.pending}
    return unkept


def check_end(case: Case) -> None:
    """A finished run is whole, and its suggestions are those of a run that was never killed."""
    study = read(case.study)
    assert (len(study.trials), study.pending) == (TRIALS[case.strategy], ())
    assert {trial.status for trial in study.trials} <= {"complete", "lost"}
    assert sum(trial.status == "lost" for trial in study.trials) <= case.kills
    assert [s.point.tobytes() for s in study.suggestions] == [s.point.tobytes() for s in _replayed(study)]
    assert not [p.name for p in case.directory.iterdir() if p.name not in ("study.db", "journal")]


def _replayed(study: StudyFile) -> list[Suggestion]:
    """What a study in memory suggests when it is told these outcomes, and is reopened where a trial was lost."""
    storage, asked = MemoryStorage(), []
    settings = {"strategy": study.strategy, "storage": storage, **SETTINGS, **OPTIONS[study.strategy]}
    memory = fabolas.Study(SPACE, **settings)
    for trial in study.trials:
        suggestion = memory.ask()
        asked.append(suggestion)
        if trial.status == "complete" and np.array_equal(suggestion.point, trial.suggestion.point):
            memory.tell(suggestion, trial.loss, cost=trial.cost)
        else:
            memory.close()
            memory = fabolas.Study(SPACE, **settings)
    memory.close()
    return asked


def _key(config: dict[str, Any], size: float) -> str:
    return json.dumps([config, size], sort_keys=True)


def _journal(path: Path) -> list[dict[str, Any]]:
    """The whole lines; a kill may have cut the last."""
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def _integrity(path: Path) -> list[Any]:
    """SQLite's verdict on a copy of the file and its log, since to look at these would be to touch them."""
    with tempfile.TemporaryDirectory() as directory:
        for part in path.parent.glob(f"{path.name}*"):
            shutil.copy(part, directory)
        with closing(sqlite3.connect(Path(directory) / path.name)) as connection:
            return connection.execute("PRAGMA integrity_check").fetchall()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description="Kill runs at random moments, resume them, check their files."
    )
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)))
    options = parser.parse_args(arguments)
    rng, found, kills, runs = random.Random(options.seed), Counter[str](), 0, 0
    print(f"seed {options.seed}", flush=True)
    start = time.monotonic()
    while runs < options.runs:
        strategy = ("random", "fabolas")[runs % 2]
        with tempfile.TemporaryDirectory() as directory:
            case = killed_and_resumed(Path(directory), strategy, rng, times=rng.randint(1, 4))
        if case.kills == 0:
            continue  # too quick for us; it does not count
        runs, kills, found = runs + 1, kills + case.kills, found + case.found
        if runs % 10 == 0:
            print(f"{runs} runs, {kills} kills, {time.monotonic() - start:.0f} s", flush=True)
    seen = ", ".join(f"{count} {what}" for what, count in found.most_common())
    print(f"all {runs} runs are whole after {kills} kills: {seen}")


if __name__ == "__main__":
    main()
