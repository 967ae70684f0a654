"""Repeats against plain Gaussian conditioning, numerical integration, and data simulated from the model."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta, multivariate_normal

from fabolas.gp import priors
from fabolas.gp.kernels import Amplitude, Matern52, between
from fabolas.gp.regression import NOISE_FLOOR, GaussianProcess, Noise
from fabolas.gp.repeats import PRIOR_OBSERVATIONS, Repeats

MODEL = GaussianProcess(Matern52((0,)) * Amplitude(), Noise())
THETA = np.array([[-1.0, 0.2, np.log(0.3)], [-0.5, -0.3, np.log(0.02)]])  # length, amplitude, noise
ROWS = np.array([0, 1, 2, 0, 3, 0, 1])  # point 0 three times, point 1 twice


def data(seed: int = 0) -> tuple[np.ndarray, np.ndarray, Repeats]:
    rng = np.random.default_rng(seed)
    points = rng.random((4, 1))[ROWS]
    y = np.sin(5.0 * points[:, 0]) + 0.2 * rng.normal(size=4)[ROWS] + 0.2 * rng.normal(size=7)
    found = Repeats.among(points, y, np.ones(7, dtype=bool), 0.9)
    assert found is not None
    return points, y, found


def covariance(theta: np.ndarray, points: np.ndarray, fraction: float) -> np.ndarray:
    """Of the observations, written out: the kernel, the nugget of each point, chance."""
    noise = np.exp(theta[2]) + NOISE_FLOOR
    k = between(MODEL.kernel, points, points)(theta[None, :2])[0]
    same = ROWS[:, None] == ROWS[None]
    return np.asarray(k + noise * (fraction * same + (1.0 - fraction) * np.eye(7)))


def noise_variances() -> np.ndarray:
    return np.exp(THETA[:, 2]) + NOISE_FLOOR


def test_pairs_deviations_and_degrees_are_those_of_the_points() -> None:
    _, y, repeats = data()
    assert set(zip(*(rows.tolist() for rows in repeats.pairs), strict=True)) == {
        (3, 0),
        (5, 0),
        (5, 3),
        (6, 1),
    }
    assert repeats.degrees == 3
    squares = 3 * np.var(y[[0, 3, 5]]) + 2 * np.var(y[[1, 6]])
    assert repeats.squares == pytest.approx(squares)


def test_there_are_none_without_repeats_among_the_marked_or_if_the_fraction_is_known() -> None:
    points, y, repeats = data()
    assert Repeats.among(points, y, np.arange(7) < 3, 0.9) is None
    assert Repeats.among(points, y, np.zeros(7, dtype=bool), 0.9) is None
    assert Repeats.among(points, y, np.ones(7, dtype=bool), 0.0) is None
    assert Repeats.among(points, y, np.ones(7, dtype=bool), 1.0) is None
    assert repeats.subset(np.arange(3)) is None
    some = repeats.subset(np.array([0, 3, 6]))
    assert some is not None
    assert (some.degrees, some.squares) == (1, pytest.approx(2 * np.var(y[[0, 3]])))


def test_the_posterior_mean_of_the_fraction_is_that_of_numerical_integration() -> None:
    _, _, repeats = data()
    a, b = 0.9 * PRIOR_OBSERVATIONS, 0.1 * PRIOR_OBSERVATIONS
    for variance, found in zip(
        noise_variances(), repeats.fraction(noise_variances(), NOISE_FLOOR), strict=True
    ):

        def density(t: float, variance: float = variance) -> float:
            """Of f = 1 - t^(1/b) in t, not normalised: there the prior f^(a-1) (1-f)^(b-1) has no singularity at 1."""
            f = 1.0 - t ** (1.0 / b)
            chance = max((1.0 - f) * variance, NOISE_FLOOR)
            log_likelihood = -0.5 * (repeats.degrees * np.log(chance) + repeats.squares / chance)
            return float(f ** (a - 1.0) * np.exp(log_likelihood + 0.5 * repeats.squares / variance))

        total, _ = quad(density, 0.0, 1.0, points=[0.5, 0.9, 0.99, 0.999], limit=500)
        mean, _ = quad(
            lambda t: (1.0 - t ** (1.0 / b)) * density(t),
            0.0,
            1.0,
            points=[0.5, 0.9, 0.99, 0.999],
            limit=500,
        )
        assert found == pytest.approx(mean / total, rel=1e-3)


def test_the_evidence_is_the_mean_of_normal_densities_over_the_fraction() -> None:
    points, y, repeats = data()
    found = MODEL.log_density(points, y, repeats)(THETA)
    prior = beta(0.9 * PRIOR_OBSERVATIONS, 0.1 * PRIOR_OBSERVATIONS)
    fractions = prior.ppf((np.arange(400) + 0.5) / 400)
    for row, theta in enumerate(THETA):
        variance = noise_variances()[row]
        fractions_there = np.minimum(fractions, 1.0 - NOISE_FLOOR / variance)
        densities = [
            multivariate_normal(np.zeros(7), covariance(theta, points, f)).logpdf(y) for f in fractions_there
        ]
        wanted = (
            np.logaddexp.reduce(densities) - np.log(400) + priors.log_density(MODEL.priors, theta[None])[0]
        )
        # The means of repeats also depend on the fraction a little, which the evidence leaves out.
        assert found[row] == pytest.approx(wanted, abs=0.1)


def test_the_posterior_is_that_of_plain_gaussian_conditioning_with_the_nugget_in_the_covariance() -> None:
    points, y, repeats = data()
    new = np.array([[0.1], [0.8]])
    posterior = MODEL.posterior(points, y, THETA, repeats)
    fractions = repeats.fraction(noise_variances(), NOISE_FLOOR)
    for row, theta in enumerate(THETA):
        cross = between(MODEL.kernel, new, points)(theta[None, :2])[0]
        gain = cross @ np.linalg.inv(covariance(theta, points, float(fractions[row])))
        np.testing.assert_allclose(posterior.mean_of(new)[row], gain @ y, rtol=1e-7)
        variance = np.exp(theta[1]) - np.sum(gain * cross, axis=1)
        np.testing.assert_allclose(posterior.variance(posterior.project(new))[row], variance, rtol=1e-7)


def test_repeats_that_agree_exactly_say_that_all_noise_is_the_points_own() -> None:
    points = np.zeros((8, 1))
    repeats = Repeats.among(points, np.full(8, 0.7), np.ones(8, dtype=bool), 0.9)
    assert repeats is not None
    assert repeats.fraction(np.array([0.1]), NOISE_FLOOR)[0] > 0.999
    # They hardly say that there is no noise: seven independent residuals of zero would say it with 7/2 log(100) nats.
    low, high = repeats.log_evidence_ratio(np.array([1e-3, 1e-1]), NOISE_FLOOR) + [
        -0.5 * 7 * np.log((1.0 - repeats.fraction(np.array([v]), NOISE_FLOOR)[0]) * v) for v in (1e-3, 1e-1)
    ]
    assert 0.0 < low - high < 1.5


def test_without_information_the_mean_is_that_of_the_prior() -> None:
    # The variance of the noise is far below the smallest one of chance: the likelihood does not depend on f.
    _, _, repeats = data()
    weights = np.exp(repeats._log_prior)
    fractions, _ = repeats._posterior(np.array([1.0]), 0.0)
    assert weights @ fractions[0] == pytest.approx(0.9, abs=1e-4)


def simulated(fraction: float, n_points: int, seed: int, variance: float = 0.3) -> np.ndarray:
    """Estimates (100,) of the fraction from points that were observed twice."""
    rng, found = np.random.default_rng(seed), []
    points = np.repeat(np.arange(n_points, dtype=float), 2)[:, None]
    for _ in range(100):
        own = np.sqrt(fraction * variance) * np.repeat(rng.normal(size=n_points), 2)
        y = own + np.sqrt((1.0 - fraction) * variance) * rng.normal(size=2 * n_points)
        repeats = Repeats.among(points, y, np.ones(len(y), dtype=bool), 0.9)
        assert repeats is not None
        found.append(float(repeats.fraction(np.array([variance]), NOISE_FLOOR)[0]))
    return np.array(found)


def test_simulated_fractions_are_told_apart_by_twenty_repeated_points() -> None:
    none, half, most = (simulated(fraction, 20, seed) for seed, fraction in enumerate((0.0, 0.5, 0.95)))
    assert np.median(none) < 0.3 < np.median(half) < 0.7 < 0.9 < np.median(most)
    assert np.quantile(none, 0.9) < np.quantile(half, 0.75) < np.quantile(most, 0.05)


@pytest.mark.parametrize("fraction", [0.0, 0.5, 0.95])
def test_many_repeats_teach_the_simulated_fraction(fraction: float) -> None:
    assert simulated(fraction, 400, 0).mean() == pytest.approx(fraction, abs=0.05)


def test_one_repeat_that_differs_as_much_as_the_noise_lowers_the_fraction_and_one_that_agrees_raises_it() -> (
    None
):
    sigma = np.sqrt(0.3)
    estimates = []
    for difference in (0.0, 0.1, 1.4, 3.0):
        y = np.array([0.0, difference * sigma])
        repeats = Repeats.among(np.zeros((2, 1)), y, np.ones(2, dtype=bool), 0.9)
        assert repeats is not None
        estimates.append(float(repeats.fraction(np.array([0.3]), NOISE_FLOOR)[0]))
    assert (np.diff(estimates) < 0.0).all()
    assert estimates[0] > 0.99
    assert estimates[2] < 0.6
