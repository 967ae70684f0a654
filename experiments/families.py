"""Families of problems for comparisons: tables, formulas, and tunings of YAHPO Gym."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from experiments import synthetic, yahpo
from experiments.simulate import Problem
from experiments.svm_grid.problem import Problem as SvmGrid


@dataclass(frozen=True)
class Family:
    """Problems of one kind: how to make one from a seed, and for how many full trainings it is run."""

    make: Callable[[int], Problem]
    budget: float


FAMILIES: dict[str, Family] = {
    "mnist": Family(lambda seed: SvmGrid.load("mnist", cost_scale=100.0), 1.0),
    "covtype": Family(lambda seed: SvmGrid.load("covtype", cost_scale=100.0), 1.0),
    "svm_like": Family(synthetic.svm_like, 1.0),
    "rugged6": Family(lambda seed: synthetic.rugged(6, seed), 2.0),
    "smooth10": Family(lambda seed: synthetic.smooth(10, seed), 4.0),
    "misleading": Family(synthetic.misleading, 10.0),
    "boosting": Family(synthetic.boosting, 10.0),
    "mixed": Family(synthetic.mixed, 4.0),
}
# Problems of YAHPO Gym, with `--yahpo DIRECTORY`: each seed takes one of a scenario's first tasks.
YAHPO_SCENARIOS = ("rbv2_glmnet", "rbv2_aknn", "iaml_ranger", "iaml_rpart")
YAHPO_TASKS = 4
YAHPO_FULL_COST = 100.0  # seconds that a full training is made to take, as in the synthetic families


@dataclass(frozen=True)
class Rescaled:
    """A problem with other costs: a full training takes `full_cost` seconds."""

    problem: yahpo.Problem
    full_cost: float

    name = property(lambda self: self.problem.name)
    space = property(lambda self: self.problem.space)
    fidelities = property(lambda self: self.problem.fidelities)
    best = property(lambda self: self.problem.best)

    def __call__(
        self, config: dict[str, Any], *, rng: np.random.Generator, **fidelity: float
    ) -> tuple[float, float]:
        """The loss, and the cost in the new seconds."""
        loss, cost = self.problem(config, rng=rng, **fidelity)
        return loss, cost * self.full_cost / self.problem.full_cost

    def truth(self, config: dict[str, Any]) -> float:
        """The loss at the target."""
        return self.problem.truth(config)


@cache
def yahpo_problem(directory: str, scenario: str, number: int) -> Rescaled:
    """A task of a scenario; kept, because the search for its best loss takes seconds."""
    task = yahpo.tasks(directory, scenario)[number]
    return Rescaled(yahpo.load(directory, scenario, task), YAHPO_FULL_COST)


def add_yahpo(directory: Path) -> None:
    """Add the problems of YAHPO Gym to the families."""

    def maker(scenario: str) -> Callable[[int], Problem]:
        return lambda seed: yahpo_problem(str(directory), scenario, seed % YAHPO_TASKS)

    for scenario in YAHPO_SCENARIOS:
        FAMILIES[scenario] = Family(maker(scenario), 20.0)
