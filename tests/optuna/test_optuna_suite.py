"""Optuna's own tests of samplers, for FabolasSampler with and without fidelities."""

import warnings
from collections.abc import Callable

import optuna
import pytest
from optuna.samplers import BaseSampler

from fabolas.optuna import FabolasSampler

suite = pytest.importorskip(
    "optuna.testing.pytest_samplers", reason="this version of Optuna has no suite for samplers"
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning"),
]


@pytest.fixture(autouse=True)
def _quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)


class TestWithoutFidelities(
    suite.BasicSamplerTestCase, suite.RelativeSamplerTestCase, suite.SingleOnlySamplerTestCase
):
    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: FabolasSampler(seed=0)


class TestWithAFidelityThatTheObjectiveDoesNotAskFor(
    suite.BasicSamplerTestCase, suite.RelativeSamplerTestCase, suite.SingleOnlySamplerTestCase
):
    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: FabolasSampler({"rows": (100, 10_000)}, seed=0)
