"""The model of a study, as the figures ask it: predictions and intervals in the user's units, and p_min."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from fabolas._types import Array
from fabolas.acquisition.entropy import frequencies, lowest
from fabolas.acquisition.representers import Representers, neighbourhood
from fabolas.display import counted
from fabolas.numeric_errors import default_error_state
from fabolas.optimize import sobol
from fabolas.plots.figure import CannotDraw, ReadableStudy
from fabolas.plots.sensitivity import SobolIndices, sobol_indices
from fabolas.space import Space
from fabolas.strategies import Strategy, SurrogateStrategy
from fabolas.strategies.fitting import SurrogateWithTrials
from fabolas.strategies.stated_loss import possible_losses, truncated_moments
from fabolas.trials import History, Incumbent

WIDE, NARROW = 1.96, 0.6745  # deviations of intervals with a probability of 95 % and of 50 %
_LOWEST_SECONDS, _HIGHEST_SECONDS = -25.0, 50.0  # logarithms

# p_min is estimated on this many configurations, from this many joint samples in all.
_N_GLOBAL, _N_LOCAL, _N_EVALUATED, _N_SAMPLES = 96, 96, 48, 1024
_LEAST_VARIANCE = 1e-10  # of the standardised mean
_MAX_EVALUATIONS = 2048  # of the posterior mean, for Sobol indices
_LOCAL_STEPS = (0.2, 0.05, 0.0125)


@dataclass(frozen=True)
class Interval:
    """Predictions (m,) with the ends of an interval of 95 % and of one of 50 %, in the user's units.

    The centre is what `predict` returns: the mean of a loss, the median of a cost.
    """

    centre: Array
    low: Array
    high: Array
    inner_low: Array
    inner_high: Array

    def part(self, start: int, end: int) -> Interval:
        """The same of the entries start, ..., end - 1."""
        return Interval(*(getattr(self, each.name)[start:end] for each in fields(self)))


@dataclass(frozen=True)
class OptimumSamples:
    """Where the optimum at the target may be: configurations (R, d) and the probability (R,) of each."""

    x: Array
    probability: Array


@dataclass(frozen=True)
class Model:
    """Both posteriors of a study.

    Attributes:
        space: The search space.
        history: The trials.
        sign: 1 if lower losses are better, -1 if higher ones are: the models see losses times this.
        fitted: The posteriors, and which trials are their data.
    """

    space: Space
    history: History
    sign: float
    fitted: SurrogateWithTrials

    @property
    def sees_fidelities(self) -> bool:
        """Whether the models see the fidelities; strategies that train on all the data only do not."""
        return self.fitted.surrogate.prior.columns.n_fidelities == self.space.n_fidelities

    @property
    def costs_are_seconds(self) -> bool:
        """Whether the cost model is in seconds, and not in relative sizes."""
        return not self.fitted.surrogate.prior.spec.cost_from_fidelity

    def at_target(self, x: Array) -> Array:
        """Configurations (m, d) -> points (m, d + f) at the target."""
        return self.space.at_target(x)

    @default_error_state()
    def loss(self, points: Array) -> Interval:
        """The expected loss of a configuration at points (m, d + f), with the intervals that are stated."""
        return self.losses(*self.fitted.surrogate.predict_stated_loss(points))

    @cached_property
    def _possible(self) -> tuple[float, float]:
        """The range of losses that are possible, times `sign`."""
        return possible_losses(self.sign * self.history.losses[self.history.complete])

    def losses(self, mean: Array, variance: Array) -> Interval:
        """Intervals of losses from moments (m,) of standardised ones."""
        std, transform = np.sqrt(variance), self.fitted.surrogate.transform
        limits = self._possible

        def at(deviations: float) -> Array:
            losses = transform.inverse(mean + self.sign * deviations * std)
            return self.sign * np.clip(losses, *limits)

        centre = self.sign * truncated_moments(transform, mean, variance, limits)[0]
        return Interval(centre, at(-WIDE), at(WIDE), at(-NARROW), at(NARROW))

    @default_error_state()
    def cost(self, points: Array) -> Interval:
        """Measured seconds at points (m, d + f)."""
        return log_normal(*self.fitted.surrogate.predict_log_cost(points))

    @default_error_state()
    def means_by_sample(self, points: Array) -> Array:
        """(K, m) The standardised posterior mean for each hyperparameter sample."""
        return self.fitted.surrogate.loss.mean_of(points)

    @cached_property
    def evaluated(self) -> Array:
        """(m, d) The configurations with a complete trial, each once, the best predicted at the target first."""
        x = np.unique(self.history.points[self.history.complete][:, : self.space.dim], axis=0)
        means = self.means_by_sample(self.at_target(x)).mean(axis=0)
        return x[np.argsort(means, kind="stable")]

    @cached_property
    def sensitivity(self) -> SobolIndices:
        """Sobol indices of the standardised posterior mean at the target, for each hyperparameter sample."""
        d = self.space.dim
        n = 2 ** int(np.log2(max(_MAX_EVALUATIONS // (d + 2), 64)))
        return sobol_indices(
            lambda x: self.means_by_sample(self.at_target(self.space.snap(x))), d, n, np.random.default_rng(0)
        )

    @property
    def sees_differences(self) -> bool:
        """Whether the posterior mean at the target differs between configurations."""
        return bool(self.sensitivity.variance.max() > _LEAST_VARIANCE)

    @cached_property
    def by_importance(self) -> tuple[str, ...]:
        """The hyperparameters, the one with the largest total index first."""
        order = np.argsort(-self.sensitivity.total.mean(axis=0), kind="stable")
        return tuple(self.space.names[i] for i in order)

    @cached_property
    @default_error_state()
    def optimum(self) -> OptimumSamples:
        """p_min at the target: how often each configuration is the best one in joint samples of the posterior.

        The configurations are spread over the space, and denser around the best ones.

        Raises:
            CannotDraw: If all of them are forbidden, as in a damaged file.
        """
        rng = np.random.default_rng(0)
        best = self.evaluated[:_N_EVALUATED]
        steps = neighbourhood(best[:12], _N_LOCAL, _LOCAL_STEPS, self.space.n_choices, rng)
        x = np.concatenate([best, sobol(_N_GLOBAL, self.space.dim, rng), steps])
        x = self.space.snap(np.unique(self.space.snap(x), axis=0))
        x = x[self.space.is_legal(x)]
        if not len(x):
            raise CannotDraw("The forbidden clauses of the space allow none of the configurations.")
        representers = Representers.at_points(self.fitted.surrogate.loss, self.at_target(x))
        K, R = representers.mean.shape
        Z = rng.normal(size=(K, -(-_N_SAMPLES // K), R))
        values = representers.mean[:, None, :] + Z @ np.swapaxes(representers.factor, 1, 2)
        probability = frequencies(lowest(values), R).mean(axis=0)
        kept = probability > 0
        return OptimumSamples(x[kept], probability[kept])

    def optimum_with(self, *names: str) -> OptimumSamples:
        """The part of `optimum` in which these hyperparameters are active; all of it if they are so in none."""
        x, probability = self.optimum.x, self.optimum.probability
        configs = (self.space.decode(point)[0] for point in self.at_target(x))
        active = np.array([all(name in config for name in names) for config in configs], dtype=np.bool_)
        return OptimumSamples(x[active], probability[active]) if active.any() else self.optimum


def log_normal(mean: Array, variance: Array) -> Interval:
    """Intervals of seconds from moments (m,) of log-seconds."""
    std = np.sqrt(variance)
    at = [
        np.exp(np.clip(mean + z * std, _LOWEST_SECONDS, _HIGHEST_SECONDS))
        for z in (0.0, -WIDE, WIDE, -NARROW, NARROW)
    ]
    return Interval(*at)


# The last model and the last answer of each study, with the history that they are of.
_MODELS: WeakKeyDictionary[ReadableStudy, Model] = WeakKeyDictionary()
_ANSWERS: WeakKeyDictionary[ReadableStudy, tuple[History, Incumbent | None]] = WeakKeyDictionary()


def model_of(study: ReadableStudy) -> Model:
    """The model of a study. It is computed once for all figures of the same trials.

    Raises:
        CannotDraw: If the strategy has no such model, or no trial is complete.
    """
    require_complete(study)
    model = _MODELS.get(study)
    if model is None or model.history is not study.history:
        strategy = _strategy_of(study)
        if not isinstance(strategy, SurrogateStrategy):
            raise CannotDraw(f"The strategy {strategy.name!r} has no model; 'fabolas' is one that has.")
        with default_error_state():
            fitted = strategy.surrogate(study.history)
        model = _MODELS[study] = Model(study.space, study.history, study.sign, fitted)
    return model


def incumbent_of(study: ReadableStudy) -> Incumbent | None:
    """The answer of the study; None if there is none, or its strategy is not known here. It is computed once."""
    history, answer = _ANSWERS.get(study, (None, None))
    if history is not study.history:
        try:
            _strategy_of(study)
            answer = study.incumbent()
        except CannotDraw:
            answer = None
        _ANSWERS[study] = (study.history, answer)
    return answer


def _strategy_of(study: ReadableStudy) -> Strategy:
    try:
        return study.strategy
    except ValueError as error:  # a file of a strategy that is not one of fabolas
        raise CannotDraw(f"The model of this study cannot be computed here: {error}.") from error


def require_complete(study: ReadableStudy) -> None:
    """Refuse a study without a loss.

    Raises:
        CannotDraw: If there is no trial, or none is complete.
    """
    if not len(study.history):
        raise CannotDraw("There is no trial yet.")
    if not study.history.complete.any():
        n_trials = counted(len(study.history), "trial")
        raise CannotDraw(f"Of {n_trials} none is complete, so there is nothing to show.")
