"""FabolasSearchCV against random and halving search when only 2, 5 or 20 full trainings fit into the budget.

    python -m experiments.sklearn_trainings run --data DIRECTORY --seeds 5 --processes 2
    python -m experiments.sklearn_trainings table

DIRECTORY has covtype.npz (arrays numeric, wilderness, soil, y) and svhn.npz (x_train, y_train, x_test, y_test); the
other data come with the package and with scikit-learn. A full training is one candidate on all rows with all folds, the
median of eight random candidates. The searches, the clock (process time on one thread) and the held-out error are those
of `experiments.sklearn_search`; the first run of halving has three candidates if the budget is at most five full
trainings. Each finished run is a line of the journal, so that a stopped comparison continues.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import loguniform, uniform
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import ParameterSampler, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments import lines
from experiments.sklearn_search import (
    ESTIMATORS,
    FOLDS,
    METHODS,
    RUN,
    Data,
    by_halving,
    covtype,
    mnist,
)

ROWS = {"svc": 4_000, "boosting": 4_000, "mlp": 14_000, "linear": 20_000}  # at most; a training takes seconds
HELD_OUT = 4_000
TRAININGS = (2, 5, 20)
JOURNAL = Path(__file__).parent / "results" / "sklearn_trainings.jsonl"
LINEAR: tuple[Any, dict[str, Any]] = (
    make_pipeline(StandardScaler(), PCA(random_state=0), SGDClassifier(loss="log_loss", random_state=0)),
    {
        "pca__n_components": [5, 10, 20, 40],
        "sgdclassifier__alpha": loguniform(1e-7, 1e1),
        "sgdclassifier__penalty": ["l2", "l1", "elasticnet"],
        "sgdclassifier__l1_ratio": uniform(0.0, 1.0),
        "sgdclassifier__average": [True, False],
    },
)
MODELS = {**ESTIMATORS, "linear": LINEAR}
# Four data sets, and each model on two of them.
PROBLEMS = (
    "mnist-svc",
    "covtype-boosting",
    "svhn-mlp",
    "covtype-linear",
    "covtype-svc",
    "digits-boosting",
    "mnist-mlp",
    "svhn-linear",
)


def svhn(path: Path) -> Data:
    """Street numbers: 60 principal components of grey images."""
    with np.load(path) as z:
        x, x_test = (z[name].mean(axis=3).reshape(len(z[name]), -1) / 255.0 for name in ("x_train", "x_test"))
        y, y_test = z["y_train"], z["y_test"]
    components = PCA(60, random_state=0).fit(x)
    return Data(components.transform(x), y, components.transform(x_test), y_test)


def small_digits() -> Data:
    """scikit-learn's digits: 1,200 rows to search with, 597 to test on."""
    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return Data(x[order[:1200]], y[order[:1200]], x[order[1200:]], y[order[1200:]])


@cache
def data_of(problem: str, directory: Path) -> Data:
    """The data of a problem, with at most as many rows to search with as its model should have."""
    name, kind = problem.split("-")
    load: dict[str, Callable[[], Data]] = {
        "svhn": lambda: svhn(directory / "svhn.npz"),
        "covtype": lambda: covtype(str(directory / "covtype.npz")),
        "digits": small_digits,
        "mnist": mnist,
    }
    given, rows = load[name](), ROWS[kind]
    return Data(given.X[:rows], given.y[:rows], given.X_test[:HELD_OUT], given.y_test[:HELD_OUT])


def full_training(problem: str, directory: Path) -> float:
    """Seconds of one candidate on all rows with all folds: the median of eight random candidates."""
    data, (estimator, space) = data_of(problem, directory), MODELS[problem.split("-")[1]]
    seconds = []
    for params in ParameterSampler(space, 8, random_state=2017):
        start = time.process_time()
        cross_validate(clone(estimator).set_params(**params), data.X, data.y, cv=FOLDS, error_score=0.0)
        seconds.append(time.process_time() - start)
    return float(np.median(seconds))


def one(problem: str, method: str, trainings: int, seed: int, unit: float, directory: Path) -> dict[str, Any]:
    """One run: the held-out error of its answer, and when it came."""
    data, (estimator, space) = data_of(problem, directory), MODELS[problem.split("-")[1]]
    search = partial(by_halving, first=3) if method == "halving" and trainings <= 5 else RUN[method]
    answers = search(data, estimator, space, trainings * unit, seed, False)
    end, params = answers[-1]
    fitted = clone(estimator).set_params(**params).fit(data.X, data.y)
    error = 1.0 - float(fitted.score(data.X_test, data.y_test))
    return {"key": key(problem, method, trainings, seed), "error": error, "end": end / (trainings * unit)}


def key(problem: str, method: str, trainings: int, seed: int) -> str:
    """What identifies a run in the journal."""
    return json.dumps([problem, method, trainings, seed])


def finished(journal: Path) -> dict[str, dict[str, Any]]:
    """All lines of the journal by key."""
    return {row["key"]: row for row in lines.read(journal)}


def turn(problem: str, seed: int, directory: Path, journal: Path) -> None:
    """Every method with every budget, unless the journal has it."""
    warnings.filterwarnings("ignore")  # networks that have not converged are candidates like others
    done = finished(journal)
    unit = done[problem]["seconds"]
    for trainings in TRAININGS:
        for method in np.roll(METHODS, seed):
            if key(problem, str(method), trainings, seed) not in done:
                row = one(problem, str(method), trainings, seed, unit, directory)
                lines.append(journal, row)
                print(row, flush=True)


def run(arguments: argparse.Namespace) -> None:
    """Runs what the journal does not have yet, seed by seed."""
    known = finished(arguments.journal)
    for problem in arguments.problems:
        if problem not in known:
            seconds = full_training(problem, arguments.data)
            lines.append(arguments.journal, {"key": problem, "seconds": seconds})
    with ProcessPoolExecutor(arguments.processes) as pool:
        turns = [
            pool.submit(turn, problem, seed, arguments.data, arguments.journal)
            for seed in range(arguments.seeds)
            for problem in arguments.problems
        ]
        for future in turns:
            future.result()


def column(
    done: dict[str, dict[str, Any]], name: str, problem: str, method: str, trainings: int
) -> np.ndarray:
    """(seeds,) The numbers of this name of those seeds that all methods have finished."""
    seeds = [seed for seed in range(100) if all(key(problem, m, trainings, seed) in done for m in METHODS)]
    return np.array([done[key(problem, method, trainings, seed)][name] for seed in seeds])


def table(arguments: argparse.Namespace) -> None:
    """Prints median errors, and how much larger those of the other methods are, with bootstrap intervals."""
    done, rng = finished(arguments.journal), np.random.default_rng(0)
    print(
        "| problem | full training | budget | "
        + " | ".join(METHODS)
        + " | halving - fabolas | random - fabolas |"
    )
    print("|---" * 8 + "|")
    ratios: dict[tuple[int, str], list[np.ndarray]] = {}
    for problem in arguments.problems:
        for trainings in TRAININGS:
            found = {m: 100.0 * column(done, "error", problem, m, trainings) for m in METHODS}
            n = len(found["fabolas"])
            if not n:
                continue
            cells = []
            for other in METHODS[1:]:
                more = found[other] - found["fabolas"]
                ratios.setdefault((trainings, other), []).append(np.log(found[other] / found["fabolas"]))
                means = more[rng.integers(n, size=(2000, n))].mean(axis=1)
                low, high = np.quantile(means, [0.025, 0.975])
                cells.append(f"{more.mean():+.2f} ({low:+.2f}, {high:+.2f})")
            medians = " | ".join(f"{np.median(found[m]):.2f}" for m in METHODS)
            unit = f"{done[problem]['seconds']:.1f} s"
            print(f"| {problem} | {unit} | {trainings} | {medians} | {' | '.join(cells)} |")
    for trainings in TRAININGS:
        for method in METHODS:
            ends = np.concatenate([column(done, "end", p, method, trainings) for p in arguments.problems])
            if len(ends):
                late = f"{np.median(ends):.2f} of the budget, at the latest {ends.max():.2f}"
                print(f"{trainings} full trainings: the last answer of {method} came at {late}")
    for (trainings, other), per_problem in ratios.items():
        means = np.array([each.mean() for each in per_problem])
        drawn = means[rng.integers(len(means), size=(2000, len(means)))].mean(axis=1)
        low, high = np.exp(np.quantile(drawn, [0.025, 0.975]))
        factor = f"{np.exp(means.mean()):.2f} ({low:.2f}, {high:.2f})"
        print(f"{trainings} full trainings: {other} has {factor} times the error of fabolas")


def main() -> None:
    """Runs or shows the comparison."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=["run", "table"])
    parser.add_argument("--data", type=Path, default=Path(), help="directory of covtype.npz and svhn.npz")
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--journal", type=Path, default=JOURNAL, help="file of the finished runs")
    arguments = parser.parse_args()
    {"run": run, "table": table}[arguments.action](arguments)


if __name__ == "__main__":
    main()
