"""Figures: mean normalised regret of all tools over time, and the regret on each problem."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from experiments.peers.summary import FLOOR, Results, regret_at

TIMES = np.geomspace(0.05, 40.0, 60)
OURS = {"fabolas": ("#c1272d", 2.8), "fabolas2017": ("#e8833a", 1.4)}
STYLES = ("-", "--", ":", "-.")


def _curves(results: Results) -> np.ndarray:
    """(times, tools, problems, seeds) regrets."""
    return np.stack([results.table(regret_at(t)) for t in TIMES])


def normalised(curves: np.ndarray) -> np.ndarray:
    """Regrets of each problem on a log scale from 0 (the lowest of all tools and times) to 1 (the largest)."""
    logs = np.log(np.maximum(curves, FLOOR))
    low, high = logs.min(axis=(0, 1, 3), keepdims=True), logs.max(axis=(0, 1, 3), keepdims=True)
    return np.asarray((logs - low) / (high - low))


def overall(results: Results, path: Path) -> None:
    """All tools in one figure."""
    mean = normalised(_curves(results)).mean(axis=(2, 3))  # (times, tools)
    figure, axes = plt.subplots(figsize=(8, 4.6), constrained_layout=True)
    _draw(axes, mean, results.tools)
    axes.set(xlabel="time in full trainings", ylabel="mean normalised log regret", xscale="log")
    axes.legend(frameon=False, fontsize=8, ncols=2)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def per_problem(results: Results, path: Path) -> None:
    """The median regret on each problem."""
    median = np.median(np.maximum(_curves(results), FLOOR), axis=3)  # (times, tools, problems)
    columns = 4
    rows = -(-len(results.problems) // columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(4 * columns, 2.8 * rows), constrained_layout=True, sharex=True, squeeze=False
    )
    for axis, name, index in zip(axes.flat, results.problems, range(len(results.problems)), strict=False):
        _draw(axis, median[:, :, index], results.tools)
        axis.set(title=name, xscale="log", yscale="log")
    for axis in axes.flat[len(results.problems) :]:
        axis.axis("off")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=7, frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _draw(axes: plt.Axes, values: np.ndarray, tools: list[str]) -> None:
    """One line a tool, ours on top."""
    others = [tool for tool in tools if tool not in OURS]
    colours = plt.get_cmap("tab10").colors  # type: ignore[attr-defined]
    for i, tool in enumerate(tools):
        if tool in OURS:
            colour, width = OURS[tool]
            axes.plot(TIMES, values[:, i], label=tool, color=colour, linewidth=width, zorder=5)
        else:
            k = others.index(tool)
            axes.plot(
                TIMES,
                values[:, i],
                label=tool,
                color=colours[k % 10],
                linestyle=STYLES[k // 10 + k % 2],
                linewidth=1.2,
            )
    axes.spines[["top", "right"]].set_visible(False)
