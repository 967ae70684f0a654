"""One decision of a model-based strategy: surrogate in, point of the cube out. No record, no clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fabolas import maximize
from fabolas._types import Array, BoolArray
from fabolas.acquisition.entropy import Draws, Form, Information, Representers, by_ep, by_moments, by_sampling
from fabolas.acquisition.improvement import log_expected_improvement
from fabolas.acquisition.representers import by_log_improvement, neighbourhood, thompson
from fabolas.effort import Effort
from fabolas.surrogate import Surrogate

# What information is divided by: predicted cost and overhead (Klein et al. 2017, eq. 7), predicted cost alone
# (eq. 5), or nothing (eq. 3).
Price = Literal["time", "cost", "none"]

NEARBY = (0.2, 0.05, 0.0125)  # steps around promising configurations, in the cube
NIL = 1e-3  # nats; less than this is the error of counting, and teaches nothing


@dataclass(frozen=True)
class Region:
    """Where points may lie: arrays and functions of arrays only.

    Attributes:
        d: configuration columns, the first ones.
        f: fidelity columns, the last ones.
        choices: (d,) 0 numeric, m categories.
        snap: points (m, D) -> the nearest representable ones.
        legal: points (m, D) -> (m,).
        spread: n, rng -> (n, d) evenly spread configurations.
        fidelities: n, rng -> (n, f) fidelities to consider.
    """

    d: int
    f: int
    choices: tuple[int, ...]
    snap: Callable[[Array], Array]
    legal: Callable[[Array], BoolArray]
    spread: Callable[[int, np.random.Generator], Array]
    fidelities: Callable[[int, np.random.Generator], Array]

    def at_target(self, x: Array) -> Array:
        """Configurations (m, d) -> points (m, D) at the target fidelity."""
        return np.concatenate([x, np.ones((len(x), self.f))], axis=1)


@dataclass(frozen=True)
class Rules:
    """How information is measured and its maximum sought."""

    form: Form = "gain"
    pmin: str = "sampling"  # or "ep"
    representers: str = "thompson"  # or "improvement"
    maximizer: str = "candidates"  # or "direct", "cma"
    price: Price = "time"

    def divisor(self, seconds: Array, overhead: float) -> Array:
        """What information is divided by, given the predicted cost of each point (m,) and the overhead."""
        if self.price == "none":
            return np.ones_like(seconds)
        return seconds + overhead if self.price == "time" else seconds


@dataclass(frozen=True)
class Choice:
    """A point (D,), its predicted cost in seconds and the information expected of it in nats."""

    point: Array
    seconds: float
    information: float


def pool(region: Region, surrogate: Surrogate, tried: Array, n: int, rng: np.random.Generator) -> Array:
    """About n configurations (n, d): spread ones, tried ones and the neighbourhood of the best of these.

    The tried ones are those predicted lowest at the target, so that the pool does not grow with the record.
    """
    tried = np.unique(tried, axis=0)
    mean, _ = surrogate.loss_at(region.at_target(tried))
    best = tried[np.argsort(mean)]
    near = neighbourhood(best[:5], n // 2, NEARBY, rng)
    x = np.concatenate([best[: n // 4], region.spread(n // 4, rng), near])
    points = region.snap(region.at_target(x))
    return np.unique(points[region.legal(points)], axis=0)[:, : region.d]


def most_informative(
    region: Region,
    surrogate: Surrogate,
    tried: Array,
    overhead: float,
    affordable: float | None,
    effort: Effort,
    rules: Rules,
    rng: np.random.Generator,
) -> Choice:
    """The point of most expected information about the target's optimum for its price, usually per second.

    Args:
        tried: (n, d) configurations evaluated so far.
        overhead: seconds of thinking that an evaluation entails.
        affordable: seconds that an evaluation may be predicted to take; None for no limit.
    """
    configurations = pool(region, surrogate, tried, effort.pool, rng)
    representers = Representers.of(
        surrogate.loss, _representers(region, surrogate, configurations, tried, effort, rules, rng)
    )
    draws = Draws.of(representers, effort.samples, rng)

    def worth(information: Information) -> Callable[[Array], Array]:
        def value(points: Array) -> Array:
            seconds = surrogate.seconds(points)
            allowed = region.legal(points)
            if affordable is not None:
                allowed &= seconds <= affordable
            value = information(points).mean(axis=0) / rules.divisor(seconds, overhead)
            return np.where(allowed, value, -np.inf)

        return value

    candidates = _candidates(region, configurations, representers.at.points, effort.screened, rng)
    screened = worth(by_moments(representers, draws, rules.form))(candidates)
    order = np.argsort(-screened, kind="stable")
    if not effort.counted:
        best = candidates[order[0]]
        seconds = surrogate.seconds(best[None])
        information = screened[order[0]] * rules.divisor(seconds, overhead)
        return Choice(best, float(seconds[0]), float(information[0]))
    count = _information(representers, draws, effort, rules)
    best = _maximise(worth(count), candidates[order[: effort.counted]], region, effort, rules, rng)
    return Choice(best, float(surrogate.seconds(best[None])[0]), float(count(best[None]).mean()))


def most_improving(
    region: Region, surrogate: Surrogate, tried: Array, effort: Effort, rng: np.random.Generator
) -> Choice:
    """The configuration at the target of largest expected improvement on the best predicted one."""
    at = surrogate.loss.project(region.at_target(np.unique(tried, axis=0)))
    best = surrogate.loss.mean(at).min(axis=1)  # (K,)

    def value(points: Array) -> Array:
        points = region.at_target(points[:, : region.d])
        at = surrogate.loss.project(points)
        each = log_expected_improvement(surrogate.loss.mean(at), surrogate.loss.variance(at), best[:, None])
        averaged = np.logaddexp.reduce(each, axis=0) - np.log(len(each))
        return np.where(region.legal(points), averaged, -np.inf)

    start = region.at_target(pool(region, surrogate, tried, effort.pool, rng))
    found = maximize.candidates(
        value,
        start,
        region.snap,
        rng,
        evaluations=2 * len(start),
        rounds=3,
        choices=region.choices,
    )
    point = region.at_target(found.point[None, : region.d])[0]
    return Choice(point, float(surrogate.seconds(point[None])[0]), 0.0)


def _representers(
    region: Region,
    surrogate: Surrogate,
    configurations: Array,
    tried: Array,
    effort: Effort,
    rules: Rules,
    rng: np.random.Generator,
) -> Array:
    points = region.at_target(configurations)
    if rules.representers == "thompson":
        return thompson(surrogate.loss, points, effort.representers, rng)
    best = surrogate.loss.mean(surrogate.loss.project(region.at_target(tried))).min(axis=1)
    return by_log_improvement(surrogate.loss, points, best, effort.representers, rng)


def _information(representers: Representers, draws: Draws, effort: Effort, rules: Rules) -> Information:
    if rules.pmin == "ep":
        return by_ep(representers, effort.outcomes, rules.form)
    return by_sampling(representers, draws, effort.outcomes, rules.form)


def _candidates(
    region: Region, configurations: Array, representers: Array, n: int, rng: np.random.Generator
) -> Array:
    """n points (n, D): two thirds of them representers' configurations, each at several fidelities."""
    likely = representers[rng.integers(len(representers), size=2 * n // 3), : region.d]
    other = configurations[rng.integers(len(configurations), size=n - len(likely))]
    x = np.concatenate([likely, other])
    return np.unique(region.snap(np.concatenate([x, region.fidelities(n, rng)], axis=1)), axis=0)


def _maximise(
    value: Callable[[Array], Array],
    start: Array,
    region: Region,
    effort: Effort,
    rules: Rules,
    rng: np.random.Generator,
) -> Array:
    evaluations = len(start) + effort.refined
    if rules.maximizer == "candidates":
        return maximize.candidates(
            value, start, region.snap, rng, evaluations=evaluations, rounds=2, choices=region.choices
        ).point
    maximizer = maximize.direct if rules.maximizer == "direct" else maximize.cma
    return maximizer(value, start, region.snap, rng, evaluations=evaluations).point
