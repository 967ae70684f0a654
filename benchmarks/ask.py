"""Seconds of overhead a suggestion: by number of trials, dimension and effort, and as a share of the time.

    python -m benchmarks.ask            both tables
    python -m benchmarks.ask --quick    without n = 1000

Process time on one thread: run with OMP_NUM_THREADS=1 (set here before numpy is loaded).
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import resource
import time

import numpy as np
from rich.console import Console
from rich.table import Table

import fabolas
from experiments.clock import Clock
from experiments.synthetic import Problem, rugged, svm_like
from fabolas.strategies import make
from fabolas.trials import History, Suggestion, Trial

SIZES = (20, 50, 100, 200, 1000)
TARGETS = {1.0: (0.2, 0.25, 0.4, 0.8, 3.0), 0.0: (0.02, 0.03, 0.05, 0.1, 0.5)}


def record(problem: Problem, space: fabolas.Space, n: int, rng: np.random.Generator) -> list[Trial]:
    """n trials such as a run makes: spread at first, then around the optimum, on sizes of all kinds."""
    trials = []
    centre = space.encode(min(_random_configs(space, 300, rng), key=problem.truth))[: space.dim]
    for i in range(n):
        x = (
            rng.random(space.dim)
            if i < 10 or rng.random() < 0.3
            else centre + 0.1 * rng.normal(size=space.dim)
        )
        point = space.snap(np.append(x, rng.random() ** 1.5)[None])[0]
        config, fidelity = space.decode(point)
        loss, cost = problem(config, **fidelity, rng=rng)
        trials.append(
            Trial(Suggestion(i, config, fidelity, point, "information", overhead=0.1), "complete", loss, cost)
        )
    return trials


def _random_configs(space: fabolas.Space, n: int, rng: np.random.Generator) -> list[dict[str, object]]:
    return [space.decode(np.append(x, 1.0))[0] for x in rng.random((n, space.dim))]


def measure(problem: Problem, n: int, effort: float, repeats: int) -> np.ndarray:
    """Process seconds of consecutive suggestions, each with one trial more than the last: (repeats,)."""
    rng = np.random.default_rng(n)
    space = fabolas.Space(problem.space, problem.fidelities)
    trials = record(problem, space, n + repeats, rng)
    # Without target evaluations, which are cheaper to decide.
    strategy = make("fabolas", space, effort=effort, target_share=0.0)
    warm = History(tuple(trials[: min(n, 60)]))
    strategy.suggest(warm, (), rng)  # walkers that have burnt in, as in the middle of a run
    seconds = []
    for i in range(repeats):
        history = History(tuple(trials[: n + i]))
        _ = history.points, history.losses, history.costs
        start = time.process_time()
        strategy.suggest(history, (), rng)
        seconds.append(time.process_time() - start)
    return np.array(seconds)


def table_of_sizes(console: Console, sizes: tuple[int, ...]) -> None:
    """Prints the median of 10 suggestions (the mean at n = 1000, where refits are rare and costly)."""
    table = Table(title="seconds per ask(), process time, one thread", title_justify="left")
    for heading in ("d", "effort", *(f"n = {n}" for n in sizes)):
        table.add_column(heading, justify="right")
    for problem in (svm_like(), rugged(6)):
        d = len(problem.space)
        for effort, targets in TARGETS.items():
            row = []
            for n, target in zip(sizes, targets, strict=False):
                seconds = measure(problem, n, effort, 10)
                value = float(np.mean(seconds) if n >= 1000 else np.median(seconds))
                allowed = target * (1 if d == 2 else 2)
                row.append(f"{value:.3f} / {allowed:g}" + ("" if value <= allowed else " !"))
            table.add_row(str(d), "full" if effort else "least", *row)
    console.print(table)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    console.print(f"measured / allowed. Peak memory of this process: {memory:.0f} MB")


def table_of_shares(console: Console, trials: int) -> None:
    """Prints overhead as a share of all time, for runs of `minimize` whose evaluations are simulated."""
    table = Table(title=f"share of time spent overhead, {trials} trials of equal cost", title_justify="left")
    for heading in ("seconds a trial", "overhead a trial", "share", "mean effort"):
        table.add_column(heading, justify="right")
    problem = svm_like()
    # What the first run of a process imports is not overhead.
    fabolas.minimize(
        lambda config, size: 1.0, problem.space, problem.fidelities, max_trials=12, progress=False
    )
    for cost in (0.05, 0.5, 5.0, 50.0):
        clock, rng = Clock(), np.random.default_rng(0)

        def objective(config: dict[str, object], size: int, cost: float = cost) -> float:
            clock.advance(cost)  # noqa: B023  called before the loop goes on
            return problem(config, size, rng)[0]  # noqa: B023

        result = fabolas.minimize(
            objective,
            problem.space,
            problem.fidelities,
            max_trials=trials,
            seed=0,
            clock=clock,
            progress=False,
        )
        efforts = [t.suggestion.effort for t in result.trials if t.suggestion.origin != "design"]
        overhead = result.elapsed - trials * cost
        table.add_row(
            f"{cost:g}",
            f"{overhead / trials:.4f}",
            f"{100 * overhead / result.elapsed:.1f} %",
            f"{np.mean(efforts):.2f}",
        )
    console.print(table)


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="without n = 1000")
    arguments = parser.parse_args()
    console = Console(width=120)
    table_of_sizes(console, SIZES[:-1] if arguments.quick else SIZES)
    table_of_shares(console, 100)


if __name__ == "__main__":
    main()
