"""The ensemble against targets whose moments are known."""

import numpy as np

from fabolas.gp import mcmc, priors
from fabolas.gp.kernels import between
from fabolas.gp.priors import Normal, Uniform
from tests.helpers.models import surrogate_prior


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
    walkers = mcmc.initialize(gaussian, prior, 20, rng)
    assert gaussian(walkers).mean() > gaussian(priors.sample(prior, rng, 20)).mean()
    assert (walkers.std(axis=0) > 0.1).all()


def test_the_hyperparameters_of_a_gp_are_found_again() -> None:
    # Data drawn from the model itself: the truth must not be in the far tail of the walkers.
    rng = np.random.default_rng(3)
    model = surrogate_prior((0, 0), shared_trend=False, noise_by_size=False).loss_gp()
    truth = np.array([[np.log(0.3), np.log(1.5), 0.0, 0.3, -1.0, -4.0, np.log(0.01)]])
    P = rng.random((80, 3))
    kernel_theta, noise_theta, _ = model.split(truth)
    gram = between(model.kernel, P, P)(kernel_theta)[0] + np.diag(model.noise.variance(noise_theta, P)[0])
    y = np.linalg.cholesky(gram) @ rng.normal(size=80)
    f = model.log_density(P, y)
    walkers = mcmc.sample(f, mcmc.initialize(f, model.priors, 24, rng), 150, rng)
    low, high = np.quantile(walkers, [0.02, 0.98], axis=0)
    inside = (low - 0.3 <= truth[0]) & (truth[0] <= high + 0.3)
    assert inside.all(), (low, truth[0], high)


def quadratic_with_mode_on_the_edge(theta: np.ndarray) -> np.ndarray:
    value = -0.5 * np.sum((theta - np.array([3.0, 0.2])) ** 2, axis=1) / 0.01
    return np.where((np.abs(theta[:, 0]) <= 1) & (np.abs(theta[:, 1]) <= 1), value, -np.inf)


def test_climbing_finds_the_mode_within_the_support() -> None:
    support = (Uniform(-1.0, 1.0), Uniform(-1.0, 1.0))
    mode = mcmc.find_mode(quadratic_with_mode_on_the_edge, support, np.array([-0.5, -0.5]), 30)
    np.testing.assert_allclose(mode, [1.0, 0.2], atol=1e-3)


def test_climbing_never_ends_below_where_it_began() -> None:
    rng = np.random.default_rng(0)
    flat = (Normal(0.0, 5.0), Normal(0.0, 5.0))
    for begin in rng.normal(0, 5, (10, 2)):
        mode = mcmc.find_mode(gaussian, flat, begin, 3)
        assert gaussian(mode[None])[0] >= gaussian(begin[None])[0]


def test_walkers_left_behind_are_gathered_and_samples_are_left_alone() -> None:
    rng = np.random.default_rng(0)
    flat = (Normal(0.0, 5.0), Normal(0.0, 5.0))
    samples = rng.multivariate_normal([2.0, -1.0], [[1.0, 0.6], [0.6, 0.5]], 12)
    walkers = np.concatenate([samples, samples + 30.0])
    gathered = mcmc.reinitialize(gaussian, flat, walkers, np.array([2.0, -1.0]), rng)
    np.testing.assert_array_equal(gathered[:12], samples)
    assert (gaussian(gathered[12:]) > -30).all()


def test_gathering_at_an_edge_leaves_every_walker_possible() -> None:
    support = (Uniform(-1.0, 1.0), Uniform(-1.0, 1.0))
    walkers = np.full((16, 2), 7.0)
    gathered = mcmc.reinitialize(
        quadratic_with_mode_on_the_edge, support, walkers, np.array([1.0, 0.2]), np.random.default_rng(0)
    )
    assert np.isfinite(quadratic_with_mode_on_the_edge(gathered)).all()
