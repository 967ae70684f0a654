"""The comparison of settings: what is compared with what, and whether variants differ at all."""

import argparse
from pathlib import Path

import numpy as np
import pytest

from experiments import lines, settings
from experiments.settings import GROUPS, Comparison, Job, compare, factors

FIXED = {"effort": 0.3, "overhead": 0.1, "max_trials": 50, "trainings": None}


def arguments(group: str, path: Path, seeds: int = 4, first_seed: int = 0) -> argparse.Namespace:
    asked = {"groups": [group], "problems": ["misleading"], "seeds": seeds, "first_seed": first_seed}
    return argparse.Namespace(**asked, journal=path, **FIXED)


def journal(path: Path, ends: dict[str, float], group: str = "information") -> None:
    """Runs that ended at so many trainings; regret of the first variant 0.1, of the second 0.2, and so on."""
    asked = arguments(group, path)
    for i, (name, jobs) in enumerate(settings.jobs_of(asked, group, "misleading").items()):
        for job in jobs:
            row = {"key": job.key, "regret": [0.1 * (i + 1)] * 7, "trials": 50, "end": ends[name]}
            lines.append(path, row)


def test_only_times_that_all_runs_reached_are_compared(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    journal(path, {"entropy reduction": 10.2, "eq. 7": 3.5})
    (found,) = compare(arguments("information", path))
    assert found.checkpoints == (0.1, 0.25, 0.5, 1.0, 2.0)
    assert found.regrets.shape == (2, 4, 5)


def test_fresh_seeds_are_other_runs(tmp_path: Path) -> None:
    given = arguments("default", tmp_path / "runs.jsonl", 3, first_seed=100)
    jobs = settings.jobs_of(given, "default", "misleading")["default"]
    assert [job.seed for job in jobs] == [100, 101, 102]


def test_runs_that_ended_beyond_the_budget_are_compared_up_to_it(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    journal(path, {"entropy reduction": 25.0, "eq. 7": 21.0})
    (found,) = compare(arguments("information", path))
    assert found.checkpoints == (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0)


def test_a_factor_is_that_of_the_regrets_and_its_interval_holds_it() -> None:
    rng = np.random.default_rng(0)
    regrets = np.exp(rng.normal(size=(1, 400, 2)))
    noisy = 3.0 * regrets * np.exp(0.5 * rng.normal(size=(1, 400, 1)))
    found = [
        Comparison("g", family, ("a", "b"), (1.0, 2.0), np.concatenate([regrets, noisy]))
        for family in ("one", "other")
    ]
    (one, low_one, high_one), (factor, low, high) = factors(found)
    assert (one, low_one, high_one) == (1.0, 1.0, 1.0)
    assert low < factor < high
    assert factor == pytest.approx(3.0, rel=0.1)
    # Two families of 400 seeds each: the mean log ratio has a deviation of 0.5 / sqrt(800).
    assert np.log(high / low) == pytest.approx(2 * 1.96 * 0.5 / np.sqrt(800), rel=0.15)


def test_late_regrets_that_are_small_still_count() -> None:
    # At first all are far off; in the end the second variant is ten times nearer.
    regrets = np.array([[[0.5, 1e-3]] * 6, [[0.5, 1e-4]] * 6])
    found = Comparison("g", "one", ("a", "b"), (1.0, 40.0), regrets)
    np.testing.assert_allclose(found.log_ratios[1], 0.5 * np.log(0.1), rtol=1e-6)


RUNS: dict[str, float] = {}  # where each ended; most groups begin with the same variant


@pytest.mark.slow
@pytest.mark.parametrize(
    "group", ["information", "maximizer", "mcmc", "samples", "climbing", "noise", "cost"]
)
def test_every_variant_of_a_question_makes_another_search(group: str) -> None:
    ends = {}
    for name, options in GROUPS[group].items():
        job = Job("misleading", options, 0, effort=0.3, overhead=0.1, max_trials=18, trainings=40.0)
        if job.key not in RUNS:
            RUNS[job.key] = job()["end"]
        ends[name] = RUNS[job.key]
    assert len(set(ends.values())) == len(ends), ends
