"""Drawings as figures of Plotly, the only importer of it.

No trace needs WebGL or an image, so that a page with a strict Content-Security-Policy can show the figures.
"""

from __future__ import annotations

from functools import cache, singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np

from fabolas._types import Array
from fabolas.display import safe_plotly
from fabolas.plots.drawing import (
    Band,
    Bars,
    Contours,
    Drawing,
    FigureAxis,
    Label,
    Layer,
    Line,
    Lines,
    Panel,
    Points,
    StraightLine,
)
from fabolas.plots.figure import Theme
from fabolas.plots.layout import (
    NOTE_LINE,
    Grid,
    label_place,
    legend_width,
    names_are_turned,
    note_lines,
    ticks_with_room,
    vertical_title,
)
from fabolas.plots.theme import base_axis, base_layout, colour

if TYPE_CHECKING:
    import plotly.graph_objects as go

_SYMBOLS = {
    "circle": "circle",
    "ring": "circle-open",
    "square": "square",
    "diamond": "diamond",
    "cross": "x-thin-open",
    "star": "star",
    "up": "triangle-up",
    "down": "triangle-down",
}
_LARGE_MARK = 9.0  # from this size on, a mark gets an outline in the colour of the paper


def plotly_objects() -> Any:
    """The module ``plotly.graph_objects``.

    Raises:
        ImportError: If Plotly is not installed.
    """
    try:
        import plotly.graph_objects as go
    except ImportError as error:
        raise ImportError("figures need plotly; install it with: pip install 'fabolas[plots]'") from error
    return go


@cache
def plotly_js() -> str:
    """The JavaScript of Plotly, for a page that shows figures without a network."""
    plotly_objects()
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def draw_with_plotly(drawing: Drawing, theme: Theme = "light") -> go.Figure:
    """The drawing as a figure of Plotly.

    ``layout.meta`` has "narrow" and "wide": what to pass to ``Plotly.relayout`` on a phone, and to go back.
    """
    go = plotly_objects()
    traces: list[dict[str, Any]] = []
    layout: dict[str, Any] = {**base_layout(theme), "annotations": [], "shapes": [], "barmode": "overlay"}
    for number, panel in enumerate(drawing.panels, start=1):
        suffix = "" if number == 1 else str(number)
        layout[f"xaxis{suffix}"] = {**_axis(panel.x, theme), "anchor": f"y{suffix}"}
        layout[f"yaxis{suffix}"] = {**_axis(panel.y, theme), "anchor": f"x{suffix}"}
        layout["annotations"] += _titles(panel, suffix, theme)
        for layer in panel.layers:
            if isinstance(layer, Label):
                layout["annotations"].append(_annotation(layer, panel, suffix, theme))
            elif isinstance(layer, StraightLine):
                layout["shapes"].append(_shape(layer, suffix, theme))
            else:
                traces += [
                    {**trace, "xaxis": f"x{suffix}", "yaxis": f"y{suffix}"} for trace in _traces(layer, theme)
                ]
    _add_legend_and_note(layout, drawing, theme)
    wide, narrow = (_relayout(drawing, layout["annotations"], narrow=narrow) for narrow in (False, True))
    layout |= {"margin": Grid.of(drawing, narrow=False).margin, "meta": {"wide": wide, "narrow": narrow}}
    figure = go.Figure(traces, layout)
    return apply_relayout(figure, wide)


def apply_relayout(figure: go.Figure, changes: dict[str, Any]) -> go.Figure:
    """Do in Python what ``Plotly.relayout`` does in a browser; return the figure."""
    for key, value in changes.items():
        figure.layout[key] = value
    return figure


def _relayout(drawing: Drawing, annotations: list[dict[str, Any]], *, narrow: bool) -> dict[str, Any]:
    """What changes with the width of the screen: places of panels, labels, and how many ticks have room."""
    grid = Grid.of(drawing, narrow=narrow)
    changes = grid.relayout()
    if drawing.note:
        lines = note_lines(drawing.note, narrow=narrow)
        changes["title.text"] = "<br>".join(map(safe_plotly, lines))
        changes["title.y"] = NOTE_LINE * len(lines) / grid.height
    for number, panel in enumerate(drawing.panels, start=1):
        ticks, suffix = ticks_with_room(panel.x, grid.panel_width), "" if number == 1 else number
        if ticks is not None:
            changes[f"xaxis{suffix}.tickvals"] = [value for value, _ in ticks]
            changes[f"xaxis{suffix}.ticktext"] = [safe_plotly(text) for _, text in ticks]
        if panel.x.names:
            changes[f"xaxis{suffix}.tickangle"] = -90 if names_are_turned(panel.x, grid.panel_width) else 0
        if panel.y.narrow_ticks is not None:
            rows = panel.y.narrow_ticks if narrow else panel.y.ticks or ()
            changes[f"yaxis{suffix}.tickvals"] = [value for value, _ in rows]
            changes[f"yaxis{suffix}.ticktext"] = [safe_plotly(text) for _, text in rows]
        if drawing.shared_y:
            title = vertical_title(drawing, number - 1, narrow=narrow)
            changes[f"yaxis{suffix}.title.text"] = safe_plotly(title)
    labels = [layer for panel in drawing.panels for layer in panel.layers if isinstance(layer, Label)]
    places = [i for i, annotation in enumerate(annotations) if annotation["name"] == "label"]
    for i, label in zip(places, labels, strict=True):
        if label.narrow_text is not None:
            text = _label_text(label, narrow=narrow)
            changes[f"annotations[{i}].text"], changes[f"annotations[{i}].visible"] = text, bool(text)
    return changes


def _axis(axis: FigureAxis, theme: Theme) -> dict[str, Any]:
    settings: dict[str, Any] = {**base_axis(theme), "showgrid": axis.grid}
    settings["title"] = {
        "text": safe_plotly(axis.title),
        "font": {"size": 12, "color": colour("muted", theme)},
        "standoff": 8,
    }
    if axis.log:
        settings["type"] = "log"
    else:
        settings["type"] = "linear"
    if axis.range is not None:
        ends = np.log10(axis.range) if axis.log else np.array(axis.range)
        settings["range"] = [float(end) for end in ends]
    if axis.ticks is not None:
        settings |= {
            "tickmode": "array",
            "tickvals": [value for value, _ in axis.ticks],
            "ticktext": [safe_plotly(text) for _, text in axis.ticks],
        }
    return settings


def _titles(panel: Panel, suffix: str, theme: Theme) -> list[dict[str, Any]]:
    place = {"xref": f"x{suffix} domain", "yref": f"y{suffix} domain", "x": 0, "y": 1}
    place |= {"xanchor": "left", "yanchor": "bottom", "showarrow": False, "align": "left", "name": "title"}
    texts = []
    if panel.title:
        texts.append(f"<b>{safe_plotly(panel.title)}</b>")
    if panel.subtitle:
        muted = colour("muted", theme)
        texts.append(f'<span style="color:{muted};font-size:12px">{safe_plotly(panel.subtitle)}</span>')
    return [{**place, "text": "<br>".join(texts), "yshift": 8}] if texts else []


def _annotation(label: Label, panel: Panel, suffix: str, theme: Theme) -> dict[str, Any]:
    domain = " domain" if label.relative else ""
    # Plotly wants annotations on a logarithmic axis as logarithms, but everything else as values.
    x, y = (
        float(np.log10(value)) if axis.log and not label.relative else float(value)
        for value, axis in ((label.x, panel.x), (label.y, panel.y))
    )
    return {
        "xref": f"x{suffix}{domain}",
        "yref": f"y{suffix}{domain}",
        "x": x,
        "y": y,
        "text": _label_text(label, narrow=False),
        "name": "label",
        "showarrow": False,
        **label_place(label),
        "font": {"size": label.size, "color": colour(label.colour, theme)},
        "bgcolor": _behind(label, theme),
        "borderpad": 1,
    }


def _behind(label: Label, theme: Theme) -> str:
    if label.background:
        return colour("paper", theme)
    return colour("paper", theme, 0.7) if label.in_margin else "rgba(0,0,0,0)"


def _label_text(label: Label, *, narrow: bool) -> str:
    shown = label.narrow_text if narrow and label.narrow_text is not None else label.text
    text = safe_plotly(shown)
    return f"<b>{text}</b>" if label.bold else text


def _shape(rule: StraightLine, suffix: str, theme: Theme) -> dict[str, Any]:
    line = {"color": colour(rule.colour, theme), "width": 1, "dash": rule.dash}
    if rule.x is not None:
        ends = {"x0": rule.x, "x1": rule.x, "y0": 0, "y1": 1}
        return {"type": "line", "xref": f"x{suffix}", "yref": f"y{suffix} domain", "line": line, **ends}
    across: dict[str, Any] = {"x0": 0, "x1": 1, "y0": rule.y, "y1": rule.y}
    return {"type": "line", "xref": f"x{suffix} domain", "yref": f"y{suffix}", "line": line, **across}


def _add_legend_and_note(layout: dict[str, Any], drawing: Drawing, theme: Theme) -> None:
    if drawing.legend:
        place = {
            "x": 0,
            "xanchor": "left",
            "xref": "container",
            "y": 1,
            "yanchor": "top",
            "yref": "container",
        }
        font = {"size": 12, "color": colour("muted", theme)}
        layout["showlegend"] = True
        layout["legend"] = {
            "orientation": "h",
            "entrywidth": legend_width(drawing),
            "indentation": -12,  # the first mark is below the text above the figure
            "font": font,
            "bgcolor": "rgba(0,0,0,0)",
            **place,
        }
    if drawing.note:
        place = {"xref": "container", "yref": "container", "x": 0, "xanchor": "left", "yanchor": "top"}
        font = {"size": 12, "color": colour("muted", theme)}
        layout["title"] = {**place, "font": font}  # its text depends on the width


def _hover(hover: tuple[Lines, ...] | None) -> dict[str, Any]:
    """Hover texts; ``hovertext`` is no template, so "%{x}" in it stays as it is."""
    if hover is None:
        return {"hoverinfo": "skip"}
    return {"hoverinfo": "text", "hovertext": [_hover_text(lines) for lines in hover]}


def _hover_text(lines: Lines) -> str:
    if not lines:
        return ""
    first, *others = map(safe_plotly, lines)
    return "<br>".join([f"<b>{first}</b>", *others]) if others else first


def _legend(name: str | None) -> dict[str, Any]:
    return {"showlegend": False} if name is None else {"showlegend": True, "name": safe_plotly(name)}


@singledispatch
def _traces(layer: Layer, theme: Theme) -> list[dict[str, Any]]:
    raise TypeError(f"expected a layer, got {type(layer).__name__}")


@_traces.register
def _(layer: Line, theme: Theme) -> list[dict[str, Any]]:
    style = {"color": colour(layer.colour, theme, layer.alpha), "width": layer.width, "dash": layer.dash}
    shape = {"shape": "hv"} if layer.step else {}
    data = {"type": "scatter", "mode": "lines", "x": layer.x, "y": layer.y, "line": style | shape}
    return [{**data, **_hover(layer.hover), **_legend(layer.legend)}]


@_traces.register
def _(layer: Band, theme: Theme) -> list[dict[str, Any]]:
    x, low, high = layer.x, layer.low, layer.high
    if layer.step:
        x, low, high = np.repeat(x, 2)[1:], np.repeat(low, 2)[:-1], np.repeat(high, 2)[:-1]
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "x": np.concatenate([x, x[::-1]]),
            "y": np.concatenate([high, low[::-1]]),
            "fill": "toself",
            "fillcolor": colour(layer.colour, theme, layer.alpha),
            "line": {"width": 0, "color": colour(layer.colour, theme)},
            "hoverinfo": "skip",
            **_legend(layer.legend),
        }
    ]


@_traces.register
def _(layer: Points, theme: Theme) -> list[dict[str, Any]]:
    if isinstance(layer.colour, str):
        colours: Any = colour(layer.colour, theme, layer.alpha)
    else:
        colours = [colour(role, theme, layer.alpha) for role in layer.colour]
    marker: dict[str, Any] = {"size": layer.size, "symbol": _SYMBOLS[layer.symbol], "color": colours}
    if layer.symbol in ("ring", "cross"):
        marker["line"] = {"width": 1.6, "color": colours}
    elif layer.size >= _LARGE_MARK:
        marker["line"] = {"width": 1.5, "color": colour("paper", theme)}
    else:
        marker["line"] = {"width": 0}
    data: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers",
        "x": layer.x,
        "y": layer.y,
        "marker": marker,
    }
    if layer.size >= _LARGE_MARK:
        data["cliponaxis"] = False  # at an end of an axis, it is whole
    return [{**data, **_hover(layer.hover), **_legend(layer.legend)}]


@_traces.register
def _(layer: Bars, theme: Theme) -> list[dict[str, Any]]:
    data = {"type": "bar", "orientation": "h", "y": layer.y, "base": layer.start, "width": layer.height}
    data |= {"x": layer.end - layer.start}
    marker = {"color": colour(layer.colour, theme, layer.alpha), "line": {"width": 0}}
    return [{**data, "marker": marker, **_hover(layer.hover), **_legend(layer.legend)}]


@_traces.register
def _(layer: Contours, theme: Theme) -> list[dict[str, Any]]:
    first, last, step = layer.levels
    data: dict[str, Any] = {"type": "contour", "x": layer.x, "y": layer.y, "z": layer.z, "showscale": False}
    data |= {"autocontour": False, "contours": {"start": first, "end": last, "size": step}}
    if layer.filled:
        shades = [[0.0, colour(layer.colour, theme, 0.0)], [1.0, colour(layer.colour, theme, 0.45)]]
        data |= {"colorscale": shades, "zmin": first, "zmax": last, "line": {"width": 0}}
        data["contours"] |= {"coloring": "fill", "showlines": False}
    else:
        data["line"] = {"width": 1, "color": colour(layer.colour, theme), "smoothing": 1}
        data["contours"] |= {"coloring": "none"}
    values = layer.z if layer.values is None else layer.values
    return [{**data, **_contour_hover(values, layer.hover), "showlegend": False}]


def _contour_hover(z: Array, what: str | None) -> dict[str, Any]:
    if what is None:
        return {"hoverinfo": "skip"}
    return {
        "hoverinfo": "text",
        "hovertext": [[f"{safe_plotly(what)} {value:.4g}" for value in row] for row in z],
    }
