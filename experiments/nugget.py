"""What repeats at the target are worth: answers with the fixed and with the learnt nugget fraction, their intervals.

    python -m experiments.nugget --seeds 10 --chance 0.05 0.2
    python -m experiments.nugget --seeds 10 --chance 0 --problems mnist covtype

Each search is that of the default, with stochastic training (`synthetic.Problem.chance`): a second training of a
configuration has another loss. Before 5, 10 and 20 full trainings the best configurations measured at the target are
trained again, each once. Their time counts: the search is stopped earlier by so many full trainings. The search itself
does not see the repeats, so all answers are compared on one sequence of trials, with little noise. The factor is that
of the regret relative to the answer without repeats at the same time, with the fraction fixed at that of the
specification. Coverage is that of loss +- 1.96 std of the answers that were measured at the target.

Each finished search is a line of the journal. A journal belongs to one version of the code: delete it after a change.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import fabolas
from experiments import lines
from experiments.families import FAMILIES
from experiments.paired import factor_cell
from experiments.simulate import Problem
from experiments.synthetic import Problem as Synthetic
from fabolas.model_spec import NUGGET_FRACTION
from fabolas.strategies.fabolas import Fabolas
from fabolas.strategies.incumbent import recommend
from fabolas.trials import History

CHECKPOINTS = (5.0, 10.0, 20.0)  # in full trainings
N_REPEATS = (0, 1, 2, 4)
OVERHEAD, MAX_TRIALS = 0.1, 150
Z = 1.96  # of a nominal coverage of 95 %
SMALLEST_REGRET = 1e-4  # below it a regret is luck
PROBLEMS = ("svm_like", "rugged6", "misleading", "boosting", "mixed")
JOURNAL = Path(".cache/nugget.jsonl")
FRACTIONS = ("fixed", "learnt")


def search(name: str, chance: float, seed: int, effort: float) -> list[dict[str, Any]]:
    """The answers of one search: one row per checkpoint, number of repeats, and fraction."""
    problem = FAMILIES[name].make(seed)
    if isinstance(problem, Synthetic):
        problem = problem.stochastic(chance)
    rng = np.random.default_rng([seed, 2017, 1])  # a stream of its own: a study's are those of [seed, id]
    waiting = [(time - n, time, n) for time in CHECKPOINTS for n in N_REPEATS]
    found, spent, end = [], 0.0, CHECKPOINTS[-1] * problem.full_cost
    space = fabolas.Space(problem.space, problem.fidelities)
    strategy = Fabolas(space, effort=effort)
    with fabolas.Study(space, strategy=strategy, seed=seed, overhead=OVERHEAD) as study:
        while waiting and len(study.trials) < MAX_TRIALS:
            suggestion = study.ask(remaining=max(end - spent, OVERHEAD))
            loss, cost = problem(suggestion.config, **suggestion.fidelity, rng=rng)
            study.tell(suggestion, loss, cost=cost)
            spent += cost + OVERHEAD
            due = [w for w in waiting if spent >= w[0] * problem.full_cost]
            waiting = [w for w in waiting if w not in due]
            for _, time, n in due:
                repeats = np.random.default_rng([seed, 2017, 2, n])
                found += [
                    {"time": time, "repeats": n, **row}
                    for row in answers(problem, strategy, study.history, n, repeats)
                ]
    return found


def answers(
    problem: Problem, strategy: Fabolas, history: History, n: int, rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    """The answers after the n best configurations measured at the target were trained there again."""
    space = strategy.space
    there = np.flatnonzero(space.is_at_target(history.points) & history.complete)
    if len(there) < n:
        return
    repeated = list(history.trials)
    for i in there[np.argsort(history.losses[there])[:n]]:
        trial = history.trials[i]
        loss, cost = problem(trial.config, **trial.suggestion.fidelity, rng=rng)
        again = replace(trial.suggestion, id=len(repeated))
        repeated.append(replace(trial, suggestion=again, loss=loss, cost=cost))
    with_repeats = History(tuple(repeated))
    learnt = strategy.surrogate(with_repeats).surrogate
    for name, surrogate in zip(
        FRACTIONS, (replace(learnt, nugget_fraction=NUGGET_FRACTION), learnt), strict=True
    ):
        best = recommend(space, surrogate, with_repeats)
        if best is not None:
            truth = problem.truth(best.config)
            yield {
                "answer": name,
                "fraction": surrogate.nugget_fraction,
                "regret": max(truth - problem.best, SMALLEST_REGRET),
                "covered": bool(abs(truth - best.loss) <= Z * best.std) if best.verified else None,
                "width": best.std / truth,
            }


def table(runs: list[dict[str, Any]]) -> Iterator[str]:
    """One row per chance and number of repeats: learnt fraction, factors of regret, coverage."""
    yield "| chance | repeats | fraction | fixed | learnt | learnt / fixed | covered, fixed | covered, learnt |"
    yield "|---" * 8 + "|"
    for chance in sorted({run["chance"] for run in runs}):
        of_chance = [run for run in runs if run["chance"] == chance]
        for n in N_REPEATS:
            rows = [row for run in of_chance for row in run["rows"] if row["repeats"] == n]
            fractions = [row["fraction"] for row in rows if row["answer"] == "learnt"]
            pairs = [((n, name), (0, "fixed")) for name in FRACTIONS] + [((n, "learnt"), (n, "fixed"))]
            factors = [factor_cell(log_ratios(of_chance, *p), np.random.default_rng(0)) for p in pairs]
            quartiles = " ".join(f"{q:.2f}" for q in np.quantile(fractions, [0.25, 0.5, 0.75]))
            cells = [
                f"{chance:g}",
                f"{n}",
                quartiles,
                *factors,
                *(_coverage(rows, name) for name in FRACTIONS),
            ]
            yield "| " + " | ".join(cells) + " |"


def _coverage(rows: list[dict[str, Any]], answer: str) -> str:
    known = [r for r in rows if r["answer"] == answer and r["covered"] is not None]
    if not known:
        return "-"
    return f"{np.mean([r['covered'] for r in known]):.0%} of {len(known)}, {np.median([r['width'] for r in known]):.1%}"


Answer = tuple[int, str]  # number of repeats, and which fraction


def log_ratios(runs: list[dict[str, Any]], answer: Answer, base: Answer) -> list[np.ndarray]:
    """For each problem (seeds,): log of the regret of an answer over that of another one at the same times."""
    ratios: dict[str, list[float]] = {}
    for run in runs:
        regrets = {(r["time"], r["repeats"], r["answer"]): r["regret"] for r in run["rows"]}
        differences = [
            np.log(regrets[time, *answer] / regrets[time, *base])
            for time in CHECKPOINTS
            if (time, *answer) in regrets and (time, *base) in regrets
        ]
        if differences:
            ratios.setdefault(run["problem"], []).append(float(np.mean(differences)))
    return [np.array(r) for r in ratios.values()]


def main() -> None:
    """Run what the journal has not, and print the table of all that it has."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument(
        "--chance", type=float, nargs="+", default=[0.05, 0.2], help="of log-losses at the target"
    )
    parser.add_argument("--problems", nargs="+", choices=list(FAMILIES), default=list(PROBLEMS))
    parser.add_argument("--effort", type=float, default=0.0)
    parser.add_argument("--journal", type=Path, default=JOURNAL)
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    wanted = [(s, c, p, options.effort) for s in seeds for c in options.chance for p in options.problems]
    done = {(r["seed"], r["chance"], r["problem"], r["effort"]): r for r in lines.read(options.journal)}
    for seed, chance, name, effort in wanted:
        if (seed, chance, name, effort) not in done:
            row = {"seed": seed, "chance": chance, "problem": name, "effort": effort}
            row["rows"] = search(name, chance, seed, effort)
            lines.append(options.journal, row)
            done[seed, chance, name, effort] = row
    print("\n".join(table([done[key] for key in wanted])))


if __name__ == "__main__":
    main()
