"""Ctrl-C at random moments: ``python -m tests.faults.interrupts RUNS SEED``.

Each run gets one to six presses, which reach the process and its workers, as in a terminal. Half of the runs have a
live display. Whenever the presses come, ``minimize`` returns its result, and the file has the same trials. A press
after the return is the user's own.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fabolas
from fabolas.storage.reader import read
from tests.faults.tally import Tried, attempt
from tests.helpers.waiting import wait_until

ROOT = Path(__file__).parents[2]


class Presses(threading.Thread):
    """Presses Ctrl-C at given moments, counted from the first trial, until the run has returned."""

    def __init__(self, moments: list[float], begun: Path) -> None:
        super().__init__(daemon=True)
        self.moments, self.begun, self.returned, self.count = moments, begun, threading.Event(), 0

    def run(self) -> None:
        wait_until(self.begun.exists)
        start = time.monotonic()
        for moment in self.moments:
            if self.returned.wait(max(start + moment - time.monotonic(), 0.0)):
                return
            self.count += 1
            os.killpg(0, signal.SIGINT)


def moments(rng: random.Random) -> list[float]:
    """One to six moments. Half of the times they come in a burst, so that later ones meet the closing."""
    first, spread = rng.uniform(0.0, 0.3), rng.choice([0.02, 0.3])
    return sorted(first + rng.uniform(0.0, spread) for _ in range(rng.randint(1, 6)))


class Slow:
    """An objective that takes a moment, and creates a file when it is first called."""

    def __init__(self, begun: Path) -> None:
        self.begun = begun

    def __call__(self, config: dict[str, Any], size: int) -> float:
        self.begun.touch()
        time.sleep(0.02)
        return float(config["x"])


def check(path: Path, workers: int, progress: bool, rng: random.Random) -> None:
    """One run with presses."""
    presses = Presses(moments(rng), path.with_name("begun"))
    presses.start()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        result = _minimize(path, workers, progress)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt as error:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        frames = traceback.extract_tb(error.__traceback__)
        where = [
            f"{Path(f.filename).name}:{f.lineno}" for f in frames if f"{os.sep}fabolas{os.sep}" in f.filename
        ]
        assert not where, f"after {presses.count} presses the result is lost in {where}"
        return  # pressed after the return
    finally:
        presses.returned.set()
        presses.join()
    assert result.interrupted, "it did not notice"
    assert all(trial.status in ("complete", "abandoned") for trial in result.trials)
    study = read(path)
    found = [(trial.id, trial.status, trial.loss) for trial in study.trials]
    assert found == [(trial.id, trial.status, trial.loss) for trial in result.trials]
    assert not study.open_suggestions, "suggestions are left over"


def _minimize(path: Path, workers: int, progress: bool) -> fabolas.Result:
    return fabolas.minimize(
        Slow(path.with_name("begun")),
        {"x": fabolas.Float(0.0, 1.0)},
        {"size": (10, 1000)},
        max_trials=10_000,
        storage=path,
        seed=0,
        n_initial=3,
        effort=0.0,
        workers=workers,
        progress=progress,
    )


def run(rng: random.Random, short: bool, count: int | None = None) -> Iterator[Tried]:
    runs = count or (4 if short else 100)
    command = [sys.executable, "-m", "tests.faults.interrupts", str(runs), str(rng.randrange(1 << 32))]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # the display
        text=True,
        start_new_session=True,
        env={**os.environ, "FORCE_COLOR": "1", "TERM": "xterm"},  # display as in a terminal
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            yield Tried(**json.loads(line))
    if process.returncode != 0:
        yield Tried("Ctrl-C", "all", f"the runner itself ended with code {process.returncode}")


def main(runs: str, seed: str) -> None:
    warnings.simplefilter("ignore")
    for number in range(int(runs)):
        rng, workers, progress = random.Random(f"{seed} {number}"), 1 + number % 2, number % 4 >= 2
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "study.db"
            tried = attempt(
                f"Ctrl-C, {workers} worker{'s' * (workers > 1)}{', live display' * progress}",
                f"seed '{seed} {number}'",
                check,
                path,
                workers,
                progress,
                rng,
            )
        print(json.dumps(vars(tried)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
