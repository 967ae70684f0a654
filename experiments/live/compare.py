"""All runs of a comparison: each finished run is a line of a journal, so that a stopped comparison continues."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol

from experiments import lines
from experiments.live.search import CLOCKS, METHODS, Problem, Run, search


class Setting(Protocol):
    """A problem by its options. It can be pickled and hashed, and makes the problem in the process that needs it."""

    def describe(self) -> dict[str, Any]: ...  # all that a result depends on; not where the data are

    def load(self) -> Problem: ...


@lru_cache(maxsize=1)
def _load(setting: Setting) -> Problem:
    return setting.load()


@dataclass(frozen=True)
class Job:
    """One run of one method.

    Attributes:
        setting: The problem.
        method: Name of the method.
        seed: Seed of the search.
        time_budget: Seconds.
        clock: "cpu" for the time of the process, "wall" for wall-clock time.
    """

    setting: Setting
    method: str
    seed: int
    time_budget: float
    clock: str = "cpu"

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"expected a method among {', '.join(METHODS)}, got {self.method!r}")
        if not self.time_budget > 0:
            raise ValueError(f"expected a time budget > 0 in seconds, got {self.time_budget}")
        if self.clock not in CLOCKS:
            raise ValueError(f"expected a clock among {', '.join(CLOCKS)}, got {self.clock!r}")

    @property
    def key(self) -> str:
        """What identifies the run in a journal."""
        setting = self.setting.describe() | {"time_budget": self.time_budget, "clock": self.clock}
        return json.dumps([setting, self.method, self.seed], sort_keys=True)

    def run(self) -> Run:
        """Load the problem if this process has another one, and search."""
        return search(_load(self.setting), METHODS[self.method], self.seed, self.time_budget, self.clock)


class Journal:
    """Finished runs by key."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs: dict[str, Run] = {}
        for row in lines.read(path):
            columns = row["run"].pop("trials")
            trials = (dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True))
            self.runs[row["key"]] = Run(**row["run"], trials=tuple(trials))

    def add(self, job: Job, run: Run) -> None:
        """Keep a finished run; trials are written as columns, which is shorter."""
        self.runs[job.key] = run
        names = run.trials[0] if run.trials else ()
        columns = {name: [trial[name] for trial in run.trials] for name in names}
        lines.append(self.path, {"key": job.key, "run": _short(asdict(run) | {"trials": columns})})

    def of(self, jobs: Iterable[Job]) -> dict[str, list[Run]]:
        """Method -> finished runs, of those that are asked for."""
        found: dict[str, list[Run]] = {}
        for job in jobs:
            if job.key in self.runs:
                found.setdefault(job.method, []).append(self.runs[job.key])
        return found


def _short(value: Any) -> Any:
    """Five digits are enough."""
    if isinstance(value, dict):
        return {name: _short(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_short(each) for each in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def missing(jobs: Iterable[Job], journal: Journal) -> list[Job]:
    """The jobs that the journal does not have yet."""
    return [job for job in jobs if job.key not in journal.runs]


def run_all(jobs: list[Job], journal: Journal, processes: int) -> Iterator[Job]:
    """Run the jobs and keep each when it is finished."""
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
