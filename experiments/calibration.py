"""Do stated intervals cover the truth? Losses at the target, the best configurations, answers of searches, and costs.

    python -m experiments.calibration --seeds 20
    python -m experiments.calibration --seeds 12 --only cost --yahpo DIRECTORY

Losses: 30 trials in two dimensions at sizes up to 1/9 of the target, of curves of three kinds (a power law; curves
that cross, so that the ranking reverses; chance on small subsets, then a fall). Predicted are 200 new configurations
and the 20 best of 2,000 at the target: the share of them within the 90 % interval.

Two fidelities: the same with rows and epochs, a power law in each, up to u = 0.6; also the mean error in predicted
deviations, which should be zero.

Answers: searches with a fixed effort and a simulated clock. At thirds of the budget, the share of incumbents whose true
loss is within 1.645 of their standard deviations. `--yahpo` adds tunings of real learners, lcbench (epochs) included.

Costs: 24 trials at sizes up to u = 0.375 on a range of 256. Predicted are 40 configurations at the target: how often
the cost exceeds `cost_limit`, which should be one time in forty, and the median ratios of the limit and of the
predicted cost to the truth. `--yahpo` adds the costs of real learners (`experiments.yahpo`), whose range is 20 to 33.

In brackets: 95 % bootstrap intervals of the mean over seeds. The GPs have 16 hyperparameter samples after 40 MCMC
steps; those of a search have 4 to 8 after 3 to 12 steps, but continue from one fit to the next.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtri

from experiments.families import FAMILIES, YAHPO_SCENARIOS, YAHPO_TASKS, Family, yahpo_problem
from experiments.settings import EFFORT
from experiments.simulate import Problem as SimulatedProblem
from experiments.svm_grid.problem import Problem as SvmGrid
from fabolas import Float, Space, Study, surrogate
from fabolas.model_spec import Columns, ModelSpec, SurrogatePrior
from fabolas.strategies.models import relative_sizes
from fabolas.surrogate import Data

Curve = Callable[[np.ndarray, np.ndarray], np.ndarray]  # x (n, d), s (n,) -> loss (n,)


def _bumps(rng: np.random.Generator, d: int, n: int = 6) -> Callable[[np.ndarray], np.ndarray]:
    """A smooth random function of x with values of order one."""
    centres, weights = rng.random((n, d)), rng.normal(size=n)
    return lambda x: np.exp(-np.sum((x[:, None] - centres) ** 2, axis=2) / (0.18 * d)) @ weights


def power_law(rng: np.random.Generator, d: int) -> Curve:
    """a(x) + b(x) s^-c(x): the ranking of small subsets is mostly that of the target."""
    a, b, c = (_bumps(rng, d) for _ in range(3))
    return lambda x, s: (
        0.1 * np.exp(0.7 * a(x)) + 0.05 * np.exp(0.5 * b(x)) * s ** -(0.4 * np.exp(0.3 * c(x)))
    )


def crossing(rng: np.random.Generator, d: int) -> Curve:
    """Large models are worse on few rows and better on many: curves cross between 1/9 and all the rows."""
    a, b = _bumps(rng, d), _bumps(rng, d)
    exponent = rng.uniform(0.5, 0.9)
    return lambda x, s: 0.15 * np.exp(0.5 * a(x) - 0.8 * b(x) * (s**exponent - 0.45))


def plateau(rng: np.random.Generator, d: int) -> Curve:
    """Chance (0.9) on few rows, then a fall whose start depends on x."""
    a, start = _bumps(rng, d), _bumps(rng, d)
    floor = rng.uniform(0.03, 0.1)

    def curve(x: np.ndarray, s: np.ndarray) -> np.ndarray:
        low = floor * np.exp(0.6 * a(x))
        falling = 1.0 / (1.0 + (s / (0.08 * np.exp(0.8 * start(x)))) ** 1.5)
        loss: np.ndarray = low + (0.9 - low) * falling
        return loss

    return curve


CURVES = {"power law": power_law, "crossing": crossing, "plateau": plateau}


def space(d: int) -> Space:
    """d hyperparameters and sizes from 1/256 of the target."""
    return Space({f"x{i}": Float(0.0, 1.0) for i in range(d)}, {"size": (64, 16384)})


def fitted(over: Space, data: Data, spec: ModelSpec, seed: int) -> surrogate.Surrogate:
    """The surrogate after a long MCMC run."""
    columns = Columns(over.n_choices, over.n_fidelities, relative_sizes(over))
    return surrogate.fit(SurrogatePrior(spec, columns), data, None, 40, 16, np.random.default_rng(seed))[0]


def loss_coverage(kind: str, d: int, seed: int, spec: ModelSpec, n: int = 30) -> tuple[float, float, float]:
    """The share of the 90 % intervals that hold the truth: new and best configurations; mean width of the former."""
    rng = np.random.default_rng([seed, d])
    curve, over = CURVES[kind](rng, d), space(d)
    u = np.log(256.0 * np.exp(rng.uniform(np.log(1 / 256), np.log(1 / 9), n))) / np.log(256.0)
    points = over.snap(np.column_stack([over.sobol(n, rng), u]))
    s = np.exp(over.log_fractions(points)[:, 0])
    losses = curve(points[:, :d], s) * np.exp(0.02 * rng.normal(size=n))
    models = fitted(over, Data(points, losses, s, np.zeros(n, dtype=bool)), spec, seed)
    x = rng.random((2000, d))
    truth = curve(x, np.ones(2000))
    chosen = np.append(np.arange(200), 200 + np.argsort(truth[200:])[:20])
    mean, variance = models.predict_stated_loss(np.column_stack([x[chosen], np.ones(220)]))
    z = (models.transform.forward(truth[chosen]) - mean) / np.sqrt(variance)
    inside = np.abs(z) < ndtri(0.95)
    return float(inside[:200].mean()), float(inside[200:].mean()), float(np.sqrt(variance[:200]).mean())


def two_fidelity_coverage(seed: int, spec: ModelSpec, d: int = 2, n: int = 30) -> tuple[float, float, float]:
    """The shares as above for rows and epochs, and the mean error of new configurations in predicted deviations."""
    rng = np.random.default_rng([seed, d, 2])
    a, b, c = (_bumps(rng, d) for _ in range(3))
    over = Space({f"x{i}": Float(0.0, 1.0) for i in range(d)}, {"rows": (64, 16384), "epochs": (1, 64)})

    def curve(x: np.ndarray, s: np.ndarray) -> np.ndarray:
        rows, epochs = (0.05 * np.exp(0.5 * g(x)) * s[:, j] ** -0.4 for j, g in enumerate((b, c)))
        loss: np.ndarray = 0.05 * np.exp(0.7 * a(x)) + rows + epochs
        return loss

    points = over.snap(np.column_stack([over.sobol(n, rng), 0.6 * rng.random((n, 2))]))
    s = np.exp(over.log_fractions(points))
    losses = curve(points[:, :d], s) * np.exp(0.02 * rng.normal(size=n))
    models = fitted(over, Data(points, losses, s.prod(axis=1), np.zeros(n, dtype=bool)), spec, seed)
    x = rng.random((2000, d))
    truth = curve(x, np.ones((2000, 2)))
    chosen = np.append(np.arange(200), 200 + np.argsort(truth[200:])[:20])
    mean, variance = models.predict_stated_loss(np.column_stack([x[chosen], np.ones((220, 2))]))
    z = (models.transform.forward(truth[chosen]) - mean) / np.sqrt(variance)
    inside = np.abs(z) < ndtri(0.95)
    return float(inside[:200].mean()), float(inside[200:].mean()), float(z[:200].mean())


# The searches: their problems, and their budgets in full trainings.
ANSWERS: dict[str, Family] = {
    name: Family(FAMILIES[name].make, budget)
    for name, budget in {"misleading": 10.0, "boosting": 10.0, "rugged6": 2.0, "mixed": 4.0}.items()
}


def yahpo_answers(directory: Path) -> dict[str, Family]:
    """Searches on the learners of YAHPO Gym; each seed takes one of the first tasks."""

    def maker(scenario: str) -> Callable[[int], SimulatedProblem]:
        return lambda seed: yahpo_problem(str(directory), scenario, seed % YAHPO_TASKS)

    return {scenario: Family(maker(scenario), 10.0) for scenario in (*YAHPO_SCENARIOS, "lcbench")}


def answer_coverage(search: Family, seed: int, spec: ModelSpec) -> float:
    """The share of the answers at thirds of a search's budget whose interval holds their true loss."""
    problem, noise, now = search.make(seed), np.random.default_rng([seed, 3]), 0.0
    budget, inside = search.budget * problem.full_cost, []
    with Study(
        problem.space, problem.fidelities, seed=seed, overhead=0.1, effort=EFFORT, model=spec
    ) as study:
        while now < budget and len(study.trials) < 80:
            suggestion = study.ask(remaining=budget - study.spent)
            loss, cost = problem(suggestion.config, **suggestion.fidelity, rng=noise)
            study.tell(suggestion, loss, cost=cost)
            before, now = now, now + cost + suggestion.overhead
            if int(3.0 * before / budget) < int(3.0 * now / budget) and (answer := study.incumbent()):
                error = problem.truth(answer.config) - answer.loss
                inside.append(abs(error) < float(ndtri(0.95)) * answer.std)
    return float(np.mean(inside)) if inside else np.nan


@dataclass(frozen=True)
class CostProblem:
    """Costs of configurations over sizes."""

    over: Space
    seconds: Callable[[np.ndarray, np.random.Generator], np.ndarray]  # points (n, D), rng -> (n,)


def polynomial_cost(d: int, seed: int, exponent: float = 2.0, fixed: float = 0.0) -> CostProblem:
    """(fixed + s^exponent) times a smooth function of x, with 3 % noise."""
    rng = np.random.default_rng([seed, d, 7])
    over, factor = space(d), _bumps(rng, d)

    def seconds(points: np.ndarray, noise: np.random.Generator) -> np.ndarray:
        s = np.exp(over.log_fractions(points)[:, 0])
        cost: np.ndarray = (fixed + s**exponent) * np.exp(factor(points[:, :d]))
        return cost * np.exp(0.03 * noise.normal(size=len(points)))

    return CostProblem(over, seconds)


def measured_cost(problem: Any) -> CostProblem:
    """The seconds of a table or of a surrogate."""
    over = Space(problem.space, problem.fidelities)

    def seconds(points: np.ndarray, noise: np.random.Generator) -> np.ndarray:
        decoded = (over.decode(point) for point in points)
        return np.array([problem(config, **fidelity, rng=noise)[1] for config, fidelity in decoded])

    return CostProblem(over, seconds)


COSTS: dict[str, Callable[[int], CostProblem]] = {
    "n^2, d = 2": lambda seed: polynomial_cost(2, seed),
    "n^2, d = 6": lambda seed: polynomial_cost(6, seed),
    "n, d = 2": lambda seed: polynomial_cost(2, seed, 1.0),
    "0.05 + n^2, d = 2": lambda seed: polynomial_cost(2, seed, 2.0, 0.05),
    "mnist": lambda seed: measured_cost(SvmGrid.load("mnist")),
    "covtype": lambda seed: measured_cost(SvmGrid.load("covtype")),
}


def yahpo_costs(directory: Path) -> dict[str, Callable[[int], CostProblem]]:
    """The learners of YAHPO Gym; each seed takes one of the first tasks."""

    def maker(scenario: str) -> Callable[[int], CostProblem]:
        return lambda seed: measured_cost(yahpo_problem(str(directory), scenario, seed % YAHPO_TASKS))

    return {scenario: maker(scenario) for scenario in YAHPO_SCENARIOS}


def cost_coverage(problem: CostProblem, seed: int, spec: ModelSpec, n: int = 24) -> list[float]:
    """How often costs at the target exceed `cost_limit`, and median ratios of limit and prediction to the cost."""
    over, rng = problem.over, np.random.default_rng([seed, 1])
    u = 0.375 * rng.random(n) ** 1.5
    u[:3] = 0.375
    points = over.snap(np.column_stack([over.sobol(n, rng), u]))
    costs = problem.seconds(points, rng)
    models = fitted(over, Data(points, rng.random(n), costs, np.zeros(n, dtype=bool)), spec, seed)
    target = over.snap(np.column_stack([over.sobol(40, rng), np.ones(40)]))
    limit, truth = models.cost_limit(target), problem.seconds(target, rng)
    predicted = models.predict_cost(target)
    return [
        float(np.mean(truth > limit)),
        float(np.median(limit / truth)),
        float(np.median(predicted / truth)),
    ]


def with_interval(values: np.ndarray, form: str = ".2f") -> str:
    """The mean over seeds and its 95 % bootstrap interval."""
    known = values[np.isfinite(values)]
    draws = known[np.random.default_rng(0).integers(len(known), size=(4000, len(known)))].mean(axis=1)
    low, high = np.quantile(draws, [0.025, 0.975])
    return f"{known.mean():{form}} ({low:{form}}, {high:{form}})"


def print_losses(seeds: range, spec: ModelSpec) -> None:
    """The table of losses, one fidelity and two."""
    print("| curve | d | new configurations | the best | mean deviation |\n|---|---|---|---|---|")
    for kind in CURVES:
        for d in (2, 6):
            every, best, width = np.transpose([loss_coverage(kind, d, seed, spec) for seed in seeds])
            row = f"| {kind} | {d} | {with_interval(every)} | {with_interval(best)} | {width.mean():.2f} |"
            print(row, flush=True)
    every, best, bias = np.transpose([two_fidelity_coverage(seed, spec) for seed in seeds])
    print("\n| fidelities | d | new configurations | the best | mean error |\n|---|---|---|---|---|")
    cells = (with_interval(every), with_interval(best), with_interval(bias, "+.2f"))
    print(f"| rows and epochs | 2 | {' | '.join(cells)} |", flush=True)


def print_answers(seeds: range, spec: ModelSpec) -> None:
    """The table of answers."""
    print("\n| search | answers within their interval |\n|---|---|")
    for name, search in ANSWERS.items():
        shares = np.array([answer_coverage(search, seed, spec) for seed in seeds])
        print(f"| {name} | {with_interval(shares)} |", flush=True)


def print_costs(seeds: range, spec: ModelSpec) -> None:
    """The table of costs."""
    print(
        "\n| cost | exceeds the limit | median limit / truth | median predicted / truth |\n|---|---|---|---|"
    )
    for name, problem in COSTS.items():
        rows = np.array([cost_coverage(problem(seed), seed, spec) for seed in seeds])
        limit, predicted = np.median(rows[:, 1:], axis=0)
        exceeded = with_interval(rows[:, 0], ".0%")
        print(f"| {name} | {exceeded} | {limit:.2f} | {predicted:.2f} |", flush=True)


TABLES = {"loss": print_losses, "answer": print_answers, "cost": print_costs}


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--only", choices=TABLES)
    parser.add_argument(
        "--yahpo", type=Path, help="directory of YAHPO Gym's data: adds costs and searches of real learners"
    )
    arguments = parser.parse_args()
    if arguments.yahpo is not None:
        COSTS.update(yahpo_costs(arguments.yahpo))
        ANSWERS.update(yahpo_answers(arguments.yahpo))
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    for name, show in TABLES.items():
        if arguments.only in (None, name):
            show(seeds, ModelSpec())


if __name__ == "__main__":
    main()
