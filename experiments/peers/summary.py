"""One table over all problems, with bootstrap intervals over seeds and problems."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from experiments.peers.compare import BUDGET, Journal
from experiments.simulate import Run

DISTANCES = (0.01, 0.005)
TIMES = (1.0, 5.0, 20.0, 40.0)
FLOOR = 1e-4  # regrets below this are equal: fewer than one validation example on every problem
N_BOOTSTRAP = 1000


class Results:
    """The runs of tools on problems, complete for `seeds`."""

    def __init__(self, journal: Journal, problems: list[str], tools: list[str], seeds: list[int]) -> None:
        self.problems, self.tools, self.seeds = problems, tools, seeds
        self.runs = [[[journal.runs[p, t, s] for s in seeds] for p in problems] for t in tools]

    def table(self, value: Callable[[Run], float]) -> np.ndarray:
        """(tools, problems, seeds) A number of each run."""
        return np.array([[[value(run) for run in seeds] for seeds in problems] for problems in self.runs])


def complete(journal: Journal, problems: list[str], tools: list[str], seeds: list[int]) -> Results:
    """The results, if every run is there.

    Raises:
        ValueError: If runs are missing.
    """
    missing = [k for p in problems for t in tools for s in seeds if (k := (p, t, s)) not in journal.runs]
    if missing:
        raise ValueError(f"{len(missing)} runs are missing, the first is {missing[0]}; `run` makes them")
    return Results(journal, problems, tools, seeds)


def regret_at(time: float) -> Callable[[Run], float]:
    """The regret at this time in full trainings; before the first answer, 1."""
    return lambda run: min(run.regret_at(time), 1.0)


def ranks(regrets: np.ndarray) -> np.ndarray:
    """(tools, ...) ranks of (tools, ...) regrets, 1 for the best; ties share their mean rank."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(np.maximum(regrets, FLOOR), axis=0))


def bootstrap(table: np.ndarray, statistic: Callable[[np.ndarray], np.ndarray], seed: int = 0) -> np.ndarray:
    """(2, tools) 95 % intervals of a statistic of a table (tools, problems, seeds), problems and seeds resampled."""
    rng = np.random.default_rng(seed)
    _, n_problems, n_seeds = table.shape
    drawn = []
    for _ in range(N_BOOTSTRAP):
        chosen = rng.integers(n_problems, size=n_problems)
        seeds = rng.integers(n_seeds, size=(n_problems, n_seeds))
        drawn.append(
            statistic(np.stack([table[:, p, s] for p, s in zip(chosen, seeds, strict=True)], axis=1))
        )
    return np.quantile(np.array(drawn), [0.025, 0.975], axis=0)


def markdown(results: Results) -> str:
    """The table of all tools."""
    regrets = {time: results.table(regret_at(time)) for time in TIMES}
    mean_rank = np.mean([ranks(table) for table in regrets.values()], axis=0)
    rank_interval = bootstrap(mean_rank, lambda t: t.mean(axis=(1, 2)))
    within = {d: results.table(lambda run, d=d: min(run.stays_within(d), 10 * BUDGET)) for d in DISTANCES}  # type: ignore[misc]
    header = [
        "tool",
        *(f"within {d:g}" for d in DISTANCES),
        *(f"regret at {t:g}" for t in TIMES),
        "mean rank",
    ]
    rows = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    for i in np.argsort(mean_rank.mean(axis=(1, 2))):
        cells = [results.tools[i]]
        cells += [_time_cell(within[d][i]) for d in DISTANCES]
        cells += [_regret_cell(regrets[t], int(i)) for t in TIMES]
        low, high = rank_interval[:, i]
        cells.append(f"{mean_rank[i].mean():.1f} ({low:.1f}, {high:.1f})")
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def _time_cell(times: np.ndarray) -> str:
    """The median over problems and seeds, and how many runs got there."""
    reached = times <= BUDGET * 1.5
    median = float(np.median(times))
    shown = f"{median:.2g}" if median <= BUDGET * 1.5 else "—"
    return f"{shown} ({reached.mean():.0%})"


def _regret_cell(table: np.ndarray, i: int) -> str:
    """The median over seeds, averaged over problems on a log scale, with an interval."""

    def statistic(t: np.ndarray) -> np.ndarray:
        return np.exp(np.log(np.maximum(np.median(t, axis=2), FLOOR)).mean(axis=1))

    low, high = bootstrap(table[i : i + 1], statistic)[:, 0]
    return f"{statistic(table[i : i + 1])[0]:.4f} ({low:.4f}, {high:.4f})"
