"""Several workers under a simulated clock: the loop of `minimize`, on a backend where time jumps to what is next.

A trial costs what the problem says. Overhead passes on the same clock, as measured in process time or as a fixed
`overhead` a suggestion, and the workers go on meanwhile, as real ones do.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

import fabolas
from experiments.clock import Clock
from experiments.simulate import Problem, Run
from fabolas.api import Result
from fabolas.budget import Budget, Timer
from fabolas.engine import Engine
from fabolas.execution import Ended, Event, Job, Started


class Workers:
    """A backend with so many workers, whose trials take no time but that of the clock.

    Args:
        problem: What the workers evaluate.
        capacity: How many of them there are. A single one, as `workers=1`, is idle while a suggestion is computed.
        clock: What passes.
        overhead: Seconds that pass with each suggestion, where the clock does not see the overhead itself.
        rng: For the noise of the measurements.
    """

    def __init__(
        self, problem: Problem, capacity: int, clock: Clock, overhead: float, rng: np.random.Generator
    ) -> None:
        self.capacity, self.asynchronous = capacity, capacity > 1
        self._problem, self._clock, self._fixed_overhead, self._rng = problem, clock, overhead, rng
        self._free = [clock()] * capacity  # when each idle worker became so
        self._waiting: deque[tuple[float, Job]] = deque()  # since when
        self._running: list[tuple[float, int, Ended]] = []  # until when
        self._events: deque[Event] = deque()
        self.busy = 0.0  # seconds of all workers

    def start(self, timeout: float) -> None:
        """Nothing: simulated workers are always ready."""

    def submit(self, job: Job) -> None:
        """Let it wait for the first worker that is free."""
        self._clock.advance(self._fixed_overhead)
        self._waiting.append((self._clock(), job))

    def next(self, timeout: float | None = None) -> Event | None:
        """What has happened, or what happens next if that is within the timeout: then it is that late."""
        self._settle()
        if not self._events and timeout != 0.0:
            until = self._running[0][0] - self._clock() if self._running else np.inf
            self._clock.advance(until if timeout is None else min(until, timeout))
            self._settle()
        return self._events.popleft() if self._events else None

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Nothing: all that happens happens in ``next``."""

    def cancel(self, number: int) -> bool:
        """Forget a job that still waits."""
        self._settle()
        found = [entry for entry in self._waiting if entry[1].id == number]
        for entry in found:
            self._waiting.remove(entry)
        return bool(found)

    def abandon(self, number: int, reason: str) -> bool:
        """Abandon nothing: every simulated trial ends."""
        return False

    def wake(self) -> None:
        """Nothing: nobody waits."""

    def close(self) -> None:
        """Nothing: nothing runs."""

    def _settle(self) -> None:
        """Everything that has happened until now, in its order."""
        while True:
            if self._waiting and self._free:
                since, job = self._waiting.popleft()
                self._begin(job, max(since, heapq.heappop(self._free)))
            elif self._running and self._running[0][0] <= self._clock():
                end, _, ended = heapq.heappop(self._running)
                heapq.heappush(self._free, end)
                self._events.append(ended)
            else:
                return

    def _begin(self, job: Job, start: float) -> None:
        loss, cost = self._problem(job.config, **job.fidelity, rng=self._rng)
        heapq.heappush(self._running, (start + cost, job.id, Ended(job.id, "complete", loss, cost)))
        self._events.append(Started(job.id))
        self.busy += cost


def run_workers(
    problem: Problem,
    workers: int,
    strategy: str = "fabolas",
    *,
    seed: int = 0,
    time_budget: float | None = None,
    max_trials: int | None = None,
    overhead: float | None = None,
    **options: Any,
) -> tuple[Result, float]:
    """The result of a run with so many workers, and their utilisation: the share of their time that they were busy."""
    clock = Clock(measured=overhead is None)
    backend = Workers(problem, workers, clock, overhead or 0.0, np.random.default_rng([seed, 1]))
    timer = Timer(clock)
    with fabolas.Study(
        problem.space,
        problem.fidelities,
        strategy=strategy,
        seed=seed,
        overhead=overhead,
        clock=clock,
        **options,
    ) as study:
        budget = Budget.of(time_budget, max_trials)
        result = Result(study, Engine(study, backend, budget, timer).run())
    return result, backend.busy / (timer() * workers)


def simulate_workers(
    problem: Problem, workers: int, strategy: str = "fabolas", **options: Any
) -> tuple[Run, float]:
    """The same as a table of trials. Options as for `run_workers`."""
    result, utilisation = run_workers(problem, workers, strategy, **options)
    return as_run(problem, result), utilisation


def as_run(problem: Problem, result: Result) -> Run:
    """The trials of a result, with the regret of the incumbent at the end of each."""
    target = {name: f.high for name, f in fabolas.Space(problem.space, problem.fidelities).fidelities.items()}
    test_error = getattr(problem, "test_error", lambda config: np.nan)
    ends = np.array([t.elapsed for t in result.trials])
    looks = np.array([seconds for seconds, _ in result.trajectory])
    rows = []
    for end, trial in zip(ends, result.trials, strict=True):
        seen = int(np.searchsorted(looks, end * (1 + 1e-9), side="right")) - 1
        config = result.trajectory[seen][1].config if seen >= 0 else None
        regret = np.nan if config is None else problem.truth(config) - problem.best
        test = np.nan if config is None else test_error(config)
        fraction = float(np.prod([trial.fidelity[name] / target[name] for name in target]))
        s = trial.suggestion
        rows.append((end, regret, fraction, trial.cost, s.overhead, s.origin, test))
    return Run(*(np.array(column) for column in zip(*rows, strict=True)))
