"""Does the stated interval of the answer hold its true loss? Nominal 95 %, after 10, 30 and 100 trials.

    python -m experiments.coverage --seeds 20
    python -m experiments.coverage --problems mnist covtype --seeds 5

Runs of the synthetic families and of both SVM tables, with a fixed effort and a fixed overhead, so that a busy machine
changes nothing. After 10, 30 and 100 trials the answer is loss +- 1.96 std. The truth is the expected loss of its
configuration on all the data. The table shows of how many answers the interval holds it: of all answers, of those
whose loss was predicted, and of those that were measured at the target. The others are preliminary
(docs/decisions/stated-loss.md). The width is the median of std / truth of the predicted ones.

Each finished run is a line of the journal, and a stopped experiment continues where it was. A journal belongs to one
version of the code: delete it after a change.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import fabolas
from experiments import lines
from experiments.simulate import Problem
from experiments.svm_grid.problem import Problem as SvmGrid
from experiments.synthetic import FAMILIES

N_TRIALS = (10, 30, 100)
EFFORT, OVERHEAD = 0.5, 1.0  # seconds of overhead per trial; trainings on all the data take about 100
Z = 1.96  # of a nominal coverage of 95 %
JOURNAL = Path(".cache/coverage.jsonl")

PROBLEMS: dict[str, Callable[[int], Problem]] = {
    **FAMILIES,
    "mnist": lambda seed: SvmGrid.load("mnist", cost_scale=100.0),
    "covtype": lambda seed: SvmGrid.load("covtype", cost_scale=100.0),
}


@dataclass(frozen=True)
class Answer:
    """The answer of a run after so many trials, and the true loss of its configuration at the target."""

    problem: str
    seed: int
    trials: int
    loss: float
    std: float
    truth: float
    verified: bool
    preliminary: bool

    @property
    def is_covered(self) -> bool:
        """Whether the stated interval holds the truth."""
        return abs(self.truth - self.loss) <= Z * self.std


def answers(name: str, seed: int, n_trials: tuple[int, ...] = N_TRIALS) -> list[Answer]:
    """The answers of one run."""
    problem, found = PROBLEMS[name](seed), []
    rng = np.random.default_rng([seed, 2017, 1])  # a stream of its own: a study's are those of [seed, id]
    study = fabolas.Study(problem.space, problem.fidelities, seed=seed, overhead=OVERHEAD, effort=EFFORT)
    with study:
        for n in range(1, max(n_trials) + 1):
            suggestion = study.ask()
            loss, cost = problem(suggestion.config, **suggestion.fidelity, rng=rng)
            study.tell(suggestion, loss, cost=cost)
            best = study.incumbent() if n in n_trials else None
            if best is not None:
                truth = problem.truth(best.config)
                found.append(
                    Answer(name, seed, n, best.loss, best.std, truth, best.verified, best.preliminary)
                )
    return found


def rows(found: Iterable[Answer]) -> list[str]:
    """The lines of the table: one per problem and number of trials, and one per number of trials for all problems."""
    every = list(found)
    groups = [(name, [a for a in every if a.problem == name]) for name in PROBLEMS]
    table = [
        "| problem | trials | runs | covered | predicted | of these covered | verified | of these covered | width |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, of_problem in [*((name, group) for name, group in groups if group), ("all", every)]:
        numbers = sorted({a.trials for a in of_problem})
        table += [_row(name, n, [a for a in of_problem if a.trials == n]) for n in numbers]
    return table


def _row(name: str, n: int, group: list[Answer]) -> str:
    predicted = [a for a in group if not a.preliminary]
    verified = [a for a in group if a.verified]
    width = f"{np.median([a.std / a.truth for a in predicted]):.1%}" if predicted else "-"
    cells = [
        name,
        n,
        len(group),
        _share(group),
        len(predicted),
        _share(predicted),
        len(verified),
        _share(verified),
    ]
    return f"| {' | '.join(str(cell) for cell in cells)} | {width} |"


def _share(group: list[Answer]) -> str:
    return f"{np.mean([a.is_covered for a in group]):.0%}" if group else "-"


def main() -> None:
    """Run what the journal has not, and print the table of all that it has."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--problems", nargs="+", choices=list(PROBLEMS), default=list(PROBLEMS))
    parser.add_argument("--journal", type=Path, default=JOURNAL)
    options = parser.parse_args()
    found: dict[tuple[str, int], list[dict[str, Any]]] = {
        (line["problem"], line["seed"]): line["answers"] for line in lines.read(options.journal)
    }
    for seed in range(options.seeds):
        for name in options.problems:
            if (name, seed) not in found:
                found[name, seed] = [asdict(answer) for answer in answers(name, seed)]
                lines.append(options.journal, {"problem": name, "seed": seed, "answers": found[name, seed]})
    wanted = [
        a
        for (name, seed), run in found.items()
        if name in options.problems and seed < options.seeds
        for a in run
    ]
    print("\n".join(rows(Answer(**answer) for answer in wanted)))


if __name__ == "__main__":
    main()
