"""Figures of a study: each one is computed as a frozen record, and drawn from the record.

    record = fabolas.plots.FIGURES["curves"].compute(fabolas.load("run.db"))
    figure = fabolas.plots.FIGURES["curves"].draw(record, "dark")
    fabolas.plots.save(record, "curves.svg")

``study.plot.curves()`` computes and draws.
"""

from fabolas.plots.accessor import Plots
from fabolas.plots.figure import CannotDraw, Figure, ReadableStudy, Theme
from fabolas.plots.figures import FIGURES, save
from fabolas.plots.with_plotly import plotly_js

__all__ = ["FIGURES", "CannotDraw", "Figure", "Plots", "ReadableStudy", "Theme", "plotly_js", "save"]
