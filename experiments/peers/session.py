"""What a tool sees of a problem: evaluations that take simulated time, and a place to say its answer.

The clock is the same for all tools: the cost of the evaluations plus the tool's own process time on one thread. Asking
a tool for its answer after each evaluation does not count, because a user asks at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import ConfigSpace
import numpy as np

import fabolas
from experiments.clock import Clock
from experiments.simulate import Problem, Run


class OutOfTimeError(Exception):
    """The budget is used up. Tools that own the loop are ended by it."""


@dataclass
class Session:
    """One run of one tool.

    Attributes:
        problem: what is tuned.
        seed: of the tool and of the noise.
        budget: simulated seconds.
        max_trials: where the run ends in any case.
        continues: whether a training passes through all smaller fidelities (epochs). Then every training leaves a
            checkpoint, and one of the same configuration at a larger fidelity costs the difference, for all tools.
    """

    problem: Problem
    seed: int
    budget: float
    max_trials: int
    continues: bool = False
    clock: Clock = field(default_factory=Clock)
    memory: dict[str, Any] = field(default_factory=dict)  # for tools that own the loop
    _rows: list[tuple[float, float, float, float, float, str, float]] = field(default_factory=list)
    _checkpoints: dict[Any, float] = field(
        default_factory=dict
    )  # configuration -> the fidelity it has reached

    def __post_init__(self) -> None:
        self._space = fabolas.Space(self.problem.space, self.problem.fidelities)
        ((self.fidelity_name, self.fidelity),) = self._space.fidelities.items()
        self._rng = np.random.default_rng([self.seed, 2017, 1])
        self._start = self._last = self.clock()
        self._pending: tuple[float, float, float] | None = (
            None  # fraction, cost, overhead of the last evaluation
        )

    def start(self) -> None:
        """Begin to count time."""
        self._start = self._last = self.clock()

    @property
    def remaining(self) -> float:
        """Simulated seconds that are left."""
        return max(self.budget - (self.clock() - self._start), 0.0)

    @property
    def n_full_trainings(self) -> int:
        """About how many evaluations at the target fit into the budget."""
        return max(1, round(self.budget / self.problem.full_cost))

    @property
    def over(self) -> bool:
        """Whether the budget is used up."""
        return self.clock() - self._start >= self.budget or len(self._rows) >= self.max_trials

    @property
    def target(self) -> float:
        """The largest value of the fidelity."""
        return float(self.fidelity.high)

    def evaluate(
        self, config: Mapping[str, Any], fidelity: float | None = None, *, resume: bool = True
    ) -> tuple[float, float]:
        """Loss and cost of a configuration; at the target if no fidelity is given.

        Args:
            config: by name, without inactive hyperparameters.
            fidelity: from the smallest to the largest value; rounded if it is a whole number.
            resume: whether the training may go on from a checkpoint of the same configuration.

        Raises:
            OutOfTimeError: If the budget is used up.
        """
        if self.over:
            raise OutOfTimeError
        overhead = self.clock() - self._last
        value = self._value(self.target if fidelity is None else fidelity)
        with self.clock.stopped():
            loss, cost = self.problem(dict(config), **{self.fidelity_name: value}, rng=self._rng)
            if self.continues and resume:
                cost -= self._cost_of_checkpoint(config, value)
        self.clock.advance(cost)
        self._last = self.clock()
        self._pending = (value / self.target, cost, overhead)
        return loss, cost

    def passed(self, config: Mapping[str, Any], fidelity: float) -> tuple[float, float]:
        """Loss and cost up to here of a training that went further; this takes no time."""
        with self.looking():
            return self.problem(dict(config), **{self.fidelity_name: self._value(fidelity)}, rng=self._rng)

    def _cost_of_checkpoint(self, config: Mapping[str, Any], value: float) -> float:
        """What an earlier training of this configuration cost up to its end, if that is below `value`."""
        key = tuple(sorted((name, str(v)) for name, v in config.items()))
        before = self._checkpoints.get(key)
        self._checkpoints[key] = value if before is None else max(before, value)
        if before is None or before >= value:
            return 0.0
        return float(self.problem(dict(config), **{self.fidelity_name: before}, rng=self._rng)[1])

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Computation in this block does not count."""
        before = self.clock()
        with self.clock.stopped():
            yield
        self._last += self.clock() - before

    def answer(self, config: Mapping[str, Any] | None) -> None:
        """Record what the tool tells its user after the last evaluation; None if it has no answer."""
        if self._pending is None:
            return
        with self.looking():
            known = None if config is None else dict(config)
            regret = np.nan if known is None else self.problem.truth(known) - self.problem.best
            test = getattr(self.problem, "test_error", lambda _: np.nan)
            error = np.nan if known is None else test(known)
            fraction, cost, overhead = self._pending
            now = self.clock() - self._start
            self._rows.append((now, regret, fraction, cost, overhead, "", error))
            self._pending = None

    def result(self) -> Run:
        """The run so far."""
        return Run(*(np.array(column) for column in zip(*self._rows, strict=True)))

    def _value(self, fidelity: float) -> float:
        value = float(np.clip(fidelity, self.fidelity.low, self.fidelity.high))
        return float(round(value)) if self.fidelity.integer else value


@dataclass
class LargestSoFar:
    """The answer of Hyperband: the lowest loss at the largest fidelity that was evaluated so far."""

    fidelity: float = -np.inf
    loss: float = np.inf
    config: Mapping[str, Any] | None = None

    def after(self, fidelity: float, loss: float, config: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The answer after another evaluation."""
        if (fidelity, -loss) > (self.fidelity, -self.loss):
            self.fidelity, self.loss, self.config = fidelity, loss, config
        return self.config


def configuration_space(problem: Problem, seed: int) -> ConfigSpace.ConfigurationSpace:
    """The space of a problem for tools that take a ConfigurationSpace, with its own random generator."""
    if isinstance(problem.space, ConfigSpace.ConfigurationSpace):
        space = ConfigSpace.ConfigurationSpace(seed=seed)
        space.add(*problem.space.values())
        space.add(*problem.space.conditions)
        return space
    space = ConfigSpace.ConfigurationSpace(seed=seed)
    for name, spec in problem.space.items():
        space.add(_hyperparameter(name, spec))
    return space


def _hyperparameter(name: str, spec: Any) -> Any:
    if isinstance(spec, fabolas.Float):
        return ConfigSpace.UniformFloatHyperparameter(name, spec.low, spec.high, log=spec.log)
    if isinstance(spec, fabolas.Integer):
        return ConfigSpace.UniformIntegerHyperparameter(name, spec.low, spec.high, log=spec.log)
    if isinstance(spec, list):
        return ConfigSpace.CategoricalHyperparameter(name, spec)
    raise ValueError(
        f"expected a Float, an Integer or a list for {name!r}, got {spec!r}; add it to this function"
    )
