"""FabolasSearch by itself, and in a real local Ray Tune with a worker that is killed."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import fabolas

tune = pytest.importorskip("ray.tune", reason="Ray Tune needs pandas and pyarrow: ray[tune]")

SPACE = {"x": tune.uniform(0.0, 1.0), "kind": tune.choice(["a", "b"]), "data": "constant"}
FIDELITIES = {"rows": (100, 10_000)}


def search_for(**options: Any) -> Any:
    from fabolas.ray import FabolasSearch

    return FabolasSearch(FIDELITIES, space=SPACE, metric="loss", mode="min", **{"seed": 0, **options})


def loss_of(config: dict[str, Any]) -> float:
    return float((config["x"] - 0.3) ** 2 + 0.1 * (config["kind"] == "b") + 1 / config["rows"] ** 0.5)


def complete(search: Any, n: int, start: int = 0) -> list[dict[str, Any]]:
    configs = []
    for i in range(start, start + n):
        config = search.suggest(f"t{i}")
        search.on_trial_complete(f"t{i}", {"loss": loss_of(config), "time_total_s": config["rows"] / 1000})
        configs.append(config)
    return configs


def test_parameters_of_tune_become_parameters_of_ours() -> None:
    from fabolas.ray.domains import split_param_space

    given = {
        "a": tune.uniform(-1.0, 2.0),
        "b": tune.loguniform(1e-3, 10.0),
        "c": tune.quniform(0.1, 0.5, 0.1),
        "d": tune.randint(1, 10),
        "e": tune.lograndint(1, 101),
        "f": tune.qrandint(0, 12, 4),
        "g": tune.choice(["x", 3, None]),
        "h": fabolas.Ordinal([1, 10, 100]),
        "i": [1, 2],
    }
    searched, constants = split_param_space(given)
    assert searched == {
        "a": fabolas.Float(-1.0, 2.0),
        "b": fabolas.Float(1e-3, 10.0, log=True),
        "c": fabolas.Ordinal((0.1, 0.2, 0.3, 0.4, 0.5)),
        "d": fabolas.Integer(1, 9),
        "e": fabolas.Integer(1, 100, log=True),
        "f": fabolas.Ordinal((0, 4, 8, 12)),
        "g": fabolas.Categorical(("x", 3, None)),
        "h": fabolas.Ordinal((1, 10, 100)),
    }
    assert constants == {"i": [1, 2]}  # a list is a constant in Tune


@pytest.mark.parametrize(
    "domain",
    [tune.randn(), tune.grid_search([1, 2]), {"deep": tune.uniform(0, 1)}, tune.quniform(0, 1, 1e-5)],
)
def test_what_has_no_equivalent_is_refused_by_name(domain: Any) -> None:
    from fabolas.ray.domains import split_param_space

    with pytest.raises(TypeError, match=r"expected .* for the parameter 'x', got"):
        split_param_space({"x": domain})


def test_the_config_has_the_fidelity_and_the_record_has_the_cost() -> None:
    search = search_for()
    configs = complete(search, 14)
    assert all(100 <= config["rows"] <= 10_000 and config["data"] == "constant" for config in configs)
    trials = search.study.trials
    assert [t.cost for t in trials] == [config["rows"] / 1000 for config in configs]
    assert [t.loss for t in trials] == [loss_of(config) for config in configs]
    assert search.incumbent().config["kind"] == "a"


def test_errors_and_results_without_the_metric_fail() -> None:
    search = search_for()
    for i in range(4):
        search.suggest(f"t{i}")
    search.on_trial_complete("t0", error=True)
    search.on_trial_complete("t1", {"loss": float("nan"), "time_total_s": 2.0})
    search.on_trial_complete("t2", {"time_total_s": 2.0})
    search.on_trial_complete("t3", {"loss": 0.1, "cost": 7.0, "time_total_s": 2.0})
    search.on_trial_complete("unknown", {"loss": 0.0})
    trials = search.study.trials
    assert [t.status for t in trials] == ["failed", "failed", "failed", "complete"]
    assert [t.cost for t in trials] == [0.0, 2.0, 2.0, 7.0]


def test_maximising_takes_the_largest() -> None:
    search = search_for(effort=0.0)
    search._mode = "max"
    search._study = None
    search._open()
    for i in range(20):
        config = search.suggest(f"t{i}")
        search.on_trial_complete(f"t{i}", {"loss": -loss_of(config), "time_total_s": config["rows"] / 1000})
    assert abs(search.incumbent().config["x"] - 0.3) < 0.2


def test_a_metric_too_large_for_a_loss_is_a_failed_trial() -> None:
    search = search_for()
    search.suggest("t0")
    search.on_trial_complete("t0", {"loss": 1e200, "time_total_s": 1.0})
    (trial,) = search.study.trials
    assert (trial.status, trial.error) == ("failed", "its result has loss=1e+200")


def test_a_metric_that_is_no_number_is_a_failed_trial_and_a_cost_of_zero_is_measured() -> None:
    search = search_for()
    for i in range(2):
        search.suggest(f"t{i}")
    search.on_trial_complete("t0", {"loss": "low", "time_total_s": 1.0})
    search.on_trial_complete("t1", {"loss": 0.5, "cost": 0, "time_total_s": 1.0})
    failed, complete_ = search.study.trials
    assert (failed.status, failed.error) == ("failed", "its result has loss='low'")
    assert complete_.loss == 0.5
    assert complete_.cost > 0
    assert not search.study.pending


def test_a_restored_search_goes_on_as_the_saved_one(tmp_path: Path) -> None:
    search = search_for(effort=0.0)
    complete(search, 12)
    search.suggest("running")
    file = str(tmp_path / "searcher-state.pkl")
    search.save(file)
    other = search_for(effort=0.0, seed=99)
    other.restore(file)
    for each in (search, other):
        each.on_trial_complete("running", {"loss": 0.5, "time_total_s": 1.0})
    assert len(other.study.trials) == 13
    assert other.suggest("next") == search.suggest("next")


def test_points_to_evaluate_come_first() -> None:
    first = [{"x": 0.25, "kind": "a"}, {"x": 0.5, "kind": "b", "rows": 10_000}]
    search = search_for(points_to_evaluate=first)
    one, two = search.suggest("t0"), search.suggest("t1")
    assert (one["x"], one["kind"]) == (0.25, "a")
    assert one["rows"] < 1_000
    assert (two["x"], two["rows"]) == (0.5, 10_000)


def test_a_fidelity_with_reports_is_refused() -> None:
    from fabolas.ray import FabolasSearch

    with pytest.raises(
        ValueError, match="expected fidelities without reports for FabolasSearch, got 'epochs' with"
    ):
        FabolasSearch({"epochs": fabolas.Fidelity(1, 27, reports=True)})


def test_a_search_without_metric_says_what_it_needs() -> None:
    from fabolas.ray import FabolasSearch

    search = FabolasSearch(FIDELITIES)
    with pytest.raises(RuntimeError, match="expected metric and mode and param_space, got none"):
        search.suggest("t0")
    assert search.set_search_properties("loss", "min", dict(SPACE))
    assert 0 <= search.suggest("t0")["x"] <= 1


@pytest.mark.slow
@pytest.mark.first
def test_tune_runs_the_search_and_survives_a_killed_worker(tmp_path: Path) -> None:
    # In a process of its own: another test of this process may use Ray.
    environment = {
        **os.environ,
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        "RAY_AIR_NEW_OUTPUT": "0",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    ended = subprocess.run(
        [sys.executable, "-m", "tests.ray.tune_run", str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["results"] == 6
    assert sorted(found["statuses"]) == ["complete"] * 5 + ["failed"]
    costs = [
        cost for cost, status in zip(found["costs"], found["statuses"], strict=True) if status != "failed"
    ]
    assert min(costs) > 0
    assert found["incumbent"]["kind"] in ("a", "b")
    assert list((tmp_path / "results" / "run").glob("search*-state*"))  # Tune has called `save`
