"""A strategy on a problem under a simulated clock: the problem's costs plus the strategy's measured overhead.

Overhead is measured in process time, so that other work on the machine does not count; neither does looking at
the incumbent after each trial, which a user does at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np

import fabolas
from experiments.clock import Clock


class Problem(Protocol):
    """What can be simulated: loss and cost of a measurement, and the truth behind it."""

    name: str
    space: Any
    fidelities: Any
    best: float
    full_cost: float

    def __call__(
        self, config: dict[str, Any], size: float, rng: np.random.Generator
    ) -> tuple[float, float]: ...

    def truth(self, config: dict[str, Any]) -> float: ...


@dataclass(frozen=True)
class Run:
    """One simulated run, a row a trial."""

    time: np.ndarray  # (n,) simulated seconds when the trial ended
    regret: np.ndarray  # (n,) true loss of the incumbent then, less the best; NaN before the first
    size: np.ndarray  # (n,) fraction of the target
    cost: np.ndarray  # (n,)
    overhead: np.ndarray  # (n,)
    origin: np.ndarray  # (n,) what decided
    test: np.ndarray  # (n,) test error of the incumbent then; NaN before the first, or if a problem has none

    def stays_within(self, distance: float) -> float:
        """The time after which the regret stays within the distance; infinite if it never does."""
        outside = np.flatnonzero(~(self.regret <= distance))
        if len(outside) == 0:
            return float(self.time[0])
        last = int(outside[-1])
        return float(self.time[last + 1]) if last + 1 < len(self.time) else np.inf

    def until(self, time: float) -> Run:
        """The trials that ended by this time; at least the first."""
        kept = self.time <= max(time, float(self.time[0]))
        return Run(*(getattr(self, field.name)[kept] for field in fields(self)))

    def regret_at(self, time: float) -> float:
        """The incumbent's regret at this time; infinite before there is one."""
        ended = np.flatnonzero(self.time <= time)
        value = self.regret[ended[-1]] if len(ended) else np.nan
        return float(value) if np.isfinite(value) else np.inf


def simulate(
    problem: Problem,
    strategy: str = "fabolas",
    *,
    seed: int = 0,
    time_budget: float = np.inf,
    max_trials: int = 10_000,
    overhead: float | None = None,
    **options: Any,
) -> Run:
    """Run until the simulated time is used up. With `overhead` overhead counts as that many seconds."""
    rng = np.random.default_rng([seed, 2017, 1])  # a stream of its own: a study's are those of [seed, id]
    rows: list[tuple[float, float, float, float, float, str, float]] = []
    test_error = getattr(problem, "test_error", lambda config: np.nan)
    now, clock = 0.0, Clock()
    target = {name: f.high for name, f in fabolas.Space(problem.space, problem.fidelities).fidelities.items()}
    study = fabolas.Study(
        problem.space,
        problem.fidelities,
        strategy=strategy,
        seed=seed,
        overhead=overhead,
        clock=clock,
        **options,
    )
    with study:
        while now < time_budget and len(rows) < max_trials:
            suggestion = study.ask(remaining=None if np.isinf(time_budget) else time_budget - study.spent)
            loss, cost = problem(suggestion.config, **suggestion.fidelity, rng=rng)
            study.tell(suggestion, loss, cost=cost)
            with clock.stopped():
                incumbent = study.incumbent()
            now += cost + suggestion.overhead
            regret = np.nan if incumbent is None else problem.truth(incumbent.config) - problem.best
            test = np.nan if incumbent is None else test_error(incumbent.config)
            fraction = float(np.prod([suggestion.fidelity[n] / target[n] for n in target]))
            rows.append((now, regret, fraction, cost, suggestion.overhead, suggestion.origin, test))
    return Run(*(np.array(column) for column in zip(*rows, strict=True)))
