"""Overhead of a suggestion: FabolasSampler in Optuna against Study.ask, side by side in one run.

    python -m benchmarks.optuna

Both search the same space with the same effort. What is timed is the whole suggestion: `study.ask()` here; there
`study.ask()`, one `suggest_float` for each parameter, and `sampler.fidelity`. Process time on one thread.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import time

import numpy as np
import optuna
from rich.console import Console
from rich.table import Table

import fabolas
from fabolas.optuna import FabolasSampler

ROWS = (500, 50_000)
BOUNDARIES = (20, 50, 100, 200)
MOST_AT_FULL_EFFORT = 50  # trials; each decision takes a quarter of a second


def loss_of(config: dict[str, float], rows: float, rng: np.random.Generator) -> float:
    square = sum((np.log10(value) - 1.0) ** 2 for value in config.values())
    return float(0.01 * square + 0.1 * np.sqrt(ROWS[0] / rows) + 0.001 * rng.normal())


class ByStudy:
    """One trial after another with fabolas.Study."""

    def __init__(self, d: int, effort: float) -> None:
        space = {f"x{i}": fabolas.Float(1e-5, 1e5, log=True) for i in range(d)}
        self.study = fabolas.Study(space, {"rows": ROWS}, seed=0, effort=effort)
        self.rng = np.random.default_rng(0)

    def step(self) -> float:
        start = time.process_time()
        suggestion = self.study.ask()
        seconds = time.process_time() - start
        rows = suggestion.fidelity["rows"]
        self.study.tell(suggestion, loss_of(suggestion.config, rows, self.rng), cost=rows / 1000)
        return seconds


class ByOptuna:
    """The same with Optuna, in memory."""

    def __init__(self, d: int, effort: float) -> None:
        self.sampler = FabolasSampler({"rows": ROWS}, seed=0, effort=effort)
        self.study = optuna.create_study(sampler=self.sampler)
        self.names = [f"x{i}" for i in range(d)]
        self.rng = np.random.default_rng(0)

    def step(self) -> float:
        start = time.process_time()
        trial = self.study.ask()
        config = {name: trial.suggest_float(name, 1e-5, 1e5, log=True) for name in self.names}
        rows = self.sampler.fidelity(trial)["rows"]
        seconds = time.process_time() - start
        self.sampler.tell(trial, loss_of(config, rows, self.rng), cost=rows / 1000)
        return seconds


def compare(d: int, effort: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Process seconds of the first n suggestions, (n,) each; the two take turns."""
    one, other = ByStudy(d, effort), ByOptuna(d, effort)
    pairs = [(one.step(), other.step()) for _ in range(n)]
    ours, theirs = np.array(pairs).T
    return ours, theirs


def main() -> None:
    parser = argparse.ArgumentParser(description="Overhead of FabolasSampler against Study.ask.")
    parser.add_argument("--trials", type=int, default=BOUNDARIES[-1])
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    table = Table(title="mean milliseconds per suggestion, process time, one thread", title_justify="left")
    for heading in ("d", "effort", "trials", "Study.ask", "FabolasSampler", "ratio"):
        table.add_column(heading, justify="right")
    for d in (2, 6):
        for effort in (0.0, 1.0):
            n_trials = options.trials if effort == 0.0 else min(options.trials, MOST_AT_FULL_EFFORT)
            ours, theirs = compare(d, effort, n_trials)
            ends = [n for n in BOUNDARIES if n <= n_trials]
            for start, end in zip([10, *ends], ends, strict=False):
                a, b = 1e3 * ours[start:end].mean(), 1e3 * theirs[start:end].mean()
                cells = (d, effort, f"{start}-{end}", f"{a:.1f}", f"{b:.1f}", f"{b / a:.2f}")
                table.add_row(*map(str, cells))
    Console().print(table)


if __name__ == "__main__":
    main()
