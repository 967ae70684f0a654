"""Files of small studies for the report and the live page, made in a second."""

from pathlib import Path
from typing import Any

import fabolas
from fabolas import Float, Outcome

SPACE = {
    "C": Float(1e-3, 1e3, log=True),
    "gamma": Float(1e-3, 1e3, log=True),
    "kernel": ["rbf", "poly"],
    "shrinking": [True, False],
}
SIZE = {"size": (10, 1000)}
HOSTILE_NAME = "<script>document.title='hacked'</script>"
HOSTILE_CHOICE = "</script><img src=x onerror=\"document.title='hacked'\">"


def objective(config: dict[str, Any], size: int) -> Outcome:
    """Best near C = 10; the kernel "poly" fails with large C."""
    if config["C"] > 100 and config["kernel"] == "poly":
        raise MemoryError("kernel matrix too large")
    return Outcome((config["C"] - 10.0) ** 2 / 1e4 + 0.1 + 5 / size, cost=size / 10)


def hostile_objective(config: dict[str, Any], size: int) -> Outcome:
    """Fails for small values with a text that a browser would run."""
    if config[HOSTILE_NAME] < 0.2:
        raise ValueError(HOSTILE_CHOICE)
    return Outcome(config[HOSTILE_NAME] + 1 / size, cost=size / 10, info={HOSTILE_NAME: HOSTILE_NAME})


def write_study(path: Path, n: int = 12, run: Any = objective, space: Any = None, **settings: Any) -> Path:
    """Write the file of a study with n trials; by default a random search, which costs nothing."""
    usual = {"strategy": "random", "seed": 0, "progress": False, "overhead": 0.1}
    fabolas.minimize(run, space or SPACE, SIZE, max_trials=n, storage=path, **(usual | settings))
    return path


def write_hostile_study(path: Path, **settings: Any) -> Path:
    """Write a study whose names, choices and errors are markup."""
    space = {HOSTILE_NAME: Float(0.0, 1.0), "<b>choice</b>": [HOSTILE_CHOICE, "b"]}
    return write_study(path, run=hostile_objective, space=space, **settings)


def write_failed_study(path: Path) -> Path:
    """Write a study in which all three trials failed."""
    with fabolas.Study(SPACE, SIZE, strategy="random", seed=0, storage=path) as study:
        for _ in range(3):
            study.fail(
                study.ask(), "Traceback (most recent call last):\n  File x\nRuntimeError: CUDA out of memory"
            )
    return path


def write_empty_study(path: Path) -> Path:
    """Write a study without a trial."""
    fabolas.Study(SPACE, SIZE, seed=0, storage=path).close()
    return path
