"""A row of ``cv_results_``: one candidate on one number of rows, with what each fold gave."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fabolas._types import IntArray
from fabolas.history import Trial

_SCORES = ("test_scores", "train_scores")
_KEPT = ("fit_time", "score_time", *_SCORES)  # of what scikit-learn gives for a fold

Fold = Mapping[str, Any]


@dataclass(frozen=True)
class Row:
    """One evaluated candidate.

    Attributes:
        params: The candidate.
        size: Rows of the largest training fold.
        seconds: What the evaluation took.
        folds: What scikit-learn gives for each fold; none if no fold could be fitted.
        error: Why the candidate failed, None if it did not.
    """

    params: dict[str, Any]
    size: int
    seconds: float
    folds: tuple[Fold, ...]
    error: str | None = None

    def score(self, metric: str) -> float:
        """The mean over the folds; NaN if a fold has none, or could not be fitted whatever score it was given."""
        if not self.folds or self.error is not None:
            return math.nan
        return float(np.mean([_metric(fold["test_scores"], metric) for fold in self.folds]))

    def info(self) -> dict[str, Any]:
        """What the record keeps, enough to make the row again."""
        return {"folds": [_kept(fold) for fold in self.folds]}

    @classmethod
    def of_trial(cls, trial: Trial, size: int) -> "Row":
        """The row of an earlier fit's trial."""
        return cls(trial.config, size, trial.cost, tuple(trial.info.get("folds", ())), trial.error)


def row_of(params: dict[str, Any], size: int, seconds: float, folds: Sequence[Fold], metric: str) -> Row:
    """The row of folds as scikit-learn gives them: failed if a single one could not be fitted, or has no score."""
    error = next((fold["fit_error"] for fold in folds if fold["fit_error"] is not None), None)
    if error is None and any(math.isnan(_metric(fold["test_scores"], metric)) for fold in folds):
        error = (
            f"its {metric} in a fold is not a number: it could not be scored there, for the "
            "reason that scikit-learn has warned of; error_score='raise' raises it"
        )
    return Row(params, size, seconds, tuple(folds), error)


def formattable(rows: Sequence[Row], n_splits: int, error_score: float) -> list[Fold]:
    """The folds of all rows one after the other; those that failed have the score for errors."""
    example = next(row.folds[0] for row in rows if row.folds)
    folds: list[Fold] = []
    for row in rows:
        empty = {
            "fit_time": row.seconds / n_splits,
            "score_time": 0.0,
            **{key: _blank(example[key]) for key in _SCORES if key in example},
        }
        kept = [_kept(fold) for fold in row.folds] or [empty] * n_splits
        value = (
            math.nan if row.error is None else error_score
        )  # what was not a number without an error stays so
        folds += [
            {**fold, **{key: _filled(fold[key], value) for key in _SCORES if key in fold}} for fold in kept
        ]
    return folds


def ranks(scores: Sequence[float], at_full_size: Sequence[bool]) -> IntArray:
    """Ranks from 1: rows at full size first, by score; then the others, by score; failed ones last of all.

    Equal rows share the best of their ranks.
    """
    full, score = np.asarray(at_full_size), np.asarray(scores, dtype=float)
    failed = ~np.isfinite(score)
    keys = np.column_stack([failed, ~full & ~failed, np.where(failed, 0.0, -score)])
    _, place, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    first: IntArray = (np.cumsum(counts) - counts + 1)[place.ravel()]
    return first.astype(np.int32)


def _kept(fold: Fold) -> Fold:
    return {key: fold[key] for key in _KEPT if key in fold}


def _metric(scores: Any, metric: str) -> float:
    if not isinstance(scores, Mapping):
        return float(scores)
    return float(scores[metric] if metric in scores else next(iter(scores.values())))


def _blank(scores: Any) -> Any:
    return dict.fromkeys(scores, math.nan) if isinstance(scores, Mapping) else math.nan


def _filled(scores: Any, value: float) -> Any:
    """The scores with the value in place of those that are not a number."""
    if isinstance(scores, Mapping):
        return {name: _filled(score, value) for name, score in scores.items()}
    return value if math.isnan(scores) else scores
