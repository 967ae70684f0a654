"""``FabolasSearchCV`` as its users meet it: what goes in, what comes out, what must never happen."""

import os
import pickle
import re
import signal
import threading
import warnings
from datetime import timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pytest
from ConfigSpace import ConfigurationSpace, ForbiddenAndConjunction, ForbiddenEqualsClause
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats import loguniform, randint, uniform
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification, make_regression
from sklearn.exceptions import FitFailedWarning, NotFittedError, UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RandomizedSearchCV,
    ShuffleSplit,
    cross_val_score,
)
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from fabolas import Float, Space, load
from fabolas.sklearn import FabolasSearchCV, prepare
from fabolas.sklearn.policy import SearchPolicy
from fabolas.storage import MemoryStorage
from fabolas.storage.reader import read
from tests.helpers.marks import slow
from tests.helpers.waiting import PATIENCE

X, Y = make_classification(1500, 6, n_informative=4, n_classes=3, random_state=0)
XR, YR = make_regression(1500, 5, noise=5.0, random_state=0)
SPACE = {"C": loguniform(1e-4, 1e2)}


def search(estimator: Any = None, space: Any = None, **given: Any) -> FabolasSearchCV:
    given = {"n_iter": 6, "cv": 3, "random_state": 0, **given}
    return FabolasSearchCV(estimator or LogisticRegression(), space or SPACE, **given)


def check(found: FabolasSearchCV) -> None:
    """What holds of every search that was verified."""
    results = found.cv_results_
    best = found.best_index_
    assert found.verified_
    assert results["n_samples"][best] == found.max_size_
    assert results["params"][best] == found.best_params_
    full = results["n_samples"] == found.max_size_
    assert found.best_score_ == results["mean_test_score"][best] == results["mean_test_score"][full].max()
    assert results["rank_test_score"][best] == 1
    assert results["rank_test_score"][full].max() < results["rank_test_score"][~full].min(initial=10**6)
    assert len(found.trials_) == len(results["params"])


@cache
def usual(n_iter: int) -> FabolasSearchCV:
    """A search that was fitted to X and Y, for tests that only look at it."""
    return search(n_iter=n_iter).fit(X, Y)


@cache
def stored_search() -> bytes:
    """The file of a search of three candidates."""
    with TemporaryDirectory() as place:
        path = Path(place) / "search.db"
        search(n_iter=3, storage=path).fit(X, Y)
        return path.read_bytes()


class Sleeps(LogisticRegression):
    """Says that it takes 0.2 ms a row."""

    slept = 0.0

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "Sleeps":
        Sleeps.slept += 2e-4 * len(X)
        return super().fit(X, y, sample_weight)  # type: ignore[no-any-return]


class Timed(FabolasSearchCV):
    """Believes it."""

    _clock = staticmethod(lambda: Sleeps.slept)


class TestAnswer:
    @pytest.mark.slow
    def test_a_fit_without_a_best_leaves_none_of_an_earlier_one(self) -> None:
        found = search(n_iter=12).fit(X, Y)
        found.set_params(scoring=["accuracy", "f1_macro"], refit=False, n_iter=4).fit(X, Y)
        assert not [name for name in vars(found) if name.startswith("best_")]
        with pytest.raises(AttributeError, match="no best, and no best_index_"):
            _ = found.verified_
        with pytest.raises(AttributeError, match="no best, and no best_params_"):
            _ = found.predicted_loss_

    def test_one_and_one_point_zero_are_two_choices(self) -> None:
        tried = search(DecisionTreeClassifier(), {"max_features": [1, 1.0, "sqrt", 1]}, n_iter=12).fit(X, Y)
        kinds = {type(params["max_features"]) for params in tried.cv_results_["params"]}
        assert kinds == {int, float, str}
        assert len(search(DecisionTreeClassifier(), {"max_features": [1, 1.0]}).fit(X, Y).trials_) == 2

    def test_the_answer_is_a_run_on_all_the_rows(self) -> None:
        found = usual(12)
        check(found)
        assert (found.min_size_, found.max_size_) == (100, 1000)
        assert found.cv_results_["n_samples"].min() == 100
        folds = cross_val_score(LogisticRegression(**found.best_params_), X, Y, cv=3)
        assert found.best_score_ == pytest.approx(folds.mean())
        assert 0 < found.predicted_std_ < 0.05
        assert abs(found.predicted_loss_ - (1 - found.best_score_)) < 3 * found.predicted_std_

    @pytest.mark.parametrize("seed", [0, *slow(1)])
    def test_what_is_predicted_of_the_best_is_near_what_was_measured_of_it(self, seed: int) -> None:
        def accuracy(estimator: Any, X: Any, y: Any) -> float:  # whose best value nobody knows
            return float(estimator.score(X, y))

        found = search(n_iter=8 + 2 * seed, scoring=accuracy, random_state=seed).fit(X, Y)
        assert 0 < found.predicted_std_ < 0.05
        assert abs(found.predicted_loss_ + found.best_score_) < 3 * found.predicted_std_

    def test_the_best_is_trained_on_all_the_data(self) -> None:
        found = usual(6)
        assert np.array_equal(
            found.best_estimator_.coef_, LogisticRegression(**found.best_params_).fit(X, Y).coef_
        )
        assert np.array_equal(found.predict(X), found.best_estimator_.predict(X))
        assert np.array_equal(found.classes_, [0, 1, 2])

    def test_so_many_candidates_are_evaluated_as_were_asked_for(self) -> None:
        for n_iter in (1, 2, 6):
            found = usual(n_iter)
            check(found)
            assert len(found.cv_results_["params"]) == n_iter

    @pytest.mark.parametrize("min_size", [50, *slow(1.0)])
    def test_without_a_time_budget_the_same_seed_gives_the_same_search(self, min_size: float) -> None:
        def rows() -> list[tuple[float, int]]:
            results = search(n_iter=8, min_size=min_size).fit(X, Y).cv_results_
            return [(p["C"], n) for p, n in zip(results["params"], results["n_samples"], strict=True)]

        assert rows() == rows()

    # On a busy machine the run that the answer needs may be late.
    @pytest.mark.filterwarnings("ignore:the evaluation at the target .*is predicted")
    @pytest.mark.parametrize("budget", [0.4, *slow("0.4s", timedelta(seconds=0.4))])
    def test_a_time_budget_ends_the_search(self, budget: Any) -> None:
        found = search(n_iter=None, time_budget=budget).fit(X, Y)
        check(found)
        assert found.study_.spent < PATIENCE

    @pytest.mark.slow
    def test_a_fit_takes_as_long_as_it_may_with_the_refit(self) -> None:
        Sleeps.slept = 0.0
        check(Timed(Sleeps(), SPACE, time_budget=4.0, cv=3, random_state=0).fit(X, Y))
        assert 2.0 < Sleeps.slept < 4.2  # a run on all rows takes 0.6 s, the refit 0.3 s

    @pytest.mark.parametrize("budget", [0.5, *slow(1.0)])
    def test_without_verification_the_refit_has_its_time_too(self, budget: float) -> None:
        Sleeps.slept = 0.0
        found = Timed(Sleeps(), SPACE, time_budget=budget, verify=False, cv=3, random_state=0).fit(X, Y)
        assert Sleeps.slept <= budget  # of which the refit takes 0.3 s
        assert len(found.trials_) > 1

    def test_what_a_trial_costs_is_the_time_of_all_its_folds(self) -> None:
        found = Timed(Sleeps(), SPACE, n_iter=5, cv=4, random_state=0).fit(X, Y)
        for trial in found.trials_:
            assert trial.cost == pytest.approx(4 * 2e-4 * trial.fidelity["n_samples"])

    @pytest.mark.parametrize(("jobs", "share"), [(1, 1.5 / 3), (2, 1.5 / 2), (3, 1.5), (8, 1.5)])
    def test_the_refit_is_one_training_on_all_the_rows_beside_a_trial_of_three_in_parallel(
        self, jobs: int, share: float, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        kept = []

        class Stop(Exception):  # noqa: N818 - ends the fit before joblib starts processes
            pass

        def policy(*arguments: Any, refit_ratio: float, **named: Any) -> SearchPolicy:
            kept.append(refit_ratio)
            raise Stop

        monkeypatch.setattr(prepare, "SearchPolicy", policy)
        with pytest.raises(Stop):
            search(n_iter=1, n_jobs=jobs).fit(X, Y)
        assert kept == [share]

    def test_without_verification_the_answer_is_the_incumbent(self) -> None:
        found = search(verify=False, n_iter=6).fit(X, Y)
        incumbent = found.study_.incumbent()
        assert found.best_params_ == incumbent.config
        assert found.best_score_ == found.cv_results_["mean_test_score"][found.best_index_]
        assert found.verified_ == incumbent.verified
        assert found.cv_results_["n_samples"].max() < found.max_size_

    def test_small_data_are_searched_on_all_rows(self) -> None:
        found = search(n_iter=5).fit(X[:300], Y[:300])
        check(found)
        assert found.min_size_ == found.max_size_ == 200
        assert set(found.cv_results_["n_samples"]) == {200}

    def test_a_finite_space_ends_when_every_candidate_was_run_on_all_the_rows(self) -> None:
        found = search(space={"C": [0.1, 1.0]}, n_iter=50).fit(X[:300], Y[:300])
        assert len(found.cv_results_["params"]) < 50
        assert {p["C"] for p in found.cv_results_["params"]} == {0.1, 1.0}

    @pytest.mark.parametrize(
        "given", [{"n_iter": 5}, {"n_iter": 5, "verify": False}, {"n_iter": None, "time_budget": "1h"}]
    )
    def test_a_single_candidate_is_run_once_on_all_the_rows_and_refitted(self, given: Any) -> None:
        space = {"C": [0.1], "max_iter": range(200, 201)}
        found = search(space=space, **given).fit(X, Y)
        check(found)
        grid = GridSearchCV(LogisticRegression(), space, cv=3).fit(X, Y)
        assert found.cv_results_["params"] == grid.cv_results_["params"]
        assert found.cv_results_["n_samples"].tolist() == [1000]
        assert found.best_score_ == grid.best_score_
        assert np.array_equal(found.predict(X), grid.predict(X))
        assert 0 < found.predicted_std_ < 0.2

    def test_the_file_of_a_single_candidate_can_be_read_and_continued(self, tmp_path: Path) -> None:
        path = tmp_path / "search.db"
        for _ in range(2):
            found = search(space={"C": [0.1]}, storage=path).fit(X, Y)
        assert load(path).best_config == found.best_params_ == {"C": 0.1}

    def test_in_a_finite_space_nothing_is_run_twice_on_the_same_rows(self) -> None:
        found = search(space={"C": np.logspace(-3, 3, 13).tolist()}, n_iter=13).fit(X[:300], Y[:300])
        assert len({params["C"] for params in found.cv_results_["params"]}) == 13
        few = search(space={"C": [0.1, 1.0, 10.0]}, n_iter=50).fit(X, Y)
        runs = list(
            zip(
                [params["C"] for params in few.cv_results_["params"]],
                few.cv_results_["n_samples"],
                strict=True,
            )
        )
        assert len(set(runs)) == len(runs)

    def test_a_finite_space_with_forbidden_clauses_ends_too(self) -> None:
        space = ConfigurationSpace({"C": [0.1, 1.0], "fit_intercept": [True, False]})
        space.add(
            ForbiddenAndConjunction(
                ForbiddenEqualsClause(space["C"], 0.1), ForbiddenEqualsClause(space["fit_intercept"], False)
            )
        )
        found = search(space=space, n_iter=None, time_budget="1h").fit(X[:300], Y[:300])
        assert len(found.cv_results_["params"]) == 3

    @pytest.mark.parametrize("n_iter", [1, 2, 3])
    def test_a_few_candidates_are_all_on_all_the_rows(self, n_iter: int) -> None:
        found = usual(n_iter)
        assert found.cv_results_["n_samples"].tolist() == [1000] * n_iter
        assert len({params["C"] for params in found.cv_results_["params"]}) == n_iter

    @pytest.mark.parametrize(
        ("n_iter", "finalists"), [pytest.param(6, 2), pytest.param(12, 3, marks=pytest.mark.slow)]
    )
    def test_the_best_are_compared_on_all_the_rows(self, n_iter: int, finalists: int) -> None:
        found = usual(n_iter)
        full = found.cv_results_["n_samples"] == 1000
        assert full.sum() >= finalists
        assert (
            len(
                {
                    params["C"]
                    for params, there in zip(found.cv_results_["params"], full, strict=True)
                    if there
                }
            )
            > 1
        )

    def test_the_last_ones_are_promising_and_not_what_is_left_of_the_design(self) -> None:
        found = usual(6)
        assert [trial.suggestion.origin for trial in found.trials_][4:] == ["verification", "verification"]

    def test_splits_may_come_from_a_generator(self) -> None:
        check(search(n_iter=4, cv=KFold(3).split(X)).fit(X, Y))

    def test_the_size_is_no_parameter_of_the_estimator(self) -> None:
        found = usual(6)
        assert all(set(params) == {"C"} for params in found.cv_results_["params"])
        assert [key for key in found.cv_results_ if key.startswith("param_")] == ["param_C"]


class Remembers(ClassifierMixin, BaseEstimator):
    """A classifier that counts how it was used; its accuracy grows with a, its score with the rows."""

    fits: list[tuple[int, int]] = []  # noqa: RUF012 - shared on purpose: clones are what is fitted
    scored: list[int] = []  # noqa: RUF012

    def __init__(self, a: float = 0.0) -> None:
        self.a = a

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "Remembers":
        Remembers.fits.append((len(X), -1 if sample_weight is None else len(sample_weight)))
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        Remembers.scored.append(len(X))
        return np.where(np.arange(len(X)) % 100 < self.a, self.classes_[0], self.classes_[-1])


@pytest.fixture
def _forgotten() -> None:
    Remembers.fits.clear()
    Remembers.scored.clear()


class Keeps(LogisticRegression):
    """Keeps apart the groups, in the last column, that it was trained on and scored with."""

    together: ClassVar[list[tuple[set[int], set[int]]]] = []

    def fit(self, X: NDArray[Any], y: Any, sample_weight: Any = None) -> "Keeps":
        self.groups_ = set(X[:, -1])
        return super().fit(X[:, :-1], y, sample_weight)  # type: ignore[no-any-return]

    def predict(self, X: NDArray[Any]) -> Any:
        if len(X) < 1500:
            Keeps.together.append((self.groups_, set(X[:, -1])))
        return super().predict(X[:, :-1])


class Stamped(KFold):
    """A splitter that needs to know more."""

    def split(self, X: Any, y: Any = None, groups: Any = None, stamp: Any = None) -> Any:
        assert stamp is not None
        return super().split(X, y)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None, stamp: Any = None) -> int:
        return int(super().get_n_splits())


@pytest.mark.usefixtures("_forgotten")
class TestRows:
    def test_only_training_rows_are_left_out_and_weights_go_with_them(self) -> None:
        weights = np.random.default_rng(0).random(len(Y))
        found = search(Remembers(), {"a": [0, 30, 60, 90]}, n_iter=6).fit(X, Y, sample_weight=weights)
        sizes = found.cv_results_["n_samples"]
        assert len(set(sizes)) > 1
        assert Remembers.fits == [*((n, n) for n in sizes for _ in range(3)), (1500, 1500)]
        assert set(Remembers.scored) == {500}

    def test_groups_stay_apart(self) -> None:
        groups = np.repeat(np.arange(150), 10)
        found = search(Keeps(), cv=GroupKFold(3)).fit(np.column_stack([X, groups]), Y, groups=groups)
        check(found)
        assert Keeps.together  # in each fold: groups trained on, and groups scored
        assert all(not trained & scored for trained, scored in Keeps.together)

    def test_a_splitter_has_what_it_asks_for(self) -> None:
        with config_context(enable_metadata_routing=True):
            splitter = Stamped(3).set_split_request(stamp=True)
            check(search(cv=splitter, n_iter=4).fit(X, Y, stamp=np.arange(len(Y))))

    def test_a_splitter_that_shuffles_anew_is_asked_once(self) -> None:
        found = search(cv=ShuffleSplit(2, test_size=0.3), n_iter=4).fit(X, Y)
        check(found)
        assert found.max_size_ == 1050


FRAMES: dict[str, Any] = {
    "array": XR,
    "sparse": sparse.csr_matrix(XR),
    "pandas": pd.DataFrame(XR, columns=list("abcde")),
    "polars": pl.DataFrame(XR, schema=list("abcde")),
    "list": XR.tolist(),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_rows_may_come_in_any_container(kind: str) -> None:
    data = FRAMES[kind]
    found = search(Ridge(), {"alpha": loguniform(1e-3, 1e3)}, n_iter=5).fit(data, YR)
    check(found)
    assert len(np.unique(found.cv_results_["n_samples"])) > 1
    assert found.predict(data).shape == YR.shape
    if kind == "pandas":  # of other frames scikit-learn reads the names since 1.9
        assert list(found.feature_names_in_) == list("abcde")


@pytest.mark.slow
def test_targets_may_have_several_columns_or_be_a_frame() -> None:
    found = search(DecisionTreeRegressor(), {"max_depth": randint(1, 8)}, n_iter=5)
    assert found.fit(XR, np.column_stack([YR, -YR])).predict(XR).shape == (1500, 2)
    check(found)
    frame = pl.DataFrame({"y": Y})
    check(search(n_iter=4).fit(X, frame["y"]))
    check(search(n_iter=4).fit(X, pd.Series(Y)))
    indicator = np.eye(3, dtype=int)[Y]
    check(search(DecisionTreeClassifier(), {"max_depth": randint(1, 8)}, n_iter=4).fit(X, indicator))


@pytest.mark.parametrize(
    "space",
    [
        {"ridge__alpha": loguniform(1e-3, 1e3), "standardscaler": [StandardScaler(), "passthrough"]},
        Space({"ridge__alpha": Float(1e-3, 1e3, log=True)}),
        ConfigurationSpace({"ridge__alpha": (1e-3, 1e3)}),
    ],
    ids=["dict", "fabolas", "ConfigSpace"],
)
def test_pipelines_are_searched_in_spaces_of_any_kind(space: Any) -> None:
    found = search(make_pipeline(StandardScaler(), Ridge()), space, n_iter=5).fit(XR, YR)
    check(found)
    assert found.best_score_ > 0.9


class TestScoring:
    def test_losses_with_a_minus_sign_are_searched_as_losses(self) -> None:
        found = search(Ridge(), {"alpha": loguniform(1e-3, 1e6)}, scoring="neg_mean_squared_error", n_iter=10)
        found.fit(XR, YR)
        check(found)
        losses = [trial.loss for trial in found.trials_]
        assert losses == pytest.approx(-found.cv_results_["mean_test_score"])
        assert found.best_score_ > -40

    def test_a_score_too_large_for_a_loss_is_a_failed_trial(self) -> None:
        def diverged(estimator: Any, X: Any, y: Any) -> float:
            return -1e200 if estimator.alpha > 1.0 else -estimator.alpha

        found = search(Ridge(), {"alpha": [0.5, 2.0]}, scoring=diverged, n_iter=4).fit(XR, YR)
        by_alpha = {trial.config["alpha"]: trial for trial in found.trials_}
        assert (by_alpha[0.5].status, by_alpha[2.0].status) == ("complete", "failed")
        assert by_alpha[2.0].error == "its mean score is -1e+200"
        assert found.best_params_ == {"alpha": 0.5}

    def test_of_several_metrics_the_one_to_refit_by_decides(self) -> None:
        for refit in ("neg_log_loss", "accuracy"):
            found = search(scoring=["accuracy", "neg_log_loss"], refit=refit, n_iter=6).fit(X, Y)
            results = found.cv_results_
            full = results["n_samples"] == found.max_size_
            assert found.best_score_ == results[f"mean_test_{refit}"][full].max()
            assert results[f"rank_test_{refit}"][found.best_index_] == 1
            assert {"split0_test_accuracy", "rank_test_neg_log_loss"} <= set(results)

    def test_without_a_metric_to_refit_by_there_are_results_and_no_best(self) -> None:
        found = search(scoring=["accuracy", "neg_log_loss"], refit=False, n_iter=4).fit(X, Y)
        assert not hasattr(found, "best_index_")
        assert len(found.cv_results_["mean_test_accuracy"]) == 4

    def test_a_metric_that_a_callable_does_not_give_is_missed_after_one_candidate(self) -> None:
        calls = []

        def both(estimator: Any, X: Any, y: Any) -> dict[str, float]:
            calls.append(1)
            return {"accuracy": float(np.mean(estimator.predict(X) == y)), "one": 1.0}

        for refit in (True, "f1"):
            calls.clear()
            with pytest.raises(ValueError, match="refit must name one of 'accuracy', 'one'"):
                search(scoring=both, refit=refit).fit(X, Y)
            assert len(calls) == 3

    @pytest.mark.slow
    def test_a_callable_may_score_by_several_metrics(self) -> None:
        def both(estimator: Any, X: Any, y: Any) -> dict[str, float]:
            right = float(np.mean(estimator.predict(X) == y))
            return {"right": right, "wrong": 1 - right}

        found = search(scoring=both, refit="right", n_iter=5).fit(X, Y)
        assert found.best_score_ == found.cv_results_["mean_test_right"][found.best_index_]
        assert search(scoring=both, refit=False, n_iter=3).fit(X, Y).plot().axes

    def test_a_callable_to_refit_by_sees_trials_on_all_rows_only(self) -> None:
        seen: list[Any] = []

        def least(results: dict[str, Any]) -> int:
            seen.append(results)
            return int(np.argmin(results["mean_test_score"]))

        found = search(refit=least, n_iter=8).fit(X, Y)
        assert set(seen[0]["n_samples"]) == {1000}
        assert found.verified_
        assert found.best_params_ == seen[0]["params"][int(np.argmin(seen[0]["mean_test_score"]))]

    def test_training_scores_are_there_when_asked_for(self) -> None:
        found = search(return_train_score=True, n_iter=3).fit(X, Y)
        assert len(found.cv_results_["mean_train_score"]) == 3


class Fragile(LogisticRegression):
    """Fails for large C, in each fold or only where a certain row is trained on."""

    def __init__(self, C: float = 1.0, sometimes: bool = False) -> None:
        super().__init__(C=C)
        self.sometimes = sometimes

    def fit(self, X: NDArray[Any], y: Any, sample_weight: Any = None) -> "Fragile":
        if self.C > 0.1 and (not self.sometimes or (self.marked() == X).all(axis=1).any()):
            raise FloatingPointError("C is too large")
        return super().fit(X, y, sample_weight)  # type: ignore[no-any-return]

    @staticmethod
    def marked() -> Any:
        return X[0]


class Overflows(LogisticRegression):
    """Fails on many rows."""

    def fit(self, X: NDArray[Any], y: Any, sample_weight: Any = None) -> "Overflows":
        if len(X) > 300:
            raise MemoryError("too many rows")
        return super().fit(X, y, sample_weight)  # type: ignore[no-any-return]


class TestFailures:
    @pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
    def test_a_candidate_that_fails_is_a_row_without_a_score_and_a_warning(self) -> None:
        with pytest.warns(FitFailedWarning, match=r"(?s)of 12 trials failed in all folds.*C is too large"):
            found = search(Fragile(), n_iter=12).fit(X, Y)
        failed = np.isnan(found.cv_results_["mean_test_score"])
        assert failed.any()
        assert [params["C"] > 0.1 for params in found.cv_results_["params"]] == failed.tolist()
        assert [t.status == "failed" for t in found.trials_] == failed.tolist()
        assert found.best_params_["C"] <= 0.1
        assert found.verified_

    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
    def test_a_failing_candidate_never_wins_whatever_score_it_is_given(self) -> None:
        found = search(
            Fragile(sometimes=True), error_score=100.0, n_iter=12, verify=True, random_state=3
        ).fit(X, Y)
        assert found.cv_results_["mean_test_score"].max() > 1
        assert found.best_score_ <= 1
        assert found.best_params_["C"] <= 0.1
        complete = search(Fragile(), error_score=100.0, n_iter=12).fit(X, Y)
        assert complete.cv_results_["mean_test_score"].max() == 100
        assert complete.best_score_ <= 1

    def test_a_true_score_that_equals_the_one_for_errors_is_no_failure(self) -> None:
        rare = (np.random.default_rng(0).random(300) < 0.1).astype(int)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            found = search(scoring="f1", error_score=0, n_iter=5).fit(X[:300], rare)
        assert [trial.status for trial in found.trials_] == ["complete"] * 5
        assert found.error_score == 0

    def test_an_error_is_raised_where_it_is_to_be(self) -> None:
        with pytest.raises(FloatingPointError, match="C is too large"):
            search(Fragile(), error_score="raise", n_iter=12).fit(X, Y)

    @pytest.mark.slow
    def test_a_candidate_that_cannot_be_scored_never_wins_whatever_score_it_is_given(self) -> None:
        def picky(estimator: Any, X: Any, y: Any) -> float:
            if estimator.C > 0.1:
                raise ArithmeticError("C is too large to be scored")
            return float(np.mean(estimator.predict(X) == y))

        with pytest.warns(UserWarning, match="Scoring failed"):
            found = search(scoring=picky, error_score=100.0, n_iter=12).fit(X, Y)
        assert found.cv_results_["mean_test_score"].max() == 100
        assert found.best_params_["C"] <= 0.1
        assert found.best_score_ <= 1

    @pytest.mark.slow
    def test_an_infinite_score_never_wins(self) -> None:
        def boundless(estimator: Any, X: Any, y: Any) -> float:
            return np.inf if estimator.C > 0.1 else float(np.mean(estimator.predict(X) == y))

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of numpy and scikit-learn, about what is not finite
            found = search(scoring=boundless, n_iter=12).fit(X, Y)
        assert found.best_params_["C"] <= 0.1
        assert np.isfinite(found.best_score_)

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
    @pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
    @pytest.mark.filterwarnings("ignore:Scoring failed")
    @pytest.mark.slow
    def test_what_fails_on_few_rows_only_is_run_on_more(self) -> None:
        # More neighbours than the smallest training folds have rows.
        found = search(KNeighborsClassifier(), {"n_neighbors": range(101, 400)}, n_iter=20).fit(X, Y)
        check(found)
        rare = np.column_stack([np.arange(1500) % 2, np.arange(1500) % 97 == 0]).astype(int)
        found = search(
            MultiOutputClassifier(LogisticRegression()), {"estimator__C": loguniform(1e-3, 1)}, n_iter=14
        )
        check(found.fit(X, rare))

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
    @pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
    @pytest.mark.filterwarnings("ignore:Scoring failed")
    @pytest.mark.slow
    def test_where_few_rows_never_work_they_are_not_tried_again_and_again(self) -> None:
        found = search(KNeighborsClassifier(350, weights="distance"), {"p": uniform(1, 2)}, n_iter=15)
        sizes = found.fit(X[:, :2], Y).cv_results_["n_samples"]  # few columns: other metrics are slow
        failed = np.isnan(found.cv_results_["mean_test_score"])
        assert failed[:2].all()
        assert failed.sum() == 2  # 100 and 200 rows
        assert sizes[2:].min() == 400

    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
    @pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
    def test_few_candidates_that_can_be_fitted_are_found_among_many(self) -> None:
        found = search(Fragile(), {"C": loguniform(1e-3, 1e40)}, n_iter=40).fit(X, Y)
        scores = found.cv_results_["mean_test_score"]
        assert np.isnan(scores[:10]).all()
        assert found.best_params_["C"] <= 0.1

    def test_a_search_in_which_everything_fails_says_why(self) -> None:
        with pytest.raises(ValueError, match=r"(?s)all 3 trials of this fit failed.*C is too large"):
            search(Fragile(), {"C": loguniform(1, 10)}, n_iter=3).fit(X, Y)
        with pytest.raises(ValueError, match="all 100 trials of this fit failed"):
            search(Fragile(), {"C": loguniform(1, 10)}, n_iter=None, time_budget="1h").fit(X, Y)
        with pytest.raises(ValueError, match=r"(all \d+ trials|the only trial) of this fit failed"):
            search(Fragile(), {"C": loguniform(1, 10)}, n_iter=None, time_budget=0.05).fit(X, Y)

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
    @pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
    def test_folds_of_which_one_always_fails_are_no_answer(self) -> None:
        space = {"C": loguniform(1, 10)}
        with pytest.raises(ValueError, match="all 5 trials of this fit failed"):
            search(Fragile(sometimes=True), space, n_iter=5, min_size=1.0).fit(X, Y)
        # RandomizedSearchCV refits a candidate without a score, and raises what that raises.
        random = RandomizedSearchCV(Fragile(sometimes=True), space, n_iter=5, cv=3)
        with pytest.raises(FloatingPointError):
            random.fit(X, Y)
        assert np.isnan(random.best_score_)

    def test_however_short_the_time_one_candidate_is_run(self) -> None:
        found = search(n_iter=None, time_budget=1e-9).fit(X, Y)
        check(found)

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
    @pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
    def test_an_answer_that_could_not_be_trained_on_all_the_rows_is_said_to_be_none(self) -> None:
        with pytest.warns(UserWarning, match="no trial on all rows is complete"):
            found = search(Overflows(), n_iter=12, refit=False).fit(X, Y)
        assert len(found.cv_results_["params"]) == 12
        assert not found.verified_
        assert found.cv_results_["n_samples"][found.best_index_] <= 300


COMPUTED = ("trials_", "verified_", "predicted_loss_", "predicted_std_")
ATTRIBUTES = ("cv_results_", "best_params_", "best_score_", "study_", "trajectory_", "min_size_", "max_size_")


@pytest.mark.usefixtures("_forgotten")
class TestRefusals:
    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"n_iter": None}, "got neither time_budget nor n_iter"),
            ({"n_iter": 0}, "n_iter must be a number of trials >= 1"),
            ({"time_budget": "soon"}, "must be a duration, got 'soon'"),
            ({"min_size": 2}, "min_size must be at least 3, so that each class is present"),
            ({"min_size": 1.5}, "a whole number of rows >= 1 or a share"),
            ({"min_size": 10**6}, r"min_size must be at most \d+, .*got 1000000; give less, or a share"),
            ({"min_size": "small"}, "a whole number of rows >= 1 or a share"),
            ({"space": {"C": []}}, "at least one choice"),
            (
                {"space": {"a": uniform(1, 0)}},
                "parameter 'a': expected a range with low < high, got scipy's uniform",
            ),
            (
                {"space": [{"a": [1, 2]}, {"b": [1, 2]}]},
                "one dict name -> distribution or list.*got several spaces",
            ),
            ({"space": "a"}, "one dict name -> distribution or list.*got 'a'"),
        ],
    )
    def test_what_cannot_be_is_refused_before_the_first_training(self, given: Any, message: str) -> None:
        with pytest.raises((ValueError, TypeError), match=message):
            search(Remembers(), **given).fit(X, Y)
        assert Remembers.fits == []

    @pytest.mark.parametrize("name", [*COMPUTED, *ATTRIBUTES, "classes_", "n_features_in_"])
    def test_what_is_known_after_fit_is_unknown_before(self, name: str) -> None:
        assert hasattr(usual(6), name)
        assert not hasattr(search(), name)
        if name in COMPUTED:
            with pytest.raises(NotFittedError, match="not fitted yet"):
                getattr(search(), name)

    def test_what_was_not_fitted_has_no_figure(self) -> None:
        with pytest.raises(NotFittedError):
            search().plot()


class TestEstimator:
    def test_a_fit_starts_afresh(self) -> None:
        found = search(n_iter=4).fit(X, Y)
        first = found.study_
        assert len(found.fit(X, Y).trials_) == 4
        assert found.study_ is not first

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
    def test_a_fit_that_fails_leaves_what_an_earlier_one_found(self) -> None:
        found = search(n_iter=3).fit(X, Y)
        before = found.trials_, found.best_params_, found.predicted_loss_
        found.set_params(estimator=Fragile(), param_distributions={"C": loguniform(1, 10)}, cv=4)
        with pytest.raises(ValueError, match="trials of this fit failed"):
            found.fit(X, Y)
        assert (found.trials_, found.best_params_, found.predicted_loss_) == before
        assert found.n_splits_ == 3
        found.set_params(param_distributions={"C": "what"})
        with pytest.raises(TypeError, match="'C'"):
            found.fit(X, Y)
        assert not hasattr(found, "_setup")
        assert (found.trials_, found.best_params_, found.predicted_loss_) == before

    def test_where_there_is_no_best_it_says_so(self) -> None:
        with pytest.raises(NotFittedError):
            _ = search().predicted_loss_
        found = search(scoring=["accuracy", "f1_macro"], refit=False, n_iter=4).fit(X, Y)
        for name in ("predicted_loss_", "verified_"):
            with pytest.raises(AttributeError, match="with several metrics and refit=False there is no best"):
                getattr(found, name)

    def test_a_clone_is_unfitted_and_has_the_same_parameters(self) -> None:
        found = search(min_size=50).fit(X, Y)
        again = clone(found)
        assert not hasattr(again, "study_")
        assert again.get_params()["min_size"] == 50
        assert again.set_params(estimator__C=3.0).estimator.C == 3.0

    @pytest.mark.parametrize("stored", [False, *slow(True)])
    def test_a_fitted_search_can_be_pickled(self, stored: bool, tmp_path: Path) -> None:
        found = search(storage=tmp_path / "search.db").fit(X, Y) if stored else usual(6)
        again = pickle.loads(pickle.dumps(found))
        assert np.array_equal(again.predict(X), found.predict(X))
        assert again.predicted_loss_ == found.predicted_loss_
        assert again.trials_ == found.trials_

    def test_a_search_is_an_estimator_for_cross_validation(self) -> None:
        assert cross_val_score(search(n_iter=3), X, Y, cv=2).mean() > 0.5

    @pytest.mark.slow
    def test_folds_may_be_trained_in_parallel(self) -> None:
        def worker(estimator: Any, X: Any, y: Any) -> float:
            return float(os.getpid())

        results = search(n_iter=2, n_jobs=2, scoring=worker).fit(X, Y).cv_results_
        workers = {results[f"split{i}_test_score"][0] for i in range(3)}
        assert os.getpid() not in workers
        assert len(workers) <= 2
        check(search(n_iter=4, n_jobs=2).fit(X, Y))

    @pytest.mark.slow
    def test_a_search_in_a_worker_of_another_starts_no_workers_of_its_own(self) -> None:
        def worker(estimator: Any, X: Any, y: Any) -> float:
            return float(os.getpid())

        def workers(found: Any, X: Any, y: Any) -> float:
            used = {found.cv_results_[f"split{i}_test_score"][0] for i in range(3)}
            return float(len(used | {os.getpid()}))

        inner = search(n_iter=2, n_jobs=2, scoring=worker)
        assert cross_val_score(inner, X, Y, cv=2, n_jobs=2, scoring=workers).tolist() == [1.0, 1.0]


class TestStorage:
    def test_another_metric_to_search_by_is_refused(self, tmp_path: Path) -> None:
        given = {"scoring": ["accuracy", "neg_log_loss"], "storage": tmp_path / "search.db"}
        search(n_iter=4, refit="accuracy", **given).fit(X, Y)
        with pytest.raises(ValueError, match="metric 'accuracy', and this one has 'neg_log_loss'"):
            search(n_iter=6, refit="neg_log_loss", **given).fit(X, Y)

    def test_what_changes_decisions_cannot_change_when_a_search_is_continued(self, tmp_path: Path) -> None:
        path = tmp_path / "search.db"
        path.write_bytes(stored_search())
        with pytest.raises(
            ValueError,
            match=r"^storage holds a search that was begun with n_iter and without time_budget, and this one has the "
            r"time_budget '60s'; continue it without time_budget, or choose another file$",
        ):
            search(n_iter=6, time_budget="60s", storage=path).fit(X, Y)
        assert len(search(n_iter=5, storage=path).fit(X, Y).trials_) == 5

    @pytest.mark.parametrize("n_iter", [None, 5])
    def test_a_search_that_was_begun_with_a_time_budget_needs_one_again(self, n_iter: int | None) -> None:
        storage = MemoryStorage()
        search(n_iter=n_iter, time_budget=1e-3, verify=False, storage=storage).fit(X, Y)
        with pytest.raises(
            ValueError,
            match=r"^storage holds a search that was begun with a time_budget, and this one has n_iter alone; "
            r"continue it with a time_budget, or choose another file$",
        ):
            search(n_iter=6, storage=storage).fit(X, Y)

    def test_a_scoring_whose_best_value_is_unknown_cannot_replace_another_one(self, tmp_path: Path) -> None:
        def mine(estimator: Any, X: Any, y: Any) -> float:
            return float(estimator.score(X, y))

        path = tmp_path / "search.db"
        path.write_bytes(stored_search())
        with pytest.raises(
            ValueError, match=r"^storage holds a search with another scoring, and this one has .*mine"
        ):
            search(n_iter=6, scoring=mine, storage=path).fit(X, Y)

    def test_a_random_state_that_moves_on_cannot_be_kept(self, tmp_path: Path) -> None:
        with pytest.raises(
            ValueError, match="expected a whole number or None as random_state with a storage"
        ):
            search(storage=tmp_path / "search.db", random_state=np.random.RandomState(0)).fit(X, Y)

    def test_a_single_candidate_can_be_followed_by_others(self, tmp_path: Path) -> None:
        search(n_iter=1, storage=tmp_path / "search.db").fit(X, Y)
        assert len(search(n_iter=6, storage=tmp_path / "search.db").fit(X, Y).trials_) == 6

    def test_a_stored_search_goes_on_and_keeps_every_row(self, tmp_path: Path) -> None:
        path = tmp_path / "search.db"
        first = search(n_iter=6, storage=path, return_train_score=True).fit(X, Y)
        second = search(n_iter=9, storage=path, return_train_score=True).fit(X, Y)
        check(second)
        assert len(second.cv_results_["params"]) == 9
        for key in ("mean_test_score", "split1_test_score", "mean_fit_time", "mean_train_score", "n_samples"):
            assert np.array_equal(second.cv_results_[key][:6], first.cv_results_[key])

    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
    @pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
    def test_a_candidate_that_failed_in_one_fold_keeps_the_scores_of_the_others(self, tmp_path: Path) -> None:
        path = tmp_path / "search.db"
        first = search(Fragile(sometimes=True), n_iter=12, storage=path, random_state=3).fit(X, Y)
        splits = np.array([first.cv_results_[f"split{i}_test_score"] for i in range(3)])
        partly = np.isnan(splits).any(axis=0) & ~np.isnan(splits).all(axis=0)
        assert partly.any()
        second = search(Fragile(sometimes=True), n_iter=16, storage=path, random_state=3).fit(X, Y)
        again = np.array([second.cv_results_[f"split{i}_test_score"] for i in range(3)])
        before = len(partly)
        assert np.array_equal(again[:, :before], splits, equal_nan=True)
        assert np.isnan(second.cv_results_["mean_test_score"][:before][partly]).all()

    def test_a_search_whose_budget_is_used_up_gives_its_answer_again(self, tmp_path: Path) -> None:
        path = tmp_path / "search.db"
        first = search(n_iter=6, storage=path).fit(X, Y)
        second = search(n_iter=6, storage=path).fit(X, Y)
        check(second)
        assert len(second.trials_) == 7
        assert second.cv_results_["n_samples"][-1] == second.min_size_  # scikit-learn wants one: the cheapest
        assert second.best_score_ == first.best_score_

    def test_other_folds_or_another_space_are_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "search.db"
        search(n_iter=3, cv=[(np.arange(1000), np.arange(1000, 1500))] * 2, storage=path).fit(X, Y)
        with pytest.raises(ValueError, match="a search with folds 2, and this one has 3"):
            search(n_iter=3, storage=path).fit(X, Y)
        with pytest.raises(ValueError, match="C"):
            search(space={"C": loguniform(1, 2)}, n_iter=3, storage=path).fit(X, Y)
        assert len(read(path).trials) == 3

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("given", "targets", "message"),
        [
            ({}, Y[::-1], r"other targets \(y differs\)"),
            (
                {"cv": ShuffleSplit(3, train_size=1000)},
                Y,
                "other splits.*a cv that shuffles needs a random_state",
            ),
            ({"scoring": "neg_log_loss"}, Y, "scoring 'score', and this one has 'neg_log_loss'"),
            ({"scoring": ["accuracy", "f1_macro"], "refit": "accuracy"}, Y, "has 'accuracy, f1_macro'"),
            ({"return_train_score": True}, Y, "return_train_score False"),
            ({"scoring": make_scorer(f1_score, average="macro")}, Y, "scoring"),
            (
                {"estimator": LogisticRegression(fit_intercept=False)},
                Y,
                "LogisticRegression\\(fit_intercept=False",
            ),
            ({"estimator": RidgeClassifier(), "space": {"alpha": loguniform(1e-4, 1e2)}}, Y, "C|alpha"),
        ],
    )
    def test_another_search_is_refused_before_anything_is_added(
        self, given: Any, targets: Any, message: str, tmp_path: Path
    ) -> None:
        path = tmp_path / "search.db"
        path.write_bytes(stored_search())
        with pytest.raises(ValueError, match=message):
            search(n_iter=6, storage=path, **given).fit(X, targets)
        assert len(search(n_iter=5, storage=path).fit(X, Y).trials_) == 5

    @pytest.mark.slow
    def test_other_rows_are_refused(self, tmp_path: Path) -> None:
        for given in (X, pd.DataFrame(X), sparse.csr_array(X)):
            path = tmp_path / f"{type(given).__name__}.db"
            search(n_iter=2, storage=path).fit(given, Y)
            with pytest.raises(ValueError, match=r"holds a search with other data \(X differs\)"):
                search(n_iter=6, storage=path).fit(2 * given, Y)
            assert len(search(n_iter=3, storage=path).fit(given.copy(), Y).trials_) == 3

    def test_the_same_targets_may_lie_otherwise_in_memory(self, tmp_path: Path) -> None:
        two, path = np.column_stack([YR, -YR]), tmp_path / "search.db"
        space = {"n_neighbors": randint(1, 20)}
        search(KNeighborsRegressor(), space, n_iter=3, storage=path).fit(XR, two)
        found = search(KNeighborsRegressor(), space, n_iter=5, storage=path).fit(XR, np.asfortranarray(two))
        assert len(found.trials_) == 5

    @pytest.mark.slow
    def test_the_same_rows_may_lie_otherwise_in_memory(self, tmp_path: Path) -> None:
        extended = pd.DataFrame(X)
        extended[6] = 1.0  # in a block of its own, until it is copied
        for one, other in (
            (X, np.asfortranarray(X)),
            (sparse.csr_array(X), sparse.csc_array(X)),
            (extended, extended.copy()),
        ):
            path = tmp_path / f"{type(one).__name__}.db"
            search(n_iter=2, storage=path).fit(one, Y)
            assert len(search(n_iter=3, storage=path).fit(other, Y).trials_) == 3

    def test_a_trial_that_was_interrupted_does_not_count(self, tmp_path: Path) -> None:
        space, path = {"n_neighbors": randint(1, 20)}, tmp_path / "search.db"
        Interrupts.left = 14
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            search(Interrupts(), space, n_iter=8, storage=path).fit(XR, YR)
        found = search(Interrupts(), space, n_iter=8, storage=path).fit(XR, YR)
        assert len(found.cv_results_["params"]) == 8
        assert [trial.status for trial in found.trials_].count("abandoned") == 1


def first_space(path: Path) -> Space:
    return Space({"C": Float(1e-4, 1e2, log=True)}, {"n_samples": (100, 1000)})


class Interrupts(KNeighborsRegressor):
    """Presses Ctrl-C when it is fitted for the n-th time."""

    left = 0

    def fit(self, X: Any, y: Any) -> "Interrupts":
        Interrupts.left -= 1
        if Interrupts.left == 0:
            signal.raise_signal(signal.SIGINT)
        return super().fit(X, y)  # type: ignore[no-any-return]


class TestInterrupt:
    def test_an_interrupt_keeps_what_was_found(self) -> None:
        assert threading.current_thread() is threading.main_thread()
        Interrupts.left = 11  # the second fold of the fourth candidate
        with (
            pytest.warns(UserWarning, match="interrupted after 3 trials"),
            pytest.warns(UserWarning, match="no trial on all rows is complete"),
        ):
            found = search(Interrupts(), {"n_neighbors": randint(1, 20)}, n_iter=30).fit(XR, YR)
        assert len(found.cv_results_["params"]) == 3
        assert [t.status for t in found.trials_] == ["complete"] * 3 + ["abandoned"]
        assert found.best_params_ == found.cv_results_["params"][found.best_index_]
        assert found.predict(XR).shape == YR.shape
        assert not found.verified_

    def test_an_interrupt_before_anything_was_found_is_an_interrupt(self) -> None:
        Interrupts.left = 2
        with pytest.raises(KeyboardInterrupt):
            search(Interrupts(), {"n_neighbors": randint(1, 20)}, n_iter=30).fit(XR, YR)


class TestDisplay:
    def test_silent_by_default_a_line_on_request(self, capfd: pytest.CaptureFixture[str]) -> None:
        search(n_iter=3).fit(X, Y)
        assert capfd.readouterr() == ("", "")
        search(n_iter=3, verbose=1).fit(X, Y)
        shown = capfd.readouterr()
        assert "3 / 3 trials" in shown.err
        best = re.search(r"best (\S+) ±", shown.err.splitlines()[-1])
        assert best is not None
        assert 0.6 < float(best[1]) < 0.9  # an accuracy: the errors are below 0.4
        assert shown.out == ""
        search(n_iter=3, verbose=2).fit(X, Y)
        assert "Fitting 3 folds for each of 1 candidates" in capfd.readouterr().out

    def test_the_figure_shows_every_candidate_that_did_not_fail(self) -> None:
        from fabolas.sklearn.plot import plot_data

        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "One or more of the test scores are non-finite")
            warnings.simplefilter("ignore", FitFailedWarning)
            found = search(Fragile(), n_iter=12).fit(X, Y)
        shown = plot_data(found)
        complete = [trial for trial in found.trials_ if trial.status == "complete"]
        assert len(shown.scores) == len(complete) < 12
        assert (np.diff(shown.seconds) > 0).all()
        assert shown.scores[shown.best_index] == found.best_score_ == shown.best[-1]
        figure = found.plot()
        assert len(figure.axes) == 2
        assert figure.axes[0].get_ylabel() == "mean test score"
