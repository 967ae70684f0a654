"""Drawings as images of matplotlib, the only importer of it here: for papers, without a browser."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from fabolas._types import Array
from fabolas.display import safe_matplotlib
from fabolas.plots.drawing import (
    Band,
    Bars,
    Contours,
    Drawing,
    FigureAxis,
    Label,
    Layer,
    Line,
    Panel,
    Points,
    StraightLine,
)
from fabolas.plots.figure import Theme
from fabolas.plots.layout import WIDTH, Grid, names_are_turned, note_lines, ticks_with_room, vertical_title
from fabolas.plots.theme import colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")
_DPI = 200
_POINT = 72.0 / 96.0  # points of a pixel as browsers count them
_MARKERS = {
    "circle": "o",
    "ring": "o",
    "square": "s",
    "diamond": "D",
    "cross": "x",
    "star": "*",
    "up": "^",
    "down": "v",
}
_STAR = 1.8  # a star of matplotlib is this much smaller than one of Plotly
_DASHES = {"solid": "-", "dash": "--", "dot": ":"}
_ANCHORS = {"left": "left", "centre": "center", "right": "right"}


def save_with_matplotlib(drawing: Drawing, path: Path, theme: Theme = "light", width: float = 7.0) -> None:
    """Save a drawing; the ending of the path is its format.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If the format is not known, or the width is no positive number.
    """
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"the file must end with {', '.join(FORMATS)}, got {path.name!r}")
    if not width > 0:
        raise ValueError(f"width must be a positive number of inches, got {width}")
    figure = draw_with_matplotlib(drawing, theme, width)
    from matplotlib import rc_context

    options: dict[str, Any] = {"metadata": {"Date": None}} if path.suffix.lower() == ".svg" else {}
    with rc_context({"svg.hashsalt": "fabolas"}):  # the same record gives the same file
        figure.savefig(
            path, dpi=_DPI, facecolor=colour("paper", theme), bbox_inches="tight", pad_inches=0.08, **options
        )


def draw_with_matplotlib(drawing: Drawing, theme: Theme = "light", width: float = 7.0) -> Figure:
    """The drawing as a figure of matplotlib, this many inches wide."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("images need matplotlib; install it with: pip install 'fabolas[plots]'") from error
    grid = Grid.of(drawing, narrow=False)
    # The sizes are those of a figure in a browser, 96 pixels to an inch, scaled to the width.
    zoom = width * 96.0 / WIDTH
    figure = Figure(figsize=(width, grid.height / 96.0 * zoom))
    for i, (panel, (x, y)) in enumerate(zip(drawing.panels, grid.domains, strict=True)):
        figure.add_axes(_rectangle(grid, x, y))
        titled = replace(panel, y=replace(panel.y, title=vertical_title(drawing, i, narrow=False)))
        _draw_panel(figure.axes[-1], titled, theme, zoom, grid.panel_width)
    if drawing.legend:
        handles, labels = figure.axes[0].get_legend_handles_labels()
        style = {"frameon": False, "fontsize": 12 * _POINT * zoom, "labelcolor": colour("muted", theme)}
        figure.legend(handles, labels, loc="upper left", ncols=len(labels), handlelength=1.0, **style)
    if drawing.note:
        size, muted = 12 * _POINT * zoom, colour("muted", theme)
        figure.text(
            0.01,
            0.01,
            "\n".join(map(safe_matplotlib, note_lines(drawing.note, narrow=False))),
            fontsize=size,
            color=muted,
        )
    return figure


def _rectangle(
    grid: Grid, x: tuple[float, float], y: tuple[float, float]
) -> tuple[float, float, float, float]:
    """Left, bottom, width and height of a panel, as shares of the figure."""
    left, right, top, bottom = (grid.margin[side] for side in "lrtb")
    width, height = WIDTH - left - right, grid.height - top - bottom
    return (
        (left + x[0] * width) / WIDTH,
        (bottom + y[0] * height) / grid.height,
        (x[1] - x[0]) * width / WIDTH,
        (y[1] - y[0]) * height / grid.height,
    )


def _draw_panel(axes: Axes, panel: Panel, theme: Theme, zoom: float, width: float) -> None:
    axes.set_facecolor((0.0, 0.0, 0.0, 0.0))
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)
    for order, layer in enumerate(panel.layers, start=3):
        _draw(layer, axes, theme, zoom, order)
    _set_axis(axes, "x", panel.x, ticks_with_room(panel.x, width), theme, zoom)
    if names_are_turned(panel.x, width):
        axes.tick_params(axis="x", labelrotation=90)
    _set_axis(axes, "y", panel.y, panel.y.ticks, theme, zoom)
    size, above = 13 * _POINT * zoom, 6.0
    for text, role, weight in ((panel.subtitle, "muted", "normal"), (panel.title, "ink", "bold")):
        if text:
            style: dict[str, Any] = {"fontsize": size, "color": colour(role, theme), "fontweight": weight}
            place: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}
            axes.annotate(
                safe_matplotlib(text), (0, 1), (0, above * zoom), va="bottom", ha="left", **place, **style
            )
            above += 14.0


def _set_axis(
    axes: Axes,
    which: str,
    axis: FigureAxis,
    ticks: tuple[tuple[float, str], ...] | None,
    theme: Theme,
    zoom: float,
) -> None:
    from matplotlib.ticker import NullLocator

    size, muted = 12 * _POINT * zoom, colour("muted", theme)
    shown = axes.xaxis if which == "x" else axes.yaxis
    if axis.log:
        axes.set(**{f"{which}scale": "log"})
    if axis.range is not None:
        axes.set(**{f"{which}lim": axis.range})
    if ticks is not None:
        shown.set_ticks([value for value, _ in ticks], [safe_matplotlib(text) for _, text in ticks])
        shown.set_minor_locator(NullLocator())
    axes.tick_params(axis=cast(Any, which), length=0, labelsize=size, labelcolor=muted, pad=5 * zoom)
    shown.set_label_text(safe_matplotlib(axis.title), fontsize=size, color=muted)
    if axis.grid:
        axes.grid(axis=cast(Any, which), color=colour("grid", theme), linewidth=0.75 * zoom)
    axes.set_axisbelow(True)


@singledispatch
def _draw(layer: Layer, axes: Axes, theme: Theme, zoom: float, order: int) -> None:
    raise TypeError(f"expected a layer, got {type(layer).__name__}")


@_draw.register(Line)
def _(layer: Line, axes: Axes, theme: Theme, zoom: float, order: int) -> None:
    axes.plot(
        layer.x,
        layer.y,
        color=colour(layer.colour, theme),
        alpha=layer.alpha,
        linewidth=layer.width * _POINT * zoom,
        linestyle=_DASHES[layer.dash],
        drawstyle="steps-post" if layer.step else "default",
        label=layer.legend,
        zorder=order,
    )


@_draw.register(Band)
def _(layer: Band, axes: Axes, theme: Theme, zoom: float, order: int) -> None:
    axes.fill_between(
        layer.x,
        layer.low,
        layer.high,
        step="post" if layer.step else None,
        color=colour(layer.colour, theme),
        alpha=layer.alpha,
        linewidth=0,
        label=layer.legend,
        zorder=order,
    )


@_draw.register(Points)
def _(layer: Points, axes: Axes, theme: Theme, zoom: float, order: int) -> None:
    roles = [layer.colour] * len(layer.x) if isinstance(layer.colour, str) else layer.colour
    colours = [colour(role, theme) for role in roles]
    edges: Any = colour("paper", theme) if layer.size >= 9 else "none"
    if layer.symbol in ("ring", "cross"):
        edges = colours if layer.symbol == "ring" else None  # a cross has lines only, in its face's colour
    size = layer.size * (_STAR if layer.symbol == "star" else 1.0)
    axes.scatter(
        layer.x,
        layer.y,
        s=(size * _POINT * zoom) ** 2,
        facecolors="none" if layer.symbol == "ring" else colours,
        edgecolors=edges,
        linewidths=1.2 * zoom,
        marker=_MARKERS[layer.symbol],
        alpha=layer.alpha,
        label=layer.legend,
        zorder=order,
    )


@_draw.register(Bars)
def _(layer: Bars, axes: Axes, theme: Theme, zoom: float, order: int) -> None:
    style: dict[str, Any] = {"color": colour(layer.colour, theme), "alpha": layer.alpha, "zorder": order}
    axes.barh(layer.y, layer.end - layer.start, layer.height, layer.start, label=layer.legend, **style)


@_draw.register(Contours)
def _(layer: Contours, axes: Axes, theme: Theme, zoom: float, order: int) -> None:
    first, last, step = layer.levels
    levels = first + step * np.arange(round((last - first) / step) + 1)
    if not layer.filled:
        x, y, z = _refined(layer)
        style: dict[str, Any] = {"linewidths": 0.75 * zoom, "linestyles": "solid"}
        axes.contour(x, y, z, levels, colors=[colour(layer.colour, theme)], zorder=order, **style)
        return
    from matplotlib.colors import ListedColormap, to_rgb

    # Mixed with the paper instead of transparent: where transparent areas meet, a line would be seen.
    ink, paper = (np.array(to_rgb(colour(role, theme))) for role in (layer.colour, "paper"))
    shares = 0.45 * np.arange(1, len(levels) + 1) / len(levels)
    shades = [tuple(share * ink + (1.0 - share) * paper) for share in shares]
    axes.contourf(layer.x, layer.y, layer.z, levels, cmap=ListedColormap(shades), extend="max", zorder=order)


def _refined(layer: Contours) -> tuple[Array, Array, Array]:
    """A denser grid, so that lines are as smooth as those of Plotly.

    Each value is between those of the four points around it, so that there is no line around a point that is none of
    the original ones.
    """
    from scipy.interpolate import RectBivariateSpline  # slow to import

    if min(len(layer.x), len(layer.y)) < 4:
        return layer.x, layer.y, layer.z
    x, y = (np.linspace(each[0], each[-1], 4 * len(each)) for each in (layer.x, layer.y))
    i, j = (
        np.clip(np.searchsorted(given, new, side="right") - 1, 0, len(given) - 2)
        for given, new in ((layer.y, y), (layer.x, x))
    )
    around = np.stack([layer.z[np.ix_(i + a, j + b)] for a in (0, 1) for b in (0, 1)])
    smooth = RectBivariateSpline(layer.y, layer.x, layer.z)(y, x)
    return x, y, np.clip(smooth, around.min(axis=0), around.max(axis=0))


@_draw.register(Label)
def _(layer: Label, axes: Axes, theme: Theme, zoom: float, order: int) -> None:
    if not layer.text:  # it is for a phone only
        return
    behind = {"facecolor": colour("paper", theme), "alpha": 1.0, "edgecolor": "none", "pad": 0.5}
    axes.annotate(
        safe_matplotlib(layer.text),
        (layer.x, layer.y),
        (layer.shift[0] * _POINT * zoom, layer.shift[1] * _POINT * zoom),
        xycoords="axes fraction" if layer.relative else "data",
        textcoords="offset points",
        ha=cast(Any, _ANCHORS[layer.anchor]),
        va="center",
        color=colour(layer.colour, theme),
        fontsize=layer.size * _POINT * zoom,
        fontweight="bold" if layer.bold else "normal",
        bbox=behind if layer.background else None,
        annotation_clip=False,
        zorder=order,
    )


@_draw.register(StraightLine)
def _(layer: StraightLine, axes: Axes, theme: Theme, zoom: float, order: int) -> None:
    style: dict[str, Any] = {"color": colour(layer.colour, theme), "linewidth": 0.75 * zoom}
    style |= {"linestyle": _DASHES[layer.dash], "zorder": order}
    if layer.x is not None:
        axes.axvline(layer.x, **style)
    else:
        axes.axhline(cast(float, layer.y), **style)
