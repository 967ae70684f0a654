"""The problems of the comparison: two SVM tables of this repository, and tunings of YAHPO Gym from a directory.

Costs are scaled so that a full training takes `FULL_COST` seconds, because the tools are made for trainings of minutes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from experiments import yahpo
from experiments.simulate import Problem
from experiments.svm_grid.problem import Problem as SvmGrid

FULL_COST = 60.0
TABLES = ("mnist", "covtype")
# Tasks of each scenario, chosen before any tool was run: the first ones of the list that differ in size.
TASKS: dict[str, tuple[str, ...]] = {
    "rbv2_aknn": ("41143", "40981", "1489"),
    "rbv2_glmnet": ("41143", "40981", "1489"),
    "iaml_ranger": ("40981", "41146", "1489"),
    "lcbench": ("126026", "167168", "168868", "189865"),
}


@dataclass(frozen=True)
class Scaled:
    """A problem whose full training takes so many seconds."""

    inner: Any
    seconds: float = FULL_COST

    @property
    def name(self) -> str:
        """That of the problem."""
        return str(self.inner.name)

    @property
    def space(self) -> Any:
        """That of the problem."""
        return self.inner.space

    @property
    def fidelities(self) -> Any:
        """Those of the problem."""
        return self.inner.fidelities

    @cached_property
    def best(self) -> float:
        """The lowest loss at the target."""
        return float(self.inner.best)

    @property
    def full_cost(self) -> float:
        """Seconds of a full training."""
        return self.seconds

    @cached_property
    def _factor(self) -> float:
        return self.seconds / float(self.inner.full_cost)

    def __call__(
        self, config: Mapping[str, Any], rng: np.random.Generator, **fidelity: float
    ) -> tuple[float, float]:
        """Loss and scaled cost of one training."""
        loss, cost = self.inner(dict(config), **fidelity, rng=rng)
        return loss, cost * self._factor

    def truth(self, config: Mapping[str, Any]) -> float:
        """The loss at the target without noise."""
        return float(self.inner.truth(dict(config)))


def names(directory: Path | None) -> list[str]:
    """All problems; those of YAHPO Gym only if their directory is given."""
    found = list(TABLES)
    if directory is not None:
        found += [f"{scenario}/{task}" for scenario, tasks in TASKS.items() for task in tasks]
    return found


def load(name: str, directory: Path | None) -> Problem:
    """A problem by its name."""
    if name in TABLES:
        return Scaled(SvmGrid.load(name))
    if directory is None:
        raise ValueError(f"{name} needs the directory of YAHPO Gym's data; give it with --yahpo")
    scenario, task = name.split("/")
    return Scaled(yahpo.load(directory, scenario, task))


def continues(name: str) -> bool:
    """Whether a training passes through all smaller fidelities."""
    return name.startswith("lcbench")
