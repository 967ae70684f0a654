"""Text that identifies an estimator or a scoring."""

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import fbeta_score, make_scorer, mean_absolute_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC

from fabolas.sklearn.description import describe_estimator, describe_scoring


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
        words = [describe_estimator(estimator, searched) for estimator in others]
        assert len(set(words)) == len(others)

    def test_what_is_searched_or_indifferent_is_left_out(self) -> None:
        one = describe_estimator(self.pipeline(), ("svc__C",))
        assert one == describe_estimator(self.pipeline(C=7.0, cache_size=500, random_state=3), ("svc__C",))
        assert one == describe_estimator(clone(self.pipeline()), ("svc__C",))
        assert one != describe_estimator(self.pipeline(C=7.0), ())
        nested = BaggingClassifier(SVC(C=3.0))
        assert "C" not in describe_estimator(nested, ("estimator__C",)).replace("SVC", "").replace(
            "Classifier", ""
        )
        steps = describe_estimator(self.pipeline(kernel="linear"), ("svc",))
        assert steps == describe_estimator(make_pipeline(StandardScaler(), SVC()), ("svc",))

    def test_words_are_the_same_in_another_process(self) -> None:
        assert " at 0x" not in describe_estimator(FunctionTransformer(lambda x: x), ())
        assert describe_estimator(FunctionTransformer(kw_args={"a": 1}), ()) == (
            "FunctionTransformer(kw_args={'a': 1})"
        )
        words = CountVectorizer(vocabulary={"c", "a", "b"})
        assert describe_estimator(words, ()) == "CountVectorizer(vocabulary={'a', 'b', 'c'})"
        assert " at 0x" not in describe_scoring(lambda estimator, X, y: 1.0)

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
        words = [describe_scoring(scoring) for scoring in others]
        assert len(set(words)) == len(others)
        assert describe_scoring(("f1", "accuracy")) == describe_scoring(["accuracy", "f1"])
