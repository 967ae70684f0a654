"""Figures: mean normalised regret of all tools over time, and the regret on each problem."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from experiments.peers.summary import FLOOR, Results

TIMES = np.geomspace(0.1, 40.0, 60)
# Colour, line style and width; one colour a family.
STYLES: dict[str, tuple[str, str, float]] = {
    "fabolas": ("#c1272d", "-", 3.0),
    "fabolas2017": ("#c1272d", ":", 1.6),
    "mtbo": ("#c1272d", "--", 1.6),
    "smac-mf": ("#1f5fa8", "-", 1.6),
    "smac-full": ("#1f5fa8", "--", 1.6),
    "optuna-gp": ("#2a8f4f", "-", 1.6),
    "optuna-tpe": ("#2a8f4f", "--", 1.6),
    "optuna-hyperband": ("#2a8f4f", ":", 1.8),
    "dehb": ("#7b4fa3", "-", 1.6),
    "bohb": ("#7b4fa3", "--", 1.6),
    "botorch-mfmes": ("#d98a00", "-", 1.6),
    "sklearn-halving": ("#8a6d3b", "--", 1.6),
    "hyperband": ("#777777", "-", 1.6),
    "random": ("#777777", ":", 1.8),
}


def _curves(results: Results) -> np.ndarray:
    """(times, tools, problems, seeds) regrets; a missing answer is a typical configuration."""
    return np.stack([results.answered(t) for t in TIMES])


def normalised(curves: np.ndarray, typical: np.ndarray) -> np.ndarray:
    """Regrets (..., problems, seeds) as a share of the regret of a typical configuration, at most 1."""
    return np.asarray(np.minimum(curves / typical[:, None], 1.0))


def overall(results: Results, path: Path) -> None:
    """All tools in one figure, the legend in the order of the lines at the end."""
    mean = normalised(_curves(results), results.typical).mean(axis=(2, 3))  # (times, tools)
    figure, axes = plt.subplots(figsize=(8.4, 4.8), constrained_layout=True)
    _draw(axes, mean, results.tools)
    axes.set(xlabel="time in full trainings", ylabel="mean normalised regret", xscale="log", yscale="log")
    axes.set_xlim(TIMES[0], TIMES[-1])
    axes.set_xticks([0.1, 0.3, 1, 3, 10, 40], ["0.1", "0.3", "1", "3", "10", "40"])
    shown = [tick for tick in (1, 0.5, 0.2, 0.1, 0.05, 0.02) if tick >= 0.8 * mean.min()]
    axes.set_yticks(shown, [f"{tick:g}" for tick in shown])
    axes.minorticks_off()
    handles, labels = axes.get_legend_handles_labels()
    order = np.argsort(-mean[-1])
    figure.legend(
        [handles[i] for i in order],
        [labels[i] for i in order],
        loc="outside right center",
        frameon=False,
        fontsize=9,
        handlelength=2.6,
    )
    figure.savefig(path, dpi=150)
    plt.close(figure)


def per_problem(results: Results, path: Path) -> None:
    """The median regret on each problem."""
    median = np.median(_curves(results), axis=3)  # (times, tools, problems)
    columns = 4
    rows = -(-len(results.problems) // columns)
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=(3.6 * columns, 2.6 * rows),
        constrained_layout=True,
        sharex=True,
        squeeze=False,
    )
    for index, name in enumerate(results.problems):
        axis = axes.flat[index]
        _draw(axis, median[:, :, index], results.tools)
        axis.set(xscale="log", yscale="log")
        axis.set_title(name, fontsize=11)
        axis.set_xticks([0.1, 1, 10, 40], ["0.1", "1", "10", "40"])
        axis.minorticks_off()
        axis.set_ylim(bottom=0.8 * FLOOR)
    for axis in axes.flat[len(results.problems) :]:
        axis.axis("off")
    for axis in axes[-1]:
        axis.set_xlabel("time in full trainings")
    for axis in axes[:, 0]:
        axis.set_ylabel("median regret")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=7, frameon=False, handlelength=2.6)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _draw(axes: Any, values: np.ndarray, tools: list[str]) -> None:
    """One line a tool, `fabolas` on top."""
    for i, tool in enumerate(tools):
        colour, style, width = STYLES[tool]
        axes.plot(
            TIMES,
            values[:, i],
            label=tool,
            color=colour,
            linestyle=style,
            linewidth=width,
            zorder=5 if tool == "fabolas" else 3,
        )
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#dddddd", linewidth=0.6)
