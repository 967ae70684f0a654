"""The figure of a search: what was tried when, on how many rows, and the best on all of them."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fabolas._types import Array, BoolArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fabolas.sklearn.search import FabolasSearchCV


class Progress(NamedTuple):
    """What the figure shows, a row a candidate that did not fail, in the order in which they ended."""

    seconds: Array  # (n,) from the start of the search to the end of the trial
    scores: Array  # (n,) mean test score
    sizes: Array  # (n,) training rows
    full: BoolArray  # (n,) whether these are all the rows
    best: Array  # (n,) the highest score on all the rows so far, NaN before the first
    answer: int | None  # which row is the best, None if it is not known


def progress_of(search: "FabolasSearchCV") -> Progress:
    """The numbers of the figure."""
    results, study = search.cv_results_, search.study_
    wanted = f"mean_test_{search._metric}"
    column = wanted if wanted in results else next(key for key in results if key.startswith("mean_test_"))
    kept = [trial for trial in study.trials if trial.status != "lost"]
    ended = np.cumsum([trial.cost + trial.suggestion.thinking for trial in kept])
    good = np.array([trial.status == "complete" for trial in kept], dtype=np.bool_)
    scores = np.asarray(results[column], dtype=float)[good]
    sizes = np.asarray(results["n_samples"], dtype=float)[good]
    full = sizes == search.max_size_
    best = np.maximum.accumulate(np.where(full, scores, -np.inf))
    index = getattr(search, "best_index_", None)
    answer = int(good[:index].sum()) if index is not None else None
    return Progress(ended[good], scores, sizes, full, np.where(np.isfinite(best), best, np.nan), answer)


def draw(progress: Progress) -> "Figure":
    """Scores over seconds, the colour being the number of rows; a line for the best on all of them.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    try:
        from matplotlib.colors import LogNorm
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plot() needs matplotlib; install it with: pip install 'fabolas[plots]'") from error
    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    axes = figure.subplots()
    few, many = float(progress.sizes.min()), float(progress.sizes.max())
    colours: dict[str, Any] = {"cmap": "viridis_r", "norm": LogNorm(few, max(many, 1.01 * few))}
    for shown, marker, size in ((~progress.full, "o", 22), (progress.full, "s", 44)):
        points = axes.scatter(
            progress.seconds[shown],
            progress.scores[shown],
            c=progress.sizes[shown],
            marker=marker,
            s=size,
            **colours,
        )
    axes.step(progress.seconds, progress.best, where="post", color="black", lw=1.2, label="best on all rows")
    if progress.answer is not None:
        at = progress.answer
        axes.scatter(
            progress.seconds[at],
            progress.scores[at],
            s=150,
            facecolors="none",
            edgecolors="crimson",
            linewidths=1.8,
            label="answer",
        )
    figure.colorbar(points, ax=axes, label="training rows in a fold")
    low, high = np.percentile(progress.scores, 10), float(progress.scores.max())
    margin = 0.08 * (high - low) or 0.01
    axes.set_ylim(low - margin, high + margin)
    axes.set_xlabel("seconds of the search (evaluations and thinking)")
    axes.set_ylabel("mean test score")
    axes.legend(loc="lower right", frameon=False)
    return figure
