"""Which settings are best: variants of FABOLAS on problems of several kinds, several seeds, one table.

    python -m experiments.settings run --groups information warp --seeds 10 --processes 2
    python -m experiments.settings table --groups information warp
    python -m experiments.settings markdown

The problems are both SVM tables with their costs times 100 (trainings of minutes), and six families with a known
truth: an SVM-like surface, a rugged one in six dimensions, a smooth one in ten, one where small subsets mislead,
one where they mislead a little and cost much, and one with categories where they are noisy. Each finished run is a
line of a journal, so that a killed comparison goes on where it was, and the default, which every group has, runs
once. Thinking counts for `--overhead` seconds a trial and its effort is fixed, so that a busy machine changes
nothing.

Runs are compared at equal times: a checkpoint that some run of the group did not reach, since it ended at
`--max-trials`, is left out. `markdown` also says by which factor a variant's regret is that of the first one: the
geometric mean over problems, seeds and checkpoints, and a 95 % interval from resampling the seeds.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import inspect
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from experiments import lines, synthetic
from experiments.simulate import Problem, simulate
from experiments.svm_grid.problem import Problem as SvmGrid
from fabolas import design, surrogate
from fabolas.effort import Effort
from fabolas.gp.kernels import from_the_smallest, from_the_target
from fabolas.gp.priors import Normal
from fabolas.gp.process import Model
from fabolas.history import Suggestion
from fabolas.strategies.decide import Position
from fabolas.strategies.fabolas import Fabolas
from fabolas.surrogate import Spec

Options = dict[str, Any]

# A question: its variants by name, each the options that make it. An option with a dot is a constant of the
# method that users do not see: a field of every effort, or of the initial design.
GROUPS: dict[str, dict[str, Options]] = {
    "default": {"default": {}},
    "information": {"gain": {"information": "gain"}, "paper": {"information": "paper"}},
    "warp": {w: {"warp": w} for w in ("log", "root", "none", "excess")},
    "curve": {"power": {"curve": "power"}, "paper": {"curve": "paper"}},
    "drift": {
        "from the smallest size": {"drift": True},
        "another near the target": {"surrogate.walk": "two"},
        "from the target": {"surrogate.walk": "from the target"},
        "equation 6": {"drift": False},
    },
    "spread": {f"{m:g}": {"surrogate.spread": m} for m in (-1.0, 0.0, 1.0)},
    "noise": {"by size": {"noise_by_fidelity": True}, "one noise": {"noise_by_fidelity": False}},
    "lengths": {"scaled": {"lengths": "scaled"}, "uniform": {"lengths": "uniform"}},
    "checks": {
        **{f"{c:g}": {"checks": c} for c in (0.5, 0.0, 0.25, 1.0)},
        # A trial there for information puts off the next check:
        "1, all at the target": {"checks": 1.0, "checks.any": True},
    },
    "incumbent": {  # what a check improves on, and what is believed of a measurement at the target
        "measured": {},
        "measured, as the models say": {"surrogate.own": 0.0},
        "predicted": {"checks.on": "predicted"},
        "predicted, as the models say": {"checks.on": "predicted", "surrogate.own": 0.0},
    },
    "grain": {f"{g:g}": {"grain": g} for g in (0.02, 0.0, 0.01, 0.05)},
    "representers": {r: {"representers": r} for r in ("thompson", "improvement")},
    "pmin": {"sampling": {"pmin": "sampling"}, "ep": {"pmin": "ep"}},
    "climbing": {"to what is predicted": {}, "no": {"effort.climbs": 0}},
    "maximizer": {
        **{m: {"maximizer": m} for m in ("candidates", "direct", "cma")},
        "candidates, refined by 100": {"effort.refined": 100},  # about as many as the others evaluate
    },
    "design": {"k = 10": {}, "k = 5": {"initial": 5}, "k = 20": {"initial": 20}},
    "smallest": {"from 1/256": {}, "from 1/64": {"design.SMALLEST": 1 / 64}},
    "samples": {"default": {}, "K = 2": {"effort.K": 2}, "K = 16": {"effort.K": 16}},
    "walking": {
        "default": {},
        "at every trial": {"effort.every": 1},
        "long walks": {"effort.steps": 20},
        "short walks": {"effort.steps": 1},
    },
    "effort": {"0.3": {}, "full": {"effort": 1.0}, "least": {"effort": 0.0}},
    # Not a setting: FABOLAS against the methods that use all the data, or brackets.
    "methods": {m: {"strategy": m} for m in ("fabolas", "mtbo", "es", "ei", "hyperband", "random")},
}
WITHOUT_MODELS = ("hyperband", "random")
# What a variant has that is no variant at all; part of a run's key, since a default may change.
DEFAULTS: Options = {
    name: parameter.default
    for name, parameter in inspect.signature(Fabolas.__init__).parameters.items()
    if parameter.default is not inspect.Parameter.empty
} | {
    "strategy": "fabolas",
    "surrogate.own": surrogate.OWN,
    "surrogate.spread": 0.0,
    "surrogate.walk": "from the smallest",
    "checks.any": False,
    "checks.on": "measured",
}


@dataclass(frozen=True)
class Family:
    """Problems of one kind: how to make one from a seed, and for how many full trainings it is run."""

    make: Callable[[int], Problem]
    budget: float


FAMILIES: dict[str, Family] = {
    "mnist": Family(lambda seed: SvmGrid.load("mnist", cost_scale=100.0), 1.0),
    "covtype": Family(lambda seed: SvmGrid.load("covtype", cost_scale=100.0), 1.0),
    "svm_like": Family(synthetic.svm_like, 1.0),
    "rugged6": Family(lambda seed: synthetic.rugged(6, seed), 2.0),
    "smooth10": Family(lambda seed: synthetic.smooth(10, seed), 4.0),
    "misleading": Family(synthetic.misleading, 10.0),
    "boosting": Family(synthetic.boosting, 10.0),
    "mixed": Family(synthetic.mixed, 4.0),
}
CHECKPOINTS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0, 20.0, 40.0)  # in full trainings
JOURNAL = Path(".cache/settings.jsonl")


@dataclass(frozen=True)
class Job:
    """One run of a variant."""

    family: str
    options: Options
    seed: int
    effort: float
    overhead: float
    max_trials: int
    trainings: float | None = None  # instead of the family's budget

    @property
    def budget(self) -> float:
        """In full trainings."""
        return FAMILIES[self.family].budget if self.trainings is None else self.trainings

    @property
    def key(self) -> str:
        """What identifies the run in the journal: all that it depends on except the code."""
        problem = FAMILIES[self.family].make(self.seed)
        table = problem.checksum if isinstance(problem, SvmGrid) else None
        options = DEFAULTS | {"effort": self.effort} | self.options
        return json.dumps(
            [self.family, table, options, self.seed, self.overhead, self.max_trials, self.budget],
            sort_keys=True,
        )

    def __call__(self) -> dict[str, Any]:
        """The regret at each checkpoint and how the time was used."""
        problem = FAMILIES[self.family].make(self.seed)
        hidden = {name: value for name, value in self.options.items() if "." in name}
        options = {"effort": self.effort} | {n: v for n, v in self.options.items() if n not in hidden}
        strategy = options.pop("strategy", "fabolas")
        if strategy in WITHOUT_MODELS:
            del options["effort"]
        with changed(hidden):
            run = simulate(
                problem,
                strategy,
                seed=self.seed,
                time_budget=self.budget * problem.full_cost,
                max_trials=self.max_trials,
                overhead=self.overhead,
                **options,
            )
        return {
            "regret": [run.regret_at(c * problem.full_cost) for c in CHECKPOINTS if c <= self.budget],
            "trials": len(run.time),
            "end": run.time[-1] / problem.full_cost,
            "median_size": float(np.median(run.size)),
        }


def near_the_target(u: np.ndarray) -> np.ndarray:
    """The time of a walk that is hardly begun on half of the log-scale: nearly all of it is near the target."""
    return u**6


@contextmanager
def changed(hidden: Options) -> Iterator[None]:
    """Constants of the method that users do not see, changed for a while."""
    of_effort = {n.removeprefix("effort."): v for n, v in hidden.items() if n.startswith("effort.")}
    at = Effort.at
    smallest = hidden.get("design.SMALLEST", design.SMALLEST)
    model = Spec.loss_model
    of_spec: Options = {}
    if "surrogate.spread" in hidden:
        of_spec["spread"] = Normal(hidden["surrogate.spread"], 1.0)
    if hidden.get("surrogate.walk") == "two":
        of_spec["walks"] = (from_the_smallest, near_the_target)
    elif hidden.get("surrogate.walk") == "from the target":
        of_spec |= {"walks": (from_the_target,), "doubt": Normal(-3.0, 1.5)}
    is_check, any_is = Fabolas._is_check, hidden.get("checks.any", False)

    def loss_model(spec: Spec) -> Model:
        return model(replace(spec, **of_spec))

    def counts(strategy: Fabolas, suggestion: Suggestion) -> bool:
        if any_is:
            return bool(strategy.space.are_at_target(suggestion.point[None])[0])
        return is_check(strategy, suggestion)

    position = Position.of

    def rivals(region: Any, models: Any, tried: np.ndarray, measured: np.ndarray, *rest: Any) -> Position:
        kept = measured[:0] if hidden.get("checks.on") == "predicted" else measured
        return position(region, models, tried, kept, *rest)

    with (
        patch.object(surrogate, "OWN", hidden.get("surrogate.own", surrogate.OWN)),
        patch.object(Position, "of", rivals),
        patch.object(Spec, "loss_model", loss_model),
        patch.object(Fabolas, "_is_check", counts),
        patch.object(Effort, "at", lambda level, n: replace(at(level, n), **of_effort)),
        patch.object(design, "SMALLEST", smallest),
    ):
        yield


def finished() -> dict[str, dict[str, Any]]:
    """All runs of the journal by key."""
    return {row["key"]: row for row in lines.read(JOURNAL)}


def jobs_of(arguments: argparse.Namespace, group: str, family: str) -> dict[str, list[Job]]:
    """Variant -> its jobs, one a seed."""
    fixed = (arguments.effort, arguments.overhead, arguments.max_trials, arguments.trainings)
    return {
        name: [Job(family, options, seed, *fixed) for seed in range(arguments.seeds)]
        for name, options in GROUPS[group].items()
    }


def run(arguments: argparse.Namespace) -> None:
    """Runs what the journal does not have yet, seed by seed."""
    done = finished()
    wanted = {
        job.key: job
        for group in arguments.groups
        for family in arguments.problems
        for jobs in jobs_of(arguments, group, family).values()
        for job in jobs
    }
    jobs = sorted((job for key, job in wanted.items() if key not in done), key=lambda job: job.seed)
    with ProcessPoolExecutor(arguments.processes) as pool:
        futures = {pool.submit(job): job for job in jobs}
        for future in track(as_completed(futures), total=len(jobs)):
            lines.append(JOURNAL, {"key": futures[future].key, **future.result()})


@dataclass(frozen=True)
class Comparison:
    """The variants of a group on one family of problems: seeds that all have, times that all reached."""

    group: str
    family: str
    variants: tuple[str, ...]
    checkpoints: tuple[float, ...]
    regrets: np.ndarray  # (variants, seeds, checkpoints)

    @property
    def medians(self) -> np.ndarray:
        """(variants, checkpoints)."""
        return np.asarray(np.median(self.regrets, axis=1))

    @property
    def ranks(self) -> np.ndarray:
        """(variants,) the mean rank among the variants, over seeds and checkpoints; 1 is best."""
        regrets = self.regrets
        behind = (regrets[:, None] > regrets[None]).sum(axis=1) + 0.5 * (
            regrets[:, None] == regrets[None]
        ).sum(axis=1)
        return np.asarray(behind.mean(axis=(1, 2)) + 0.5)

    @property
    def log_ratios(self) -> np.ndarray:
        """(variants, seeds) log of the regret over the first variant's, mean over checkpoints.

        A regret counts for at least a hundredth of the median one at that time, and a ten-thousandth of the largest
        of these medians: below that it is luck.
        """
        usual = np.median(self.regrets, axis=(0, 1))  # (checkpoints,)
        logs = np.log(np.maximum(self.regrets, np.maximum(0.01 * usual, 1e-4 * usual.max() + 1e-12)))
        return np.asarray((logs - logs[:1]).mean(axis=2))

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Variant, medians, rank, as text."""
        for name, medians, rank in zip(self.variants, self.medians, self.ranks, strict=True):
            yield (name, *(f"{m:.4f}" for m in medians), f"{rank:.2f}")


def factors(found: list[Comparison], draws: int = 4000) -> np.ndarray:
    """(variants, 3) By which factor each variant's regret is the first one's, over all families; 95 % interval."""
    rng = np.random.default_rng(0)
    resampled = 0.0
    for c in found:
        seeds = rng.integers(c.regrets.shape[1], size=(draws, c.regrets.shape[1]))
        resampled = resampled + c.log_ratios[:, seeds].mean(axis=2) / len(found)  # (variants, draws)
    mean = np.mean([c.log_ratios.mean(axis=1) for c in found], axis=0)
    low, high = np.quantile(resampled, [0.025, 0.975], axis=1)
    return np.exp(np.stack([mean, low, high], axis=1))


def compare(arguments: argparse.Namespace) -> Iterator[Comparison]:
    """What the journal says of each group on each family."""
    done = finished()
    for group in arguments.groups:
        for family in arguments.problems:
            variants = jobs_of(arguments, group, family)
            shared = [
                s for s in range(arguments.seeds) if all(jobs[s].key in done for jobs in variants.values())
            ]
            if not shared:
                continue
            runs = [[done[jobs[s].key] for s in shared] for jobs in variants.values()]
            # A run that came to the end of its budget ended with the trial that was under way, beyond it.
            budget = next(iter(variants.values()))[0].budget
            reached = min(budget, *(run["end"] for of_variant in runs for run in of_variant))
            checkpoints = tuple(c for c in CHECKPOINTS if c <= reached)
            if not checkpoints:
                continue
            regrets = np.array([[run["regret"][: len(checkpoints)] for run in one] for one in runs])
            had = np.isfinite(regrets).all(
                axis=(0, 1)
            )  # before the first incumbent there is nothing to compare
            yield Comparison(
                group,
                family,
                tuple(variants),
                tuple(np.array(checkpoints)[had].tolist()),
                regrets[..., had],
            )


def table(arguments: argparse.Namespace) -> None:
    """Prints the median regret at each checkpoint, and the mean rank among the variants."""
    console = Console(width=130)
    for found in compare(arguments):
        seeds = found.regrets.shape[1]
        shown = Table(title=f"{found.family}: median regret after so many full trainings, {seeds} seeds")
        for heading in (found.group, *(f"{c:g}" for c in found.checkpoints), "mean rank"):
            shown.add_column(heading, justify="right")
        for row in found.rows():
            shown.add_row(*row)
        console.print(shown)


def markdown(arguments: argparse.Namespace) -> None:
    """Prints one table a group for docs/decisions: regrets at the last common time, and the factor to the first."""
    comparisons = list(compare(arguments))
    for group in arguments.groups:
        found = [c for c in comparisons if c.group == group and c.checkpoints]
        if not found:
            continue
        headings = [f"{c.family} at {c.checkpoints[-1]:g} ({c.regrets.shape[1]} seeds)" for c in found]
        print(f"| {group} | " + " | ".join(headings) + " | factor | rank |")
        print("|---" * (len(found) + 3) + "|")
        for i, (variant, (factor, low, high)) in enumerate(
            zip(found[0].variants, factors(found), strict=True)
        ):
            cells = [f"{c.medians[i, -1]:.4f} ({c.ranks[i]:.2f})" for c in found]
            rank = np.mean([c.ranks[i] for c in found])
            shown = f"{factor:.2f} ({low:.2f}, {high:.2f})" if i else "1"
            print(f"| {variant} | " + " | ".join(cells) + f" | {shown} | {rank:.2f} |")
        print()


def main() -> None:
    """Runs or shows comparisons."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=["run", "table", "markdown"])
    parser.add_argument("--groups", nargs="+", choices=GROUPS, default=list(GROUPS))
    parser.add_argument("--problems", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--effort", type=float, default=0.3, help="of each suggestion, from 0 to 1")
    parser.add_argument("--overhead", type=float, default=0.1, help="seconds of thinking a trial counts for")
    parser.add_argument("--max-trials", type=int, default=80)
    parser.add_argument("--trainings", type=float, help="of the budget, instead of each problem's own")
    arguments = parser.parse_args()
    {"run": run, "table": table, "markdown": markdown}[arguments.action](arguments)


if __name__ == "__main__":
    main()
