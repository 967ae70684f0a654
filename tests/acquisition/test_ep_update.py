"""p_min after a hypothetical evaluation: against running EP again and against counting."""

import numpy as np
import pytest

from fabolas.acquisition.ep import ep_pmin
from fabolas.acquisition.ep_update import conditioned, expected_entropy_ep, updated

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def problem(R: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([R, seed])
    A = rng.normal(size=(R, R + 2))
    return 0.7 * rng.normal(size=R), A @ A.T / R


def observing(covariance: np.ndarray, k: int, share: float) -> np.ndarray:
    """b of an observation that removes this share of the variance of representer k."""
    return np.sqrt(share / covariance[k, k]) * covariance[:, k]


def entropy(p: np.ndarray) -> np.ndarray:
    return -np.sum(p * np.log(np.maximum(p, 1e-300)), axis=-1)


def counted_gain(mean: np.ndarray, covariance: np.ndarray, b: np.ndarray, samples: int = 100_000) -> float:
    """Entropy now minus after, by counting with common random numbers; its error is about 0.002."""
    Z = np.random.default_rng(0).normal(size=(samples, len(mean)))

    def p(m: np.ndarray, S: np.ndarray) -> np.ndarray:
        F = m + Z @ np.linalg.cholesky(S + 1e-9 * np.eye(len(m))).T
        return np.bincount(F.argmin(axis=1), minlength=len(m)) / samples

    nodes, weights = np.polynomial.hermite_e.hermegauss(9)
    after = [entropy(p(mean + b * w, covariance - np.outer(b, b))) for w in nodes]
    return float(entropy(p(mean, covariance)) - weights @ after / weights.sum())


def test_a_small_change_is_what_running_ep_again_gives():
    mean, covariance = problem(8, seed=0)
    now, b, rng = ep_pmin(mean, covariance), observing(covariance, 3, 1e-3), np.random.default_rng(0)
    shift = 1e-2 * rng.normal(size=(5, 8))
    got = updated(now, shift, np.tile(b, (5, 1)))
    assert got.shape == (5, 8)
    for m in range(5):
        again = ep_pmin(mean + shift[m], covariance - np.outer(b, b))
        np.testing.assert_allclose(got[m], again.log_p, atol=2e-5)
        assert np.exp(got[m]).sum() == pytest.approx(1.0)


def test_its_error_falls_with_the_cube_of_the_shift_and_the_square_of_the_reduction():
    mean, covariance = problem(6, seed=1)
    now, b = ep_pmin(mean, covariance, tolerance=1e-11), observing(covariance, 2, 1.0)
    none = np.zeros((1, 6))

    def errors(scale: float) -> tuple[float, float]:
        moved = (
            updated(now, scale * b[None], none) - ep_pmin(mean + scale * b, covariance, tolerance=1e-11).log_p
        )
        S = covariance - scale**2 * np.outer(b, b)
        shrunk = updated(now, none, scale * b[None]) - ep_pmin(mean, S, tolerance=1e-11).log_p
        return float(np.abs(moved).max()), float(np.abs(shrunk).max())

    (moved, shrunk), (moved_half, shrunk_half) = errors(0.1), errors(0.05)
    assert moved / moved_half == pytest.approx(8, rel=0.25)
    assert shrunk / shrunk_half == pytest.approx(16, rel=0.25)


@pytest.mark.parametrize("update", ["bayes", "taylor"])
@pytest.mark.parametrize("R", [4, 12])
def test_the_expected_gain_of_a_small_step_is_the_counted_one(R, update):
    for seed in range(3):
        mean, covariance = problem(R, seed)
        b = observing(covariance, int(np.argmin(mean)), 0.1)
        after, now = expected_entropy_ep(ep_pmin(mean, covariance), b[None], NODES, WEIGHTS, update)
        assert now - after[0] == pytest.approx(counted_gain(mean, covariance, b), rel=0.15, abs=3e-3)


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_by_bayes_the_gain_of_a_large_step_is_the_counted_one_too(share):
    for seed in range(3):
        mean, covariance = problem(8, seed)
        b = observing(covariance, int(np.argmin(mean)), share)
        after, now = expected_entropy_ep(ep_pmin(mean, covariance), b[None], NODES, WEIGHTS)
        assert now - after[0] == pytest.approx(counted_gain(mean, covariance, b), rel=0.12)


def test_both_ways_agree_to_second_order():
    mean, covariance = problem(8, seed=2)
    now = ep_pmin(mean, covariance)
    gains = []
    for share in (1e-3, 1e-4):
        b = observing(covariance, 1, share)[None]
        bayes, entropy_now = expected_entropy_ep(now, b, NODES, WEIGHTS, "bayes")
        taylor, _ = expected_entropy_ep(now, b, NODES, WEIGHTS, "taylor")
        gains.append(((entropy_now - bayes[0]) / share, (entropy_now - taylor[0]) / share))
    assert gains[1][0] == pytest.approx(gains[1][1], rel=0.02)
    assert gains[0][0] == pytest.approx(gains[1][0], rel=0.02)


def test_by_bayes_p_min_after_averages_to_p_min_now_and_no_gain_is_negative():
    mean, covariance = problem(10, seed=3)
    now = ep_pmin(mean, covariance)
    b = np.vstack([observing(covariance, k, share) for k in range(10) for share in (0.1, 0.8)])
    log_p, log_ratio = conditioned(now, b, NODES)
    assert log_p.shape == (15, 20, 10)
    average = np.einsum("q,qm,qmr->mr", WEIGHTS, np.exp(log_ratio), np.exp(log_p))
    np.testing.assert_allclose(average, np.tile(now.p, (20, 1)), atol=2e-3)
    after, entropy_now = expected_entropy_ep(now, b, *np.polynomial.hermite_e.hermegauss(3))
    assert np.all(after <= entropy_now)


@pytest.mark.parametrize("update", ["bayes", "taylor"])
def test_an_evaluation_that_cannot_teach_changes_exactly_nothing(update):
    mean, covariance = problem(9, seed=4)
    now = ep_pmin(mean, covariance)
    b = np.vstack([np.zeros(9), observing(covariance, 0, 0.3)])
    after, entropy_now = expected_entropy_ep(now, b, NODES, WEIGHTS, update)
    assert after[0] == entropy_now
    assert after[1] < entropy_now
    np.testing.assert_allclose(updated(now, b[:1], b[:1])[0], now.log_p, rtol=0, atol=1e-14)


@pytest.mark.parametrize("update", ["bayes", "taylor"])
def test_a_batch_is_its_members_one_by_one(update):
    mean, covariance = problem(7, seed=5)
    now = ep_pmin(mean, covariance)
    b = 0.3 * np.random.default_rng(0).normal(size=(600, 7)) * 0.3
    whole, _ = expected_entropy_ep(now, b, NODES, WEIGHTS, update)
    for i in (0, 255, 256, 599):
        assert whole[i] == pytest.approx(
            expected_entropy_ep(now, b[[i]], NODES, WEIGHTS, update)[0][0], rel=1e-12
        )


def test_wrong_shapes_and_names_are_refused():
    now = ep_pmin(*problem(5, seed=6))
    with pytest.raises(ValueError, match=r"b: expected shape \(M, 5\) for 5 representers, got \(2, 4\)"):
        expected_entropy_ep(now, np.zeros((2, 4)), NODES, WEIGHTS)
    with pytest.raises(ValueError, match="one shape"):
        expected_entropy_ep(now, np.zeros((2, 5)), NODES, WEIGHTS[:2])
    with pytest.raises(ValueError, match="'bayes' or 'taylor', got 'other'"):
        expected_entropy_ep(now, np.zeros((2, 5)), NODES, WEIGHTS, "other")
