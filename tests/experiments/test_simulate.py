"""The simulated clock: what counts, and what does not."""

import time

import numpy as np
import pytest

from experiments.clock import Clock
from experiments.simulate import simulate
from experiments.synthetic import svm_like
from fabolas.strategies.random import Random
from tests.helpers.waiting import burn


def test_simulated_time_is_the_cost_of_trials_and_the_overhead() -> None:
    run = simulate(svm_like(0), seed=0, max_trials=14)
    assert (run.overhead > 0).all()
    np.testing.assert_allclose(run.time, np.cumsum(run.cost + run.overhead))
    counted = simulate(svm_like(0), "random", seed=0, max_trials=5, overhead=0.25)
    np.testing.assert_allclose(counted.time, np.cumsum(counted.cost + 0.25))


def test_looking_at_the_incumbent_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    incumbent = Random.incumbent

    def slow(*arguments: object) -> object:
        burn(0.05)
        return incumbent(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Random, "incumbent", slow)
    run = simulate(svm_like(0), "random", seed=0, max_trials=4)
    assert run.overhead.sum() < 0.05


def test_without_measured_time_only_simulated_seconds_pass() -> None:
    clock = Clock(measured=False)
    clock.advance(2.5)
    burn(0.01)
    clock.advance(-1.0)
    assert clock() == 2.5


def test_a_stopped_clock_stands_still() -> None:
    clock = Clock()
    with clock.stopped():
        before = clock()
        burn(0.05)
        assert clock() == before
    assert clock() - before < 0.05
    assert time.process_time() - before >= 0.05
