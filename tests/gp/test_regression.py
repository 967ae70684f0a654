"""The GP against scikit-learn's, refitting, and inputs that break naive ones."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from fabolas.gp import priors
from fabolas.gp.kernels import Amplitude, Matern52, between, uniform_length_prior
from fabolas.gp.priors import Normal, Prior
from fabolas.gp.regression import NOISE_FLOOR, GaussianProcess, Noise, Posterior, cholesky, try_cholesky
from tests.helpers.models import surrogate_prior

MODEL = surrogate_prior((0, 0)).loss_gp()


def data(n: int, d: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    P = rng.random((n, d))
    return P, np.sin(5 * P[:, 0]) + P[:, -1] ** 2 + 0.05 * rng.normal(size=n)


def thetas(model: GaussianProcess, K: int, seed: int = 0) -> np.ndarray:
    return priors.sample(model.priors, np.random.default_rng(seed), K)


def sklearn_pair() -> tuple[Posterior, GaussianProcessRegressor, np.ndarray, np.ndarray]:
    P, y = data(30, 2)
    lengths, amplitude, noise = np.array([0.4, 0.9]), 1.7, 0.03
    model = GaussianProcess(Matern52((0, 0)) * Amplitude(), Noise())
    theta = np.log([[*lengths, amplitude, noise]])
    kernel = ConstantKernel(amplitude) * Matern(lengths, nu=2.5) + WhiteKernel(noise + NOISE_FLOOR)
    reference = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0).fit(P, y)
    return model.posterior(P, y, theta), reference, P, y


def test_posterior_mean_and_covariance_are_scikit_learns() -> None:
    posterior, reference, _, _ = sklearn_pair()
    A = np.random.default_rng(3).random((7, 2))
    mean, covariance = reference.predict(A, return_cov=True)
    at = posterior.project(A)
    np.testing.assert_allclose(posterior.mean(at)[0], mean, rtol=1e-9)
    observed = posterior.covariance(at, at)[0] + np.diag(posterior.noise(A)[0])
    np.testing.assert_allclose(observed, covariance, atol=1e-10)
    np.testing.assert_allclose(
        posterior.variance(at)[0], np.diag(posterior.covariance(at, at)[0]), atol=1e-10
    )


def test_a_mean_alone_is_the_mean_of_the_posterior() -> None:
    P, y = data(20)
    posterior = MODEL.posterior(P, y, thetas(MODEL, 3)).condition(P[:1] + 0.01, np.array([0.3]))
    A = np.random.default_rng(1).random((6, 3))
    np.testing.assert_allclose(
        posterior.mean_of(A), posterior.mean(posterior.project(A)), rtol=1e-6, atol=1e-8
    )


def test_the_evidence_is_scikit_learns_plus_the_prior() -> None:
    posterior, reference, P, y = sklearn_pair()
    model = posterior.model
    ours = model.log_density(P, y)(posterior.theta)[0]
    prior = priors.log_density(model.priors, posterior.theta)[0]
    assert ours - prior == pytest.approx(reference.log_marginal_likelihood_value_, rel=1e-9)


def test_the_evidence_is_the_density_of_a_multivariate_normal() -> None:
    P, y = data(12)
    theta = thetas(MODEL, 5)
    kernel_theta, noise_theta, _ = MODEL.split(theta)
    gram = between(MODEL.kernel, P, P)(kernel_theta)
    noise = MODEL.noise.variance(noise_theta, P)
    prior = priors.log_density(MODEL.priors, theta)
    ours = MODEL.log_density(P, y)(theta)
    for k in range(5):
        density = stats.multivariate_normal(np.zeros(12), gram[k] + np.diag(noise[k])).logpdf(y)
        assert ours[k] - prior[k] == pytest.approx(density, rel=1e-8)


def test_impossible_hyperparameters_have_no_density_and_do_not_disturb_the_others() -> None:
    P, y = data(12)
    model = surrogate_prior((0, 0), length_prior=uniform_length_prior).loss_gp()
    theta = thetas(model, 3)
    f = model.log_density(P, y)
    before = f(theta)
    theta[1, 0] = 99.0  # outside the uniform prior
    after = f(theta)
    assert after[1] == -np.inf
    np.testing.assert_allclose(after[[0, 2]], before[[0, 2]], rtol=1e-12)


def test_a_batch_equals_one_hyperparameter_sample_at_a_time() -> None:
    P, y = data(15)
    theta, A = thetas(MODEL, 4), np.random.default_rng(1).random((6, 3))
    batch = MODEL.posterior(P, y, theta)
    for k in range(4):
        one = MODEL.posterior(P, y, theta[k : k + 1])
        np.testing.assert_allclose(one.mean(one.project(A))[0], batch.mean(batch.project(A))[k], rtol=1e-8)
        np.testing.assert_allclose(
            one.covariance(one.project(A), one.project(A))[0],
            batch.covariance(batch.project(A), batch.project(A))[k],
            atol=1e-9,
        )


def test_conditioning_equals_refitting() -> None:
    P, y = data(20)
    theta, A = thetas(MODEL, 3), np.random.default_rng(1).random((6, 3))
    whole = MODEL.posterior(P, y, theta)
    grown = MODEL.posterior(P[:14], y[:14], theta).condition(P[14:15], y[14:15]).condition(P[15:], y[15:])
    a, b = whole.project(A), grown.project(A)
    np.testing.assert_allclose(grown.mean(b), whole.mean(a), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(grown.covariance(b, b), whole.covariance(a, a), atol=1e-7)


def test_a_pending_point_takes_variance_and_leaves_the_mean() -> None:
    P, y = data(20)
    posterior = MODEL.posterior(P, y, thetas(MODEL, 3))
    A = np.random.default_rng(1).random((6, 3))
    waiting = posterior.condition(A[:2])
    before, after = posterior.project(A), waiting.project(A)
    np.testing.assert_allclose(waiting.mean(after), posterior.mean(before), atol=1e-10)
    # Whatever the outcome, the variance is that of a GP which has seen it.
    seen = posterior.condition(A[:2], np.array([3.0, -1.0]))
    np.testing.assert_allclose(waiting.variance(after), seen.variance(seen.project(A)), atol=1e-12)
    assert (waiting.variance(after)[:, :2] <= posterior.variance(before)[:, :2]).all()


def test_a_rank_one_update_equals_refitting_with_the_outcome() -> None:
    P, y = data(20)
    theta = thetas(MODEL, 3)
    posterior = MODEL.posterior(P, y, theta)
    A, new, outcome = np.random.default_rng(1).random((6, 3)), np.array([[0.3, 0.3, 0.2]]), np.array([0.7])
    at, there = posterior.project(A), posterior.project(new)
    sd = np.sqrt(posterior.variance(there) + posterior.noise(new))  # (K, 1)
    b = posterior.covariance(at, there)[..., 0] / sd  # (K, 6)
    w = (outcome - posterior.mean(there)) / sd  # (K, 1)
    refitted = MODEL.posterior(np.concatenate([P, new]), np.concatenate([y, outcome]), theta)
    again = refitted.project(A)
    np.testing.assert_allclose(posterior.mean(at) + b * w, refitted.mean(again), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(
        posterior.covariance(at, at) - b[:, :, None] * b[:, None, :],
        refitted.covariance(again, again),
        atol=1e-7,
    )


def test_covariances_keep_their_sign() -> None:
    # An ancestor clipped posterior covariances to be positive; two points on both sides of an observation of a
    # smooth function with a trend are negatively correlated a posteriori somewhere.
    P, y = data(20)
    posterior = MODEL.posterior(P, y, thetas(MODEL, 5))
    A = np.random.default_rng(1).random((40, 3))
    assert (posterior.covariance(posterior.project(A), posterior.project(A)) < 0).any()


@pytest.mark.parametrize("n", [1, 2, 10, 150])
@pytest.mark.parametrize("d", [1, 6, 20])
def test_every_size_and_dimension_gives_finite_predictions(n: int, d: int) -> None:
    model = surrogate_prior((0,) * d).loss_gp()
    P, y = data(n, d + 1)
    theta = thetas(model, 6)
    assert not np.isnan(model.log_density(P, y)(theta)).any()
    posterior = model.posterior(P, y, theta)
    at = posterior.project(np.random.default_rng(1).random((5, d + 1)))
    assert np.isfinite(posterior.mean(at)).all()
    assert (posterior.variance(at) >= 0).all()


def test_many_duplicates_and_vanishing_noise_are_factorised() -> None:
    P = np.repeat(np.random.default_rng(0).random((3, 3)), 20, axis=0)
    y = np.repeat([0.0, 1.0, -1.0], 20)
    theta = thetas(MODEL, 8)
    theta[:, -1] = -38.0  # noise variance e^-38
    posterior = MODEL.posterior(P, y, theta)
    at = posterior.project(P[::20])
    np.testing.assert_allclose(posterior.mean(at), np.tile([0.0, 1.0, -1.0], (8, 1)), atol=1e-2)


def test_cholesky_mends_what_rounding_made_indefinite() -> None:
    rng = np.random.default_rng(0)
    B = rng.normal(size=(12, 3))
    semi = B @ B.T  # rank three
    matrices = np.stack([semi - 1e-13 * np.eye(12), semi, np.zeros((12, 12))])
    assert not try_cholesky(matrices)[1].all()
    L = cholesky(matrices)
    assert np.isfinite(L).all()
    np.testing.assert_allclose(L @ np.swapaxes(L, 1, 2), matrices, atol=1e-10)


def test_noise_that_depends_on_the_size_is_a_share_of_itself_at_the_target() -> None:
    noise = Noise(subset_noise=lambda points: 1.0 - points[:, 2])
    theta = np.array([[np.log(0.01), np.log(0.2 / 0.8)]])  # a fifth remains
    variance = noise.variance(theta, np.array([[0.1, 0.1, 0.0], [0.1, 0.1, 0.5], [0.1, 0.1, 1.0]]))
    np.testing.assert_allclose(variance[0] - NOISE_FLOOR, [0.01, 0.006, 0.002])


@dataclass(frozen=True)
class Slope:
    """theta * x: a mean function with one hyperparameter."""

    @property
    def priors(self) -> tuple[Prior, ...]:
        return (Normal(0.0, 1.0),)

    def evaluate(self, theta: np.ndarray, points: np.ndarray) -> np.ndarray:
        return theta * points[:, 0]


def test_a_mean_function_is_a_zero_mean_process_of_the_residuals() -> None:
    P, y = data(12)
    plain, sloped = MODEL, GaussianProcess(MODEL.kernel, MODEL.noise, Slope())
    theta = thetas(plain, 2)
    slopes = np.array([[0.7], [-1.3]])
    both = np.column_stack([theta, slopes])
    A = np.random.default_rng(1).random((5, 3))
    posterior = sloped.posterior(P, y, both).condition(A[:1], np.array([0.4]))
    for k in range(2):
        slope = slopes[k, 0]
        residual = plain.posterior(P, y - slope * P[:, 0], theta[[k]])
        residual = residual.condition(A[:1], np.array([0.4 - slope * A[0, 0]]))
        expected = residual.mean_of(A)[0] + slope * A[:, 0]
        np.testing.assert_allclose(posterior.mean_of(A)[k], expected, rtol=1e-8)
        np.testing.assert_allclose(posterior.mean(posterior.project(A))[k], expected, rtol=1e-8)
        density = (
            plain.log_density(P, y - slope * P[:, 0])(theta[[k]])[0]
            - 0.5 * slope**2
            - 0.5 * np.log(2 * np.pi)
        )
        np.testing.assert_allclose(sloped.log_density(P, y)(both)[k], density, rtol=1e-8)


def test_one_step_ahead_is_the_prediction_from_the_observations_before() -> None:
    P, y = data(12)
    theta = thetas(MODEL, 3)
    mean, variance = MODEL.posterior(P, y, theta).one_step_ahead()
    for i in (1, 5, 11):
        before = MODEL.posterior(P[:i], y[:i], theta)
        at = before.project(P[i : i + 1])
        assert mean[:, i] == pytest.approx(before.mean(at)[:, 0], abs=1e-6)
        expected = before.variance(at)[:, 0] + before.noise(P[i : i + 1])[:, 0]
        assert variance[:, i] == pytest.approx(expected, rel=1e-5)


def test_one_step_ahead_is_the_same_after_conditioning() -> None:
    P, y = data(12)
    theta = thetas(MODEL, 3)
    whole = MODEL.posterior(P, y, theta).one_step_ahead()
    parts = MODEL.posterior(P[:8], y[:8], theta).condition(P[8:], y[8:]).one_step_ahead()
    for a, b in zip(whole, parts, strict=True):
        assert a == pytest.approx(b, rel=1e-5, abs=1e-6)
