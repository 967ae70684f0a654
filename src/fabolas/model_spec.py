"""The priors of both GPs: `ModelSpec` names their parts, `SurrogatePrior` assembles the kernels.

    loss      theta k52(x, x') * (prod_j phi_f(u_j)' S_j phi_f(u_j') + Brownian)  + trend     eq. 6 and two terms
    log-cost  theta k52(x, x') + Brownian k52(x, x') + constant,  around a polynomial in each fidelity

The Brownian term lets curves deviate from the basis functions; the trend is shared by all configurations
(docs/decisions/learning-curves.md). To change the learning-curve basis, change `ModelSpec.loss_basis`. With
`cost_terms=()` the cost model is that of eq. 6 (docs/decisions/cost.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from fabolas._types import Array
from fabolas.gp.kernels import (
    Amplitude,
    Basis,
    BrownianKernel,
    FiniteRank,
    Kernel,
    LinearTrend,
    Matern52,
    Product,
    Sum,
    cubic_time,
    power_law_basis,
    quadratic_time,
    scaled_length_prior,
)
from fabolas.gp.polynomial import CostTerm, PolynomialLogCost
from fabolas.gp.priors import Normal, Prior
from fabolas.gp.regression import GaussianProcess, Noise
from fabolas.gp.trainings import SameTraining
from fabolas.transforms import FitTransform, log_transform

# The part of the noise variance that belongs to the configuration: a second measurement would have the same error.
# Training on all the data is mostly deterministic (one data set, one seed), so a residual that the GP cannot explain is
# mostly not chance. If there are repeats at the target, the fraction is estimated from them, see `gp/repeats.py`.
NUGGET_FRACTION = 0.9

# Priors of the log-weights, relative to the linear term at the target. Fixed costs are usually small at the target, a
# quadratic term often is not. The power 1.5 is for costs between n and n^2, which whole powers extrapolate too steeply.
# The standard deviations allow a cost that is a pure power of sizes over a range of 256.
COST_TERMS = (
    CostTerm(0.0, -3.0, 2.5),
    CostTerm(1.5, -0.5, 2.5),
    CostTerm(2.0, 1.0, 2.5),
    CostTerm(3.0, -4.0, 2.5),
)
# Standard deviation of the level of log-cost that all configurations share. The polynomial is zero at the target, but
# the data are centred where they were measured, mostly at small sizes. So every weight that makes the target expensive
# moves the level, and a narrow prior of the level would make such weights improbable.
COST_LEVEL_STD = 3.0


@dataclass(frozen=True)
class Deviation:
    """A random-walk deviation from the basis functions, see `BrownianKernel`."""

    time_warp: Callable[[Array], Array]
    log_variance_prior: Prior


@dataclass(frozen=True)
class ModelSpec:
    """The parts of both GPs: what distinguishes one model-based strategy from another.

    The defaults are those of `fabolas`. Pass another value for an ablation:
    `strategy="fabolas", model=ModelSpec(loss_basis=paper_loss_basis)`.

    Attributes:
        loss_basis: phi_f of eq. 6, on log-scaled size u and relative size s.
        cost_terms: The prior mean of cost is a sum of these and a linear term in each fidelity, with learnt weights;
            () for a constant and the kernel of eq. 6.
        cost_basis: phi_c of eq. 6, without cost_terms.
        chol_offdiag_prior: Prior of L[i, 0], the covariance between the basis weights i and 0 (slope and level of a
            curve).
        chol_logdiag_prior: Prior of log L[i, i] for the loss: how much slopes differ between configurations.
        cost_chol_logdiag_prior: The same for log-cost, without cost_terms.
        transform: Fits the transform of the loss.
        loss_deviations: Random walks by which losses may deviate from the basis; () for eq. 6 alone.
        cost_deviations: Random walks by which log-costs of a configuration may deviate from the cost_terms.
        shared_trend: Whether all configurations share a trend over the sizes.
        noise_by_size: Whether the noise may decrease towards the target.
        length_prior: Number of hyperparameters d -> prior of each log length scale.
        discrepancy: Prior standard deviation of the discrepancy (late bend) at the target, see `Discrepancy`; 0 for
            none. In log-losses, so 0.5 is a factor of 1.6. Without a logarithm, in standard deviations of the losses.
        nugget_fraction: See `NUGGET_FRACTION`; its prior mean if configurations were evaluated at the target more than
            once. With 0 only the GP predicts, with 1 measured values are kept; repeats change neither.
        max_trials: The posteriors use at most this many trials, because their computing time is cubic in that number.
            With more, see `informative_subset` in strategies/fitting.py.
        cost_from_fidelity: Take the relative size instead of measured seconds as the cost of a trial, and no
            overhead. With a fixed effort, suggestions then depend on the losses alone and not on a clock. Only for runs
            without a time budget.
    """

    loss_basis: Basis = power_law_basis
    cost_terms: tuple[CostTerm, ...] = COST_TERMS
    cost_basis: Basis = power_law_basis
    chol_offdiag_prior: Prior = Normal(0.0, 0.5)
    chol_logdiag_prior: Prior = Normal(0.0, 1.0)
    cost_chol_logdiag_prior: Prior = Normal(-1.0, 1.0)
    transform: FitTransform = log_transform
    loss_deviations: tuple[Deviation, ...] = (Deviation(quadratic_time, Normal(-2.0, 1.5)),)
    cost_deviations: tuple[Deviation, ...] = (Deviation(cubic_time, Normal(-2.0, 1.5)),)
    shared_trend: bool = True
    noise_by_size: bool = True
    length_prior: Callable[[int], Prior] = scaled_length_prior
    discrepancy: float = 0.5
    nugget_fraction: float = NUGGET_FRACTION
    max_trials: int = 600
    cost_from_fidelity: bool = False


@dataclass(frozen=True)
class Columns:
    """What the columns of a point mean to the models.

    Attributes:
        n_choices: (d,) of each hyperparameter: 0 if numeric, else the number of categories.
        n_fidelities: How many fidelity columns the models see, the first ones; 0 if all trials are at the target.
        relative_sizes: For each fidelity of the space u (n,) -> s (n,), the value relative to the target.
        training: The column of the data that holds the number of the training, if trainings report on the way.
        curve: The column of the fidelity that trainings pass through and report, if there is one.
    """

    n_choices: tuple[int, ...]
    n_fidelities: int = 0
    relative_sizes: tuple[Callable[[Array], Array], ...] = ()
    training: int | None = None
    curve: int | None = None

    @property
    def fidelities(self) -> tuple[int, ...]:
        """The indices of the fidelity columns that the models see."""
        d = len(self.n_choices)
        return tuple(range(d, d + self.n_fidelities))

    def log_sizes(self, points: Array) -> Array:
        """log s of each fidelity, (n, D) -> (n, f)."""
        d = len(self.n_choices)
        sizes = [size(points[:, d + j]) for j, size in enumerate(self.relative_sizes)]
        return np.log(np.stack(sizes, axis=-1)) if sizes else np.zeros((len(points), 0))

    def log_ranges(self) -> list[float]:
        """(f,) log(target / smallest value) of each fidelity."""
        return [-float(np.log(size(np.zeros(1)))[0]) for size in self.relative_sizes]


@dataclass(frozen=True)
class SurrogatePrior:
    """Both GP priors for the points of one space."""

    spec: ModelSpec
    columns: Columns

    def loss_gp(self) -> GaussianProcess:
        """The prior over standardised, transformed losses."""
        spec, f = self.spec, self.columns.n_fidelities
        noise = Noise(self._subset_noise()) if spec.noise_by_size and self._subset_fidelities() else Noise()
        deviations = [
            BrownianKernel(self.columns.fidelities, d.time_warp, d.log_variance_prior)
            for d in spec.loss_deviations
        ]
        kernel = self._kernel(spec.loss_basis, deviations, [2.0] * f, spec.chol_logdiag_prior)
        return self._sharing_noise(GaussianProcess(kernel, noise))

    def cost_gp(self) -> GaussianProcess:
        """The prior over log-seconds minus the log-size.

        The polynomial is what all configurations share. A configuration multiplies it by a factor, which changes with
        the size by a random walk, mostly near the target: there other terms dominate than at small sizes.
        """
        spec, columns = self.spec, self.columns
        if not (spec.cost_terms and columns.n_fidelities):
            slopes = [0.5 * log_range for log_range in columns.log_ranges()[: columns.n_fidelities]]
            kernel = self._kernel(spec.cost_basis, [], slopes, spec.cost_chol_logdiag_prior)
            return self._sharing_noise(GaussianProcess(kernel, Noise()))
        deviations = [
            BrownianKernel(columns.fidelities, d.time_warp, d.log_variance_prior)
            for d in spec.cost_deviations
        ]
        kernel = self.over_x() * Sum((Amplitude(), *deviations)) + LinearTrend(_cost_level)
        mean = PolynomialLogCost(spec.cost_terms, columns.log_sizes, columns.n_fidelities)
        return self._sharing_noise(GaussianProcess(kernel, Noise(), mean))

    def _sharing_noise(self, gp: GaussianProcess) -> GaussianProcess:
        """The same GP; the points of one training share noise if trainings report on the way."""
        column = self.columns.training
        return gp if column is None else gp.sharing_noise(SameTraining(column))

    def log_size(self, points: Array) -> Array:
        """What log-costs are relative to, (n,): the sum of the log-sizes; zero without cost_terms."""
        if not self.spec.cost_terms:
            return np.zeros(len(points))
        return np.asarray(self.columns.log_sizes(points).sum(axis=1))

    def over_x(self) -> Matern52:
        """The kernel over configurations. Its length scales are the first hyperparameters of each GP."""
        n_choices = self.columns.n_choices
        return Matern52(n_choices, self.spec.length_prior(len(n_choices)))

    def _subset_fidelities(self) -> list[int]:
        """The numbers of the fidelities that may be sizes of subsets; epochs that are reported are not."""
        return [j for j, column in enumerate(self.columns.fidelities) if column != self.columns.curve]

    def _subset_noise(self) -> Callable[[Array], Array]:
        """Points (n, D) -> (n,), the mean over the subset fidelities of (1/s - 1) / (1/s_min - 1): 0 at the target.

        A mean over n of N rows, drawn without replacement, has a variance in proportion to 1/n - 1/N. Epochs that a
        training passes through are no subset: their noise does not disappear at the target.
        """
        columns, subsets = self.columns, self._subset_fidelities()
        at_smallest = np.expm1(columns.log_ranges())[subsets]

        def evaluate(points: Array) -> Array:
            return np.asarray(np.mean(np.expm1(-columns.log_sizes(points)[:, subsets]) / at_smallest, axis=1))

        return evaluate

    def _kernel(
        self, basis: Basis, deviations: list[BrownianKernel], slopes: list[float], logdiag_prior: Prior
    ) -> Kernel:
        """theta k52(x, x') * (prod_j phi(u_j)' S_j phi(u_j') + deviations) + trend: eq. 6 and two terms."""
        spec, columns = self.spec, self.columns
        kernel = self.over_x() * Amplitude()
        features = [_features(basis, size) for size in columns.relative_sizes[: columns.n_fidelities]]
        if columns.n_fidelities:
            factors: list[Kernel] = [
                FiniteRank(column, phi, spec.chol_offdiag_prior, logdiag_prior)
                for column, phi in zip(columns.fidelities, features, strict=True)
            ]
            across: Kernel = Product(tuple(factors)) if len(factors) > 1 else factors[0]
            kernel = kernel * (Sum((across, *deviations)) if deviations else across)
        if not spec.shared_trend:
            return kernel
        return kernel + LinearTrend(_trend_features(features, columns.fidelities, slopes))


def _cost_level(points: Array) -> Array:
    """Points (n, D) -> (n, 1): a shared constant."""
    return np.full((len(points), 1), COST_LEVEL_STD)


def _features(basis: Basis, relative_size: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A basis as a function of u (n,) alone."""
    return lambda u: basis(u, relative_size(u))


def _trend_features(
    features: list[Callable[[Array], Array]], columns: tuple[int, ...], slopes: list[float]
) -> Callable[[Array], Array]:
    """Points (n, D) -> (n, m): a constant, and each fidelity's basis functions with their powers up to four.

    The powers bend the shared trend: a cost that does not vanish with the size, an error that more data do not
    remove. Their prior standard deviations decrease, so the trend is a smooth function that stays uncertain beyond
    the sizes seen.
    """

    def evaluate(points: Array) -> Array:
        blocks = [np.ones((len(points), 1))]
        for phi, column, slope in zip(features, columns, slopes, strict=True):
            half = 0.5 * phi(points[:, column])[:, 1:]
            blocks += accumulate([2.0 * slope * half, half, half, half], np.multiply)  # the powers of phi
        return np.concatenate(blocks, axis=1)

    return evaluate
