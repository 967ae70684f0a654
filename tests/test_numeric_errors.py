"""The user's program may have set numpy's error state: our computation has its own, and the objective the user's."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fabolas
from tests.helpers.marks import slow
from tests.helpers.problems import SIZE, SPACE, bowl


@pytest.fixture(autouse=True)
def _raise_all() -> Iterator[None]:
    with np.errstate(all="raise"):
        yield


def underflow() -> None:
    np.exp(np.array([-1000.0]))


@pytest.mark.parametrize("direction", ["minimize", *slow("maximize")])
def test_a_run_does_not_die_of_the_error_state_of_the_program(direction: Any, tmp_path: Path) -> None:
    def objective(config: dict[str, Any], size: int) -> fabolas.Outcome:
        return fabolas.Outcome(bowl(config, size) ** 20 + 1e-300, cost=size / 1000)

    path = tmp_path / "study.db"
    result = fabolas.minimize(
        objective,
        SPACE,
        SIZE,
        direction=direction,
        max_trials=14,
        seed=0,
        effort=0.3,
        storage=path,
        progress=False,
    )
    assert all(trial.status == "complete" for trial in result.trials)
    loaded = fabolas.load(path)
    assert np.isfinite(loaded.predict(result.best_config).loss).all()
    with fabolas.Study(SPACE, SIZE, direction=direction, storage=path, effort=0.3) as study:
        study.tell(study.ask(), 0.5)
        assert study.incumbent() is not None


def test_the_objective_and_callbacks_have_the_error_state_of_the_program() -> None:
    def objective(config: dict[str, Any], size: int) -> float:
        with pytest.raises(FloatingPointError):
            underflow()
        return 0.5

    def callback(study: fabolas.Study, trial: fabolas.Trial) -> None:
        with pytest.raises(FloatingPointError):
            underflow()

    result = fabolas.minimize(
        objective, SPACE, SIZE, strategy="random", max_trials=3, seed=0, callbacks=[callback], progress=False
    )
    assert all(trial.status == "complete" for trial in result.trials)


def test_a_search_of_scikit_learn_does_not_die_of_it() -> None:
    from sklearn.datasets import make_classification
    from sklearn.tree import DecisionTreeClassifier

    from fabolas.sklearn import FabolasSearchCV

    X, y = make_classification(200, random_state=0)
    search = FabolasSearchCV(
        DecisionTreeClassifier(random_state=0), {"max_depth": range(1, 9)}, n_iter=6, cv=3, random_state=0
    )
    assert 0.5 < search.fit(X, y).best_score_ <= 1.0
