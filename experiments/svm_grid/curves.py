"""What the figures show, as numbers: surfaces, quantiles over time, sizes chosen, fitted basis functions."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from experiments.simulate import Run
from experiments.svm_grid.problem import Array, Problem
from fabolas.gp.kernels import Basis, paper_loss_basis, power_law_basis


def surface(problem: Problem, fraction: float) -> tuple[float, Array]:
    """The tabulated fraction nearest to this one, and the mean validation error (a, b) there."""
    fractions = problem.sizes / problem.sizes[-1]
    index = int(np.argmin(np.abs(np.log(fractions / fraction))))
    values = problem.valid[index, : problem.repetitions[index]].mean(axis=0)
    return float(fractions[index]), np.asarray(values)


@dataclass(frozen=True)
class Band:
    """Quartiles over seeds along an axis; NaN where they are not defined yet."""

    at: Array  # (n,)
    lower: Array  # (n,)
    middle: Array  # (n,)
    upper: Array  # (n,)


def over_time(
    runs: list[Run], unit: float, end: float, of: Literal["test", "regret"] = "test", points: int = 300
) -> Band:
    """Test error or regret of the incumbent: median and quartiles at times on a log grid up to `end`, in units.

    A run without a recommendation is worse than any other. After a run's last trial its last incumbent stays, and
    the curve ends where half of the runs have ended.
    """
    begin = min(float(run.time[0]) for run in runs) / unit
    at = np.geomspace(begin, max(end, 1.001 * begin), points)
    values = np.full((len(runs), points), np.inf)
    for i, run in enumerate(runs):
        last = np.searchsorted(run.time, at * unit, side="right") - 1
        known = np.where(last >= 0, getattr(run, of)[np.maximum(last, 0)], np.nan)
        values[i] = np.where(np.isnan(known), np.inf, known)
    # Quartiles that are values of runs: between a number and infinity there is nothing to interpolate.
    lower, upper = np.quantile(values, [0.25, 0.75], axis=0, method="inverted_cdf")
    middle = np.median(values, axis=0)
    ended = at * unit > 1.01 * np.median([run.time[-1] for run in runs])
    middle, lower = (np.where(np.isfinite(curve) & ~ended, curve, np.nan) for curve in (middle, lower))
    return Band(at, lower, middle, np.where(np.isfinite(middle), upper, np.nan))


def sizes_chosen(runs: list[Run], groups: int = 60) -> Band:
    """Mean of the size at each trial, and a quarter of its deviation to both sides, as the paper shows it.

    Later trials are in groups, each a constant factor beyond the one before; the deviation is that of all trials of
    a group. Only as far as half of the runs come.
    """
    lengths = sorted(len(run.size) for run in runs)
    end = lengths[len(lengths) // 2] + 1
    edges = np.unique(np.geomspace(1, end, groups + 1).round().astype(int))
    at, mean, deviation = (np.empty(len(edges) - 1) for _ in range(3))
    for i, (first, beyond) in enumerate(pairwise(edges)):
        sizes = np.concatenate([run.size[first - 1 : beyond - 1] for run in runs])
        at[i], mean[i], deviation[i] = np.sqrt(first * (beyond - 1.0)), sizes.mean(), sizes.std()
    return Band(at, mean - deviation / 4, mean, mean + deviation / 4)


@dataclass(frozen=True)
class Scaling:
    """One configuration's loss and cost over the sizes, measured and fitted."""

    label: str
    fractions: Array  # (S,)
    loss: Array  # (S,) mean of the repetitions
    loss_deviation: Array  # (S,) 0 where there is one
    seconds: Array  # (S,)
    grid: Array  # (m,) fractions
    power_fit: Array  # (m,) our basis, fitted to the logarithm of the loss
    paper_fit: Array  # (m,) the paper's, likewise
    seconds_fit: Array  # (m,)


def scaling(problem: Problem, cell: tuple[int, int]) -> Scaling:
    """The basis functions fitted by least squares to all sizes of one cell of the table, as in supplement B."""
    c, gamma = cell
    counts = problem.repetitions
    losses = [problem.valid[s, : counts[s], c, gamma] for s in range(len(counts))]
    log_seconds = [problem.log_seconds[s, : counts[s], c, gamma].mean() for s in range(len(counts))]
    loss = np.array([values.mean() for values in losses])
    u = np.log(problem.sizes / problem.sizes[0]) / np.log(problem.sizes[-1] / problem.sizes[0])
    at = np.linspace(0.0, 1.0, 100)
    smallest = problem.sizes[0] / problem.sizes[-1]
    log_loss = np.log(np.maximum(loss, 1e-4))  # an error of zero has no logarithm
    return Scaling(
        label=f"log C = {problem.log_c[c]:.1f}, log γ = {problem.log_gamma[gamma]:.1f}",
        fractions=problem.sizes / problem.sizes[-1],
        loss=loss,
        loss_deviation=np.array([values.std() for values in losses]),
        seconds=np.exp(log_seconds),
        grid=smallest ** (1.0 - at),
        power_fit=np.exp(least_squares(power_law_basis, u, log_loss, at, smallest)),
        paper_fit=np.exp(least_squares(paper_loss_basis, u, log_loss, at, smallest)),
        seconds_fit=np.exp(least_squares(power_law_basis, u, np.array(log_seconds), at, smallest)),
    )


def least_squares(basis: Basis, u: Array, y: Array, at: Array, smallest: float) -> Array:
    """The combination of the basis functions nearest to y (n,) at u (n,), evaluated at others (m,).

    The relative size of u is smallest^(1 - u).
    """
    weights, *_ = np.linalg.lstsq(basis(u, smallest ** (1.0 - u)), y, rcond=None)
    return np.asarray(basis(at, smallest ** (1.0 - at)) @ weights)


def typical_cells(problem: Problem, count: int = 5) -> list[tuple[int, int]]:
    """Cells of the table from the best at the target to one half way up the ranking."""
    order = np.argsort(surface(problem, 1.0)[1], axis=None, kind="stable")
    ranks = np.linspace(0.0, 0.5, count) * (len(order) - 1)
    shape = (len(problem.log_c), len(problem.log_gamma))
    found = [np.unravel_index(int(order[round(rank)]), shape) for rank in ranks]
    return [(int(c), int(gamma)) for c, gamma in found]
