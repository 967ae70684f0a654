"""All runs of the comparison: each finished run is a line of a journal, so that a stopped comparison continues."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from experiments import lines
from experiments.peers import problems
from experiments.peers.session import Session
from experiments.peers.tools import TOOLS, run
from experiments.simulate import Run

BUDGET = 40.0  # full trainings
MAX_TRIALS = 400  # of a tool whose model grows with the trials; the others end by time
MODEL_FREE = ("hyperband", "random", "dehb", "bohb", "optuna-hyperband", "sklearn-halving", "smac-mf")


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
        """Run it by the simulated clock."""
        problem = problems.load(self.problem, self.directory)
        problem.best  # noqa: B018 - computed before the clock starts
        session = Session(
            problem,
            self.seed,
            budget=BUDGET * problem.full_cost,
            max_trials=10**5 if self.tool in MODEL_FREE else MAX_TRIALS,
            continues=problems.continues(self.problem),
        )
        run(self.tool, session)
        return session.result()


class Journal:
    """Finished runs, with times in full trainings."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs: dict[tuple[str, str, int], Run] = {}
        for row in lines.read(path):
            columns = {name: np.array(values) for name, values in row["run"].items()}
            n = len(columns["time"])
            columns |= {"origin": np.full(n, ""), "test": np.full(n, np.nan)}
            self.runs[row["problem"], row["tool"], row["seed"]] = Run(**columns)

    def add(self, job: Job, finished: Run) -> None:
        """Keep a finished run. Rows where neither answer nor whole budget changes are left out."""
        times = finished.time / problems.FULL_COST
        kept = _changes(finished)
        columns = {"time": times, "regret": finished.regret, "size": finished.size, "cost": finished.cost}
        columns["overhead"] = finished.overhead
        shortened = {name: [float(f"{v:.6g}") for v in values[kept]] for name, values in columns.items()}
        row = {
            "problem": job.problem,
            "tool": job.tool,
            "seed": job.seed,
            "n_trials": len(times),
            "run": shortened,
        }
        lines.append(self.path, row)
        n = int(kept.sum())
        arrays = {name: np.array(values) for name, values in shortened.items()}
        self.runs[job.key] = Run(**arrays, origin=np.full(n, ""), test=np.full(n, np.nan))


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
    try:
        futures = {pool.submit(job.run): job for job in jobs}
        for future in as_completed(futures):
            job = futures.pop(future)
            journal.add(job, future.result())
            yield job
    finally:
        pool.shutdown(cancel_futures=True)
