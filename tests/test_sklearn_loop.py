"""The loop of a fit under a simulated clock: what is begun, and when it ends."""

from typing import Any

import numpy as np
import pytest

from fabolas import Float, Space, Study
from fabolas.budget import Budget
from fabolas.sklearn.loop import Ending, Loop
from fabolas.sklearn.rows import Row
from fabolas.sklearn.scores import Loss

FULL = 4000


class Clock:
    """Simulated seconds, and next to none for each look at it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1e-4
        return self.now


def run(space: Space, seconds: Any, budget: Budget, seed: int = 0) -> tuple[Loop, Clock, Study]:
    """A search whose candidates are the better the nearer x is to 0.4, and take so many seconds on all the rows."""
    clock, rng = Clock(), np.random.default_rng(seed)

    def evaluate(params: dict[str, Any], size: int) -> Row:
        took = float(seconds(params)) * size / FULL
        clock.now += took
        loss = 0.1 + (params["x"] - 0.4) ** 2 + 0.02 * (FULL / size) ** 0.5 + 0.001 * rng.normal()
        return Row(params, size, took, ({"test_scores": 1.0 - loss},))

    study = Study(space, seed=seed, clock=clock, effort=0.3)
    ending = Ending(verify=True, refit=0.0, configurations=space.configurations(1000))
    loop = Loop(study, evaluate, Loss("score", 1.0), budget, ending, {}, FULL, clock(), clock)
    loop.run(lambda snapshot: None)
    return loop, clock, study


@pytest.mark.parametrize("seed", range(3))
def test_a_grid_with_dear_corners_ends_in_time_and_runs_nothing_twice(seed: int) -> None:
    space = Space({"x": [0.1, 0.3, 0.5, 0.9], "rounds": [10, 100, 3000]}, {"rows": (100, FULL)})
    loop, clock, _ = run(space, lambda p: p["rounds"] / 50, Budget(60.0), seed)
    assert clock.now < 66.0
    runs = [(row.params["x"], row.params["rounds"], row.size) for row in loop.rows.values()]
    assert len(set(runs)) == len(runs)


@pytest.mark.parametrize("seed", range(3))
def test_when_no_run_on_all_the_rows_fits_any_more_it_ends(seed: int) -> None:
    space = Space({"x": Float(0.0, 1.0)}, {"rows": (100, FULL)})
    loop, clock, study = run(space, lambda p: 10.0, Budget(45.0), seed)
    full = [number for number, row in loop.rows.items() if row.size == FULL]
    assert len(full) >= 2
    assert clock.now < 46.0
    first = study.trials[full[0]]
    late = [row.size for number, row in loop.rows.items() if number > first.id]
    assert late[-1] == FULL


def test_a_few_candidates_keep_to_the_time_budget() -> None:
    space = Space({"x": Float(0.0, 1.0)}, {"rows": (100, FULL)})
    loop, clock, _ = run(space, lambda p: 20.0, Budget(25.0, 3))
    assert [row.size for row in loop.rows.values()] == [FULL]
    assert clock.now < 21.0
