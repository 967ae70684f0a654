"""Test error of the answers over time, and the sizes that the methods chose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from experiments.live.search import Run

COLOURS = {
    "fabolas": "#c1272d",
    "fabolas2017": "#e8836b",
    "fabolas-epochs": "#f0a202",
    "fabolas-reports": "#5c2018",
    "mtbo": "#0000a7",
    "es": "#008176",
    "ei": "#eecc16",
    "hyperband": "#8e44ad",
    "random": "#808080",
}
SIZES_SHOWN = (
    "hyperband",
    "mtbo",
    "fabolas2017",
    "fabolas",
    "fabolas-reports",
)  # the others use all rows only
POINTS = 200


def draw(runs: Mapping[str, Sequence[Run]], time_budget: float, title: str) -> Figure:
    """Left, medians and quartiles of the test error; right, the rows of every trial of the first run."""
    figure = Figure(figsize=(13, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    starts = [run.answers[0]["time"] for found in runs.values() for run in found if run.answers]
    at = np.geomspace(min(starts, default=0.01 * time_budget), time_budget, POINTS)
    for method, found in runs.items():
        colour = COLOURS.get(method)
        errors = np.array([[run.test_at(t) for t in at] for run in found])
        low, middle, high = (np.quantile(errors, q, axis=0, method="higher") for q in (0.25, 0.5, 0.75))
        left.step(at, np.where(np.isfinite(middle), middle, np.nan), where="post", color=colour, label=method)
        shown = np.isfinite(high)
        left.fill_between(at[shown], low[shown], high[shown], step="post", color=colour, alpha=0.15, lw=0)
    left.set(xscale="log", yscale="log", xlabel="seconds", ylabel="test error of the answer")
    left.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    left.yaxis.set_minor_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    left.tick_params(axis="y", which="minor", labelsize=7)
    left.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    left.legend(frameon=False, fontsize=8)
    for method in (name for name in SIZES_SHOWN if name in runs):
        trials = runs[method][0].trials
        right.plot(
            [trial["time"] for trial in trials],
            [trial["rows"] for trial in trials],
            ".",
            color=COLOURS.get(method),
            label=method,
        )
    right.set(xscale="log", yscale="log", xlabel="seconds", ylabel="rows of each trial (first seed)")
    if right.has_data():
        right.legend(frameon=False, fontsize=8)
    figure.suptitle(title)
    return figure
