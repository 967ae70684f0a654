"""What the limit on the trials that the models use costs: searches that begin with more trials than the limit.

    python -m experiments.many_trials --given 1000 --seeds 6

Each search is given trials of an earlier one: half are random, half lie near the best of these, at random sizes, few at
the target. Then the strategy suggests some more trials, once with `ModelSpec(max_trials=600)` and once with exact
inference on all trials. Both begin with the same trials and use a fixed effort, so that a busy machine changes nothing.
The factor is the regret with the limit over the regret of exact inference, after each of the checkpoints.

Each finished search is a line of the journal. A journal belongs to one version of the code: delete it after a change.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import fabolas
from experiments import lines
from experiments.families import FAMILIES
from experiments.paired import factor_cell
from experiments.simulate import Problem
from fabolas.acquisition.representers import neighbourhood
from fabolas.model_spec import ModelSpec
from fabolas.strategies.fabolas import Fabolas

LIMITS = {"exact": 10**6, "600": 600}
CHECKPOINTS = (0, 5, 10, 15)  # suggestions after the given trials
AT_TARGET = 0.02  # share of the given trials
OVERHEAD = 0.1
SMALLEST_REGRET = 1e-4  # below it a regret is luck
PROBLEMS = ("svm_like", "rugged6", "smooth10", "misleading", "mixed")
JOURNAL = Path(".cache/many_trials.jsonl")


def search(name: str, n_given: int, limit: int, seed: int, effort: float) -> dict[str, Any]:
    """The regret at each checkpoint, and the process time of a suggestion."""
    problem = FAMILIES[name].make(seed)
    space = fabolas.Space(problem.space, problem.fidelities)
    strategy = Fabolas(space, effort=effort, model=ModelSpec(max_trials=limit))
    rng = np.random.default_rng([seed, 2017, 1])  # a stream of its own: a study's are those of [seed, id]
    regrets, seconds = [], 0.0
    with fabolas.Study(space, strategy=strategy, seed=seed, overhead=OVERHEAD) as study:
        give(study, problem, n_given, rng)
        for i in range(CHECKPOINTS[-1] + 1):
            if i in CHECKPOINTS:
                best = study.incumbent()
                assert best is not None, "trials were given"
                regrets.append(max(problem.truth(best.config) - problem.best, SMALLEST_REGRET))
            start = time.process_time()
            suggestion = study.ask()
            seconds += time.process_time() - start
            loss, cost = problem(suggestion.config, **suggestion.fidelity, rng=rng)
            study.tell(suggestion, loss, cost=cost)
    return {"regret": regrets, "seconds": seconds / (CHECKPOINTS[-1] + 1)}


def give(study: fabolas.Study, problem: Problem, n: int, rng: np.random.Generator) -> None:
    """Add n trials to the study: half at Sobol points, half near the best of these."""
    space, losses = study.space, np.empty(0)
    x = space.sobol(n // 2, rng)
    for half in range(2):
        if half == 1:
            best = x[np.argsort(losses)[:10]]
            x = neighbourhood(best, n - n // 2, (0.05, 0.2), space.n_choices, rng)
        u = np.where(rng.random(len(x)) < AT_TARGET, 1.0, rng.beta(1.0, 2.0, len(x)))
        points = space.snap(np.column_stack([x, *[u] * space.n_fidelities]))
        losses = np.empty(len(points))
        for i, point in enumerate(points):
            config, fidelity = space.decode(point)
            losses[i], cost = problem(config, **fidelity, rng=rng)
            study.add(config, fidelity, losses[i], cost)


def table(runs: dict[tuple[str, str, int], dict[str, Any]]) -> Iterator[str]:
    """One row per problem and one for all of them."""
    yield (
        "| problem | " + " | ".join(f"after {c}" for c in CHECKPOINTS) + " | seconds, exact | seconds, 600 |"
    )
    yield "|---" * (len(CHECKPOINTS) + 3) + "|"
    names = sorted({name for name, _, _ in runs})
    ratios = {name: _log_ratios(runs, name) for name in names}
    for label, members in [*((name, [name]) for name in names), ("all", names)]:
        cells = [
            factor_cell([ratios[m][:, c] for m in members], np.random.default_rng(0))
            for c in range(len(CHECKPOINTS))
        ]
        cells += [
            f"{np.mean([run['seconds'] for (n, which, _), run in runs.items() if n in members and which == limit]):.2f}"
            for limit in LIMITS
        ]
        yield f"| {label} | " + " | ".join(cells) + " |"


def _log_ratios(runs: dict[tuple[str, str, int], dict[str, Any]], name: str) -> np.ndarray:
    """(seeds, checkpoints) log of the regret with the limit over that of exact inference."""
    exact, limited = (
        {seed: run["regret"] for (n, which, seed), run in runs.items() if n == name and which == limit}
        for limit in LIMITS
    )
    return np.array([np.log(limited[seed]) - np.log(exact[seed]) for seed in exact if seed in limited])


def main() -> None:
    """Run what the journal has not, and print the table of all that it has."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--given", type=int, default=1000, help="trials that a search begins with")
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--problems", nargs="+", choices=list(FAMILIES), default=list(PROBLEMS))
    parser.add_argument("--effort", type=float, default=0.3)
    parser.add_argument("--journal", type=Path, default=JOURNAL)
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    done = {tuple(row["key"]): row for row in lines.read(options.journal)}
    runs = {}
    for seed in seeds:
        for name in options.problems:
            for limit, most in LIMITS.items():
                key = (name, limit, seed, options.given, options.effort)
                if key not in done:
                    done[key] = {"key": key, **search(name, options.given, most, seed, options.effort)}
                    lines.append(options.journal, done[key])
                runs[name, limit, seed] = done[key]
    print("\n".join(table(runs)))


if __name__ == "__main__":
    main()
