"""All figures by name, in the order in which a report shows them, and how to save one as an image."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from fabolas.plots import (
    calibration,
    captions,
    contours,
    cost,
    curves,
    history,
    importance,
    parallel,
    slices,
    time,
    trials,
)
from fabolas.plots.drawing import Drawing
from fabolas.plots.figure import CannotDraw, Figure, Theme
from fabolas.plots.with_plotly import draw_with_plotly

if TYPE_CHECKING:
    import plotly.graph_objects as go

_DRAWINGS: Mapping[type, Callable[[Any], Drawing]] = {
    history.HistoryRecord: history.drawing,
    curves.CurvesRecord: curves.drawing,
    cost.CostRecord: cost.drawing,
    time.TimeRecord: time.drawing,
    importance.ImportanceRecord: importance.drawing,
    slices.SlicesRecord: slices.drawing,
    contours.ContoursRecord: contours.drawing,
    parallel.ParallelRecord: parallel.drawing,
    calibration.CalibrationRecord: calibration.drawing,
}


def drawing_of(record: Any) -> Drawing:
    """The drawing of a record.

    Raises:
        CannotDraw: If it is the table of trials.
        TypeError: If it is no record of a figure.
    """
    if isinstance(record, trials.TrialsRecord):
        raise CannotDraw("The table of trials is no image; `fabolas export` and `to_frame` save it.")
    if type(record) not in _DRAWINGS:
        raise TypeError(
            f"expected the record of a figure, as FIGURES[name].compute returns it, got {record!r}"
        )
    return _DRAWINGS[type(record)](record)


def _draw(record: Any, theme: Theme = "light") -> go.Figure:
    return draw_with_plotly(drawing_of(record), theme)


def save(record: Any, path: str | Path, *, theme: Theme = "light", width: float = 7.0) -> None:
    """Save a figure as an image for a paper or a slide. It needs matplotlib, and no browser.

    Args:
        record: What ``FIGURES[name].compute`` returned.
        path: The file; its ending is the format: .png, .svg or .pdf.
        theme: "light" or "dark".
        width: In inches.

    Raises:
        CannotDraw: If it is the table of trials.
        ImportError: If matplotlib is not installed.
        ValueError: If the format is not known.
    """
    from fabolas.plots.with_matplotlib import save_with_matplotlib

    save_with_matplotlib(drawing_of(record), Path(path), theme, width)


FIGURES: Mapping[str, Figure] = MappingProxyType(
    {
        "history": Figure("The answer over time", captions.history, history.compute, _draw),
        "curves": Figure("Learning curves", captions.curves, curves.compute, _draw),
        "cost": Figure("What a trial costs", captions.cost, cost.compute, _draw),
        "time": Figure("Where the time went", captions.time, time.compute, _draw),
        "importance": Figure("What matters", captions.importance, importance.compute, _draw),
        "slices": Figure("Each hyperparameter", captions.slices, slices.compute, _draw),
        "contours": Figure("Pairs of hyperparameters", captions.contours, contours.compute, _draw),
        "parallel": Figure("All trials at once", captions.parallel, parallel.compute, _draw),
        "trials": Figure("Trials", captions.trials, trials.compute, trials.draw),
        "calibration": Figure("Is the model right?", captions.calibration, calibration.compute, _draw),
    }
)
