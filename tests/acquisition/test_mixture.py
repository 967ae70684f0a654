"""Information under the mixture of hyperparameter samples: brute force, limits, and what averaging overlooks."""

import numpy as np
import pytest
from scipy.stats import norm

from fabolas.acquisition import entropy as of_each
from fabolas.acquisition import mixture
from fabolas.acquisition.entropy import Draws, Representers
from fabolas.acquisition.pmin import entropy, pmin
from fabolas.gp.kernels import Amplitude, Matern52
from fabolas.gp.process import Model, Noise, Posterior

R = 12
MODEL = Model(Matern52((0, 0)) * Amplitude(), Noise())


def process(theta: np.ndarray, n: int = 8) -> Posterior:
    rng = np.random.default_rng(0)
    P = rng.random((n, 2))
    y = np.sin(6 * P[:, 0]) + (P[:, 1] - 0.4) ** 2
    return MODEL.posterior(P, (y - y.mean()) / y.std(), theta)


def apart() -> Posterior:
    """Three samples that differ in how far they see and how noisy they take outcomes to be."""
    return process(np.log([[0.2, 0.6, 1.0, 0.01], [0.5, 0.3, 2.0, 0.1], [1.0, 1.0, 0.5, 0.001]]))


def representers(posterior: Posterior) -> Representers:
    return Representers.of(posterior, np.random.default_rng(1).random((R, 2)))


def brute_force(posterior: Posterior, reps: Representers, point: np.ndarray) -> float:
    """The drop of the mixture's entropy: outcomes from the mixture, every sample refitted with each of them."""
    Z = np.random.default_rng(5).normal(size=(20_000, R))
    K = len(posterior.theta)
    there = posterior.project(point[None])
    mean = posterior.mean(there)[:, 0]
    sd = np.sqrt(posterior.variance(there) + posterior.noise(point[None]))[:, 0]
    now = pmin(reps.mean, posterior.covariance(reps.at, reps.at), Z).mean(axis=0)
    drop = entropy(now)
    for source in range(K):
        for w in norm.ppf((np.arange(15) + 0.5) / 15):
            y = mean[source] + sd[source] * w
            weights = norm.pdf(y, mean, sd) / norm.pdf(y, mean, sd).sum()
            after = np.zeros(R)
            for k in range(K):
                before = posterior.L[k] @ posterior.beta[k]
                refitted = MODEL.posterior(
                    np.vstack([posterior.points, point]), np.append(before, y), posterior.theta[k : k + 1]
                )
                at = refitted.project(reps.at.points)
                after += weights[k] * pmin(refitted.mean(at), refitted.covariance(at, at), Z[:4000])[0]
            drop -= entropy(after) / (15 * K)
    return float(drop)


@pytest.mark.parametrize("x", [(0.9, 0.1), (0.3, 0.7), (0.6, 0.9)])
def test_the_gain_equals_brute_force_over_refitted_posteriors(x: tuple[float, float]) -> None:
    posterior = apart()
    reps = representers(posterior)
    point = np.array(x)
    truth = brute_force(posterior, reps, point)
    counted = mixture.by_sampling(reps, Draws.of(reps, 4096, np.random.default_rng(0)), Q=11)(point[None])
    assert counted[0] == pytest.approx(truth, abs=0.03)
    few = mixture.by_sampling(reps, Draws.of(reps, 192, np.random.default_rng(0)), Q=5)(point[None])
    assert few[0] == pytest.approx(truth, rel=0.25, abs=0.05)
    assert mixture.by_ep(reps, Q=11)(point[None])[0] == pytest.approx(truth, abs=0.08)


def test_equal_samples_are_one_sample() -> None:
    theta = np.log([[0.3, 0.5, 1.0, 0.01]])
    points = np.random.default_rng(2).random((20, 2))
    reps = {K: representers(process(np.tile(theta, (K, 1)))) for K in (1, 8)}
    draws = {K: Draws.of(reps[K], 64, np.random.default_rng(0)) for K in (1, 8)}
    one, eight = (mixture.by_moments(reps[K], draws[K])(points) for K in (1, 8))
    np.testing.assert_allclose(eight, one, rtol=1e-6)
    np.testing.assert_allclose(one, of_each.by_moments(reps[1], draws[1])(points)[0], rtol=1e-6)
    one, eight = (mixture.by_sampling(reps[K], draws[K], Q=8)(points) for K in (1, 8))
    np.testing.assert_allclose(eight, one, atol=1e-9)
    # And one sample's information is the one that it expects by itself.
    alone = of_each.by_sampling(reps[1], draws[1], Q=9)(points)[0]
    np.testing.assert_allclose(one, alone, atol=0.06)


def worlds(K: int, others: int) -> tuple[Representers, np.ndarray]:
    """K samples of the same kernel, the last `others` of them given the opposite world, each certain of the best.

    Returns:
        Two representers, the best of either world, and the first of them.
    """
    at = np.random.default_rng(3).random((6, 2))
    theta = np.tile(np.log([0.5, 0.5, 1.0, 1e-4]), (K, 1))
    world = np.sin(5 * at[:, 0])
    posterior = MODEL.posterior(at, world, theta)
    sign = np.where(np.arange(K) < K - others, 1.0, -1.0)
    both = Posterior(MODEL, theta, at, posterior.L, sign[:, None] * posterior.beta)
    best = at[[np.argmin(world), np.argmax(world)]]
    return Representers.of(both, best), best[:1]


@pytest.mark.parametrize(("K", "others"), [(2, 1), (5, 1), (8, 1), (6, 5), (8, 4)])
def test_samples_that_are_certain_of_different_things_have_something_to_learn(K: int, others: int) -> None:
    reps, point = worlds(K, others)
    draws = Draws.of(reps, 64, np.random.default_rng(0))
    assert (draws.pmin.max(axis=1) > 0.999).all()
    assert of_each.by_sampling(reps, draws)(point).mean() < 1e-6  # each by itself expects to learn nothing
    share = np.array([others, K - others]) / K
    truth = float(entropy(share))  # the outcome tells who is right
    for information in (mixture.by_sampling(reps, draws, 3), mixture.by_ep(reps, 3)):
        assert information(point)[0] == pytest.approx(truth, abs=1e-3)
    screened = mixture.by_moments(reps, draws)(point)[0]
    assert 0.5 * truth < screened <= truth * (1 + 1e-9)


def test_an_outcome_that_all_samples_predict_alike_and_that_tells_nothing_has_no_gain() -> None:
    # A repetition of what was measured without noise: everybody knows the outcome.
    posterior = process(np.log([[0.2, 0.6, 1.0, 1e-9], [0.5, 0.3, 2.0, 1e-9]]))
    reps = representers(posterior)
    draws = Draws.of(reps, 512, np.random.default_rng(0))
    for information in (mixture.by_sampling(reps, draws), mixture.by_moments(reps, draws)):
        assert information(posterior.points[:3]).max() < 0.005


def test_moments_rank_candidates_as_counting_does() -> None:
    reps = representers(apart())
    points = np.random.default_rng(2).random((150, 2))
    truth = mixture.by_sampling(reps, Draws.of(reps, 4096, np.random.default_rng(0)), Q=7)(points)
    screened = mixture.by_moments(reps, Draws.of(reps, 256, np.random.default_rng(1)))(points)
    assert np.corrcoef(truth, screened)[0, 1] > 0.8
    assert truth[np.argsort(-screened)[:15]].max() >= 0.9 * truth.max()


def test_a_batch_of_candidates_equals_one_by_one() -> None:
    reps = representers(apart())
    draws = Draws.of(reps, 128, np.random.default_rng(0))
    points = np.random.default_rng(2).random((7, 2))
    for information in (mixture.by_sampling(reps, draws), mixture.by_moments(reps, draws)):
        one_by_one = np.concatenate([information(p[None]) for p in points])
        np.testing.assert_allclose(information(points), one_by_one, atol=1e-6)
