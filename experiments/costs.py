"""How well the cost of a full training is predicted from cheap trials: bias, error, and whether it knows its error.

    python -m experiments.costs --seeds 10

Twenty-four trials of spread configurations, most of them small, the largest at u = 0.35 or 0.7; predicted are the
fifteen best of forty configurations at the target. Errors are in log-seconds, positive where a training takes
longer than predicted; z is the error in predicted deviations, so its root mean square should be 1.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from experiments import synthetic
from experiments.simulate import Problem
from experiments.svm_grid.problem import Problem as SvmGrid
from fabolas import Space, surrogate
from fabolas.gp.kernels import Basis, power_law_basis
from fabolas.strategies.fabolas import Fabolas
from fabolas.surrogate import Data

PROBLEMS: dict[str, Callable[[int], Problem]] = {
    "mnist": lambda seed: SvmGrid.load("mnist"),
    "covtype": lambda seed: SvmGrid.load("covtype"),
    "boosting": synthetic.boosting,
    "rugged6": lambda seed: synthetic.rugged(6, seed),
}
TRIALS, PREDICTED, BEST = 24, 40, 15


def from_below(u: np.ndarray) -> np.ndarray:
    """(1, u), the paper's: what bends the curve is largest at the target."""
    return np.column_stack([np.ones_like(u), u])


# Basis functions of the cost, and whether all configurations drift from them together.
VARIANTS: dict[str, tuple[Basis, bool]] = {
    "(1, u)": (from_below, False),
    "(1, u), drift": (from_below, True),
    "(1, 1 - u)": (power_law_basis, False),
    "(1, 1 - u), drift": (power_law_basis, True),
}


@dataclass(frozen=True)
class Evidence:
    """Trials to learn from, and full trainings to predict."""

    space: Space
    data: Data
    targets: np.ndarray  # (m, D)
    seconds: np.ndarray  # (m,)


def evidence(name: str, largest: float, seed: int) -> Evidence:
    """Of a problem, with trials up to a size u."""
    problem, rng = PROBLEMS[name](seed), np.random.default_rng(seed)
    space = Space(problem.space, problem.fidelities)
    u = largest * rng.random(TRIALS) ** 2
    u[:3] = largest * np.array([1.0, 0.7, 0.5])
    u = np.append(u, np.ones(PREDICTED))
    points = space.snap(np.column_stack([space.spread(len(u), rng), u]))
    decoded = (space.decode(point) for point in points)
    measured = np.array([problem(config, **fidelity, rng=rng) for config, fidelity in decoded])
    losses, seconds = measured.T
    best = TRIALS + np.argsort(losses[TRIALS:])[:BEST]
    known = slice(TRIALS)
    data = Data(points[known], losses[known], seconds[known], np.zeros(TRIALS, dtype=np.bool_))
    return Evidence(space, data, points[best], seconds[best])


def errors(evidence: Evidence, variant: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Errors (m,) of the predictions in log-seconds, and their predicted deviations."""
    basis, drift = VARIANTS[variant]
    spec = replace(Fabolas(evidence.space).spec, cost=basis, drift=drift)
    models, _, _ = surrogate.fit(spec, evidence.data, None, 40, 12, np.random.default_rng(seed))
    median, most = (np.log(seconds(evidence.targets)) for seconds in (models.seconds, models.seconds_at_most))
    return np.log(evidence.seconds) - median, (most - median) / 2.0


def main() -> None:
    """Prints a line a problem and variant."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=10)
    seeds = range(parser.parse_args().seeds)
    print(
        "| problem | largest u | model | bias | rms error | rms z | log density |\n|---|---|---|---|---|---|---|"
    )
    for name in PROBLEMS:
        for largest in (0.35, 0.7):
            given = [evidence(name, largest, seed) for seed in seeds]
            for variant in VARIANTS:
                found = [errors(e, variant, seed) for e, seed in zip(given, seeds, strict=True)]
                error, deviation = (np.concatenate(column) for column in zip(*found, strict=True))
                z = error / deviation
                density = -0.5 * z**2 - np.log(deviation) - 0.5 * np.log(2 * np.pi)
                print(
                    f"| {name} | {largest} | {variant} | {error.mean():+.2f} | {np.sqrt(np.mean(error**2)):.2f} |"
                    f" {np.sqrt(np.mean(z**2)):.2f} | {density.mean():+.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
