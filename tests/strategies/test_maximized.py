"""Maximising f is minimising -f, and all that the user sees has the sign of f."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fabolas
from fabolas import Outcome, Result, Study
from fabolas.strategies import NAMES, PredictiveStrategy
from tests.helpers.marks import slow
from tests.helpers.problems import SIZE, SPACE, bowl

FAST: dict[str, Any] = {
    "random": {},
    "hyperband": {},
    "fabolas2017": {"n_initial": 4},
}


def cost(loss: float, size: int) -> Outcome:
    return Outcome(loss, cost=size / 100)


def run(strategy: str, direction: Any, sign: float, **settings: Any) -> Result:
    options = FAST.get(strategy, {"effort": 0.0, "n_initial": 4})
    settings = {"max_trials": 9, "seed": 0, "overhead": 0.01, "progress": False, **options, **settings}
    return fabolas.minimize(
        lambda config, size: cost(sign * bowl(config, size), size),
        SPACE,
        SIZE,
        direction=direction,
        strategy=strategy,
        **settings,
    )


QUICK = ("random", "fabolas")


@pytest.mark.usefixtures("little_effort")
@pytest.mark.parametrize("strategy", [*QUICK, *slow(*(name for name in NAMES if name not in QUICK))])
def test_every_strategy_decides_as_if_it_minimised_the_negative(strategy: str) -> None:
    low, high = run(strategy, "minimize", 1.0), run(strategy, "maximize", -1.0)
    assert [trial.config for trial in high.trials] == [trial.config for trial in low.trials]
    assert [trial.loss for trial in high.trials] == [-(trial.loss or 0.0) for trial in low.trials]
    best, worst = high.incumbent(), low.incumbent()
    assert (best is None) == (worst is None)
    if best is not None and worst is not None:
        assert (best.config, best.loss, best.std) == (worst.config, -worst.loss, worst.std)


def test_predictions_have_the_sign_of_the_user_and_only_models_predict() -> None:
    low, high = run("fabolas", "minimize", 1.0), run("fabolas", "maximize", -1.0)
    config = {"x": 0.5, "y": 0.5}
    expected, prediction = low.predict(config, {"size": 100}), high.predict(config, {"size": 100})
    assert prediction.loss[0] == -expected.loss[0]
    for name in ("loss_std", "cost", "cost_limit"):
        assert getattr(prediction, name)[0] == getattr(expected, name)[0]
    with Study(SPACE, direction="maximize", strategy="random") as study:
        assert not isinstance(study.strategy, PredictiveStrategy)


def test_maximize_is_minimize_with_that_direction() -> None:
    result = fabolas.maximize(
        lambda config, size: cost(-bowl(config, size), size),
        SPACE,
        SIZE,
        max_trials=9,
        seed=0,
        overhead=0.01,
        progress=False,
        strategy="random",
    )
    assert result.direction == "maximize"
    assert result.predicted_loss == max(trial.loss or -np.inf for trial in result.trials)
    assert result.best_config == run("random", "maximize", -1.0).best_config
    assert "predicted value at the target: -0." in str(result)


def test_a_file_knows_its_direction_and_refuses_another(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    result = run("fabolas", "maximize", -1.0, storage=path, verify=False)
    loaded = fabolas.load(path)
    assert loaded.direction == "maximize"
    assert loaded.predicted_loss == result.predicted_loss < 0
    assert [trial.loss for trial in loaded.trials] == [trial.loss for trial in result.trials]
    assert list(loaded.to_frame()["loss"]) == [trial.loss for trial in result.trials]
    with pytest.raises(ValueError, match="its direction is 'maximize', you asked for 'minimize'"):
        run("fabolas", "minimize", -1.0, storage=path)
    again = run("fabolas", "maximize", -1.0, storage=path, max_trials=11, verify=False)
    whole = run("fabolas", "maximize", -1.0, max_trials=11, verify=False)
    assert [trial.config for trial in again.trials] == [trial.config for trial in whole.trials]


def test_another_direction_is_a_sentence() -> None:
    with pytest.raises(ValueError, match="direction must be 'minimize' or 'maximize', got 'up'"):
        run("random", "up", 1.0)
