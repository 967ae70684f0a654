"""The state of the sampler is in the trials: another process, or another sampler object, goes on from them."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

from fabolas.optuna import FabolasSampler
from fabolas.optuna.model import COST
from tests.optuna.conftest import ROWS, loss_of

WORKER = """
import sys, time, warnings, optuna
warnings.simplefilter("ignore")
from fabolas.optuna import FabolasSampler
from tests.optuna.test_storage import open_study
sampler = FabolasSampler({"rows": (500, 50_000)}, effort=0.0)
study = open_study(sys.argv[1], sampler)
def objective(trial):
    C = trial.suggest_float("C", 1e-5, 1e5, log=True)
    rows = sampler.fidelity(trial)["rows"]
    time.sleep(0.02)
    return sampler.finish(trial, abs(C - 10) / C, cost=rows / 1000)
study.optimize(objective, n_trials=int(sys.argv[2]))
"""


def open_study(url: str, sampler: Any) -> Any:
    """The study in this storage; each call opens the storage anew, as another process would."""
    if url.startswith("sqlite"):
        from optuna.storages import RDBStorage
        from sqlalchemy.pool import NullPool

        # Connections that a pool keeps are never closed, and from Python 3.13 on that is a warning.
        storage: Any = RDBStorage(url, engine_kwargs={"poolclass": NullPool})
    else:
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend

        storage = JournalStorage(JournalFileBackend(url))
    return optuna.create_study(storage=storage, study_name="s", sampler=sampler, load_if_exists=True)


@pytest.fixture(params=["journal", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    file = tmp_path / "study"
    return f"sqlite:///{file}" if request.param == "sqlite" else str(file)


def evaluate(sampler: Any, trial: Any) -> None:
    C = trial.suggest_float("C", 1e-5, 1e5, log=True)
    kernel = trial.suggest_categorical("kernel", ["rbf", None])
    degree = trial.suggest_int("degree", 1, 9, step=2) if kernel is None else 1
    rows = sampler.fidelity(trial)["rows"]
    sampler.tell(trial, loss_of(C, rows) + 0.01 * degree, cost=rows / 1000)


@pytest.mark.slow
def test_a_new_process_has_the_same_history_and_takes_the_next_point_of_the_design(url: str) -> None:
    sampler = FabolasSampler({"rows": ROWS}, seed=0)
    study = open_study(url, sampler)
    for _ in range(6):
        evaluate(sampler, study.ask())
    before = sampler.incumbent(study)
    assert before is not None

    other = FabolasSampler({"rows": ROWS}, seed=0)
    again = open_study(url, other)
    other.incumbent(again)
    first, second = sampler._model.history, other._model.history
    assert [t.id for t in first.trials] == [t.id for t in second.trials]
    for name in ("points", "losses", "costs", "overheads"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert sampler._model.space == other._model.space

    trials = study.get_trials(deepcopy=False)
    frozen = optuna.trial.FrozenTrial(
        number=6, state=TrialState.RUNNING, value=None, datetime_start=None, datetime_complete=None, params={},
        distributions={}, user_attrs={}, system_attrs={}, intermediate_values={}, trial_id=99,
    )  # fmt: skip
    here, there = (s._model.decide(frozen, trials, 0.0) for s in (sampler, other))
    assert (here.params, here.fidelity, here.origin) == (there.params, there.fidelity, "design")


def test_a_process_sees_the_running_trials_of_another_one_as_pending(url: str) -> None:
    sampler = FabolasSampler({"rows": ROWS}, seed=0)
    study = open_study(url, sampler)
    evaluate(sampler, study.ask())
    running = study.ask()
    C = running.suggest_float("C", 1e-5, 1e5, log=True)
    rows = sampler.fidelity(running)["rows"]

    other = FabolasSampler({"rows": ROWS}, seed=0)
    again = open_study(url, other)
    other.incumbent(again)
    (seen,) = other._model.pending(again.get_trials(deepcopy=False), number=2)
    assert (seen.id, seen.fidelity) == (running.number, {"rows": rows})
    axis = other._model.parameters["C"].axis
    column = other._model.space.names.index("C")
    assert seen.point[column] == axis.coordinate(C)


def test_without_a_seed_all_processes_use_the_one_that_the_study_keeps(url: str) -> None:
    seeds = set()
    for _ in range(2):
        sampler = FabolasSampler({"rows": ROWS})
        study = open_study(url, sampler)
        evaluate(sampler, study.ask())
        seeds.add(sampler._model.seed)
    assert len(seeds) == 1


@pytest.mark.slow
def test_processes_that_share_a_storage_evaluate_different_points(url: str) -> None:
    open_study(url, FabolasSampler({"rows": ROWS}))
    command = [sys.executable, "-c", WORKER, url, "8"]
    workers = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(2)]
    for worker in workers:
        _, errors = worker.communicate(timeout=120)
        assert worker.returncode == 0, errors.decode()
    sampler = FabolasSampler({"rows": ROWS})
    study = open_study(url, sampler)
    assert len(study.trials) == 16
    assert all(t.state.is_finished() and COST in t.user_attrs for t in study.trials)
    points = {(t.params["C"], t.user_attrs["rows"]) for t in study.trials}
    assert len(points) >= 15  # two processes that decide at the same moment do not see each other
    assert sampler.incumbent(study) is not None


def test_trials_of_another_sampler_are_used_but_their_time_is_not_counted(url: str) -> None:
    study = open_study(url, optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda trial: (trial.suggest_float("C", 1, 100) - 50) ** 2, n_trials=15)
    sampler = FabolasSampler({"rows": ROWS}, seed=0)
    study = open_study(url, sampler)
    study.optimize(lambda trial: (trial.suggest_float("C", 1, 100) - 50) ** 2, n_trials=3)
    history = sampler._model.history
    assert history.added.tolist() == [True] * 15 + [False] * 2
    assert all(t.fidelity == {"rows": ROWS[1]} for t in history.trials)
    assert sampler.incumbent(study).verified


def test_trials_that_were_added_by_hand_have_an_unknown_cost() -> None:
    sampler = FabolasSampler({"rows": ROWS}, seed=0)
    study = optuna.create_study(sampler=sampler)
    distribution = {"C": optuna.distributions.FloatDistribution(1, 100)}
    for C in range(10, 100, 7):
        study.add_trial(optuna.create_trial(params={"C": C}, distributions=distribution, value=(C - 50) ** 2))
    assert sampler.incumbent(study).config["C"] == pytest.approx(50, abs=5)  # no cost at all is known
    study.add_trial(
        optuna.create_trial(
            params={"C": 20.0},
            distributions=distribution,
            state=TrialState.PRUNED,
            value=40.0,
            user_attrs={"rows": 1_000, COST: 3.0},
        )
    )
    study.optimize(lambda trial: (trial.suggest_float("C", 1, 100) - 50) ** 2, n_trials=3)
    history = sampler._model.history
    assert (history.costs[:13] == 0).all()
    assert (history.costs[13], history.trials[13].fidelity) == (3.0, {"rows": 1_000})
    assert np.isfinite(sampler.incumbent(study).loss)
