"""Expected information: martingale, signs, limits, and brute force by refitting with drawn outcomes."""

import numpy as np
import pytest
from scipy.stats import norm

from fabolas.acquisition.entropy import (
    PosteriorSamples,
    entropy,
    frequencies,
    gauss_hermite,
    gaussian_information,
    lowest,
    monte_carlo_information,
)
from fabolas.acquisition.representers import Representers
from fabolas.gp import priors
from fabolas.gp.kernels import Amplitude, Matern52
from fabolas.gp.regression import GaussianProcess, Noise, Posterior
from tests.helpers.models import surrogate_prior
from tests.helpers.pmin import pmin

K, R = 4, 30


def posterior(seed: int = 0, n: int = 12) -> Posterior:
    """A posterior over two parameters and a size, with moderate hyperparameters."""
    rng = np.random.default_rng(seed)
    P = rng.random((n, 3))
    P[:, 2] *= 0.7
    y = np.sin(6 * P[:, 0]) + (P[:, 1] - 0.4) ** 2 + 0.5 * (1 - P[:, 2]) ** 2
    y = (y - y.mean()) / y.std()
    model = surrogate_prior((0, 0), noise_by_size=False).loss_gp()
    theta = np.tile([np.log(0.3), np.log(0.6), 0.0, 0.2, -1.0, -3.0, np.log(0.01)], (K, 1))
    return model.posterior(P, y, theta + 0.2 * rng.normal(size=theta.shape))


def representers(process: Posterior, seed: int = 1) -> Representers:
    x = np.random.default_rng(seed).random((R, 2))
    return Representers.at_points(process, np.column_stack([x, np.ones(R)]))


def candidates(n: int = 40, seed: int = 2) -> np.ndarray:
    return np.random.default_rng(seed).random((n, 3))


def test_outcomes_integrate_polynomials_against_the_normal() -> None:
    nodes, weights = gauss_hermite(5)
    moments = [weights @ nodes**p for p in range(9)]
    np.testing.assert_allclose(moments, [1, 0, 1, 0, 3, 0, 15, 0, 105], atol=1e-10)


def test_expected_p_min_after_an_evaluation_is_p_min_before() -> None:
    process = posterior()
    reps = representers(process)
    draws = PosteriorSamples.draw(reps, 4096, np.random.default_rng(0))
    b, a = reps.influence(candidates(6))
    nodes, weights = gauss_hermite(9)
    rest = np.sqrt(np.maximum(1 - (a**2).sum(axis=2), 0))
    e = a @ draws.Z.T + rest[..., None] * draws.rest
    for m in range(6):
        moved = (
            draws.values[:, None] + (nodes[:, None] - e[:, m, None, :])[..., None] * b[:, m, None, None, :]
        )
        expected = np.einsum("q,kqr->kr", weights, frequencies(lowest(moved), R))
        assert 0.5 * np.abs(expected - draws.pmin).sum(axis=1).max() < 0.03


def test_the_gain_equals_brute_force_over_refitted_posteriors() -> None:
    process = posterior()
    reps = representers(process)
    points = candidates(4)
    ours = monte_carlo_information(reps, PosteriorSamples.draw(reps, 4096, np.random.default_rng(0)), 9)(
        points
    )
    rng = np.random.default_rng(5)
    Z = rng.normal(size=(20_000, R))
    now = entropy(pmin(reps.mean, process.covariance(reps.at, reps.at), Z))
    for m, point in enumerate(points):
        there = process.project(point[None])
        mean = process.mean(there)[:, 0]
        sd = np.sqrt(process.variance(there) + process.noise(point[None]))[:, 0]
        after = np.zeros(K)
        for w in norm.ppf((np.arange(40) + 0.5) / 40):
            for k in range(K):
                # A GP refitted with the outcome, one hyperparameter sample at a time.
                y = process.L[k] @ process.beta[k]
                refitted = process.model.posterior(
                    np.concatenate([process.points, point[None]]),
                    np.concatenate([y, [mean[k] + sd[k] * w]]),
                    process.theta[k : k + 1],
                )
                at = refitted.project(reps.at.points)
                after[k] += entropy(pmin(refitted.mean(at), refitted.covariance(at, at), Z[:5000]))[0] / 40
        np.testing.assert_allclose(ours[:, m].mean(), (now - after).mean(), atol=0.02)


def test_the_gain_is_not_negative_beyond_the_error_of_counting() -> None:
    reps = representers(posterior())
    gain = monte_carlo_information(reps, PosteriorSamples.draw(reps, 256, np.random.default_rng(0)))(
        candidates(200)
    )
    # Counting S = 256 samples over R = 30 labels: the entropy after is over- or underestimated by a few hundredths.
    assert gain.min() > -0.06
    assert gain.mean(axis=0).min() > -0.03


def test_an_evaluation_without_covariance_to_the_target_has_exactly_no_gain() -> None:
    model = GaussianProcess(Matern52((2, 0)) * Amplitude(), Noise())
    # A length scale so short that the two categories have nothing to do with each other.
    theta = np.array([[-4.0, np.log(0.3), 0.0, np.log(0.01)]])
    P = np.array([[0.25, 0.2], [0.25, 0.8]])
    process = model.posterior(P, np.array([0.1, -0.2]), theta)
    at = np.column_stack([np.full(8, 0.25), np.linspace(0, 1, 8)])
    reps = Representers.at_points(process, at)
    elsewhere = np.column_stack([np.full(5, 0.75), np.linspace(0, 1, 5)])
    draws = PosteriorSamples.draw(reps, 256, np.random.default_rng(0))
    np.testing.assert_array_equal(monte_carlo_information(reps, draws)(elsewhere), 0.0)
    np.testing.assert_allclose(gaussian_information(reps, draws)(elsewhere), 0.0, atol=1e-12)
    assert monte_carlo_information(reps, draws)(np.array([[0.25, 0.5]])).max() > 0.05


def test_the_gain_is_largest_where_the_targets_variance_is() -> None:
    model = GaussianProcess(Matern52((0,)) * Amplitude(), Noise())
    theta = np.array([[np.log(0.1), 0.0, np.log(1e-4)]])
    seen = np.linspace(0, 0.7, 15)[:, None]  # everything left of 0.7 is known, and all of it is equal
    process = model.posterior(seen, np.zeros(15), theta)
    reps = Representers.at_points(process, np.linspace(0, 1, 40)[:, None])
    grid = np.linspace(0, 1, 51)[:, None]
    gain = monte_carlo_information(reps, PosteriorSamples.draw(reps, 512, np.random.default_rng(0)))(grid)[0]
    assert grid[np.argmax(gain), 0] > 0.75


def test_a_larger_subset_teaches_more_about_the_target() -> None:
    # Without noise and trend: where losses on small subsets vary more, or the level of those at the target is not
    # known yet, small subsets can be the clearer signal.
    process = posterior()
    theta = process.theta.copy()
    theta[:, -1] = np.log(1e-6)
    y = process.L[0] @ process.beta[0]
    reps = representers(
        surrogate_prior((0, 0), shared_trend=False, noise_by_size=False)
        .loss_gp()
        .posterior(process.points, y, theta)
    )
    information = monte_carlo_information(reps, PosteriorSamples.draw(reps, 1024, np.random.default_rng(0)))
    x = np.random.default_rng(7).random((20, 2))
    small, large = (information(np.column_stack([x, np.full(20, u)])).mean() for u in (0.0, 1.0))
    assert large > small


def test_the_papers_form_is_the_gain_and_a_constant() -> None:
    reps = representers(posterior())
    draws = PosteriorSamples.draw(reps, 256, np.random.default_rng(0))
    points = candidates(10)
    constant = np.log(R) - entropy(draws.pmin)[:, None]
    for make in (monte_carlo_information, gaussian_information):
        np.testing.assert_allclose(
            make(reps, draws, relative_to_uniform=True)(points),
            make(reps, draws)(points) + constant,
            atol=1e-12,
        )


@pytest.mark.slow
def test_moments_rank_candidates_as_counting_does() -> None:
    reps = representers(posterior())
    points = candidates(150)
    truth = monte_carlo_information(reps, PosteriorSamples.draw(reps, 4096, np.random.default_rng(0)), 7)(
        points
    ).mean(axis=0)
    screened = gaussian_information(reps, PosteriorSamples.draw(reps, 256, np.random.default_rng(1)))(
        points
    ).mean(axis=0)
    assert np.corrcoef(truth, screened)[0, 1] > 0.9
    assert truth[np.argsort(-screened)[:10]].max() >= 0.95 * truth.max()


def test_a_batch_of_candidates_equals_one_by_one() -> None:
    reps = representers(posterior())
    draws = PosteriorSamples.draw(reps, 128, np.random.default_rng(0))
    points = candidates(7)
    for make in (monte_carlo_information, gaussian_information):
        information = make(reps, draws)
        one_by_one = np.concatenate([information(p[None]) for p in points], axis=1)
        np.testing.assert_allclose(information(points), one_by_one, atol=2.5 / 128)


def test_influence_is_the_covariance_over_the_outcomes_deviation() -> None:
    process = posterior()
    reps = representers(process)
    points = candidates(5)
    b, a = reps.influence(points)
    at = process.project(points)
    cross = process.covariance(reps.at, at)
    sd = np.sqrt(process.variance(at) + process.noise(points))
    np.testing.assert_allclose(b, np.swapaxes(cross, 1, 2) / sd[..., None], atol=1e-10)
    np.testing.assert_allclose(np.einsum("krs,kms->kmr", reps.factor, a), b, atol=1e-6)
    assert (np.sum(a**2, axis=2) <= 1 + 1e-6).all()


@pytest.mark.parametrize("seed", range(3))
def test_priors_draws_give_finite_information(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = surrogate_prior((0, 3)).loss_gp()
    P = rng.random((9, 3))
    process = model.posterior(P, rng.normal(size=9), priors.sample(model.priors, rng, 6))
    reps = representers(process)
    draws = PosteriorSamples.draw(reps, 64, rng)
    for make in (monte_carlo_information, gaussian_information):
        assert np.isfinite(make(reps, draws)(candidates(30))).all()
