"""Variants compared seed by seed: factors between regrets, at times that not all runs reached."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.families import FAMILIES, YAHPO_SCENARIOS

MIN_SEEDS = 3  # fewer say nothing


def paired_log_ratios(runs: list[list[dict[str, Any]]], checkpoints: Sequence[float]) -> np.ndarray:
    """(variants, seeds, checkpoints) log of the regret over the first variant's; NaN where a run was not so far.

    Args:
        runs: rows of the journal, of each variant and each seed. Small regrets count as in `Comparison.log_ratios`.
        checkpoints: the times of their regrets, or more.
    """
    regrets = np.array([[run["regret"] for run in of_variant] for of_variant in runs], dtype=float)
    ends = np.array([[run["end"] for run in of_variant] for of_variant in runs]).min(axis=0)  # (seeds,)
    had = np.isfinite(regrets).all(axis=0) & (np.array(checkpoints[: regrets.shape[2]]) <= ends[:, None])
    regrets = np.where(had, regrets, np.nan)
    usual = np.array([np.median(r[np.isfinite(r)]) if np.isfinite(r).any() else 0.0 for r in regrets.T])
    logs = np.log(np.maximum(regrets, np.maximum(0.01 * usual, 1e-4 * usual.max() + 1e-12)))
    return np.asarray(logs - logs[:1])


def factor_cell(ratios: list[np.ndarray], rng: np.random.Generator, draws: int = 4000) -> str:
    """The factor over problems with its 95 % interval; n is the number of seeds, or of problems if there are several.

    Args:
        ratios: log ratios (seeds,) of each problem; NaN is left out.
        rng: resamples the seeds.
        draws: how often.
    """
    kept = [r[np.isfinite(r)] for r in ratios if np.isfinite(r).sum() >= MIN_SEEDS]
    if not kept:
        return ""
    mean = np.mean([r.mean() for r in kept])
    resampled = np.mean([rng.choice(r, (draws, len(r))).mean(axis=1) for r in kept], axis=0)
    low, high = np.exp(np.quantile(resampled, [0.025, 0.975]))
    count = len(kept[0]) if len(ratios) == 1 else len(kept)
    return f"{np.exp(mean):.2f} ({low:.2f}, {high:.2f}) n={count}"


def mean_known(values: np.ndarray) -> np.ndarray:
    """The mean of the finite values along the last axis; NaN without one."""
    known = np.isfinite(values)
    total = np.where(known, values, 0.0).sum(axis=-1)
    return np.where(known.any(axis=-1), total / np.maximum(known.sum(axis=-1), 1), np.nan)


def versions_parser(
    description: str | None, first_seed: int
) -> tuple[argparse.ArgumentParser, argparse.ArgumentParser]:
    """The parser of a comparison of two versions, with the commands `run` and `compare`; and that of `run`."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("--yahpo", type=Path, help="directory of YAHPO Gym's data: adds its problems")
    running.add_argument(
        "--problems", nargs="+", choices=[*FAMILIES, *YAHPO_SCENARIOS], default=list(FAMILIES)
    )
    running.add_argument("--first-seed", type=int, default=first_seed)
    running.add_argument("--seeds", type=int, default=20)
    running.add_argument("--journal", type=Path, required=True)
    comparing = commands.add_parser("compare")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    return parser, running
