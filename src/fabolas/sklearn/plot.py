"""The figure of a search: scores over time, the number of rows, and the best score on all rows so far."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fabolas._types import Array, BoolArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.figure import Figure

    from fabolas.sklearn.search import FabolasSearchCV


class PlotData(NamedTuple):
    """The numbers of the figure, for each complete trial, in the order in which they ended."""

    seconds: Array  # (n,) from the start of the search to the end of the trial
    scores: Array  # (n,) mean test score
    sizes: Array  # (n,) training rows
    at_target: BoolArray  # (n,) whether the trial is on all rows
    best: Array  # (n,) the highest score on all rows so far, NaN before the first
    best_index: int | None  # the index of the trial with the best parameters, None if there is none


def plot_data(search: "FabolasSearchCV") -> PlotData:
    """Return the numbers of the figure of a search."""
    results, study = search.cv_results_, search.study_
    wanted = f"mean_test_{search._metric}"
    column = wanted if wanted in results else next(key for key in results if key.startswith("mean_test_"))
    ended = [trial for trial in study.trials if trial.status != "abandoned"]
    seconds = np.cumsum([trial.cost + trial.suggestion.overhead for trial in ended])
    complete = np.array([trial.status == "complete" for trial in ended], dtype=np.bool_)
    scores = np.asarray(results[column], dtype=float)[complete]
    sizes = np.asarray(results["n_samples"], dtype=float)[complete]
    at_target = sizes == search.max_size_
    best = np.maximum.accumulate(np.where(at_target, scores, -np.inf))
    best = np.where(np.isfinite(best), best, np.nan)
    index = getattr(search, "best_index_", None)
    best_index = int(complete[:index].sum()) if index is not None else None
    return PlotData(seconds[complete], scores, sizes, at_target, best, best_index)


def plot_search(data: PlotData) -> "Figure":
    """Plot scores over seconds, coloured by the number of rows, and a line for the best score on all rows.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plot() needs matplotlib; install it with: pip install 'fabolas[plots]'") from error
    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    axes = figure.subplots()
    points = _plot_trials(axes, data)
    _plot_best(axes, data)
    figure.colorbar(points, ax=axes, label="training rows in a fold")
    low, high = np.percentile(data.scores, 10), float(data.scores.max())
    margin = 0.08 * (high - low) or 0.01
    axes.set_ylim(low - margin, high + margin)
    axes.set_xlabel("seconds of the search (evaluations and overhead)")
    axes.set_ylabel("mean test score")
    axes.legend(loc="lower right", frameon=False)
    return figure


def _plot_trials(axes: "Axes", data: PlotData) -> "PathCollection":
    """Plot a circle for each trial on some of the rows, and a square for each on all rows."""
    from matplotlib.colors import LogNorm

    fewest, most = float(data.sizes.min()), float(data.sizes.max())
    colours: dict[str, Any] = {"cmap": "viridis_r", "norm": LogNorm(fewest, max(most, 1.01 * fewest))}
    for shown, marker, area in ((~data.at_target, "o", 22), (data.at_target, "s", 44)):
        points = axes.scatter(
            data.seconds[shown],
            data.scores[shown],
            c=data.sizes[shown],
            marker=marker,
            s=area,
            **colours,
        )
    return points


def _plot_best(axes: "Axes", data: PlotData) -> None:
    """Plot the best score on all rows so far as a line, and a ring around the answer."""
    axes.step(data.seconds, data.best, where="post", color="black", lw=1.2, label="best on all rows")
    if data.best_index is None:
        return
    axes.scatter(
        data.seconds[data.best_index],
        data.scores[data.best_index],
        s=150,
        facecolors="none",
        edgecolors="crimson",
        linewidths=1.8,
        label="answer",
    )
