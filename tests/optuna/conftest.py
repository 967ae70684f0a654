"""Optuna without its log, and an objective whose truth is known."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import optuna
import pytest

from fabolas.optuna import FabolasSampler

ROWS = (500, 50_000)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


def loss_of(C: float, rows: float) -> float:
    """Lowest at C = 10 on all rows; on few rows the curve is higher and its lowest point is elsewhere."""
    shift = 0.5 * math.log10(ROWS[1] / rows)
    return 0.01 * (math.log10(C) - 1.0 + shift) ** 2 + 0.1 * math.sqrt(ROWS[0] / rows)


@pytest.fixture
def sampler() -> Any:
    return FabolasSampler({"rows": ROWS}, seed=0)


@pytest.fixture
def objective(sampler: Any) -> Callable[[Any], float]:
    """Costs are told and not measured: a thousand rows a second."""

    def evaluate(trial: Any) -> float:
        C = trial.suggest_float("C", 1e-5, 1e5, log=True)
        rows = sampler.fidelity(trial)["rows"]
        value: float = sampler.finish(trial, loss_of(C, rows), cost=rows / 1000)
        return value

    return evaluate
