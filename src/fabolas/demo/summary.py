"""Numbers behind the screens of the demo: where the time went, and when the answer was there."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from fabolas.history import Trial
from fabolas.result import Result


@dataclass(frozen=True)
class Bucket:
    """The trials on more than `low` and at most `high` rows; `low` 0 is the first."""

    low: int
    high: int
    trials: int
    seconds: float


def buckets(trials: Sequence[Trial], smallest: int, largest: int) -> list[Bucket]:
    """Trials and their seconds by size: halves of `largest`, down to the one that holds `smallest`.

    Together the buckets hold every trial once; the order is from small sizes to large ones.
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
class FirstTry:
    """When the configuration that won was first tried: seconds into the search, and on how many rows."""

    seconds: float
    size: int
    trial: int


def first_try(result: Result) -> FirstTry:
    """The moment the winner's first trial ended, by the record: all costs and all thinking up to there."""
    clock = 0.0
    for count, trial in enumerate(result.trials, start=1):
        clock += trial.suggestion.thinking + trial.cost
        if trial.status == "complete" and trial.config == result.best_config:
            return FirstTry(clock, int(trial.fidelity["size"]), count)
    raise ValueError("expected the best configuration among the completed trials, got a result without it")
