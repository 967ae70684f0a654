"""Epochs at their true price: what reports and checkpoints save, on networks of lcbench.

    python -m experiments.curves run --data path/to/yahpo --seeds 10
    python -m experiments.curves table

The problems are surrogates of real trainings (`experiments.yahpo`): epochs 1 to 52, and each epoch costs ten simulated
seconds. Five searches: fabolas with epochs as a plain fidelity, with reports, and with reports and checkpoints to
continue from; hyperband, which also continues its promoted configurations; and random search. Each finished run is a
line of a journal, so that a stopped comparison continues where it was. Overhead counts as `OVERHEAD` seconds per
suggestion and the effort is fixed, so that a busy machine changes nothing.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import fabolas
from experiments import lines, yahpo

TASKS = ("126026", "167168", "168868", "189865", "7593", "167190")
SECONDS_PER_EPOCH = 10.0
TRAININGS = 20.0  # how long a run is, in full trainings
CHECKPOINTS = (1.0, 5.0, 20.0)
DISTANCES = (0.01, 0.005)
OVERHEAD, EFFORT = 0.1, 0.3
JOURNAL = Path(__file__).parent / "results" / "curves.jsonl"

FABOLAS = {"strategy": "fabolas", "effort": EFFORT}
# Name -> options of the fidelity, options of the study.
VARIANTS: dict[str, tuple[dict[str, bool], dict[str, Any]]] = {
    "nothing": ({}, FABOLAS),
    "reports": ({"reports": True}, FABOLAS),
    "reports, continuing": ({"reports": True, "resume": True}, FABOLAS),
    "hyperband, continuing": ({"reports": True, "resume": True}, {"strategy": "hyperband"}),
    "random": ({}, {"strategy": "random"}),
}


@dataclass(frozen=True)
class Run:
    """One simulated run, an entry per trial: when it ended, the regret of the incumbent then, epochs trained."""

    time: list[float]  # in full trainings
    regret: list[float | None]  # None before the first incumbent
    epochs: list[int]  # that the trial trained
    continued: list[bool]

    def regret_at(self, time: float) -> float:
        """The incumbent's regret at this time; infinite before there is one."""
        ended = [r for t, r in zip(self.time, self.regret, strict=True) if t <= time + 1e-9]
        return np.inf if not ended or ended[-1] is None else float(ended[-1])

    def stays_within(self, distance: float) -> float:
        """The time after which the regret stays within the distance; infinite if it never does."""
        regret = np.array([np.inf if r is None else r for r in self.regret])
        outside = np.flatnonzero(~(regret <= distance))
        last = int(outside[-1]) if len(outside) else -1
        return self.time[last + 1] if last + 1 < len(self.time) else np.inf


def simulate(problem: yahpo.Problem, seed: int, trainings: float = TRAININGS, **options: Any) -> Run:
    """Run a study on a problem until so many full trainings' time is used up."""
    ((name, fidelity),) = problem.fidelities.items()
    full = fidelity.high * SECONDS_PER_EPOCH
    run = Run([], [], [], [])
    with fabolas.Study(
        problem.space, problem.fidelities, seed=seed, overhead=OVERHEAD, clock=lambda: 0.0, **options
    ) as study:
        while study.spent < trainings * full:
            suggestion = study.ask(remaining=trainings * full - study.spent)
            start = 0
            if suggestion.continues is not None:
                start = next(t.fidelity[name] for t in study.trials if t.id == suggestion.continues)
            end = suggestion.fidelity[name]
            if fidelity.reports:
                for epoch in range(start + 1, end):
                    loss, _ = problem(suggestion.config, **{name: epoch})
                    study.tell_report(suggestion, loss, SECONDS_PER_EPOCH * (epoch - start), **{name: epoch})
            loss, _ = problem(suggestion.config, **{name: end})
            study.tell(suggestion, loss, cost=SECONDS_PER_EPOCH * (end - start))
            incumbent = study.incumbent()
            run.time.append(study.spent / full)
            run.regret.append(None if incumbent is None else problem.truth(incumbent.config) - problem.best)
            run.epochs.append(int(end - start))
            run.continued.append(suggestion.continues is not None)
    return run


def run_all(arguments: argparse.Namespace) -> None:
    """Run what is not in the journal yet, seed by seed."""
    done = {(line["task"], line["variant"], line["seed"]) for line in lines.read(arguments.journal)}
    for seed in range(arguments.seeds):
        for task in arguments.tasks:
            for variant in arguments.variants:
                if (task, variant, seed) in done:
                    continue
                declared, options = VARIANTS[variant]
                problem = yahpo.load(arguments.data, "lcbench", task, **declared)
                found = simulate(problem, seed, **options)
                lines.append(
                    arguments.journal, {"task": task, "variant": variant, "seed": seed, **vars(found)}
                )
                print(task, variant, seed, f"{found.regret_at(20.0):.4f}", flush=True)


def _interval(values: np.ndarray, statistic: Any, rng: np.random.Generator) -> tuple[float, float]:
    """A 95 % interval of a statistic over seeds, by resampling them."""
    draws = [statistic(rng.choice(values, len(values))) for _ in range(1000)]
    low, high = np.quantile(draws, [0.025, 0.975], method="nearest")
    return float(low), float(high)


def table(arguments: argparse.Namespace) -> None:
    """Print one line per task and variant: medians over seeds, with 95 % intervals."""
    rows = lines.read(arguments.journal)
    rng = np.random.default_rng(0)
    times = [f"stays within {d:g}" for d in DISTANCES]
    regrets = [f"regret at {c:g}" for c in CHECKPOINTS]
    print("| task | search | seeds | " + " | ".join([*times, *regrets]) + " |")
    print("|---" * (3 + len(times) + len(regrets)) + "|")
    for task in dict.fromkeys(row["task"] for row in rows):
        for variant in VARIANTS:
            runs = [
                Run(*(row[k] for k in ("time", "regret", "epochs", "continued")))
                for row in rows
                if (row["task"], row["variant"]) == (task, variant)
            ]
            if not runs:
                continue
            cells = []
            for values, form in [
                *((np.array([run.stays_within(d) for run in runs]), "{:.1f}") for d in DISTANCES),
                *((np.array([run.regret_at(c) for run in runs]), "{:.4f}") for c in CHECKPOINTS),
            ]:
                low, high = _interval(values, np.median, rng)
                median = float(np.quantile(values, 0.5, method="higher"))
                shown = ["—" if np.isinf(v) else form.format(v) for v in (median, low, high)]
                cells.append("—" if np.isinf(low) else f"{shown[0]} ({shown[1]}, {shown[2]})")
            print(f"| {task} | {variant} | {len(runs)} | " + " | ".join(cells) + " |")


def main() -> None:
    """The commands `run` and `table`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    running = commands.add_parser("run", help="run what is not in the journal yet")
    running.add_argument("--data", type=Path, required=True, help="directory of the YAHPO scenarios")
    running.add_argument("--seeds", type=int, default=10)
    running.add_argument("--tasks", nargs="+", default=list(TASKS))
    running.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    running.set_defaults(command=run_all)
    showing = commands.add_parser("table", help="print the journal as a table")
    showing.set_defaults(command=table)
    for command in (running, showing):
        command.add_argument("--journal", type=Path, default=JOURNAL)
    arguments = parser.parse_args()
    arguments.command(arguments)


if __name__ == "__main__":
    main()
