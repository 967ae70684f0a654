"""All runs of the comparison: each finished run is a line of a journal, so that a stopped comparison continues."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from experiments import lines
from experiments.peers import problems
from experiments.peers.session import Session
from experiments.peers.tools import TOOLS, run
from experiments.simulate import Run

BUDGET = 40.0  # full trainings
# Where a run ends although there is time: tools whose own time grows with the number of trials. Others have no limit.
MAX_TRIALS = {
    "fabolas": 400,
    "fabolas2017": 100,
    "mtbo": 400,
    "botorch-mfmes": 150,
    "optuna-gp": 400,
    "smac-full": 400,
}
DIGITS = 5


@dataclass(frozen=True)
class Job:
    """One run of one tool on one problem."""

    problem: str
    tool: str
    seed: int
    directory: Path | None = None

    def __post_init__(self) -> None:
        if self.tool not in TOOLS:
            raise ValueError(f"expected a tool among {', '.join(TOOLS)}, got {self.tool!r}")

    @property
    def key(self) -> tuple[str, str, int]:
        """What identifies it in a journal."""
        return self.problem, self.tool, self.seed

    def run(self) -> Run:
        """Run it by the simulated clock; the times are in full trainings."""
        problem = problems.load(self.problem, self.directory)
        session = Session(
            problem,
            self.seed,
            budget=BUDGET * problem.full_cost,
            max_trials=MAX_TRIALS.get(self.tool, 10**5),
            continues=problems.continues(self.problem),
        )
        run(self.tool, session)
        finished, unit = session.result(), problem.full_cost
        return replace(
            finished,
            time=finished.time / unit,
            cost=finished.cost / unit,
            overhead=finished.overhead / unit,
        )


class Journal:
    """Finished runs: times in full trainings and regrets, where the answer changes and at the end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs: dict[tuple[str, str, int], Run] = {}
        self.rows: dict[tuple[str, str, int], dict[str, Any]] = {}
        for row in lines.read(path):
            self._keep(row)

    def add(self, job: Job, finished: Run) -> None:
        """Write a finished run."""
        kept = _changes(finished)
        columns = {"time": finished.time, "regret": finished.regret}
        row = {
            "problem": job.problem,
            "tool": job.tool,
            "seed": job.seed,
            "n_trials": len(finished.time),
            "n_at_target": int((finished.size >= 1.0).sum()),
            "overhead": _rounded(finished.overhead.sum()),
        } | {name: [_rounded(v) for v in values[kept]] for name, values in columns.items()}
        lines.append(self.path, row)
        self._keep(row)

    def _keep(self, row: dict[str, Any]) -> None:
        key = row["problem"], row["tool"], row["seed"]
        time, regret = (np.array(row[name], dtype=float) for name in ("time", "regret"))
        unknown = np.full(len(time), np.nan)
        self.rows[key] = row
        self.runs[key] = Run(time, regret, unknown, unknown, unknown, np.full(len(time), ""), unknown)


def _rounded(value: float) -> float | None:
    """A number of few digits; None for NaN, which JSON does not have."""
    return float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None


def _changes(finished: Run) -> np.ndarray:
    """(n,) The first and the last row, and those where the regret changes."""
    regret = np.nan_to_num(finished.regret, nan=-1.0)
    return np.concatenate([[True], np.diff(regret) != 0.0]) | (np.arange(len(regret)) == len(regret) - 1)


def compare(
    names: Iterable[str],
    tools: Iterable[str],
    seeds: Iterable[int],
    directory: Path | None,
    journal: Journal,
    processes: int,
) -> tuple[int, Iterator[Job]]:
    """Run what the journal does not have yet: how many runs that is, and each when it is finished."""
    jobs = [Job(name, tool, seed, directory) for seed in seeds for name in names for tool in tools]
    jobs = [job for job in jobs if job.key not in journal.runs]
    return len(jobs), _finished(jobs, journal, processes)


def _finished(jobs: list[Job], journal: Journal, processes: int) -> Iterator[Job]:
    # Spawned, so that a process sees the environment (one thread each) before it imports numpy.
    pool = ProcessPoolExecutor(processes, mp_context=get_context("spawn"))
    failed: list[str] = []
    try:
        futures = {pool.submit(job.run): job for job in jobs}
        for future in as_completed(futures):
            job = futures.pop(future)
            if error := future.exception():
                failed.append(f"{job.key}: {error!r}")
                continue
            journal.add(job, future.result())
            yield job
    finally:
        pool.shutdown(cancel_futures=True)
    if failed:
        raise RuntimeError(f"{len(failed)} runs failed, the others are in the journal: " + "; ".join(failed))
