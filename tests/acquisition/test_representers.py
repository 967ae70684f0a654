"""Representers: where the best may be."""

import numpy as np

from fabolas.acquisition.representers import improvement_representers, neighbourhood, thompson_representers
from fabolas.gp.kernels import Amplitude, Matern52
from fabolas.gp.regression import GaussianProcess, Noise, Posterior

MODEL = GaussianProcess(Matern52((0,)) * Amplitude(), Noise())
POOL = np.linspace(0, 1, 101)[:, None]


def posterior() -> Posterior:
    """Low around 0.3, high elsewhere, known well on the left and unknown right of 0.8."""
    x = np.linspace(0, 0.8, 17)[:, None]
    y = 10 * (x[:, 0] - 0.3) ** 2
    theta = np.tile(np.log([[0.2, 1.0, 1e-4]]), (3, 1))
    return MODEL.posterior(x, (y - y.mean()) / y.std(), theta)


def test_thompson_sampling_finds_the_valley_and_what_is_unknown() -> None:
    chosen = thompson_representers(posterior(), POOL, np.zeros(3), 15, np.random.default_rng(0))[:, 0]
    assert len(np.unique(chosen)) == 15
    assert (np.abs(chosen - 0.3) < 0.1).sum() >= 5
    assert not ((chosen > 0.5) & (chosen < 0.75)).any()


def test_a_pool_smaller_than_asked_for_is_returned_whole() -> None:
    chosen = thompson_representers(posterior(), POOL[::20], np.zeros(3), 15, np.random.default_rng(0))
    assert len(chosen) == 6


def test_draws_by_improvement_follow_its_density() -> None:
    process = posterior()
    best = process.mean(process.project(POOL)).min(axis=1)
    rng = np.random.default_rng(0)
    draws = np.concatenate([improvement_representers(process, POOL, best, 1, rng) for _ in range(400)])[:, 0]
    assert np.mean((np.abs(draws - 0.3) < 0.1) | (draws > 0.8)) > 0.95


def test_neighbours_stay_in_the_cube_and_half_move_in_one_coordinate() -> None:
    centre = np.array([[0.01, 0.5, 0.99]])
    near = neighbourhood(centre, 1000, (0.2, 0.05), (0, 0, 0), np.random.default_rng(0))
    assert near.min() >= 0
    assert near.max() <= 1
    moved = (near != centre).sum(axis=1)
    assert 0.4 < np.mean(moved == 1) < 0.6


def test_every_category_is_a_neighbour() -> None:
    near = neighbourhood(np.array([[0.05, 0.5]]), 2000, (0.05,), (10, 0), np.random.default_rng(0))
    categories = np.bincount(np.floor(near[:, 0] * 10).astype(int), minlength=10)
    assert (categories[1:] > 20).all()
    assert categories[0] > 1000
