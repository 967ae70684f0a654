"""Seconds of `ask` after 100 trainings that reported 500 points, relative to the same trainings without reports.

    python -m benchmarks.curves

Process time on one thread, the mean of several suggestions each. The target is a factor of at most 1.5.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import time

import numpy as np

import fabolas

DIMENSIONS, EPOCHS = 7, 52


def filled(reports: int, trainings: int, effort: float) -> fabolas.Study:
    """A study with so many trainings, each with so many reports; 0 for a fidelity without reports."""
    rng, optimum = np.random.default_rng(0), np.linspace(0.0, 1.0, DIMENSIONS)
    space = {f"x{i}": fabolas.Float(0.0, 1.0) for i in range(DIMENSIONS)}
    fidelities = {"epochs": fabolas.Fidelity(1, EPOCHS, reports=reports > 0)}
    study = fabolas.Study(space, fidelities, seed=0, overhead=0.1, effort=effort)
    for _ in range(trainings):
        x, end = rng.random(DIMENSIONS), max(6, round(EPOCHS ** rng.random()))
        suggestion = study.ask_for({f"x{i}": float(v) for i, v in enumerate(x)}, {"epochs": end})
        excess = 0.1 * np.sum((x - optimum) ** 2)
        for epoch in np.unique(np.rint(np.geomspace(1, end - 1, max(reports, 1))).astype(int))[:reports]:
            study.tell_report(suggestion, 0.05 + excess + 0.5 * epoch**-0.5, float(epoch), epochs=int(epoch))
        study.tell(suggestion, 0.05 + excess + 0.5 * end**-0.5, cost=float(end))
    return study


def seconds_per_ask(study: fabolas.Study, count: int) -> float:
    """The mean over `count` suggestions, after two that fit the models for the first time."""
    times = []
    for k in range(count + 2):
        start = time.process_time()
        suggestion = study.ask()
        times.append(time.process_time() - start)
        study.tell(suggestion, 0.3 + 0.01 * k, cost=1.0)
    return float(np.mean(times[2:]))


def main() -> None:
    """Prints a line per effort."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trainings", type=int, default=100)
    parser.add_argument("--reports", type=int, default=5)
    parser.add_argument("--asks", type=int, default=24)
    arguments = parser.parse_args()
    print("| effort | without | with reports | factor |\n|---|---|---|---|")
    for effort in (0.0, 0.3, 1.0):
        without, with_reports = (
            seconds_per_ask(filled(reports, arguments.trainings, effort), arguments.asks)
            for reports in (0, arguments.reports)
        )
        print(f"| {effort} | {without:.3f} | {with_reports:.3f} | {with_reports / without:.2f} |", flush=True)


if __name__ == "__main__":
    main()
