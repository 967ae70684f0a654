"""What several workers cost: how busy they are kept, and what the storage adds to a trial.

    python -m benchmarks.workers                 both tables
    python -m benchmarks.workers --quick         fewer trials
    python -m benchmarks.workers --simulated     1, 64 and 256 workers under a simulated clock
    python -m benchmarks.workers --simulated --problem svm_like --workers 64 256 --seconds 10 --rounds 3 --seeds 5

A row of the first table is a run of `minimize` with real worker processes. Trials sleep, so the cores are free for
overhead. Each trial takes ten times as long as one `ask()` at a fixed effort, plus or minus a third. The workers
measure the busy time. The available time is the time between the start of the first trial and the start of the last
one, times the number of workers.

With `--simulated` the loop, the strategy and its overhead (in process time) are the real ones. Trials take no time but
that of the clock: 10 or 60 seconds each, plus or minus a third, whatever their size. With several seeds a row has the
medians, but the most repeated points and the closest two pending ones of all runs.
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from dataclasses import dataclass, field  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

import fabolas  # noqa: E402
from experiments.asynchronous import as_run, run_workers  # noqa: E402
from experiments.synthetic import rugged, svm_like  # noqa: E402
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
    begins, ends = begins_and_ends(result)
    asked = np.mean([trial.suggestion.overhead for trial in result.trials[trials // 4 :]])
    return busy_share(begins, ends, workers), float(asked), closest(result, begins, ends)


def begins_and_ends(result: fabolas.Result) -> tuple[np.ndarray, np.ndarray]:
    """(n,) When each trial began and ended."""
    ends = np.array([trial.elapsed or 0.0 for trial in result.trials])
    return ends - np.array([trial.cost for trial in result.trials]), ends


def busy_share(begins: np.ndarray, ends: np.ndarray, workers: int) -> float:
    """The share of the workers' time that they were busy, until the last trial began: until then there was work."""
    window = float(begins.max()) - float(begins.min())
    busy = np.clip(np.minimum(ends, begins.max()) - begins, 0.0, None).sum()
    return float(busy / (workers * window))


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
        n_initial=trials,
        storage=storage,
    ) as study:
        for _ in range(trials):
            suggestion = study.ask(queued=True)
            study.save_event(Started(suggestion.id))
            study.start(suggestion)
            study.save_event(Ended(suggestion.id, "complete", 0.5, 1.0, {"accuracy": 0.5}))
            study.tell(suggestion, 0.5, cost=1.0, info={"accuracy": 0.5})
    return (time.perf_counter() - start) / trials


# Distances to the lowest loss of a problem. Losses of `rugged6` range from 0.1 to about 0.7.
DISTANCES = {"rugged": (rugged, 0.05), "svm_like": (svm_like, 0.01)}


@dataclass(frozen=True)
class Timed:
    """A problem with trials that take `seconds`, plus or minus a third."""

    seconds: float
    problem: Any = field(default_factory=rugged)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.problem, name)

    def __call__(self, config: dict[str, Any], size: int, rng: np.random.Generator) -> tuple[float, float]:
        return self.problem(config, size, rng)[0], self.seconds * rng.uniform(2 / 3, 4 / 3)


def simulated(problem: Timed, workers: int, trials: int, seed: int, distance: float) -> tuple[float, ...]:
    """Utilisation, repeated points, closest pending points, overhead of a trial, time until within the distance."""
    result, _ = run_workers(problem, workers, seed=seed, max_trials=trials)
    begins, ends = begins_and_ends(result)
    points = np.array([trial.suggestion.point for trial in result.trials])
    repeated = len(points) - len(np.unique(points, axis=0))
    overhead = float(np.mean([trial.suggestion.overhead for trial in result.trials]))
    pending = closest(result, begins, ends) if workers > 1 else np.nan
    reached = as_run(problem, result).stays_within(distance)
    return busy_share(begins, ends, workers), repeated, pending, overhead, reached


def table_of_simulated(console: Console, options: argparse.Namespace) -> None:
    """Prints a row for each number of workers and each length of a trial."""
    make, distance = DISTANCES[options.problem]
    title = (
        f"{make().name}, simulated clock: seconds until within {distance:g} to stay, {options.seeds} seeds"
    )
    table = Table(title=title, title_justify="left")
    headings = ("seconds a trial", "workers", "trials", "utilisation", "repeated", "closest pending")
    for heading in (*headings, "overhead", "reached"):
        table.add_column(heading, justify="right")
    for seconds in options.seconds:
        for workers in options.workers:
            rounds = options.rounds or (3 if options.quick else 6)
            trials, problem = max(rounds * workers, 150), Timed(seconds, make())
            runs = [simulated(problem, workers, trials, seed, distance) for seed in range(options.seeds)]
            busy, repeated, pending, overhead, reached = zip(*runs, strict=True)
            table.add_row(
                f"{seconds:g}",
                str(workers),
                str(trials),
                f"{np.median(busy):.1%}",
                str(max(repeated)),
                "" if workers == 1 else f"{min(pending):.4f}",
                f"{np.median(overhead):.3f}",
                f"{np.median(reached):.0f}",
            )
    console.print(table)


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer trials")
    parser.add_argument("--simulated", action="store_true", help="1, 64 and 256 simulated workers instead")
    parser.add_argument("--problem", choices=DISTANCES, default="rugged", help="of simulated workers")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 64, 256], help="how many are simulated")
    parser.add_argument("--seconds", type=float, nargs="+", default=[10.0, 60.0], help="of a simulated trial")
    parser.add_argument("--rounds", type=int, help="simulated trials of a worker; 6, or 3 with --quick")
    parser.add_argument("--seeds", type=int, default=1, help="simulated runs of a row")
    options = parser.parse_args()
    console, trials = Console(width=120), 40 if options.quick else 100
    if options.simulated:
        table_of_simulated(console, options)
        return
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
