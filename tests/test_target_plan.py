"""The plan of a verification, with costs and times given by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest

from fabolas import Float, Incumbent, Study
from fabolas.budget import Budget
from fabolas.target_plan import (
    PredictedCost,
    Remaining,
    TargetPlan,
    VerificationRules,
    as_near_as_fits,
    finalist,
    is_due,
    is_final,
    make_plan,
    probably_fits,
    reserve,
    seconds_for_run,
    without_tried,
)

RULES = VerificationRules()
CONFIG = {"x": 0.5}
TARGET = PredictedCost(median=8.0, limit=16.0)
STEP = TargetPlan(CONFIG, {"size": 1_000}, PredictedCost(2.0, 4.0), TARGET)
AT_TARGET = TargetPlan(CONFIG, None, TARGET, TARGET)
MINUTE = Budget(60.0)


def remaining(seconds: float, since_step: float = 0.0, budget: Budget = MINUTE) -> Remaining:
    return Remaining(budget, seconds, math.inf, since_step)


def test_the_reserve_is_the_time_in_which_an_evaluation_at_the_target_probably_ends() -> None:
    assert reserve(STEP, MINUTE, RULES) == 8.0 / 0.8
    assert reserve(STEP, MINUTE, VerificationRules(may_exceed=True)) == 16.0  # the cost limit
    assert reserve(STEP, Budget(10.0), RULES) == pytest.approx(8.0)  # at most 80 % of the budget
    assert reserve(replace(STEP, config=None), MINUTE, RULES) == 0.0


def test_a_refit_takes_time_after_the_run() -> None:
    rules = VerificationRules(evaluations_after_run=2.0, may_exceed=True, reserved_share=0.9)
    assert seconds_for_run(STEP, remaining(50.0), rules) == 50.0 - 2 * 16.0
    assert seconds_for_run(STEP, remaining(50.0), RULES) == 50.0


def test_the_final_phase_has_time_for_two_evaluations_at_the_target() -> None:
    assert not is_final(AT_TARGET, remaining(20.1), RULES)
    assert is_final(AT_TARGET, remaining(20.0), RULES)
    long = replace(AT_TARGET, target=PredictedCost(24.0, 48.0))
    assert not is_final(long, remaining(30.1), RULES)  # more than a third of the budget: one evaluation
    assert is_final(long, remaining(30.0), RULES)


@pytest.mark.parametrize(("trials", "finalists"), [(1, 1), (5, 1), (6, 2), (9, 3), (100, 3)])
def test_a_third_of_the_trials_and_at_most_three_are_final(trials: int, finalists: int) -> None:
    left = Remaining(Budget(None, trials), math.inf, finalists, 0.0)
    assert is_final(AT_TARGET, left, RULES)
    assert not is_final(AT_TARGET, replace(left, trials=finalists + 1), RULES)


def test_a_step_is_due_if_the_search_since_the_last_one_was_as_long_and_the_reserve_is_left() -> None:
    assert is_due(STEP, remaining(12.0, since_step=2.0), RULES)
    assert not is_due(STEP, remaining(12.0, since_step=1.9), RULES)
    assert not is_due(STEP, remaining(11.9, since_step=2.0), RULES)
    assert not is_due(replace(STEP, config=None), remaining(12.0, since_step=2.0), RULES)
    assert not is_due(STEP, Remaining(Budget(None, 10), math.inf, 10, 2.0), RULES)


def test_a_step_goes_to_the_target_if_the_rules_want_that_and_two_evaluations_fit() -> None:
    rules = VerificationRules(target_steps=True)
    assert is_due(AT_TARGET, remaining(32.0, since_step=8.0), rules)
    assert not is_due(AT_TARGET, remaining(31.9, since_step=8.0), rules)
    assert not is_due(AT_TARGET, remaining(32.0, since_step=7.9), rules)
    assert not is_due(AT_TARGET, remaining(32.0, since_step=8.0), RULES)


@pytest.fixture
def study() -> Study:
    """Trials on 100 to 800 of 10,000 rows, whose cost is proportional to the rows; the lowest loss is at 0.5."""
    study = Study({"x": Float(0.0, 1.0)}, {"size": (100, 10_000)}, seed=0, overhead=0.0, effort=0.0)
    for x in (0.1, 0.3, 0.5, 0.7, 0.9):
        for size in (100, 200, 400, 800):
            study.tell(study.ask_for({"x": x}, {"size": size}), 0.1 + (x - 0.5) ** 2, cost=size / 1_000)
    return study


def test_a_plan_goes_half_of_the_way_to_the_target_if_there_is_time(study: Study) -> None:
    incumbent = study.incumbent()
    assert incumbent is not None
    plan = make_plan(study, incumbent, remaining(1e4, since_step=1e4, budget=Budget(1e5)), RULES)
    assert plan.config == incumbent.config == CONFIG
    assert plan.fidelity == {"size": pytest.approx(math.sqrt(800 * 10_000), abs=1)}
    assert plan.cost.median < plan.target.median < plan.target.limit
    soon = make_plan(study, incumbent, remaining(1e4, since_step=0.0, budget=Budget(1e5)), RULES)
    assert (soon.fidelity, soon.cost, soon.target) == (None, plan.target, plan.target)


def test_a_configuration_that_is_pending_at_the_target_leaves_the_plan(study: Study) -> None:
    plan = replace(AT_TARGET, config=CONFIG)
    assert without_tried(plan, study) == plan
    study.ask_for(CONFIG)
    assert without_tried(plan, study) == replace(plan, config=None)


def test_the_finalist_is_the_best_configuration_that_was_not_tried_at_the_target(study: Study) -> None:
    assert finalist(study, 1e6, Budget(1e7)) == CONFIG
    study.ask_for(CONFIG)
    next_best = finalist(study, 1e6, Budget(1e7))
    assert next_best in ({"x": pytest.approx(0.3)}, {"x": pytest.approx(0.7)})
    assert finalist(study, 0.0, Budget(1.0)) is None


def test_once_the_target_was_measured_the_cost_limit_of_a_finalist_hardly_exceeds_the_budget() -> None:
    with Study({"x": Float(0.0, 1.0)}, {"size": (100, 10_000)}, seed=0) as study:
        for x, size in [*((x, 100) for x in np.linspace(0.02, 0.98, 13)), (0.5, 10_000)]:
            study.add({"x": x}, {"size": size}, abs(x - 0.5) + 0.01, size * 10.0 ** -abs(x - 0.5))
        cheapest = study.predict({"x": 0.02})
        median, limit = float(cheapest.cost[0]), float(cheapest.cost_limit[0])
        seconds = median / 0.79
        assert probably_fits(study, median, limit, seconds, Budget(seconds))
        assert limit > seconds + 0.1 * seconds
        assert finalist(study, seconds, Budget(seconds)) is None
        assert finalist(study, seconds, Budget(10.0 * limit)) is not None
        assert finalist(study, limit, Budget(limit)) is not None


def test_before_the_target_was_measured_the_cost_limit_must_not_be_far_beyond_the_budget(
    study: Study,
) -> None:
    assert probably_fits(study, 8.0, 30.0, 10.0, MINUTE)
    assert not probably_fits(
        study, 8.0, 41.0, 10.0, MINUTE
    )  # it may end more than half of the budget too late
    assert not probably_fits(study, 9.9, 20.0, 10.0, MINUTE)
    assert probably_fits(study, 9.9, 10.1, 10.0, MINUTE)  # its cost is well known
    assert probably_fits(study, 8.0, 1e9, math.inf, Budget(None, 10))
    each = probably_fits(study, np.array([8.0, 8.0]), np.array([30.0, 41.0]), 10.0, MINUTE)
    np.testing.assert_array_equal(each, [True, False])


def test_once_the_target_was_measured_the_probability_to_end_in_time_alone_decides(study: Study) -> None:
    study.tell(study.ask_for(CONFIG), 0.1, cost=10.0)
    assert probably_fits(study, 2.0, 1e5, 10.0, MINUTE)
    assert not probably_fits(study, 9.0, 1e5, 10.0, MINUTE)


def test_the_probability_to_end_in_time_is_that_of_a_normal_log_cost() -> None:
    assert TARGET.chance(8.0) == pytest.approx(0.5)
    assert TARGET.chance(16.0) == pytest.approx(0.975)
    assert TARGET.chance(TARGET.least) == pytest.approx(0.025)
    assert TARGET.chance(0.0) == 0.0
    assert PredictedCost().chance(0.0) == 1.0


def test_a_step_in_the_final_phase_keeps_most_of_the_probability_that_the_target_fits(study: Study) -> None:
    plan = make_plan(study, Incumbent(CONFIG, 0.1, 0.01, False, (0,)), remaining(1e4), RULES)
    left = remaining(plan.target.median)
    step = as_near_as_fits(study, plan, left, RULES)
    assert step is not None
    kept = plan.target.chance(left.seconds - step.cost.median) / plan.target.chance(left.seconds)
    assert 0.8 <= kept <= 1.0


def test_if_the_target_cannot_fit_any_more_the_last_evaluation_is_at_the_largest_size_that_fits(
    study: Study,
) -> None:
    plan = make_plan(study, Incumbent(CONFIG, 0.1, 0.01, False, (0,)), remaining(1e4), RULES)
    seconds = 0.9 * plan.target.least
    nearest = as_near_as_fits(study, plan, remaining(seconds), RULES)
    assert nearest is not None
    assert nearest.fidelity is not None
    assert nearest.cost.limit <= seconds
    larger = {"size": round(nearest.fidelity["size"] * (10_000 / 800) ** (1 / 8)) + 1}
    assert larger["size"] >= 10_000 or PredictedCost.of(study, CONFIG, larger).limit > seconds
