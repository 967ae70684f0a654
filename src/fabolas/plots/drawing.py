"""A drawing as data: panels with axes and layers. One renderer turns it into Plotly, another one into matplotlib.

Colours are roles of `theme`. Texts may come from the user; the renderers escape them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fabolas._types import Array

Symbol = Literal["circle", "ring", "square", "diamond", "cross", "star", "up", "down"]
Dash = Literal["solid", "dash", "dot"]
Anchor = Literal["left", "centre", "right"]
Lines = tuple[str, ...]  # the lines of a hover text; the first one is its title


@dataclass(frozen=True)
class FigureAxis:
    """An axis of a panel.

    Attributes:
        title: What it shows, with its unit.
        log: Whether it is logarithmic.
        range: The two ends, in values; None for what the data need.
        ticks: (value, label) pairs; None for the renderer's choice.
        grid: Whether ticks have grid lines.
        names: Whether the labels are names of choices at even distances. Where they have no room, they are shortened
            or turned, because a choice without its name says nothing.
        narrow_ticks: The ticks of a vertical axis on a phone; None for the same.
    """

    title: str = ""
    log: bool = False
    range: tuple[float, float] | None = None
    ticks: tuple[tuple[float, str], ...] | None = None
    grid: bool = True
    names: bool = False
    narrow_ticks: tuple[tuple[float, str], ...] | None = None


@dataclass(frozen=True)
class Line:
    """A line through points; NaN interrupts it. With `legend` it is named in the legend."""

    x: Array
    y: Array
    colour: str
    width: float = 2.0
    dash: Dash = "solid"
    alpha: float = 1.0
    step: bool = False
    hover: tuple[Lines, ...] | None = None
    legend: str | None = None


@dataclass(frozen=True)
class Band:
    """The area between two lines."""

    x: Array
    low: Array
    high: Array
    colour: str
    alpha: float = 0.16
    step: bool = False
    legend: str | None = None


@dataclass(frozen=True)
class Points:
    """Marks; `colour` is one role, or one for each point."""

    x: Array
    y: Array
    colour: str | tuple[str, ...]
    symbol: Symbol = "circle"
    size: float = 7.0
    alpha: float = 1.0
    hover: tuple[Lines, ...] | None = None
    legend: str | None = None


@dataclass(frozen=True)
class Bars:
    """Horizontal bars at positions `y` from `start` to `end`."""

    y: Array
    start: Array
    end: Array
    colour: str
    height: float = 0.62
    alpha: float = 1.0
    hover: tuple[Lines, ...] | None = None
    legend: str | None = None


@dataclass(frozen=True)
class Contours:
    """Lines of equal z (len(y), len(x)), or with `filled` a shade that grows with z.

    Hovering shows `values`, or z itself.
    """

    x: Array
    y: Array
    z: Array
    colour: str
    levels: tuple[float, float, float]  # first, last, step
    filled: bool = False
    values: Array | None = None  # (len(y), len(x))
    hover: str | None = None  # what they are


@dataclass(frozen=True)
class Label:
    """Text in a panel. `x` and `y` are values, or with `relative` shares of the panel's width and height."""

    x: float
    y: float
    text: str
    colour: str = "ink"
    anchor: Anchor = "left"
    bold: bool = False
    relative: bool = False
    shift: tuple[int, int] = (0, 0)  # in pixels, to the right and up
    size: int = 12
    background: bool = False  # whether it covers what is behind it
    in_margin: bool = False  # whether it is in the right margin
    narrow_text: str | None = None  # what it says on a phone; None for the same


@dataclass(frozen=True)
class StraightLine:
    """A straight line across the panel: vertical at `x`, or horizontal at `y`."""

    x: float | None = None
    y: float | None = None
    colour: str = "faint"
    dash: Dash = "dot"


Layer = Line | Band | Points | Bars | Contours | Label | StraightLine


@dataclass(frozen=True)
class Panel:
    """One pair of axes and what is drawn in it, from back to front."""

    x: FigureAxis
    y: FigureAxis
    layers: tuple[Layer, ...]
    title: str = ""
    subtitle: str = ""


@dataclass(frozen=True)
class Drawing:
    """Panels in rows, from left to right and from top to bottom.

    Attributes:
        panels: The panels.
        columns: How many are beside each other on a wide screen.
        narrow_columns: The same on a phone.
        height: Of one row, in pixels.
        right: Margin on the right for labels, in pixels; on a phone there is less.
        left: Margin on the left, in pixels; the axis may need more.
        narrow_left: The same on a phone; None for the same.
        legend: Whether named layers are listed above the panels.
        note: A sentence below the panels, for example what is left out.
        shared_y: Whether all panels have the same vertical axis, so that its title is needed once in a row.
    """

    panels: tuple[Panel, ...]
    columns: int = 1
    narrow_columns: int = 1
    height: int = 380
    right: int = 16
    left: int = 64
    narrow_left: int | None = None
    legend: bool = False
    note: str = ""
    shared_y: bool = False
