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
    [
        tune.randn(),
        tune.grid_search([1, 2]),
        tune.quniform(0, 1, 1e-5),
        {"deep": tune.uniform(0, 1)},
        [tune.uniform(0, 1)],
        (1, [tune.uniform(0, 1)]),
        {"deep": [fabolas.Float(0, 1)]},
        [tune.grid_search([1, 2])],
        tune.choice([tune.uniform(0, 1), 2]),
        tune.sample_from(lambda: 3),
        [tune.sample_from(lambda: 3)],
    ],
)
def test_what_has_no_equivalent_is_refused_by_name(domain: Any) -> None:
    from fabolas.ray.domains import split_param_space

    with pytest.raises(TypeError, match=r"expected .* for the parameter 'x', got"):
        split_param_space({"x": domain})


@pytest.mark.parametrize("value", [tune.sample_from(lambda: 3), [{"deep": tune.sample_from(lambda: 3)}]])
def test_a_function_is_refused_in_the_form_in_which_tune_passes_it_on(value: Any) -> None:
    from ray.tune.impl.placeholder import create_resolvers_map, inject_placeholders

    from fabolas.ray import FabolasSearch

    config = inject_placeholders({"x": tune.uniform(0, 1), "k": value}, create_resolvers_map())
    with pytest.raises(TypeError, match=r"expected .* for the parameter 'k', got tune.sample_from; compute"):
        FabolasSearch(FIDELITIES).set_search_properties("loss", "min", config)


def test_lists_and_objects_without_parameters_are_constants() -> None:
    from fabolas.ray.domains import split_param_space

    constants = {"a": [1, (2, "b")], "b": {"c": [None]}, "d": ("__ref_ph", "0123abcd"), "e": ()}
    assert split_param_space({"x": fabolas.Float(0, 1), **constants}) == (
        {"x": fabolas.Float(0, 1)},
        constants,
    )


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


def run_in_a_process(module: str, directory: Path) -> None:
    """Runs it in a process of its own, because another test of this process may use Ray."""
    environment = {
        **os.environ,
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        "RAY_AIR_NEW_OUTPUT": "0",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    ended = subprocess.run(
        [sys.executable, "-m", module, str(directory)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr


@pytest.mark.slow
@pytest.mark.first
def test_what_a_run_of_tune_cannot_search_is_refused_with_what_to_do(tmp_path: Path) -> None:
    run_in_a_process("tests.ray.tune_refusals", tmp_path)
    said = json.loads((tmp_path / "said.json").read_text())
    parts = {
        "function": "for the parameter 'k', got tune.sample_from; compute its value in the trainable",
        "function in a dict": "for the parameter 'k', got tune.sample_from",
        "function beside space": "for the parameter 'k', got tune.sample_from",
        "function as choice": "for the parameter 'k', got tune.sample_from",
        "objects as choices": "choices for the parameter 'k', got objects, which Tune does not pass on",
        "list": "for the parameter 'k', got a list that contains one; give each parameter a name of its own",
        "two spaces": "ValueError: You passed a `param_space` parameter",  # of Tune
        "space without metric": "expected metric and mode, got none from Tune, which passes on metric, mode and "
        "param_space only if param_space is not empty; pass metric= and mode= to FabolasSearch",
        "nothing": "expected metric and mode and param_space, got none from Tune",
    }
    for name, part in parts.items():
        assert part in said.pop(name), name
    assert said == {"space with metric": "", "space with metric of TuneConfig": ""}  # these two run


@pytest.mark.slow
@pytest.mark.first
def test_tune_runs_the_search_and_survives_a_killed_worker(tmp_path: Path) -> None:
    from fabolas.ray import FabolasSearch

    run_in_a_process("tests.ray.tune_run", tmp_path)
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["results"] == 6
    assert sorted(found["statuses"]) == ["complete"] * 5 + ["failed"]
    costs = [
        cost for cost, status in zip(found["costs"], found["statuses"], strict=True) if status != "failed"
    ]
    assert min(costs) > 0
    assert found["incumbent"]["kind"] in ("a", "b")
    restored = FabolasSearch()  # from what Tune has saved
    restored.restore_from_dir(str(tmp_path / "results" / "run"))
    assert restored.incumbent().config == found["incumbent"]
