"""The numbers that the demo shows: where the time went, when the answer was good, what random search would cost."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fabolas.api import Result
from fabolas.trials import Trial

TOLERANCE = 0.005  # an answer whose error is at most this much higher than that of the last answer is good
_N_RANDOM = 2048  # configurations that stand for the whole space


@dataclass(frozen=True)
class Bucket:
    """The trials with more than `low` and at most `high` rows."""

    low: int
    high: int
    trials: int
    seconds: float


def buckets(trials: Sequence[Trial], smallest: int, largest: int) -> list[Bucket]:
    """Count trials and their seconds by size; each bucket ends at twice the size of the one before.

    The last bucket ends at `largest`, the first one contains `smallest`. Each trial is in exactly one bucket.
    """
    edges = [largest]
    while edges[-1] // 2 >= smallest:
        edges.append(edges[-1] // 2)
    edges = [0, *reversed(edges)]
    found = []
    for low, high in pairwise(edges):
        inside = [t for t in trials if low < t.fidelity["size"] <= high]
        found.append(Bucket(low, high, len(inside), sum(t.cost for t in inside)))
    return found


@dataclass(frozen=True)
class EarlyAnswer:
    """When the answer was good for the first time and stayed good.

    Attributes:
        seconds: Seconds since the start of the search.
        trials: Number of trials until then.
        size: The most rows of a trial until then.
    """

    seconds: float
    trials: int
    size: int


def early_answer(result: Result) -> EarlyAnswer:
    """Return from when on all answers of the search were about as good as the last one, on all rows.

    The models at the end of the search judge the earlier answers.
    """
    limit = result.predicted_loss + TOLERANCE
    seconds = result.trajectory[-1][0]
    for elapsed, incumbent in reversed(result.trajectory):
        if float(result.predict(incumbent.config).loss[0]) > limit:
            break
        seconds = elapsed
    before = [trial for trial in result.trials if trial.elapsed <= seconds]
    return EarlyAnswer(seconds, len(before), max(int(trial.fidelity["size"]) for trial in before))


@dataclass(frozen=True)
class RandomSearch:
    """What a random search on all rows is expected to need until it finds such an answer.

    Attributes:
        trials: Number of trainings; infinite if the models know no configuration as good.
        seconds: Seconds of all of them.
    """

    trials: float
    seconds: float


def random_search(result: Result) -> RandomSearch:
    """Return the expected cost of a random search, from the predictions for configurations of the whole space."""
    x = result.space.sobol(_N_RANDOM, np.random.default_rng(0))
    prediction = result.predict_points(result.space.at_target(x))
    share = float(np.mean(prediction.loss <= result.predicted_loss + TOLERANCE))
    if share == 0.0:
        return RandomSearch(math.inf, math.inf)
    return RandomSearch(1 / share, float(np.mean(prediction.cost)) / share)
