"""Hyperparameters are integrated out by an ensemble of walkers (emcee), all moved in one batched call."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fabolas._types import Array
from fabolas.gp import priors as _priors
from fabolas.gp.priors import Prior

LogDensity = Callable[[Array], Array]  # theta (W, p) -> (W,)


def walkers_for(dimension: int) -> int:
    """How many walkers an ensemble in so many dimensions needs: even, and more than twice the dimension."""
    return max(2 * (dimension + 1), 12)


def start(log_density: LogDensity, priors: tuple[Prior, ...], walkers: int, rng: np.random.Generator) -> Array:
    """Walkers (W, p) to begin with: the most probable of many draws from the prior.

    Each of W groups of ten draws sends its best, which is far nearer to the posterior than a plain prior draw
    and still spread out.
    """
    draws = _priors.sample(priors, rng, 10 * walkers)
    density = log_density(draws).reshape(walkers, 10)
    best = np.argmax(density, axis=1)
    return draws.reshape(walkers, 10, -1)[np.arange(walkers), best]


def sample(log_density: LogDensity, walkers: Array, steps: int, rng: np.random.Generator) -> Array:
    """The walkers (W, p) after so many steps of the ensemble; deterministic given rng.

    Walkers whose density has become impossible under new data restart beside a possible one.
    """
    if steps <= 0:
        return walkers
    import emcee

    walkers = _revive(log_density, walkers, rng)
    sampler = emcee.EnsembleSampler(len(walkers), walkers.shape[1], log_density, vectorize=True)
    seed = np.random.RandomState(int(rng.integers(2**31))).get_state()
    state = emcee.State(walkers, random_state=seed)
    for state in sampler.sample(state, iterations=steps, store=False, skip_initial_state_check=True):
        pass
    coordinates: Array = state.coords
    return coordinates


def _revive(log_density: LogDensity, walkers: Array, rng: np.random.Generator) -> Array:
    density = log_density(walkers)
    dead = np.flatnonzero(~np.isfinite(density))
    if len(dead) == 0:
        return walkers
    alive = np.flatnonzero(np.isfinite(density))
    assert len(alive), "no walker has a finite density: the prior's draws were finite, so the data are not"
    walkers = walkers.copy()
    spread = walkers[alive].std(axis=0) + 1e-3
    walkers[dead] = walkers[rng.choice(alive, len(dead))] + 0.1 * spread * rng.normal(size=walkers[dead].shape)
    return walkers
