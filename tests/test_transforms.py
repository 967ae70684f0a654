"""Transforms of the loss: standardised, monotone, invertible, and robust to diverged trainings."""

import numpy as np
import pytest

from fabolas.transforms import FitTransform, identity_transform, log_excess_transform, log_transform

RNG = np.random.default_rng(0)
FITS = [identity_transform, log_transform, log_excess_transform]


@pytest.mark.parametrize("fit", FITS)
def test_transforms_are_standardised_monotone_and_invertible(fit: FitTransform) -> None:
    y = np.exp(RNG.normal(size=200))
    transform = fit(y)
    t = transform.forward(y)
    assert t.mean() == pytest.approx(0.0, abs=1e-9)
    assert t.std() == pytest.approx(1.0)
    np.testing.assert_allclose(transform.inverse(t), y, rtol=1e-9)
    assert (np.diff(transform.forward(np.sort(y))) > 0).all()


@pytest.mark.parametrize("fit", FITS)
def test_moments_are_those_of_transformed_gaussians(fit: FitTransform) -> None:
    transform = fit(np.exp(RNG.normal(size=200)))
    draws = transform.inverse(RNG.normal(0.3, 0.2, 400_000))
    mean, std = transform.moments(np.array(0.3), np.array(0.04))
    assert mean == pytest.approx(draws.mean(), rel=0.01)
    assert std == pytest.approx(draws.std(), rel=0.02)


@pytest.mark.parametrize("fit", FITS)
def test_a_later_loss_far_above_all_others_is_very_bad_and_no_more(fit: FitTransform) -> None:
    y = np.random.default_rng(2).lognormal(size=20)
    transform = fit(y)
    worst = transform.forward(y).max()
    slightly, far, farther = transform.forward(np.array([1.05 * y.max(), 1e30, 1e300]))
    assert worst < slightly < far
    assert worst + 1.0 < far == farther <= worst + 3.0 + 1e-9


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("diverged", [1e3, 1e6, 1e30, 1e300])
def test_diverged_losses_leave_the_others_their_spread(fit: FitTransform, diverged: float) -> None:
    y = np.random.default_rng(3).uniform(0.05, 0.5, 30)
    if fit is identity_transform:
        y -= 1.0
    t = fit(np.append(y, [diverged] * 3)).forward(np.append(y, diverged))
    assert t[:-1].std() > 0.05  # the noise that is always there is 0.001
    assert t[:-1].max() < t[-1] < 10.0


@pytest.mark.parametrize("value", [0.0, 0.3, -7.0, 1e-200, 1e300, -1e300])
@pytest.mark.parametrize("fit", FITS)
def test_a_constant_is_zero_up_to_rounding(fit: FitTransform, value: float) -> None:
    y = np.full(7, value)
    assert np.abs(fit(y).forward(y)).max() < 1e-3


def test_losses_may_be_as_small_as_numbers_are() -> None:
    y = -np.random.default_rng(0).uniform(0.05, 0.5, 30) * 1e-100
    assert log_transform(y).forward(y).std() == pytest.approx(1.0)


@pytest.mark.parametrize("fit", FITS)
def test_a_search_that_has_converged_has_no_diverged_losses(fit: FitTransform) -> None:
    rng = np.random.default_rng(0)
    near, others = 0.05 * rng.uniform(1.0, 1.03, 62), 0.05 * rng.uniform(1.2, 1.6, 18)
    t = fit(np.append(near, others)).forward(others)
    assert len(np.unique(t)) == 18


def test_the_log_excess_transform_does_not_depend_on_shift_and_scale() -> None:
    y = np.exp(RNG.normal(size=50))
    one, two = log_excess_transform(y), log_excess_transform(7.0 * y - 30.0)
    np.testing.assert_allclose(one.forward(y), two.forward(7.0 * y - 30.0), atol=1e-9)
