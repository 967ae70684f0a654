"""One live search, as in section 4 of the paper: train, note every answer, test the answers afterwards.

The clock counts trainings and overhead, including the initial design. The test errors are computed after the search
and cost no time of it: each answer is trained once more on all rows and measured on rows that the search has not seen.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

import fabolas

CLOCKS = {"cpu": time.process_time, "wall": time.perf_counter}
Report = Callable[..., None]  # report(epochs=3, loss=0.2)


class Problem(Protocol):
    """What is tuned."""

    space: Mapping[str, Any]
    ranges: Mapping[str, tuple[int, int]]  # fidelity -> (smallest, target)

    def train(
        self, config: dict[str, Any], seed: int, report: Report | None, **sizes: int
    ) -> float: ...  # validation error

    def test(self, config: dict[str, Any]) -> float: ...  # after training on all rows


@dataclass(frozen=True)
class Method:
    """A strategy and the fidelities that it may choose; the others stay at their target.

    Attributes:
        strategy: Name of the strategy.
        fidelities: Names of the fidelities.
        reports: Whether a training reports its loss after each epoch.
    """

    strategy: str
    fidelities: tuple[str, ...] = ("rows",)
    reports: bool = False

    def declared(self, problem: Problem) -> dict[str, fabolas.Fidelity]:
        """The fidelities as the search gets them."""
        return {
            name: fabolas.Fidelity(*problem.ranges[name], reports=self.reports and name == "epochs")
            for name in self.fidelities
        }


METHODS = {
    **{name: Method(name) for name in ("fabolas", "fabolas2017", "mtbo", "es", "ei", "hyperband", "random")},
    "fabolas-epochs": Method("fabolas", ("rows", "epochs")),
    "fabolas-reports": Method("fabolas", ("rows", "epochs"), reports=True),
}
COMPARED = ("fabolas", "fabolas2017", "mtbo", "es", "ei", "hyperband", "random")


@dataclass(frozen=True)
class Run:
    """A finished search. An answer holds from its time to that of the next one.

    Attributes:
        elapsed: Seconds of the whole search.
        overhead: Seconds of it that were not spent on trainings.
        trials: One dict per trial: time when it ended, sizes, loss (None if it failed), cost.
        answers: One dict per change of the answer: time, config, test error.
    """

    elapsed: float
    overhead: float
    trials: tuple[dict[str, Any], ...]
    answers: tuple[dict[str, Any], ...]

    def test_at(self, seconds: float) -> float:
        """Test error of the answer at this time; infinite before the first one."""
        known = [answer["test"] for answer in self.answers if answer["time"] <= seconds]
        return float(known[-1]) if known else np.inf

    def stays_below(self, error: float) -> float:
        """The time after which the test error stays at or below `error`; infinite if it does not."""
        outside = [i for i, answer in enumerate(self.answers) if answer["test"] > error]
        first = outside[-1] + 1 if outside else 0
        return float(self.answers[first]["time"]) if first < len(self.answers) else np.inf


def search(problem: Problem, method: Method, seed: int, time_budget: float, clock: str = "cpu") -> Run:
    """Search for so many seconds, then test the answers."""
    target = {name: high for name, (_, high) in problem.ranges.items()}

    def objective(config: dict[str, Any], trial: fabolas.TrialContext, **sizes: int) -> float:
        return problem.train(
            config, _seed(seed, trial.number), trial.report if method.reports else None, **(target | sizes)
        )

    result = fabolas.minimize(
        objective,
        problem.space,
        method.declared(problem),
        strategy=method.strategy,
        time_budget=time_budget,
        seed=seed,
        clock=CLOCKS[clock],
        verify=method.strategy == "fabolas",  # the published methods do not verify their answer
        progress=False,
    )
    trials = tuple(_trial(trial, target) for trial in result.trials)
    spent = sum(trial["cost"] for trial in trials)
    return Run(result.elapsed, result.elapsed - spent, trials, _tested(result, problem))


def _seed(seed: int, trial: int) -> int:
    """Another subset and another start of the weights in every trial."""
    return int(np.random.default_rng([seed, 2017, trial]).integers(2**31))


def _trial(trial: fabolas.Trial, target: dict[str, int]) -> dict[str, Any]:
    sizes = target | trial.fidelity
    return {"time": trial.elapsed, **sizes, "loss": trial.loss, "cost": trial.cost}


def _tested(result: fabolas.Result, problem: Problem) -> tuple[dict[str, Any], ...]:
    """Every change of the answer with its test error; a configuration is tested once."""
    final = result.incumbent()
    trajectory = [*result.trajectory, *([] if final is None else [(result.elapsed, final)])]
    answers: list[dict[str, Any]] = []
    tested: dict[str, float] = {}
    for seconds, incumbent in trajectory:
        name = json.dumps(incumbent.config, sort_keys=True)
        if name not in tested:
            tested[name] = problem.test(incumbent.config)
        if not answers or answers[-1]["config"] != incumbent.config:
            answers.append({"time": seconds, "config": incumbent.config, "test": tested[name]})
    return tuple(answers)
