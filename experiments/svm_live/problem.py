"""Validation error of an SVM over log C and log gamma, and over the number of training rows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.svm import SVC

import fabolas
from experiments.live.search import Report
from experiments.svm_grid import sources

SPACE = {  # log C and log gamma in [-10, 10], as in the paper
    "C": fabolas.Float(float(np.exp(-10.0)), float(np.exp(10.0)), log=True),
    "gamma": fabolas.Float(float(np.exp(-10.0)), float(np.exp(10.0)), log=True),
}
ROWS_PER_CLASS = 10  # of the smallest subset, as in the paper
CACHE = 500  # MB of the kernel


@dataclass(frozen=True)
class Setting:
    """A data set and how much of it is used.

    Attributes:
        data: "mnist", "covtype" or "vehicle".
        rows: Training rows, the target of the search.
        valid: Validation rows: the loss of a trial is the error on them.
        test: Test rows, which the search does not see.
        directory: Folder of local copies.
    """

    data: str = "mnist"
    rows: int = 50_000
    valid: int = 10_000
    test: int = 10_000
    directory: Path | None = None

    def describe(self) -> dict[str, Any]:
        given = asdict(self)
        del given["directory"]
        return {"experiment": "svm_live", **given}

    def load(self) -> Svm:
        return Svm(sources.load(self.data, self.directory, self.rows, self.valid, self.test))


class Svm:
    """The data in memory; one training at a time."""

    space = SPACE

    def __init__(self, split: sources.Split) -> None:
        self._split = split
        n_classes = len(np.unique(split.y_train))
        self.ranges = {"rows": (ROWS_PER_CLASS * n_classes, len(split.y_train))}

    def train(self, config: dict[str, Any], seed: int, report: Report | None, *, rows: int) -> float:
        """Train on a random subset, stratified by class; validation error."""
        s = self._split
        chosen = fabolas.subset(s.y_train, rows, seed=seed)
        model = SVC(**config, cache_size=CACHE).fit(s.x_train[chosen], s.y_train[chosen])
        return float(np.mean(model.predict(s.x_valid) != s.y_valid))

    def test(self, config: dict[str, Any]) -> float:
        """Train on all training and validation rows; test error."""
        s = self._split
        x, y = np.vstack([s.x_train, s.x_valid]), np.concatenate([s.y_train, s.y_valid])
        model = SVC(**config, cache_size=CACHE).fit(x, y)
        return float(np.mean(model.predict(s.x_test) != s.y_test))
