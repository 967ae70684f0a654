"""All figures by name, in the order in which a report shows them, and how to save one as an image."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from fabolas.plots import (
    calibration,
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
        "history": Figure(
            "The answer over time",
            "The line is the predicted loss of the best configuration known at that time, dotted while that one was "
            "not measured on all the data; the band is its 95 % interval, and each diamond a measurement on all the "
            "data.",
            history.compute,
            _draw,
        ),
        "curves": Figure(
            "Learning curves",
            "Each grey point is a trial (a triangle at the edge: one outside the picture); each line is the curve that "
            "the model predicts for one configuration, up to all the data on the right; its band holds 50 % of the "
            "probability, the pale one of the answer 95 %.",
            curves.compute,
            _draw,
        ),
        "cost": Figure(
            "What a trial costs",
            "Each point is a trial; the line is the time that the model predicts for the answer, and the bands hold "
            "50 % and 95 % of the measurements that it expects.",
            cost.compute,
            _draw,
        ),
        "time": Figure(
            "Where the time went",
            "Each bar is the time spent on trials of one size, divided by what they were for; overhead is the time "
            "spent on choosing them.",
            time.compute,
            _draw,
        ),
        "importance": Figure(
            "What matters",
            "A bar is the share of the differences between configurations on all the data that one hyperparameter "
            "explains: the strong colour alone, the pale one together with others. The thin line is the uncertainty "
            "of the whole bar.",
            importance.compute,
            _draw,
        ),
        "slices": Figure(
            "Each hyperparameter",
            "A line is the predicted loss on all the data if one hyperparameter of the answer (the star) is changed, "
            "with its 95 % band; the orange shade below shows where the optimum probably is.",
            slices.compute,
            _draw,
        ),
        "contours": Figure(
            "Pairs of hyperparameters",
            "Lines connect configurations with equal predicted loss on all the data, the orange shade shows where "
            "the optimum probably is, and the star is the answer.",
            contours.compute,
            _draw,
        ),
        "parallel": Figure(
            "All trials at once",
            "Each line from top to bottom is a trial and crosses each row at its value; the stronger its colour the "
            "better the trial, and the orange one is the answer.",
            parallel.compute,
            _draw,
        ),
        "trials": Figure(
            "Trials",
            "Each row is a trial, the last one first.",
            trials.compute,
            trials.draw,
        ),
        "calibration": Figure(
            "Is the model right?",
            "Each point is a trial as the model predicts it from the trials before it; believe the model if the "
            "points (hollow: initial design) are near the diagonal, and if the coverage stays in the grey band.",
            calibration.compute,
            _draw,
        ),
    }
)
