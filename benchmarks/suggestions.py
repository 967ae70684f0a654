"""Records what the default strategy suggests, and compares a later version of the code with the recording.

    python -m benchmarks.suggestions record before.json
    python -m benchmarks.suggestions compare before.json

Use it around a refactoring that must not change decisions. Each case runs 40 steps of ask and tell with a fixed
seed and a fixed overhead, so the suggestions depend on the code alone. They also depend on the processor and its
BLAS: record and compare on one machine.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from ConfigSpace import (
    Categorical,
    ConfigurationSpace,
    EqualsCondition,
    Float,
    ForbiddenEqualsClause,
    Integer,
)

import fabolas

STEPS = 40
Row = list[Any]


def conditional() -> ConfigurationSpace:
    """A kernel whose degree and width exist for some of its values only, one degree forbidden."""
    space = ConfigurationSpace()
    kernel = Categorical("kernel", ["rbf", "poly", "linear"])
    C, gamma, degree = (
        Float("C", (1e-3, 1e3), log=True),
        Float("gamma", (1e-4, 1e1), log=True),
        Integer("degree", (2, 6)),
    )
    space.add([kernel, C, gamma, degree])
    space.add([EqualsCondition(gamma, kernel, "rbf"), EqualsCondition(degree, kernel, "poly")])
    space.add(ForbiddenEqualsClause(degree, 5))
    return space


def cube(d: int) -> dict[str, Any]:
    """d real hyperparameters."""
    return {f"x{i}": fabolas.Float(0.0, 1.0) for i in range(d)}


MIXED = {
    "lr": fabolas.Float(1e-4, 1.0, log=True),
    "width": fabolas.Integer(8, 512, log=True),
    "dropout": fabolas.Float(0.0, 0.7),
    "optimizer": ["sgd", "adam", "rmsprop"],
    "layers": fabolas.Ordinal((1, 2, 4, 8)),
    "bias": [True, False],
}

# name -> space, fidelities, seconds of a full training, overhead, remaining budget, strategy options
CASES: dict[
    str, tuple[Callable[[], Any], dict[str, Any] | None, float, float, float | None, dict[str, Any]]
] = {
    "2-d": (lambda: cube(2), {"size": (64, 16384)}, 100.0, 0.05, None, {}),
    "2-d, short trials": (lambda: cube(2), {"size": (64, 16384)}, 0.5, 0.05, None, {}),
    "6-d mixed": (lambda: MIXED, {"size": (100, 50_000)}, 100.0, 0.05, None, {}),
    "conditional": (conditional, {"size": (100, 20_000)}, 100.0, 0.05, None, {}),
    "no fidelity": (lambda: cube(3), None, 10.0, 0.05, None, {}),
    "two fidelities": (lambda: cube(2), {"size": (100, 50_000), "epochs": (1, 50)}, 100.0, 0.05, None, {}),
    "with pending": (lambda: cube(3), {"size": (64, 16384)}, 100.0, 0.05, None, {}),
    "with failures": (lambda: cube(2), {"size": (64, 16384)}, 100.0, 0.05, None, {}),
    "budget": (lambda: cube(2), {"size": (64, 16384)}, 100.0, 0.05, 300.0, {}),
    "fixed effort": (lambda: cube(4), {"size": (64, 16384)}, 100.0, 0.05, None, {"effort": 0.3}),
}


def loss_and_cost(point: np.ndarray, d: int, full: float, rng: np.random.Generator) -> tuple[float, float]:
    """A bowl whose optimum and floor move with the size, and a cost that grows with it."""
    x, u = point[:d], point[d:]
    away = float(np.prod(2.0 ** (8.0 * (1.0 - u)))) if len(u) else 1.0  # target / size
    bowl = float(np.sum((x - 0.35 - 0.02 * np.log2(away)) ** 2))
    loss = (0.05 + bowl / (1.0 + bowl)) * away**0.15 * np.exp(0.02 * rng.normal())
    return float(loss), full / away * float(np.exp(0.5 * x[0] + 0.05 * rng.normal()))


def suggestions(name: str) -> Iterator[Row]:
    """One row for each suggestion: its point, predicted cost and origin; the last row is the incumbent."""
    make, fidelities, full, overhead, budget, options = CASES[name]
    rng = np.random.default_rng(1)
    pending = 3 if name == "with pending" else 0
    with fabolas.Study(make(), fidelities, seed=7, overhead=overhead, **options) as study:
        d = study.space.dim
        waiting: list[Any] = []
        for step in range(STEPS):
            left = None if budget is None else max(budget - study.spent, 1.0)
            suggestion = study.ask(remaining=left)
            yield [suggestion.point.tolist(), suggestion.predicted_cost, suggestion.origin]
            waiting.append(suggestion)
            if len(waiting) <= pending and step < STEPS - 1:
                continue
            done = waiting.pop(0)
            loss, cost = loss_and_cost(done.point, d, full, rng)
            if name == "with failures" and done.point[0] > 0.7:
                study.fail(done, "too large", cost=cost)
            else:
                study.tell(done, loss, cost=cost)
        incumbent = study.incumbent()
        assert incumbent is not None
        yield [
            study.space.encode(incumbent.config).tolist(),
            [incumbent.loss, incumbent.std],
            str(incumbent.verified),
        ]


def main() -> None:
    """Records to a file, or compares with it and exits with 1 if a suggestion differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=["record", "compare"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    arguments = parser.parse_args()
    found = {name: list(suggestions(name)) for name in arguments.cases}
    if arguments.action == "record":
        arguments.file.write_text(json.dumps(found))
        return
    recorded = json.loads(arguments.file.read_text())
    differs = False
    for name, rows in found.items():
        first = next(
            (i for i, (a, b) in enumerate(zip(recorded[name], rows, strict=True)) if a[:2] != b[:2]), None
        )
        differs |= first is not None
        print(f"{name:20} {'same' if first is None else f'differs from step {first} on'}")
    sys.exit(differs)


if __name__ == "__main__":
    main()
