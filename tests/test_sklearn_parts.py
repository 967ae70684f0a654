"""The parts of the search for scikit-learn: folds, scores, rows and distributions."""

import math
from typing import Any

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import fbeta_score, make_scorer, mean_absolute_error
from sklearn.model_selection import KFold, StratifiedKFold, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC

from fabolas import Categorical, Fidelity, Float, Integer, Ordinal, Space
from fabolas.sklearn.description import estimator_in_words, scoring_in_words
from fabolas.sklearn.distributions import space_of
from fabolas.sklearn.folds import Folds, Subsampled, labels_of
from fabolas.sklearn.rows import Row, formattable, ranks, row_of
from fabolas.sklearn.scores import Loss, loss_of


def folds_of(splitter: Any, n: int, labels: np.ndarray | None = None) -> Folds:
    return Folds(tuple(splitter.split(np.zeros((n, 1)), labels)), labels)


def rows_at(folds: Folds, size: int, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    return list(Subsampled(folds, folds.orders(seed), size).split(None))


class TestFolds:
    labels = np.random.default_rng(0).choice(4, size=4000, p=[0.6, 0.3, 0.09, 0.01])

    def test_at_full_size_the_folds_are_those_of_the_splitter(self) -> None:
        splitter = StratifiedKFold(3)
        folds = folds_of(splitter, 4000, self.labels)
        for ours, theirs in zip(
            rows_at(folds, folds.full), splitter.split(np.zeros((4000, 1)), self.labels), strict=True
        ):
            assert np.array_equal(ours[0], theirs[0])
            assert np.array_equal(ours[1], theirs[1])

    @given(st.integers(30, 2666), st.integers(30, 2666), st.integers(0, 5))
    def test_training_folds_are_nested_and_test_folds_stay(self, a: int, b: int, seed: int) -> None:
        folds = folds_of(StratifiedKFold(3), 4000, self.labels)
        small, large = rows_at(folds, min(a, b), seed), rows_at(folds, max(a, b), seed)
        for (few, test), (more, same), (_, whole) in zip(small, large, folds.splits, strict=True):
            assert set(few) <= set(more)
            assert abs(len(few) - min(a, b)) <= 1
            assert np.array_equal(test, same)
            assert np.array_equal(test, whole)

    def test_every_class_is_in_every_training_fold_in_about_its_share(self) -> None:
        folds = folds_of(StratifiedKFold(3), 4000, self.labels)
        whole = np.bincount(self.labels) / 4000
        for size in (folds.smallest(), 300, 1000):
            for train, _ in rows_at(folds, size):
                share = np.bincount(self.labels[train], minlength=4) / len(train)
                assert (share > 0).all()
                assert np.abs(share - whole).max() < 4 / size

    def test_another_seed_gives_other_rows(self) -> None:
        folds = folds_of(KFold(3), 900)
        assert not np.array_equal(rows_at(folds, 100, 0)[0][0], rows_at(folds, 100, 1)[0][0])

    def test_folds_of_different_sizes_shrink_in_proportion(self) -> None:
        folds = folds_of(TimeSeriesSplit(4), 5000)
        assert [len(train) for train, _ in rows_at(folds, folds.full // 2)] == [500, 1000, 1500, 2000]

    def test_the_smallest_size_follows_its_rule(self) -> None:
        assert folds_of(KFold(2), 1000).smallest() == 100
        assert folds_of(KFold(2), 100_000).smallest() == math.ceil(50_000 / 64)
        assert folds_of(KFold(2), 798).smallest() == 399  # a quarter of the rows is not enough
        # 1 % of the rows are of the rarest class: five of them are in 500 rows, but a sixteenth is 125.
        labels = np.repeat([0, 1], [3960, 40])
        assert folds_of(StratifiedKFold(2), 4000, labels).smallest() == 125
        many = np.tile(np.arange(200), 10)
        assert folds_of(StratifiedKFold(2), 2000, many).smallest() == 200

    def test_targets_that_are_no_classes_are_not_stratified(self) -> None:
        assert labels_of(None) is None
        assert labels_of(np.zeros((2, 2, 2))) is None
        assert np.array_equal(labels_of(["b", "a", "b"]), [1, 0, 1])
        assert np.array_equal(labels_of(np.array([[3], [1]])), [1, 0])

    def test_a_row_of_several_labels_counts_for_its_rarest(self) -> None:
        # The first column has 0 four times and 1 twice, the second 0 five times and 5 once.
        y = np.array([[0, 0], [0, 0], [0, 0], [1, 0], [1, 5], [0, 0]])
        labels = labels_of(y)
        assert labels is not None
        assert labels.tolist() == [0, 0, 0, 1, 2, 0]
        assert np.array_equal(labels_of(np.array([["a", "x"], ["b", "x"], ["b", "x"]])), [0, 1, 1])


@pytest.mark.parametrize(
    ("scoring", "refit", "expected"),
    [
        (None, True, Loss("score", 1.0)),
        ("roc_auc", True, Loss("score", 1.0)),
        ("neg_log_loss", True, Loss("score", 0.0)),
        ("mutual_info_score", True, Loss("score", None)),
        (["accuracy", "neg_log_loss"], "neg_log_loss", Loss("neg_log_loss", 0.0)),
        (["neg_log_loss", "f1_macro"], False, Loss("neg_log_loss", 0.0)),
        ({"a": "accuracy", "b": "neg_brier_score"}, "b", Loss("b", 0.0)),
        (make_scorer(mean_absolute_error, greater_is_better=False), True, Loss("score", 0.0)),
        (make_scorer(fbeta_score, beta=2), True, Loss("score", 1.0)),
        (make_scorer(lambda y, p: 17.0), True, Loss("score", None)),
        (lambda estimator, X, y: 17.0, True, Loss("score", None)),
        (lambda estimator, X, y: {"a": 1.0}, "a", Loss("a", None)),
    ],
)
def test_the_loss_is_the_distance_to_the_best_score_where_that_is_known(
    scoring: Any, refit: Any, expected: Loss
) -> None:
    loss = loss_of(LogisticRegression(), scoring, refit)
    assert loss == expected
    assert loss.of(0.25) == (loss.best or 0.0) - 0.25
    assert loss.warp == ("excess" if loss.best is None else "log")


def test_the_score_of_an_estimator_that_is_no_predictor_has_no_known_best() -> None:
    assert loss_of(Ridge(), None, True).best == 1.0
    assert loss_of(KMeans(), None, True).best is None


def test_where_folds_differ_in_size_none_has_fewer_rows_than_the_smallest() -> None:
    folds = folds_of(TimeSeriesSplit(8), 1500)
    few = [len(train) for train, _ in Subsampled(folds, folds.orders(0), 100, 100).split(None)]
    assert min(few) == 100
    all_of_it = [len(train) for train, _ in Subsampled(folds, folds.orders(0), folds.full, 1000).split(None)]
    assert all_of_it == [len(train) for train, _ in folds.splits]


def test_many_small_classes_are_classes_all_the_same() -> None:
    labels = np.repeat(np.arange(150), 2)[np.random.default_rng(0).permutation(300)]
    folds = Folds(((np.arange(200), np.arange(200, 300)),), labels)
    present = len(np.unique(labels[:200]))
    ((train, _),) = Subsampled(folds, folds.orders(0), present).split(None)
    assert len(np.unique(labels[train])) == present == len(train)


class TestRows:
    def fold(self, score: Any, error: str | None = None) -> dict[str, Any]:
        return {"fit_time": 1.0, "score_time": 0.5, "test_scores": score, "fit_error": error}

    def test_the_score_is_the_mean_over_the_folds(self) -> None:
        assert row_of({}, 9, 1.0, [self.fold(0.25), self.fold(0.75)], "score").score("score") == 0.5
        several = row_of({}, 9, 1.0, [self.fold({"a": 1.0, "b": 3.0})], "b")
        assert several.score("b") == 3.0

    def test_a_fold_that_failed_fails_the_candidate_whatever_its_score(self) -> None:
        row = row_of({}, 9, 1.0, [self.fold(0.9), self.fold(100.0, "Traceback")], "score")
        assert math.isnan(row.score("score"))
        assert row.error == "Traceback"

    def test_a_candidate_without_folds_gets_the_score_for_errors_of_each_metric(self) -> None:
        rows = [
            Row({}, 9, 4.0, (), "failed"),
            row_of({}, 9, 1.0, [self.fold({"a": 1.0, "b": 2.0})] * 2, "a"),
        ]
        folds = formattable(rows, 2, -1.0)
        assert len(folds) == 4
        assert folds[0]["test_scores"] == {"a": -1.0, "b": -1.0}
        assert folds[1]["fit_time"] == 2.0

    def test_a_fold_that_failed_gets_the_score_for_errors_and_the_others_keep_theirs(self) -> None:
        row = row_of({}, 9, 1.0, [self.fold(0.9), self.fold(math.nan, "Traceback"), self.fold(0.0)], "score")
        assert [fold["test_scores"] for fold in formattable([row], 3, 0.0)] == [0.9, 0.0, 0.0]

    def test_what_could_not_be_scored_has_failed_and_a_score_of_nothing_has_not(self) -> None:
        assert row_of({}, 9, 1.0, [self.fold(0.9), self.fold(math.nan)], "score").error is not None
        assert row_of({}, 9, 1.0, [self.fold(0.9), self.fold(0.0)], "score").error is None

    def test_a_metric_that_nobody_searches_by_may_be_no_number(self) -> None:
        row = row_of({}, 9, 1.0, [self.fold({"a": 0.5, "b": math.nan})], "a")
        assert row.score("a") == 0.5
        assert math.isnan(formattable([row], 1, -1.0)[0]["test_scores"]["b"])
        assert row_of({}, 9, 1.0, [self.fold({"a": 0.5, "b": math.nan})], "b").error is not None

    def test_rows_at_full_size_rank_before_all_others_and_failed_ones_last(self) -> None:
        scores = [0.9, 0.5, 0.7, math.nan, 0.7, 0.99, math.nan]
        full = [False, True, True, True, True, False, False]
        assert ranks(scores, full).tolist() == [5, 3, 1, 6, 1, 4, 6]


class TestDistributions:
    def test_scipy_distributions_and_lists_become_the_same_ranges(self) -> None:
        space = space_of(
            {
                "a": stats.uniform(1, 2),
                "b": stats.loguniform(1e-3, 1e3),
                "c": stats.randint(2, 9),
                "d": ["x", None],
                "e": [10, 20, 50],
                "f": np.array([3.0, 2.0, 1.0]),
                "g": [3, 1, 2],
                "h": Integer(1, 8, log=True),
            },
            None,
        )
        assert space == Space(
            {
                "a": Float(1, 3),
                "b": Float(1e-3, 1e3, log=True),
                "c": Integer(2, 8),
                "d": Categorical(("x", None)),
                "e": Ordinal((10, 20, 50)),
                "f": Ordinal((3.0, 2.0, 1.0)),
                "g": Categorical((3, 1, 2)),
                "h": Integer(1, 8, log=True),
            }
        )

    @pytest.mark.parametrize(
        "spec", [stats.norm(0, 1), stats.loguniform(1, 10, loc=2), stats.poisson(3), 5, object()]
    )
    def test_what_cannot_be_searched_is_refused_by_name(self, spec: Any) -> None:
        with pytest.raises(TypeError, match=r"parameter 'C': expected scipy\.stats\.uniform"):
            space_of({"C": spec}, None)

    def test_a_choice_that_is_there_twice_is_one_choice(self) -> None:
        assert space_of({"C": [3, 3, 4]}, None) == Space({"C": Categorical((3, 4))})

    def test_a_list_of_one_space_is_that_space(self) -> None:
        assert space_of([{"C": [3, 4]}], None) == Space({"C": Categorical((3, 4))})  # type: ignore[arg-type]

    def test_a_distribution_without_its_range_is_to_be_called(self) -> None:
        with pytest.raises(TypeError, match=r"got scipy's uniform itself; call it: uniform\(\.\.\.\)"):
            space_of({"C": stats.uniform}, None)

    def test_several_spaces_are_refused(self) -> None:
        with pytest.raises(TypeError, match="got several spaces in a list; put alternatives"):
            space_of([{"a": [1, 2]}, {"b": [1, 2]}], None)  # type: ignore[arg-type]

    def test_spaces_of_ours_and_of_configspace_are_taken_as_they_are(self) -> None:
        rows = Fidelity(10, 100)
        for parameters in (Space({"C": Float(0, 1)}), ConfigurationSpace({"C": (0.0, 1.0)})):
            space = space_of(parameters, rows)
            assert space.names == ("C",)
            assert space.fidelities == {"n_samples": rows}
        with pytest.raises(ValueError, match="got one with the fidelity size"):
            space_of(Space({"C": Float(0, 1)}, {"size": (1, 2)}), rows)

    def test_the_number_of_rows_gives_way_to_a_parameter_of_that_name(self) -> None:
        assert "n_samples" not in space_of({"n_samples": [1, 2]}, Fidelity(10, 100)).fidelities

    def test_a_range_of_one_number_is_that_number(self) -> None:
        space = space_of({"a": stats.randint(3, 4), "b": stats.uniform(0, 1)}, None)
        assert space.decode(np.array([0.5]))[0]["a"] == 3

    def test_what_is_wrong_is_said_of_the_parameter_by_its_name(self) -> None:
        for wrong in ([], [1, [], []], stats.norm(0, 1), stats.loguniform(1, 10, loc=2), object()):
            with pytest.raises((ValueError, TypeError), match="parameter 'b': "):
                space_of({"a": [1, 2], "b": wrong}, None)
        with pytest.raises(TypeError, match="got scipy's norm\\(loc=1\\)"):
            space_of({"b": stats.norm(loc=1)}, None)

    def test_no_shift_is_no_shift(self) -> None:
        space = space_of({"a": stats.loguniform(a=1.0, b=10.0, loc=0)}, None)
        assert space.decode(np.array([1.0]))[0] == {"a": 10.0}


class TestWords:
    def pipeline(self, scaler: Any = None, **given: Any) -> Any:
        return make_pipeline(scaler or StandardScaler(), SVC(**given))

    def test_what_gives_other_scores_has_other_words(self) -> None:
        searched = ("svc__C",)
        others = [
            self.pipeline(),
            self.pipeline(kernel="linear"),
            self.pipeline(MinMaxScaler()),
            self.pipeline(StandardScaler(with_mean=False)),
            make_pipeline(StandardScaler(), LogisticRegression()),
            make_pipeline(FunctionTransformer(np.log1p), SVC()),
            make_pipeline(FunctionTransformer(np.sqrt), SVC()),
            SVC(),
            BaggingClassifier(SVC()),
            BaggingClassifier(SVC(kernel="linear")),
            VotingClassifier([("a", SVC())]),
            VotingClassifier([("a", LinearSVC())]),
        ]
        words = [estimator_in_words(estimator, searched) for estimator in others]
        assert len(set(words)) == len(others)

    def test_what_is_searched_or_indifferent_is_left_out(self) -> None:
        one = estimator_in_words(self.pipeline(), ("svc__C",))
        assert one == estimator_in_words(self.pipeline(C=7.0, cache_size=500, random_state=3), ("svc__C",))
        assert one == estimator_in_words(clone(self.pipeline()), ("svc__C",))
        assert one != estimator_in_words(self.pipeline(C=7.0), ())
        nested = BaggingClassifier(SVC(C=3.0))
        assert "C" not in estimator_in_words(nested, ("estimator__C",)).replace("SVC", "").replace(
            "Classifier", ""
        )
        steps = estimator_in_words(self.pipeline(kernel="linear"), ("svc",))
        assert steps == estimator_in_words(make_pipeline(StandardScaler(), SVC()), ("svc",))

    def test_words_are_the_same_in_another_process(self) -> None:
        assert " at 0x" not in estimator_in_words(FunctionTransformer(lambda x: x), ())
        assert estimator_in_words(FunctionTransformer(kw_args={"a": 1}), ()) == (
            "FunctionTransformer(kw_args={'a': 1})"
        )
        words = CountVectorizer(vocabulary={"c", "a", "b"})
        assert estimator_in_words(words, ()) == "CountVectorizer(vocabulary={'a', 'b', 'c'})"
        assert " at 0x" not in scoring_in_words(lambda estimator, X, y: 1.0)

    def test_scorings_are_told_apart(self) -> None:
        f1 = make_scorer(fbeta_score, beta=1.0)
        others = [
            None,
            "accuracy",
            f1,
            make_scorer(fbeta_score, beta=2.0),
            make_scorer(mean_absolute_error, greater_is_better=False),
            ["accuracy", "f1"],
            {"a": "accuracy"},
            {"a": "f1"},
            {"a": f1},
        ]
        words = [scoring_in_words(scoring) for scoring in others]
        assert len(set(words)) == len(others)
        assert scoring_in_words(("f1", "accuracy")) == scoring_in_words(["accuracy", "f1"])
