"""The answers of several studies over time, in one figure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fabolas._types import Array
from fabolas.plots import CannotDraw
from fabolas.plots.drawing import Dash, Drawing, Line, Lines, Panel, Points, Symbol
from fabolas.plots.labels import config_lines, short_name
from fabolas.plots.ticks import number, seconds, suits_log, time_axis, value_axis
from fabolas.plots.with_plotly import draw_with_plotly
from fabolas.study import LoadedStudy
from fabolas.trials import Incumbent

TITLE = "The answers over time"
HOW_TO_READ = (
    "Each line is the predicted loss of the best configuration that a study knew at that time. A filled point at its "
    "end means that the last answer was verified at the target."
)
_COLOURS = ("answer", "second", "third", "fourth", "fifth", "ink")
_MAX_NAME = 32  # characters of a name in the legend
_MAX_STUDIES = 12  # lines in one figure


@dataclass(frozen=True)
class AnswerLine:
    """The answers of one study.

    Attributes:
        name: Name of the study.
        time: (a,) When each answer was computed, in seconds; the last one holds until the last trial.
        loss: (a,) Its predicted loss.
        verified: Whether the last answer was verified.
        texts: (a,) What hovering shows.
    """

    name: str
    time: Array
    loss: Array
    verified: bool
    texts: tuple[Lines, ...]


@dataclass(frozen=True)
class ComparisonRecord:
    """The answers of several studies.

    Attributes:
        lines: One for each study that has an answer.
        what: "loss" or "value".
        note: What is left out.
    """

    lines: tuple[AnswerLine, ...]
    what: str
    note: str


def compute(studies: Mapping[str, LoadedStudy]) -> ComparisonRecord:
    """Compute the record of studies by name.

    Raises:
        CannotDraw: If no study has an answer.
    """
    answered = {name: study for name, study in studies.items() if _answers(study)}
    if not answered:
        raise CannotDraw("No study has an answer yet.")
    directions = {study.direction for study in answered.values()}
    shown = list(answered.items())[:_MAX_STUDIES]
    more = len(answered) - len(shown)
    return ComparisonRecord(
        lines=tuple(_line(name, study) for name, study in shown),
        what="value" if directions == {"maximize"} else "loss",
        note=f"{more} more studies are not shown." if more else "",
    )


def _answers(study: LoadedStudy) -> list[tuple[float, Incumbent]]:
    """The answers whose loss at the target was predicted; for the first ones it may be too early."""
    return [(when, answer) for when, answer in study.trajectory if not answer.preliminary]


def _line(name: str, study: LoadedStudy) -> AnswerLine:
    answers = _answers(study)
    texts = [
        (name, f"{number(float(f'{each.loss:.4g}'))} after {seconds(when)}", *config_lines(each.config))
        for when, each in answers
    ]
    return AnswerLine(
        name=name,
        time=np.array([*(when for when, _ in answers), max(study.elapsed, answers[-1][0])]),
        loss=np.array([*(each.loss for _, each in answers), answers[-1][1].loss]),
        verified=answers[-1][1].verified,
        texts=(*texts, texts[-1]),
    )


def drawing(record: ComparisonRecord) -> Drawing:
    """Lay out the figure."""
    times = np.concatenate([line.time for line in record.lines])
    settled = np.concatenate([line.loss[len(line.loss) // 5 :] for line in record.lines])
    log_time = bool(0 < times.min() < 0.02 * times.max())
    x = time_axis(
        "time of the search",
        0.85 * times.min() if log_time else 0.0,
        (1.25 if log_time else 1.02) * times.max(),
        log=log_time,
    )
    y = value_axis(f"predicted {record.what} at the target", settled, log=suits_log(settled, 3.0))
    layers: list[Line | Points] = []
    for i, line in enumerate(record.lines):
        colour = _COLOURS[i % len(_COLOURS)]
        dash: Dash = "solid" if i < len(_COLOURS) else "dash"
        symbol: Symbol = "circle" if line.verified else "ring"
        layers.append(
            Line(
                line.time,
                line.loss,
                colour,
                dash=dash,
                step=True,
                hover=line.texts,
                legend=short_name(line.name, _MAX_NAME),
            )
        )
        layers.append(Points(line.time[-1:], line.loss[-1:], colour, symbol, 8, hover=line.texts[-1:]))
    return Drawing((Panel(x, y, tuple(layers)),), legend=True, note=record.note)


def compare(studies: Mapping[str, LoadedStudy]) -> Any:
    """The figure of Plotly that compares studies."""
    return draw_with_plotly(drawing(compute(studies)))
