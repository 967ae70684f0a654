"""The loop of a fit under a simulated clock: what is begun, and when it ends."""

from pathlib import Path
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

    def __init__(self, tick: float) -> None:
        self.now, self.tick = 0.0, tick

    def __call__(self) -> float:
        self.now += self.tick
        return self.now


def run(
    space: Space,
    seconds: Any,
    budget: Budget,
    seed: int = 0,
    *,
    verify: bool = True,
    storage: Any = None,
    tick: float = 1e-4,
    refit: float = 0.0,
    most: int = FULL,
) -> tuple[Loop, Clock, Study]:
    """A search whose candidates are the better the nearer x is to 0.4, and take so many seconds on all the rows.

    On more than `most` rows they fail.
    """
    clock, rng = Clock(tick), np.random.default_rng(seed)

    def evaluate(params: dict[str, Any], size: int) -> Row:
        took = float(seconds(params)) * size / FULL
        clock.now += took
        if size > most:
            return Row(params, size, took, (), "too many rows")
        loss = 0.1 + (params["x"] - 0.4) ** 2 + 0.02 * (FULL / size) ** 0.5 + 0.001 * rng.normal()
        return Row(params, size, took, ({"test_scores": 1.0 - loss},))

    study = Study(space, seed=seed, clock=clock, effort=0.3, storage=storage)
    ending = Ending(verify=verify, refit=refit, configurations=space.configurations(1000))
    loop = Loop(study, evaluate, Loss("score", 1.0), budget, ending, {}, FULL, clock(), clock)
    loop.run(lambda snapshot: None)
    study.close()
    return loop, clock, study


@pytest.mark.parametrize("seed", range(3))
def test_a_grid_with_dear_corners_ends_in_time_and_runs_nothing_twice(seed: int) -> None:
    space = Space({"x": [0.1, 0.3, 0.5, 0.9], "rounds": [10, 100, 3000]}, {"rows": (100, FULL)})
    loop, clock, _ = run(space, lambda p: p["rounds"] / 50, Budget(60.0), seed)
    # A dear one takes 60 seconds on all the rows, predicted from a fortieth of them: as at most 48 in one case.
    assert clock.now < 72.0
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


@pytest.mark.parametrize("seed", range(3))
def test_the_only_run_on_all_the_rows_that_fits_comes_at_the_end(seed: int) -> None:
    space = Space({"x": Float(0.0, 1.0)}, {"rows": (100, FULL)})
    loop, clock, _ = run(space, lambda p: 20.0, Budget(36.0), seed)
    sizes = [row.size for row in loop.rows.values()]
    assert sizes.count(FULL) == 1
    assert sizes[-1] == FULL
    assert clock.now > 0.85 * 36.0


def test_a_few_candidates_keep_to_the_time_budget() -> None:
    space = Space({"x": Float(0.0, 1.0)}, {"rows": (100, FULL)})
    loop, clock, _ = run(space, lambda p: 20.0, Budget(25.0, 3))
    assert [row.size for row in loop.rows.values()] == [FULL]
    assert clock.now < 21.0


LINE = {"x": Float(0.0, 1.0)}, {"rows": (100, FULL)}


@pytest.mark.parametrize("seed", range(3))
def test_the_last_training_has_its_time_too(seed: int) -> None:
    _, clock, _ = run(Space(*LINE), lambda p: 10.0, Budget(60.0), seed, refit=2.0)
    assert 30.0 < clock.now < 40.5  # two trainings of ten seconds are to come


def test_a_run_that_will_be_late_is_announced() -> None:
    with pytest.warns(UserWarning, match=r"predicted to take \d+ s, and \d s are left.*verify=False") as said:
        loop, clock, _ = run(Space(*LINE), lambda p: 60.0, Budget(12.0))
    assert [row.size for row in loop.rows.values()].count(FULL) == 1
    assert clock.now > 60.0
    assert said[0].filename == __file__


@pytest.mark.parametrize("budget", [Budget(None, 24), Budget(1000.0), Budget(1000.0, 24)])
def test_a_grid_that_the_budget_covers_is_run_on_all_the_rows(budget: Budget) -> None:
    space = Space({"x": [0.1, 0.3, 0.5, 0.9], "y": [1, 2, 4]}, {"rows": (100, FULL)})
    loop, _, _ = run(space, lambda p: 1.0, budget)
    full = [tuple(row.params.values()) for row in loop.rows.values() if row.size == FULL]
    assert len(set(full)) == len(full) == 12
    if budget.seconds is None:
        assert len(loop.rows) == 12
    else:  # what a run takes must be known first
        assert len(loop.rows) <= 16


GRID = {"x": [0.1, 0.2, 0.3, 0.5, 0.9]}, {"rows": (100, FULL)}


@pytest.mark.parametrize("budget", [12.0, 30.0])
def test_without_verification_no_run_is_begun_that_does_not_fit(budget: float) -> None:
    loop, clock, _ = run(Space(*GRID), lambda p: 60.0, Budget(budget), verify=False)
    assert max(row.size for row in loop.rows.values()) < FULL
    assert clock.now < 1.2 * budget


def test_where_nothing_else_is_left_the_best_is_run_late_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="predicted to take"):
        loop, clock, study = run(Space(*GRID), lambda p: 60.0, Budget(30.0))
    sizes = [row.size for row in loop.rows.values()]
    assert sizes.count(FULL) == 1
    assert sizes[-1] == FULL
    assert study.trials[-1].config["x"] in (0.3, 0.5)
    assert clock.now < 95.0


@pytest.mark.parametrize("budget", [Budget(None, 40), Budget(400.0)])
def test_what_failed_on_all_the_rows_is_not_run_there_again(budget: Budget) -> None:
    loop, _, _ = run(Space(*GRID), lambda p: 1.0, budget, most=2000)
    there = [row.params["x"] for row in loop.rows.values() if row.size == FULL]
    assert len(set(there)) == len(there) == 5


def test_a_grid_that_the_budget_does_not_cover_is_searched() -> None:
    space = Space({"x": [0.1, 0.3, 0.5, 0.9], "y": [1, 2, 4]}, {"rows": (100, FULL)})
    loop, _, _ = run(space, lambda p: 1.0, Budget(None, 12))
    sizes = [row.size for row in loop.rows.values()]
    assert 3 <= sizes.count(FULL) < 12


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("budget", [Budget(45.0), Budget(25.0, 3), Budget(None, 6)])
def test_a_search_that_has_ended_goes_on_by_one_cheap_run(
    budget: Budget, verify: bool, tmp_path: Path
) -> None:
    first, _, _ = run(Space(*LINE), lambda p: 10.0, budget, verify=verify, storage=tmp_path / "s.db")
    second, _, _ = run(Space(*LINE), lambda p: 10.0, budget, verify=verify, storage=tmp_path / "s.db")
    sizes = [row.size for row in second.rows.values()]
    assert sizes[: len(first.rows)] == [row.size for row in first.rows.values()]
    new = sizes[len(first.rows) :]
    assert len(new) == 1
    assert new[0] in (100, FULL)  # the fewest, or what nobody had run there
    if budget.seconds is None or not verify:
        assert new == [100]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("trials", [9, 15])
def test_without_a_time_budget_no_clock_decides_anything(seed: int, trials: int) -> None:
    still, _, _ = run(Space(*LINE), lambda p: 0.0, Budget(None, trials), seed, tick=0.0)
    slow, _, _ = run(Space(*LINE), lambda p: 3.0, Budget(None, trials), seed, tick=1.0)
    one, other = ([(row.params, row.size) for row in loop.rows.values()] for loop in (still, slow))
    assert one == other


@pytest.mark.parametrize("seed", range(3))
def test_the_last_candidates_are_the_best_of_those_tried_on_few_rows(seed: int) -> None:
    loop, _, _ = run(Space(*LINE), lambda p: 1.0, Budget(None, 15), seed)
    rows = list(loop.rows.values())
    assert [row.size for row in rows[-3:]] == [FULL] * 3
    tried = {row.params["x"] for row in rows[:-3]}
    assert all(row.params["x"] in tried for row in rows[-3:])
    by_distance = sorted(tried, key=lambda x: abs(x - 0.4))
    assert all(row.params["x"] in by_distance[: len(tried) // 2] for row in rows[-3:])


def test_two_or_three_candidates_are_run_on_all_the_rows_and_no_others() -> None:
    space = Space({"x": [0.1, 0.3, 0.9]}, {"rows": (100, FULL)})
    loop, _, _ = run(space, lambda p: 1.0, Budget(None, 20))
    assert [row.size for row in loop.rows.values()] == [FULL] * 3
    assert {row.params["x"] for row in loop.rows.values()} == {0.1, 0.3, 0.9}


def test_a_budget_too_short_for_anything_is_one_run_on_all_the_rows() -> None:
    loop, _, _ = run(Space(*LINE), lambda p: 1.0, Budget(1e-9))
    assert [row.size for row in loop.rows.values()] == [FULL]
