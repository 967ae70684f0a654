"""The paper's two models assembled: loss and log-cost over (x, u), each for K hyperparameter samples.

    loss      (theta k52(x, x')) * (prod_j phi_f(u_j)' S_j phi_f(u_j')  + drift) + trend     eq. 6 and two terms
    log-cost  (theta k52(x, x')) * (prod_j phi_c(u_j)' S_j phi_c(u_j'))  + trend + drift     eq. 6 and two terms,
              around a cost that is proportional to every fidelity

The drift says how far the basis functions are to be trusted, the trend is what all configurations share
(docs/decisions). Every strategy is this with other basis functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Literal

import numpy as np

from fabolas._types import Array, BoolArray, IntArray
from fabolas.gp import mcmc
from fabolas.gp.kernels import (
    LENGTH_PRIOR,
    Amplitude,
    Basis,
    Drift,
    FiniteRank,
    Kernel,
    Matern52,
    Product,
    Sum,
    Trend,
    from_the_smallest,
    power_law_basis,
    scaled_length_prior,
)
from fabolas.gp.priors import Normal, Prior
from fabolas.gp.process import Model, Noise, Posterior
from fabolas.outputs import Output, Warp

# So many trials, drawn anew for every fit, determine a dozen hyperparameters; with more, each step of the walkers
# only becomes dearer. The posterior process is always given all trials.
ENOUGH = 250

# The share of the noise that is taken for a configuration's own. Training on all the data is mostly deterministic
# (one set, one seed): what the models cannot explain is then no chance, and comes again.
OWN = 0.9

Lengths = Literal["uniform", "scaled"]


@dataclass(frozen=True)
class Work:
    """How much is done at a fidelity: what a cost is in proportion to unless the data say otherwise.

    Attributes:
        log_shares: points (n, D) -> (n, f), log(value / target) of each fidelity.
        ranges: (f,) log(target / lowest value) of each.
    """

    log_shares: Callable[[Array], Array]
    ranges: tuple[float, ...]


@dataclass(frozen=True)
class Spec:
    """How loss and cost depend on the point: what distinguishes one model-based strategy from another."""

    choices: tuple[int, ...]  # (d,) 0 numeric, m categories
    fidelities: int  # f
    work: Work | None = None  # None: the cost is not expected to depend on the fidelities
    loss: Basis = power_law_basis
    cost: Basis = power_law_basis
    rank: int = 2
    mixing: Prior = Normal(0.0, 0.5)  # of what the first basis function shares with the others
    spread: Prior = Normal(0.0, 1.0)  # of how far losses go apart along the other ones, a logarithm
    warp: Warp = "log"
    drift: bool = True
    walks: tuple[Callable[[Array], Array], ...] = (from_the_smallest,)  # the times of the loss's drift
    doubt: Prior = Normal(-2.0, 1.5)  # of the variance of each, a logarithm
    trend: bool = True
    noise_by_fidelity: bool = False
    lengths: Lengths = "scaled"

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("warp", self.warp, ("log", "root", "excess", "none")),
            ("lengths", self.lengths, ("scaled", "uniform")),
        ):
            if value not in allowed:
                raise ValueError(f"{name}: expected one of {', '.join(allowed)}, got {value!r}")

    @property
    def columns(self) -> tuple[int, ...]:
        """The fidelities' columns of a point."""
        return tuple(range(len(self.choices), len(self.choices) + self.fidelities))

    def loss_model(self) -> Model:
        """The GP prior over standardised, warped losses."""
        by_size = self.noise_by_fidelity and self.fidelities > 0 and self.work is not None
        noise = Noise(self._away) if by_size else Noise()
        return Model(self._kernel(self.loss, self.drift, [2.0] * self.fidelities, self.spread), noise)

    def cost_model(self) -> Model:
        """The GP prior over log-seconds less the log of the work.

        If cost is proportional to size^a, what is left is linear in log-size with slope a - 1, of which half is
        taken as a standard deviation: from constant to quadratic within two. What bends that line (fixed costs,
        terms of a higher order) comes from the algorithm, so the drift is one for all configurations.
        """
        ranges = self.work.ranges if self.work else (4.0,) * self.fidelities
        slopes = [0.5 * logarithm for logarithm in ranges[: self.fidelities]]
        kernel = self._kernel(self.cost, False, slopes, Normal(-1.0, 1.0))
        return Model(Sum((kernel, Drift(self.columns))) if self.drift and self.columns else kernel, Noise())

    def log_work(self, points: Array) -> Array:
        """What is expected of log-seconds at the points up to a constant, (n,)."""
        return self.work.log_shares(points).sum(axis=1) if self.work else np.zeros(len(points))

    def _away(self, points: Array) -> Array:
        """How far from the target, (n,): 1 - sqrt(share of the target's work)."""
        return -np.expm1(0.5 * self.log_work(points))

    def _kernel(self, basis: Basis, drift: bool, slopes: list[float], spread: Prior) -> Kernel:
        prior = LENGTH_PRIOR if self.lengths == "uniform" else scaled_length_prior(len(self.choices))
        kernel: Kernel = Product((Matern52(self.choices, prior), Amplitude()))
        if self.fidelities:
            factors: list[Kernel] = [
                FiniteRank(column, basis, self.rank, self.mixing, spread=spread) for column in self.columns
            ]
            across: Kernel = Product(tuple(factors)) if len(factors) > 1 else factors[0]
            walks = [Drift(self.columns, elapsed, self.doubt) for elapsed in self.walks]
            kernel = Product((kernel, Sum((across, *walks)) if drift else across))
        return Sum((kernel, Trend(trend_features(basis, self.columns, slopes)))) if self.trend else kernel


def trust(counts: Array) -> Array:
    """The weight (m,) of the average of so many measurements against what the models say of the same point."""
    return OWN * counts / (OWN * counts + 1.0 - OWN)


def settle(mean: Array, counts: Array, averages: Array) -> Array:
    """What to expect (m,) of points after so many measurements of each, see `Surrogate.settled`."""
    return mean + trust(counts) * (averages - mean)


def trend_features(basis: Basis, columns: tuple[int, ...], slopes: list[float]) -> Callable[[Array], Array]:
    """Points (n, D) -> (n, m): a constant, each fidelity's basis and its powers times standard deviations.

    The powers bend what all configurations share: a cost that does not vanish with the size, an error that no
    amount of data removes. Ever smaller, they are a smooth function that nobody can be sure to know beyond the
    sizes seen.
    """

    def features(points: Array) -> Array:
        blocks = [np.ones((len(points), 1))]
        for column, slope in zip(columns, slopes, strict=True):
            half = 0.5 * basis(points[:, column])[:, 1:]
            blocks += accumulate([2.0 * slope * half, half, half, half], np.multiply)  # the powers of phi
        return np.concatenate(blocks, axis=1)

    return features


@dataclass(frozen=True)
class Walkers:
    """The ensembles of both models: where one fit ended and the next begins."""

    loss: Array  # (W, p)
    cost: Array  # (W, p')


@dataclass(frozen=True)
class Surrogate:
    """Both posteriors and the maps back to losses and seconds."""

    spec: Spec
    loss: Posterior
    cost: Posterior
    loss_output: Output
    log_cost_centre: float

    def seconds(self, points: Array) -> Array:
        """Predicted cost (m,): the median of each point, averaged over hyperparameters in log-seconds."""
        return self._seconds(points, self.cost.mean_of(points).mean(axis=0))

    def seconds_at_most(self, points: Array) -> Array:
        """A cost (m,) that is exceeded with a probability of one in forty: two deviations above, in log-seconds."""
        at = self.cost.project(points)
        means = self.cost.mean(at)
        variance = self.cost.variance(at).mean(axis=0) + means.var(axis=0)
        return self._seconds(points, means.mean(axis=0) + 2.0 * np.sqrt(variance))

    def _seconds(self, points: Array, t: Array) -> Array:
        # Beyond e^50 seconds a prediction only says "too long"; it must stay a number.
        return np.exp(np.minimum(self.log_cost_centre + t + self.spec.log_work(points), 50.0))

    def loss_at(self, points: Array) -> tuple[Array, Array]:
        """Mean and variance (m,) of the standardised loss at the points, hyperparameters integrated out."""
        at = self.loss.project(points)
        means = self.loss.mean(at)
        return means.mean(axis=0), self.loss.variance(at).mean(axis=0) + means.var(axis=0)

    def settled(self, points: Array, counts: Array, averages: Array) -> tuple[Array, Array]:
        """Mean and variance (m,) of the standardised loss at each point, with what is the point's own.

        What the models call noise has a part that comes again and a part that is chance, see `OWN`: a point that
        was measured is mostly what it was measured to be (docs/decisions/incumbent.md). Exact for points measured
        once or never; that of repetitions the models hold all noise for chance is passed over.

        Args:
            points: (m, D).
            counts: (m,) how often each was measured; 0 for never.
            averages: (m,) of what was measured, standardised; anything where nothing was.
        """
        mean, variance = self.loss_at(points)
        noise = self.loss.noise(points).mean(axis=0)
        left = 1.0 - trust(counts)  # var(own | loss, measurements) is OWN times as much of the noise
        return settle(mean, counts, averages), left**2 * variance + OWN * left * noise

    def given(self, data: Data) -> Surrogate:
        """The same models after further trials, hyperparameters and maps as they were."""
        losses, _ = data.targets(self.loss_output)
        timed = data.timed(self.spec, self.log_cost_centre)
        costs = data.log_costs(self.spec)[timed] - self.log_cost_centre
        return replace(
            self,
            loss=self.loss.condition(data.points, losses),
            cost=self.cost.condition(data.points[timed], costs) if timed.any() else self.cost,
        )

    def awaiting(self, points: Array) -> Surrogate:
        """The same models with these evaluations under way: variance goes, the mean stays."""
        return replace(self, loss=self.loss.condition(points)) if len(points) else self


@dataclass(frozen=True)
class Data:
    """Ended trials as arrays. A failed trial counts as the worst loss seen: its region is bad.

    Its cost says when it failed, which is at most what an evaluation takes. The cost model sees it where it is more
    than usual, as where trials time out; a region that crashes at once must not look free.
    """

    points: Array  # (n, D)
    losses: Array  # (n,) anything where failed
    costs: Array  # (n,) seconds; 0 where unknown
    failed: BoolArray  # (n,)

    @property
    def lowest(self) -> float:
        """The lowest loss; infinite without a complete trial."""
        return float(self.losses[~self.failed].min(initial=np.inf))

    def targets(self, output: Output | None, warp: Warp = "none") -> tuple[Array, Output]:
        """Standardised losses (n,) under the given map, or under one fitted to them."""
        complete = self.losses[~self.failed]
        if output is None:
            output = Output.fit(complete, warp)
        targets = np.zeros(len(self.losses))
        targets[~self.failed] = output.forward(complete)
        # Standardised: without a complete trial here, two deviations above the mean is bad enough.
        targets[self.failed] = max(targets[~self.failed].max(initial=-np.inf), 2.0)
        return targets, output

    def timed(self, spec: Spec, typical: float | None = None) -> BoolArray:
        """(n,) Which costs tell what an evaluation takes: of complete trials, and of failed ones if above usual.

        Args:
            spec: which models.
            typical: log-seconds less the log of the work; None for the mean of the complete trials.
        """
        known = self.costs > 0
        complete, relative = known & ~self.failed, self.log_costs(spec)
        if typical is None:
            typical = float(relative[complete].mean()) if complete.any() else -np.inf
        above = known & self.failed & (np.where(known, relative, -np.inf) > typical)
        return complete | above

    def log_costs(self, spec: Spec) -> Array:
        """Log-seconds less the log of the work, (n,); NaN where the time is unknown."""
        with np.errstate(divide="ignore"):
            logarithm = np.where(self.costs > 0, np.log(self.costs), np.nan)
        return logarithm - spec.log_work(self.points)


def fit(
    spec: Spec,
    data: Data,
    walkers: Walkers | None,
    steps: int,
    K: int,
    rng: np.random.Generator,
    *,
    units: Output | None = None,
) -> tuple[Surrogate, Walkers, Walkers]:
    """Both models given all the data: walkers moved by so many steps, K of them kept as samples.

    Args:
        spec: which models.
        data: what they are given.
        walkers: where the last fit ended; None starts from the prior.
        steps: steps of the ensemble; 0 keeps the walkers where they are.
        K: how many samples.
        rng: what moves the walkers and chooses among them.
        units: the losses' map when the walkers last moved: their hyperparameters are in its units. None for a map
            fitted to the data, as it is where they move now.

    Returns:
        The models, all walkers, and the walkers that are the models' samples.
    """
    targets = _targets(spec, data)
    before = (walkers.loss, walkers.cost) if walkers else (None, None)
    costed, columns = data.points[targets.timed], list(spec.columns)
    moved = Walkers(
        _walk(spec.loss_model(), data.points, targets.losses, columns, before[0], steps, rng),
        _walk(spec.cost_model(), costed, targets.costs, columns, before[1], steps, rng),
    )
    # Of the cost only an average is used: half as many samples do.
    samples = Walkers(_some(moved.loss, K, rng), _some(moved.cost, max(2, K // 2), rng))
    return build(spec, data, samples, units), moved, samples


def build(spec: Spec, data: Data, samples: Walkers, units: Output | None = None) -> Surrogate:
    """Both models given all the data and their hyperparameter samples, which are in these units."""
    targets = _targets(spec, data, units)
    return Surrogate(
        spec,
        spec.loss_model().posterior(data.points, targets.losses, samples.loss),
        spec.cost_model().posterior(data.points[targets.timed], targets.costs, samples.cost),
        targets.loss_output,
        targets.log_cost_centre,
    )


@dataclass(frozen=True)
class _Targets:
    losses: Array  # (n,) standardised
    costs: Array  # (m,) centred log-seconds less log-work, of the trials whose time is known
    timed: BoolArray  # (n,) which these are
    loss_output: Output
    log_cost_centre: float


def _targets(spec: Spec, data: Data, units: Output | None = None) -> _Targets:
    losses, loss_output = data.targets(None, spec.warp)
    if units is not None:
        losses, loss_output = data.targets(loss_output.in_units_of(units))
    timed = data.timed(spec)
    costs = data.log_costs(spec)[timed]
    centre = float(costs.mean()) if len(costs) else 0.0
    return _Targets(losses, costs - centre, timed, loss_output, centre)


def _walk(
    model: Model,
    points: Array,
    y: Array,
    columns: list[int],
    walkers: Array | None,
    steps: int,
    rng: np.random.Generator,
) -> Array:
    if walkers is not None and steps <= 0:
        return walkers
    if len(y) > ENOUGH:
        chosen = _enough(points[:, columns], rng)
        points, y = points[chosen], y[chosen]
    log_density = model.log_density(points, y)
    if walkers is None:
        count = mcmc.walkers_for(len(model.priors))
        walkers = mcmc.start(log_density, model.priors, count, rng, tries=10 if steps > 0 else 2)
    if steps <= 0:
        return walkers
    best = walkers[int(np.argmax(log_density(walkers)))]
    mode = mcmc.climb(log_density, model.priors, best, 2 * steps)
    walkers = mcmc.gather(log_density, model.priors, walkers, mode, rng)
    return mcmc.sample(log_density, walkers, steps, rng)


def _enough(u: Array, rng: np.random.Generator) -> IntArray:
    """The trials (m,) that hyperparameters are fitted to: at least half the largest, which are few, then any."""
    largest = np.lexsort((rng.random(len(u)), -u.sum(axis=1)))[: ENOUGH // 2]
    others = np.setdiff1d(np.arange(len(u)), largest)
    return np.concatenate([largest, rng.choice(others, ENOUGH - len(largest), replace=False)])


def _some(walkers: Array, K: int, rng: np.random.Generator) -> Array:
    return walkers[rng.choice(len(walkers), min(K, len(walkers)), replace=False)]
