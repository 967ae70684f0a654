"""Runs that are killed by SIGKILL at random moments and resumed: ``python -m tests.faults.kill --runs 100``.

Each run keeps a journal of its own (see ``child``). After every kill and at the end these statements are checked:

- The file passes SQLite's integrity check, and suggestions are numbered 0, 1, 2, ... without a gap.
- Every step that was committed is in the file, once and with the same id.
- Every loss in the file was measured, as often as it is there.
- At most one finished evaluation per worker is not in the file. It finished less than ``INSTANT`` seconds before the
  kill: the time for the journal, the pipe and the interpreter's lock. Its suggestion is in the file. It becomes an
  abandoned trial, or is evaluated again if the file did not have its start yet. The longest such time is printed.
- Not more suggestions are pending than there are workers, and one that is prepared in advance. A suggestion that no
  worker had started is suggested again.
- With one worker, all suggestions equal those of a run in memory that got the same outcomes and was never killed.
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
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import fabolas
from fabolas.api import minimize
from fabolas.storage import MemoryStorage
from fabolas.storage.reader import StudyFile, read
from fabolas.trials import Suggestion, Trial
from tests.faults.child import KINDS, SPACE, Kind, run_settings
from tests.faults.tally import Tried, attempt

ROOT = Path(__file__).parents[2]
INSTANT = 0.25  # seconds; a decision of the kind "overhead" takes twice as long


@dataclass
class Case:
    """One run with its file, its journal and its kills.

    Attributes:
        directory: Where its files are.
        name: Its kind.
        kills: When it was killed, in seconds since the epoch.
        found: What it was doing then.
        unheard: How many outcomes were reported but not told to the study then.
        latest: The longest time in seconds between the end of an evaluation that is not in the file and the kill.
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
        """Start the run in its own process; returns just before it opens the file."""
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
    """Kill a run up to ``times`` times, then let it end; check it each time."""
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
    """Seconds until the kill: anywhere in the run, and every third time just after its start."""
    return rng.uniform(0.0, 0.04 if rng.random() < 1 / 3 else kind.seconds)


def check(case: Case) -> str:
    """Check what must hold whenever the process has ended; returns what it was doing then."""
    lines = _journal(case.journal)
    if not case.study.exists():
        assert not lines, "steps were taken without a file"
        return "before there was a file"
    intact = _answer(case.study, "PRAGMA integrity_check")
    assert intact == [("ok",)], f"the file is damaged: {intact}"
    study = read(case.study)
    assert study.lock_owner is None, "a dead process holds the file"
    ids = [s.id for s in study.suggestions]
    assert ids == list(range(len(ids))), f"suggestions are numbered {ids}"
    _check_nothing_is_missing(study, lines)
    unkept = _check_nothing_is_invented(study, lines)
    _check_only_the_last_instant_is_lost(case, unkept, lines)
    workers, unheard = case.kind.workers, len(_unheard(case))
    started, pending = len(study.started_suggestions), len(study.open_suggestions) + unheard
    assert started <= workers, f"{started} trials were running"
    assert pending <= workers + (workers > 1), f"{pending} are pending"  # one is prepared in advance
    if unheard:
        return "computing a suggestion, with outcomes that it was not told yet"
    if not study.open_suggestions:
        return "computing a suggestion"
    if any(_key(s.config, s.fidelity["size"]) in unkept for s in study.open_suggestions):
        return "between an evaluation and its record"
    return "evaluating"


def _check_nothing_is_missing(study: StudyFile, lines: list[dict[str, Any]]) -> None:
    asked = Counter(line["id"] for line in lines if line["event"] == "asked")
    kept = Counter((line["id"], line["status"], line["loss"]) for line in lines if line["event"] == "kept")
    reported = Counter(
        (line["id"], line["status"], line["loss"]) for line in lines if line["event"] == "reported"
    )
    outcomes = Counter((trial.id, trial.status, trial.loss) for trial in study.trials)
    assert not [what for what, count in (asked | kept | reported | outcomes).items() if count > 1], (
        "something is twice"
    )
    assert asked.keys() <= {s.id for s in study.suggestions}, "a suggestion is missing"
    missing = (kept | reported).keys() - outcomes.keys()
    assert not missing, f"trials are missing: {missing}"


def _check_nothing_is_invented(study: StudyFile, lines: list[dict[str, Any]]) -> Counter[str]:
    """Check that every loss in the file was measured; returns what was measured but is not in the file."""
    finished = [line for line in lines if line["event"] == "finished"]
    measured = Counter((_key(line["config"], line["size"]), line["loss"]) for line in finished)
    complete = Counter(
        (_key(t.config, t.fidelity["size"]), t.loss) for t in study.trials if t.status == "complete"
    )
    assert complete <= measured, "the file has a loss that was never measured, or more often than it was"
    unkept = Counter({what: count for (what, _), count in (measured - complete).items()})
    # Its suggestion is abandoned or, if the file did not have its start yet, open or evaluated again.
    known = Counter(_key(s.config, s.fidelity["size"]) for s in study.suggestions)
    assert unkept <= known, f"measured without a suggestion: {unkept - known}"
    return unkept


def _check_only_the_last_instant_is_lost(
    case: Case, unkept: Counter[str], lines: list[dict[str, Any]]
) -> None:
    limit = case.kind.workers * len(case.kills)
    assert unkept.total() <= limit, (
        f"{unkept.total()} finished evaluations are lost, after {len(case.kills)} kills"
    )
    for what, count in unkept.items():
        finished = [
            line["at"]
            for line in lines
            if line["event"] == "finished" and _key(line["config"], line["size"]) == what
        ]
        # The kill that each is nearest to; after one, a worker is ended when its guard notices.
        nearest = sorted((min((moment - at for moment in case.kills), key=abs) for at in finished), key=abs)
        for before in nearest[:count]:
            assert abs(before) < INSTANT, (
                f"an evaluation that had finished {before:.3f} s before a kill is lost"
            )
            case.latest = max(case.latest, before)


def _unheard(case: Case) -> list[Any]:
    """Ids of the suggestions whose outcomes were reported but not told to the study."""
    return _answer(case.study, "SELECT suggestion FROM reported") if case.study.exists() else []


def check_end(case: Case) -> None:
    """Check that a finished run is complete, with the suggestions of a run that was never killed."""
    study = read(case.study)
    counts = len(study.trials), len(study.open_suggestions), len(_unheard(case))
    assert counts == (case.kind.trials, 0, 0), f"trials, open suggestions, unheard outcomes: {counts}"
    failed = [trial for trial in study.trials if trial.status not in ("complete", "abandoned")]
    assert not failed, f"failed: {failed}"
    # What no worker had started is suggested again, and not lost.
    abandoned = sum(trial.status == "abandoned" for trial in study.trials)
    assert abandoned <= case.kind.workers * len(case.kills), f"{abandoned} are abandoned"
    if case.kind.workers == 1:  # with several the order of outcomes is not the suggestions'
        points = [s.point.tobytes() for s in study.suggestions]
        assert points == [s.point.tobytes() for s in _replayed(case, study)], "other suggestions"
    left = [p.name for p in case.directory.iterdir() if p.name not in ("study.db", "journal")]
    assert not left, f"files are left: {left}"


class _ReplayStorage(MemoryStorage):
    """Keeps abandoned trials as the file has them: their cost depends on the moment of the kill."""

    def __init__(self, study: StudyFile) -> None:
        super().__init__()
        self._of_file = {trial.id: trial for trial in study.trials}

    def add_trial(self, trial: Trial) -> None:
        if trial.status == "abandoned":
            of_file = self._of_file[trial.id]
            trial = replace(trial, cost=of_file.cost, elapsed=of_file.elapsed)
        super().add_trial(trial)


def _replayed(case: Case, study: StudyFile) -> tuple[Suggestion, ...]:
    """The suggestions of a run in memory with the same outcomes, interrupted only where a trial was abandoned."""
    outcomes = iter(sorted(study.trials, key=lambda trial: trial.id))
    storage = _ReplayStorage(study)

    def objective(config: dict[str, Any], size: int) -> fabolas.Outcome:
        trial = next(outcomes)
        if trial.loss is None:
            raise KeyboardInterrupt
        return fabolas.Outcome(trial.loss, cost=trial.cost)

    for _ in range(1 + len(case.kills)):
        minimize(objective, SPACE, max_trials=case.kind.trials, storage=storage, **run_settings(case.kind))
    return storage.record.suggestions


def _key(config: dict[str, Any], size: float) -> str:
    return json.dumps([config, size], sort_keys=True)


def _journal(path: Path) -> list[dict[str, Any]]:
    """The complete lines; a kill may have cut the last one."""
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def _answer(path: Path, question: str) -> list[Any]:
    """SQLite's answer from a copy of the file and its log, because SQLite would change the originals."""
    with tempfile.TemporaryDirectory() as directory:
        for part in path.parent.glob(f"{path.name}*"):
            shutil.copy(part, directory)
        with closing(sqlite3.connect(Path(directory) / path.name)) as connection:
            return connection.execute(question).fetchall()


def run(rng: random.Random, short: bool, count: int | None = None) -> Iterator[Tried]:
    """Kill runs of each kind by turns; a run that ended before it was killed does not count."""
    runs, names = count or (1 if short else 100), list(KINDS)
    killed = 0
    for _ in range(10 * runs):
        if killed == runs:
            return
        name, seed, cases = names[killed % len(names)], rng.randrange(1 << 32), list[Case]()
        with tempfile.TemporaryDirectory() as place:
            tried = attempt(f"kill: {name}", f"seed {seed}", _add_case, cases, Path(place), name, seed)
        if tried.problem or cases[0].kills:
            killed += 1
            yield tried


def _add_case(cases: list[Case], directory: Path, name: str, seed: int) -> None:
    rng = random.Random(seed)
    cases.append(killed_and_resumed(directory, name, rng, times=rng.randint(1, 4)))


def _report(name: str, cases: list[Case]) -> None:
    found = sum((case.found for case in cases), Counter[str]())
    kills, unheard = sum(len(case.kills) for case in cases), sum(case.unheard for case in cases)
    workers = KINDS[name].workers
    print(
        f"{name}, {workers} worker{'s' * (workers > 1)}: all {len(cases)} runs are whole after {kills} kills"
    )
    for what, count in found.most_common():
        print(f"  {count} {what}")
    print(f"  {unheard} outcomes kept that it was not told yet")
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
    for _ in range(10 * options.runs):  # a run that ends before it is killed does not count
        if len(cases) == options.runs:
            break
        name = options.kinds[len(cases) % len(options.kinds)]
        with tempfile.TemporaryDirectory() as directory:
            case = killed_and_resumed(Path(directory), name, rng, times=rng.randint(1, 4))
        if not case.kills:
            continue
        cases.append(case)
        if len(cases) % 10 == 0:
            kills = sum(len(case.kills) for case in cases)
            print(f"{len(cases)} runs, {kills} kills, {time.monotonic() - start:.0f} s", flush=True)
    for name in options.kinds:
        _report(name, [case for case in cases if case.name == name])


if __name__ == "__main__":
    main()
