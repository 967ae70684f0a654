"""The problems of the comparison: two SVM tables of this repository, and tunings of YAHPO Gym from a directory.

Costs are scaled so that a full training takes `FULL_COST` seconds, because the tools are made for trainings of minutes.

The tasks of YAHPO Gym are the first ones of each scenario's list that are suitable. Two numbers decide this, and no
tool's result: what a training at the smallest fidelity costs, and how much there is to gain at the target (`screen`).
The first tasks of rbv2 were used when settings of `fabolas` were chosen (`experiments.families`), so they are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

import fabolas
from experiments import yahpo
from experiments.families import YAHPO_TASKS
from experiments.simulate import Problem
from experiments.svm_grid.problem import Problem as SvmGrid

FULL_COST = 60.0
TABLES = ("mnist", "covtype")
# Scenario -> tasks that are suitable, as `python -m experiments.peers screen` finds them.
TASKS: dict[str, tuple[str, ...]] = {
    "rbv2_aknn": ("1457", "1468"),
    "rbv2_glmnet": ("1067", "12"),
    "iaml_ranger": ("1489", "1067"),
    "lcbench": ("126026", "167168", "168868", "189865"),
}
MAX_COST_RATIO = 0.5  # above, small fidelities save nothing
MIN_GAIN = 0.02  # below, every configuration is a good answer
SCREENED = 256  # configurations, Sobol points
MAX_TASKS = 2  # of a scenario; lcbench has four
KNOWN = Path(__file__).parent / "problems.json"


@dataclass(frozen=True)
class Screened:
    """What decides whether a task is suitable."""

    name: str
    cost_ratio: float  # median cost at the smallest fidelity / at the target
    gain: float  # median loss - lowest loss at the target

    @property
    def suitable(self) -> bool:
        """Whether the task is used."""
        return self.cost_ratio <= MAX_COST_RATIO and self.gain >= MIN_GAIN


def screen(directory: Path) -> Iterator[Screened]:
    """The tasks in the order of their lists, until there are enough suitable ones of a scenario."""
    for scenario in TASKS:
        known = yahpo.tasks(directory, scenario)
        if scenario == "lcbench":  # the four tasks that are often used for multi-fidelity
            known = TASKS[scenario]
        elif len(known) > YAHPO_TASKS:
            known = known[YAHPO_TASKS:]
        found = 0
        for task in known:
            screened = _screened(yahpo.load(directory, scenario, task))
            yield screened
            found += screened.suitable
            if found == MAX_TASKS and scenario != "lcbench":
                break


def _screened(problem: Any) -> Screened:
    configs, rng = sampled(problem), np.random.default_rng(2017)
    space = fabolas.Space(problem.space, problem.fidelities)
    ((name, fidelity),) = space.fidelities.items()
    at_target = np.array([problem(config, **{name: fidelity.high}, rng=rng) for config in configs])
    smallest = np.array([problem(config, **{name: fidelity.low}, rng=rng) for config in configs])
    losses = at_target[:, 0]
    ratio = float(np.median(smallest[:, 1] / at_target[:, 1]))
    return Screened(problem.name, ratio, float(np.median(losses) - losses.min()))


def sampled(problem: Any) -> list[dict[str, Any]]:
    """Sobol points of a problem's space, the same for every call."""
    space = fabolas.Space(problem.space, problem.fidelities)
    x = space.sobol(SCREENED, np.random.default_rng(2017))
    points = space.snap(np.hstack([x, np.ones((len(x), 1))]))
    return [space.decode(point)[0] for point in points]


@dataclass(frozen=True)
class Known:
    """What a long search found about a problem, kept in a file, which needs no data."""

    best: float  # the lowest loss at the target
    typical_regret: float  # of the median configuration of `SCREENED`


def known(name: str, directory: Path | None = None) -> Known:
    """From the file; if it is not there, it is computed and written."""
    rows = json.loads(KNOWN.read_text()) if KNOWN.exists() else {}
    if name not in rows:
        problem = _unscaled(name, directory)
        best = float(problem.best)
        typical = float(np.median([problem.truth(config) for config in sampled(problem)])) - best
        rows[name] = {"best": round(best, 6), "typical_regret": round(typical, 5)}
        KNOWN.write_text(json.dumps(rows, indent=1) + "\n")
    return Known(**rows[name])


@dataclass(frozen=True)
class Scaled:
    """A problem whose full training takes so many seconds."""

    inner: Any
    best: float  # the lowest loss at the target
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


NAMES = (*TABLES, *(f"{scenario}/{task}" for scenario, tasks in TASKS.items() for task in tasks))


@cache
def load(name: str, directory: Path | None) -> Problem:
    """A problem by its name."""
    inner = _unscaled(name, directory)
    return inner if name.startswith("live/") else Scaled(inner, known(name, directory).best)


def _unscaled(name: str, directory: Path | None) -> Any:
    if name in TABLES:
        return SvmGrid.load(name)
    if name.startswith("live/"):
        from experiments.peers.live import Live

        return Live(name.removeprefix("live/"))
    if directory is None:
        raise ValueError(f"{name} needs the directory of YAHPO Gym's data; give it with --yahpo")
    return yahpo.load(directory, *name.split("/"))


def continues(name: str) -> bool:
    """Whether a training passes through all smaller fidelities."""
    return name.startswith("lcbench")
