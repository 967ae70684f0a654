"""Expected improvement against quadrature, samples and asymptotics."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from fabolas.acquisition.improvement import log_expected_improvement

ONE = np.ones(1)


@pytest.mark.parametrize("mean", [-3.0, -0.2, 0.0, 1.3, 4.0])
@pytest.mark.parametrize("sd", [0.1, 1.0, 7.0])
def test_it_is_the_mean_of_the_improvement_by_quadrature(mean, sd):
    best = 0.5
    low = min(mean - 12 * sd, best)
    truth, error = quad(
        lambda f: (best - f) * norm.pdf(f, mean, sd), low, best, epsabs=1e-14, epsrel=1e-11, limit=400
    )
    got = np.exp(log_expected_improvement(np.array([mean]), np.array([sd**2]), best)[0])
    assert got == pytest.approx(truth, rel=1e-8, abs=10 * error + 1e-13)


def test_it_is_the_mean_of_sampled_improvements():
    f = np.random.default_rng(0).normal(1.0, 2.0, 400_000)
    improvements = np.maximum(0.3 - f, 0.0)
    error = improvements.std() / np.sqrt(len(f))
    got = np.exp(log_expected_improvement(ONE, 4.0 * ONE, 0.3)[0])
    assert abs(got - improvements.mean()) < 4 * error


def test_it_is_the_logarithm_of_the_textbook_form_where_that_is_exact():
    z = np.concatenate([np.linspace(-5, 30, 500), -1.0 + np.array([-1e-9, 0.0, 1e-9])])
    plain = norm.pdf(z) + z * norm.cdf(z)  # further out this form has lost its digits
    log = log_expected_improvement(-z, np.ones(z.shape), 0.0)
    np.testing.assert_allclose(log, np.log(plain), rtol=1e-10)


@pytest.mark.parametrize("x", [30.0, 1e2, 1e4, 1e8, 1e100])
def test_the_tail_follows_its_asymptotic_series(x):
    # The density over x squared, times one minus 3 / x^2 plus 15 / x^4 minus 105 / x^6 and so on.
    series = np.log1p((-3 + (15 - (105 - 945 / x**2) / x**2) / x**2) / x**2)
    truth = -0.5 * x**2 - 0.5 * np.log(2 * np.pi) - 2 * np.log(x) + series
    assert log_expected_improvement(np.array([x]), ONE, 0.0)[0] == pytest.approx(truth, rel=1e-13)


def test_the_correction_to_the_tail_is_right_at_the_seam_too():
    # at moderate x the leading -x^2 / 2 hides errors: look at what is left after it
    x = 30.0
    got = log_expected_improvement(np.array([x]), ONE, 0.0)[0] + 0.5 * x**2
    truth = quad(lambda t: t * np.exp(-x * t - 0.5 * t**2), 0, 3, epsabs=0, epsrel=1e-12)[0] / np.sqrt(
        2 * np.pi
    )
    assert got == pytest.approx(np.log(truth), abs=1e-10)


def test_it_rises_with_the_mean_falling_and_with_the_variance():
    falling = log_expected_improvement(np.linspace(20.0, -20.0, 4001), np.ones(4001), 0.0)
    assert np.all(np.diff(falling) > 0)
    widening = log_expected_improvement(np.full(400, 2.0), np.linspace(0.01, 9.0, 400), 0.0)
    assert np.all(np.diff(widening) > 0)


def test_without_variance_it_is_exactly_the_improvement_itself():
    mean, zero = np.array([-1.5, 0.0, 2.0]), np.zeros(3)
    np.testing.assert_array_equal(
        log_expected_improvement(mean, zero, 0.5), [np.log(2.0), np.log(0.5), -np.inf]
    )


def test_a_vanishing_variance_has_that_as_its_limit():
    mean, tiny = np.array([-1.5, 0.5, 2.0]), np.full(3, 1e-300)
    log = log_expected_improvement(mean, tiny, 0.5)
    np.testing.assert_allclose(np.exp(log), [2.0, 0.0, 0.0], atol=1e-150)
    assert np.all(np.isfinite(log))


def test_it_scales_with_the_losses():
    mean, variance = np.array([0.3, 2.0]), np.array([0.2, 1.0])
    np.testing.assert_allclose(
        log_expected_improvement(mean * 1e-6, variance * 1e-12, 0.1e-6),
        log_expected_improvement(mean, variance, 0.1) + np.log(1e-6),
        rtol=1e-12,
    )


def test_leading_axes_are_broadcast():
    rng = np.random.default_rng(1)
    mean, variance, best = rng.normal(size=(3, 7)), rng.random((3, 7)), rng.normal(size=(3, 1))
    whole = log_expected_improvement(mean, variance, best)
    assert whole.shape == (3, 7)
    for k in range(3):
        alone = log_expected_improvement(mean[k], variance[k], float(best[k, 0]))
        np.testing.assert_array_equal(whole[k], alone)


def test_a_negative_variance_is_refused():
    with pytest.raises(ValueError, match="expected variances >= 0, got -1"):
        log_expected_improvement(ONE, -ONE, 0.0)
