"""Known configurations first, and results that were measured elsewhere."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fabolas
from fabolas import Float, Outcome, Space, Study
from fabolas.strategies import NAMES
from tests.helpers.marks import slow
from tests.helpers.problems import SIZE, SPACE, bowl, minimize

A, B, C = {"x": 0.1, "y": 0.2}, {"x": 0.3, "y": 0.6}, {"x": 0.5, "y": 0.5}


def cheap(config: dict[str, Any], size: int) -> Outcome:
    return Outcome(bowl(config, size), cost=size / 100)


def quick(strategy: str) -> dict[str, Any]:
    if strategy in ("random", "hyperband"):
        return {}
    return {"n_initial": 4} if strategy == "fabolas2017" else {"n_initial": 4, "effort": 0.0}


@pytest.mark.usefixtures("little_effort")
@pytest.mark.parametrize(
    "strategy", ["fabolas", "random", *slow(*(name for name in NAMES if name not in ("fabolas", "random")))]
)
def test_every_strategy_evaluates_them_first_where_it_would_evaluate_anyway(strategy: str) -> None:
    settings = {"strategy": strategy, "overhead": 0.0, "max_trials": 7, **quick(strategy)}
    plain = minimize(cheap, **settings)
    result = minimize(cheap, initial=[A, B], **settings)
    assert [trial.config for trial in result.trials[:2]] == [A, B]
    assert [trial.fidelity for trial in result.trials[:2]] == [t.fidelity for t in plain.trials[:2]]
    assert len(result.trials) == 7


def test_fabolas_begins_with_them_at_the_small_sizes_of_its_initial_design() -> None:
    result = minimize(cheap, strategy="fabolas", overhead=0.0, initial=[A, B], max_trials=3, verify=False)
    assert [trial.fidelity["size"] for trial in result.trials[:2]] == [10, 10]
    assert [trial.suggestion.origin for trial in result.trials] == ["design"] * 3


def test_hyperband_promotes_a_good_one() -> None:
    result = minimize(cheap, strategy="hyperband", overhead=0.0, initial=[B], max_trials=120)
    assert 333 in [trial.fidelity["size"] for trial in result.trials if trial.config == B]


def test_the_caller_may_name_the_fidelity() -> None:
    result = minimize(cheap, initial=[(A, {"size": 77}), B], max_trials=2)
    assert [trial.fidelity["size"] for trial in result.trials] == [77, 1000]
    with Study(SPACE, SIZE, seed=0) as study:
        study.enqueue(B, {"size": 50})
        study.enqueue(A)
        assert [s.config for s in study.waiting] == [B, A]
        assert study.pending == ()
        first, second, third = study.ask(), study.ask(), study.ask()
        assert (first.config, first.fidelity, first.origin) == (B, {"size": 50}, "enqueued")
        assert (second.config, second.fidelity) == (A, {"size": 10})
        assert third.config not in (A, B)


def test_they_are_evaluated_once_however_often_the_run_is_continued(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"storage": tmp_path / "run.db", "overhead": 0.0, "initial": [A, B, C]}
    minimize(cheap, max_trials=1, **settings)
    minimize(cheap, max_trials=2, **settings)
    result = minimize(cheap, max_trials=5, **settings)
    assert [trial.config for trial in result.trials[:3]] == [A, B, C]
    assert sum(trial.config in (A, B, C) for trial in result.trials) == 3


KILLED = """
import os, signal, sys, fabolas
from tests.helpers.problems import SIZE, SPACE
study = fabolas.Study(SPACE, SIZE, storage=sys.argv[1], seed=0)
for x in (0.1, 0.2, 0.3):
    study.enqueue({"x": x, "y": 0.5})
study.tell(study.ask(), 0.5, cost=1.0)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_what_was_enqueued_survives_a_killed_process(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(path)], cwd=Path(__file__).parents[2], check=False
    )
    assert killed.returncode == -signal.SIGKILL
    with Study(SPACE, SIZE, storage=path, seed=0) as study:
        assert [study.ask().config["x"] for _ in range(2)] == [0.2, 0.3]
        assert study.waiting == ()


def test_a_cancelled_one_waits_for_the_next_ask() -> None:
    with Study(SPACE, SIZE, strategy="random", seed=0) as study:
        study.enqueue(A)
        study.cancel(study.ask(queued=True))
        assert study.ask(queued=True).config == A
        own = study.ask(queued=True)
        study.enqueue(B)  # takes the next id, so the suggestion before it cannot be removed
        study.cancel(own)
        assert [study.ask().config for _ in range(2)] == [own.config, B]


def test_what_the_space_does_not_have_is_refused_before_anything_runs(tmp_path: Path) -> None:
    for initial, kind, message in [
        ([A, {"x": 2.0, "y": 0.5}], ValueError, "configuration 1 of initial: .*2.0"),
        ([{"x": 0.5}], ValueError, "configuration 0 of initial: .*'y'"),
        ([(A, {"size": 5})], ValueError, "configuration 0 of initial: .*5"),
        ([3], TypeError, "configuration 0 of initial: expected a dict, or a pair"),
        (A, TypeError, "initial must be a list of configurations"),
    ]:
        with pytest.raises(kind, match=message):
            minimize(cheap, initial=initial, max_trials=3, storage=tmp_path / "run.db")
    assert list(tmp_path.iterdir()) == []


def test_a_result_from_elsewhere_is_learnt_from_and_takes_no_time(tmp_path: Path) -> None:
    with Study(SPACE, SIZE, seed=0, overhead=0.0, storage=tmp_path / "run.db") as study:
        study.tell(study.ask(), 0.9, cost=2.0)
        for i, x in enumerate(np.linspace(0, 1, 12)):
            size = 1000 if i % 2 else 100
            config = {"x": float(x), "y": 0.6}
            study.add(config, {"size": size}, bowl(config, size), cost=size / 10, info={"from": "elsewhere"})
        failed = study.add(C, None, None, cost=100.0)
        assert (failed.status, failed.fidelity, failed.suggestion.origin) == (
            "failed",
            {"size": 1000},
            "added",
        )
        assert (study.elapsed, study.spent) == (2.0, 2.0)
        assert {trial.elapsed for trial in study.trials} == {2.0}
        incumbent = study.incumbent()
        assert incumbent is not None
        assert abs(incumbent.config["x"] - 0.3) < 0.1
        assert study.predict({"x": 0.3, "y": 0.6}).cost[0] == pytest.approx(100.0, rel=0.5)
        assert study.ask().origin != "design"  # there is enough to fit the models
    assert fabolas.load(tmp_path / "run.db").to_frame()["info_from"].iloc[1] == "elsewhere"


def test_results_from_elsewhere_do_not_count_towards_a_budget(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    with Study(SPACE, SIZE, strategy="random", seed=0, overhead=0.0, storage=path) as study:
        for config in (A, B, C):
            study.add(config, {"size": 100}, bowl(config, 100), cost=1e6)
    result = minimize(cheap, storage=path, max_trials=4, overhead=0.0)
    assert len(result.trials) == 3 + 4
    result = minimize(cheap, storage=path, time_budget=60.0, overhead=0.0)
    assert [trial.cost for trial in result.trials[3:]] == [10.0] * 6
    again = minimize(cheap, storage=path, max_trials=2, fresh_budget=True, overhead=0.0)
    assert len(again.trials) == len(result.trials) + 2


@pytest.mark.slow
def test_a_wider_study_takes_over_the_trials_of_an_old_file(tmp_path: Path) -> None:
    kinds = {"kind": [np.sum, np.mean]}
    old = minimize_in({**SPACE, **kinds}, tmp_path / "old.db", 12)
    wide = {
        "x": Float(-1.0, 2.0),
        "y": Float(0.0, 1.0),
        "kind": [np.sum, np.mean, np.max],
        "new": ["off", "on"],
    }
    with Study(wide, SIZE, seed=1, overhead=0.0, storage=tmp_path / "new.db") as study:
        for trial in fabolas.load(tmp_path / "old.db").trials:
            study.add({**trial.config, "new": "off"}, trial.fidelity, trial.loss, trial.cost, trial.info)
        assert [(t.config["x"], t.config["kind"], t.loss, t.cost) for t in study.trials] == [
            (pytest.approx(t.config["x"]), t.config["kind"], t.loss, t.cost) for t in old.trials
        ]
        expected = old.predict({"x": 0.3, "y": 0.6, "kind": np.sum})
        prediction = study.predict({"x": 0.3, "y": 0.6, "kind": np.sum, "new": "off"})
        assert prediction.loss[0] == pytest.approx(expected.loss[0], abs=0.1)
    more = minimize_in(wide, tmp_path / "new.db", 6)
    assert len(more.trials) == 18


def minimize_in(space: dict[str, Any], path: Path, n: int) -> fabolas.Result:
    return fabolas.minimize(
        cheap, Space(space, SIZE), storage=path, seed=1, overhead=0.0, max_trials=n, progress=False
    )
