"""The problem of the demo: C and gamma of the support vector machine of scikit-learn."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.svm import SVC

from fabolas.demo.data import Digits
from fabolas.space import Float
from fabolas.subsets import subset

SPACE = {"C": Float(1e-4, 1e4, log=True), "gamma": Float(1e-4, 1e4, log=True)}
MIN_SIZE = 128  # rows of the smallest training


@dataclass(frozen=True)
class Objective:
    """Returns the validation error of a configuration that is trained on `size` rows."""

    digits: Digits

    def __call__(self, config: Mapping[str, Any], size: int) -> float:
        rows = subset(self.digits.y_train, size, seed=0)
        model = SVC(**config, cache_size=500).fit(self.digits.x_train[rows], self.digits.y_train[rows])
        return float(np.mean(model.predict(self.digits.x_valid) != self.digits.y_valid))


@dataclass(frozen=True)
class TrueErrors:
    """The errors of one training on all rows, and the seconds that training and validation took."""

    valid_error: float
    test_error: float
    seconds: float


def train_on_all_rows(digits: Digits, config: Mapping[str, Any]) -> TrueErrors:
    """Train `config` on all rows, and compute the validation error and, only here, the test error."""
    start = time.perf_counter()
    model = SVC(**config, cache_size=500).fit(digits.x_train, digits.y_train)
    valid_error = float(np.mean(model.predict(digits.x_valid) != digits.y_valid))
    seconds = time.perf_counter() - start
    return TrueErrors(valid_error, float(np.mean(model.predict(digits.x_test) != digits.y_test)), seconds)
