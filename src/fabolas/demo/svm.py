"""What is tuned: scikit-learn's support vector machine, its C and gamma."""

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
SMALLEST = 128


@dataclass(frozen=True)
class Objective:
    """Validation error of a configuration trained on `size` rows."""

    digits: Digits

    def __call__(self, config: Mapping[str, Any], size: int) -> float:
        rows = subset(self.digits.y_train, size, seed=0)
        model = SVC(**config, cache_size=500).fit(self.digits.x_train[rows], self.digits.y_train[rows])
        return float(np.mean(model.predict(self.digits.x_valid) != self.digits.y_valid))


@dataclass(frozen=True)
class Verification:
    """One training on all the rows: the errors, and the seconds of training and validation."""

    valid_error: float
    test_error: float
    seconds: float


def verify(digits: Digits, config: Mapping[str, Any]) -> Verification:
    """Train `config` on all the rows, time it as the search would, and look at the test rows for once."""
    start = time.perf_counter()
    model = SVC(**config, cache_size=500).fit(digits.x_train, digits.y_train)
    valid_error = float(np.mean(model.predict(digits.x_valid) != digits.y_valid))
    seconds = time.perf_counter() - start
    return Verification(valid_error, float(np.mean(model.predict(digits.x_test) != digits.y_test)), seconds)
