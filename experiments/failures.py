"""What failures cost: the regret of searches in which trials fail by chance, or in a part of the space.

    python -m experiments.failures run --seeds 10 --journal .cache/failures.jsonl
    python -m experiments.failures compare BEFORE.jsonl AFTER.jsonl

Trials fail with a probability, or beyond a wall: the first coordinate of the best configuration plus 0.1 towards the
farther side ("beside"), the same only on sizes near the target ("large sizes"), or minus 0.05, so that the best
configuration itself fails ("through"). A failure costs as much as a success. If the best configuration fails, regret is
relative to the best of 4,000 random ones that do not. `compare` prints the factor between two versions of the code.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track

import fabolas
from experiments import lines
from experiments.families import FAMILIES
from experiments.paired import factor_cell
from fabolas.strategies.fabolas import Fabolas

CHECKPOINTS = (20, 40, 60)  # trials
OVERHEAD, EFFORT = 0.1, 0.2
N_REFERENCE = 4000
SMALLEST_REGRET = 1e-4  # below it a regret is luck
PROBLEMS = ("svm_like", "rugged6", "boosting", "mixed")
CHANCES = {"5 %": 0.05, "15 %": 0.15, "30 %": 0.3}
WALLS = {
    "beside": (0.1, 0.0),
    "through": (-0.05, 0.0),
    "large sizes": (0.1, 0.6),
}  # where it is, least size u
CASES = ("none", *CHANCES, *WALLS)


def beyond_wall(case: str, point: np.ndarray, optimum: np.ndarray) -> bool:
    """Whether a point (D,) is where trials of the case fail; the optimum (d,) says where the wall is."""
    if case not in WALLS:
        return False
    distance, least = WALLS[case]
    side = 1.0 if optimum[0] < 0.5 else -1.0
    return bool(side * (point[0] - optimum[0]) > distance and point[-1] >= least)


def search(name: str, case: str, seed: int) -> dict[str, Any]:
    """The regret at each checkpoint, and how many trials failed."""
    problem = FAMILIES[name].make(seed)
    space = fabolas.Space(problem.space, problem.fidelities)
    points = space.at_target(space.sobol(N_REFERENCE, np.random.default_rng(seed)))
    truths = np.array([problem.truth(space.decode(point)[0]) for point in points])
    optimum = points[np.argmin(truths)]
    allowed = np.array([not beyond_wall(case, point, optimum) for point in points])
    best = problem.best if allowed[np.argmin(truths)] else float(truths[allowed].min())
    rng = np.random.default_rng([seed, 2017, 1])  # a stream of its own: a study's are those of [seed, id]
    regrets, n_failed = [], 0
    with fabolas.Study(space, strategy=Fabolas(space, effort=EFFORT), seed=seed, overhead=OVERHEAD) as study:
        for n in range(1, CHECKPOINTS[-1] + 1):
            asked = study.ask()
            loss, cost = problem(asked.config, **asked.fidelity, rng=rng)
            unlucky = rng.random() < CHANCES.get(case, 0.0)
            if unlucky or beyond_wall(case, space.encode(asked.config, asked.fidelity), optimum):
                study.fail(asked, "failed", cost=cost)
                n_failed += 1
            else:
                study.tell(asked, loss, cost=cost)
            if n in CHECKPOINTS:
                answer = study.incumbent()
                regrets.append(np.inf if answer is None else problem.truth(answer.config) - best)
    return {"problem": name, "case": case, "seed": seed, "regret": regrets, "failed": n_failed}


def run(journal: Path, seeds: range) -> None:
    """Run what the journal does not have yet, seed by seed."""
    done = {(row["problem"], row["case"], row["seed"]) for row in lines.read(journal)}
    jobs = [(name, case, seed) for seed in seeds for name in PROBLEMS for case in CASES]
    for job in track([job for job in jobs if job not in done], console=Console(stderr=True)):
        lines.append(journal, search(*job))


def compare(before: Path, after: Path) -> None:
    """Factor of the regret, and mean number of failures of both versions, for each case."""
    versions = [
        {(r["problem"], r["case"], r["seed"]): r for r in lines.read(path)} for path in (before, after)
    ]
    common = sorted(versions[0].keys() & versions[1].keys())
    print("| case | " + " | ".join(f"after {n}" for n in CHECKPOINTS) + " | failures |")
    print("|---" * (len(CHECKPOINTS) + 2) + "|")
    for case in CASES:
        keys = [[key for key in common if key[:2] == (name, case)] for name in PROBLEMS]
        logs = [
            [np.log(np.maximum([v[key]["regret"] for key in of], SMALLEST_REGRET)) for of in keys if of]
            for v in versions
        ]
        cells = [
            factor_cell([b[:, i] - a[:, i] for a, b in zip(*logs, strict=True)], np.random.default_rng(0))
            for i in range(len(CHECKPOINTS))
        ]
        failed = [np.mean([v[key]["failed"] for of in keys for key in of] or [np.nan]) for v in versions]
        print(f"| {case} | " + " | ".join(cells) + f" | {failed[0]:.1f}, {failed[1]:.1f} |")


def main() -> None:
    """Parse the arguments and do what they say."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("--journal", type=Path, required=True)
    running.add_argument("--seeds", type=int, default=10)
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.command == "run":
        run(given.journal, range(given.seeds))
    else:
        compare(given.before, given.after)


if __name__ == "__main__":
    main()
