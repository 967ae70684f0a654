"""Thinking in proportion: the level follows from the record and keeps to its share."""

import numpy as np
import pytest

from fabolas.strategies import effort
from fabolas.strategies.effort import Effort, affordable_level, overspent


def level(cost: float, thought: float = 0.0, n: int = 50) -> float | None:
    overhead = np.full(n, thought)
    return affordable_level(overhead, np.zeros(n), np.full(n, cost), cost, n)


def test_the_level_rises_with_the_cost_from_least_to_full() -> None:
    levels = [level(cost) for cost in (0.1, 0.3, 1.0, 3.0, 30.0)]
    assert all(a is not None for a in levels)
    assert np.all(np.diff(np.array(levels, dtype=float)) >= 0)
    assert levels[-1] == 1.0


def test_there_is_no_time_to_think_before_a_trial_of_milliseconds() -> None:
    assert level(0.001) is None


def test_too_much_overhead_is_made_up_for() -> None:
    assert level(1.0, thought=0.5) is None


def test_a_slow_machine_thinks_less_hard() -> None:
    # The same record, but what was decided with the least effort took four times as long.
    quick, slow = (
        affordable_level(
            np.full(50, factor * float(effort.reference_seconds(0.0, 50))),
            np.zeros(50),
            np.full(50, 2.0),
            2.0,
            50,
        )
        for factor in (1.0, 4.0)
    )
    assert quick is not None
    assert slow is not None
    assert slow < quick


def test_the_share_holds_over_a_simulated_run() -> None:
    rng = np.random.default_rng(0)
    for cost in (0.2, 0.5, 1.0):
        overhead: list[float] = []
        levels: list[float] = []
        for n in range(80):
            chosen = affordable_level(np.array(overhead), np.array(levels), np.full(n, cost), cost, n)
            # A machine twice as slow as the one the figures come from, with noise.
            took = (
                2.0 * float(effort.reference_seconds(chosen, n)) * np.exp(0.2 * rng.normal())
                if chosen is not None
                else 1e-3
            )
            overhead.append(took)
            levels.append(chosen or 0.0)
        share = sum(overhead) / (sum(overhead) + 80 * cost)
        assert share < 0.13


@pytest.mark.parametrize("n", [10, 100, 1000])
def test_more_effort_is_never_less_of_anything(n: int) -> None:
    efforts = [Effort.at(level, n) for level in np.linspace(0, 1, 11)]
    for name in (
        "mcmc_steps",
        "K",
        "n_representers",
        "n_samples",
        "n_outcomes",
        "pool_size",
        "n_screened",
        "n_monte_carlo",
        "n_refined",
    ):
        assert np.all(np.diff([getattr(e, name) for e in efforts]) >= 0), name
    assert np.all(np.diff([e.refit_interval for e in efforts]) <= 0)


def test_debt_is_what_a_bucket_holds_that_never_saves() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        overhead, allowed = rng.exponential(size=(2, 30))
        held = 0.0
        for thought, run_budget in zip(overhead, allowed, strict=True):
            held = max(held + thought - run_budget, 0.0)
        assert overspent(overhead, allowed) == pytest.approx(held)
    assert overspent(np.empty(0), np.empty(0)) == 0.0
