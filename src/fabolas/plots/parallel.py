"""Parallel coordinates: each trial is a line from row to row, one row for each hyperparameter."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fabolas._types import Array, BoolArray, IntArray
from fabolas.direction import loss_or_value
from fabolas.plots.drawing import Drawing, FigureAxis, Label, Layer, Line, Lines, Panel, Points
from fabolas.plots.figure import CannotDraw, ReadableStudy
from fabolas.plots.labels import (
    left_out_note,
    narrow_names,
    positions_of,
    short_name,
    shown_trials,
    trial_lines,
)
from fabolas.plots.layout import NARROW_WIDTH, WIDTH, room_for, shortened_names, ticks_with_room
from fabolas.plots.model import Model, incumbent_of, model_of, require_complete
from fabolas.plots.parameter_axis import parameter_axis, ticks_with_ends
from fabolas.plots.theme import SCALE
from fabolas.plots.ticks import Ticks, linear_values, log_ticks, numbers, padded, suits_log

MAX_LINES = 250
_RIGHT = 26  # margin, in pixels
MAX_ROWS = 10  # hyperparameters; with more, the most important ones


@dataclass(frozen=True)
class Row:
    """One row: a hyperparameter, a fidelity, or the loss; positions are from 0 to 1."""

    name: str
    ticks: Ticks
    names: bool = False  # whether the ticks are names of choices


@dataclass(frozen=True)
class ParallelRecord:
    """Trials as lines.

    Attributes:
        rows: From top to bottom; the last one is the loss.
        positions: (n, rows) Where each trial is; NaN where a hyperparameter is not active.
        rank: (n,) From 0 for the worst to 1 for the best loss.
        texts: (n,) What hovering shows.
        answer: (n,) Which trials are of the answer.
        note: What is left out.
    """

    rows: tuple[Row, ...]
    positions: Array
    rank: Array
    texts: tuple[Lines, ...]
    answer: BoolArray
    note: str


def compute(study: ReadableStudy) -> ParallelRecord:
    """Compute the record."""
    require_complete(study)
    history, space = study.history, study.space
    shown = shown_trials(history, space.is_at_target(history.points), study.sign, MAX_LINES)
    shown = shown[history.complete[shown]]
    what = loss_or_value(study.direction)
    try:
        model: Model | None = model_of(study)
    except CannotDraw:
        model = None
    names = model.by_importance if model is not None and space.dim > MAX_ROWS else space.names
    rows, columns = [], []
    for name in names[:MAX_ROWS]:
        axis = parameter_axis(space, name, 2)
        rows.append(Row(short_name(name), axis.ticks, axis.names))
        columns.append(positions_of(study, shown, name))
    for j, (name, kind) in enumerate(space.fidelities.items()):
        low, high = float(kind.low), float(kind.high)
        values = [v for v, _ in log_ticks(low, high)] if kind.log else linear_values(low, high)
        ticks = ticks_with_ends(values, low, high, partial(space.fidelity_coordinate, name))
        rows.append(Row(short_name(name), ticks))
        columns.append(history.points[shown, space.dim + j])
    incumbent = incumbent_of(study)
    too_early = incumbent is not None and incumbent.preliminary
    losses, label = _losses(
        study, None if too_early else model, history.points[shown], history.losses[shown], what
    )
    position, ticks = _loss_row(losses)
    rows.append(Row(label, ticks))
    columns.append(position)
    ids = set() if incumbent is None else set(incumbent.trial_ids)
    n, order = len(shown), np.argsort(np.argsort(-study.sign * losses, kind="stable"))
    return ParallelRecord(
        tuple(rows),
        np.column_stack(columns),
        order / max(n - 1, 1) if n > 1 else np.ones(n),
        tuple(trial_lines(history.trials[i], what) for i in shown),
        np.array([history.trials[i].id in ids for i in shown], dtype=np.bool_),
        _note(n, int(history.complete.sum()), space.dim - MAX_ROWS),
    )


def _losses(
    study: ReadableStudy, model: Model | None, points: Array, measured: Array, what: str
) -> tuple[Array, str]:
    """Losses (n,) and what they are: at the target, as the model predicts them, or measured if it does not."""
    if model is None or not study.space.n_fidelities:
        return measured, what
    return model.loss(model.at_target(points[:, : study.space.dim])).centre, f"predicted {what}"


def _loss_row(losses: Array) -> tuple[Array, Ticks]:
    log = suits_log(losses, 3.0)
    low, high = padded(losses, log=log, share=0.0)
    if log:
        ticks = tuple((float(np.log(v / low) / np.log(high / low)), text) for v, text in log_ticks(low, high))
        return np.log(losses / low) / np.log(high / low), ticks
    values = linear_values(low, high)
    texts = numbers(values)
    ticks = tuple(((v - low) / (high - low), text) for v, text in zip(values, texts, strict=True))
    return (losses - low) / (high - low), ticks


def _note(n_shown: int, n: int, rows_left_out: int) -> str:
    sentences = []
    if n_shown < n:
        sentences.append(f"{n_shown:,} of {n:,} trials are shown: the best, and an even sample.")
    sentences.append(left_out_note(rows_left_out))
    return " ".join(filter(None, sentences))


def drawing(record: ParallelRecord) -> Drawing:
    """Lay out the figure: the best lines in front and darkest, the answer in a colour of its own."""
    m = len(record.rows)
    places = np.arange(m - 1, -1, -1, dtype=float)
    layers: list[Layer] = []
    shade = np.minimum((record.rank**1.5 * len(SCALE)).astype(int), len(SCALE) - 1)
    for i, role in enumerate(SCALE):
        chosen = np.flatnonzero((shade == i) & ~record.answer)
        if len(chosen):
            layers.append(_lines(record, chosen, places, role, 1.0 + 0.12 * i))
    answer = np.flatnonzero(record.answer)
    if len(answer):
        layers.append(_lines(record, answer, places, "second", 3.0))
    names = tuple(row.name for row in record.rows)
    on_phone = narrow_names(names)
    left, narrow_left = room_for(names, 90), room_for(on_phone, 90)
    for row, place in zip(record.rows, places, strict=True):
        layers.append(Line(np.array([0.0, 1.0]), np.array([place, place]), "faint", 1.0))
        layers += _tick_labels(row, float(place), left, narrow_left)
    ends = np.flatnonzero(np.isfinite(record.positions[:, -1]))
    ends = ends[np.lexsort((record.rank[ends], record.answer[ends]))]  # the answer is the last one, in front
    roles = tuple("second" if record.answer[i] else SCALE[shade[i]] for i in ends)
    hover = tuple(record.texts[i] for i in ends)
    layers.append(Points(record.positions[ends, -1], np.zeros(len(ends)), roles, size=7, hover=hover))
    y = FigureAxis(
        range=(-0.45, m - 0.75),
        ticks=tuple(zip(places.tolist(), names, strict=True)),
        grid=False,
        narrow_ticks=tuple(zip(places.tolist(), on_phone, strict=True)),
    )
    x = FigureAxis(range=(-0.03, 1.03), ticks=(), grid=False)
    panel = Panel(x, y, tuple(layers))
    return Drawing((panel,), height=62 * m, note=record.note, left=left, narrow_left=narrow_left)


def _tick_labels(row: Row, place: float, left: int, narrow_left: int) -> list[Label]:
    """The ticks of a row; on a phone fewer or shorter ones."""
    axis = FigureAxis(range=(0.0, 1.0), ticks=row.ticks, names=row.names)
    find = shortened_names if row.names else ticks_with_room
    widths = (WIDTH - left, NARROW_WIDTH - narrow_left)
    wide, narrow = (dict(find(axis, width - _RIGHT) or ()) for width in widths)
    style: dict[str, Any] = {"shift": (0, -11), "size": 11, "background": True}
    return [
        Label(x, place, wide.get(x, ""), "muted", "centre", narrow_text=narrow.get(x, ""), **style)
        for x, _ in row.ticks
        if x in wide or x in narrow
    ]


def _lines(record: ParallelRecord, chosen: IntArray, places: Array, role: str, width: float) -> Line:
    """The lines of some trials as one line with gaps."""
    n, m = len(chosen), len(places)
    x = np.column_stack([record.positions[chosen], np.full(n, np.nan)]).ravel()
    y = np.tile(np.append(places, np.nan), n)
    hover = tuple(text for i in chosen for text in (*[record.texts[i][:1]] * m, ()))
    return Line(x, y, role, width, alpha=1.0, hover=hover)
