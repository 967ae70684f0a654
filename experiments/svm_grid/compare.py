"""The paper's comparison on a table: every method with several seeds, each finished run a line of a journal."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from experiments import lines
from experiments.simulate import Run, simulate
from experiments.svm_grid.problem import Problem
from fabolas import Float, Space
from fabolas.strategies import make

# A method by its name in tables and figures: the strategy and its options.
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "fabolas": ("fabolas", {}),
    "fabolas2017": ("fabolas2017", {}),
    "mtbo": ("mtbo", {}),
    "mtbo-1/32": ("mtbo", {"auxiliary": (1 / 32,)}),
    "mtbo-1/256": ("mtbo", {"auxiliary": (1 / 256,)}),
    "es": ("es", {}),
    "ei": ("ei", {}),
    "hyperband": ("hyperband", {}),
    "random": ("random", {}),
}
COMPARED = ("fabolas", "fabolas2017", "mtbo", "es", "ei", "hyperband", "random")
MODEL_FREE = (
    "hyperband",
    "random",
)  # no model grows with the number of their trials, and neither does the limit
JOURNAL = Path(".cache/svm_grid/runs.jsonl")


@dataclass(frozen=True)
class Setting:
    """What all methods are given: the table, its costs, the time, and how overhead is counted.

    Attributes:
        data: name of a committed table, or path of a packed one.
        cost_scale: all seconds of the table are multiplied by it.
        largest: tabulated size that is the target; None for the table's own.
        budget: simulated time in full trainings of the best configuration.
        max_trials: where a model-based run ends in any case; one that has gone on for longer will do as well.
        overhead: seconds that each suggestion counts for; None counts the measured time.
    """

    data: str = "mnist"
    cost_scale: float = 1.0
    largest: int | None = None
    budget: float = 40.0
    max_trials: int = 400
    overhead: float | None = None

    def __post_init__(self) -> None:
        if not self.budget > 0:
            raise ValueError(f"expected a budget > 0 in full trainings, got {self.budget}")
        if self.max_trials < 1:
            raise ValueError(f"expected max_trials >= 1, got {self.max_trials}")

    @property
    def problem(self) -> Problem:
        """The table as a problem."""
        return _load(self.data, self.cost_scale, self.largest)


@lru_cache
def _load(data: str, cost_scale: float, largest: int | None) -> Problem:
    table = Path(data) if data.endswith(".npz") else data
    return Problem.load(table, cost_scale=cost_scale, largest=largest)


@lru_cache
def _defaults(strategy: str) -> dict[str, Any]:
    """Options that a strategy has if none are given: a run with others is another run."""
    made = make(strategy, Space({"x": Float(0.0, 1.0)}))
    parameters = inspect.signature(type(made)).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}


@dataclass(frozen=True)
class Job:
    """One run of a method."""

    setting: Setting
    method: str
    seed: int

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"expected a method among {', '.join(METHODS)}, got {self.method!r}")

    @property
    def key(self) -> str:
        """What identifies the run in a journal: all that it depends on except the code, and where it ends."""
        given = {**asdict(self.setting), "table": self.setting.problem.checksum}
        del given["max_trials"]
        strategy, options = METHODS[self.method]
        return json.dumps([given, strategy, _defaults(strategy) | options, self.seed], sort_keys=True)

    def is_done_by(self, run: Run) -> bool:
        """Whether the run went on for as long as this one would: the whole budget, or as many trials."""
        ended = run.time[-1] >= self.setting.budget * self.setting.problem.full_cost
        return bool(ended or len(run.time) >= self.setting.max_trials)

    def run(self) -> Run:
        """Simulate it."""
        strategy, options = METHODS[self.method]
        problem = self.setting.problem
        return simulate(
            problem,
            strategy,
            seed=self.seed,
            time_budget=self.setting.budget * problem.full_cost,
            max_trials=10**6 if self.method in MODEL_FREE else self.setting.max_trials,
            overhead=self.setting.overhead,
            **options,
        )


class Journal:
    """Finished runs by key; one JSON line each, written at once, so that a killed comparison goes on.

    Of several runs with one key the last counts: a run that had ended at a lower limit of trials was made anew.
    """

    def __init__(self, path: Path = JOURNAL) -> None:
        self.path = path
        self.runs: dict[str, Run] = {}
        for row in lines.read(path):
            self.runs[row["key"]] = Run(**{name: np.array(column) for name, column in row["run"].items()})

    def add(self, job: Job, run: Run) -> None:
        """Keep a finished run."""
        self.runs[job.key] = run
        columns = {name: [_short(value) for value in column] for name, column in vars(run).items()}
        lines.append(self.path, {"key": job.key, "method": job.method, "run": columns})

    def has(self, job: Job) -> bool:
        """Whether the run need not be made."""
        return job.key in self.runs and job.is_done_by(self.runs[job.key])

    def of(self, setting: Setting, method: str, seeds: int) -> dict[int, Run]:
        """Seed -> run of a method, as far as there are any."""
        keys = {seed: Job(setting, method, seed).key for seed in range(seeds)}
        return {seed: self.runs[key] for seed, key in keys.items() if key in self.runs}


def _short(value: Any) -> Any:
    return value if isinstance(value, str) else float(f"{value:.6g}")


def compare(
    setting: Setting, methods: Iterable[str], seeds: int, journal: Journal, processes: int
) -> tuple[int, Iterator[Job]]:
    """Run what the journal does not have yet: how many runs that is, and each when it is finished."""
    jobs = [Job(setting, method, seed) for seed in range(seeds) for method in methods]
    jobs = [job for job in jobs if not journal.has(job)]
    return len(jobs), _finished(jobs, journal, processes)


def _finished(jobs: list[Job], journal: Journal, processes: int) -> Iterator[Job]:
    # Spawned, so that a process sees the environment (one thread each) before it imports numpy.
    pool = ProcessPoolExecutor(processes, mp_context=get_context("spawn"))
    try:
        futures = {pool.submit(job.run): job for job in jobs}
        for future in as_completed(futures):
            job = futures.pop(future)
            journal.add(job, future.result())
            yield job
    finally:
        pool.shutdown(cancel_futures=True)
