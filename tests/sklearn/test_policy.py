"""The policy of a search under a simulated clock: what is run, on how many rows, and when the search ends."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabolas import Float, Space, Study, Trial
from fabolas.budget import Budget, Timer
from fabolas.engine import Engine
from fabolas.execution import Ended, Inline, Job
from fabolas.model_spec import ModelSpec
from fabolas.sklearn.candidates import Candidates
from fabolas.sklearn.policy import SearchPolicy
from fabolas.trials import DESIGN, VERIFICATION
from tests.helpers.clock import Clock
from tests.helpers.marks import slow

FULL = 4000


def run(
    space: Space,
    seconds: Any,
    budget: Budget,
    seed: int = 0,
    *,
    verify: bool = True,
    storage: Any = None,
    tick: float = 1e-2,
    refit: float = 0.0,
    most: int = FULL,
    fixed: float = 0.0,
    loss: Callable[[float, int], float] | None = None,
) -> tuple[tuple[Trial, ...], Clock]:
    """The trials of a search. A candidate is better the nearer x is to 0.4.

    `seconds` gives the cost of a configuration on all rows; the share `fixed` of it does not depend on the rows. On
    more than `most` rows every candidate fails. Each reading of the clock takes `tick` seconds: the longer, the fewer
    trials on few rows fit. `loss` gives another loss of x and the number of rows.
    """
    clock, rng = Clock(tick=tick), np.random.default_rng(seed)

    def evaluate(job: Job) -> Ended:
        size = int(job.fidelity["rows"])
        cost = float(seconds(job.config)) * (fixed + (1 - fixed) * size / FULL)
        clock.now += cost
        if size > most:
            return Ended(job.id, "failed", None, max(cost, 1e-6), error="too many rows")
        x, noise = job.config["x"], 0.001 * rng.normal()
        value = 0.1 + (x - 0.4) ** 2 + 0.02 * (FULL / size) ** 0.5 if loss is None else loss(x, size)
        return Ended(job.id, "complete", value + noise, cost)

    model = ModelSpec(cost_from_fidelity=budget.seconds is None)
    options = {"effort": 0.3, "target_share": 0.5, "model": model}
    with Study(space, seed=seed, clock=clock, storage=storage, **options) as study:
        policy = SearchPolicy(
            study,
            FULL,
            verify=verify,
            refit_ratio=refit,
            configurations=space.enumerate_configurations(1000),
        )
        Engine(study, Inline(evaluate), budget, Timer(clock), policy=policy, max_failures=1000).run()
    return study.trials, clock


def sizes(trials: tuple[Trial, ...]) -> list[int]:
    return [int(trial.fidelity["rows"]) for trial in trials]


@pytest.mark.slow
def test_a_grid_with_dear_corners_ends_in_time_and_runs_nothing_twice() -> None:
    space = Space({"x": [0.1, 0.3, 0.5, 0.9], "rounds": [10, 100, 3000]}, {"rows": (100, FULL)})
    trials, clock = run(space, lambda p: p["rounds"] / 50, Budget(60.0))
    # A dear one takes 60 seconds on all rows, predicted from a fortieth of them: as at most 48 in one case.
    assert clock.now < 72.0
    runs = [(t.config["x"], t.config["rounds"], t.fidelity["rows"]) for t in trials]
    assert len(set(runs)) == len(runs)


def test_when_no_run_on_all_the_rows_fits_any_more_it_ends() -> None:
    space = Space({"x": Float(0.0, 1.0)}, {"rows": (100, FULL)})
    trials, clock = run(space, lambda p: 10.0, Budget(60.0))
    assert sizes(trials).count(FULL) >= 2
    assert clock.now < 61.0
    assert sizes(trials)[-1] == FULL


def test_time_that_is_left_after_a_disappointing_run_on_all_the_rows_is_used_for_another_candidate() -> None:
    """Large x are best on few rows and useless on all. Costs differ much, so that their limits do not fit."""
    hyperparameters = {name: Float(0.0, 1.0) for name in ("x", "rounds", "a", "b", "c", "d")}

    def loss(x: float, size: int) -> float:
        return 0.8 if size == FULL and x > 0.5 else 0.5 - 0.3 * x

    space = Space(hyperparameters, {"rows": (500, FULL)})
    trials, _ = run(space, lambda p: 3.0 + 14.0 * p["rounds"], Budget(55.0), fixed=0.4, loss=loss)
    assert [trial.loss > 0.7 for trial in trials if trial.fidelity["rows"] == FULL][:1] == [True]
    assert sizes(trials).count(FULL) >= 2


@pytest.mark.parametrize(
    ("fixed", "budget", "expected"),
    [
        (1.0, 50.0, [100, 400, 1600, FULL]),  # few rows are not cheaper
        (1.0, 10_000.0, [100, 100, 100, 100]),  # the budget has room for many trials
        (0.0, 50.0, [100, 100, 100, 100]),  # few rows are cheap, so that there is room for many
        (0.1, 20.0, [100, 400, 100, 100]),  # 400 rows cost 1.55 times as much as 100
    ],
)
def test_if_few_trials_fit_and_few_rows_are_hardly_cheaper_the_design_has_more_rows(
    fixed: float, budget: float, expected: list[int]
) -> None:
    hyperparameters = {name: Float(0.0, 1.0) for name in "xabcd"}
    space = Space(hyperparameters, {"rows": (100, FULL)})
    trials, _ = run(space, lambda p: 10.0, Budget(budget, 8), verify=False, fixed=fixed)
    assert sizes(trials)[:4] == expected


@pytest.mark.parametrize("seed", range(4))
def test_both_of_two_candidates_are_run_on_all_the_rows(seed: int) -> None:
    """After one trial the cost limit of the other candidate is many times its predicted cost."""
    space = Space({"x": [0.1, 0.4]}, {"rows": (100, FULL)})
    trials, _ = run(space, lambda p: 8.0 if p["x"] == 0.1 else 3.0, Budget(40.0), seed)
    assert sizes(trials) == [FULL, FULL]


def test_steps_of_the_verification_do_not_count_as_sizes_of_the_design() -> None:
    space = Space({"x": Float(0.0, 1.0)}, {"rows": (100, FULL)})
    with Study(space, seed=0, overhead=0.0, effort=0.0) as study:
        for x, rows, origin in ((0.1, 100, DESIGN), (0.2, 3000, VERIFICATION)):
            study.tell(study.ask_for({"x": x}, {"rows": rows}, origin=origin), 0.5, cost=1.0)
        point = Candidates(study, FULL, None).for_few_trials(
            space.encode({"x": 0.3}, {"rows": 100}), 15.0, 15.0
        )
    assert space.decode(point)[1] == {"rows": 400}


@pytest.mark.filterwarnings("ignore:the evaluation at the target that the answer needs is predicted")
@pytest.mark.parametrize("seed", slow(0, 1))
def test_the_only_run_on_all_the_rows_that_fits_comes_at_the_end(seed: int) -> None:
    space = Space({"x": Float(0.0, 1.0)}, {"rows": (100, FULL)})
    trials, clock = run(space, lambda p: 20.0, Budget(46.0), seed)
    assert sizes(trials).count(FULL) == 1
    assert sizes(trials)[-1] == FULL
    assert clock.now > 0.85 * 46.0


def test_a_few_candidates_keep_to_the_time_budget() -> None:
    space = Space({"x": Float(0.0, 1.0)}, {"rows": (100, FULL)})
    trials, clock = run(space, lambda p: 20.0, Budget(25.0, 3))
    assert sizes(trials) == [FULL]
    assert clock.now < 21.0


LINE = {"x": Float(0.0, 1.0)}, {"rows": (100, FULL)}


@pytest.mark.slow
def test_the_last_training_has_its_time_too() -> None:
    _, clock = run(Space(*LINE), lambda p: 10.0, Budget(60.0), seed=1, refit=2.0)
    assert 30.0 < clock.now < 40.5  # two trainings of ten seconds are to come


@pytest.mark.parametrize("seed", [0, *slow(1)])
def test_without_verification_the_last_training_has_its_time_too(seed: int) -> None:
    _, clock = run(Space(*LINE), lambda p: 10.0, Budget(60.0), seed, refit=2.0, verify=False)
    assert 20.0 < clock.now < 40.5  # one of twice ten seconds is to come


def test_a_training_at_the_end_that_takes_longer_than_the_budget_leaves_the_search_some_of_it() -> None:
    trials, clock = run(Space(*LINE), lambda p: 10.0, Budget(10.0), refit=5.0, verify=False)
    assert len(trials) > 3
    assert 3.0 < clock.now < 5.0


def test_without_verification_no_trial_is_begun_that_the_time_left_does_not_allow() -> None:
    trials, clock = run(Space(*LINE), lambda p: 10.0, Budget(25.0), verify=False, fixed=1.0)
    assert len(trials) == 2
    assert clock.now < 22.0


def test_a_run_that_will_be_late_is_announced() -> None:
    with pytest.warns(UserWarning, match=r"predicted to take \d+ s, and \d s are left.*verify=False") as said:
        trials, clock = run(Space(*LINE), lambda p: 60.0, Budget(12.0))
    assert sizes(trials).count(FULL) == 1
    assert clock.now > 60.0
    assert said[0].filename == __file__


@pytest.mark.parametrize("budget", [Budget(None, 24), Budget(1000.0), Budget(1000.0, 24)])
def test_a_grid_that_the_budget_covers_is_run_on_all_the_rows(budget: Budget) -> None:
    space = Space({"x": [0.1, 0.3, 0.5, 0.9], "y": [1, 2, 4]}, {"rows": (100, FULL)})
    trials, _ = run(space, lambda p: 1.0, budget)
    full = [tuple(t.config.values()) for t in trials if t.fidelity["rows"] == FULL]
    assert len(set(full)) == len(full) == 12
    if budget.seconds is None:
        assert len(trials) == 12
    else:  # what a run takes must be known first
        assert len(trials) <= 16


GRID = {"x": [0.1, 0.2, 0.3, 0.5, 0.9]}, {"rows": (100, FULL)}


@pytest.mark.parametrize("budget", [12.0, 30.0])
def test_without_verification_no_run_is_begun_that_does_not_fit(budget: float) -> None:
    trials, clock = run(Space(*GRID), lambda p: 60.0, Budget(budget), verify=False)
    assert max(sizes(trials)) < FULL
    assert clock.now < 1.2 * budget


def test_where_nothing_else_is_left_the_best_is_run_late_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="predicted to take"):
        trials, clock = run(Space(*GRID), lambda p: 60.0, Budget(30.0))
    assert sizes(trials).count(FULL) == 1
    assert sizes(trials)[-1] == FULL
    assert trials[-1].config["x"] in (0.3, 0.5)
    assert clock.now < 95.0


@pytest.mark.slow
@pytest.mark.parametrize("budget", [Budget(None, 40), Budget(400.0)])
def test_what_failed_on_all_the_rows_is_not_run_there_again(budget: Budget) -> None:
    trials, _ = run(Space(*GRID), lambda p: 1.0, budget, most=2000)
    there = [t.config["x"] for t in trials if t.fidelity["rows"] == FULL]
    assert len(set(there)) == len(there) == 5


def test_a_grid_that_the_budget_does_not_cover_is_searched() -> None:
    space = Space({"x": [0.1, 0.3, 0.5, 0.9], "y": [1, 2, 4]}, {"rows": (100, FULL)})
    trials, _ = run(space, lambda p: 1.0, Budget(None, 12))
    assert 3 <= sizes(trials).count(FULL) < 12


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("budget", [Budget(25.0, 3), Budget(None, 6), *slow(Budget(45.0))])
def test_a_search_that_has_ended_goes_on_by_one_cheap_run(
    budget: Budget, verify: bool, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"verify": verify, "storage": tmp_path / "s.db", "tick": 1e-4}
    first, _ = run(Space(*LINE), lambda p: 10.0, budget, **settings)
    second, _ = run(Space(*LINE), lambda p: 10.0, budget, **settings)
    assert sizes(second)[: len(first)] == sizes(first)
    new = sizes(second)[len(first) :]
    assert len(new) == 1
    assert new[0] in (100, FULL)  # the fewest, or what nobody had run there
    if budget.seconds is None or not verify:
        assert new == [100]


@pytest.mark.parametrize(("trials", "seed"), [(9, 0), pytest.param(15, 1, marks=pytest.mark.slow)])
def test_without_a_time_budget_no_clock_decides_anything(seed: int, trials: int) -> None:
    still, _ = run(Space(*LINE), lambda p: 0.0, Budget(None, trials), seed, tick=0.0)
    slow, _ = run(Space(*LINE), lambda p: 3.0, Budget(None, trials), seed, tick=1.0)
    one, other = ([(t.config, t.fidelity) for t in trials] for trials in (still, slow))
    assert one == other


@pytest.mark.parametrize("seed", slow(0, 1))
def test_the_last_candidates_are_the_best_of_those_tried_on_few_rows(seed: int) -> None:
    trials, _ = run(Space(*LINE), lambda p: 1.0, Budget(None, 15), seed)
    assert sizes(trials)[-3:] == [FULL] * 3
    tried = {trial.config["x"] for trial in trials[:-3]}
    assert all(trial.config["x"] in tried for trial in trials[-3:])
    by_distance = sorted(tried, key=lambda x: abs(x - 0.4))
    assert all(trial.config["x"] in by_distance[: len(tried) // 2] for trial in trials[-3:])


def test_two_or_three_candidates_are_run_on_all_the_rows_and_no_others() -> None:
    space = Space({"x": [0.1, 0.3, 0.9]}, {"rows": (100, FULL)})
    trials, _ = run(space, lambda p: 1.0, Budget(None, 20))
    assert sizes(trials) == [FULL] * 3
    assert {trial.config["x"] for trial in trials} == {0.1, 0.3, 0.9}


def test_a_budget_too_short_for_anything_is_one_run_on_all_the_rows() -> None:
    trials, _ = run(Space(*LINE), lambda p: 1.0, Budget(1e-9))
    assert sizes(trials) == [FULL]
