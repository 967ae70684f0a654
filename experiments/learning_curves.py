"""Which deviation from a power law do real learning curves have? Curves of scikit-learn models, and a table of scores.

    python -m experiments.learning_curves generate [--data DIRECTORY]
    python -m experiments.learning_curves score --seeds 3

`generate` trains 30 random configurations of several learners on nested subsets of real data sets, each on 1/64 to all
of the rows, and writes validation errors to experiments/results/learning_curves.json. The data sets are those that
scikit-learn ships. If DIRECTORY has covtype.npz (numeric (n, 10), wilderness, soil, y), 4,000 rows of it are used too.

`score` gives 24 of these losses on at most 1/8 of the rows to loss models that differ in their deviation, and predicts
all configurations on all rows: mean log density in units of the spread of the losses, and the share within the 90 %
interval. It does the same with both SVM tables.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtri

from experiments.calibration import fitted
from experiments.svm_grid.problem import Problem as SvmGrid
from fabolas import Float, Space
from fabolas.gp.priors import Normal
from fabolas.model_spec import Deviation, ModelSpec
from fabolas.surrogate import Data

RESULTS = Path(__file__).parent / "results" / "learning_curves.json"
CONFIGURATIONS, HALVINGS = 30, 6
Split = tuple[
    np.ndarray, np.ndarray, np.ndarray, np.ndarray
]  # rows and labels to train on, and to validate with


def learners() -> dict[str, Callable[[float, float], Any]]:
    """Two hyperparameters in [0, 1] -> a scikit-learn classifier."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import SGDClassifier
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.svm import SVC
    from sklearn.tree import DecisionTreeClassifier

    return {
        "svc": lambda a, b: SVC(C=10 ** (4 * a - 1), gamma=10 ** (4 * b - 5)),
        "tree": lambda a, b: DecisionTreeClassifier(
            min_samples_leaf=int(64**a), max_features=0.05 + 0.95 * b, random_state=0
        ),
        "forest": lambda a, b: RandomForestClassifier(
            20, min_samples_leaf=int(64**a), max_features=0.05 + 0.95 * b, random_state=0
        ),
        "neighbours": lambda a, b: KNeighborsClassifier(int(18**a), p=1 + b),
        "linear": lambda a, b: SGDClassifier(
            alpha=10 ** (6 * a - 6),
            eta0=10 ** (4 * b - 4),
            learning_rate="constant",
            max_iter=30,
            tol=None,
            random_state=0,
        ),
        "network": lambda a, b: MLPClassifier(
            (32,), learning_rate_init=10 ** (3 * a - 4), alpha=10 ** (6 * b - 5), max_iter=30, random_state=0
        ),
    }


def data_sets(directory: Path | None) -> dict[str, tuple[Split, tuple[str, ...]]]:
    """Standardised splits, and the learners that are used on each."""
    from sklearn.datasets import load_breast_cancer, load_digits

    usual = ("svc", "tree", "forest", "neighbours", "linear", "network")
    found = {
        "digits": (_split(*load_digits(return_X_y=True)), usual),
        "cancer": (_split(*load_breast_cancer(return_X_y=True)), usual[:5]),
    }
    if directory is not None and (directory / "covtype.npz").exists():
        with np.load(directory / "covtype.npz") as z:
            rows = np.random.default_rng(0).permutation(len(z["y"]))[:6000]
            soil = np.eye(40)[z["soil"][rows]]
            X = np.column_stack([z["numeric"][rows], np.eye(4)[z["wilderness"][rows]], soil])
            found["covtype"] = (_split(X, z["y"][rows]), ("tree", "linear"))
    return found


def _split(X: np.ndarray, y: np.ndarray) -> Split:
    order = np.random.default_rng(0).permutation(len(y))
    train, validate = order[: 2 * len(y) // 3], order[2 * len(y) // 3 :]
    centre, scale = X[train].mean(axis=0), X[train].std(axis=0) + 1e-9
    return (X[train] - centre) / scale, y[train], (X[validate] - centre) / scale, y[validate]


def generate(directory: Path | None) -> None:
    """Trains all configurations on all subsets; a subset is the first rows of a random order."""
    import warnings

    found: dict[str, Any] = {}
    for name, ((X, y, X_new, y_new), used) in data_sets(directory).items():
        sizes = [int(len(y) / 2.0**k) for k in range(HALVINGS, -1, -1)]
        for learner in used:
            x = np.random.default_rng(1).random((CONFIGURATIONS, 2))
            losses = np.full((CONFIGURATIONS, len(sizes)), np.nan)
            for i, (a, b) in enumerate(x):
                for j, size in enumerate(sizes):
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")  # a network that has not converged is a result
                        model = learners()[learner](a, b).fit(X[:size], y[:size])
                    losses[i, j] = np.mean(model.predict(X_new) != y_new)
            found[f"{name}, {learner}"] = {
                "sizes": sizes,
                "x": np.round(x, 4).tolist(),
                "losses": np.round(np.maximum(losses, 0.5 / len(y_new)), 5).tolist(),
            }
            print(f"{name}, {learner}: best {losses[:, -1].min():.3f}", flush=True)
            RESULTS.write_text(json.dumps(found) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class Curves:
    """Losses of configurations over sizes."""

    x: np.ndarray  # (c, 2)
    s: np.ndarray  # (k,) relative sizes, the last is 1
    losses: np.ndarray  # (c, k)


def curves() -> dict[str, Curves]:
    """The generated curves and those of the SVM tables."""
    found = {}
    for name, entry in json.loads(RESULTS.read_text(encoding="utf-8")).items():
        sizes = np.array(entry["sizes"], dtype=float)
        found[name] = Curves(np.array(entry["x"]), sizes / sizes[-1], np.array(entry["losses"]))
    for name in ("mnist", "covtype"):
        problem, rng = SvmGrid.load(name), np.random.default_rng(0)
        over, s = Space(problem.space, problem.fidelities), 2.0 ** -np.arange(6.0, -1.0, -1.0)
        u = 1.0 + np.log(s) / np.log(256.0)
        x = over.sobol(CONFIGURATIONS, rng)
        points = [[over.decode(np.append(row, each)) for each in u] for row in x]
        losses = [[problem(config, **fidelity, rng=rng)[0] for config, fidelity in row] for row in points]
        found[f"table {name}"] = Curves(x, s, np.array(losses))
    return found


def _power(exponent: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda u: u**exponent


# Time u^a of the random walk, mean and standard deviation of log v.
VARIANTS = {
    "u^2, -2, 1.5": (2, -2.0, 1.5),
    "u^4, 0, 2": (4, 0.0, 2.0),
    "u^6, 1, 2": (6, 1.0, 2.0),
}


def score(given: Curves, variant: str, seed: int, n: int = 24) -> tuple[float, float]:
    """Mean log density of the losses on all rows, and the share of them within the 90 % interval."""
    exponent, mean, sd = VARIANTS[variant]
    spec = ModelSpec(loss_deviations=(Deviation(_power(exponent), Normal(mean, sd)),))
    rng = np.random.default_rng([seed, 5])
    over = Space({"x0": Float(0.0, 1.0), "x1": Float(0.0, 1.0)}, {"size": (2**10, 2**16)})  # 1/64 and more
    u = 1.0 + np.log(given.s) / np.log(64.0)
    small = np.flatnonzero(given.s <= 0.126)
    i, j = rng.permutation(len(given.x))[:n], rng.choice(small, n)
    points = np.column_stack([given.x[i], u[j]])
    data = Data(points, given.losses[i, j], given.s[j], np.zeros(n, dtype=bool))
    models = fitted(over, data, spec, seed)
    at_target = np.column_stack([given.x, np.ones(len(given.x))])
    predicted, variance = models.predict_stated_loss(at_target)
    variance = variance + (1.0 - spec.nugget_fraction) * models.loss.noise(at_target).mean(axis=0)
    z = (models.transform.forward(given.losses[:, -1]) - predicted) / np.sqrt(variance)
    density = -0.5 * z**2 - 0.5 * np.log(2.0 * np.pi * variance)
    return float(density.mean()), float(np.mean(np.abs(z) < ndtri(0.95)))


def print_scores(seeds: int) -> None:
    """A row for each data set and learner."""
    print("| curves | " + " | ".join(VARIANTS) + " |\n" + "|---" * (len(VARIANTS) + 1) + "|")
    totals = []
    for name, given in curves().items():
        rows = np.array([[score(given, v, seed) for seed in range(seeds)] for v in VARIANTS]).mean(axis=1)
        totals.append(rows)
        print(f"| {name} | " + " | ".join(f"{d:.2f}, {c:.2f}" for d, c in rows) + " |", flush=True)
    mean = np.mean(totals, axis=0)
    print("| mean | " + " | ".join(f"{d:.2f}, {c:.2f}" for d, c in mean) + " |")


def main() -> None:
    """Generates the curves, or scores models on them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=["generate", "score"])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.action == "generate":
        generate(arguments.data)
    else:
        print_scores(arguments.seeds)


if __name__ == "__main__":
    main()
