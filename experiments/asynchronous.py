"""Several workers under a simulated clock: the loop of `minimize`, on a place where time jumps to what is next.

A trial costs what the problem says. Thinking passes on the same clock, as measured in process time or as a fixed
`overhead` a suggestion, and the workers go on meanwhile, as real ones do.
"""

from __future__ import annotations

import heapq
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

import fabolas
from experiments.simulate import Problem, Run
from fabolas.budget import Budget
from fabolas.execution import Ended, Event, Job, Started
from fabolas.loop import Loop


class Clock:
    """Process time and what was simulated on top of it; with a fixed overhead only the latter."""

    def __init__(self, measured: bool) -> None:
        self._measured = measured
        self._simulated = 0.0

    def __call__(self) -> float:
        return self._simulated + (time.process_time() if self._measured else 0.0)

    def advance(self, seconds: float) -> None:
        """Let so many simulated seconds pass."""
        self._simulated += max(seconds, 0.0)


class Workers:
    """A place with so many workers, whose trials take no time but that of the clock.

    Args:
        problem: What the workers evaluate.
        capacity: How many of them there are. A single one works while nobody thinks, as `workers=1` does.
        clock: What passes.
        overhead: Seconds that pass with each suggestion, where the clock does not see the thinking itself.
        rng: For the noise of the measurements.
    """

    def __init__(
        self, problem: Problem, capacity: int, clock: Clock, overhead: float, rng: np.random.Generator
    ) -> None:
        self.capacity, self.ahead = capacity, capacity > 1
        self._problem, self._clock, self._overhead, self._rng = problem, clock, overhead, rng
        self._free = [clock()] * capacity  # when each idle worker became so
        self._waiting: deque[tuple[float, Job]] = deque()  # since when
        self._running: list[tuple[float, int, Ended]] = []  # until when
        self._events: deque[Event] = deque()
        self.busy = 0.0  # seconds of all workers

    def submit(self, job: Job) -> None:
        """Let it wait for the first worker that is free."""
        self._clock.advance(self._overhead)
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

    def withdraw(self, number: int) -> bool:
        """Forget a job that still waits."""
        self._settle()
        found = [entry for entry in self._waiting if entry[1].id == number]
        for entry in found:
            self._waiting.remove(entry)
        return bool(found)

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


def simulate_workers(
    problem: Problem,
    workers: int,
    strategy: str = "fabolas",
    *,
    seed: int = 0,
    time_budget: float | None = None,
    max_trials: int | None = None,
    overhead: float | None = None,
    **options: Any,
) -> tuple[Run, float]:
    """A run with so many workers, and their utilisation: the share of their time that they were busy."""
    clock = Clock(measured=overhead is None)
    place = Workers(problem, workers, clock, overhead or 0.0, np.random.default_rng([seed, 1]))
    start = clock()
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
        result = Loop(study, place, budget, clock, start)(progress=False)
        target = {name: f.high for name, f in study.space.fidelities.items()}
    used = (clock() - start) * workers
    return _as_run(problem, result, target), place.busy / used


def _as_run(problem: Problem, result: fabolas.Result, target: dict[str, float]) -> Run:
    test_error = getattr(problem, "test_error", lambda config: np.nan)
    ends = np.array([t.elapsed if t.elapsed is not None else np.nan for t in result.trials])
    if np.isnan(ends).any():  # one after another
        ends = np.cumsum([t.cost + t.suggestion.thinking for t in result.trials])
    looks = np.array([seconds for seconds, _ in result.trajectory])
    rows = []
    for end, trial in zip(ends, result.trials, strict=True):
        seen = int(np.searchsorted(looks, end * (1 + 1e-9), side="right")) - 1
        config = result.trajectory[seen][1].config if seen >= 0 else None
        regret = np.nan if config is None else problem.truth(config) - problem.best
        test = np.nan if config is None else test_error(config)
        fraction = float(np.prod([trial.fidelity[name] / target[name] for name in target]))
        s = trial.suggestion
        rows.append((end, regret, fraction, trial.cost, s.thinking, s.origin, test))
    return Run(*(np.array(column) for column in zip(*rows, strict=True)))
