"""The loop of `FabolasSearchCV` under a simulated clock: what its rules are worth where the truth is known.

    python -m experiments.sklearn_loop --problems boosting rugged6 --seeds 16 --trainings 6

A training of the best configuration on all the rows takes about 20 seconds, the budget is a few of these, as a
user's often is; overhead counts in process time. What is printed is the regret of the answer: the best measured on
all the rows.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np

import fabolas
from experiments import synthetic
from experiments.clock import Clock
from experiments.simulate import Problem
from experiments.svm_grid.problem import Problem as SvmGrid
from fabolas.budget import Budget, Timer
from fabolas.engine import Engine
from fabolas.execution import Ended, Inline, Job
from fabolas.sklearn.policy import SearchPolicy

PROBLEMS: dict[str, Callable[[int], Problem]] = {
    "boosting": lambda seed: synthetic.boosting(seed, 20.0),
    "rugged6": lambda seed: synthetic.rugged(6, seed, 20.0),
    "misleading": lambda seed: synthetic.misleading(seed, 20.0),
    "svm_like": lambda seed: synthetic.svm_like(seed, 20.0),
    "mnist": lambda seed: SvmGrid.load("mnist", cost_scale=10.0),
    "covtype": lambda seed: SvmGrid.load("covtype", cost_scale=7.0),
}
# Rows over those of the smallest trials: `min_size="auto"` mostly has 64, and 16 where classes are rare.
SMALLEST = dict.fromkeys(PROBLEMS, 64) | {"boosting": 16, "covtype": 16}


def answer(name: str, trainings: float, seed: int) -> tuple[float, float, int]:
    """Regret of one search's answer, what it used of its budget, and how many trials were on all the rows."""
    problem, clock, rng = PROBLEMS[name](seed), Clock(), np.random.default_rng([seed, 1])
    sizes = fabolas.Space(problem.space, problem.fidelities).fidelities["size"]
    full = int(sizes.high)
    space = fabolas.Space(problem.space, {"size": (max(int(sizes.low), full // SMALLEST[name]), full)})
    budget, timer = trainings * problem.full_cost, Timer(clock)

    def evaluate(job: Job) -> Ended:
        loss, seconds = problem(job.config, **job.fidelity, rng=rng)
        clock.advance(seconds)
        return Ended(job.id, "complete", loss, seconds)

    with fabolas.Study(space, seed=seed, clock=clock, target_share=0.5) as study:
        policy = SearchPolicy(study, full, verify=True, refit_ratio=0.0, configurations=None)
        Engine(study, Inline(evaluate), Budget(budget), timer, policy=policy).run()
    at_target = [trial for trial in study.trials if trial.fidelity["size"] == full]
    best = min(at_target, key=lambda trial: trial.loss or np.inf)
    return problem.truth(best.config) - problem.best, timer() / budget, len(at_target)


def main() -> None:
    """Prints a line a problem."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--trainings", type=float, default=6.0, help="of the budget")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    with ProcessPoolExecutor(arguments.processes) as pool:
        for name in arguments.problems:
            found = np.array(
                list(pool.map(partial(answer, name, arguments.trainings), range(arguments.seeds)))
            )
            low, median, high = np.quantile(found[:, 0], [0.25, 0.5, 0.75])
            _, used, there = np.median(found, axis=0)
            print(
                f"{name:10s} regret {median:.4f} ({low:.4f}, {high:.4f}), {there:g} trials on all the rows,"
                f" {used:.2f} of the budget, at most {found[:, 1].max():.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
