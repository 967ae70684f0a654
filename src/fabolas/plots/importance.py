"""What matters: the importance of each hyperparameter at the target, as Sobol indices of the posterior mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fabolas._types import Array
from fabolas.plots.drawing import Bars, Drawing, Label, Layer, Line, Panel, Points
from fabolas.plots.figure import CannotDraw, ReadableStudy
from fabolas.plots.labels import left_out_note, narrow_names, short_name, shortened
from fabolas.plots.layout import room_for
from fabolas.plots.model import model_of
from fabolas.plots.ticks import percent, percent_axis, row_axis

_MAX_ROWS = 20


@dataclass(frozen=True)
class ImportanceRecord:
    """Sobol indices at the target, the most important hyperparameter first.

    The arrays are over the K hyperparameter samples of the model. An estimate may be a little below zero.

    Attributes:
        names: (d,) The hyperparameters.
        first: (K, d) Which share of the variance each one explains alone.
        total: (K, d) The share that involves it, alone or together with others.
        note: What is left out.
    """

    names: tuple[str, ...]
    first: Array
    total: Array
    note: str


def compute(study: ReadableStudy) -> ImportanceRecord:
    """Compute the record."""
    model = model_of(study)
    found = model.sensitivity
    if not model.sees_differences:
        raise CannotDraw("The model sees no difference between the configurations at the target yet.")
    shown = [study.space.names.index(name) for name in model.by_importance[:_MAX_ROWS]]
    note = left_out_note(study.space.dim - len(shown))
    names = tuple(study.space.names[i] for i in shown)
    return ImportanceRecord(names, found.first[:, shown], found.total[:, shown], note)


def drawing(record: ImportanceRecord) -> Drawing:
    """Lay out the figure."""
    n = len(record.names)
    names = tuple(map(short_name, record.names))
    on_phone = narrow_names(names)
    places, y = row_axis("", names, on_phone)
    first, total = (np.clip(each.mean(axis=0), 0.0, 1.0) for each in (record.first, record.total))
    # The rows are ordered by the total, and its estimate is the better one.
    first = np.minimum(first, total)
    low, high = np.clip(np.quantile(record.total, [0.05, 0.95], axis=0), 0.0, 1.0)
    texts = _hover_texts(record.names, first, total, low, high)
    whiskers_x = np.column_stack([low, high, np.full(n, np.nan)]).ravel()
    whiskers_y = np.repeat(places, 3)
    layers: list[Layer] = [
        Bars(places, np.zeros(n), first, "answer", hover=texts, legend="alone"),
        Bars(places, first, total, "answer", alpha=0.25, hover=texts, legend="together with others"),
        Line(whiskers_x, whiskers_y, "ink", 1.5),
        Points(total, places, "ink", size=5, hover=texts),
    ]
    ends = np.maximum(high, total)
    layers += [
        Label(float(ends[i]), float(places[i]), percent(total[i]), "muted", shift=(8, 0)) for i in range(n)
    ]
    top = 1.15 * float(max(total.max(), high.max())) + 0.02  # room for the labels, also beyond 100 %
    x = percent_axis("share of the variance", top)
    left, narrow_left = room_for(names, 64), room_for(on_phone, 64)
    return Drawing(
        (Panel(x, y, tuple(layers)),),
        height=32 * n + 16,
        legend=True,
        right=40,
        left=left,
        narrow_left=narrow_left,
        note=record.note,
    )


def _hover_texts(
    names: tuple[str, ...], first: Array, total: Array, low: Array, high: Array
) -> tuple[tuple[str, ...], ...]:
    """Lines of each row: the hyperparameter, its share alone, and that together with others."""
    return tuple(
        (
            shortened(name),
            f"alone {percent(first[i])}",
            f"with others {percent(total[i])} ({percent(low[i])} to {percent(high[i])})",
        )
        for i, name in enumerate(names)
    )
