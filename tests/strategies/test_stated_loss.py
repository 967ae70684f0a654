"""What is said about a loss can be believed: it is possible, and it is not said before the models know it."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import fabolas
from experiments.svm_grid.problem import Problem
from experiments.synthetic import FAMILIES
from fabolas.direction import Direction
from fabolas.strategies.stated_loss import (
    knows_more_than_data,
    may_become_negative,
    possible_losses,
    prior_moments,
    resolution,
    truncated_moments,
)
from fabolas.transforms import TargetTransform, identity_transform, log_transform
from tests.helpers.marks import slow


@pytest.mark.parametrize(
    ("losses", "limits"),
    [
        ([0.3, 0.9], (0.0, 1.0)),  # an error rate
        ([0.0, 1.0], (0.0, 1.0)),
        ([-0.9, -0.3], (-1.0, 0.0)),  # an accuracy that is maximised
        ([12.0, 90.0], (0.0, 90.0)),  # percent, or a squared error
        ([-0.5, 0.7], (-np.inf, 0.7)),
        ([-3.0, -2.0], (-np.inf, -2.0)),
    ],
)
def test_measured_losses_say_what_a_loss_can_be(losses: list[float], limits: tuple[float, float]) -> None:
    assert possible_losses(np.array(losses)) == limits


@pytest.mark.parametrize(("mean", "std"), [(0.0, 1.0), (0.9, 0.2), (-0.8, 0.05), (0.999, 3.0)])
def test_without_a_logarithm_the_moments_are_those_of_a_truncated_normal(mean: float, std: float) -> None:
    unit = TargetTransform(logarithmic=False, centre=0.0, scale=1.0)
    truth = stats.truncnorm((-1.0 - mean) / std, (1.0 - mean) / std, loc=mean, scale=std)
    expected, deviation = truncated_moments(unit, np.array([mean]), np.array([std**2]), (-1.0, 1.0))
    np.testing.assert_allclose(
        [expected[0], deviation[0]], [truth.mean(), truth.std()], rtol=1e-6, atol=1e-12
    )


@pytest.mark.parametrize("std", [0.01, 0.3, 1.0])
def test_far_from_the_limits_the_moments_are_those_of_a_lognormal(std: float) -> None:
    transform = log_transform(np.array([0.01, 0.02, 0.05]))
    mean, variance = np.array([0.3]), np.array([std**2])
    scale = transform.scale * std
    truth = stats.lognorm(scale, scale=np.exp(transform.centre + transform.scale * 0.3))
    expected, deviation = truncated_moments(transform, mean, variance, (0.0, 1e9))
    np.testing.assert_allclose(
        [expected[0], deviation[0]], [truth.mean(), truth.std()], rtol=1e-6, atol=1e-12
    )


@given(
    st.lists(st.floats(0.001, 1.0), min_size=1, max_size=8),
    st.floats(-5.0, 5.0),
    st.floats(0.0, 30.0),
    st.booleans(),
)
def test_no_error_rate_and_no_accuracy_is_outside_of_zero_and_one(
    losses: list[float], mean: float, variance: float, is_accuracy: bool
) -> None:
    measured = -np.array(losses) if is_accuracy else np.array(losses)
    transform = identity_transform(measured) if is_accuracy else log_transform(measured)
    limits = possible_losses(measured)
    for loss, std in (
        truncated_moments(transform, np.array([mean]), np.array([variance]), limits),
        prior_moments(measured),
    ):
        assert 0.0 <= abs(float(np.ravel(loss)[0])) <= 1.0
        assert 0.0 <= float(np.ravel(std)[0]) <= 0.5 + 1e-9


def test_of_a_loss_nothing_is_known_but_the_range_of_the_measured_ones() -> None:
    mean, std = prior_moments(np.array([0.2, 0.4, 0.6, 0.8, 1e6]))
    assert (mean, std) == pytest.approx((0.4, 0.8 / np.sqrt(12.0)))  # 1e6 is a diverged training
    mean, std = prior_moments(np.array([-3.0]))
    assert std > 0.0
    assert mean - 2 * std < -3.0 < mean + 2 * std
    mean, std = prior_moments(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), negative=True)
    assert (mean, std) == pytest.approx((1.0, 6.0 / np.sqrt(12.0)))


@pytest.mark.parametrize(
    ("losses", "least"),
    [
        ([0.0, 0.005, 0.2], 0.0025),  # no error on 200 rows
        ([-1.0, -0.995, -0.8], 0.0025),  # the accuracy, maximised
        ([0.0, 3.0, 90.0], 1.5),
        ([0.005, 0.2], 0.0),
        ([0.0, 0.0], 0.0),
        ([-3.0, 0.0, 2.0], 0.0),
    ],
)
def test_a_loss_of_zero_is_known_to_half_of_the_smallest_positive_one(
    losses: list[float], least: float
) -> None:
    assert resolution(np.array(losses)) == pytest.approx(least)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_no_error_on_the_validation_rows_is_not_stated_as_less_than_can_be_measured(sign: float) -> None:
    direction: Direction = "minimize" if sign > 0 else "maximize"
    with fabolas.Study(
        {"x": fabolas.Float(0.0, 1.0)}, {"size": (64, 16_384)}, direction=direction, seed=0, effort=0.0
    ) as study:
        for i in range(16):
            errors = round(8 * (i / 15 - 0.5) ** 2 * 10)
            loss = errors / 200 if sign > 0 else 1.0 - errors / 200
            study.tell(study.ask_for({"x": i / 15}), loss, cost=1.0)
        best = study.incumbent()
        assert best is not None
        assert best.std >= 0.0025
        assert study.predict(best.config).loss_std[0] >= 0.0025


def nll(x: float, s: float) -> float:
    """A negative log-likelihood of a density, which falls with log s through zero."""
    return -1.2 + (x - 0.3) ** 2 - 0.65 * float(np.log(s))


def power_law(x: float, s: float) -> float:
    return 0.5 + 80.0 * (x - 0.3) ** 2 + 2.0 * s**-0.6


@pytest.mark.parametrize(("curve", "negative"), [(nll, True), (power_law, False)])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_loss_that_falls_ever_faster_towards_zero_is_not_said_to_stop_there(
    curve: Callable[[float, float], float], negative: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    with fabolas.Study({"x": fabolas.Float(0.0, 1.0)}, {"size": (40, 10_000)}, seed=0, effort=0.5) as study:
        for _ in range(20):
            x, size = float(rng.random()), int(40 * (1000 / 40) ** rng.random())
            study.tell(study.ask_for({"x": x}, {"size": size}), curve(x, size / 10_000), cost=size / 1000)
        losses, best = study.history.losses, study.incumbent()
        assert best is not None
        assert losses.min() > 0.0
        surrogate = study.strategy.surrogate(study.history).surrogate
        assert may_become_negative(surrogate, losses) == negative
        assert not may_become_negative(surrogate, losses / losses.max()), "rates are in [0, 1]"
        assert best.preliminary == negative
        assert (best.loss - 2.0 * best.std < 0.0) or not negative


def test_a_prediction_as_uncertain_as_the_spread_of_the_losses_is_no_knowledge() -> None:
    means, variances = np.array([0.0, 0.0, 2.0]), np.array([0.99, 1.0, 0.1])
    known = knows_more_than_data(means, variances, np.array([-1.0, 1.0]))
    assert known.tolist() == [True, False, False]


@pytest.mark.parametrize("name", ["mnist", *slow("misleading", "rugged")])
def test_at_no_time_an_error_rate_is_reported_that_cannot_be(name: str) -> None:
    problem = Problem.load("mnist") if name == "mnist" else FAMILIES[name](0)
    rng, preliminary = np.random.default_rng(0), []
    with fabolas.Study(problem.space, problem.fidelities, seed=0, overhead=1.0, effort=0.0) as study:
        for _ in range(16):
            suggestion = study.ask()
            loss, cost = problem(suggestion.config, **suggestion.fidelity, rng=rng)
            study.tell(suggestion, min(loss, 1.0), cost=cost)
            best = study.incumbent()
            assert best is not None
            assert 0.0 <= best.loss <= 1.0
            assert best.std <= 0.5
            assert abs(problem.truth(best.config) - best.loss) < 3.0 * best.std
            preliminary.append(best.preliminary)
            assert ("±" in str(study)) != best.preliminary
    assert preliminary[0], "one measurement at a small size says nothing about the target"


def test_a_preliminary_answer_shows_the_best_measurement_and_its_size() -> None:
    with fabolas.Study({"x": fabolas.Float(0.0, 1.0)}, {"size": (64, 16_384)}, seed=0) as study:
        for loss in (0.9, 0.7, 0.8):
            suggestion = study.ask()
            study.tell(suggestion, loss, cost=1.0)
        best = study.incumbent()
        assert best is not None
        assert best.preliminary
        size = study.trials[1].fidelity["size"]
        said = f"measured 0.7 at size {size} (too early to predict the target)"
        assert said in str(study)
        assert f"measured 0.7 at size {size}" in study._repr_html_()


def test_what_was_measured_at_the_target_is_not_preliminary() -> None:
    with fabolas.Study({"x": fabolas.Float(0.0, 1.0)}, {"size": (64, 16_384)}, seed=0) as study:
        suggestion = study.ask_for({"x": 0.5})
        study.tell(suggestion, 0.25, cost=1.0)
        best = study.incumbent()
    assert best is not None
    assert not best.preliminary
    assert best.verified
    assert abs(best.loss - 0.25) < 2 * best.std < 0.25


@pytest.mark.parametrize(("offset", "unit"), [(1e6, 1.0), (1.5e9, 1e6), (0.689, 1e-4)])
def test_a_verified_loss_is_stated_near_its_measurement_whatever_is_added_to_all_losses(
    offset: float, unit: float
) -> None:
    rng = np.random.default_rng(0)
    with fabolas.Study({"x": fabolas.Float(0.0, 1.0)}, {"size": (64, 16_384)}, seed=0, effort=0.0) as study:
        for i in range(16):
            x, size = float(rng.random()), 16_384 if i > 13 else int(64 * 32 ** rng.random())
            loss = 3.0 + 20.0 * (x - 0.3) ** 2 + 2.0 * (size / 16_384) ** -0.5 + 0.1 * rng.normal()
            study.tell(study.ask_for({"x": x}, {"size": size}), offset + unit * loss, cost=size / 100)
        best = study.verified_incumbent()
        assert best is not None
        assert best.verified
        measured = study.trials[best.trial_ids[-1]].loss
    assert measured is not None
    assert 0.0 < best.std < 2.0 * unit
    assert abs(best.loss - measured) < 2.0 * unit


@pytest.mark.parametrize("loss", [0.0, 0.1])
def test_a_verified_loss_that_all_trials_have_is_stated_as_it_is(loss: float) -> None:
    result = fabolas.minimize(
        lambda config, size: loss,
        {"x": fabolas.Float(0.0, 1.0)},
        {"size": (10, 1000)},
        max_trials=6,
        seed=0,
        progress=False,
    )
    best = result.incumbent()
    assert best is not None
    assert best.verified
    assert (best.loss, best.std) == (loss, 0.0)
    assert f"verified at the target: measured {loss:.4g} there, as in all trials" in str(result)
