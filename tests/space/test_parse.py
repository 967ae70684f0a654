"""What a user may write for a hyperparameter, and the axis it becomes."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

import fabolas
from fabolas import Categorical, Float, Integer, Ordinal, Space


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (stats.uniform(1, 2), Float(1, 3)),
        (stats.uniform(loc=1, scale=2), Float(1, 3)),
        (stats.loguniform(1e-3, 1e3), Float(1e-3, 1e3, log=True)),
        (stats.loguniform(a=1e-3, b=1e3, loc=0), Float(1e-3, 1e3, log=True)),
        (stats.reciprocal(1e-3, 1e3), Float(1e-3, 1e3, log=True)),
        (stats.randint(2, 9), Integer(2, 8)),
        (stats.randint(3, 4), 3),
        (range(2, 9), Integer(2, 8)),
        (range(10, 60, 20), Ordinal((10, 30, 50))),
        (range(3, 0, -1), Ordinal((3, 2, 1))),
        (range(3, 4), 3),
        (["x", None], Categorical(("x", None))),
        ([10, 20, 50], Categorical((10, 20, 50))),
        (np.array([3.0, 1.0]), Categorical((3.0, 1.0))),
        (("a", "b"), Categorical(("a", "b"))),
    ],
)
def test_what_the_user_writes_becomes_the_axis_that_is_meant(written: Any, meant: Any) -> None:
    assert Space({"a": written, "b": [1, 2]}) == Space({"a": meant, "b": [1, 2]})


def test_minimize_takes_scipy_distributions_ranges_and_lists() -> None:
    space = {"C": stats.loguniform(1e-2, 1e2), "n": range(1, 9), "kernel": ["rbf", "poly"]}
    result = fabolas.minimize(
        lambda config: abs(np.log(config["C"])) + config["n"] + (config["kernel"] == "rbf"),
        space,
        max_trials=5,
        strategy="random",
        seed=0,
        progress=False,
    )
    for trial in result.trials:
        assert 1e-2 <= trial.config["C"] <= 1e2
        assert trial.config["n"] in range(1, 9)
        assert trial.config["kernel"] in ("rbf", "poly")


def test_an_empty_range_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"'a': expected at least one number, got the empty range\(3, 3\)"):
        Space({"a": range(3, 3)})
