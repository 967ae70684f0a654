"""Scores as losses."""

from typing import Any

import pytest
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import fbeta_score, make_scorer, mean_absolute_error

from fabolas.sklearn.scores import ScoreLoss, loss_of
from fabolas.transforms import log_excess_transform, log_transform


@pytest.mark.parametrize(
    ("scoring", "refit", "expected"),
    [
        (None, True, ScoreLoss("score", 1.0)),
        ("roc_auc", True, ScoreLoss("score", 1.0)),
        ("neg_log_loss", True, ScoreLoss("score", 0.0)),
        ("mutual_info_score", True, ScoreLoss("score", None)),
        (["accuracy", "neg_log_loss"], "neg_log_loss", ScoreLoss("neg_log_loss", 0.0)),
        (["neg_log_loss", "f1_macro"], False, ScoreLoss("neg_log_loss", 0.0)),
        ({"a": "accuracy", "b": "neg_brier_score"}, "b", ScoreLoss("b", 0.0)),
        (make_scorer(mean_absolute_error, greater_is_better=False), True, ScoreLoss("score", 0.0)),
        (make_scorer(fbeta_score, beta=2), True, ScoreLoss("score", 1.0)),
        (make_scorer(lambda y, p: 17.0), True, ScoreLoss("score", None)),
        (lambda estimator, X, y: 17.0, True, ScoreLoss("score", None)),
        (lambda estimator, X, y: {"a": 1.0}, "a", ScoreLoss("a", None)),
    ],
)
def test_the_loss_is_the_distance_to_the_best_score_where_that_is_known(
    scoring: Any, refit: Any, expected: ScoreLoss
) -> None:
    loss = loss_of(LogisticRegression(), scoring, refit)
    assert loss == expected
    assert loss.to_loss(0.25) == (loss.upper_bound or 0.0) - 0.25
    assert loss.transform is (log_excess_transform if loss.upper_bound is None else log_transform)


def test_the_score_of_an_estimator_that_is_no_predictor_has_no_known_best() -> None:
    assert loss_of(Ridge(), None, True).upper_bound == 1.0
    assert loss_of(KMeans(), None, True).upper_bound is None
