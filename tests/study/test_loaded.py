from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ConfigSpace import Categorical as Choice
from ConfigSpace import ConfigurationSpace, EqualsCondition
from ConfigSpace import Float as Real
from scipy.stats import loguniform
from sklearn.datasets import load_digits
from sklearn.svm import SVC

import fabolas
from fabolas import Float, Outcome, Result, Study
from fabolas.model_spec import ModelSpec
from fabolas.sklearn import FabolasSearchCV
from fabolas.study import LoadedStudy, StudyView
from tests.helpers.problems import SIZE, bowl

SPACE = {
    "x": Float(0.0, 1.0),
    "y": Float(0.0, 1.0),
    "kernel": ["rbf", 3, None, True],
    "layers": [(64,), (64, 64)],
    "solver": [np.sum, np.mean],
    "fixed": 7,
}
CONFIG = {"x": 0.3, "y": 0.6, "kernel": "rbf", "layers": (64,), "solver": np.sum, "fixed": 7}


def objective(config: dict[str, Any], size: int) -> Outcome:
    return Outcome(bowl(config, size), cost=size / 100, info={"rows": size})


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    path = tmp_path_factory.mktemp("loaded") / "run.db"
    result = fabolas.minimize(
        objective, SPACE, SIZE, max_trials=16, storage=path, seed=1, overhead=0.01, progress=False
    )
    return result, path


def test_a_file_says_without_its_space_what_the_result_says(finished: tuple[Result, Path]) -> None:
    result, path = finished
    study = fabolas.load(path)
    assert isinstance(study, LoadedStudy)
    expected = result.incumbent()
    answer = study.incumbent()
    assert expected is not None
    assert answer is not None
    assert (answer.loss, answer.std, answer.verified) == (expected.loss, expected.std, expected.verified)
    assert answer.trial_ids == expected.trial_ids
    assert (study.predicted_loss, study.verified) == (result.predicted_loss, result.verified)
    assert [(t.id, t.loss, t.cost, t.elapsed, t.info) for t in study.trials] == [
        (t.id, t.loss, t.cost, t.elapsed, t.info) for t in result.trials
    ]
    assert (study.seed, study.overhead, study.spent) == (result.seed, result.overhead, result.spent)


def test_the_trajectory_is_kept_as_the_run_computed_it(finished: tuple[Result, Path]) -> None:
    result, path = finished
    kept = fabolas.load(path).trajectory
    assert len(kept) > 1
    for (elapsed, incumbent), (own_elapsed, own) in zip(kept, result.trajectory, strict=True):
        assert (elapsed, incumbent.loss, incumbent.std) == (own_elapsed, own.loss, own.std)
        assert incumbent.config["x"] == own.config["x"]
    assert {elapsed for elapsed, _ in kept} <= {trial.elapsed for trial in result.trials}
    assert kept[-1][0] == result.trials[-1].elapsed


def test_a_study_adds_an_answer_to_its_trajectory_once_per_new_trial(tmp_path: Path) -> None:
    def told(n: int) -> Study:
        with Study(
            SPACE, SIZE, strategy="random", storage=tmp_path / "run.db", seed=0, overhead=0.5
        ) as study:
            for _ in range(n):
                study.tell(study.ask(), 0.5, cost=1.5)
            study.incumbent()
            study.incumbent()
        study.incumbent()  # a closed study writes nothing
        return study

    assert [elapsed for elapsed, _ in told(1).trajectory] == [2.0]
    assert [elapsed for elapsed, _ in told(0).trajectory] == [2.0]
    assert [elapsed for elapsed, _ in told(2).trajectory] == [2.0, 6.0]
    assert [elapsed for elapsed, _ in fabolas.load(tmp_path / "run.db").trajectory] == [2.0, 6.0]


def test_choices_come_back_as_they_were_and_functions_as_their_text(finished: tuple[Result, Path]) -> None:
    result, path = finished
    for trial, own in zip(fabolas.load(path).trials, result.trials, strict=True):
        text = f"numpy.{own.config['solver'].__name__}"
        assert trial.config == own.config | {"solver": text}
        assert type(trial.config["kernel"]) is type(own.config["kernel"])


@pytest.mark.parametrize("fidelity", [None, {"size": 100}])
def test_all_three_predict_the_same_loss_and_cost(
    finished: tuple[Result, Path], fidelity: dict[str, int] | None
) -> None:
    result, path = finished
    loaded = fabolas.load(path)
    with Study(SPACE, SIZE, storage=path, seed=1, overhead=0.01) as study:
        expected = study.predict(CONFIG, fidelity)
    assert expected.loss_std[0] > 0
    assert expected.cost[0] < expected.cost_limit[0]
    for view in (result, loaded):
        prediction = view.predict(CONFIG, fidelity)
        for name in ("loss", "loss_std", "cost", "cost_limit"):
            assert getattr(prediction, name)[0] == pytest.approx(getattr(expected, name)[0])
    text = loaded.predict(CONFIG | {"solver": "numpy.sum"}, fidelity)
    assert text.loss[0] == loaded.predict(CONFIG, fidelity).loss[0]


def test_study_result_and_loaded_study_have_the_same_methods(finished: tuple[Result, Path]) -> None:
    shared = {name for name in vars(StudyView) if not name.startswith("_")}
    assert {"incumbent", "predict", "to_frame", "trajectory", "trials", "best_config"} <= shared
    for kind in (Study, Result, LoadedStudy):
        assert issubclass(kind, StudyView)
        assert {name for name in shared if callable(getattr(StudyView, name))} == {
            name for name in shared if callable(getattr(kind, name))
        }


def test_a_configuration_without_its_inactive_hyperparameters_can_be_predicted_from_the_file(
    tmp_path: Path,
) -> None:
    space = ConfigurationSpace()
    kernel, degree = Choice("kernel", ["rbf", "poly"]), Real("degree", (1.0, 4.0))
    space.add(kernel, degree, Real("x", (0.0, 1.0)))
    space.add(EqualsCondition(degree, kernel, "poly"))
    with Study(space, SIZE, storage=tmp_path / "run.db", seed=0, overhead=0.0) as study:
        for _ in range(12):
            s = study.ask()
            study.tell(s, s.config["x"] + s.config.get("degree", 0.0), cost=1.0)
        rbf, poly = {"kernel": "rbf", "x": 0.5}, {"kernel": "poly", "x": 0.5, "degree": 3.0}
        expected = [study.predict(config).loss[0] for config in (rbf, poly)]
    loaded = fabolas.load(tmp_path / "run.db")
    assert [loaded.predict(config).loss[0] for config in (rbf, poly)] == pytest.approx(expected)
    assert [trial.config for trial in loaded.trials] == [trial.config for trial in study.trials]
    with pytest.raises(ValueError, match="none for 'x'"):
        loaded.predict({"kernel": "rbf"})
    with pytest.raises(ValueError, match="got 'degree', inactive here"):
        loaded.predict({**rbf, "degree": 3.0})
    assert loaded.space == study.space


def test_a_search_of_scikit_learn_can_be_loaded_and_predicts(tmp_path: Path) -> None:
    X, y = load_digits(return_X_y=True)
    search = FabolasSearchCV(
        SVC(),
        {"C": loguniform(1e-2, 1e3), "gamma": loguniform(1e-5, 1e-2)},
        n_iter=8,
        cv=3,
        random_state=0,
        storage=tmp_path / "search.db",
    ).fit(X[:400], y[:400])
    loaded = fabolas.load(tmp_path / "search.db")
    assert len(loaded.trials) == 8
    prediction = loaded.predict(search.best_params_)
    assert prediction.loss[0] == pytest.approx(search.predicted_loss_)
    assert prediction.loss_std[0] == pytest.approx(search.predicted_std_)
    assert loaded.to_frame()["loss"].min() < 0.3


def test_the_frame_has_times_info_and_a_sensible_order_of_columns(finished: tuple[Result, Path]) -> None:
    result, path = finished
    frame = fabolas.load(path).to_frame()
    assert list(frame.columns) == [
        *("id", "status", "loss", "cost", "fidelity_size"),
        *("config_x", "config_y", "config_kernel", "config_layers", "config_solver", "config_fixed"),
        *("started", "ended", "elapsed", "overhead", "effort", "predicted_cost", "origin"),
        *("info_rows", "error"),
    ]
    assert list(frame["info_rows"]) == list(frame["fidelity_size"])
    assert list(frame["elapsed"]) == pytest.approx(list(np.cumsum(frame["cost"] + frame["overhead"])))
    now = datetime.now(UTC)
    assert (now - frame["started"]).max() < pd.Timedelta(minutes=10)
    assert (frame["started"] <= frame["ended"]).all()
    assert (frame["ended"] <= now).all()
    assert (frame["started"].iloc[1:].to_numpy() >= frame["ended"].iloc[:-1].to_numpy()).all()
    own = result.to_frame()
    pd.testing.assert_frame_equal(frame.drop(columns="config_solver"), own.drop(columns="config_solver"))


def test_a_frame_without_trials_has_all_columns() -> None:
    with Study(SPACE, SIZE) as study:
        frame = study.to_frame()
    assert len(frame) == 0
    assert {"config_x", "fidelity_size", "started"} <= set(frame.columns)


def test_elapsed_is_never_none(tmp_path: Path) -> None:
    with Study(SPACE, SIZE, strategy="random", seed=0, overhead=0.5, storage=tmp_path / "run.db") as study:
        study.tell(study.ask(), 0.5, cost=2.0)
        study.fail(study.ask(), "boom", cost=1.0)
        study.abandon(study.ask(), "interrupted", cost=0)
        study.ask()
        assert [trial.elapsed for trial in study.trials] == [2.5, 4.0, 4.5]
    with Study(SPACE, SIZE, strategy="random", seed=0, overhead=0.5, storage=tmp_path / "run.db") as study:
        *known, last = [trial.elapsed for trial in study.trials]
        assert known == [2.5, 4.0, 4.5]
        assert last >= 5.0  # the overhead, and the time until the study was opened again


def line_of_log_size(u: np.ndarray, s: np.ndarray) -> np.ndarray:
    return np.stack([np.ones_like(u), u], axis=-1)


def test_a_file_with_a_basis_of_the_user_says_that_only_the_study_can_be_opened_with_it(
    tmp_path: Path,
) -> None:
    model = ModelSpec(loss_basis=line_of_log_size)
    with Study({"x": Float(0.0, 1.0)}, SIZE, model=model, storage=tmp_path / "own.db", seed=1) as study:
        study.tell(study.ask(), 1.0, cost=1.0)
    with pytest.raises(
        ValueError, match="line_of_log_size; open the study with the objects it was made with"
    ) as caught:
        fabolas.load(tmp_path / "own.db").incumbent()
    assert "another version" not in str(caught.value)
