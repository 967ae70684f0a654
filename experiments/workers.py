"""How much sooner several workers get there: time to a target on the SVM table, one worker against four.

    python -m experiments.workers --workers 1 4 --seeds 8

The clock is simulated (`experiments.asynchronous`): the loop, the strategy and its overhead are the real ones. The
time of a run is when the incumbent's regret comes within the distance to stay.
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse  # noqa: E402
from concurrent.futures import ProcessPoolExecutor  # noqa: E402
from multiprocessing import get_context  # noqa: E402

import numpy as np  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

from experiments.asynchronous import simulate_workers  # noqa: E402
from experiments.svm_grid.problem import Problem  # noqa: E402

DISTANCES = (0.01, 0.005, 0.002)


def one(
    data: str, scale: float, workers: int, seed: int, budget: float, trials: int, overhead: float | None
) -> list[float]:
    """Times to stay within each distance, in full trainings; then utilisation and number of trials."""
    problem = Problem.load(data, cost_scale=scale)
    run, utilisation = simulate_workers(
        problem,
        workers,
        seed=seed,
        time_budget=budget * problem.full_cost / workers,
        max_trials=trials,
        overhead=overhead,
    )
    times = [run.stays_within(distance) / problem.full_cost for distance in DISTANCES]
    return [*times, utilisation, len(run.time)]


def main() -> None:
    """Prints medians over seeds and the ratios to one worker."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="mnist")
    parser.add_argument("--cost-scale", type=float, default=100.0, help="100 makes trainings of minutes")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--budget", type=float, default=10.0, help="full trainings of all workers together")
    parser.add_argument("--max-trials", type=int, default=150)
    parser.add_argument("--overhead", type=float, help="seconds a suggestion counts for, instead of measured")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    rest = (options.budget, options.max_trials, options.overhead)
    jobs = [
        (options.data, options.cost_scale, workers, seed, *rest)
        for seed in range(options.seeds)
        for workers in options.workers
    ]
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        rows = np.array(list(pool.map(one, *zip(*jobs, strict=True))))
    rows = rows.reshape(options.seeds, len(options.workers), -1)
    table = Table(
        title=f"{options.data} x {options.cost_scale:g}, {options.seeds} seeds: full trainings until within"
    )
    for heading in ("workers", *(f"{d:g}" for d in DISTANCES), "utilisation", "trials"):
        table.add_column(heading, justify="right")
    medians = np.median(rows, axis=0)
    for i, workers in enumerate(options.workers):
        cells = []
        for j in range(len(DISTANCES)):
            reached = int(np.isfinite(rows[:, i, j]).sum())
            both = np.isfinite(medians[[0, i], j]).all()
            told = f" ÷{medians[0, j] / medians[i, j]:.2f}" if i and both else ""
            cells.append(f"{medians[i, j]:.3f}{told} ({reached}/{options.seeds})")
        table.add_row(str(workers), *cells, f"{medians[i, -2]:.0%}", f"{medians[i, -1]:.0f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
