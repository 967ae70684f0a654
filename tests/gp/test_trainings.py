"""Noise that the points of one training share, against plain Gaussian conditioning and scipy's densities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from fabolas.gp import priors
from fabolas.gp.kernels import Amplitude, Matern52, between
from fabolas.gp.regression import NOISE_FLOOR, GaussianProcess, Noise
from fabolas.gp.trainings import SameTraining, in_training

THETA = np.array([[-1.0, 0.2, np.log(0.3), np.log(0.05)], [-0.5, -0.3, np.log(0.01), np.log(0.2)]])


def model() -> GaussianProcess:
    return GaussianProcess(Matern52((0,)) * Amplitude(), Noise()).sharing_noise(SameTraining(1))


def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    trainings = np.array([4, 4, 4, 7, 7, 9])
    return in_training(rng.random((6, 1)), trainings), rng.normal(size=6), trainings


def dense(theta: np.ndarray, points: np.ndarray, trainings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Kernel of f alone, and the covariance of the observations, written out."""
    plain = Matern52((0,)) * Amplitude()
    k = between(plain, points, points)(theta[None, :2])[0]
    same = trainings[:, None] == trainings[None]
    noise = np.exp(theta[2]) * same + (np.exp(theta[3]) + NOISE_FLOOR) * np.eye(len(points))
    return k, k + noise


@pytest.mark.parametrize("row", [0, 1])
def test_the_posterior_is_that_of_plain_gaussian_conditioning(row: int) -> None:
    points, y, trainings = data()
    new = np.array([[0.1], [0.8]])
    posterior = model().posterior(points, y, THETA)
    at = posterior.project(new)

    everything = np.concatenate([points[:, :1], new])
    k, _ = dense(THETA[row], everything, np.zeros(len(everything)))
    _, observed = dense(THETA[row], points[:, :1], trainings)
    gain = k[6:, :6] @ np.linalg.inv(observed)
    np.testing.assert_allclose(posterior.mean(at)[row], gain @ y, rtol=1e-8)
    np.testing.assert_allclose(
        posterior.covariance(at, at)[row], k[6:, 6:] - gain @ k[:6, 6:], rtol=1e-6, atol=1e-10
    )


def test_the_evidence_is_a_multivariate_normal_density() -> None:
    points, y, trainings = data()
    found = model().log_density(points, y)(THETA)
    for row, theta in enumerate(THETA):
        _, observed = dense(theta, points[:, :1], trainings)
        wanted = multivariate_normal(np.zeros(6), observed).logpdf(y)
        wanted += priors.log_density(model().priors, theta[None])[0]
        assert found[row] == pytest.approx(wanted, rel=1e-8)


def test_conditioning_on_more_points_of_a_training_equals_the_posterior_of_all() -> None:
    points, y, _ = data()
    new = np.array([[0.3]])
    grown = model().posterior(points[:4], y[:4], THETA).condition(points[4:], y[4:])
    whole = model().posterior(points, y, THETA)
    np.testing.assert_allclose(grown.mean_of(new), whole.mean_of(new), rtol=1e-8)
    np.testing.assert_allclose(
        grown.variance(grown.project(new)), whole.variance(whole.project(new)), rtol=1e-7
    )


def test_an_observation_of_a_new_training_has_the_shared_variance_on_top() -> None:
    points, y, _ = data()
    posterior = model().posterior(points, y, THETA)
    new = np.array([[0.3]])
    own = np.exp(THETA[:, 3:]) + NOISE_FLOOR
    np.testing.assert_allclose(posterior.noise(new), own + np.exp(THETA[:, 2:3]))
    np.testing.assert_allclose(posterior.noise(in_training(new, np.array([4]))), own)


def test_without_shared_noise_the_trainings_do_not_matter() -> None:
    points, y, _ = data()
    theta = THETA.copy()
    theta[:, 2] = -60.0
    plain = GaussianProcess(Matern52((0,)) * Amplitude(), Noise()).posterior(
        points[:, :1], y, theta[:, [0, 1, 3]]
    )
    new = np.array([[0.3]])
    np.testing.assert_allclose(
        model().posterior(points, y, theta).mean_of(new), plain.mean_of(new), rtol=1e-8
    )
