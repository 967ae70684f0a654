"""Distributions of Optuna as axes, and conditions learnt from define-by-run objectives."""

import math
from typing import Any

import numpy as np
import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from fabolas.optuna import FabolasSampler
from fabolas.optuna.parameters import N_AGREEING, Parameter, learned_conditions, learned_parameters

DISTRIBUTIONS = [
    FloatDistribution(-1.0, 1.0),
    FloatDistribution(1e-5, 1e5, log=True),
    FloatDistribution(0.2, 0.8, step=0.1),
    FloatDistribution(-10.2, 10.2, step=0.1),
    IntDistribution(-3, 3),
    IntDistribution(1, 1000, log=True),
    IntDistribution(16, 128, step=16),
    IntDistribution(0, 10**15),
    CategoricalDistribution(("a", None, 1, 1.5, True)),
]


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=str)
@given(seed=st.integers(0, 2**32 - 1))
def test_drawn_values_belong_to_the_distribution_and_have_one_coordinate(
    distribution: Any, seed: int
) -> None:
    parameter = Parameter.of(distribution)
    value = parameter.draw(np.random.default_rng(seed))
    assert distribution._contains(distribution.to_internal_repr(value))
    coordinate = parameter.coordinate(value)
    assert coordinate is not None
    back = parameter.value(parameter.axis.value(coordinate))
    assert back == pytest.approx(value) if isinstance(value, float) else back is value or back == value


@pytest.mark.parametrize("distribution", DISTRIBUTIONS[:-2], ids=str)
def test_both_ends_of_a_range_are_reached(distribution: Any) -> None:
    parameter = Parameter.of(distribution)
    assert parameter.value(parameter.axis.value(0.0)) == distribution.low
    assert parameter.value(parameter.axis.value(1.0)) == pytest.approx(distribution.high)


def test_the_coordinate_is_linear_in_the_logarithm_or_the_value() -> None:
    assert Parameter.of(FloatDistribution(1e-4, 1e4, log=True)).coordinate(1.0) == pytest.approx(0.5)
    assert Parameter.of(FloatDistribution(0, 8)).coordinate(2.0) == pytest.approx(0.25)
    assert Parameter.of(IntDistribution(0, 40, step=10)).coordinate(20) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("distribution", "value"),
    [
        (FloatDistribution(0, 1), 1.5),
        (IntDistribution(0, 10, step=5), 4),
        (CategoricalDistribution(("a", "b")), "c"),
    ],
)
def test_a_value_outside_has_no_coordinate(distribution: Any, value: Any) -> None:
    assert Parameter.of(distribution).coordinate(value) is None


def test_a_range_that_changed_for_good_is_the_new_one_and_a_changing_range_includes_all() -> None:
    old, new = FloatDistribution(0, 10), FloatDistribution(0, 5)
    changed = [_trial(x=(old, 1.0))] * 3 + [_trial(x=(new, 1.0))] * N_AGREEING
    assert learned_parameters(changed)["x"].distribution == new
    assert learned_parameters(changed[:-1])["x"].distribution == old
    moving = [_trial(x=(IntDistribution(1, high), 1)) for high in range(5, 20)]
    assert learned_parameters(moving)["x"].distribution == IntDistribution(1, 19)


def test_parameters_with_one_value_are_left_out() -> None:
    trial = _trial(x=(FloatDistribution(2, 2), 2.0), y=(IntDistribution(0, 1), 1))
    assert list(learned_parameters([trial])) == ["y"]


KERNEL = CategoricalDistribution(("rbf", "poly", "linear"))
UNIT = FloatDistribution(0, 1)


def test_a_condition_on_one_choice_is_learnt() -> None:
    trials = [_trial(kernel=(KERNEL, "rbf"), gamma=(UNIT, 0.5)), _trial(kernel=(KERNEL, "linear"))]
    assert _active(trials) == {"gamma": "kernel in {'rbf', 'poly'}"}  # poly was not seen without it
    assert _active([*trials, _trial(kernel=(KERNEL, "poly"))]) == {"gamma": "kernel in {'rbf'}"}


def test_nested_conditions_name_the_nearest_cause() -> None:
    model, booster = CategoricalDistribution(("svm", "gbm")), CategoricalDistribution(("tree", "linear"))
    trials = [
        _trial(model=(model, "svm"), C=(UNIT, 0.1)),
        _trial(model=(model, "gbm"), booster=(booster, "tree"), depth=(IntDistribution(1, 5), 2)),
        _trial(model=(model, "gbm"), booster=(booster, "linear")),
    ]
    assert _active(trials) == {
        "C": "model in {'svm'}",
        "booster": "model in {'gbm'}",
        "depth": "booster in {'tree'}",
    }


def test_a_number_of_layers_decides_which_layers_have_a_width() -> None:
    layers, width = IntDistribution(1, 3), IntDistribution(8, 64)
    trials = [_trial(n=(layers, n), **{f"w{i}": (width, 8) for i in range(n)}) for n in (3, 1, 2)]
    assert _active(trials) == {"w1": "n in {2, 3}", "w2": "n in {3}"}


def test_two_causes_are_joined() -> None:
    flag = CategoricalDistribution((False, True))
    trials = [
        _trial(a=(flag, a), b=(flag, b), **({"c": (UNIT, 0.5)} if a and b else {}))
        for a in (False, True)
        for b in (False, True)
    ]
    assert _active(trials) == {"c": "(a in {True} and b in {True})"}


def test_what_no_choice_explains_is_left_open() -> None:
    trials = [_trial(x=(UNIT, 0.2)), _trial(x=(UNIT, 0.8), y=(UNIT, 0.1))]
    assert _active(trials) == {}


def test_the_sampler_suggests_no_value_for_a_parameter_that_is_inactive() -> None:
    sampler = FabolasSampler(seed=0)
    asked = []

    def objective(trial: Any) -> float:
        kernel = trial.suggest_categorical("kernel", ["rbf", "linear"])
        gamma = trial.suggest_float("gamma", 1e-3, 1e3, log=True) if kernel == "rbf" else 1.0
        decided = trial.study.trials[trial.number].system_attrs.get("fabolas:suggestion")
        asked.append((kernel, decided and "gamma" in decided["params"]))
        return abs(math.log(gamma)) if kernel == "rbf" else 5.0

    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=25)
    later = asked[8:]
    assert all(has_gamma == (kernel == "rbf") for kernel, has_gamma in later)
    assert {"rbf"} <= {kernel for kernel, _ in later}
    assert abs(math.log(sampler.incumbent(study).config["gamma"])) < 1.0
    inactive = [t for t in sampler._model.history.trials if t.config["kernel"] == "linear"]
    column = sampler._model.space.names.index("gamma")
    assert {float(t.suggestion.point[column]) for t in inactive} == {0.5}  # one point for all of them


def _trial(**values: tuple[Any, Any]) -> Any:
    return optuna.create_trial(
        params={name: value for name, (_, value) in values.items()},
        distributions={name: distribution for name, (distribution, _) in values.items()},
        value=0.0,
    )


def _active(trials: list[Any]) -> dict[str, str]:
    rules = learned_conditions(learned_parameters(trials), trials)
    return {name: rule.text for name, rule in rules.items()}
