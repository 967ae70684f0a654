"""Criteria: what an evaluation is worth. `EntropyReduction` is here, `KnowledgeGradient` in its own file.

In each decision a `Criterion` is prepared once (`PreparedCriterion`). It screens many candidates (`Screened`) and then
evaluates few of them accurately.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from fabolas._types import Array, BoolArray, IntArray
from fabolas.acquisition.batch import greedy_batch
from fabolas.acquisition.entropy import (
    Information,
    InformationEstimator,
    PosteriorSamples,
    gaussian_information,
    monte_carlo_information,
)
from fabolas.acquisition.representers import Representers
from fabolas.gp.regression import Posterior

Represent = Callable[[Posterior, Array], Representers]


class Screened(Protocol):
    """M screened candidates, and what an evaluation of each is worth."""

    @property
    def worth(self) -> Array:
        """(K, M) What an evaluation of each candidate is worth, for each hyperparameter sample."""
        ...

    def batch(self, divisor: Array, allowed: BoolArray, *, first: int, count: int) -> IntArray:
        """Indices of up to `count` candidates, each the best per cost given those before it.

        Args:
            divisor: (M,) what worth is divided by.
            allowed: (M,) which candidates may be chosen.
            first: The index of the first choice.
            count: How many.
        """
        ...


class PreparedCriterion(Protocol):
    """A criterion in one decision: all that does not depend on the candidate. Callers average over the K samples."""

    def screen(self, points: Array) -> Screened:
        """An estimate for many points (M, D)."""
        ...

    def evaluate(self, points: Array) -> Array:
        """(K, M) An accurate estimate for few points (M, D)."""
        ...


class Criterion(Protocol):
    """How the worth of an evaluation is measured."""

    @property
    def negligible(self) -> float:
        """If no evaluation is worth more than this, the strategy maximises expected improvement at the target."""
        ...

    def prepare(
        self,
        posterior: Posterior,
        representers: Array,
        tried: Array,
        *,
        n_fidelities: int,
        n_samples: int,
        n_outcomes: int,
        represent: Represent,
        rng: np.random.Generator,
    ) -> PreparedCriterion:
        """Compute all that does not depend on the candidate.

        Args:
            posterior: Of the loss.
            representers: (R, D) at the target.
            tried: (B, D) the best configurations tried, at the target.
            n_fidelities: How many of the last columns are fidelities.
            n_samples: Joint samples, where samples are used.
            n_outcomes: Hypothetical outcomes of an evaluation, where they are used.
            represent: (posterior, points (R, D)) -> representers; with curves, `TraceRepresenters`.
            rng: The only source of randomness.
        """
        ...


NEGLIGIBLE_NATS = 1e-3  # with less information than this, an evaluation is not worth its cost


@dataclass(frozen=True)
class EntropyReduction:
    """Information about the location of the optimum at the target (Klein et al. 2017, eq. 7), in nats.

    Attributes:
        estimate: For the best candidates: `monte_carlo_information` or `ep_information`.
        relative_to_uniform: eq. 7 as printed, instead of the reduction of the entropy.
        final_samples: Factor by which the number of samples grows from screening to the final choice.
    """

    estimate: InformationEstimator = monte_carlo_information
    relative_to_uniform: bool = False
    final_samples: int = 1

    @property
    def negligible(self) -> float:
        # eq. 7 as printed is never negligible: the published algorithm has no other acquisition.
        return -np.inf if self.relative_to_uniform else NEGLIGIBLE_NATS

    def prepare(
        self,
        posterior: Posterior,
        representers: Array,
        tried: Array,
        *,
        n_fidelities: int,
        n_samples: int,
        n_outcomes: int,
        represent: Represent,
        rng: np.random.Generator,
    ) -> PreparedEntropy:
        at = represent(posterior, representers)
        samples = PosteriorSamples.draw(at, n_samples, rng)
        return PreparedEntropy(self, at, samples, n_outcomes, rng)


@dataclass(frozen=True)
class PreparedEntropy:
    """The entropy reduction in one decision."""

    criterion: EntropyReduction
    representers: Representers
    samples: PosteriorSamples
    n_outcomes: int
    rng: np.random.Generator

    def screen(self, points: Array) -> ScreenedEntropy:
        """Information by Gaussian moments."""
        uniform = self.criterion.relative_to_uniform
        screen = gaussian_information(self.representers, self.samples, relative_to_uniform=uniform)
        return ScreenedEntropy(self, points, screen(points))

    def evaluate(self, points: Array) -> Array:
        """Information by `estimate` of the criterion."""
        return self._estimate(points)

    @cached_property
    def _estimate(self) -> Information:
        """The estimate, with the same samples for all candidates."""
        samples, times = self.samples, self.criterion.final_samples
        if times > 1:
            samples = PosteriorSamples.draw(self.representers, times * len(samples.Z), self.rng)
        uniform = self.criterion.relative_to_uniform
        return self.criterion.estimate(
            self.representers, samples, self.n_outcomes, relative_to_uniform=uniform
        )


@dataclass(frozen=True)
class ScreenedEntropy:
    """Candidates (M, D) and their information (K, M)."""

    prepared: PreparedEntropy
    points: Array
    worth: Array

    def batch(self, divisor: Array, allowed: BoolArray, *, first: int, count: int) -> IntArray:
        """Indices by joint information of Gaussian outcomes, see `greedy_batch`."""
        prepared = self.prepared
        return greedy_batch(
            prepared.representers, prepared.samples, self.points, divisor, allowed, first=first, count=count
        )
