"""The five figures of the comparison: numbers from `curves`, drawn."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from experiments.simulate import Run
from experiments.svm_grid import curves
from experiments.svm_grid.compare import COMPARED
from experiments.svm_grid.problem import Problem

HEATED = (1 / 128, 1 / 16, 1 / 4, 1.0)
COLOURS = {
    "fabolas": "#c1272d",
    "fabolas2017": "#e8836b",
    "mtbo": "#0000a7",
    "mtbo-1/4": "#0000a7",
    "mtbo-1/32": "#5b8ff9",
    "mtbo-1/256": "#00a3a3",
    "es": "#008176",
    "ei": "#eecc16",
    "hyperband": "#8e44ad",
    "random": "#808080",
}
DASHED = {"es": "--", "hyperband": "-."}  # which often lie on another curve
FLOOR = 1e-4  # of regrets that are shown: less than one row of the validation sets
Runs = Mapping[str, list[Run]]  # by method


def heat_maps(problem: Problem) -> Figure:
    """Validation error over (C, gamma) on subsets of four sizes (Klein et al. 2017, figure 1)."""
    surfaces = [curves.surface(problem, fraction) for fraction in HEATED]
    highest = max(float(values.max()) for _, values in surfaces)
    norm = LogNorm(max(problem.best, 1e-3), max(highest, 2e-3))
    half = 0.5 * np.array([np.diff(problem.log_c)[0], np.diff(problem.log_gamma)[0]])
    edges = (
        problem.log_c[0] - half[0],
        problem.log_c[-1] + half[0],
        problem.log_gamma[0] - half[1],
        problem.log_gamma[-1] + half[1],
    )
    figure = Figure(figsize=(13, 3.4), layout="constrained")
    axes = figure.subplots(1, 4, sharey=True)
    for ax, (fraction, values) in zip(axes, surfaces, strict=True):
        image = ax.imshow(values.T, origin="lower", extent=edges, norm=norm, cmap="viridis", aspect="auto")
        c, gamma = np.unravel_index(int(values.argmin()), values.shape)
        ax.plot(problem.log_c[c], problem.log_gamma[gamma], "x", color="white", markersize=8, mew=2)
        ax.set(title=f"s = {_fraction(fraction)}", xlabel="log C")
    axes[0].set_ylabel("log γ")
    bar = figure.colorbar(image, ax=axes, label="validation error")
    _plain_ticks(
        bar.ax, [t for t in (0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 0.9) if norm.vmin <= t <= norm.vmax]
    )
    return figure


def over_time(problem: Problem, runs: Runs, budget: float, title: str) -> Figure:
    """The incumbent against time in full trainings, median and quartiles (figure 2, left, middle).

    Its test error on the left, as in the paper, and on the right how far its validation error is from the best.
    """
    figure = Figure(figsize=(13, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    best = problem.test_error(problem.best_config)
    _, worst = _draw_bands(left, problem, runs, budget, "test")
    worst = max(worst, best)
    left.axhline(best, color="black", lw=0.8, ls=":", label="best of the table")
    left.set(ylabel="test error of the incumbent", ylim=(0.9 * best, 1.1 * worst))
    lowest, highest = _draw_bands(right, problem, runs, budget, "regret")
    right.set(ylabel="validation error above the best", ylim=(0.8 * lowest, 1.2 * highest))
    for ax in (left, right):
        ax.set(
            xscale="log", yscale="log", xlabel="time in trainings of the best configuration on all the data"
        )
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    _plain_ticks(
        left,
        [t for t in (0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.9) if 0.9 * best <= t <= 1.1 * worst],
    )
    figure.suptitle(title)
    figure.legend(*left.get_legend_handles_labels(), frameon=False, fontsize=9, loc="outside center right")
    return figure


def _draw_bands(
    ax: Axes, problem: Problem, runs: Runs, budget: float, of: Literal["test", "regret"]
) -> tuple[float, float]:
    """Median and quartiles of each method; the lowest and the highest value of all."""
    lowest, highest = 1.0, FLOOR
    for method, of_method in runs.items():
        band = curves.over_time(of_method, problem.full_cost, budget, of)
        lower, middle, upper = (np.maximum(c, FLOOR) for c in (band.lower, band.middle, band.upper))
        colour = COLOURS.get(method)
        ax.step(band.at, middle, where="post", label=method, lw=1.8, ls=DASHED.get(method, "-"), color=colour)
        ax.fill_between(band.at, lower, upper, step="post", alpha=0.15, lw=0, color=colour)
        lowest = float(lower[np.isfinite(lower)].min(initial=lowest))
        highest = float(upper[np.isfinite(upper)].max(initial=highest))
    return lowest, highest


def sizes_chosen(problem: Problem, runs: Runs) -> Figure:
    """Size of trials, later ones in groups: mean over the runs and a quarter of the deviation (figure 2, right)."""
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    ax = figure.subplots()
    smallest = problem.sizes[0] / problem.sizes[-1]
    for method, of_method in runs.items():
        band = curves.sizes_chosen(of_method)
        colour = COLOURS.get(method)
        ax.plot(band.at, band.middle, color=colour, label=method, lw=1.5)
        ax.fill_between(band.at, np.maximum(band.lower, smallest), band.upper, color=colour, alpha=0.2, lw=0)
    ax.set(xscale="log", yscale="log", xlabel="trial", ylim=(0.8 * smallest, 1.3))
    ax.set_ylabel("size as a fraction of the data")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ticks = _quarters(problem)
    ax.set_yticks(ticks, [_fraction(t) for t in ticks])
    ax.yaxis.set_minor_locator(NullLocator())
    ax.legend(frameon=False)
    return figure


def basis_functions(problem: Problem) -> Figure:
    """Loss and cost against size with the basis functions fitted to them (supplement B)."""
    figure = Figure(figsize=(12, 4.6), layout="constrained")
    (left, right) = figure.subplots(1, 2)
    for i, cell in enumerate(curves.typical_cells(problem)):
        line, colour = curves.scaling(problem, cell), f"C{i}"
        left.errorbar(line.fractions, line.loss, line.loss_deviation, fmt="o", ms=4, color=colour, capsize=2)
        left.plot(line.grid, line.power_fit, color=colour, label=line.label)
        left.plot(line.grid, line.paper_fit, color=colour, ls=":")
        right.plot(line.fractions, line.seconds, "o", ms=4, color=colour)
        right.plot(line.grid, line.seconds_fit, color=colour)
    left.set(
        title="log of the loss: φ = (1, 1 − u); dotted, the paper's (1, (1 − u)²)",
        ylabel="validation error",
    )
    right.set(title="log of the cost: φ = (1, 1 − u)", ylabel="seconds")
    left.legend(frameon=False, fontsize=9)
    ticks = _quarters(problem)
    for ax in (left, right):
        ax.set(xscale="log", yscale="log", xlabel="size as a fraction of the data")
        ax.set_xticks(ticks, [_fraction(t) for t in ticks])
        ax.xaxis.set_minor_locator(NullLocator())
    _plain_ticks(
        left, [t for t in (0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.9) if t >= 0.8 * problem.best]
    )
    return figure


def draw(problem: Problem, runs: Runs, budget: float, folder: Path) -> list[Path]:
    """All figures for which there are runs, as PNG files; their paths."""
    compared = {method: runs[method] for method in COMPARED if method in runs}
    tasks = {method: runs[method] for method in runs if method.startswith("mtbo")}
    named = {"mtbo": "mtbo-1/4"}
    figures = {"surface": heat_maps(problem), "basis": basis_functions(problem)}
    if compared:
        figures["over_time"] = over_time(problem, compared, budget, f"SVM on {problem.name}")
    if len(tasks) > 1:
        figures["mtbo"] = over_time(
            problem, {named.get(m, m): found for m, found in tasks.items()}, budget, "auxiliary sizes of MTBO"
        )
    choosing = {method: runs[method] for method in ("fabolas", "mtbo") if method in runs}
    if choosing:
        figures["sizes"] = sizes_chosen(problem, choosing)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, figure in figures.items():
        paths.append(folder / f"svm_grid_{problem.name}_{name}.png")
        figure.savefig(paths[-1], dpi=130)
    return paths


def _quarters(problem: Problem) -> list[float]:
    """1, 1/4, 1/16 ... as far as the sizes go."""
    smallest = problem.sizes[0] / problem.sizes[-1]
    return [4.0**-i for i in range(20) if 4.0**-i >= 0.99 * smallest]


def _fraction(value: float) -> str:
    return "1" if value == 1 else f"1/{round(1 / value)}"


def _plain_ticks(ax: Axes, ticks: list[float]) -> None:
    """Numbers instead of powers of ten on a logarithmic axis that spans about one."""
    ax.set_yticks(ticks)
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_minor_formatter(FuncFormatter(lambda value, _: ""))
