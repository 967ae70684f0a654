"""Hyperparameters are integrated out by an ensemble of walkers (emcee), all moved in one batched call.

An ensemble walks slowly towards a distant mode, and new data move the mode. So a fit first climbs to the mode
from its best walker, brings along the walkers that were left behind, and then lets all of them walk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from fabolas import ascent
from fabolas._types import Array
from fabolas.gp import priors as _priors
from fabolas.gp.priors import Prior

LogDensity = Callable[[Array], Array]  # theta (W, p) -> (W,)


def walkers_for(dimension: int) -> int:
    """How many walkers an ensemble in so many dimensions needs: even, and more than twice the dimension."""
    return max(2 * (dimension + 1), 12)


def start(
    log_density: LogDensity,
    priors: tuple[Prior, ...],
    walkers: int,
    rng: np.random.Generator,
    *,
    tries: int = 10,
) -> Array:
    """Walkers (W, p) to begin with: the most probable of many draws from the prior.

    Each of W groups of `tries` draws sends its best, which is far nearer to the posterior than a plain prior
    draw and still spread out.
    """
    draws = _priors.sample(priors, rng, tries * walkers)
    density = log_density(draws).reshape(walkers, tries)
    best = np.argmax(density, axis=1)
    chosen: Array = draws.reshape(walkers, tries, -1)[np.arange(walkers), best]
    return chosen


def climb(log_density: LogDensity, priors: tuple[Prior, ...], theta: Array, iterations: int) -> Array:
    """A more probable theta (p,) than the given one, if there is: L-BFGS within the priors' support."""
    low, high = np.array([prior.support for prior in priors]).T
    # All coordinates are logarithms or of order one: a line search beyond this only finds overflow.
    return ascent.climb(
        log_density, theta, np.maximum(low, theta - 10.0), np.minimum(high, theta + 10.0), iterations
    )


def gather(
    log_density: LogDensity, priors: tuple[Prior, ...], walkers: Array, mode: Array, rng: np.random.Generator
) -> Array:
    """The walkers (W, p), those that were left far below the mode moved to its surroundings.

    A walker of the posterior is about p / 2 nats below the mode. One that is many deviations further below is
    not yet a sample of it; it is redrawn at the curvature of the mode, wide enough to be overdispersed.
    """
    W, p = walkers.shape
    steps = 0.05 * np.eye(p)
    density = log_density(np.vstack([mode, mode + steps, mode - steps, walkers]))
    top, up, down = density[0], density[1 : p + 1], density[p + 1 : 2 * p + 1]
    with np.errstate(invalid="ignore"):
        curvature = (2.0 * top - up - down) / 0.05**2
    # Where the density is flat, or ends, a deviation of one is the scale of the priors.
    sd = 1.0 / np.sqrt(np.where(np.isfinite(curvature), np.maximum(curvature, 1.0), 1.0))
    lost = ~(density[2 * p + 1 :] > top - 0.5 * p - 4.0 * np.sqrt(0.5 * p))
    around = _reflect(mode + sd * rng.normal(size=(W, p)), priors)
    impossible = ~np.isfinite(log_density(around))
    near = mode + 1e-3 * sd * rng.normal(size=(int(impossible.sum()), p))
    around[impossible] = _reflect(near, priors)
    return np.where(lost[:, None], around, walkers)


def _reflect(theta: Array, priors: tuple[Prior, ...]) -> Array:
    """theta (W, p) folded back into the priors' support where it is a little outside."""
    low, high = np.array([prior.support for prior in priors]).T
    with np.errstate(invalid="ignore"):  # an infinite end reflects nothing
        theta = np.where(theta < low, 2.0 * low - theta, theta)
        theta = np.where(theta > high, 2.0 * high - theta, theta)
    return np.clip(theta, low, high)


def sample(log_density: LogDensity, walkers: Array, steps: int, rng: np.random.Generator) -> Array:
    """The walkers (W, p) after so many steps of the ensemble; deterministic given rng.

    Walkers whose density is impossible restart beside a possible one.
    """
    if steps <= 0:
        return walkers
    import emcee

    walkers, density = _revive(log_density, walkers, rng)
    moves = [(emcee.moves.DEMove(), 0.7), (emcee.moves.StretchMove(), 0.3)]
    sampler = emcee.EnsembleSampler(*walkers.shape, log_density, moves=moves, vectorize=True)
    seed = np.random.RandomState(int(rng.integers(2**31))).get_state()
    state = emcee.State(walkers, log_prob=density, random_state=seed)
    walk = sampler.sample(state, iterations=steps, store=False, skip_initial_state_check=True)
    coordinates: Array = deque(walk, maxlen=1)[0].coords
    return coordinates


def _revive(log_density: LogDensity, walkers: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    density = log_density(walkers)
    dead = np.flatnonzero(~np.isfinite(density))
    if len(dead) == 0:
        return walkers, density
    alive = np.flatnonzero(np.isfinite(density))
    assert len(alive), "no walker has a finite density: the prior's draws were finite, so the data are not"
    walkers = walkers.copy()
    beside = walkers[rng.choice(alive, len(dead))]
    walkers[dead] = beside + 1e-3 * rng.normal(size=beside.shape)
    density = log_density(walkers)
    fallen = ~np.isfinite(density[dead])  # the step led out of the support again
    walkers[dead[fallen]] = beside[fallen]
    return walkers, log_density(walkers)
