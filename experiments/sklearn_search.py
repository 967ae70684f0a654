"""FabolasSearchCV against RandomizedSearchCV and HalvingRandomSearchCV with the same time budget.

    python -m experiments.sklearn_search run --seeds 3 --data mnist clusters covtype --covtype covtype.npz
    python -m experiments.sklearn_search table
    python -m experiments.sklearn_search figure --to docs/figures/sklearn_search.png

Each finished run is a line of a journal, so that a killed comparison goes on where it was; those that the
documentation shows are in `experiments/results`, for `--journal`. The methods take turns on each problem and seed,
on one thread each. What is compared is the score on held-out rows of what a method would answer at a time, trained
on all training rows; these trainings are not on the clock. The clock is the process's own on one thread, which is
what the clock on the wall would show on an idle machine; `--wall` takes that one.

- RandomizedSearchCV has no time budget: it is given one candidate after the other until the time is up.
- HalvingRandomSearchCV has none either: it runs again and again with as many candidates (powers of three) as are
  predicted to fit into what is left, from the time of the run before; the first has nine.
- A candidate or a run of theirs that has not ended when the time is up is given up, unless it is the first.
  FabolasSearchCV ends by itself; how late is in the table.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import signal
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import loguniform, randint, uniform
from sklearn.base import clone
from sklearn.datasets import fetch_covtype, make_classification, make_friedman1
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import HalvingRandomSearchCV, RandomizedSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from experiments import lines
from fabolas.demo.data import digits
from fabolas.sklearn import FabolasSearchCV

ROWS, HELD_OUT, FOLDS = 20_000, 5_000, 3
CHECKPOINTS = (0.5, 1.0)  # of the budget
# Budget of a run by estimator or problem: halving's first nine candidates need about that.
SECONDS = {"svc": 60.0, "boosting": 120.0, "mlp": 30.0, "covtype-svc": 120.0}
JOURNAL = Path(".cache/sklearn_search.jsonl")
METHODS = ("fabolas", "halving", "random")


@dataclass(frozen=True)
class Data:
    """Rows to search with, and rows that no search sees."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def split(X: np.ndarray, y: np.ndarray) -> Data:
    """20,000 rows to search with and 5,000 to test on, or as many as there are."""
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:ROWS], order[ROWS : ROWS + HELD_OUT]
    return Data(X[train], y[train], X[test], y[test])


def mnist() -> Data:
    """The sample that comes with the package: 50 principal components of 10 digits."""
    d = digits()
    return Data(
        d.x_train, d.y_train, np.concatenate([d.x_valid, d.x_test]), np.concatenate([d.y_valid, d.y_test])
    )


def clusters() -> Data:
    """Four classes of three Gaussian clusters each in 10 of 20 dimensions, 2 % of the labels wrong."""
    return split(
        *make_classification(
            ROWS + HELD_OUT,
            20,
            n_informative=10,
            n_redundant=5,
            n_classes=4,
            n_clusters_per_class=3,
            flip_y=0.02,
            class_sep=1.2,
            random_state=0,
        )
    )


def friedman() -> Data:
    """Friedman's first function with noise, cut into three classes of equal size."""
    X, y = make_friedman1(ROWS + HELD_OUT, 10, noise=1.0, random_state=0)
    return split(X, np.digitize(y, np.quantile(y, [1 / 3, 2 / 3])))


def covtype(path: str | None) -> Data:
    """Forest cover types: of a file with numeric, wilderness, soil and y, or scikit-learn's local copy."""
    if path is None:
        X, y = fetch_covtype(return_X_y=True, download_if_missing=False)
    else:
        with np.load(path) as z:
            X = np.column_stack([z["numeric"], np.eye(4)[z["wilderness"]], np.eye(40)[z["soil"]]])
            y = z["y"]
    return split(X.astype(float), y)


DATA: dict[str, Callable[..., Data]] = {
    "mnist": mnist,
    "clusters": clusters,
    "friedman": friedman,
    "covtype": covtype,
}
# Estimator by name: itself, and what is searched.
ESTIMATORS: dict[str, tuple[Any, dict[str, Any]]] = {
    "svc": (
        make_pipeline(StandardScaler(), SVC(cache_size=500)),
        {"svc__C": loguniform(1e-4, 1e4), "svc__gamma": loguniform(1e-5, 1e2)},
    ),
    "boosting": (
        HistGradientBoostingClassifier(random_state=0, early_stopping=False),
        {
            "learning_rate": loguniform(1e-3, 1.0),
            "max_iter": randint(10, 101),
            "max_leaf_nodes": randint(2, 64),
            "min_samples_leaf": randint(2, 101),
            "l2_regularization": loguniform(1e-6, 1e2),
            "max_features": uniform(0.1, 0.9),
        },
    ),
    "mlp": (
        make_pipeline(StandardScaler(), MLPClassifier(max_iter=15, random_state=0)),
        {
            "mlpclassifier__hidden_layer_sizes": [16, 32, 64, 128],
            "mlpclassifier__alpha": loguniform(1e-6, 1e1),
            "mlpclassifier__learning_rate_init": loguniform(1e-4, 1e0),
            "mlpclassifier__batch_size": [32, 64, 128, 256],
            "mlpclassifier__activation": ["relu", "tanh"],
        },
    ),
}


@cache
def data_of(name: str, path: str | None) -> Data:
    """The data set of this name."""
    return covtype(path) if name == "covtype" else DATA[name]()


# What a method would answer from a time on: seconds, parameters.
Answers = list[tuple[float, dict[str, Any]]]


class TimeIsUp(BaseException):
    """Raised in a search when its time is up, and caught by nobody but us."""


@dataclass
class Alarm:
    """Seconds of a run; it ends the run once the budget is used up."""

    budget: float
    wall: bool

    def __enter__(self) -> Alarm:
        self.read = time.perf_counter if self.wall else time.process_time
        self.start, self.armed = self.read(), False
        name, which = ("SIGALRM", signal.ITIMER_REAL) if self.wall else ("SIGVTALRM", signal.ITIMER_VIRTUAL)
        signal.signal(getattr(signal, name), self.ring)
        signal.setitimer(which, self.budget, 1.0)
        self.which = which
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        signal.setitimer(self.which, 0.0)
        return kind is TimeIsUp

    def ring(self, *_: Any) -> None:
        if self.armed and self.seconds() >= self.budget:
            raise TimeIsUp

    def seconds(self) -> float:
        """Since the start."""
        return self.read() - self.start


def by_fabolas(
    data: Data, estimator: Any, space: dict[str, Any], budget: float, seed: int, wall: bool
) -> Answers:
    """The incumbents while it searched, and its answer at the end, which may be a little late."""

    class Search(FabolasSearchCV):
        _clock = staticmethod(time.perf_counter if wall else time.process_time)

    search = Search(estimator, space, time_budget=budget, cv=FOLDS, refit=False, random_state=seed)
    start = search._clock()
    search.fit(data.X, data.y)
    end = search.trajectory_[-1][0]
    before = [(seconds, incumbent.config) for seconds, incumbent in search.trajectory_ if seconds < end]
    return [*before, (search._clock() - start, search.best_params_)]


def by_random(
    data: Data, estimator: Any, space: dict[str, Any], budget: float, seed: int, wall: bool
) -> Answers:
    """The best candidate so far after each candidate."""
    best, answers = -np.inf, []
    with Alarm(budget, wall) as clock:
        for i in count():
            search = RandomizedSearchCV(
                estimator, space, n_iter=1, cv=FOLDS, refit=False, random_state=1000 * seed + i
            ).fit(data.X, data.y)
            if search.best_score_ > best:
                best = search.best_score_
                answers.append((clock.seconds(), search.best_params_))
            clock.armed = True
            clock.ring()
    return answers


def by_halving(
    data: Data, estimator: Any, space: dict[str, Any], budget: float, seed: int, wall: bool, first: int = 9
) -> Answers:
    """The best of the last rungs so far after each run; the first run has `first` candidates."""
    best, answers, candidates = -np.inf, [], first
    with Alarm(budget, wall) as clock:
        for i in count():
            began = clock.seconds()
            search = HalvingRandomSearchCV(
                estimator,
                space,
                n_candidates=candidates,
                min_resources="exhaust",
                cv=FOLDS,
                refit=False,
                random_state=1000 * seed + i,
            ).fit(data.X, data.y)
            if search.best_score_ > best:
                best = search.best_score_
                answers.append((clock.seconds(), search.best_params_))
            clock.armed = True
            # n candidates are 1 + log3 n rungs, which take about the same time each.
            rung = (clock.seconds() - began) / (1 + np.log(candidates) / np.log(3))
            fitting = [3**k for k in range(1, 6) if rung * (1 + k) <= budget - clock.seconds()]
            candidates = max(fitting, default=3)
            clock.ring()
    return answers


RUN: dict[str, Callable[..., Answers]] = {"fabolas": by_fabolas, "random": by_random, "halving": by_halving}


def one(problem: str, method: str, seed: int, scale: float, path: str | None, wall: bool) -> dict[str, Any]:
    """One run: the held-out score of the answer at each checkpoint."""
    warnings.filterwarnings("ignore")  # networks that have not converged are candidates like others
    name, kind = problem.split("-")
    data, (estimator, space) = data_of(name, path), ESTIMATORS[kind]
    budget = scale * SECONDS.get(problem, SECONDS[kind])
    answers = RUN[method](data, estimator, space, budget, seed, wall)
    scored: dict[str, float] = {}

    def score(params: dict[str, Any]) -> float:
        text = json.dumps(params, sort_keys=True, default=str)
        if text not in scored:
            fitted = clone(estimator).set_params(**params).fit(data.X, data.y)
            scored[text] = float(fitted.score(data.X_test, data.y_test))
        return scored[text]

    scores = []
    for checkpoint in CHECKPOINTS[:-1]:
        known = [params for seconds, params in answers if seconds <= checkpoint * budget]
        scores.append(score(known[-1]) if known else None)
    end, params = answers[-1]
    return {
        "key": key(problem, method, seed, scale, wall),
        "scores": [*scores, score(params)],
        "end": end / budget,
        "params": params,
    }


def key(problem: str, method: str, seed: int, scale: float, wall: bool) -> str:
    """What identifies a run in the journal."""
    return json.dumps([problem, method, seed, scale, *(["wall"] if wall else [])])


def finished(journal: Path) -> dict[str, dict[str, Any]]:
    """All runs of the journal by key."""
    return {row["key"]: row for row in lines.read(journal)}


def problems(arguments: argparse.Namespace) -> list[str]:
    """Every data set with every estimator."""
    return [f"{name}-{kind}" for kind in arguments.estimators for name in arguments.data]


def turn(
    methods: list[str], problem: str, seed: int, scale: float, path: str | None, wall: bool, journal: Path
) -> None:
    """Each method once on a problem, unless the journal has it."""
    for method in np.roll(methods, seed):
        if key(problem, method, seed, scale, wall) not in finished(journal):
            row = one(problem, str(method), seed, scale, path, wall)
            lines.append(journal, row)
            shown = ["-" if s is None else f"{s:.4f}" for s in row["scores"]]
            print(problem, method, seed, *shown, f"{row['end']:.2f}", flush=True)


def run(arguments: argparse.Namespace) -> None:
    """Runs what the journal does not have yet."""
    with ProcessPoolExecutor(arguments.processes) as pool:
        turns = [
            pool.submit(
                turn,
                arguments.methods,
                problem,
                seed,
                arguments.scale,
                arguments.covtype,
                arguments.wall,
                arguments.journal,
            )
            for seed in range(arguments.seeds)
            for problem in problems(arguments)
        ]
        for future in turns:
            future.result()


def errors_of(arguments: argparse.Namespace, problem: str, method: str) -> np.ndarray:
    """Held-out errors in percent, (seeds, checkpoints + 1): the last column is when the last answer came."""
    done = finished(arguments.journal)
    wanted = [key(problem, method, seed, arguments.scale, arguments.wall) for seed in range(arguments.seeds)]
    rows = [done.get(each) for each in wanted]
    errors = [
        [np.nan if s is None else 100 * (1 - s) for s in row["scores"]] + [row["end"]] for row in rows if row
    ]
    return np.array(errors).reshape(len(errors), len(CHECKPOINTS) + 1)


def table(arguments: argparse.Namespace) -> None:
    """Prints the median held-out error of each method at each checkpoint, as a table for the documentation."""
    times = " | ".join(f"{c:g} of the budget" for c in CHECKPOINTS)
    print(f"| | method | {times} | each seed | last answer at, and latest |")
    print("|---|---|" + "---|" * (len(CHECKPOINTS) + 2))
    for problem in problems(arguments):
        for method in METHODS:
            errors = errors_of(arguments, problem, method)
            if len(errors):
                # Where a method has no answer yet in some run, it has none in the median either.
                medians = ["-" if np.isnan(m) else f"{m:.2f}" for m in np.median(errors[:, :-1], axis=0)]
                each, ends = ", ".join(f"{e:.1f}" for e in errors[:, -2]), errors[:, -1]
                shown = f"{np.median(ends):.2f}, {ends.max():.2f}"
                print(f"| {problem} | {method} | {' | '.join(medians)} | {each} | {shown} |")


def figure(arguments: argparse.Namespace) -> None:
    """Draws the errors after each part of the budget, a row a problem, a dot a seed, a bar their median."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullFormatter

    shown = [p for p in problems(arguments) if any(len(errors_of(arguments, p, m)) for m in METHODS)]
    drawing = Figure(figsize=(9.0, 1.2 + 0.42 * len(shown)), layout="constrained")
    panels = drawing.subplots(1, len(CHECKPOINTS), sharex=True, sharey=True)
    for column, (axes, checkpoint) in enumerate(zip(panels, CHECKPOINTS, strict=True)):
        for place, (method, colour) in enumerate(
            zip(METHODS, ("crimson", "tab:blue", "tab:gray"), strict=True)
        ):
            for row, problem in enumerate(shown):
                errors = errors_of(arguments, problem, method)[:, column]
                y = row + 0.22 * (place - 1)
                axes.plot(errors, np.full(len(errors), y), ".", color=colour, ms=6, alpha=0.6)
                if len(errors) and not np.isnan(errors).any():  # of some seeds it would flatter
                    axes.plot(np.median(errors), y, "|", color=colour, ms=9, mew=2.2)
            axes.plot([], [], ".", color=colour, label=method)
        axes.set_title(f"after {checkpoint:g} of the budget" if checkpoint < 1 else "at the end", fontsize=10)
        axes.set_xscale("log")
        axes.set_xticks([2, 3, 5, 10, 20, 30, 50, 80])
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.grid(axis="x", alpha=0.3)
    panels[0].set_yticks(range(len(shown)), shown)
    panels[0].invert_yaxis()
    panels[0].legend(frameon=False, fontsize=9, loc="upper right")
    drawing.supxlabel("held-out error of the refitted best, %", fontsize=10)
    drawing.savefig(arguments.to, dpi=130)


def main() -> None:
    """Runs or shows the comparison."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=["run", "table", "figure"])
    parser.add_argument("--data", nargs="+", choices=DATA, default=["mnist", "clusters", "friedman"])
    parser.add_argument("--estimators", nargs="+", choices=ESTIMATORS, default=list(ESTIMATORS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="of the budgets")
    parser.add_argument("--quick", action="store_true", help="one seed, a tenth of the budgets")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--wall", action="store_true", help="by the clock on the wall; for an idle machine")
    parser.add_argument("--covtype", help="a file with numeric, wilderness, soil and y")
    parser.add_argument("--journal", type=Path, default=JOURNAL, help="file of the finished runs")
    parser.add_argument("--to", default="sklearn_search.png", help="where the figure goes")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.seeds, arguments.scale = 1, 0.1
    {"run": run, "table": table, "figure": figure}[arguments.action](arguments)


if __name__ == "__main__":
    main()
