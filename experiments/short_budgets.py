"""Runs of `minimize` whose budget holds few full trainings: the regret of their answers, and when they ended.

    python -m experiments.short_budgets run --yahpo DIRECTORY --journal new.jsonl
    PYTHONPATH=OLD_CHECKOUT/src:. python -m experiments.short_budgets run --yahpo DIRECTORY --journal old.jsonl
    python -m experiments.short_budgets run --yahpo DIRECTORY --strategy random --journal random.jsonl
    python -m experiments.short_budgets compare old.jsonl new.jsonl

The version is the one that Python imports. The problems are those of `experiments.settings`, with a simulated clock.
The answer is verified as `minimize` does it. Each finished run is a line of the journal, so that a stopped comparison
continues where it was.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import warnings
from typing import Any

import numpy as np

import fabolas
from experiments import lines
from experiments.clock import Clock
from experiments.families import FAMILIES, add_yahpo
from experiments.paired import factor_cell, paired_log_ratios, versions_parser
from fabolas.budget import Budget, Timer
from fabolas.engine import Engine
from fabolas.execution import Ended, Inline, Job
from fabolas.policy import AskUntilUsedUp
from fabolas.verification import VerifyingPolicy

TRAININGS = (2.0, 5.0, 20.0)  # budgets, in full trainings
EFFORT, OVERHEAD, MAX_TRIALS = 0.3, 0.1, 60


def answer(family: str, seed: int, trainings: float, strategy: str) -> dict[str, Any]:
    """One run: the regret of its answer, whether it was verified, and when it ended as a share of the budget."""
    problem, clock = FAMILIES[family].make(seed), Clock(measured=False)
    noise = np.random.default_rng([seed, 2017, 1])
    budget, timer = trainings * problem.full_cost, Timer(clock)

    def evaluate(job: Job) -> Ended:
        loss, seconds = problem(job.config, **job.fidelity, rng=noise)
        clock.advance(seconds + OVERHEAD)
        return Ended(job.id, "complete", loss, seconds)

    options = {"effort": EFFORT} if strategy == "fabolas" else {}
    policy = VerifyingPolicy() if strategy == "fabolas" else AskUntilUsedUp()
    with fabolas.Study(
        problem.space,
        problem.fidelities,
        strategy=strategy,
        seed=seed,
        overhead=OVERHEAD,
        clock=clock,
        **options,
    ) as study:
        Engine(study, Inline(evaluate), Budget(budget, MAX_TRIALS), timer, policy=policy).run()
        incumbent = study.trajectory[-1][1]
    regret = problem.truth(incumbent.config) - problem.best
    return {"regret": regret, "verified": incumbent.verified, "end": timer() / budget}


def run(arguments: argparse.Namespace) -> None:
    """Runs what the journal does not have yet, seed by seed."""
    warnings.filterwarnings("ignore")  # that a budget is short is what is measured here
    if arguments.yahpo is not None:
        add_yahpo(arguments.yahpo)
    done = {(row["family"], row["seed"]) for row in lines.read(arguments.journal)}
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
        for family in arguments.problems:
            if (family, seed) not in done:
                runs = [answer(family, seed, trainings, arguments.strategy) for trainings in TRAININGS]
                row = {name: [each[name] for each in runs] for name in ("regret", "verified", "end")}
                lines.append(arguments.journal, {"family": family, "seed": seed, **row})


def compare(arguments: argparse.Namespace) -> None:
    """Prints the factor of the second journal's regret over the first one's, with 95 % intervals over seeds."""
    found = [
        {(row["family"], row["seed"]): row for row in lines.read(path)}
        for path in (arguments.old, arguments.new)
    ]
    both = sorted(found[0].keys() & found[1].keys())
    families = list(dict.fromkeys(family for family, _ in both))
    paired = {name: [[runs[key] for key in both if key[0] == name] for runs in found] for name in families}
    # Budgets are compared as they are: a run that ended early had no use for the rest.
    ratios = {
        name: paired_log_ratios([[row | {"end": np.inf} for row in rows] for rows in both_rows], TRAININGS)[1]
        for name, both_rows in paired.items()
    }
    rng = np.random.default_rng(0)
    print("| problem | " + " | ".join(f"{t:g} full trainings" for t in TRAININGS) + " |")
    print("|---" * (len(TRAININGS) + 1) + "|")
    for name, members in [*((f, [f]) for f in families), ("all problems", families)]:
        cells = [factor_cell([ratios[m][:, j] for m in members], rng) for j in range(len(TRAININGS))]
        print(f"| {name} | " + " | ".join(cells) + " |")
    for number, label in enumerate(("first", "second")):
        rows = [row for both_rows in paired.values() for row in both_rows[number]]
        verified, ends = (np.array([row[name] for row in rows], dtype=float) for name in ("verified", "end"))
        shares = ", ".join(f"{share:.0%}" for share in verified.mean(axis=0))
        late = ", ".join(f"{end:.2f}" for end in np.quantile(ends, 0.95, axis=0))
        print(f"{label}: verified {shares}; 95 % of the runs ended within {late} of the budget")


def main() -> None:
    """Runs searches of one version, or compares two journals."""
    parser, running = versions_parser(__doc__, first_seed=5000)
    running.add_argument("--strategy", choices=["fabolas", "random"], default="fabolas")
    arguments = parser.parse_args()
    {"run": run, "compare": compare}[arguments.command](arguments)


if __name__ == "__main__":
    main()
