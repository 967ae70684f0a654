"""Where the panels of a drawing are: shares of the area of a figure, on a wide screen and on a phone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from textwrap import wrap
from typing import Any

import numpy as np

from fabolas._types import Array
from fabolas.plots.drawing import Drawing, FigureAxis, Label

WIDTH = 900  # pixels of a wide figure; shares follow from it
NARROW_WIDTH = 360  # pixels of a figure on a phone
_GAP = 82  # between columns, for tick labels and the axis title
_TICKS = 26  # below a panel
_AXIS_TITLE = 36
_ABOVE_NOTE = 6  # pixels below the title of an axis that a note does not need
_ABOVE = 14  # of a panel without a title
_TITLE = 22
_SUBTITLE = 18
_LEGEND_LINE, _BELOW_LEGEND = 19, 12
_LEGEND_MARK = 44  # before each name, with the gap after the last one
NOTE_LINE = 20  # each line of a note
_NOTE_CHARACTERS = (118, 46)  # in a line, on a wide screen and on a phone
_NARROW_RIGHT = 26  # margin on the right of a phone; with labels it is this wide:
_NARROW_LABELS = 80  # at least
_LABEL_CHARACTER = 7.3  # pixels, in a bold label
_CHARACTER = 7.2  # pixels, of a tick label
_BETWEEN_TICKS = 8
_LEAST_NAME = 4  # characters of a shortened name; with less room, names are turned
_TURNED_NAME = 12  # characters of a turned name
_LINE = 15  # pixels between turned names


@dataclass(frozen=True)
class Grid:
    """The rows and columns of a drawing.

    Attributes:
        domains: For each panel its ends ((x0, x1), (y0, y1)), as shares of the area within the margins.
        height: Of the whole figure, in pixels.
        panel_width: Of one panel, in pixels.
        margin: Around all panels, in pixels.
    """

    domains: tuple[tuple[tuple[float, float], tuple[float, float]], ...]
    height: int
    margin: dict[str, int]
    panel_width: float

    @classmethod
    def of(cls, drawing: Drawing, *, narrow: bool) -> Grid:
        """The grid of a drawing."""
        columns = n_columns(drawing, narrow=narrow)
        rows = -(-len(drawing.panels) // columns)
        above = _ABOVE + _TITLE * any(p.title for p in drawing.panels)
        above += _SUBTITLE * any(p.subtitle for p in drawing.panels)
        legend = _legend_height(drawing, narrow=narrow)
        right = min(drawing.right, _narrow_right(drawing)) if narrow else drawing.right
        left = drawing.narrow_left if narrow and drawing.narrow_left is not None else drawing.left
        margin = {"l": left, "r": right, "t": above + legend}
        width = (NARROW_WIDTH if narrow else WIDTH) - margin["l"] - margin["r"]
        panel_width = (width - (columns - 1) * _GAP) / columns
        below = 8 + max(_tick_height(panel.x, panel_width) for panel in drawing.panels)
        titled = any(p.x.title for p in drawing.panels)
        below += _AXIS_TITLE * titled
        lines = note_lines(drawing.note, narrow=narrow)
        margin["b"] = below + NOTE_LINE * len(lines) - (_ABOVE_NOTE if lines and titled else 0)
        inner = rows * drawing.height + (rows - 1) * (below + above)
        domains = []
        for i in range(len(drawing.panels)):
            row, column = divmod(i, columns)
            top = 1.0 - row * (drawing.height + below + above) / inner
            x = _share(column, columns, _GAP / width)
            domains.append((x, (max(top - drawing.height / inner, 0.0), top)))
        return cls(tuple(domains), inner + margin["t"] + margin["b"], margin, panel_width)

    def relayout(self) -> dict[str, Any]:
        """The same as ``Plotly.relayout`` takes it."""
        changes: dict[str, Any] = {"height": self.height}
        changes |= {f"margin.{side}": self.margin[side] for side in "lrtb"}
        for i, (x, y) in enumerate(self.domains, start=1):
            suffix = "" if i == 1 else str(i)
            changes[f"xaxis{suffix}.domain"], changes[f"yaxis{suffix}.domain"] = list(x), list(y)
        return changes


def n_columns(drawing: Drawing, *, narrow: bool) -> int:
    """How many panels are beside each other."""
    return min(drawing.narrow_columns if narrow else drawing.columns, len(drawing.panels))


def vertical_title(drawing: Drawing, i: int, *, narrow: bool) -> str:
    """The title of the vertical axis of panel i; if all axes are the same, only the first one of a row has it."""
    first = i % n_columns(drawing, narrow=narrow) == 0
    return drawing.panels[i].y.title if first or not drawing.shared_y else ""


def legend_names(drawing: Drawing) -> list[str]:
    """The names in the legend, each once."""
    layers = (layer for panel in drawing.panels for layer in panel.layers)
    names = (getattr(layer, "legend", None) for layer in layers)
    return list(dict.fromkeys(name for name in names if name is not None))


def legend_width(drawing: Drawing) -> int:
    """Width of one name in the legend, in pixels."""
    return round(_CHARACTER * max(map(len, legend_names(drawing)), default=0))


def _legend_height(drawing: Drawing, *, narrow: bool) -> int:
    if not drawing.legend:
        return 0
    width = NARROW_WIDTH if narrow else WIDTH
    in_a_line = max(1, width // (legend_width(drawing) + _LEGEND_MARK))
    return _BELOW_LEGEND + _LEGEND_LINE * -(-len(legend_names(drawing)) // in_a_line)


def _narrow_right(drawing: Drawing) -> int:
    layers = (layer for panel in drawing.panels for layer in panel.layers)
    labels = [layer for layer in layers if isinstance(layer, Label) and layer.in_margin]
    longest = max((label_width(label.narrow_text or "") for label in labels), default=0)
    return max(_NARROW_LABELS, longest) if labels else _NARROW_RIGHT


def label_width(text: str) -> int:
    """Pixels that a bold label needs in the margin, with its distance from the panel."""
    return 14 + round(_LABEL_CHARACTER * len(text))


def _share(i: int, n: int, gap: float) -> tuple[float, float]:
    """The ends of cell i of n cells with gaps between them."""
    width = (1.0 - (n - 1) * gap) / n
    start = i * (width + gap)
    return start, min(start + width, 1.0)


def ticks_with_room(axis: FigureAxis, width: float) -> tuple[tuple[float, str], ...] | None:
    """The ticks of a horizontal axis whose labels do not overlap.

    Of even ticks, every second, third, ... remains. Of others, the first and the last one are kept, and of the rest
    every second, third, ... that does not touch them.
    Names of choices are shortened, or turned (`names_are_turned`), and left out only if there is no room at all.
    """
    if axis.ticks is None or axis.range is None or len(axis.ticks) < 2:
        return axis.ticks
    if axis.names:
        return _turned(axis, width) if names_are_turned(axis, width) else shortened_names(axis, width)
    low, high = np.log(axis.range) if axis.log else axis.range
    values = np.array([value for value, _ in axis.ticks])
    places = width * ((np.log(values) if axis.log else values) - low) / (high - low)
    half = [0.5 * (_CHARACTER * len(text) + _BETWEEN_TICKS) for _, text in axis.ticks]
    if not axis.log and np.ptp(np.diff(values)) < 1e-9 * np.ptp(values):
        needed = 2.0 * max(half) / (places[1] - places[0])
        return axis.ticks[:: max(1, int(np.ceil(needed - 1e-9)))]
    chosen = _between_ends(places, np.array(half))
    return tuple(axis.ticks[i] for i in sorted({*chosen, 0, len(values) - 1}))


def _between_ends(places: Array, half: Array) -> list[int]:
    """Which ticks between the first and the last one to show, if each needs `half` (n,) pixels on both sides."""
    n = len(places)
    apart = np.abs(places[:, None] - places[None, :]) >= half[:, None] + half[None, :]
    free = [i for i in range(1, n - 1) if apart[i, 0] and apart[i, n - 1]]
    for every in range(1, n):
        ways = [free[start::every] for start in range(every)]
        fitting = [way for way in ways if all(apart[i, j] for i, j in pairwise(way))]
        if fitting:
            return max(fitting, key=len)
    return []


def names_are_turned(axis: FigureAxis, width: float) -> bool:
    """Whether the names of choices are written from bottom to top, because beside each other they are too long."""
    if not axis.names or axis.ticks is None or len(axis.ticks) < 2:
        return False
    shown = shortened_names(axis, width)
    if len(shown) < len(axis.ticks):
        return True
    cut = [text for (_, text), (_, short) in zip(axis.ticks, shown, strict=True) if text != short]
    numbers = any(not any(map(str.isalpha, text)) for text in cut)  # half a number is another number
    return numbers or len(_texts(shown)) < len(_texts(_turned(axis, width)))


def shortened_names(axis: FigureAxis, width: float) -> tuple[tuple[float, str], ...]:
    """The names of choices beside each other, each as long as its cell; of too many only every second, third, ..."""
    ticks = axis.ticks or ()
    longest = max((len(text) for _, text in ticks), default=0)
    needed = _CHARACTER * min(_LEAST_NAME, longest) + _BETWEEN_TICKS
    cell = _distance(axis, width)
    every = max(1, int(np.ceil(needed / cell - 1e-9)))
    most = int((every * cell - _BETWEEN_TICKS) / _CHARACTER + 1e-9)
    return tuple((value, _cut(text, most)) for value, text in ticks[::every])


def _turned(axis: FigureAxis, width: float) -> tuple[tuple[float, str], ...]:
    ticks = (axis.ticks or ())[:: max(1, int(np.ceil(_LINE / _distance(axis, width))))]
    return tuple((value, _cut(text, _TURNED_NAME)) for value, text in ticks)


def _texts(ticks: tuple[tuple[float, str], ...]) -> set[str]:
    return {text for _, text in ticks}


def _distance(axis: FigureAxis, width: float) -> float:
    """Pixels between two choices."""
    if not axis.ticks or len(axis.ticks) < 2 or axis.range is None:
        return width
    (first, _), (second, _) = axis.ticks[:2]
    return width * (second - first) / (axis.range[1] - axis.range[0])


def _cut(name: str, most: int) -> str:
    """The name with at most this many characters, at least one; of a long one the middle is left out."""
    if len(name) <= max(most, 1):
        return name
    end = max(most - 1, 0) // 3
    return f"{name[: max(most - 1 - end, 0)]}…{name[len(name) - end :]}"


def _tick_height(axis: FigureAxis, width: float) -> int:
    """Pixels below a panel for the labels of its ticks."""
    if axis.ticks == ():
        return 0
    if not names_are_turned(axis, width):
        return _TICKS
    return 10 + round(_CHARACTER * max(len(text) for _, text in _turned(axis, width)))


def room_for(names: Iterable[str], least: int) -> int:
    """The left margin, in pixels, that the names of rows need; at least this one."""
    return max(least, round(_CHARACTER * max(map(len, names), default=0)) + 14)


def label_place(label: Label) -> dict[str, Any]:
    """The anchor and shift of a label."""
    anchor = {"left": "left", "centre": "center", "right": "right"}[label.anchor]
    return {"xanchor": anchor, "xshift": label.shift[0], "yshift": label.shift[1]}


def note_lines(note: str, *, narrow: bool) -> list[str]:
    """The note in lines that fit the width of the figure."""
    return wrap(note, _NOTE_CHARACTERS[narrow])
