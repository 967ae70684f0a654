"""Runs killed by SIGKILL at random moments and resumed: ``python -m tests.faults.kill --runs 100``.

What is checked after every kill and at the end, by the journal that the run kept on its own (see ``child``):

- the file passes SQLite's integrity check; suggestions are numbered 0, 1, 2, ... without a gap;
- whatever was committed is in the file, once, with the same number: nothing kept is missing, nothing is twice;
- whatever is in the file with a loss was really evaluated, once for each time it is there;
- an evaluation may have finished whose outcome is not in the file: one, at most, for each worker, that finished in
  the last instant (``INSTANT``) before its process was killed or, in a worker, after that. It is in the file as a
  suggestion, and lost after the next start. Between the end of an evaluation and its record there is always an
  instant: here that of the journal's own wait for the disk, of a pipe, and of a turn at the interpreter's lock. How
  long before a kill the first such evaluation had finished is printed;
- no more suggestions are under way than there are workers, and one prepared ahead; what no worker had begun with is
  not lost, but suggested again;
- with one worker, at the end all suggestions are those of a study in memory that was given the same outcomes and
  never killed.
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
from tests.faults.child import KINDS, SETTINGS, SPACE, Kind

import fabolas
from fabolas.history import Suggestion
from fabolas.reader import StudyFile, read
from fabolas.storage import MemoryStorage

ROOT = Path(__file__).parents[2]
INSTANT = 0.25  # seconds; a thought of the kind "thinking" takes twice as long


@dataclass
class Case:
    """One run: its file, its journal, and the kills it has seen.

    Attributes:
        directory: Where its files are.
        name: Its kind.
        kills: When it was killed, in seconds since the epoch.
        found: What it was doing then.
        unheard: Outcomes that the file had then and the study had not heard of.
        latest: Seconds before a kill, at most, that an evaluation had finished which is not in the file.
    """

    directory: Path
    name: str
    kills: list[float] = field(default_factory=list)
    found: Counter[str] = field(default_factory=Counter)
    unheard: int = 0
    latest: float = 0.0

    @property
    def kind(self) -> Kind:
        return KINDS[self.name]

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
            self.name,
            str(self.kind.trials),
        ]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", "the run did not start"
        return process


def killed_and_resumed(directory: Path, name: str, rng: random.Random, times: int) -> Case:
    """A run that is killed up to so many times, then left to end, and checked after each."""
    case = Case(directory, name)
    for _ in range(times):
        with case.start() as process:
            time.sleep(_moment(case.kind, rng))
            moment = time.time()
            process.send_signal(signal.SIGKILL)
        if process.returncode != -signal.SIGKILL:
            break  # it had ended before
        case.kills.append(moment)
        case.unheard += len(_unheard(case))
        case.found[check(case)] += 1
    with case.start() as process:
        pass
    assert process.returncode == 0, f"the resumed run ended with code {process.returncode}"
    check(case)
    check_end(case)
    return case


def _moment(kind: Kind, rng: random.Random) -> float:
    """Seconds until the kill: anywhere in the run, and every third time in its first instants."""
    return rng.uniform(0.0, 0.04 if rng.random() < 1 / 3 else kind.seconds)


def check(case: Case) -> str:
    """All that must hold whenever a process has ended, however it did; returns what it was doing then."""
    lines = _journal(case.journal)
    if not case.study.exists():
        assert not lines, "steps were taken without a file"
        return "before there was a file"
    assert _answer(case.study, "PRAGMA integrity_check") == [("ok",)]
    study = read(case.study)
    assert study.holder is None, "a dead process holds the file"
    assert [s.id for s in study.suggestions] == list(range(len(study.suggestions)))
    _check_nothing_is_missing(study, lines)
    unkept = _check_nothing_is_invented(study, lines)
    _check_only_the_last_instant_is_lost(case, unkept, lines)
    workers, unheard = case.kind.workers, len(_unheard(case))
    assert len(study.begun) <= workers
    assert len(study.pending) + unheard <= workers + (workers > 1)  # one is prepared in advance
    if unheard:
        return "thinking, with outcomes that it had not heard of"
    if not study.pending:
        return "thinking"
    if any(_key(s.config, s.fidelity["size"]) in unkept for s in study.pending):
        return "between an evaluation and its record"
    return "evaluating"


def _check_nothing_is_missing(study: StudyFile, lines: list[dict[str, Any]]) -> None:
    asked = Counter(line["id"] for line in lines if line["event"] == "asked")
    kept = Counter((line["id"], line["status"], line["loss"]) for line in lines if line["event"] == "kept")
    arrived = Counter(
        (line["id"], line["status"], line["loss"]) for line in lines if line["event"] == "arrived"
    )
    outcomes = Counter((trial.id, trial.status, trial.loss) for trial in study.trials)
    assert not [what for what, count in (asked | kept | arrived | outcomes).items() if count > 1], (
        "something is twice"
    )
    assert asked.keys() <= {s.id for s in study.suggestions}, "a suggestion is missing"
    missing = (kept | arrived).keys() - outcomes.keys()
    assert not missing, f"trials are missing: {missing}"


def _check_nothing_is_invented(study: StudyFile, lines: list[dict[str, Any]]) -> Counter[str]:
    """Every loss in the file was measured; returns what was measured and is not in the file, and how often."""
    finished = [line for line in lines if line["event"] == "finished"]
    measured = Counter((_key(line["config"], line["size"]), line["loss"]) for line in finished)
    complete = Counter(
        (_key(t.config, t.fidelity["size"]), t.loss) for t in study.trials if t.status == "complete"
    )
    assert complete <= measured, "the file has a loss that was never measured, or more often than it was"
    unkept = Counter({what: count for (what, _), count in (measured - complete).items()})
    lost = [t.suggestion for t in study.trials if t.status == "lost"]
    assert unkept <= Counter(_key(s.config, s.fidelity["size"]) for s in (*lost, *study.pending))
    return unkept


def _check_only_the_last_instant_is_lost(
    case: Case, unkept: Counter[str], lines: list[dict[str, Any]]
) -> None:
    assert unkept.total() <= case.kind.workers * len(case.kills)
    for line in lines:
        if line["event"] != "finished" or _key(line["config"], line["size"]) not in unkept:
            continue
        # The kill that it is nearest to; after one, a worker is ended when its guard notices.
        before = min((moment - line["at"] for moment in case.kills), key=abs)
        assert abs(before) < INSTANT, f"an evaluation that had finished {before:.3f} s before a kill is lost"
        case.latest = max(case.latest, before)


def _unheard(case: Case) -> list[Any]:
    """Numbers of the suggestions whose outcomes had arrived and were not heard of."""
    return _answer(case.study, "SELECT suggestion FROM arrival") if case.study.exists() else []


def check_end(case: Case) -> None:
    """A finished run is whole, and its suggestions are those of a run that was never killed."""
    study = read(case.study)
    assert (len(study.trials), study.pending, _unheard(case)) == (case.kind.trials, (), [])
    assert {trial.status for trial in study.trials} <= {"complete", "lost"}
    # What no worker had begun with is suggested again, and not lost.
    assert sum(trial.status == "lost" for trial in study.trials) <= case.kind.workers * len(case.kills)
    if case.kind.workers == 1:  # with several the order of outcomes is not the suggestions'
        assert [s.point.tobytes() for s in study.suggestions] == [
            s.point.tobytes() for s in _replayed(case, study)
        ]
    assert not [p.name for p in case.directory.iterdir() if p.name not in ("study.db", "journal")]


def _replayed(case: Case, study: StudyFile) -> list[Suggestion]:
    """What a study in memory suggests when it is told these outcomes, and is reopened where a trial was lost."""
    storage, asked = MemoryStorage(), []
    settings = {"strategy": study.strategy, "storage": storage, **SETTINGS, **case.kind.options}
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


def _answer(path: Path, question: str) -> list[Any]:
    """SQLite's answer from a copy of the file and its log, since to look at these would be to touch them."""
    with tempfile.TemporaryDirectory() as directory:
        for part in path.parent.glob(f"{path.name}*"):
            shutil.copy(part, directory)
        with closing(sqlite3.connect(Path(directory) / path.name)) as connection:
            return connection.execute(question).fetchall()


def _report(name: str, cases: list[Case]) -> None:
    found = sum((case.found for case in cases), Counter[str]())
    kills, unheard = sum(len(case.kills) for case in cases), sum(case.unheard for case in cases)
    workers = KINDS[name].workers
    print(
        f"{name}, {workers} worker{'s' * (workers > 1)}: all {len(cases)} runs are whole after {kills} kills"
    )
    for what, count in found.most_common():
        print(f"  {count} {what}")
    print(f"  {unheard} outcomes kept that it had not heard of")
    latest = max((case.latest for case in cases), default=0.0)
    print(f"  {1e3 * latest:.0f} ms before a kill, at most, an evaluation had finished that is not kept")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description="Kill runs at random moments, resume them, check their files."
    )
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)))
    options = parser.parse_args(arguments)
    rng, cases = random.Random(options.seed), list[Case]()
    print(f"seed {options.seed}", flush=True)
    start = time.monotonic()
    while len(cases) < options.runs:
        name = options.kinds[len(cases) % len(options.kinds)]
        with tempfile.TemporaryDirectory() as directory:
            case = killed_and_resumed(Path(directory), name, rng, times=rng.randint(1, 4))
        if not case.kills:
            continue  # too quick for us; it does not count
        cases.append(case)
        if len(cases) % 10 == 0:
            kills = sum(len(case.kills) for case in cases)
            print(f"{len(cases)} runs, {kills} kills, {time.monotonic() - start:.0f} s", flush=True)
    for name in options.kinds:
        _report(name, [case for case in cases if case.name == name])


if __name__ == "__main__":
    main()
