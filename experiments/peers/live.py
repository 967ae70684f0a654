r"""Live problems: real trainings of scikit-learn models on generated data, timed by the process clock.

    python -m experiments.peers run --problems live/svc live/boosting --tools fabolas smac-mf dehb --seeds 3 \
        --processes 1 --journal experiments/results/live_peers.jsonl
    python -m experiments.peers.live experiments/results/live_peers.jsonl

The second command prints the table of a journal: the median over seeds of the error of the answers.

An evaluation trains on a nested subset of the rows and returns the error on validation rows. Its cost is the process
time of this training on one thread. A full training is the median of a few trainings of random configurations on all
the rows. The lowest error is not known, so that the "regret" of an answer is its validation error after a training on
all the rows. These trainings, one for each answer, do not count.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import fabolas

N_ROWS, N_VALID = 5_000, 4_000
SMALLEST = 200  # rows
N_TIMED = 3


def _svc(config: Mapping[str, Any]) -> Any:
    return make_pipeline(StandardScaler(), SVC(C=config["C"], gamma=config["gamma"], cache_size=500))


def _boosting(config: Mapping[str, Any]) -> Any:
    return HistGradientBoostingClassifier(max_iter=100, early_stopping=False, random_state=0, **config)


MODELS: dict[str, tuple[Callable[[Mapping[str, Any]], Any], dict[str, Any]]] = {
    "svc": (
        _svc,
        {"C": fabolas.Float(1e-3, 1e3, log=True), "gamma": fabolas.Float(1e-4, 1e1, log=True)},
    ),
    "boosting": (
        _boosting,
        {
            "learning_rate": fabolas.Float(1e-3, 1.0, log=True),
            "max_leaf_nodes": fabolas.Integer(2, 128, log=True),
            "min_samples_leaf": fabolas.Integer(1, 200, log=True),
            "l2_regularization": fabolas.Float(1e-6, 1e3, log=True),
            "max_features": fabolas.Float(0.1, 1.0),
        },
    ),
}


@dataclass(frozen=True)
class Live:
    """A model that is trained for each evaluation."""

    model: str
    n_rows: int = N_ROWS
    n_valid: int = N_VALID
    best: float = 0.0
    _truths: dict[Any, float] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """As in the journal."""
        return f"live/{self.model}"

    @property
    def space(self) -> dict[str, Any]:
        """Hyperparameters."""
        return MODELS[self.model][1]

    @property
    def fidelities(self) -> dict[str, tuple[int, int]]:
        """Rows of the training set."""
        return {"rows": (SMALLEST, self.n_rows)}

    @cached_property
    def full_cost(self) -> float:
        """Seconds of a training on all the rows, the median of a few random configurations."""
        space = fabolas.Space(self.space, self.fidelities)
        x = space.sobol(N_TIMED, np.random.default_rng(2017))
        configs = [space.decode(space.snap(np.append(row, 1.0)[None])[0])[0] for row in x]
        return float(np.median([self._train(config, self.n_rows)[1] for config in configs]))

    def __call__(
        self, config: Mapping[str, Any], rng: np.random.Generator, rows: float
    ) -> tuple[float, float]:
        """Validation error and process time of a training on so many rows."""
        return self._train(config, round(rows))

    def truth(self, config: Mapping[str, Any]) -> float:
        """Validation error of a training on all the rows."""
        key = tuple(sorted(config.items()))
        if key not in self._truths:
            self._truths[key] = self._train(config, self.n_rows)[0]
        return self._truths[key]

    def _train(self, config: Mapping[str, Any], rows: int) -> tuple[float, float]:
        X, y = self._data
        X_train, y_train = X[self.n_valid :], y[self.n_valid :]
        chosen = fabolas.subset(y_train, rows, seed=0)
        start = time.process_time()
        with threadpool_limits(1):
            model = MODELS[self.model][0](config).fit(X_train[chosen], y_train[chosen])
            error = 1.0 - model.score(X[: self.n_valid], y[: self.n_valid])
        return float(error), time.process_time() - start

    @cached_property
    def _data(self) -> tuple[np.ndarray, np.ndarray]:
        X, y = make_classification(
            self.n_rows + self.n_valid,
            n_features=20,
            n_informative=10,
            n_classes=5,
            n_clusters_per_class=4,
            flip_y=0.02,
            random_state=0,
        )
        return X, y


TIMES = (1.0, 5.0, 20.0, 40.0)  # in full trainings


def table(path: Path) -> Iterator[str]:
    """One row per problem and tool: runs, trials, and the error of the answers at `TIMES`; medians over seeds."""
    from experiments.peers.compare import Journal

    journal = Journal(path)
    yield "| problem | tool | runs | trials | " + " | ".join(f"at {t:g}" for t in TIMES) + " |"
    yield "|---" * (4 + len(TIMES)) + "|"
    for problem, tool in dict.fromkeys((problem, tool) for problem, tool, _ in journal.runs):
        keys = [key for key in journal.runs if key[:2] == (problem, tool)]
        trials = np.median([journal.rows[key]["n_trials"] for key in keys])
        errors = [np.median([journal.runs[key].regret_at(time) for key in keys]) for time in TIMES]
        cells = [f"{error:.3f}" if np.isfinite(error) else "none" for error in errors]
        yield f"| {problem} | {tool} | {len(keys)} | {trials:.0f} | " + " | ".join(cells) + " |"


if __name__ == "__main__":
    print("\n".join(table(Path(sys.argv[1]))))
