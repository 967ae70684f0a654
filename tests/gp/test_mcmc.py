"""The ensemble against targets whose moments are known."""

import numpy as np

from fabolas.gp import mcmc, priors
from fabolas.gp.priors import Normal, Uniform
from fabolas.surrogate import Spec


def gaussian(theta: np.ndarray) -> np.ndarray:
    """Correlated, far from the origin."""
    precision = np.linalg.inv([[1.0, 0.6], [0.6, 0.5]])
    centred = theta - np.array([2.0, -1.0])
    return -0.5 * np.einsum("wi,ij,wj->w", centred, precision, centred)


def test_moments_of_a_known_target_are_recovered() -> None:
    rng = np.random.default_rng(0)
    walkers = rng.normal(size=(24, 2))
    walkers = mcmc.sample(gaussian, walkers, 200, rng)
    draws = []
    for _ in range(150):
        walkers = mcmc.sample(gaussian, walkers, 10, rng)
        draws.append(walkers)
    collected = np.concatenate(draws)
    np.testing.assert_allclose(collected.mean(axis=0), [2.0, -1.0], atol=0.1)
    np.testing.assert_allclose(np.cov(collected.T), [[1.0, 0.6], [0.6, 0.5]], atol=0.12)


def test_the_same_generator_gives_the_same_walkers() -> None:
    walkers = np.random.default_rng(0).normal(size=(12, 2))
    one = mcmc.sample(gaussian, walkers, 5, np.random.default_rng(7))
    np.random.seed(123)  # noqa: NPY002  the global state is not consulted
    two = mcmc.sample(gaussian, walkers, 5, np.random.default_rng(7))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, mcmc.sample(gaussian, walkers, 5, np.random.default_rng(8)))


def test_no_steps_move_nothing() -> None:
    walkers = np.random.default_rng(0).normal(size=(12, 2))
    np.testing.assert_array_equal(mcmc.sample(gaussian, walkers, 0, np.random.default_rng(0)), walkers)


def test_walkers_that_became_impossible_come_back() -> None:
    def halfspace(theta: np.ndarray) -> np.ndarray:
        return np.where(theta[:, 0] > 0, gaussian(theta), -np.inf)

    walkers = np.random.default_rng(0).normal(size=(12, 2))
    assert (walkers[:, 0] <= 0).any()
    moved = mcmc.sample(halfspace, walkers, 30, np.random.default_rng(1))
    assert np.isfinite(halfspace(moved)).all()


def test_starting_walkers_are_better_than_prior_draws_and_spread_out() -> None:
    rng = np.random.default_rng(0)
    prior = (Normal(0.0, 2.0), Uniform(-4.0, 4.0))
    walkers = mcmc.start(gaussian, prior, 20, rng)
    assert gaussian(walkers).mean() > gaussian(priors.sample(prior, rng, 20)).mean()
    assert (walkers.std(axis=0) > 0.1).all()


def test_the_hyperparameters_of_a_gp_are_found_again() -> None:
    # Data drawn from the model itself: the truth must not be in the far tail of the walkers.
    rng = np.random.default_rng(3)
    model = Spec((0, 0), 1, trend=False).loss_model()
    truth = np.array([[np.log(0.3), np.log(1.5), 0.0, 0.3, -1.0, -4.0, np.log(0.01)]])
    P = rng.random((80, 3))
    kernel_theta, noise_theta = model.split(truth)
    gram = model.kernel.between(P, P)(kernel_theta)[0] + np.diag(model.noise.variance(noise_theta, P)[0])
    y = np.linalg.cholesky(gram) @ rng.normal(size=80)
    f = model.log_density(P, y)
    walkers = mcmc.sample(f, mcmc.start(f, model.priors, 24, rng), 150, rng)
    low, high = np.quantile(walkers, [0.02, 0.98], axis=0)
    inside = (low - 0.3 <= truth[0]) & (truth[0] <= high + 0.3)
    assert inside.all(), (low, truth[0], high)
