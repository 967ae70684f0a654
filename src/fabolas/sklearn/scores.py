"""Translates scores, which scikit-learn maximises, to losses, which the study minimises."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.base import is_classifier, is_regressor

from fabolas.transforms import FitTransform, log_excess_transform, log_transform

# Metrics of scikit-learn without an upper bound.
_UNBOUNDED = ("mutual_info_score", "positive_likelihood_ratio", "dcg_score", "calinski_harabasz_score")


@dataclass(frozen=True)
class ScoreLoss:
    """The metric of the search as a loss: `upper_bound` - score, or -score if the score has no known upper bound.

    Attributes:
        metric: Its name in ``cv_results_``, after ``mean_test_``.
        upper_bound: Of the score: 1 for accuracy, AUC, F1 and R², 0 for negated losses; None if unknown.
    """

    metric: str
    upper_bound: float | None

    def to_loss(self, score: float) -> float:
        """The loss of a score."""
        return (self.upper_bound or 0.0) - score

    def to_score(self, loss: float) -> float:
        """The score of a loss."""
        return (self.upper_bound or 0.0) - loss

    @property
    def transform(self) -> FitTransform:
        """Models see log(loss), or log(loss - lowest loss) if the lower bound of the loss is unknown."""
        return log_excess_transform if self.upper_bound is None else log_transform


def loss_of(estimator: Any, scoring: Any, refit: Any) -> ScoreLoss:
    """The loss of the metric that `refit` names, or of the first one."""
    if scoring is None:
        bounded = is_classifier(estimator) or is_regressor(estimator)
        return ScoreLoss("score", 1.0 if bounded else None)
    if isinstance(scoring, str) or (callable(scoring) and not isinstance(refit, str)):
        return ScoreLoss("score", _upper_bound(scoring))
    if callable(scoring):
        return ScoreLoss(
            refit, None
        )  # a callable that returns a dict of scores, unknown before the first call
    name = refit if isinstance(refit, str) else next(iter(scoring))
    return ScoreLoss(name, _upper_bound(scoring[name] if isinstance(scoring, Mapping) else name))


def _upper_bound(scorer: Any) -> float | None:
    """The upper bound of a score; a scorer made by ``make_scorer`` knows its sign and its metric."""
    if isinstance(scorer, str):
        if scorer in _UNBOUNDED:
            return None
        return 0.0 if scorer.startswith("neg_") else 1.0
    if getattr(scorer, "_sign", None) == -1:
        return 0.0
    metric = getattr(scorer, "_score_func", None)
    from_sklearn = getattr(metric, "__module__", "").startswith("sklearn.metrics")
    return 1.0 if from_sklearn and getattr(metric, "__name__", "") not in _UNBOUNDED else None
