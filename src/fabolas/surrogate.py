"""The surrogate: posteriors of the loss and of log-cost over (x, u), fitted to trials, and predictions from them.

The two priors are assembled in `model_spec`. Hyperparameters are integrated out by MCMC: each posterior is held for K
hyperparameter samples at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtr, ndtri

from fabolas._types import Array, BoolArray, IntArray
from fabolas.discrepancy import Discrepancy
from fabolas.gp import mcmc
from fabolas.gp.regression import NOISE_FLOOR, GaussianProcess, Posterior
from fabolas.gp.repeats import Repeats
from fabolas.model_spec import NUGGET_FRACTION, SurrogatePrior
from fabolas.transforms import FitTransform, TargetTransform

# MCMC uses at most this many trials, drawn anew for each fit: they determine a dozen hyperparameters, and more would
# only make each step slower. The posterior is given all the data.
MAX_MCMC_TRIALS = 250

LIMIT_PROBABILITY = 0.975  # that a cost is at most `cost_limit`
_MAX_LOG_SECONDS = 50.0  # a prediction above e^50 seconds only says "too long", but it must be finite


def shrinkage(counts: Array, nugget_fraction: float = NUGGET_FRACTION) -> Array:
    """The weight (m,) of the mean of this many measurements of a point, against the GP's prediction there."""
    return nugget_fraction * counts / (nugget_fraction * counts + 1.0 - nugget_fraction)


def mixture_quantile(means: Array, deviations: Array, probability: float) -> Array:
    """The quantile (m,) of an equal mixture of K normal distributions, means and deviations (K, m), by bisection."""
    at = means + ndtri(probability) * deviations
    low, high = at.min(axis=0), at.max(axis=0)  # the quantile lies between those of the components
    for _ in range(40):
        middle = 0.5 * (low + high)
        below = ndtr((middle - means) / np.maximum(deviations, 1e-12)).mean(axis=0) < probability
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(0.5 * (low + high))


@dataclass(frozen=True)
class HyperparameterSets:
    """Hyperparameters of both GPs: all walkers of MCMC, or the samples among them."""

    loss: Array  # (W, p)
    cost: Array  # (W, p')


@dataclass(frozen=True)
class Data:
    """Ended trials as arrays.

    A failed trial counts as the worst loss seen, and as at least two standard deviations above the mean.

    The cost of a failed trial is only a lower limit of the cost of an evaluation. The cost GP uses it only if it is
    higher than usual, as with timeouts. Otherwise a region that crashes at once would look cheap.

    Attributes:
        points: (n, D), and another column with the number of the training if trainings report on the way.
        losses: (n,) ignored where failed.
        costs: (n,) seconds; 0 where unknown.
        failed: (n,).
        max_mcmc: How many rows MCMC uses, at most.
    """

    points: Array
    losses: Array
    costs: Array
    failed: BoolArray
    max_mcmc: int = MAX_MCMC_TRIALS

    @property
    def lowest(self) -> float:
        """The lowest loss; infinite without a complete trial."""
        return float(self.losses[~self.failed].min(initial=np.inf))

    def fit_transform(self, fit: FitTransform) -> TargetTransform:
        """The transform fitted to the losses of the complete trials."""
        return fit(self.losses[~self.failed])

    def targets(self, transform: TargetTransform) -> Array:
        """Standardised losses (n,); a failed trial gets the worst of them, and at least 2."""
        targets = np.zeros(len(self.losses))
        targets[~self.failed] = transform.forward(self.losses[~self.failed])
        targets[self.failed] = max(targets[~self.failed].max(initial=-np.inf), 2.0)
        return targets

    def repeats(self, prior: SurrogatePrior, targets: Array) -> Repeats | None:
        """The points measured more than once at the target, given the standardised losses (n,); None without one.

        Repeats on subsets do not count: another training may see other rows. Points of curves do not either: their
        trainings have a noise of their own, see `SameTraining`.
        """
        if prior.columns.training is not None:
            return None
        at_target = (self.points[:, list(prior.columns.fidelities)] == 1.0).all(axis=1)
        return Repeats.among(self.points, targets, at_target & ~self.failed, prior.spec.nugget_fraction)

    def n_repeats(self, prior: SurrogatePrior) -> int:
        """How many measurements at the target repeat another one."""
        repeats = self.repeats(prior, self.losses)
        return 0 if repeats is None else repeats.degrees

    def log_costs(self, prior: SurrogatePrior) -> Array:
        """Log-seconds minus the log-size, (n,); NaN where the time is unknown."""
        with np.errstate(divide="ignore"):
            logarithm = np.where(self.costs > 0, np.log(self.costs), np.nan)
        return logarithm - prior.log_size(self.points)

    def cost_is_used(self, prior: SurrogatePrior, typical: float | None = None) -> BoolArray:
        """(n,) Which costs the cost GP uses: known costs of complete trials, and those of failed ones if above typical.

        Args:
            prior: Both GP priors.
            typical: Log-seconds minus the log-size; None for the mean over the complete trials.
        """
        known = self.costs > 0
        complete, relative = known & ~self.failed, self.log_costs(prior)
        if typical is None:
            typical = float(relative[complete].mean()) if complete.any() else -np.inf
        above = known & self.failed & (np.where(known, relative, -np.inf) > typical)
        return complete | above


@dataclass(frozen=True)
class Surrogate:
    """Both posteriors, and the maps back to losses and seconds."""

    prior: SurrogatePrior
    loss: Posterior
    observed: BoolArray  # (n,) which points of the loss were measured: neither failed nor pending
    cost: Posterior
    transform: TargetTransform
    log_cost_centre: float
    nugget_fraction: float  # from the ModelSpec, or estimated from repeats at the target

    def predict_cost(self, points: Array) -> Array:
        """Predicted seconds (m,): the median, averaged over hyperparameters in log-seconds."""
        return self._seconds(points, self.cost.mean_of(points).mean(axis=0))

    def cost_limit(self, points: Array) -> Array:
        """Seconds (m,) that are exceeded with a probability of one in forty: a quantile of the mixture over samples."""
        means, deviations = self._log_cost_samples(points)
        return self._seconds(points, mixture_quantile(means, deviations, LIMIT_PROBABILITY))

    def costs_at_most(self, points: Array, seconds: float | Array) -> BoolArray:
        """(m,) Whether `cost_limit` of the points (m, D) is at most `seconds`, without computing the quantile."""
        means, deviations = self._log_cost_samples(points)
        with np.errstate(divide="ignore", invalid="ignore"):
            limit = np.log(seconds) - self.log_cost_centre - self.prior.log_size(points)
        below = ndtr((limit - means) / np.maximum(deviations, 1e-12)).mean(axis=0)
        return np.asarray(below >= LIMIT_PROBABILITY)

    def _log_cost_samples(self, points: Array) -> tuple[Array, Array]:
        """Means and deviations (K, m) of the centred log-cost of a measurement, one row per hyperparameter sample."""
        at = self.cost.project(points)
        return self.cost.mean(at), np.sqrt(self.cost.variance(at) + self.cost.noise(points))

    def predict_log_cost(self, points: Array) -> tuple[Array, Array]:
        """Mean and variance (m,) of the log-seconds of a measurement, hyperparameters integrated out."""
        at = self.cost.project(points)
        means = self.cost.mean(at)
        variance = self.cost.variance(at).mean(axis=0) + means.var(axis=0)
        offset = self.log_cost_centre + self.prior.log_size(points)
        return means.mean(axis=0) + offset, variance + self.cost.noise(points).mean(axis=0)

    def _seconds(self, points: Array, t: Array) -> Array:
        return np.exp(np.minimum(self.log_cost_centre + t + self.prior.log_size(points), _MAX_LOG_SECONDS))

    def predict_loss(self, points: Array) -> tuple[Array, Array]:
        """Mean and variance (m,) of the standardised loss, hyperparameters integrated out."""
        at = self.loss.project(points)
        means = self.loss.mean(at)
        return means.mean(axis=0), self.loss.variance(at).mean(axis=0) + means.var(axis=0)

    def predict_stated_loss(self, points: Array) -> tuple[Array, Array]:
        """`predict_loss` plus `unmodelled_variance`; `strategies/stated_loss.py` limits it to possible losses."""
        mean, variance = self.predict_loss(points)
        return mean, variance + self.unmodelled_variance(points)

    def unmodelled_variance(self, points: Array) -> Array:
        """(m,) Variance that is not in the GP: discrepancy and nugget."""
        return self.discrepancy_variance(points) + self.nugget_variance(points)

    def discrepancy_variance(self, points: Array) -> Array:
        """Variance (m,) of the error of `predict_loss` if curves bend near the target, see `Discrepancy`."""
        return np.zeros(len(points)) if self._discrepancy is None else self._discrepancy.variance(points)

    @property
    def curves_bend(self) -> bool:
        """Whether curves have begun to bend, more probably than not."""
        return self._discrepancy is not None and self._discrepancy.early_probability > 0.5

    @cached_property
    def _discrepancy(self) -> Discrepancy | None:
        spec, columns = self.prior.spec, self.prior.columns
        if not columns.fidelities or spec.discrepancy == 0.0:
            return None
        # Half of the spread of the losses; under a logarithm it may also be half of the logarithm's unit.
        part = spec.discrepancy
        std = part / self.transform.scale if self.transform.logarithmic else part
        return Discrepancy(self.loss, self.observed, self.prior.over_x(), columns.fidelities, std, part)

    def nugget_variance(self, points: Array) -> Array:
        """Variance (m,) of what belongs to a configuration and not to the smooth function of the GP.

        It is the part `nugget_fraction` of the noise at the target, whatever the size of the points (m, D).
        """
        columns, target = list(self.prior.columns.fidelities), points.copy()
        target[:, columns] = 1.0
        return np.asarray(self.nugget_fraction * self.loss.noise(target).mean(axis=0))

    def predict_with_nugget(self, points: Array, counts: Array, averages: Array) -> tuple[Array, Array]:
        """Mean and variance (m,) of the standardised loss, when part of the noise belongs to the configuration.

        A measured point keeps most of its measured value (docs/decisions/incumbent.md). This is exact for a
        hyperparameter sample, even with repeats: their covariance contains the nugget.

        Args:
            points: (m, D).
            counts: (m,) how often each point was measured; 0 for never.
            averages: (m,) mean of its measurements, standardised; any number where there are none.
        """
        fraction = self.nugget_fraction
        mean, variance = self.predict_loss(points)
        noise = self.loss.noise(points).mean(axis=0)
        weight = shrinkage(counts, fraction)
        # The nugget's variance, given the loss and the measurements, is fraction * (1 - weight) * noise.
        shrunk = mean + weight * (averages - mean)
        return shrunk, (1.0 - weight) ** 2 * variance + fraction * (1.0 - weight) * noise

    def losses_one_step_ahead(self) -> tuple[Array, Array]:
        """Mean and variance (n,) of each standardised loss, noise included, given only those before it.

        The hyperparameter samples are those of this surrogate, which has seen all of them.
        """
        means, variances = self.loss.one_step_ahead()
        return means.mean(axis=0), variances.mean(axis=0) + means.var(axis=0)

    def log_costs_one_step_ahead(self) -> tuple[Array, Array]:
        """The same for the log-seconds of the trials whose cost is used."""
        means, variances = self.cost.one_step_ahead()
        offset = self.log_cost_centre + self.prior.log_size(self.cost.points)
        return means.mean(axis=0) + offset, variances.mean(axis=0) + means.var(axis=0)

    def condition(self, data: Data) -> Surrogate:
        """The posterior after more trials, with the same hyperparameters and transforms."""
        losses = data.targets(self.transform)
        used = data.cost_is_used(self.prior, self.log_cost_centre)
        costs = data.log_costs(self.prior)[used] - self.log_cost_centre
        return replace(
            self,
            loss=self.loss.condition(data.points, losses),
            observed=np.append(self.observed, ~data.failed),
            cost=self.cost.condition(data.points[used], costs) if used.any() else self.cost,
        )

    def condition_pending(self, points: Array) -> Surrogate:
        """The posterior with these evaluations pending: the variance shrinks as after a measurement, the mean stays."""
        if not len(points):
            return self
        observed = np.append(self.observed, np.zeros(len(points), dtype=np.bool_))
        return replace(self, loss=self.loss.condition(points), observed=observed)


def fit(
    prior: SurrogatePrior,
    data: Data,
    walkers: HyperparameterSets | None,
    steps: int,
    K: int,
    rng: np.random.Generator,
    *,
    units: TargetTransform | None = None,
) -> tuple[Surrogate, HyperparameterSets, HyperparameterSets]:
    """Both posteriors given all the data: move the walkers, and keep K of them as hyperparameter samples.

    Args:
        prior: Both GP priors.
        data: The ended trials.
        walkers: Where the last fit ended; None starts from the prior.
        steps: MCMC steps; 0 leaves the walkers where they are.
        K: Number of hyperparameter samples.
        rng: Moves the walkers and chooses among them.
        units: The transform of the loss when the walkers last moved, because their hyperparameters are in its units.
            None fits a new transform to the data, which is right if the walkers move in this call.

    Returns:
        The surrogate, all walkers, and the walkers that are its samples.
    """
    targets = _targets(prior, data)
    before = (walkers.loss, walkers.cost) if walkers else (None, None)
    cost_points, columns = data.points[targets.cost_is_used], list(prior.columns.fidelities)
    repeats, limit = data.repeats(prior, targets.losses), data.max_mcmc
    moved = HyperparameterSets(
        _move(prior.loss_gp(), data.points, targets.losses, repeats, columns, limit, before[0], steps, rng),
        _move(prior.cost_gp(), cost_points, targets.costs, None, columns, limit, before[1], steps, rng),
    )
    samples = HyperparameterSets(_choose(moved.loss, K, rng), _choose(moved.cost, K, rng))
    return build(prior, data, samples, units), moved, samples


def build(
    prior: SurrogatePrior, data: Data, samples: HyperparameterSets, units: TargetTransform | None = None
) -> Surrogate:
    """Both posteriors given all the data and hyperparameter samples in the units of the transform `units`."""
    targets = _targets(prior, data, units)
    repeats = data.repeats(prior, targets.losses)
    loss = prior.loss_gp().posterior(data.points, targets.losses, samples.loss, repeats)
    return Surrogate(
        prior,
        loss,
        ~data.failed,
        prior.cost_gp().posterior(data.points[targets.cost_is_used], targets.costs, samples.cost),
        targets.transform,
        targets.log_cost_centre,
        prior.spec.nugget_fraction if repeats is None else _learnt_fraction(loss, repeats),
    )


def _learnt_fraction(loss: Posterior, repeats: Repeats) -> float:
    """The part of the noise at the target that belongs to the configuration, both averaged over the samples."""
    noise = loss.noise(loss.points[repeats.pairs[0][:1]])[:, 0]
    return float(np.average(repeats.fraction(noise, NOISE_FLOOR), weights=noise))


@dataclass(frozen=True)
class _Targets:
    losses: Array  # (n,) standardised
    costs: Array  # (m,) centred log-seconds minus log-size, where the cost is used
    cost_is_used: BoolArray  # (n,)
    transform: TargetTransform
    log_cost_centre: float


def _targets(prior: SurrogatePrior, data: Data, units: TargetTransform | None = None) -> _Targets:
    transform = data.fit_transform(prior.spec.transform)
    if units is not None:
        transform = transform.in_units_of(units)
    used = data.cost_is_used(prior)
    costs = data.log_costs(prior)[used]
    centre = float(costs.mean()) if len(costs) else 0.0
    return _Targets(data.targets(transform), costs - centre, used, transform, centre)


def _move(
    gp: GaussianProcess,
    points: Array,
    y: Array,
    repeats: Repeats | None,
    columns: list[int],
    limit: int,
    walkers: Array | None,
    steps: int,
    rng: np.random.Generator,
) -> Array:
    """The walkers (W, p) after `steps` MCMC steps; if None are given, they are drawn from the prior first."""
    if walkers is not None and steps <= 0:
        return walkers
    if len(y) > limit:
        chosen = _mcmc_trials(points[:, columns], limit, rng)
        points, y = points[chosen], y[chosen]
        repeats = None if repeats is None else repeats.subset(chosen)
    log_density = gp.log_density(points, y, repeats)
    if walkers is None:
        count, draws = mcmc.n_walkers(len(gp.priors)), 10 if steps > 0 else 2
        walkers = mcmc.initialize(log_density, gp.priors, count, rng, draws_per_walker=draws)
    if steps <= 0:
        return walkers
    best = walkers[int(np.argmax(log_density(walkers)))]
    mode = mcmc.find_mode(log_density, gp.priors, best, 2 * steps)
    walkers = mcmc.reinitialize(log_density, gp.priors, walkers, mode, rng)
    return mcmc.sample(log_density, walkers, steps, rng)


def _mcmc_trials(u: Array, limit: int, rng: np.random.Generator) -> IntArray:
    """The trials (m,) that MCMC uses: half are those at the largest sizes, which are few, half are random."""
    largest = np.lexsort((rng.random(len(u)), -u.sum(axis=1)))[: limit // 2]
    others = np.setdiff1d(np.arange(len(u)), largest)
    return np.concatenate([largest, rng.choice(others, limit - len(largest), replace=False)])


def _choose(walkers: Array, K: int, rng: np.random.Generator) -> Array:
    return walkers[rng.choice(len(walkers), min(K, len(walkers)), replace=False)]
