"""How well losses at the target are predicted in the middle of a search: variants of the loss model on one record.

    python -m experiments.extrapolation --seeds 4

A search of FABOLAS is recorded, and each variant is given its first third, two thirds and all of it. Predicted is
the true loss at the target of 300 spread configurations and of the 100 best of 3,000: the mean log density, in
units of the record's spread, and for the best the error in predicted deviations, z, whose root mean square should
be 1. Whoever is certain and wrong about the best configurations does not look for them.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import logsumexp

import fabolas
from experiments.settings import FAMILIES, late_time, reverse_time
from fabolas import surrogate
from fabolas.gp.kernels import quadratic_time
from fabolas.gp.priors import Normal
from fabolas.model_spec import Columns, Deviation, ModelSpec, SurrogatePrior
from fabolas.strategies.models import relative_sizes
from fabolas.surrogate import Data

# How far a search is recorded, in full trainings and in trials.
TRAININGS = {
    "mnist": 2.0,
    "covtype": 4.0,
    "svm_like": 1.0,
    "rugged6": 4.0,
    "misleading": 6.0,
    "boosting": 4.0,
}
TRIALS, SPREAD, DRAWN, BEST = 160, 300, 3000, 100


def linear(u: np.ndarray) -> np.ndarray:
    """A walk from the smallest subset that is as fast from the start."""
    return u


def quartic(u: np.ndarray) -> np.ndarray:
    """A walk from the smallest subset that is slower still at first."""
    return u**4


def _deviating(*time_warps: Callable[[np.ndarray], np.ndarray], around: float = -2.0) -> ModelSpec:
    return ModelSpec(loss_deviations=tuple(Deviation(warp, Normal(around, 1.5)) for warp in time_warps))


VARIANTS: dict[str, ModelSpec] = {
    "equation 6": ModelSpec(loss_deviations=()),
    "from the target": _deviating(reverse_time, around=-3.0),
    "u": _deviating(linear),
    "u^2": _deviating(quadratic_time),
    "u^4": _deviating(quartic),
    "u^2 and u^6": _deviating(quadratic_time, late_time),
    "u^2 and u^6, around -1": _deviating(quadratic_time, late_time, around=-1.0),
}


@dataclass(frozen=True)
class Record:
    """A search, and what it should have predicted."""

    space: fabolas.Space
    data: Data
    targets: np.ndarray  # (m, D) spread configurations, then the best
    truth: np.ndarray  # (m,)


def record(name: str, seed: int) -> Record:
    """Of a search on a problem."""
    problem, rng = FAMILIES[name].make(seed), np.random.default_rng([seed, 1])
    budget = TRAININGS[name] * problem.full_cost
    with fabolas.Study(problem.space, problem.fidelities, seed=seed, overhead=0.1, effort=0.3) as study:
        while study.spent < budget and len(study.trials) < TRIALS:
            suggestion = study.ask(remaining=budget - study.spent)
            loss, cost = problem(suggestion.config, **suggestion.fidelity, rng=rng)
            study.tell(suggestion, loss, cost=cost)
        history, space = study.history, study.space

    def truth(points: np.ndarray) -> np.ndarray:
        return np.array([problem.truth(space.decode(point)[0]) for point in points])

    rng = np.random.default_rng(seed)
    x = np.concatenate([space.sobol(SPREAD, rng), rng.random((DRAWN, space.dim))])
    points = space.snap(np.column_stack([x, np.ones(len(x))]))
    best = SPREAD + np.argsort(truth(points[SPREAD:]))[:BEST]
    targets = points[np.append(np.arange(SPREAD), best)]
    data = Data(history.points, history.losses, history.costs, history.failed)
    return Record(space, data, targets, truth(targets))


def judged(found: Record, variant: str, trials: int) -> tuple[float, float, float]:
    """Mean log density of the spread and of the best configurations, and the mean square of the latter's z."""
    data = Data(*(column[:trials] for column in vars(found.data).values()))
    columns = Columns(found.space.n_choices, found.space.n_fidelities, relative_sizes(found.space))
    prior = SurrogatePrior(VARIANTS[variant], columns)
    models, _, _ = surrogate.fit(prior, data, None, 60, 16, np.random.default_rng(trials))
    at = models.loss.project(found.targets)
    # A truth that is known exactly would make a density of any height out of a lucky guess.
    mean, variance = models.loss.mean(at), models.loss.variance(at) + 1e-4
    truth = models.transform.forward(found.truth)
    each = -0.5 * (truth - mean) ** 2 / variance - 0.5 * np.log(2.0 * np.pi * variance)
    density = np.maximum(logsumexp(each, axis=0) - np.log(len(each)), -20.0)  # one outlier is not to decide
    error = truth - mean.mean(axis=0)
    z = error[SPREAD:] ** 2 / (variance.mean(axis=0) + mean.var(axis=0))[SPREAD:]
    return float(density[:SPREAD].mean()), float(density[SPREAD:].mean()), float(z.mean())


def judge(name: str, seed: int) -> dict[str, list[tuple[float, float, float]]]:
    """All variants on one record."""
    found = record(name, seed)
    n = len(found.data.losses)
    parts = sorted({max(8, n // 3), max(8, 2 * n // 3), n})
    return {variant: [judged(found, variant, part) for part in parts] for variant in VARIANTS}


def main() -> None:
    """Prints a line a problem and variant."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", nargs="+", choices=TRAININGS, default=list(TRAININGS))
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    print("| problem | drift | log density, all | log density, best | rms z, best |\n|---|---|---|---|---|")
    with ProcessPoolExecutor(arguments.processes) as pool:
        for name in arguments.problems:
            found = list(pool.map(partial(judge, name), range(arguments.seeds)))
            for variant in VARIANTS:
                everywhere, best, z = np.array([row for one in found for row in one[variant]]).mean(axis=0)
                print(
                    f"| {name} | {variant} | {everywhere:.2f} | {best:.2f} | {np.sqrt(z):.2f} |", flush=True
                )


if __name__ == "__main__":
    main()
