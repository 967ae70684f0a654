"""Problems with a known truth: a loss surface that depends on the subset size, and a cost that does too.

Each is made from a seed, so that a family of them can be drawn: other optima, other valleys, other size effects.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import fabolas

Config = dict[str, Any]


@dataclass(frozen=True)
class Problem:
    """A tuning problem whose loss and cost are formulas.

    Attributes:
        surface: x (d,), s = size / target -> expected loss.
        seconds: x (d,), s -> seconds.
        noise: deviation of the logarithm of a measured loss at the target; it grows like 1/sqrt(s).
        best: the lowest expected loss at the target.
        chance: further deviation of that logarithm, the same at all sizes: stochastic training, such as a network's
            whose seed is not fixed.
    """

    name: str
    space: dict[str, Any]
    fidelities: dict[str, tuple[int, int]]
    surface: Callable[[np.ndarray, float], float] = field(repr=False)
    seconds: Callable[[np.ndarray, float], float] = field(repr=False)
    noise: float
    best: float
    full_cost: float
    chance: float = 0.0

    def __call__(self, config: Config, size: float, rng: np.random.Generator) -> tuple[float, float]:
        """A measured loss and its cost in seconds."""
        x, s = self._x(config), size / self.fidelities["size"][1]
        deviation = np.hypot(self.noise / np.sqrt(s), self.chance)
        loss = self.surface(x, s) * np.exp(rng.normal() * deviation)
        return float(loss), float(self.seconds(x, s) * np.exp(0.05 * rng.normal()))

    def stochastic(self, chance: float) -> Problem:
        """The same problem with stochastic training."""
        return replace(self, name=f"{self.name}~{chance:g}", chance=chance)

    def truth(self, config: Config) -> float:
        """The expected loss on all the data."""
        return float(self.surface(self._x(config), 1.0))

    def _x(self, config: Config) -> np.ndarray:
        """The configuration as numbers: a category is its place in the list."""
        return np.array(
            [
                spec.index(config[name]) if isinstance(spec, list) else config[name]
                for name, spec in self.space.items()
            ],
            dtype=float,
        )


def _stream(seed: int) -> np.random.Generator:
    """A stream of its own: numpy's of `seed` alone is that of [seed, 0], a study's first suggestion."""
    return np.random.default_rng([seed, 2017])


def _cube(d: int) -> dict[str, Any]:
    return {f"x{i}": fabolas.Float(0.0, 1.0) for i in range(d)}


def svm_like(seed: int = 0, full_cost: float = 100.0) -> Problem:
    """Two parameters, an error of 0.9 on a plateau and 0.015 in a curved valley; small subsets say much.

    The valley drifts a little with the size, its floor falls like a learning curve, the cost is quadratic in the
    size and varies fourfold over the configurations.
    """
    rng = _stream(seed)
    optimum = rng.uniform(0.3, 0.7, 2)
    drift = rng.uniform(-0.06, 0.06, 2)
    angle = rng.uniform(0, np.pi)
    axes = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    widths = np.array([0.12, 0.3])

    def surface(x: np.ndarray, s: float) -> float:
        z = axes @ (x - optimum - drift * np.log2(1 / s) / 8) / widths
        floor = 0.015 + 0.01 * (s**-0.4 - 1.0)
        return float(0.9 - (0.9 - floor) * np.exp(-0.5 * (z @ z) ** 1.5))

    def seconds(x: np.ndarray, s: float) -> float:
        return full_cost * (0.02 * s + 0.98 * s**2) * float(np.exp(1.4 * (x[0] - optimum[0])))

    return Problem("svm_like", _cube(2), {"size": (64, 16384)}, surface, seconds, 0.02, 0.015, full_cost)


def rugged(d: int = 6, seed: int = 0, full_cost: float = 100.0) -> Problem:
    """d parameters of unequal weight, a bowl with ripples; the cost is linear in the size."""
    rng = _stream(seed)
    optimum = rng.uniform(0.15, 0.85, d)
    weights = rng.dirichlet(np.ones(d)) * d
    shift = rng.normal(0, 0.05, d)
    phase = rng.uniform(0, 2 * np.pi, d)

    def surface(x: np.ndarray, s: float) -> float:
        difference = x - optimum - shift * (1 - s) ** 2
        bowl = np.sum(weights * difference**2)
        ripple = 0.02 * np.sum(weights * (1 - np.cos(9 * difference))) * (1 + 0.3 * np.sin(phase[0]))
        return float(0.1 + 0.05 * (s**-0.3 - 1) + 0.4 * (1 - np.exp(-bowl)) + ripple)

    def seconds(x: np.ndarray, s: float) -> float:
        return full_cost * (0.01 + 0.99 * s) * float(np.exp(1.0 * (x[1] - optimum[1])))

    return Problem(f"rugged{d}", _cube(d), {"size": (200, 20000)}, surface, seconds, 0.01, 0.1, full_cost)


def smooth(d: int = 10, seed: int = 0, full_cost: float = 100.0) -> Problem:
    """d parameters of unequal weight, one valley without ripples; small subsets say much, if anybody can use it."""
    rng = _stream(seed)
    optimum = rng.uniform(0.15, 0.85, d)
    weights = 3.0 * rng.dirichlet(np.ones(d))

    def surface(x: np.ndarray, s: float) -> float:
        return float((0.05 + 1.0 - np.exp(-np.sum(weights * (x - optimum) ** 2))) * s**-0.25)

    def seconds(x: np.ndarray, s: float) -> float:
        return full_cost * (0.02 + 0.98 * s) * float(np.exp(1.0 * (x[0] - optimum[0])))

    return Problem(f"smooth{d}", _cube(d), {"size": (200, 20000)}, surface, seconds, 0.01, 0.05, full_cost)


def misleading(seed: int = 0, full_cost: float = 100.0) -> Problem:
    """Small subsets prefer another place: the optimum moves across the space as the size grows.

    As with regularisation: what is best for a twentieth of the data is far from what is best for all of it.
    """
    rng = _stream(seed)
    end = rng.uniform(0.2, 0.8, 2)
    direction = rng.normal(size=2)
    start = np.clip(end + 0.5 * direction / np.linalg.norm(direction), 0.05, 0.95)

    def surface(x: np.ndarray, s: float) -> float:
        # The path is not of the paper's form: it is steepest near the target.
        where = start + (end - start) * s**0.7
        valley = np.sum(((x - where) / np.array([0.2, 0.25])) ** 2)
        return float(0.05 + 0.03 * (s**-0.3 - 1) + 0.5 * (1 - np.exp(-0.5 * valley)))

    def seconds(x: np.ndarray, s: float) -> float:
        return full_cost * (0.02 + 0.98 * s)

    return Problem("misleading", _cube(2), {"size": (500, 10000)}, surface, seconds, 0.01, 0.05, full_cost)


def boosting(seed: int = 0, full_cost: float = 100.0) -> Problem:
    """Five parameters of which two act together with the size, as leaves and learning rates do; cost falls little.

    With few rows small leaves overfit and many rounds hurt: the optimum of a twentieth of the data is elsewhere.
    """
    rng = _stream(seed)
    optimum = rng.uniform(0.2, 0.8, 5)
    weights = rng.dirichlet(2.0 * np.ones(5)) * 2.0
    shift = np.zeros(5)
    shift[:2] = rng.choice([-1.0, 1.0], 2) * rng.uniform(0.2, 0.4, 2)

    def surface(x: np.ndarray, s: float) -> float:
        where = np.clip(optimum + shift * np.log2(1 / s) / 6, 0.0, 1.0)
        bowl = np.sum(weights * (x - where) ** 2)
        return float(0.12 + 0.03 * (s**-0.35 - 1.0) + 0.25 * (1 - np.exp(-2.0 * bowl)))

    def seconds(x: np.ndarray, s: float) -> float:
        return full_cost * (0.25 + 0.75 * s) * float(np.exp(2.0 * (x[2] - optimum[2])))

    return Problem("boosting", _cube(5), {"size": (300, 20000)}, surface, seconds, 0.01, 0.12, full_cost)


def mixed(seed: int = 0, full_cost: float = 60.0) -> Problem:
    """A network's: a learning rate with an optimum for each optimiser, decay, width, dropout, activation.

    All optima but the categories move with the size, and a subset of 1/64 has a noise of 16 %. The cost grows with
    the width.
    """
    rng = _stream(seed)
    rates = rng.uniform(-9.0, -3.0, 3)
    of_optimiser, of_activation = (
        rng.permutation([0.0, 0.01, 0.03]),
        rng.permutation([0.0, 0.005, 0.02, 0.05]),
    )
    decay, width, dropout = rng.uniform(-13.0, -5.0), rng.uniform(5.0, 6.5), rng.uniform(0.05, 0.3)
    space = {
        "rate": fabolas.Float(1e-5, 1.0, log=True),
        "decay": fabolas.Float(1e-7, 1e-1, log=True),
        "width": fabolas.Integer(16, 1024, log=True),
        "dropout": fabolas.Float(0.0, 0.7),
        "optimiser": ["sgd", "adam", "rmsprop"],
        "activation": ["relu", "tanh", "gelu", "elu"],
    }

    def surface(x: np.ndarray, s: float) -> float:
        u, optimiser, activation = np.log(s), int(x[4]), int(x[5])
        above = (
            0.01 * (np.log(x[0]) - rates[optimiser] - 0.2 * u) ** 2
            + 0.002 * (np.log(x[1]) - decay + 0.5 * u) ** 2
            + 0.015 * (np.log(x[2]) - width - 0.4 * u) ** 2
            + 0.8 * (x[3] - dropout + 0.04 * u) ** 2
            + of_optimiser[optimiser]
            + of_activation[activation]
        )
        return float(0.9 * -np.expm1(-(0.04 * s**-0.3 + above) / 0.9))

    def seconds(x: np.ndarray, s: float) -> float:
        return full_cost * (0.02 + 0.98 * s) * float(np.exp(0.7 * (np.log(x[2]) - width)))

    best = -0.9 * float(np.expm1(-0.04 / 0.9))
    return Problem("mixed", space, {"size": (500, 32000)}, surface, seconds, 0.02, best, full_cost)


# Every family by its name: seed -> problem.
FAMILIES: dict[str, Callable[[int], Problem]] = {
    "svm_like": svm_like,
    "rugged": lambda seed: rugged(6, seed),
    "smooth": lambda seed: smooth(10, seed),
    "misleading": misleading,
    "boosting": boosting,
    "mixed": mixed,
}
