"""A run of Ray Tune with FabolasSearch in which one worker is killed; what came of it goes to `found.json`.

python -m tests.ray.tune_run DIRECTORY
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import ray
from ray import tune

from fabolas.ray import FabolasSearch
from tests.ray.test_search import FIDELITIES, SPACE, loss_of


def trainable(config: dict[str, Any]) -> None:
    """One trial. The first one of kind "b" dies as if the kernel killed it when memory ran out."""
    killed = Path(config["directory"]) / "killed"
    if config["kind"] == "b" and not killed.exists():
        killed.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    tune.report({"loss": loss_of(config)})


def main(directory: Path) -> None:
    """Runs 6 trials, two at a time."""
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    search = FabolasSearch(FIDELITIES, seed=0)
    tuner = tune.Tuner(
        trainable,
        param_space={**SPACE, "directory": str(directory)},
        tune_config=tune.TuneConfig(
            metric="loss",
            mode="min",
            search_alg=search,
            num_samples=6,
            max_concurrent_trials=2,
            reuse_actors=True,  # most of the time of a short trial is the start of its process
        ),
        run_config=tune.RunConfig(name="run", storage_path=str(directory / "results"), verbose=0),
    )
    results, trials, incumbent = tuner.fit(), search.study.trials, search.incumbent()
    found = {
        "results": len(results),
        "statuses": [trial.status for trial in trials],
        "costs": [trial.cost for trial in trials],
        "incumbent": None if incumbent is None else incumbent.config,
    }
    (directory / "found.json").write_text(json.dumps(found))
    ray.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
