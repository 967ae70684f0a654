"""p_min by expectation propagation: against counting, against its own finite differences, and in its limits.

Tolerances, total variation against 100,000 joint samples (which are off by 0.003 for 5 representers and 0.009
for 50 themselves): 0.03 for independent and Wishart covariances, 0.05 for the correlated fields of a GP, 0.06
where each point has a twin, as EP then counts each constraint twice. Exact for two representers.
"""

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr

from fabolas.acquisition.expectation_propagation import EpPmin, ep_pmin
from tests.helpers.marks import slow

Problem = tuple[np.ndarray, np.ndarray]


def field(distance: np.ndarray, kind: str) -> np.ndarray:
    if kind == "squared exponential":
        return np.exp(-0.5 * distance**2)
    return (1 + np.sqrt(5) * distance + 5 / 3 * distance**2) * np.exp(-np.sqrt(5) * distance)


def problem(kind: str, R: int, seed: int) -> Problem:
    rng = np.random.default_rng([R, seed])
    if kind == "independent":
        return rng.normal(size=R), np.diag(rng.uniform(0.2, 2.0, R))
    if kind == "wishart":
        A = rng.normal(size=(R, R + 2))
        return rng.normal(size=R), A @ A.T / R
    X = rng.random((R, 2))
    distance = np.linalg.norm(X[:, None] - X[None], axis=2) / 0.2
    S = field(distance, kind)
    return 0.5 * np.linalg.cholesky(S + 1e-10 * np.eye(R)) @ rng.normal(size=R), S


def counted(mean: np.ndarray, covariance: np.ndarray, samples: int = 100_000, seed: int = 0) -> np.ndarray:
    values, vectors = np.linalg.eigh(covariance)
    factor = vectors * np.sqrt(np.maximum(values, 0.0))
    rng = np.random.default_rng(seed)
    counts = np.zeros(len(mean))
    for _ in range(10):
        F = mean + rng.normal(size=(samples // 10, len(mean))) @ factor.T
        counts += np.bincount(F.argmin(axis=1), minlength=len(mean))
    return counts / counts.sum()


def p(of: EpPmin) -> np.ndarray:
    return np.exp(of.log_p)


def total_variation(p: np.ndarray, q: np.ndarray) -> float:
    return float(0.5 * np.abs(p - q).sum())


KINDS = {"independent": 0.03, "wishart": 0.03, "matern": 0.05, "squared exponential": 0.05}


@pytest.mark.parametrize("R", [3, 10, *slow(5, 20, 50)])
@pytest.mark.parametrize("kind", KINDS)
def test_it_agrees_with_counting_joint_samples(kind, R):
    mean, covariance = problem(kind, R, seed=1)
    got = ep_pmin(mean, covariance)
    assert total_variation(p(got), counted(mean, covariance)) < KINDS[kind]


@pytest.mark.parametrize("rho", [-0.99, 0.0, 0.7, 0.999])
@pytest.mark.parametrize("gap", [0.0, 0.3, -2.0, 20.0])
def test_for_two_representers_it_is_exact(rho, gap):
    s = np.array([0.7, 1.3])
    covariance = np.array([[s[0] ** 2, rho * s[0] * s[1]], [rho * s[0] * s[1], s[1] ** 2]])
    got = ep_pmin(np.array([1.0, 1.0 + gap]), covariance)
    z = gap / np.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    np.testing.assert_allclose(got.log_z, [log_ndtr(z), log_ndtr(-z)], rtol=1e-6, atol=1e-9)


def test_equal_and_independent_representers_are_equally_likely():
    np.testing.assert_allclose(p(ep_pmin(np.zeros(12), np.eye(12))), 1 / 12, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_it_sums_to_one(kind):
    got = ep_pmin(*problem(kind, 15, seed=2))
    assert p(got).sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(got.log_p - got.log_p[0], got.log_z - got.log_z[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("depth", [8.0, 1e2, 1e4, 1e8])
def test_a_dominated_point_gets_nothing_and_stays_finite(depth):
    mean, covariance = problem("matern", 10, seed=3)
    without = ep_pmin(mean, covariance)
    i = 9
    mean = np.append(mean, mean.max() + depth)
    covariance = np.block([[covariance, covariance[:, [i]]], [covariance[[i]], np.eye(1)]])
    covariance[10, :10] *= 0.5
    covariance[:10, 10] *= 0.5
    got = ep_pmin(mean, covariance)
    assert p(got)[10] < 1e-9
    assert np.isfinite(got.log_p[10])
    np.testing.assert_allclose(p(got)[:10], p(without), atol=1e-8)


def test_a_common_shift_and_a_common_scale_of_the_values_change_nothing():
    mean, covariance = problem("matern", 12, seed=4)
    got = ep_pmin(mean, covariance)
    np.testing.assert_allclose(ep_pmin(mean + 17.0, covariance).log_p, got.log_p, atol=1e-9)
    np.testing.assert_allclose(ep_pmin(1e4 * mean, 1e8 * covariance).log_p, got.log_p, atol=1e-9)
    np.testing.assert_allclose(got.d_mean.sum(axis=1), 0.0, atol=1e-9)
    np.testing.assert_allclose(got.d2_mean.sum(axis=2), 0.0, atol=1e-7)


def test_a_common_random_level_of_the_values_changes_nothing():
    mean, covariance = problem("matern", 12, seed=4)
    got = ep_pmin(mean, covariance)
    np.testing.assert_allclose(ep_pmin(mean, covariance + 3.0).log_p, got.log_p, atol=1e-6)
    np.testing.assert_allclose(got.d_covariance.sum(axis=(1, 2)), 0.0, atol=1e-7)


def test_the_order_of_the_representers_does_not_matter():
    mean, covariance = problem("wishart", 12, seed=5)
    order = np.random.default_rng(0).permutation(12)
    a = ep_pmin(mean, covariance, tolerance=1e-10)
    b = ep_pmin(mean[order], covariance[np.ix_(order, order)], tolerance=1e-10)
    np.testing.assert_allclose(b.log_p, a.log_p[order], atol=1e-9)
    np.testing.assert_allclose(b.d_mean, a.d_mean[np.ix_(order, order)], atol=1e-8)
    np.testing.assert_allclose(b.d2_mean, a.d2_mean[np.ix_(order, order, order)], atol=1e-7)
    np.testing.assert_allclose(b.d_covariance, a.d_covariance[np.ix_(order, order, order)], atol=1e-7)


def test_exact_duplicates_share_their_probability():
    mean, covariance = problem("matern", 6, seed=6)
    twice = np.append(np.arange(6), 2)
    got = ep_pmin(mean[twice], covariance[np.ix_(twice, twice)])
    assert p(got)[2] == pytest.approx(p(got)[6], rel=1e-6)
    merged = np.append(np.delete(p(got)[:6], 2), p(got)[2] + p(got)[6])
    before = p(ep_pmin(mean, covariance))
    assert total_variation(merged, np.append(np.delete(before, 2), before[2])) < 0.03


@pytest.mark.parametrize("distance", [1e-1, 1e-3, 1e-6])
@pytest.mark.parametrize("noise", [1e-6, 1e-2])
def test_near_duplicates_around_observations_are_no_trouble(distance, noise):
    rng = np.random.default_rng(7)
    observed = rng.random((15, 2))
    X = np.vstack([observed[:5], rng.random((10, 2))])
    X = np.vstack([X, X + distance * rng.normal(size=X.shape)])

    def kernel(A, B):
        return field(np.linalg.norm(A[:, None] - B[None], axis=2) / 0.4, "matern")

    K = kernel(observed, observed) + noise * np.eye(15)
    y = np.linalg.cholesky(K) @ rng.normal(size=15)
    weights = np.linalg.solve(K, kernel(observed, X))
    mean, covariance = weights.T @ y, kernel(X, X) - kernel(X, observed) @ weights
    got = ep_pmin(mean, covariance)
    # twins closer than the variance that is added share their probability as that decides: add the same
    same = covariance + 1e-10 * np.diag(covariance).max() * np.eye(30)
    assert total_variation(p(got), counted(mean, same)) < 0.06


def test_known_values_leave_no_doubt_and_nothing_known_leaves_all():
    np.testing.assert_allclose(p(ep_pmin(np.array([1.0, 0.5, 3.0]), np.zeros((3, 3)))), [0.0, 1.0, 0.0])
    np.testing.assert_allclose(p(ep_pmin(np.zeros(4), np.zeros((4, 4)))), 0.25)
    np.testing.assert_array_equal(p(ep_pmin(np.zeros(1), np.ones((1, 1)))), 1.0)


def test_a_tighter_tolerance_changes_little():
    mean, covariance = problem("squared exponential", 20, seed=8)
    a, b = ep_pmin(mean, covariance), ep_pmin(mean, covariance, tolerance=1e-11)
    np.testing.assert_allclose(a.log_z, b.log_z, atol=1e-8)
    np.testing.assert_allclose(a.d_mean, b.d_mean, atol=1e-3)


def tight(mean: np.ndarray, covariance: np.ndarray) -> EpPmin:
    return ep_pmin(mean, covariance, tolerance=1e-12)


@pytest.mark.parametrize("R", [2, 3, *slow(7)])
@pytest.mark.parametrize("kind", ["independent", "wishart", "matern"])
def test_the_derivatives_are_those_of_its_own_log_z(kind, R):
    mean, covariance = problem(kind, R, seed=9)
    got, step, unit = tight(mean, covariance), 1e-4, np.eye(R)
    for i in range(R):
        up, down = tight(mean + step * unit[i], covariance), tight(mean - step * unit[i], covariance)
        np.testing.assert_allclose(got.d_mean[:, i], (up.log_z - down.log_z) / (2 * step), atol=1e-6)
        np.testing.assert_allclose(got.d2_mean[:, i], (up.d_mean - down.d_mean) / (2 * step), atol=1e-6)
        second = (up.log_z - 2 * got.log_z + down.log_z) / step**2
        np.testing.assert_allclose(got.d2_mean[:, i, i], second, atol=1e-5)
        for j in range(i + 1):
            change = 1e-5 * (np.outer(unit[i], unit[j]) + np.outer(unit[j], unit[i])) / 2
            slope = (tight(mean, covariance + change).log_z - tight(mean, covariance - change).log_z) / 2e-5
            np.testing.assert_allclose(got.d_covariance[:, i, j], slope, rtol=1e-5, atol=1e-5)
            np.testing.assert_array_equal(got.d_covariance[:, i, j], got.d_covariance[:, j, i])


def test_for_two_representers_the_derivatives_are_those_of_log_phi():
    got = ep_pmin(np.array([0.0, 0.4]), np.diag([1.0, 3.0]))
    z, sd = 0.2, 2.0
    h = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi) / ndtr(z)
    np.testing.assert_allclose(got.d_mean[0], [-h / sd, h / sd], rtol=1e-8)
    np.testing.assert_allclose(got.d2_mean[0, 0, 0], -h * (z + h) / sd**2, rtol=1e-8)
    np.testing.assert_allclose(got.d_covariance[0, 0, 0], -0.5 * h * z / sd**2, rtol=1e-8)


def test_log_p_min_is_concave_in_the_mean():
    for kind in KINDS:
        got = ep_pmin(*problem(kind, 12, seed=10))
        assert np.linalg.eigvalsh(got.d2_mean).max() < 1e-8 * np.abs(got.d2_mean).max()


@pytest.mark.parametrize(
    ("mean", "covariance", "message"),
    [
        (np.zeros(3), np.eye(2), r"expected a mean \(R,\) and a covariance"),
        (np.zeros((3, 1)), np.eye(3), r"expected a mean \(R,\)"),
        (np.array([0.0, np.nan]), np.eye(2), "expected finite"),
        (np.zeros(2), np.diag([1.0, -1.0]), "without negative eigenvalues"),
        (np.zeros(2), np.array([[1.0, 0.5], [-0.5, 1.0]]), "symmetric"),
    ],
)
def test_what_is_no_covariance_is_refused(mean, covariance, message):
    with pytest.raises(ValueError, match=message):
        ep_pmin(mean, covariance)
