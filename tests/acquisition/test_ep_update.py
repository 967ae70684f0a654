"""p_min after a hypothetical evaluation: against running EP again and against counting."""

import numpy as np
import pytest

from fabolas.acquisition.ep_update import expected_entropy, updated
from fabolas.acquisition.expectation_propagation import ep_pmin

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


def test_a_small_change_is_what_running_ep_again_gives() -> None:
    mean, covariance = problem(8, seed=0)
    now, b = ep_pmin(mean, covariance), observing(covariance, 3, 1e-3)
    outcomes = np.array([-1.0, 0.0, 0.7])
    got = updated(now, b[None], outcomes)
    assert got.shape == (3, 1, 8)
    for q, w in enumerate(outcomes):
        again = ep_pmin(mean + w * b, covariance - np.outer(b, b))
        np.testing.assert_allclose(got[q, 0], again.log_p, atol=1e-4)
        assert np.exp(got[q, 0]).sum() == pytest.approx(1.0)


def test_the_error_falls_with_the_cube_of_the_step() -> None:
    mean, covariance = problem(6, seed=1)
    now, b = ep_pmin(mean, covariance, tolerance=1e-11), observing(covariance, 2, 1.0)

    def error(scale: float) -> float:
        # The difference of two outcomes: the covariance term, of the fourth order, cancels.
        step = scale * b
        got = updated(now, step[None], np.array([1.0, -1.0]))[:, 0]
        S = covariance - np.outer(step, step)
        again = [ep_pmin(mean + w * step, S, tolerance=1e-11).log_p for w in (1.0, -1.0)]
        return float(np.abs((got[0] - got[1]) - (again[0] - again[1])).max())

    assert error(0.1) / error(0.05) == pytest.approx(8, rel=0.25)


@pytest.mark.parametrize("R", [4, 12])
def test_the_expected_gain_of_a_small_step_is_the_counted_one(R: int) -> None:
    for seed in range(3):
        mean, covariance = problem(R, seed)
        b = observing(covariance, int(np.argmin(mean)), 0.1)
        after, now = expected_entropy(ep_pmin(mean, covariance), b[None], NODES, WEIGHTS)
        assert now - after[0] == pytest.approx(counted_gain(mean, covariance, b), rel=0.15, abs=3e-3)


def test_an_evaluation_that_cannot_teach_changes_exactly_nothing() -> None:
    mean, covariance = problem(9, seed=4)
    now = ep_pmin(mean, covariance)
    b = np.vstack([np.zeros(9), observing(covariance, 0, 0.3)])
    after, entropy_now = expected_entropy(now, b, NODES, WEIGHTS)
    assert after[0] == pytest.approx(entropy_now, abs=1e-12)
    assert after[1] < entropy_now - 1e-3


def test_a_batch_is_its_members_one_by_one() -> None:
    mean, covariance = problem(7, seed=5)
    now = ep_pmin(mean, covariance)
    b = 0.3 * np.random.default_rng(0).normal(size=(600, 7)) * 0.3
    whole, _ = expected_entropy(now, b, NODES, WEIGHTS)
    for i in (0, 255, 256, 599):
        assert whole[i] == pytest.approx(expected_entropy(now, b[[i]], NODES, WEIGHTS)[0][0], rel=1e-12)


def test_wrong_shapes_are_refused() -> None:
    now = ep_pmin(*problem(5, seed=6))
    with pytest.raises(ValueError, match=r"b: expected shape \(M, 5\) for 5 representers, got \(2, 4\)"):
        expected_entropy(now, np.zeros((2, 4)), NODES, WEIGHTS)
    with pytest.raises(ValueError, match="one shape"):
        expected_entropy(now, np.zeros((2, 5)), NODES, WEIGHTS[:2])
