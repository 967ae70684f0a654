"""MCMC over hyperparameters with emcee: one ensemble of walkers, all moved in one batched call.

An ensemble needs many steps to reach a distant mode, and new data move the mode. So each fit first climbs to the mode
with L-BFGS, re-draws the walkers that are far below it, and only then samples.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from fabolas import optimize
from fabolas._types import Array
from fabolas.gp import priors as _priors
from fabolas.gp.priors import Prior

LogDensity = Callable[[Array], Array]  # theta (W, p) -> (W,)


def n_walkers(dimension: int) -> int:
    """The size of an ensemble in p dimensions: even, more than 2 p, at least 12."""
    return max(2 * (dimension + 1), 12)


def initialize(
    log_density: LogDensity,
    priors: tuple[Prior, ...],
    count: int,
    rng: np.random.Generator,
    *,
    draws_per_walker: int = 10,
) -> Array:
    """First walkers (W, p): each is the most probable of several draws from the prior.

    Such walkers are much closer to the posterior than plain prior draws, and still spread out.
    """
    draws = _priors.sample(priors, rng, draws_per_walker * count)
    density = log_density(draws).reshape(count, draws_per_walker)
    best = np.argmax(density, axis=1)
    chosen: Array = draws.reshape(count, draws_per_walker, -1)[np.arange(count), best]
    return chosen


def find_mode(log_density: LogDensity, priors: tuple[Prior, ...], theta: Array, iterations: int) -> Array:
    """Climb from theta (p,) to a mode of the density with L-BFGS, within the priors' support."""
    low, high = np.array([prior.support for prior in priors]).T
    # All coordinates are logarithms or of order one: a line search beyond +-10 only finds overflow.
    return optimize.lbfgs_maximize(
        log_density, theta, np.maximum(low, theta - 10.0), np.minimum(high, theta + 10.0), iterations
    )


def reinitialize(
    log_density: LogDensity, priors: tuple[Prior, ...], walkers: Array, mode: Array, rng: np.random.Generator
) -> Array:
    """The walkers (W, p), those far below the mode replaced by draws around it.

    A sample of a Gaussian posterior lies about p / 2 nats below the mode. A walker that is many standard deviations
    further below is not a sample yet. It is drawn again from a Gaussian with the diagonal curvature at the mode.
    """
    W, p = walkers.shape
    steps = 0.05 * np.eye(p)
    density = log_density(np.vstack([mode, mode + steps, mode - steps, walkers]))
    top, up, down = density[0], density[1 : p + 1], density[p + 1 : 2 * p + 1]
    with np.errstate(invalid="ignore"):
        curvature = (2.0 * top - up - down) / 0.05**2
    # Where the density is flat or ends, use a standard deviation of one: the scale of the priors.
    sd = 1.0 / np.sqrt(np.where(np.isfinite(curvature), np.maximum(curvature, 1.0), 1.0))
    too_low = ~(density[2 * p + 1 :] > top - 0.5 * p - 4.0 * np.sqrt(0.5 * p))
    around = _reflect(mode + sd * rng.normal(size=(W, p)), priors)
    impossible = ~np.isfinite(log_density(around))
    near = mode + 1e-3 * sd * rng.normal(size=(int(impossible.sum()), p))
    around[impossible] = _reflect(near, priors)
    return np.where(too_low[:, None], around, walkers)


def _reflect(theta: Array, priors: tuple[Prior, ...]) -> Array:
    """theta (W, p), reflected at the ends of the priors' support."""
    low, high = np.array([prior.support for prior in priors]).T
    with np.errstate(invalid="ignore"):  # an infinite end reflects nothing
        theta = np.where(theta < low, 2.0 * low - theta, theta)
        theta = np.where(theta > high, 2.0 * high - theta, theta)
    return np.clip(theta, low, high)


def sample(log_density: LogDensity, walkers: Array, steps: int, rng: np.random.Generator) -> Array:
    """The walkers (W, p) after this many steps of the ensemble; deterministic given rng.

    A walker of density zero is first moved next to a possible one.
    """
    if steps <= 0:
        return walkers
    import emcee

    walkers, density = _replace_impossible(log_density, walkers, rng)
    moves = [(emcee.moves.DEMove(), 0.7), (emcee.moves.StretchMove(), 0.3)]
    sampler = emcee.EnsembleSampler(*walkers.shape, log_density, moves=moves, vectorize=True)
    seed = np.random.RandomState(int(rng.integers(2**31))).get_state()
    state = emcee.State(walkers, log_prob=density, random_state=seed)
    states = sampler.sample(state, iterations=steps, store=False, skip_initial_state_check=True)
    coordinates: Array = deque(states, maxlen=1)[0].coords
    return coordinates


def _replace_impossible(
    log_density: LogDensity, walkers: Array, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Walkers (W, p) of positive density, and their log-densities (W,)."""
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
    outside = ~np.isfinite(density[dead])  # the step left the support again
    walkers[dead[outside]] = beside[outside]
    return walkers, log_density(walkers)
