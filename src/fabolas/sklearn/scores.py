"""Scores, of which more is better, as losses, of which the models like those that are small at the optimum."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.base import is_classifier, is_regressor

from fabolas.outputs import Warp

# Those of scikit-learn's metrics that have no best value.
_UNBOUNDED = ("mutual_info_score", "positive_likelihood_ratio", "dcg_score", "calinski_harabasz_score")


@dataclass(frozen=True)
class Loss:
    """Which metric is searched by, and how its score becomes a loss: `best` - score, or -score without a best.

    Attributes:
        metric: Its name in ``cv_results_``, after ``mean_test_``.
        best: The score that cannot be surpassed: 1 for accuracy, AUC, F1, R² and the like, 0 for scores that
            are losses with a minus sign; None if it is not known.
    """

    metric: str
    best: float | None

    def of(self, score: float) -> float:
        """The loss of a score."""
        return (self.best or 0.0) - score

    def score(self, loss: float) -> float:
        """The score of a loss."""
        return (self.best or 0.0) - loss

    @property
    def warp(self) -> Warp:
        """What the model takes the logarithm of: the loss, or where its lowest value is unknown, the excess."""
        return "excess" if self.best is None else "log"


def loss_of(estimator: Any, scoring: Any, refit: Any) -> Loss:
    """The loss to search by: of the metric that `refit` names, or the first of several."""
    if scoring is None:
        bounded = is_classifier(estimator) or is_regressor(estimator)
        return Loss("score", 1.0 if bounded else None)
    if isinstance(scoring, str) or (callable(scoring) and not isinstance(refit, str)):
        return Loss("score", _best(scoring))
    if callable(scoring):
        return Loss(refit, None)  # it returns a dict of scores, which nobody knows before
    name = refit if isinstance(refit, str) else next(iter(scoring))
    return Loss(name, _best(scoring[name] if isinstance(scoring, Mapping) else name))


def _best(scorer: Any) -> float | None:
    """The best score there can be. A scorer made by ``make_scorer`` knows its sign and the metric it calls."""
    if isinstance(scorer, str):
        if scorer in _UNBOUNDED:
            return None
        return 0.0 if scorer.startswith("neg_") else 1.0
    if getattr(scorer, "_sign", None) == -1:
        return 0.0
    metric = getattr(scorer, "_score_func", None)
    theirs = getattr(metric, "__module__", "").startswith("sklearn.metrics")
    return 1.0 if theirs and getattr(metric, "__name__", "") not in _UNBOUNDED else None
