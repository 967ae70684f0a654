"""Which settings are best: variants of FABOLAS on problems of several kinds, several seeds, one table.

    python -m experiments.settings run --groups information transform --seeds 10 --processes 2
    python -m experiments.settings table --groups information transform
    python -m experiments.settings markdown
    python -m experiments.settings factors --groups information --first-seed 200 --seeds 20

The problems are both SVM tables with their costs times 100 (trainings of minutes), and six families with a known
truth: an SVM-like surface, a rugged one in six dimensions, a smooth one in ten, one where small subsets mislead,
one where they mislead a little and cost much, and one with categories where they are noisy. Each finished run is a
line of a journal, so that a stopped comparison continues where it was; the default, which every group has, runs
once. Overhead counts as `--overhead` seconds per trial and the effort is fixed, so that a busy machine changes
nothing.

Runs are compared at equal times: a checkpoint that some run of the group did not reach, because it ended at
`--max-trials`, is left out. `markdown` also prints the factor between a variant's regret and that of the first one:
the geometric mean over problems, seeds and checkpoints, with a 95 % interval from resampling the seeds. `factors`
prints it for each problem at 1, 5 and 20 full trainings and over all checkpoints; a checkpoint uses the seeds whose
runs all reached it.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import inspect
import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from experiments import lines
from experiments.families import FAMILIES, YAHPO_SCENARIOS, add_yahpo
from experiments.paired import factor_cell, mean_known, paired_log_ratios
from experiments.simulate import simulate
from experiments.svm_grid.problem import Problem as SvmGrid
from fabolas.acquisition.entropy import ep_information
from fabolas.acquisition.representers import improvement_representers
from fabolas.gp.kernels import paper_loss_basis, uniform_length_prior
from fabolas.gp.priors import Normal
from fabolas.model_spec import Deviation, ModelSpec
from fabolas.optimize import cma_es, direct
from fabolas.storage.option_values import encode
from fabolas.strategies.acquire import AcquisitionConfig
from fabolas.strategies.effort import Effort
from fabolas.strategies.fabolas import Fabolas
from fabolas.transforms import identity_transform, log_excess_transform

Options = dict[str, Any]
EFFORT = 0.3


def model(**parts: Any) -> Options:
    """The option for a model with other parts."""
    return {"model": ModelSpec(**parts)}


def acquisition(**parts: Any) -> Options:
    """The option for an acquisition with other parts."""
    return {"acquisition": AcquisitionConfig(**parts)}


def effort(**sizes: int) -> Options:
    """The option for the usual effort, at 50 trials, with other sizes."""
    return {"effort": replace(Effort.at(EFFORT, 50), **sizes)}


def quartic_time(u: np.ndarray) -> np.ndarray:
    """The time of a random walk that is mostly near the target."""
    return u**4


def reverse_time(u: np.ndarray) -> np.ndarray:
    """The time of a random walk that starts at the target: its deviations are largest at the smallest size."""
    return 1.0 - u


def late_time(u: np.ndarray) -> np.ndarray:
    """The time of a random walk nearly all of which is near the target."""
    return u**6


# A question: its variants by name, each the options that make it; the first one is what the others are compared with.
GROUPS: dict[str, dict[str, Options]] = {
    "default": {"default": {}},
    "information": {
        "entropy reduction": {},
        "eq. 7": acquisition(relative_to_uniform=True),
    },
    "final_samples": {"1": {}, "4": acquisition(final_samples=4)},
    "transform": {
        "log": {},
        "identity": model(transform=identity_transform),
        "log excess": model(transform=log_excess_transform),
    },
    "basis": {"power law": {}, "paper": model(loss_basis=paper_loss_basis)},
    "deviation": {
        "from the smallest size": {},
        "mostly near the target": model(loss_deviations=(Deviation(quartic_time, Normal(0.0, 2.0)),)),
        "nearly all near the target": model(loss_deviations=(Deviation(late_time, Normal(1.0, 2.0)),)),
        "from the target": model(loss_deviations=(Deviation(reverse_time, Normal(-3.0, 1.5)),)),
        "eq. 6": model(loss_deviations=(), cost_deviations=()),
    },
    "chol_logdiag": {f"{m:g}": model(chol_logdiag_prior=Normal(m, 1.0)) for m in (0.0, -1.0, 1.0)},
    "cost": {"polynomial": {}, "eq. 6": model(cost_terms=())},
    "noise": {"by size": {}, "one noise": model(noise_by_size=False)},
    "lengths": {"scaled": {}, "uniform": model(length_prior=uniform_length_prior)},
    "target_share": {f"{s:.2f}": {"target_share": s} for s in (1 / 3, 0.0, 0.2, 0.5)},
    "nugget": {f"{f:g}": model(nugget_fraction=f) for f in (0.9, 0.0, 0.5)},
    "cost_offset": {f"{c:g}": acquisition(cost_offset=c) for c in (0.02, 0.0, 0.01, 0.05)},
    "representers": {
        "thompson": {},
        "improvement": acquisition(choose_representers=improvement_representers),
    },
    "pmin": {"sampling": {}, "ep": acquisition(information_estimator=ep_information)},
    "climbing": {"usual": effort(), "no": effort(n_climbs=0)},
    "maximizer": {
        "candidates": {},
        "direct": acquisition(maximizer=direct),
        "cma-es": acquisition(maximizer=cma_es),
    },
    "design": {"k = 10": {}, "k = 5": {"n_initial": 5}, "k = 20": {"n_initial": 20}},
    "samples": {"usual": effort(), "K = 2": effort(K=2), "K = 16": effort(K=16)},
    "mcmc": {
        "usual": effort(),
        "at every trial": effort(refit_interval=1),
        "20 steps": effort(mcmc_steps=20),
        "1 step": effort(mcmc_steps=1),
    },
    "max_trials": {"exact": model(max_trials=10**6), "30 trials": model(max_trials=30)},
    "effort": {"0.3": {}, "full": {"effort": 1.0}, "least": {"effort": 0.0}},
    # Not a setting: FABOLAS against its published form and the methods it is compared to.
    "methods": {
        m: {"strategy": m} for m in ("fabolas", "fabolas2017", "mtbo", "es", "ei", "hyperband", "random")
    },
}
WITHOUT_EFFORT = ("fabolas2017", "hyperband", "random")
# The defaults are part of a run's key, because a default may change.
DEFAULTS: Options = {
    name: parameter.default
    for name, parameter in inspect.signature(Fabolas.__init__).parameters.items()
    if parameter.default is not inspect.Parameter.empty
} | {"strategy": "fabolas", "model": ModelSpec(), "acquisition": AcquisitionConfig()}


CHECKPOINTS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0)  # in full trainings
FACTOR_TIMES = (1.0, 5.0, 20.0)
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
        options = encode(DEFAULTS | {"effort": self.effort} | self.options)
        return json.dumps(
            [self.family, table, options, self.seed, self.overhead, self.max_trials, self.budget],
            sort_keys=True,
        )

    def __call__(self) -> dict[str, Any]:
        """The regret at each checkpoint and how the time was used."""
        problem = FAMILIES[self.family].make(self.seed)
        options = {"effort": self.effort} | self.options
        strategy = options.pop("strategy", "fabolas")
        if strategy in WITHOUT_EFFORT:
            del options["effort"]
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


def finished(journal: Path) -> dict[str, dict[str, Any]]:
    """All runs of the journal by key."""
    return {row["key"]: row for row in lines.read(journal)}


def seeds_of(arguments: argparse.Namespace) -> range:
    """The seeds of a comparison."""
    return range(arguments.first_seed, arguments.first_seed + arguments.seeds)


def jobs_of(arguments: argparse.Namespace, group: str, family: str) -> dict[str, list[Job]]:
    """Variant -> its jobs, one a seed."""
    fixed = (arguments.effort, arguments.overhead, arguments.max_trials, arguments.trainings)
    return {
        name: [Job(family, options, seed, *fixed) for seed in seeds_of(arguments)]
        for name, options in GROUPS[group].items()
    }


def run(arguments: argparse.Namespace) -> None:
    """Runs what the journal does not have yet, seed by seed."""
    done = finished(arguments.journal)
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
            lines.append(arguments.journal, {"key": futures[future].key, **future.result()})


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


def table_of_factors(arguments: argparse.Namespace) -> None:
    """Prints for each variant a row a problem: factors at some times, and over all checkpoints."""
    done, rng = finished(arguments.journal), np.random.default_rng(0)
    columns = {f"at {c:g}": [CHECKPOINTS.index(c)] for c in FACTOR_TIMES} | {
        "all": list(range(len(CHECKPOINTS)))
    }
    for group in arguments.groups:
        ratios: dict[str, np.ndarray] = {}
        for family in arguments.problems:
            variants = jobs_of(arguments, group, family)
            shared = [
                i for i in range(arguments.seeds) if all(jobs[i].key in done for jobs in variants.values())
            ]
            if shared:
                found = paired_log_ratios(
                    [[done[jobs[i].key] for i in shared] for jobs in variants.values()], CHECKPOINTS
                )
                missing = ((0, 0), (0, 0), (0, len(CHECKPOINTS) - found.shape[2]))
                ratios[family] = np.pad(found, missing, constant_values=np.nan)
        for v, variant in list(enumerate(GROUPS[group]))[1:]:
            print(f"| {variant} | " + " | ".join(columns) + " |\n" + "|---" * (len(columns) + 1) + "|")
            for name, members in [*((f, [f]) for f in ratios), ("all problems", list(ratios))]:
                cells = [
                    factor_cell([mean_known(ratios[m][v][:, c]) for m in members], rng)
                    for c in columns.values()
                ]
                print(f"| {name} | " + " | ".join(cells) + " |")
            print()


def compare(arguments: argparse.Namespace) -> Iterator[Comparison]:
    """What the journal says of each group on each family."""
    done = finished(arguments.journal)
    for group in arguments.groups:
        for family in arguments.problems:
            variants = jobs_of(arguments, group, family)
            shared = [
                i for i in range(arguments.seeds) if all(jobs[i].key in done for jobs in variants.values())
            ]
            if not shared:
                continue
            runs = [[done[jobs[i].key] for i in shared] for jobs in variants.values()]
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


ACTIONS = {"run": run, "table": table, "markdown": markdown, "factors": table_of_factors}


def main() -> None:
    """Runs or shows comparisons."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=list(ACTIONS))
    parser.add_argument("--groups", nargs="+", choices=GROUPS, default=list(GROUPS))
    parser.add_argument("--problems", nargs="+", choices=[*FAMILIES, *YAHPO_SCENARIOS])
    parser.add_argument("--yahpo", type=Path, help="directory of YAHPO Gym's data: adds its problems")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument(
        "--first-seed", type=int, default=0, help="fresh seeds: those that no setting was chosen with"
    )
    parser.add_argument("--journal", type=Path, default=JOURNAL, help="where finished runs are kept")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--effort", type=float, default=EFFORT, help="of each suggestion, from 0 to 1")
    parser.add_argument("--overhead", type=float, default=0.1, help="seconds of overhead per trial")
    parser.add_argument("--max-trials", type=int, default=80)
    parser.add_argument("--trainings", type=float, help="of the budget, instead of each problem's own")
    arguments = parser.parse_args()
    if arguments.yahpo is not None:
        add_yahpo(arguments.yahpo)
    arguments.problems = arguments.problems or list(FAMILIES)
    ACTIONS[arguments.action](arguments)


if __name__ == "__main__":
    main()
