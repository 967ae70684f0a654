"""Thinking in proportion: the level follows from the record and keeps to its share."""

import numpy as np
import pytest

from fabolas import effort
from fabolas.effort import Effort, choose, debt


def level(cost: float, thought: float = 0.0, n: int = 50) -> float | None:
    thinking = np.full(n, thought)
    return choose(thinking, np.zeros(n), np.full(n, cost), cost, n)


def test_the_level_rises_with_the_cost_from_least_to_full() -> None:
    levels = [level(cost) for cost in (0.1, 0.3, 1.0, 3.0, 30.0)]
    assert all(a is not None for a in levels)
    assert np.all(np.diff(np.array(levels, dtype=float)) >= 0)
    assert levels[-1] == 1.0


def test_there_is_no_time_to_think_before_a_trial_of_milliseconds() -> None:
    assert level(0.001) is None


def test_thinking_too_long_is_made_up_for() -> None:
    assert level(1.0, thought=0.5) is None


def test_a_slow_machine_thinks_less_hard() -> None:
    # The same record, but what was decided with the least effort took four times as long.
    quick, slow = (
        choose(np.full(50, factor * float(effort.seconds(0.0, 50))), np.zeros(50), np.full(50, 2.0), 2.0, 50)
        for factor in (1.0, 4.0)
    )
    assert quick is not None
    assert slow is not None
    assert slow < quick


def test_the_share_holds_over_a_simulated_run() -> None:
    rng = np.random.default_rng(0)
    for cost in (0.2, 0.5, 1.0):
        thinking: list[float] = []
        levels: list[float] = []
        for n in range(80):
            chosen = choose(np.array(thinking), np.array(levels), np.full(n, cost), cost, n)
            # A machine twice as slow as the one the figures come from, with noise.
            took = (
                2.0 * float(effort.seconds(chosen, n)) * np.exp(0.2 * rng.normal())
                if chosen is not None
                else 1e-3
            )
            thinking.append(took)
            levels.append(chosen or 0.0)
        share = sum(thinking) / (sum(thinking) + 80 * cost)
        assert share < 0.13


@pytest.mark.parametrize("n", [10, 100, 1000])
def test_more_effort_is_never_less_of_anything(n: int) -> None:
    efforts = [Effort.at(level, n) for level in np.linspace(0, 1, 11)]
    for name in (
        "steps",
        "K",
        "representers",
        "samples",
        "outcomes",
        "pool",
        "screened",
        "counted",
        "refined",
    ):
        assert np.all(np.diff([getattr(e, name) for e in efforts]) >= 0), name
    assert np.all(np.diff([e.every for e in efforts]) <= 0)


def test_debt_is_what_a_bucket_holds_that_never_saves() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        thinking, allowed = rng.exponential(size=(2, 30))
        held = 0.0
        for thought, allowance in zip(thinking, allowed, strict=True):
            held = max(held + thought - allowance, 0.0)
        assert debt(thinking, allowed) == pytest.approx(held)
    assert debt(np.empty(0), np.empty(0)) == 0.0
