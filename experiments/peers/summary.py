"""One table over all problems, with bootstrap intervals over problems and seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from scipy.stats import rankdata

from experiments.paired import MIN_SEEDS
from experiments.peers.compare import BUDGET, Journal
from experiments.peers.problems import TABLES
from experiments.simulate import Run

DISTANCES = (0.01, 0.005)
TIMES = (1.0, 5.0, 20.0, 40.0)
FLOOR = 5e-4  # smaller regrets are equal: about one validation example
N_BOOTSTRAP = 1000

Statistic = Callable[[np.ndarray], np.ndarray]  # (tools, problems, seeds) -> (tools,)


class Results:
    """The runs of tools on problems, complete for `seeds`.

    Args:
        journal: where the runs are.
        problems: their names.
        tools: their names.
        seeds: of the runs.
        typical: problem -> the regret of a typical configuration. It stands for a missing answer.
    """

    def __init__(
        self,
        journal: Journal,
        problems: list[str],
        tools: list[str],
        seeds: list[int],
        typical: Mapping[str, float],
    ) -> None:
        self.problems, self.tools, self.seeds = problems, tools, seeds
        sources = ["tables" if p in TABLES else p.split("/")[0] for p in problems]
        self.sources = np.unique(sources, return_inverse=True)[1]  # (problems,) number of the scenario
        self._runs = [[[journal.runs[p, t, s] for s in seeds] for p in problems] for t in tools]
        # The lowest loss of a surrogate is that of a search. If a run found a lower one, regrets count from there.
        self._lowest = np.array(
            [
                min(
                    float(np.fmin.reduce(run.regret, initial=0.0))
                    for of_tool in self._runs
                    for run in of_tool[i]
                )
                for i in range(len(problems))
            ]
        )
        self.typical = np.array([typical[p] for p in problems]) - self._lowest  # (problems,)

    def regrets(self, time: float) -> np.ndarray:
        """(tools, problems, seeds) Regrets at this time in full trainings; infinite before the first answer."""
        return self._table(lambda run, lowest: run.regret_at(time) - lowest)

    def answered(self, time: float) -> np.ndarray:
        """As `regrets`; a missing answer counts as a typical configuration, a tiny regret as `FLOOR`."""
        regrets = self.regrets(time)
        return np.maximum(np.where(np.isfinite(regrets), regrets, self.typical[:, None]), FLOOR)

    def times_within(self, distance: float) -> np.ndarray:
        """(tools, problems, seeds) When the regret stays within a distance; infinite if not before the end."""
        return self._table(lambda run, lowest: run.until(BUDGET).stays_within(distance + lowest))

    def _table(self, value: Callable[[Run, float], float]) -> np.ndarray:
        """(tools, problems, seeds) A number of each run, given the lowest regret on its problem."""
        return np.array(
            [
                [
                    [value(run, lowest) for run in runs]
                    for runs, lowest in zip(of_tool, self._lowest, strict=True)
                ]
                for of_tool in self._runs
            ]
        )


def complete(
    journal: Journal, problems: list[str], tools: list[str], seeds: list[int], typical: Mapping[str, float]
) -> Results:
    """The results, if every run is there.

    Raises:
        ValueError: If runs are missing.
    """
    missing = [k for p in problems for t in tools for s in seeds if (k := (p, t, s)) not in journal.runs]
    if missing:
        raise ValueError(f"{len(missing)} runs are missing, the first is {missing[0]}; `run` makes them")
    return Results(journal, problems, tools, seeds, typical)


def ranks(regrets: np.ndarray) -> np.ndarray:
    """(tools, ...) ranks of (tools, ...) regrets, 1 for the best; ties share their mean rank."""
    return np.asarray(rankdata(np.maximum(regrets, FLOOR), axis=0))


def mean_ranks(results: Results) -> np.ndarray:
    """(tools, problems, seeds) ranks, averaged over the times. No answer is worse than any answer."""
    return np.asarray(np.mean([ranks(results.regrets(time)) for time in TIMES], axis=0))


def bootstrap(table: np.ndarray, sources: np.ndarray, statistic: Statistic, seed: int = 0) -> np.ndarray:
    """(2, tools) 95 % intervals of a statistic of a table (tools, problems, seeds).

    Resampled are the sources (problems,), then the problems of each, then the seeds: problems of one source are alike.
    """
    rng = np.random.default_rng(seed)
    n_seeds, members = table.shape[2], [np.flatnonzero(sources == s) for s in np.unique(sources)]
    drawn = []
    for _ in range(N_BOOTSTRAP):
        groups = [members[i] for i in rng.integers(len(members), size=len(members))]
        chosen = np.concatenate([rng.choice(group, size=len(group)) for group in groups])
        seeds = rng.integers(n_seeds, size=(len(chosen), n_seeds))
        drawn.append(statistic(table[:, chosen[:, None], seeds]))
    return np.asarray(np.quantile(np.array(drawn), [0.025, 0.975], axis=0, method="nearest"))


def mean(table: np.ndarray) -> np.ndarray:
    """(tools,) over problems and seeds."""
    return np.asarray(table.mean(axis=(1, 2)))


def median(table: np.ndarray) -> np.ndarray:
    """(tools,) over problems and seeds; of two middle ones the larger, because times may be infinite."""
    return np.asarray(np.quantile(table, 0.5, axis=(1, 2), method="higher"))


def geometric(table: np.ndarray) -> np.ndarray:
    """(tools,) The median over seeds, then the geometric mean over problems."""
    return np.asarray(np.exp(np.log(np.median(table, axis=2)).mean(axis=1)))


def markdown(results: Results, *, intervals: bool = True) -> str:
    """The table of all tools, the best mean rank first."""
    rank = mean_ranks(results)
    columns = {f"within {d:g}": (results.times_within(d), median, _time) for d in DISTANCES}
    columns |= {f"regret at {t:g}": (results.answered(t), geometric, _regret) for t in TIMES}
    columns["mean rank"] = (rank, mean, "{:.1f}".format)
    sources = results.sources if intervals else None
    cells = [_column(*column, sources) for column in columns.values()]
    rows = [["tool", *columns], ["---"] * (1 + len(columns))]
    rows += [[results.tools[i], *(column[i] for column in cells)] for i in np.argsort(mean(rank))]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def against(results: Results, reference: str = "fabolas") -> str:
    """Regrets of the tools as multiples of the reference's; below 1 the tool is better."""
    rank = mean_ranks(results)
    index = results.tools.index(reference)
    columns = {}
    for time in TIMES:
        logs = np.log(results.answered(time))
        columns[f"at {time:g}"] = _column(
            logs - logs[index], lambda t: np.exp(mean(t)), "{:.2f}".format, results.sources
        )
    rows = [["tool", *columns], ["---"] * (1 + len(columns))]
    others = [i for i in np.argsort(mean(rank)) if i != index]
    rows += [[results.tools[i], *(column[i] for column in columns.values())] for i in others]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def by_source(results: Results, reference: str = "fabolas") -> str:
    """Regrets of the tools at the last two times as multiples of the reference's, for each source of problems."""
    names = ["tables" if p in TABLES else p.split("/")[0] for p in results.problems]
    index, sources = results.tools.index(reference), list(dict.fromkeys(names))
    rows = [["tool", *(f"{name} at {t:g}" for name in sources for t in TIMES[2:])]]
    rows.append(["---"] * len(rows[0]))
    ratios = {t: np.log(results.answered(t)) for t in TIMES[2:]}
    for i in np.argsort(mean(mean_ranks(results))):
        if i == index:
            continue
        row = [results.tools[i]]
        for name in sources:
            of_source = np.array(names) == name
            row += [f"{np.exp((r[i] - r[index])[of_source].mean()):.1f}" for r in ratios.values()]
        rows.append(row)
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def ahead(results: Results, reference: str = "fabolas") -> str:
    """For each problem and time, the tools whose median regret is lower than the reference's.

    A star: also beyond chance, because the 95 % interval of the median difference over seeds does not hold zero. With
    fewer than `MIN_SEEDS` seeds there is no such interval, and no star.
    """
    index, rng = results.tools.index(reference), np.random.default_rng(0)
    drawn = rng.integers(len(results.seeds), size=(N_BOOTSTRAP, len(results.seeds)))
    rows = [["problem", "full trainings", reference, "ahead of it"], ["---"] * 4]
    for i, problem in enumerate(results.problems):
        for time in TIMES:
            regrets = results.answered(time)[:, i]  # (tools, seeds)
            medians = np.median(regrets, axis=1)
            better = [j for j in np.argsort(medians) if medians[index] - medians[j] > FLOOR]
            cells = []
            for j in better:
                gains = np.median((regrets[index] - regrets[j])[drawn], axis=1)
                known = len(results.seeds) >= MIN_SEEDS
                star = "\\*" if known and np.quantile(gains, 0.025) > 0.0 else ""
                cells.append(f"{results.tools[j]} {_regret(medians[j])}{star}")
            if cells:
                rows.append([problem, f"{time:g}", _regret(medians[index]), ", ".join(cells)])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def answered_share(results: Results) -> str:
    """The share of runs in which each tool has an answer at the first two times."""
    rows = [["tool", *(f"at {t:g}" for t in TIMES[:2])], ["---"] * 3]
    shares = [np.isfinite(results.regrets(t)).mean(axis=(1, 2)) for t in TIMES[:2]]
    rows += [[tool, *(f"{share[i]:.0%}" for share in shares)] for i, tool in enumerate(results.tools)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _column(
    table: np.ndarray, statistic: Statistic, text: Callable[[float], str], sources: np.ndarray | None
) -> list[str]:
    """One cell a tool: the number, and its interval if the sources of the problems are given."""
    values = [text(v) for v in statistic(table)]
    if sources is None:
        return values
    low, high = bootstrap(table, sources, statistic)
    return [f"{v} ({text(a)}, {text(b)})" for v, a, b in zip(values, low, high, strict=True)]


def _time(value: float) -> str:
    return f"{value:.2g}" if np.isfinite(value) else f"> {BUDGET:g}"


def _regret(value: float) -> str:
    return f"{value:.4f}"
