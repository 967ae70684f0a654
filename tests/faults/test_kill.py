"""A few of the runs of ``python -m tests.faults.kill``; ``make faults`` has a hundred."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from fabolas.storage.reader import read
from tests.faults.child import KINDS
from tests.faults.kill import ROOT, Case, check, killed_and_resumed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "seed", "times"),
    [("random", 0, 2), ("fabolas", 3, 1), ("workers", 4, 2), ("overhead", 5, 1)],
)
def test_a_run_killed_at_random_moments_loses_nothing_and_repeats_nothing(
    kind: str, seed: int, times: int, tmp_path: Path
) -> None:
    case = killed_and_resumed(
        tmp_path, kind, random.Random(seed), times=times
    )  # which checks after each kill
    assert sorted(trial.id for trial in read(case.study).trials) == list(range(KINDS[kind].trials))


@pytest.mark.slow
def test_of_processes_that_start_on_one_file_at_once_one_runs_and_the_others_are_refused(
    tmp_path: Path,
) -> None:
    case = Case(tmp_path, "random")
    command = [sys.executable, "-m", "tests.faults.child", str(case.study), str(case.journal), "random", "20"]
    processes = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    errors = [process.communicate()[1] for process in processes]
    codes = [process.returncode for process in processes]
    # A late one may come when the first has ended: the study is complete then, and it has nothing to do.
    assert 0 in codes
    assert all(
        "in use by another process" in error for code, error in zip(codes, errors, strict=True) if code
    )
    check(case)
    assert [trial.id for trial in read(case.study).trials] == list(range(20))
    assert all(trial.status == "complete" for trial in read(case.study).trials)
