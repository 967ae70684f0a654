"""How soon each method comes near the best and stays there: one row a method, medians over seeds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from rich.table import Table

from experiments.simulate import Run
from experiments.svm_grid.problem import Problem

DISTANCES = (0.01, 0.005, 0.002)  # of the best validation error on all the data
CHECKPOINTS = (20.0, 40.0)  # full trainings


@dataclass(frozen=True)
class Reached:
    """The median time after which the incumbent stays within a distance, in full trainings, and in how many runs.

    A run that never gets there counts as infinitely late, so the median is infinite unless most of them do.
    """

    median: float
    runs: int


@dataclass(frozen=True)
class Summary:
    """A method on a problem."""

    method: str
    seeds: int
    reached: tuple[Reached, ...]  # for each distance
    regret: tuple[float, ...]  # median at each checkpoint; infinite where most runs recommend nothing
    ended: tuple[int, ...]  # runs that had ended before each checkpoint: their last regret stands for it
    trials: float  # median
    end: float  # median time of the last trial, in full trainings
    overhead: float  # median share of the time


def summarise(method: str, runs: list[Run], problem: Problem, checkpoints: tuple[float, ...]) -> Summary:
    """The medians over the runs of a method, of which there is at least one."""
    unit = problem.full_cost
    times = np.array([[run.stays_within(distance) / unit for distance in DISTANCES] for run in runs])
    regret = [[run.regret_at(checkpoint * unit) for checkpoint in checkpoints] for run in runs]
    return Summary(
        method=method,
        seeds=len(runs),
        reached=tuple(
            Reached(median, int(count))
            for median, count in zip(_median(times), np.isfinite(times).sum(axis=0), strict=True)
        ),
        regret=_median(np.array(regret)),
        ended=tuple(sum(run.time[-1] < checkpoint * unit for run in runs) for checkpoint in checkpoints),
        trials=_median(np.array([[len(run.time)] for run in runs]))[0],
        end=_median(np.array([[run.time[-1] / unit] for run in runs]))[0],
        overhead=_median(np.array([[run.overhead.sum() / run.time[-1]] for run in runs]))[0],
    )


@dataclass(frozen=True)
class Lead:
    """By how much the median regret of a method is above a reference's at each checkpoint, with 95 % intervals."""

    method: str
    median: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


def lead(
    method: str, runs: list[Run], reference: list[Run], problem: Problem, checkpoints: tuple[float, ...]
) -> Lead:
    """The difference of medians, its interval from drawing runs of both anew; who recommends nothing is last."""
    rng, unit = np.random.default_rng(0), problem.full_cost
    regrets = [
        np.array([[min(run.regret_at(c * unit), 1.0) for c in checkpoints] for run in of])
        for of in (runs, reference)
    ]
    drawn = [np.median(r[rng.integers(len(r), size=(4000, len(r)))], axis=1) for r in regrets]
    low, high = np.quantile(drawn[0] - drawn[1], [0.025, 0.975], axis=0)
    difference = np.median(regrets[0], axis=0) - np.median(regrets[1], axis=0)
    return Lead(method, tuple(difference.tolist()), tuple(low.tolist()), tuple(high.tolist()))


def leads_markdown(leads: list[Lead], checkpoints: tuple[float, ...]) -> str:
    """A row a method: what its regret has more than the reference's."""
    lines = [["method", *(f"more regret at {c:g}" for c in checkpoints)], ["---"] * (1 + len(checkpoints))]
    for row in leads:
        each = zip(row.median, row.low, row.high, strict=True)
        lines.append([row.method, *(f"{m:+.5f} ({low:+.5f}, {high:+.5f})" for m, low, high in each)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _median(values: np.ndarray) -> tuple[float, ...]:
    """Medians over the rows; infinite values are just very large."""
    return tuple(float(median) for median in np.median(values, axis=0))


def headings(checkpoints: tuple[float, ...]) -> list[str]:
    """What the columns say."""
    return [
        "method",
        *(f"within {distance:g}" for distance in DISTANCES),
        *(f"regret at {checkpoint:g}" for checkpoint in checkpoints),
        "trials",
        "end",
        "overhead",
    ]


def cells(row: Summary, reference: Summary | None) -> list[str]:
    """A row in words; with a reference, times are also given as multiples of its times."""
    times = []
    for i, reached in enumerate(row.reached):
        text = f"{_number(reached.median)} ({reached.runs}/{row.seeds})"
        if reference is not None and reference is not row:
            ratio = reached.median / reference.reached[i].median
            if np.isfinite(ratio) and ratio > 0:
                text += f" ×{ratio:.2g}" if ratio < 10 else f" ×{ratio:.0f}"
        times.append(text)
    regrets = [
        f"{value:.5f}{'*' if ended else ''}" if np.isfinite(value) else "—"
        for value, ended in zip(row.regret, row.ended, strict=True)
    ]
    return [row.method, *times, *regrets, f"{row.trials:.0f}", _number(row.end), f"{row.overhead:.0%}"]


def _number(value: float) -> str:
    return f"{value:.3g}" if np.isfinite(value) else "—"


def table(rows: list[Summary], title: str, checkpoints: tuple[float, ...]) -> Table:
    """For the terminal."""
    shown = Table(title=title)
    for heading in headings(checkpoints):
        shown.add_column(heading, justify="left" if heading == "method" else "right")
    for row in rows:
        shown.add_row(*cells(row, _reference(rows)))
    return shown


def markdown(rows: list[Summary], checkpoints: tuple[float, ...]) -> str:
    """For the documentation."""
    lines = [headings(checkpoints), ["---"] * len(headings(checkpoints))]
    lines += [cells(row, _reference(rows)) for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _reference(rows: list[Summary]) -> Summary | None:
    return next((row for row in rows if row.method == "fabolas"), None)
