"""Bad objectives: ``python -m tests.faults.objectives`` runs each kind with one and with two workers.

Every run has a process of its own. It must return a result in time; bad trials have the status that is expected, good
ones their loss; no record is changed; the file has the same trials; no worker is left. A kind that ends the whole
process (one worker without limits) must leave a file that a good objective continues.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fabolas
from fabolas.storage.reader import read
from tests.faults.bad_objectives import BORDER, KINDS, Bad, Kind
from tests.faults.tally import Tried, attempt

ROOT = Path(__file__).parents[2]
TRIALS = 6
LAYERS = ([8, 8], [16])
PATIENCE = 60.0  # seconds until a run counts as hanging; the machine may be busy
SHORT = (
    "returns a masked value",
    "changes the configuration",
    "forks and both return",
    "dies by SIGKILL",
    "hangs in time.sleep",
)


def minimize(name: str, workers: int) -> fabolas.Result:
    """The run of a kind, with a file in the current directory."""
    kind = KINDS.get(name)
    return fabolas.minimize(
        Bad(name),
        {"x": fabolas.Float(0.0, 1.0), "layers": [list(layer) for layer in LAYERS]},
        {"size": (10, 1000)},
        max_trials=TRIALS,
        storage="study.db",
        seed=0,
        overhead=0.01,
        n_initial=3,
        effort=0.0,
        max_failures=100,
        workers=workers,
        progress=False,
        **(kind.limits if kind else {}),
    )


def in_own_process(directory: Path, name: str, workers: int) -> tuple[int, list[Any] | None]:
    """Run a kind in a fork of this process; returns how it ended, and the trials of its result if there is one."""
    answer = directory / "answer.json"
    answer.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        _run_and_exit(directory, answer, name, workers)
    end = time.monotonic() + PATIENCE
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise AssertionError(f"no result after {PATIENCE:g} s")
        time.sleep(0.01)
    return ended[1], json.loads(answer.read_text()) if answer.exists() else None


def _run_and_exit(directory: Path, answer: Path, name: str, workers: int) -> None:
    code = 1
    try:
        os.setsid()
        os.chdir(directory)
        os.environ["FABOLAS_FAULT"] = str(directory)
        log = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        warnings.simplefilter("ignore")
        result = minimize(name, workers)
        rows = [(trial.id, trial.status, trial.loss) for trial in result.trials]
        os.umask(0o077)
        answer.write_text(json.dumps(rows))
        code = 0
    except BaseException:  # noqa: BLE001 - the exit code and the log say it
        (directory / "log").write_text(traceback.format_exc())
    finally:
        os._exit(code)


def check(name: str, workers: int) -> None:
    """Run a kind and check everything that is promised."""
    kind = KINDS[name]
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        try:
            ended, rows = in_own_process(directory, name, workers)
            if kind.group == "dies" and workers == 1:
                assert rows is None, "the process should have ended"
                ended, rows = in_own_process(directory, "good", workers)
            assert rows is not None, f"it ended with {ended}: {_last_line(directory / 'log')}"
            check_trials(directory / "study.db", kind, workers, rows)
        finally:
            left = _left_behind(directory)
        assert not left or workers == 1, f"left behind: {left}"


def check_trials(path: Path, kind: Kind, workers: int, rows: list[Any]) -> None:
    """Check the trials of a result and of its file."""
    study = read(path)
    found = [[trial.id, trial.status, trial.loss] for trial in study.trials]
    assert found == rows, f"the file has {found}, the result {rows}"
    assert kind.stops or len(rows) == TRIALS, f"{len(rows)} trials"
    assert kind.stops or any(trial.config["x"] < BORDER for trial in study.trials), "no bad trial"
    resumed = kind.group == "dies" and workers == 1
    for trial in study.trials:
        x = trial.config["x"]
        assert isinstance(x, float), f"the record was changed: {trial.config}"
        assert trial.config["layers"] in LAYERS, f"the record was changed: {trial.config}"
        if x >= BORDER:
            assert kind.stops or (trial.status, trial.loss) == ("complete", x), f"a good trial: {trial}"
        elif not resumed and not kind.stops:
            assert trial.status == kind.status, f"a bad trial is {trial.status}: {str(trial.error)[-200:]}"
            if kind.status == "complete":
                assert trial.loss == (x if kind.loss is None else kind.loss), f"loss {trial.loss}"
            else:
                assert trial.error, "a failed trial without a reason"
    incumbent = fabolas.load(path).incumbent()
    if incumbent is not None:
        complete = [trial.config for trial in study.trials if trial.status == "complete"]
        assert incumbent.config in complete, f"the answer is not a complete trial: {incumbent}"


def _last_line(path: Path) -> str:
    lines = path.read_text(errors="replace").strip().splitlines() if path.exists() else []
    return lines[-1][:300] if lines else "no output"


def _left_behind(directory: Path) -> list[str]:
    """Command lines of processes that still run two seconds after a run; they are killed."""
    mark = f"FABOLAS_FAULT={directory}".encode()
    end = time.monotonic() + 2.0
    while (left := _processes_with(mark)) and time.monotonic() < end:
        time.sleep(0.05)
    for pid in left:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return list(left.values())


def _processes_with(mark: bytes) -> dict[int, str]:
    """Processes whose environment has the mark: id -> command."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes().split(b"\0"):
                found[int(process.name)] = (process / "cmdline").read_text().replace("\0", " ")
        except (OSError, ValueError):  # it has ended, or belongs to another user
            continue
    return found


def run(rng: random.Random, short: bool, count: int | None = None) -> Iterator[Tried]:
    """Run the kinds in a process of one thread, which is forked for each run: imports take most of the time."""
    names = list(SHORT if short else KINDS)[:count]
    command = [sys.executable, "-m", "tests.faults.objectives", *names]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            yield Tried(**json.loads(line))
    if process.returncode != 0:
        yield Tried("objectives", "all", f"the runner itself ended with code {process.returncode}")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Run bad objectives; prints one line of JSON for each run.")
    parser.add_argument("names", nargs="*", help="kinds; all of them if none is given")
    names = parser.parse_args(arguments).names or list(KINDS)
    with tempfile.TemporaryDirectory() as place:  # loads everything that the forks need
        os.chdir(place)
        minimize("good", 1)
        os.chdir(ROOT)
    for name in names:
        for workers in (1, 2):
            kind = f"objective {KINDS[name].group}, {workers} worker{'s' * (workers > 1)}"
            tried = attempt(kind, name, check, name, workers)
            print(json.dumps(vars(tried)), flush=True)


if __name__ == "__main__":
    main()
