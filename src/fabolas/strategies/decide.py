"""One decision of a model-based strategy: surrogate in, point of the cube out. No record, no clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from fabolas import ascent, maximize
from fabolas._types import Array, BoolArray
from fabolas.acquisition.batch import greedy
from fabolas.acquisition.entropy import Draws, Form, Information, Representers, by_ep, by_moments, by_sampling
from fabolas.acquisition.improvement import log_expected_improvement
from fabolas.acquisition.representers import by_log_improvement, neighbourhood, thompson
from fabolas.effort import Effort
from fabolas.strategies.options import one_of
from fabolas.surrogate import Surrogate

# What information is divided by: predicted cost and overhead (Klein et al. 2017, eq. 7), predicted cost alone
# (eq. 5), or nothing (eq. 3).
Price = Literal["time", "cost", "none"]

NEARBY = (0.2, 0.05, 0.0125)  # steps around promising configurations, in the cube
SPARES = 6  # further points that a hurried decision leaves for the next
SHORTLIST = 24  # how many of the best are looked at more closely
RIVALS = 10  # how many of the best predicted ones may be the best of all
CLIMB = 2  # steps uphill at most for each dimension
GLOBAL = 20  # evaluations for each dimension that DIRECT and CMA-ES have at least: they begin everywhere
NIL = 1e-3  # nats; where no evaluation that may be made promises more than this, there is nothing to learn


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

    def __post_init__(self) -> None:
        one_of("information", self.form, ("gain", "paper"))
        one_of("pmin", self.pmin, ("sampling", "ep"))
        one_of("representers", self.representers, ("thompson", "improvement"))
        one_of("maximizer", self.maximizer, ("candidates", "direct", "cma"))
        one_of("price", self.price, ("time", "cost", "none"))

    def divisor(self, seconds: Array, overhead: float) -> Array:
        """What information is divided by, given the predicted cost of each point (m,) and the overhead."""
        if self.price == "none":
            return np.ones_like(seconds)
        return seconds + overhead if self.price == "time" else seconds


@dataclass(frozen=True)
class Position:
    """What a decision is made from: the models, what was tried, and what may be spent.

    Attributes:
        region: where points may lie.
        surrogate: loss and cost, given the record and what is under way.
        ranked: (m, d) the configurations tried, each once, lowest predicted loss at the target first.
        measured: (r, d) the configurations measured at the target, each once, in the same order.
        overhead: seconds that an evaluation costs beside its own.
        affordable: seconds that an evaluation may be predicted to take; None for no limit.
        effort: how hard to think.
        rules: how information is measured and its maximum sought.
    """

    region: Region
    surrogate: Surrogate
    ranked: Array
    measured: Array
    overhead: float
    affordable: float | None
    effort: Effort
    rules: Rules

    @classmethod
    def of(
        cls,
        region: Region,
        surrogate: Surrogate,
        tried: Array,
        measured: Array,
        overhead: float,
        affordable: float | None,
        effort: Effort,
        rules: Rules,
    ) -> Position:
        """The position after trials of configurations (n, d), with those measured at the target (m, d)."""

        def by_prediction(x: Array) -> Array:
            if not len(x):
                return x
            once = np.unique(x, axis=0)
            mean = surrogate.loss.mean_of(region.at_target(once)).mean(axis=0)
            return once[np.argsort(mean)]

        ranked, measured = by_prediction(tried), by_prediction(measured)
        return cls(region, surrogate, ranked, measured, overhead, affordable, effort, rules)

    @property
    def to_beat(self) -> Array:
        """(r, d) Of the configurations measured at the target the best predicted ones; if none was, of all."""
        return (self.measured if len(self.measured) else self.ranked)[:RIVALS]

    def is_measured(self, x: Array) -> BoolArray:
        """(m,) Which of the configurations (m, d) were measured at the target."""
        known: BoolArray = (x[:, None] == self.measured).all(axis=2).any(axis=1)
        return known

    def prices(self, points: Array) -> tuple[Array, BoolArray]:
        """What the information of each point (m, D) is divided by, and which may be evaluated."""
        seconds = self.surrogate.seconds(points)
        allowed = self.region.legal(points)
        if self.affordable is not None:
            allowed &= seconds <= self.affordable
        return self.rules.divisor(seconds, self.overhead), allowed

    def may(self, points: Array, *, surely: bool) -> BoolArray:
        """(m,) Which may be evaluated: as predicted, or even if they take as long as they may."""
        if self.affordable is None:
            return self.region.legal(points)
        seconds = self.surrogate.seconds_at_most(points) if surely else self.surrogate.seconds(points)
        return self.region.legal(points) & (seconds <= self.affordable)

    def allowing(self, points: Array) -> Position:
        """The same with enough left for the cheapest of the points (m, D): something can always be evaluated."""
        if self.affordable is None:
            return self
        return replace(self, affordable=max(self.affordable, float(self.surrogate.seconds(points).min())))


@dataclass(frozen=True)
class Choice:
    """A point to evaluate.

    Attributes:
        point: (D,).
        seconds: its predicted cost.
        information: nats, the most expected of any point that may be evaluated.
        spare: further points, worth evaluating where there is no time to think again.
    """

    point: Array
    seconds: float
    information: float
    spare: Spare

    def and_then(self, other: Choice) -> Choice:
        """This choice, with another one and what that left over to spare."""
        points = np.vstack([other.point, other.spare.points])
        return replace(self, spare=Spare(points, np.append(other.seconds, other.spare.seconds)))


@dataclass(frozen=True)
class Spare:
    """Points decided on and not yet suggested, the best first.

    Attributes:
        points: (b, D).
        seconds: (b,) their predicted costs.
    """

    points: Array
    seconds: Array

    def __len__(self) -> int:
        return len(self.points)

    @classmethod
    def none(cls, D: int) -> Spare:
        """No point of D columns."""
        return cls(np.empty((0, D)), np.empty(0))

    @property
    def rest(self) -> Spare:
        """All but the first."""
        return Spare(self.points[1:], self.seconds[1:])


def pool(position: Position, rng: np.random.Generator) -> Array:
    """Configurations (m, d) that could be the best: tried and predicted ones, the neighbourhood of both, others."""
    region, ranked, n = position.region, position.ranked, position.effort.pool
    some = np.concatenate([ranked[: n // 4], region.spread(n // 4, rng)])
    predicted = _predicted(position, some)
    centres = [c for c in (ranked[:5], predicted) if len(c)]
    near = [neighbourhood(c, n // 2 // len(centres), NEARBY, region.choices, rng) for c in centres]
    points = region.snap(region.at_target(np.concatenate([some, predicted, *near])))
    return np.unique(points[region.legal(points)], axis=0)[:, : region.d]


def _predicted(position: Position, start: Array) -> Array:
    """(c, d) Where the models predict the lowest loss at the target, climbed to from the best of the start.

    In six dimensions and more neither what was tried nor chance comes near it.
    """
    region, loss = position.region, position.surrogate.loss

    def value(x: Array) -> Array:
        return np.asarray(-loss.mean_of(region.at_target(x)).mean(axis=0))

    best = start[np.argsort(-value(start), kind="stable")[: position.effort.climbs]]
    return np.array([_climb(value, x, region) for x in best]).reshape(len(best), region.d)


def _climb(value: Callable[[Array], Array], x: Array, region: Region) -> Array:
    """The configuration (d,) moved uphill in its numbers; its categories stay."""
    fixed = np.array(region.choices) > 0
    return ascent.climb(value, x, np.where(fixed, x, 0.0), np.where(fixed, x, 1.0), CLIMB * region.d)


def most_informative(position: Position, configurations: Array, rng: np.random.Generator) -> Choice:
    """The point of most expected information about the target's optimum for its price (Klein et al. 2017, eq. 7).

    Many candidates are screened by moments, then the best of them are counted and refined.

    Args:
        position: what is known.
        configurations: (m, d) those that could be the best, a `pool`.
        rng: where candidates are drawn from.
    """
    region, surrogate, effort, rules = position.region, position.surrogate, position.effort, position.rules
    representers = Representers.of(surrogate.loss, _representers(position, configurations, rng))
    draws = Draws.of(representers, effort.samples, rng)

    candidates = _candidates(region, configurations, representers.at.points, effort.screened, rng)
    position = position.allowing(candidates)

    screened = by_moments(representers, draws, rules.form)(candidates).mean(axis=0)
    price, allowed = position.prices(candidates)
    worth = np.where(allowed, screened / price, -np.inf)
    if effort.counted:
        count = _information(representers, draws, effort, rules)

        def value(points: Array) -> Array:
            price, allowed = position.prices(points)
            return np.where(allowed, count(points).mean(axis=0) / price, -np.inf)

        start = candidates[np.argsort(-worth, kind="stable")[: effort.counted]]
        taken = _maximise(value, start, position, rng)[None]
    else:
        best = int(np.argmax(worth))
        several = greedy(representers, draws, candidates, price, allowed, first=best, count=1 + SPARES)
        taken = candidates[several]
    seconds = surrogate.seconds(taken)
    most = float(screened[allowed].max(initial=0.0))
    return Choice(taken[0], float(seconds[0]), most, Spare(taken[1:], seconds[1:]))


def most_improving(
    position: Position, configurations: Array, rng: np.random.Generator, *, check: bool = True
) -> Choice | None:
    """The affordable configuration at the target of largest expected improvement on the best measured there.

    What is predicted to be better and was never measured is an improvement too, so that it will be.

    Args:
        position: what is known.
        configurations: (m, d) where to begin, a `pool`.
        rng: where candidates are drawn from.
        check: whether only what surely fits is affordable and was not measured yet; if there is no such, there is
            no choice. Otherwise the cheapest is.
    """
    region, loss = position.region, position.surrogate.loss
    position = position if check else position.allowing(region.at_target(configurations))
    best = loss.mean_of(region.at_target(position.to_beat)).min(axis=1)  # (K,)

    def value(x: Array) -> Array:
        points = region.at_target(x)
        at = loss.project(points)
        each = log_expected_improvement(loss.mean(at), loss.variance(at), best[:, None])
        averaged = np.logaddexp.reduce(each, axis=0) - np.log(len(each))
        may = position.may(points, surely=check)
        return np.where(may & ~position.is_measured(x) if check else may, averaged, -np.inf)

    def snap(x: Array) -> Array:
        return region.snap(region.at_target(x))[:, : region.d]

    n = 2 * len(configurations)
    found = maximize.candidates(
        value, configurations, snap, rng, evaluations=n, rounds=3, choices=region.choices
    )
    if check and found.value == -np.inf:
        return None
    x = found.point[None]
    if position.effort.counted:
        higher = snap(_climb(value, found.point, region)[None])
        x = higher if float(value(higher)[0]) > found.value else x
    point = region.at_target(x)
    return Choice(point[0], float(position.surrogate.seconds(point)[0]), 0.0, Spare.none(point.shape[1]))


def _representers(position: Position, configurations: Array, rng: np.random.Generator) -> Array:
    region, loss, R = position.region, position.surrogate.loss, position.effort.representers
    points = region.at_target(configurations)
    if position.rules.representers == "thompson":
        return thompson(loss, points, R, rng)
    best = loss.mean_of(region.at_target(position.ranked[:RIVALS])).min(axis=1)
    return by_log_improvement(loss, points, best, R, rng)


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
    value: Callable[[Array], Array], start: Array, position: Position, rng: np.random.Generator
) -> Array:
    region, maximizer, further = position.region, position.rules.maximizer, position.effort.refined
    if maximizer == "candidates":
        return maximize.candidates(
            value, start, region.snap, rng, evaluations=len(start) + further, rounds=2, choices=region.choices
        ).point
    search = maximize.direct if maximizer == "direct" else maximize.cma
    further = max(further, GLOBAL * start.shape[1])
    return search(value, start, region.snap, rng, evaluations=len(start) + further).point
