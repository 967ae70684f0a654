"""Where the time went: seconds for each size and each purpose, and overhead.

With several fidelities, each of them has a figure with all trials.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from fabolas._types import Array, IntArray
from fabolas.display import counted
from fabolas.plots.drawing import Bars, Drawing, FigureAxis, Label, Layer, Panel
from fabolas.plots.durations import duration
from fabolas.plots.figure import CannotDraw, ReadableStudy
from fabolas.plots.labels import short_name, shortened
from fabolas.plots.ticks import number, percent, row_axis, time_axis
from fabolas.trials import (
    ADDED,
    BATCH,
    DESIGN,
    ENQUEUED,
    IMPROVEMENT,
    INFORMATION,
    TARGET,
    VERIFICATION,
    Trial,
)

PURPOSES = (
    "initial design",
    "information",
    "target evaluations",
    "verification",
    "enqueued",
    "search",
    "failures",
    "overhead",
)
_COLOURS = dict(
    zip(PURPOSES, ("fourth", "answer", "second", "third", "fifth", "scale2", "bad", "faint"), strict=True)
)
_ORIGINS = {
    DESIGN: "initial design",
    INFORMATION: "information",
    BATCH: "information",
    TARGET: "target evaluations",
    IMPROVEMENT: "target evaluations",
    VERIFICATION: "verification",
    ENQUEUED: "enqueued",
}
_MAX_CLASSES = 6  # of sizes below the target


@dataclass(frozen=True)
class TimeRecord:
    """Seconds by size and purpose.

    Attributes:
        fidelity: The fidelity of the rows; None if the study has none.
        rows: Names of the rows, the target first, overhead last.
        seconds: (rows, purposes) The time; purposes are those of `PURPOSES`.
        counts: (rows, purposes) How many trials, or decisions for overhead.
        note: What is not counted, and which other fidelities the trials differ in.
    """

    fidelity: str | None
    rows: tuple[str, ...]
    seconds: Array
    counts: IntArray
    note: str


def compute(study: ReadableStudy, *, fidelity: str | None = None) -> TimeRecord:
    """Compute the record.

    Args:
        study: The study.
        fidelity: The fidelity of the rows; None for the first one.
    """
    history, names = study.history, tuple(study.space.fidelities)
    if not len(history):
        raise CannotDraw("There is no trial yet.")
    if fidelity is not None and fidelity not in names:
        raise ValueError(f"fidelity must be one of {', '.join(map(repr, names))}, got {fidelity!r}")
    name = fidelity if fidelity is not None or not names else names[0]
    labels, row_of = _rows(study, name)
    total, counts = (
        np.zeros((len(labels) + 1, len(PURPOSES))),
        np.zeros((len(labels) + 1, len(PURPOSES)), int),
    )
    for i, trial in enumerate(history.trials):
        if trial.suggestion.origin == ADDED:
            continue
        column = PURPOSES.index(_purpose(trial))
        total[row_of[i], column] += trial.cost
        counts[row_of[i], column] += 1
    total[-1, -1], counts[-1, -1] = study.overhead, int((history.overheads > 0).sum())
    used = total.sum(axis=1) > 0
    used[-1] = True
    if not total.any():
        raise CannotDraw(
            "No time is recorded: the trials were measured elsewhere, or their costs are not known."
        )
    elsewhere = "Trials that were measured elsewhere are not counted." if history.added.any() else ""
    note = " ".join(filter(None, [_others(names, name), elsewhere]))
    rows = tuple(label for label, shown in zip((*labels, "overhead"), used, strict=True) if shown)
    return TimeRecord(name, rows, total[used], counts[used], note)


def _others(names: Sequence[str], shown: str | None) -> str:
    """Say that trials of one row differ in other fidelities; nothing if there are none."""
    others = " and ".join(shortened(name) for name in names if name != shown)
    return (
        f"All trials are shown by {shortened(shown)}; those of one bar may differ in {others}."
        if others
        else ""
    )


def _purpose(trial: Trial) -> str:
    if trial.status != "complete":
        return "failures"
    return _ORIGINS.get(trial.suggestion.origin, "search")


def _rows(study: ReadableStudy, name: str | None) -> tuple[list[str], IntArray]:
    """Labels of the classes of sizes, the target first, and the class of each trial (n,)."""
    history, space = study.history, study.space
    if name is None:
        return ["all trials"], np.zeros(len(history), dtype=int)
    column, kind = space.dim + list(space.fidelities).index(name), space.fidelities[name]
    u = history.points[:, column]
    values = kind.values(u)
    target = f"{number(float(kind.high))} (target)"
    below = np.unique(values[u < 1.0])
    if len(below) <= _MAX_CLASSES:
        labels = [target, *(number(float(value)) for value in below[::-1])]
        return labels, np.where(u == 1.0, 0, len(below) - np.searchsorted(below, values))
    edges = np.unique(kind.values(np.linspace(0.0, 1.0, _MAX_CLASSES + 1)))
    index = np.searchsorted(edges[1:-1], values, side="right")
    spans = [_span(a, b, whole=kind.integer) for a, b in pairwise(edges.tolist())]
    return [target, *spans[::-1]], np.where(u == 1.0, 0, len(spans) - index)


def _span(start: float, stop: float, *, whole: bool) -> str:
    """A class of sizes that ends before `stop`; one of whole numbers is named by its first and its last one."""
    last = stop - 1 if whole else stop
    return number(start) if start == last else f"{number(start)} to {number(last)}"


def drawing(record: TimeRecord) -> Drawing:
    """Lay out the figure."""
    n = len(record.rows)
    places, y = row_axis(short_name(record.fidelity or ""), record.rows)
    layers: list[Layer] = []
    start = np.zeros(n)
    for j, purpose in enumerate(PURPOSES):
        end = start + record.seconds[:, j]
        if record.seconds[:, j].any():
            texts = tuple(
                (
                    purpose,
                    duration(float(record.seconds[i, j])),
                    _count(int(record.counts[i, j]), purpose),
                    record.rows[i],
                )
                for i in range(n)
            )
            layers.append(
                Bars(
                    places,
                    start,
                    end,
                    _COLOURS[purpose],
                    hover=texts,
                    legend=None if purpose == "overhead" else purpose,
                )
            )
        start = end
    whole = float(record.seconds.sum())
    for place, end_of_row in zip(places, start, strict=True):
        text = f"{percent(end_of_row / whole)}"
        layers.append(Label(float(end_of_row), float(place), text, "muted", shift=(6, 0)))
    panel = Panel(_time(1.2 * float(start.max())), y, tuple(layers))
    return Drawing((panel,), height=36 * n + 12, legend=True, note=record.note, left=90)


def _time(end: float) -> FigureAxis:
    """The horizontal axis. Its last tick is within it, because one at the very end would have no grid line."""
    axis = time_axis("time", 0.0, end, log=False)
    last = max((value for value, _ in axis.ticks or ()), default=0.0)
    return replace(axis, range=(0.0, max(end, 1.01 * last)))


def _count(n: int, purpose: str) -> str:
    return counted(n, "decision" if purpose == "overhead" else "trial")
