"""The entries of ``cv_results_``: one candidate on one number of rows each, with the results of all folds."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fabolas._types import IntArray
from fabolas.trials import Trial

_SCORES = ("test_scores", "train_scores")
# The keys of scikit-learn's results for a fold that the study stores with the trial.
_STORED = ("fit_time", "score_time", *_SCORES)

Fold = Mapping[str, Any]


@dataclass(frozen=True)
class CandidateResult:
    """The result of one candidate on one number of rows.

    Attributes:
        params: The candidate.
        size: Rows of the largest training fold.
        seconds: Time of the evaluation.
        folds: Scikit-learn's results for each fold; empty if no fold could be fitted.
        error: Why the trial failed, None if it did not.
    """

    params: dict[str, Any]
    size: int
    seconds: float
    folds: tuple[Fold, ...]
    error: str | None = None

    def score(self, metric: str) -> float:
        """The mean over the folds; NaN if the candidate failed in any fold."""
        if not self.folds or self.error is not None:
            return math.nan
        return float(np.mean([_metric(fold["test_scores"], metric) for fold in self.folds]))

    def info(self) -> dict[str, Any]:
        """What the study stores with the trial; ``of_trial`` makes the result from it."""
        return {"folds": [_stored_part(fold) for fold in self.folds]}

    @classmethod
    def of_trial(cls, trial: Trial, max_size: int) -> "CandidateResult":
        """The result of a trial of an earlier fit; its size is ``max_size`` if the study has no fidelity."""
        size = int(next(iter(trial.fidelity.values()), max_size))
        return cls(trial.config, size, trial.cost, tuple(trial.info.get("folds", ())), trial.error)


def candidate_result(
    params: dict[str, Any], size: int, seconds: float, folds: Sequence[Fold], metric: str
) -> CandidateResult:
    """Return the result of one cross-validation; a failure if any fold could not be fitted or scored."""
    error = next((fold["fit_error"] for fold in folds if fold["fit_error"] is not None), None)
    if error is None and any(math.isnan(_metric(fold["test_scores"], metric)) for fold in folds):
        error = (
            f"its {metric} in a fold is not a number: scoring failed there, and scikit-learn has warned why; "
            "error_score='raise' raises the error"
        )
    return CandidateResult(params, size, seconds, tuple(folds), error)


def folds_for_formatting(results: Sequence[CandidateResult], n_splits: int, error_score: float) -> list[Fold]:
    """Return the folds of all results, one after the other; failed folds have `error_score`.

    This is the list from which scikit-learn formats ``cv_results_``.
    """
    example = next(result.folds[0] for result in results if result.folds)
    folds: list[Fold] = []
    for result in results:
        empty = {
            "fit_time": result.seconds / n_splits,
            "score_time": 0.0,
            **{key: _nan_scores(example[key]) for key in _SCORES if key in example},
        }
        stored = [_stored_part(fold) for fold in result.folds] or [empty] * n_splits
        value = math.nan if result.error is None else error_score  # NaN without an error stays NaN
        folds += [
            {**fold, **{key: _replace_nan(fold[key], value) for key in _SCORES if key in fold}}
            for fold in stored
        ]
    return folds


def ranks(scores: Sequence[float], at_target: Sequence[bool]) -> IntArray:
    """Ranks from 1: trials on all rows by score, then the others by score, then failed ones.

    Trials with equal scores share the best of their ranks.
    """
    target, score = np.asarray(at_target), np.asarray(scores, dtype=float)
    failed = ~np.isfinite(score)
    keys = np.column_stack([failed, ~target & ~failed, np.where(failed, 0.0, -score)])
    _, place, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    first: IntArray = (np.cumsum(counts) - counts + 1)[place.ravel()]
    return first.astype(np.int32)


def _stored_part(fold: Fold) -> Fold:
    return {key: fold[key] for key in _STORED if key in fold}


def _metric(scores: Any, metric: str) -> float:
    if not isinstance(scores, Mapping):
        return float(scores)
    return float(scores[metric] if metric in scores else next(iter(scores.values())))


def _nan_scores(scores: Any) -> Any:
    """Return NaN for each metric, in the form of `scores`."""
    return dict.fromkeys(scores, math.nan) if isinstance(scores, Mapping) else math.nan


def _replace_nan(scores: Any, value: float) -> Any:
    """Return the scores with `value` in place of NaN."""
    if isinstance(scores, Mapping):
        return {name: _replace_nan(score, value) for name, score in scores.items()}
    return value if math.isnan(scores) else scores
