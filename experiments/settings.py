"""Which settings are best: variants of FABOLAS on problems of several kinds, several seeds, one table.

    python -m experiments.settings run --group information --seeds 10 --processes 2
    python -m experiments.settings table --group information

Each finished run is a line of a journal, so that a killed comparison goes on where it was. Thinking is counted
with the fixed overhead of `--overhead` seconds, so that a busy machine changes nothing.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from experiments import synthetic
from experiments.simulate import Problem, simulate

# A comparison: variants by name, each the options that differ from the defaults.
GROUPS: dict[str, dict[str, dict[str, Any]]] = {
    "default": {"default": {}},
    "information": {"gain": {"information": "gain"}, "paper": {"information": "paper"}},
    "warp": {"log": {"warp": "log"}, "none": {"warp": "none"}, "excess": {"warp": "excess"}},
    "curve": {"power": {"curve": "power"}, "paper": {"curve": "paper"}},
    "drift": {"drift": {"drift": True}, "equation 6": {"drift": False}},
    "noise": {"one noise": {"noise_by_fidelity": False}, "by size": {"noise_by_fidelity": True}},
    "lengths": {"uniform": {"lengths": "uniform"}, "scaled": {"lengths": "scaled"}},
    "checks": {f"{c:g}": {"checks": c} for c in (0.0, 0.5, 1.0)},
    "representers": {
        "thompson": {"representers": "thompson"},
        "improvement": {"representers": "improvement"},
    },
    "pmin": {"sampling": {"pmin": "sampling"}, "ep": {"pmin": "ep"}},
    "maximizer": {m: {"maximizer": m} for m in ("candidates", "direct", "cma")},
    "design": {f"k = {k}": {"initial": k} for k in (5, 10, 20)},
    "effort": {"full": {"effort": 1.0}, "half": {"effort": 0.5}, "least": {"effort": 0.0}},
}
# Problem by name: a maker from a seed, and the budget in full trainings.
PROBLEMS: dict[str, tuple[Any, float]] = {
    "svm_like": (synthetic.svm_like, 2.0),
    "rugged6": (lambda seed: synthetic.rugged(6, seed), 10.0),
    "misleading": (synthetic.misleading, 10.0),
}
CHECKPOINTS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0)  # in full trainings
JOURNAL = Path(".cache/settings.jsonl")


def problem_of(name: str, seed: int) -> Problem:
    """The problem of this name; another one of its family for each seed."""
    made: Problem = PROBLEMS[name][0](seed)
    return made


def one(problem: str, options: dict[str, Any], seed: int, overhead: float) -> dict[str, Any]:
    """One run: the regret at each checkpoint and how the time was used."""
    instance, full_trainings = problem_of(problem, seed), PROBLEMS[problem][1]
    budget = full_trainings * instance.full_cost
    run = simulate(instance, seed=seed, time_budget=budget, max_trials=150, overhead=overhead, **options)
    return {
        "regret": [run.regret_at(c * instance.full_cost) for c in CHECKPOINTS if c <= full_trainings],
        "trials": len(run.time),
        "end": run.time[-1] / instance.full_cost,
        "median_size": float(np.median(run.size)),
    }


def key(problem: str, options: dict[str, Any], seed: int, overhead: float) -> str:
    """What identifies a run in the journal."""
    return json.dumps([problem, options, seed, overhead], sort_keys=True)


def finished() -> dict[str, dict[str, Any]]:
    """All runs of the journal by key."""
    if not JOURNAL.exists():
        return {}
    rows = [json.loads(line) for line in JOURNAL.read_text().splitlines()]
    return {row["key"]: row for row in rows}


def run(arguments: argparse.Namespace) -> None:
    """Runs what the journal does not have yet."""
    done = finished()
    jobs = [
        (name, options, seed, arguments.overhead)
        for seed in range(arguments.seeds)
        for name in arguments.problems
        for options in GROUPS[arguments.group].values()
    ]
    jobs = [job for job in jobs if key(*job) not in done]
    JOURNAL.parent.mkdir(exist_ok=True)
    with ProcessPoolExecutor(arguments.processes) as pool, JOURNAL.open("a") as journal:
        futures = {pool.submit(one, *job): job for job in jobs}
        for future in track(as_completed(futures), total=len(jobs), description=arguments.group):
            journal.write(json.dumps({"key": key(*futures[future]), **future.result()}) + "\n")
            journal.flush()


def table(arguments: argparse.Namespace) -> None:
    """Prints the median regret at each checkpoint, and the mean rank among the variants."""
    done, console = finished(), Console(width=150)
    for name in arguments.problems:
        checkpoints = [c for c in CHECKPOINTS if c <= PROBLEMS[name][1]]
        regrets = {}
        for variant, options in GROUPS[arguments.group].items():
            rows = [done.get(key(name, options, s, arguments.overhead)) for s in range(arguments.seeds)]
            regrets[variant] = np.array([row["regret"] for row in rows if row is not None])
        shared = min(len(r) for r in regrets.values())
        if not shared:
            continue
        stack = np.stack([r[:shared] for r in regrets.values()])  # (variants, seeds, checkpoints)
        ranks = (stack[:, None] > stack[None]).sum(axis=1) + 0.5 * (stack[:, None] == stack[None]).sum(axis=1)
        shown = Table(title=f"{name}: median regret after so many full trainings, {shared} seeds")
        for heading in (arguments.group, *(f"{c:g}" for c in checkpoints), "mean rank"):
            shown.add_column(heading, justify="right")
        for i, variant in enumerate(regrets):
            medians = [f"{m:.5f}" for m in np.median(stack[i], axis=0)]
            shown.add_row(variant, *medians, f"{ranks[i].mean() + 0.5:.2f}")
        console.print(shown)


def main() -> None:
    """Runs or shows a comparison."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=["run", "table"])
    parser.add_argument("--group", choices=GROUPS, default="default")
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--effort", type=float, default=0.3, help="of each suggestion, from 0 to 1")
    parser.add_argument("--overhead", type=float, default=0.1, help="seconds of thinking a trial counts for")
    arguments = parser.parse_args()
    for options in GROUPS[arguments.group].values():
        options.setdefault("effort", arguments.effort)
    (run if arguments.action == "run" else table)(arguments)


if __name__ == "__main__":
    main()
