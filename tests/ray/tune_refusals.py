"""Runs of Ray Tune that FabolasSearch refuses, and what it says; the sentences go to `said.json`.

python -m tests.ray.tune_refusals DIRECTORY
"""

import json
import sys
from pathlib import Path
from typing import Any

import ray
from ray import tune

from fabolas.ray import FabolasSearch

FIDELITIES = {"rows": (100, 10_000)}
X = {"x": tune.uniform(0.0, 1.0)}
METRIC = {"metric": "loss", "mode": "min"}

# name -> arguments of FabolasSearch, param_space of the Tuner, arguments of TuneConfig
RUNS: dict[str, tuple[dict[str, Any], dict[str, Any] | None, dict[str, Any]]] = {
    "function": ({}, {**X, "k": tune.sample_from(lambda: 3)}, METRIC),
    "function in a dict": ({}, {**X, "k": {"a": [tune.sample_from(lambda: 3)]}}, METRIC),
    "function beside space": ({"space": X, **METRIC}, {"k": tune.sample_from(lambda: 3)}, {}),
    "function as choice": ({}, {**X, "k": tune.choice([tune.sample_from(lambda: 3), 4])}, METRIC),
    "objects as choices": ({}, {**X, "k": tune.choice([min, max])}, METRIC),
    "list": ({}, {**X, "k": [tune.uniform(0, 1)]}, METRIC),
    "two spaces": ({"space": X}, {"k": tune.uniform(0, 1)}, METRIC),
    "space without metric": ({"space": X}, None, METRIC),
    "nothing": ({}, {}, METRIC),
    "space with metric": ({"space": X, **METRIC}, None, {}),
    "space with metric of TuneConfig": ({"space": X}, {"constant": 1}, METRIC),
}


def trainable(config: dict[str, Any]) -> None:
    """One trial."""
    tune.report({"loss": config["x"]})


def said(directory: Path, options: dict[str, Any], space: dict[str, Any] | None, config: Any) -> str:
    """The error of a run; empty if it ends without one."""
    search = FabolasSearch(FIDELITIES, seed=0, **options)
    tuner = tune.Tuner(
        trainable,
        param_space=space,
        tune_config=tune.TuneConfig(search_alg=search, num_samples=1, **config),
        run_config=tune.RunConfig(storage_path=str(directory / "results"), verbose=0),
    )
    try:
        assert not tuner.fit().errors
    except (TypeError, ValueError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


if __name__ == "__main__":
    where = Path(sys.argv[1])
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    (where / "said.json").write_text(json.dumps({name: said(where, *run) for name, run in RUNS.items()}))
    ray.shutdown()
