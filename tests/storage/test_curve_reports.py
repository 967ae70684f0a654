"""Reports of trainings in every storage: they survive a kill, and come back with their trials."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import fabolas
from fabolas.storage import MemoryStorage, SqliteStorage
from fabolas.storage.copies import salvage

FIDELITIES = {"epochs": fabolas.Fidelity(1, 50, reports=True, resume=True)}


def open_study(storage: Any) -> fabolas.Study:
    return fabolas.Study(
        {"x": fabolas.Float(0.0, 1.0)}, FIDELITIES, strategy="random", storage=storage, seed=3, overhead=0.1
    )


@pytest.fixture(params=["memory", "sqlite"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return MemoryStorage() if request.param == "memory" else SqliteStorage(tmp_path / "curves.db")


def test_reports_come_back_with_their_trials(storage: Any) -> None:
    with open_study(storage) as study:
        first = study.ask_for({"x": 0.25}, {"epochs": 8})
        study.tell_report(first, 0.5, 1.0, epochs=2)
        study.tell_report(first, 0.4, 2.0, epochs=4)
        stopped = study.tell(first, 0.4, cost=2.5, stopped=True)
        second = study.ask_for({"x": 0.25}, {"epochs": 8})
        again = study.tell(second, 0.3, cost=5.0, restarted=True)
        assert second.continues == 0
    with open_study(storage) as study:
        assert study.trials == (stopped, again)
        assert [(r.fidelity, r.loss, r.cost) for r in study.trials[0].reports] == [
            ({"epochs": 2}, 0.5, 1.0),
            ({"epochs": 4}, 0.4, 2.0),
        ]
        assert study.trials[0].fidelity == {"epochs": 4}
        assert study.trials[1].suggestion.continues == 0
        assert study.trials[1].restarted


def test_reports_of_a_running_training_survive_a_restart(storage: Any) -> None:
    with open_study(storage) as study:
        running = study.ask_for({"x": 0.25}, {"epochs": 8})
        study.tell_report(running, 0.5, 1.0, epochs=2)
        study.tell_report(running, 0.4, 7.5, epochs=4)
    with open_study(storage) as study:
        (trial,) = study.trials
        assert trial.status == "abandoned"
        assert [report.loss for report in trial.reports] == [0.5, 0.4]
        assert trial.cost >= 7.5


CHILD = """
import sys, os, signal
import fabolas
from tests.storage.test_curve_reports import open_study
study = open_study(sys.argv[1])
running = study.ask_for({"x": 0.25}, {"epochs": 8})
for epoch in (1, 2, 3):
    study.tell_report(running, 1 / epoch, float(epoch), epochs=epoch)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_reports_survive_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "killed.db"
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert child.returncode == -signal.SIGKILL
    loaded = fabolas.load(path)
    assert [report.loss for report in loaded.file.reports[0]] == [1.0, 1 / 2, 1 / 3]
    with open_study(path) as study:
        assert [report.loss for report in study.trials[0].reports] == [1.0, 1 / 2, 1 / 3]


def test_a_salvaged_file_has_the_reports(tmp_path: Path) -> None:
    with open_study(tmp_path / "curves.db") as study:
        first = study.ask_for({"x": 0.25}, {"epochs": 8})
        study.tell_report(first, 0.5, 1.0, epochs=2)
        study.tell(first, 0.4, cost=2.0)
        study.tell(study.ask_for({"x": 0.25}, {"epochs": 16}), 0.3, cost=2.0)
    salvage(tmp_path / "curves.db", tmp_path / "copy.db")
    trials = fabolas.load(tmp_path / "copy.db").trials
    assert [report.loss for report in trials[0].reports] == [0.5]
    assert trials[1].suggestion.continues == 0
