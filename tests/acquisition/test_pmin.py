"""p_min by sampling against brute force."""

import numpy as np
import pytest
from scipy.stats import norm

from fabolas.acquisition.entropy import entropy, frequencies, lowest, normal_numbers
from fabolas.strategies.effort import Effort
from tests.helpers.pmin import pmin

# The joint samples of full effort. Counting independent ones has an expected total variation of about
# sqrt(R / (2 pi S)) for equally likely representers: 0.2 for R = 50, and proportionally less for fewer.
SAMPLES = Effort.at(1.0, 50).n_samples


def problem(R: int, kind: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    mean = rng.normal(0, 0.5, R)
    if kind == "independent":
        return mean, np.diag(rng.uniform(0.2, 2.0, R))
    x = rng.random((R, 2))
    distance = np.linalg.norm(x[:, None] - x[None], axis=2) / 0.4
    return mean, np.exp(-0.5 * distance**2) + 1e-8 * np.eye(R)


def brute_force(mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(99)
    samples = rng.multivariate_normal(mean, covariance, 100_000, method="cholesky")
    return np.bincount(samples.argmin(axis=1), minlength=len(mean)) / len(samples)


@pytest.mark.parametrize("kind", ["independent", "correlated"])
@pytest.mark.parametrize("R", [2, 5, 20, 50])
def test_sampling_agrees_with_brute_force_at_the_default_effort(R: int, kind: str) -> None:
    mean, covariance = problem(R, kind)
    truth = brute_force(mean, covariance)
    distances = []
    for seed in range(5):
        ours = pmin(mean[None], covariance[None], normal_numbers(SAMPLES, R, np.random.default_rng(seed)))[0]
        assert ours.sum() == pytest.approx(1.0)
        distances.append(0.5 * np.abs(ours - truth).sum())
    assert np.mean(distances) < 1.1 * np.sqrt(R / (2 * np.pi * SAMPLES))


@pytest.mark.parametrize("R", [2, 50])
def test_the_error_of_sampling_vanishes_with_more_samples(R: int) -> None:
    mean, covariance = problem(R, "correlated")
    ours = pmin(mean[None], covariance[None], normal_numbers(1 << 15, R, np.random.default_rng(0)))[0]
    assert 0.5 * np.abs(ours - brute_force(mean, covariance)).sum() < 0.015


def test_two_points_have_the_closed_form() -> None:
    mean, covariance = np.array([0.3, 0.0]), np.array([[1.0, 0.5], [0.5, 2.0]])
    expected = norm.cdf(-0.3 / np.sqrt(1.0 + 2.0 - 2 * 0.5))
    ours = pmin(mean[None], covariance[None], normal_numbers(1 << 14, 2, np.random.default_rng(0)))
    assert ours[0, 0] == pytest.approx(expected, abs=0.005)


def test_a_dominated_point_is_never_lowest() -> None:
    mean = np.array([0.0, 0.1, 20.0])
    ours = pmin(mean[None], np.eye(3)[None], normal_numbers(256, 3, np.random.default_rng(0)))[0]
    assert ours[2] == 0.0


def test_the_normal_numbers_are_standard_normal() -> None:
    Z = normal_numbers(4096, 3, np.random.default_rng(0))
    np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=0.01)
    np.testing.assert_allclose(np.cov(Z.T), np.eye(3), atol=0.02)
    assert normal_numbers(100, 3, np.random.default_rng(0)).shape == (100, 3)


def test_frequencies_count_along_the_last_axis() -> None:
    labels = np.array([[[0, 0, 2, 1], [1, 1, 1, 1]], [[2, 2, 2, 0], [0, 1, 2, 2]]])
    p = frequencies(labels, 3)
    np.testing.assert_allclose(p[0, 0], [0.5, 0.25, 0.25])
    np.testing.assert_allclose(p[1, 1], [0.25, 0.25, 0.5])
    np.testing.assert_array_equal(lowest(np.array([[3.0, 1.0], [0.0, 1.0]])), [1, 0])


def test_entropy_is_zero_when_certain_and_log_r_when_uniform() -> None:
    np.testing.assert_allclose(entropy(np.array([[1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]])), [0.0, np.log(3)])
