"""How soon each method has a good answer: one row a method, medians over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.live.search import Run

SHARES = (0.1, 0.25, 0.5, 1.0)  # of the time budget, at which test errors are shown


@dataclass(frozen=True)
class Summary:
    """A method on a problem, in seconds; a median is infinite where most runs have no such time.

    Attributes:
        method: Name of the method.
        seeds: Number of runs.
        first: Median time of the first answer.
        reached: For each distance, the median time after which the test error stays within it of the reference, and
            the number of runs that got there.
        test: Median test error at each of SHARES.
        trials: Median number of trials.
        overhead: Median share of the time that is not training.
    """

    method: str
    seeds: int
    first: float
    reached: tuple[tuple[float, int], ...]
    test: tuple[float, ...]
    trials: float
    overhead: float


def reference(runs: Mapping[str, Sequence[Run]], time_budget: float) -> float:
    """The lowest median test error at the end, of all methods."""
    return min(_median([run.test_at(time_budget) for run in found]) for found in runs.values())


def summarise(
    method: str, runs: Sequence[Run], best: float, distances: Sequence[float], time_budget: float
) -> Summary:
    """The medians over the runs of a method, of which there is at least one."""
    reached = []
    for distance in distances:
        times = np.array([run.stays_below(best + distance) for run in runs])
        reached.append((_median(times), int(np.isfinite(times).sum())))
    return Summary(
        method=method,
        seeds=len(runs),
        first=_median([run.answers[0]["time"] if run.answers else np.inf for run in runs]),
        reached=tuple(reached),
        test=tuple(_median([run.test_at(share * time_budget) for run in runs]) for share in SHARES),
        trials=_median([len(run.trials) for run in runs]),
        overhead=_median([run.overhead / run.elapsed for run in runs]),
    )


def _median(values: Sequence[float] | np.ndarray) -> float:
    """The middle value; of an even number the higher of the two in the middle, so that infinity stays infinity."""
    return float(np.quantile(np.asarray(values, dtype=float), 0.5, method="higher"))


def markdown(rows: Sequence[Summary], distances: Sequence[float], time_budget: float) -> str:
    """A table; times also as multiples of those of `fabolas`."""
    ours = next((row for row in rows if row.method == "fabolas"), None)
    head = [
        "method",
        "seeds",
        "first answer, s",
        *(f"within {distance:g}, s" for distance in distances),
        *(f"test error at {share * time_budget:g} s" for share in SHARES),
        "trials",
        "overhead",
    ]
    lines = [head, ["---"] * len(head)]
    for row in rows:
        times = []
        for i, (seconds, count) in enumerate(row.reached):
            text = f"{_number(seconds)} ({count}/{row.seeds})"
            if ours is not None and ours is not row and np.isfinite([seconds, ours.reached[i][0]]).all():
                text += f" ×{seconds / ours.reached[i][0]:.2g}"
            times.append(text)
        errors = [f"{error:.4f}" if np.isfinite(error) else "—" for error in row.test]
        cells = [row.method, str(row.seeds), _number(row.first), *times, *errors]
        lines.append([*cells, f"{row.trials:.0f}", f"{row.overhead:.0%}"])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _number(value: float) -> str:
    return f"{value:.3g}" if np.isfinite(value) else "—"
