"""The answers of several studies over time, in one figure."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fabolas._types import Array
from fabolas.direction import loss_or_value
from fabolas.plots import CannotDraw
from fabolas.plots.drawing import Dash, Drawing, FigureAxis, Line, Lines, Panel, Points, Symbol
from fabolas.plots.durations import duration
from fabolas.plots.history import known_answers
from fabolas.plots.labels import config_lines, short_name
from fabolas.plots.ticks import number, suits_log, time_axis, value_axis
from fabolas.plots.with_plotly import draw_with_plotly
from fabolas.study import LoadedStudy
from fabolas.trials import Incumbent

TITLE = "The answers over time"
HOW_TO_READ = (
    "Each line is the predicted loss of the best configuration that a study knew at that time, or its predicted value "
    "if that is maximised. A filled point at its end means that the last answer was verified at the target."
)
_COLOURS = ("answer", "second", "third", "fourth", "fifth", "ink")
_DASHES: tuple[Dash, ...] = ("solid", "dash", "dot")
_MAX_NAME = 32  # characters of a name in the legend
_MAX_STUDIES = 12  # lines in one figure


Style = tuple[str, Dash]  # of a line: the role of its colour, and its dash


@dataclass(frozen=True)
class AnswerLine:
    """The answers of one study.

    Attributes:
        name: Name of the study.
        what: "loss", or "value" if it is maximised.
        style: Colour and dash.
        time: (a,) When each answer was computed, in seconds; the last one holds until the last trial.
        loss: (a,) Its predicted loss.
        verified: Whether the last answer was verified.
        texts: (a,) What hovering shows.
    """

    name: str
    what: str
    style: Style
    time: Array
    loss: Array
    verified: bool
    texts: tuple[Lines, ...]


@dataclass(frozen=True)
class ComparisonRecord:
    """The answers of several studies.

    Attributes:
        lines: One for each study that has an answer.
        note: What is left out.
    """

    lines: tuple[AnswerLine, ...]
    note: str


def compute(studies: Mapping[str, LoadedStudy]) -> ComparisonRecord:
    """Compute the record of studies by name.

    Raises:
        CannotDraw: If no study has an answer.
    """
    known = {name: known_answers(study) for name, study in studies.items()}
    answered = {name: study for name, study in studies.items() if known[name]}
    if not answered:
        raise CannotDraw("No study has an answer yet.")
    styles = _styles(studies)
    shown = list(answered.items())[:_MAX_STUDIES]
    more = len(answered) - len(shown)
    return ComparisonRecord(
        lines=tuple(_line(name, study, known[name], styles[name]) for name, study in shown),
        note=_note(more),
    )


def _note(more: int) -> str:
    if not more:
        return ""
    return "1 more study is not shown." if more == 1 else f"{more:,} more studies are not shown."


def _styles(studies: Mapping[str, LoadedStudy]) -> dict[str, Style]:
    """Colour and dash of each study by its name. A new file changes those of no other one.

    If a name has the colour of another one, the newer study takes the next one that is free.
    """

    def age(name: str) -> tuple[float, str]:
        started = [trial.started for trial in studies[name].trials if trial.started]
        return (min(started, default=float("inf")), name)

    styles: dict[str, Style] = {}
    for name in sorted(studies, key=age):
        first = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4]) % len(_COLOURS)
        colours = (*_COLOURS[first:], *_COLOURS[:first])
        wanted = [(colour, dash) for dash in _DASHES for colour in colours]
        styles[name] = next((style for style in wanted if style not in styles.values()), wanted[0])
    return styles


def _line(
    name: str, study: LoadedStudy, answers: Sequence[tuple[float, Incumbent]], style: Style
) -> AnswerLine:
    texts = [
        (name, f"{number(each.loss, 4)} after {duration(when)}", *config_lines(each.config))
        for when, each in answers
    ]
    return AnswerLine(
        name=name,
        what=loss_or_value(study.direction),
        style=style,
        time=np.array([*(when for when, _ in answers), max(study.elapsed, answers[-1][0])]),
        loss=np.array([*(each.loss for _, each in answers), answers[-1][1].loss]),
        verified=answers[-1][1].verified,
        texts=(*texts, texts[-1]),
    )


def drawing(record: ComparisonRecord) -> Drawing:
    """Lay out the figure: one panel for losses, and one for values that are maximised."""
    times = np.concatenate([line.time for line in record.lines])
    log_time = bool(0 < times.min() < 0.02 * times.max())
    x = time_axis(
        "time of the search",
        0.85 * times.min() if log_time else 0.0,
        (1.25 if log_time else 1.02) * times.max(),
        log=log_time,
    )
    groups = [[line for line in record.lines if line.what == what] for what in ("loss", "value")]
    panels = tuple(_panel(x, lines) for lines in groups if lines)
    return Drawing(panels, legend=True, note=record.note)


def _panel(x: FigureAxis, lines: Sequence[AnswerLine]) -> Panel:
    settled = np.concatenate([line.loss[len(line.loss) // 5 :] for line in lines])
    y = value_axis(f"predicted {lines[0].what} at the target", settled, log=suits_log(settled, 3.0))
    layers: list[Line | Points] = []
    for line in lines:
        colour, dash = line.style
        symbol: Symbol = "circle" if line.verified else "ring"
        legend = short_name(line.name, _MAX_NAME)
        layers.append(
            Line(line.time, line.loss, colour, dash=dash, step=True, hover=line.texts, legend=legend)
        )
        layers.append(Points(line.time[-1:], line.loss[-1:], colour, symbol, 8, hover=line.texts[-1:]))
    return Panel(x, y, tuple(layers))


def compare(studies: Mapping[str, LoadedStudy]) -> Any:
    """The figure of Plotly that compares studies."""
    return draw_with_plotly(drawing(compute(studies)))
