"""The entries of cv_results_."""

import math
from typing import Any

from fabolas.sklearn.cv_results import CandidateResult, candidate_result, folds_for_formatting, ranks


class TestCandidateResults:
    def fold(self, score: Any, error: str | None = None) -> dict[str, Any]:
        return {"fit_time": 1.0, "score_time": 0.5, "test_scores": score, "fit_error": error}

    def test_the_score_is_the_mean_over_the_folds(self) -> None:
        assert candidate_result({}, 9, 1.0, [self.fold(0.25), self.fold(0.75)], "score").score("score") == 0.5
        several = candidate_result({}, 9, 1.0, [self.fold({"a": 1.0, "b": 3.0})], "b")
        assert several.score("b") == 3.0

    def test_a_fold_that_failed_fails_the_candidate_whatever_its_score(self) -> None:
        result = candidate_result({}, 9, 1.0, [self.fold(0.9), self.fold(100.0, "Traceback")], "score")
        assert math.isnan(result.score("score"))
        assert result.error == "Traceback"

    def test_a_candidate_without_folds_gets_the_score_for_errors_of_each_metric(self) -> None:
        results = [
            CandidateResult({}, 9, 4.0, (), "failed"),
            candidate_result({}, 9, 1.0, [self.fold({"a": 1.0, "b": 2.0})] * 2, "a"),
        ]
        folds = folds_for_formatting(results, 2, -1.0)
        assert len(folds) == 4
        assert folds[0]["test_scores"] == {"a": -1.0, "b": -1.0}
        assert folds[1]["fit_time"] == 2.0

    def test_a_fold_that_failed_gets_the_score_for_errors_and_the_others_keep_theirs(self) -> None:
        result = candidate_result(
            {}, 9, 1.0, [self.fold(0.9), self.fold(math.nan, "Traceback"), self.fold(0.0)], "score"
        )
        assert [fold["test_scores"] for fold in folds_for_formatting([result], 3, 0.0)] == [0.9, 0.0, 0.0]

    def test_what_could_not_be_scored_has_failed_and_a_score_of_nothing_has_not(self) -> None:
        assert candidate_result({}, 9, 1.0, [self.fold(0.9), self.fold(math.nan)], "score").error is not None
        assert candidate_result({}, 9, 1.0, [self.fold(0.9), self.fold(0.0)], "score").error is None

    def test_a_metric_that_nobody_searches_by_may_be_no_number(self) -> None:
        result = candidate_result({}, 9, 1.0, [self.fold({"a": 0.5, "b": math.nan})], "a")
        assert result.score("a") == 0.5
        assert math.isnan(folds_for_formatting([result], 1, -1.0)[0]["test_scores"]["b"])
        assert candidate_result({}, 9, 1.0, [self.fold({"a": 0.5, "b": math.nan})], "b").error is not None

    def test_trials_on_all_rows_rank_before_all_others_and_failed_ones_last(self) -> None:
        scores = [0.9, 0.5, 0.7, math.nan, 0.7, 0.99, math.nan]
        at_target = [False, True, True, True, True, False, False]
        assert ranks(scores, at_target).tolist() == [5, 3, 1, 6, 1, 4, 6]
