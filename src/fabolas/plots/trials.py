"""The table of trials, with failures and their tracebacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from fabolas.direction import loss_or_value
from fabolas.display import error_summary, safe_plotly
from fabolas.plain_values import to_json
from fabolas.plots.durations import duration
from fabolas.plots.figure import CannotDraw, ReadableStudy, Theme
from fabolas.plots.labels import shortened, value_text, why
from fabolas.plots.layout import WIDTH
from fabolas.plots.theme import base_layout, colour
from fabolas.plots.ticks import number
from fabolas.plots.with_plotly import plotly_objects

if TYPE_CHECKING:
    import plotly.graph_objects as go

Kind = Literal["number", "seconds", "text", "error"]
_MAX_DRAWN = 400  # rows of a table in a notebook; the record has all


@dataclass(frozen=True)
class Column:
    """A column: its key, its title, and what its values are."""

    key: str
    title: str
    kind: Kind


@dataclass(frozen=True)
class TrialsRecord:
    """All trials as rows of plain values, the last one first.

    Attributes:
        columns: The columns.
        rows: One tuple for each trial, in the order of the columns; None where there is no value. Texts are as the
            user wrote them, not escaped. The column "error" has whole tracebacks.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]


def compute(study: ReadableStudy) -> TrialsRecord:
    """Compute the record."""
    trials = study.trials
    if not trials:
        raise CannotDraw("There is no trial yet.")
    what = loss_or_value(study.direction)
    names = dict.fromkeys(name for trial in trials for name in trial.suggestion.__dict__["config"])
    columns = [
        Column("id", "trial", "number"),
        Column("status", "status", "text"),
        Column("loss", what, "number"),
        Column("cost", "time", "seconds"),
        *(Column(f"fidelity_{name}", name, "number") for name in study.space.fidelities),
        *(Column(f"config_{name}", name, _kind(trials, name)) for name in names),
        Column("why", "why", "text"),
        Column("error", "error", "error"),
    ]
    rows = []
    for trial in reversed(trials):
        s, config = trial.suggestion, trial.suggestion.config
        fidelities = [s.fidelity.get(name) for name in study.space.fidelities]
        values = [_plain(config.get(name)) for name in names]
        rows.append(
            (s.id, trial.status, trial.loss, trial.cost, *fidelities, *values, why(s.origin), trial.error)
        )
    return TrialsRecord(tuple(columns), tuple(rows))


def _kind(trials: tuple[Any, ...], name: str) -> Kind:
    first = next(t.suggestion.config[name] for t in trials if name in t.suggestion.config)
    return "number" if isinstance(first, int | float) and not isinstance(first, bool) else "text"


def _plain(value: Any) -> str | int | float | bool | None:
    """A value that JSON can represent; anything else as its text."""
    plain = to_json(value)
    return plain if plain is None or isinstance(plain, str | int | float | bool) else str(value)


def draw(record: TrialsRecord, theme: Theme = "light") -> go.Figure:
    """Draw the table with Plotly."""
    go = plotly_objects()
    rows = record.rows[:_MAX_DRAWN]
    cells = [
        [safe_plotly(_text(row[j], column.kind)) for row in rows] for j, column in enumerate(record.columns)
    ]
    right = [("left" if column.kind in ("text", "error") else "right") for column in record.columns]
    line, clear = {"color": colour("grid", theme), "width": 1}, "rgba(0,0,0,0)"
    head = {"size": 12, "color": colour("muted", theme)}
    body = {"size": 12, "color": colour("ink", theme)}
    titles = [safe_plotly(shortened(column.title)) for column in record.columns]
    table = {
        "type": "table",
        "header": {"values": titles, "align": right, "font": head, "line": line, "fill": {"color": clear}},
        "cells": {
            "values": cells,
            "align": right,
            "font": body,
            "line": line,
            "fill": {"color": clear},
            "height": 24,
        },
        "columnwidth": [_width(column) for column in record.columns],
    }
    layout = {**base_layout(theme), "height": 480, "margin": {"l": 0, "r": 0, "t": 4, "b": 4}}
    if (width := sum(map(_width, record.columns))) > WIDTH:
        layout["width"] = width  # then the notebook scrolls
    return go.Figure([table], layout)


def _width(column: Column) -> int:
    least = {"id": 40, "status": 70, "why": 150, "error": 170}.get(column.key, 70)
    return max(least, 8 * len(shortened(column.title)))


def _text(value: Any, kind: Kind) -> str:
    if value is None:
        return ""
    if kind == "error":
        return shortened(error_summary(value))
    if kind == "seconds":
        return duration(value)
    if kind == "number" and isinstance(value, float):
        return number(float(f"{value:.5g}"))
    return value_text(value)
