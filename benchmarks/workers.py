"""What several workers cost: how busy they are kept, and what the storage adds to a trial.

    python -m benchmarks.workers            both tables
    python -m benchmarks.workers --quick    fewer trials

A row of the first table is a run of `minimize` with real worker processes. Trials sleep, so that the cores are for
thinking; each takes ten times as long as one `ask()` at a fixed effort, more or less by a third. Busy time is what
the workers measured, available time what passed for all of them between the first trial's beginning and the last's.
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
from experiments.synthetic import svm_like  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

import fabolas  # noqa: E402
from fabolas.execution import Ended, Started  # noqa: E402
from fabolas.storage import MemoryStorage, SqliteStorage, Storage  # noqa: E402

EFFORT = 0.6
FACTOR = 10.0


def seconds_of_ask(trials: int) -> float:
    """The mean time of `ask()` in a study of so many trials, with seven of them pending as a rule."""
    problem, rng, seconds = svm_like(), np.random.default_rng(0), []
    with fabolas.Study(problem.space, problem.fidelities, seed=0, effort=EFFORT) as study:
        while len(study.trials) < trials:
            while len(study.pending) < 8:
                start = time.perf_counter()
                suggestion = study.ask()
                seconds.append(time.perf_counter() - start)
            suggestion = study.pending[0]
            loss, _ = problem(suggestion.config, **suggestion.fidelity, rng=rng)
            study.tell(suggestion, loss, cost=1.0)
    return float(np.mean(seconds[len(seconds) // 4 :]))


def sleeper(config: dict[str, Any], size: int, data: float) -> float:
    """A trial that takes `data` seconds, more or less by a third, and no processor."""
    rng = np.random.default_rng([size, int(1e6 * config["x0"])])
    time.sleep(data * rng.uniform(2 / 3, 4 / 3))
    return svm_like()(config, size, rng)[0]


def utilisation(workers: int, trials: int, seconds: float) -> tuple[float, float, float]:
    """Busy share of the workers' time, mean seconds of an `ask()`, and the closest that two pending points came."""
    problem = svm_like()
    with tempfile.TemporaryDirectory() as folder:
        result = fabolas.minimize(
            sleeper,
            problem.space,
            problem.fidelities,
            max_trials=trials,
            workers=workers,
            data=seconds,
            seed=0,
            effort=EFFORT,
            storage=Path(folder) / "study.db",
            progress=False,
        )
    ends = np.array([trial.elapsed or 0.0 for trial in result.trials])
    begins = ends - result_costs(result)
    # Until the last trial began there was work for everybody.
    window = float(begins.max()) - float(begins.min())
    busy = np.clip(np.minimum(ends, begins.max()) - begins, 0.0, None).sum()
    asked = np.mean([trial.suggestion.thinking for trial in result.trials[trials // 4 :]])
    return float(busy / (workers * window)), float(asked), closest(result, begins, ends)


def result_costs(result: fabolas.Result) -> np.ndarray:
    """(n,) What each trial cost."""
    return np.array([trial.cost for trial in result.trials])


def closest(result: fabolas.Result, begins: np.ndarray, ends: np.ndarray) -> float:
    """The least distance in the cube of two trials that were under way at the same time."""
    points = np.array([trial.suggestion.point for trial in result.trials])
    distance = np.abs(points[:, None] - points[None]).max(axis=2)
    together = (begins[:, None] < ends[None]) & (begins[None] < ends[:, None])
    np.fill_diagonal(together, False)
    return float(distance[together].min())


def storage_seconds(storage: Storage, trials: int) -> float:
    """Mean seconds of a trial of the initial design that costs nothing: the study's and the storage's own.

    It is reported by a worker and told later, as with several workers; with one it is told only.
    """
    problem = svm_like()
    start = time.perf_counter()
    with fabolas.Study(
        problem.space,
        problem.fidelities,
        strategy="fabolas",
        seed=0,
        effort=0.0,
        initial=trials,
        storage=storage,
    ) as study:
        for _ in range(trials):
            suggestion = study.ask(queued=True)
            study.arrived(Started(suggestion.id))
            study.start(suggestion)
            study.arrived(Ended(suggestion.id, "complete", 0.5, 1.0, {"accuracy": 0.5}))
            study.tell(suggestion, 0.5, cost=1.0, info={"accuracy": 0.5})
    return (time.perf_counter() - start) / trials


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer trials")
    options = parser.parse_args()
    console, trials = Console(width=120), 40 if options.quick else 100
    asked = seconds_of_ask(trials)
    table = Table(
        title=f"a trial of {FACTOR:g} times an ask() of {asked:.3f} s, {trials} trials", title_justify="left"
    )
    for heading in ("workers", "ask() in the run", "trial / ask()", "utilisation", "closest pending"):
        table.add_column(heading, justify="right")
    for workers in (2, 4, 8):
        busy, seconds, distance = utilisation(workers, trials, FACTOR * asked)
        cells = (f"{seconds:.3f} s", f"{FACTOR * asked / seconds:.1f}", f"{busy:.1%}", f"{distance:.4f}")
        table.add_row(str(workers), *cells)
    console.print(table)
    with tempfile.TemporaryDirectory() as folder:
        kept = storage_seconds(SqliteStorage(Path(folder) / "study.db"), trials)
    memory = storage_seconds(MemoryStorage(), trials)
    console.print(
        f"storage: {1e3 * (kept - memory):.2f} ms a trial (file {1e3 * kept:.2f}, memory {1e3 * memory:.2f})"
    )


if __name__ == "__main__":
    main()
