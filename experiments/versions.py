"""Two versions of fabolas against each other: the factor between their regrets at 1, 5 and 20 full trainings.

    python -m experiments.versions run --yahpo DIRECTORY --journal new.jsonl
    PYTHONPATH=OLD_CHECKOUT/src:. python -m experiments.versions run --yahpo DIRECTORY --journal old.jsonl
    python -m experiments.versions compare old.jsonl new.jsonl

The version is the one that Python imports. The problems are those of `experiments.settings`. Effort and overhead are
fixed, so that a busy machine changes nothing. Each finished run is a line of the journal, so that a stopped comparison
continues where it was.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from typing import Any

import numpy as np

import fabolas
from experiments import lines
from experiments.families import FAMILIES, add_yahpo
from experiments.paired import factor_cell, mean_known, paired_log_ratios, versions_parser

CHECKPOINTS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)  # in full trainings
SHOWN = (1.0, 5.0, 20.0)
EFFORT, OVERHEAD, MAX_TRIALS = 0.3, 0.1, 60


def search(family: str, seed: int) -> dict[str, Any]:
    """The regret of the incumbent at each checkpoint, and when the search ended, in full trainings."""
    problem, noise = FAMILIES[family].make(seed), np.random.default_rng([seed, 2017, 1])
    budget, times, regrets = CHECKPOINTS[-1] * problem.full_cost, [0.0], [np.inf]
    with fabolas.Study(
        problem.space, problem.fidelities, seed=seed, overhead=OVERHEAD, effort=EFFORT
    ) as study:
        while times[-1] < budget and len(study.trials) < MAX_TRIALS:
            suggestion = study.ask(remaining=budget - times[-1])
            loss, cost = problem(suggestion.config, **suggestion.fidelity, rng=noise)
            study.tell(suggestion, loss, cost=cost)
            incumbent = study.incumbent()
            times.append(times[-1] + cost + OVERHEAD)
            regrets.append(np.inf if incumbent is None else problem.truth(incumbent.config) - problem.best)
    ended = np.searchsorted(times, np.array(CHECKPOINTS) * problem.full_cost, side="right") - 1
    return {"regret": np.array(regrets)[ended].tolist(), "end": times[-1] / problem.full_cost}


def run(arguments: argparse.Namespace) -> None:
    """Runs what the journal does not have yet, seed by seed."""
    if arguments.yahpo is not None:
        add_yahpo(arguments.yahpo)
    done = {(row["family"], row["seed"]) for row in lines.read(arguments.journal)}
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
        for family in arguments.problems:
            if (family, seed) not in done:
                lines.append(arguments.journal, {"family": family, "seed": seed, **search(family, seed)})


def compare(arguments: argparse.Namespace) -> None:
    """Prints the factor of the second version's regret over the first one's, with 95 % intervals over seeds."""
    found = [
        {(row["family"], row["seed"]): row for row in lines.read(path)}
        for path in (arguments.old, arguments.new)
    ]
    both = sorted(found[0].keys() & found[1].keys())
    families = list(dict.fromkeys(family for family, _ in both))
    ratios = {
        name: paired_log_ratios(
            [[runs[key] for key in both if key[0] == name] for runs in found], CHECKPOINTS
        )[1]
        for name in families
    }
    columns = {f"at {t:g}": [CHECKPOINTS.index(t)] for t in SHOWN} | {
        "all times": list(range(len(CHECKPOINTS)))
    }
    rng = np.random.default_rng(0)
    print("| problem | " + " | ".join(columns) + " |\n" + "|---" * (len(columns) + 1) + "|")
    for name, members in [*((f, [f]) for f in families), ("all problems", families)]:
        cells = [factor_cell([mean_known(ratios[m][:, c]) for m in members], rng) for c in columns.values()]
        print(f"| {name} | " + " | ".join(cells) + " |")


def main() -> None:
    """Runs searches of one version, or compares two journals."""
    parser, _ = versions_parser(__doc__, first_seed=400)
    arguments = parser.parse_args()
    {"run": run, "compare": compare}[arguments.command](arguments)


if __name__ == "__main__":
    main()
