"""``FabolasSearchCV``: a hyperparameter search for scikit-learn that trains mostly on small subsets of the rows."""

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import check_cv
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils.validation import check_is_fitted, indexable

from fabolas._types import IntArray
from fabolas.budget import Duration
from fabolas.caller_warning import warn_caller
from fabolas.display import counted
from fabolas.engine import Engine, RunSummary
from fabolas.execution import Inline
from fabolas.interrupts import Interrupts
from fabolas.progress import ProgressDisplay, Snapshot, show_progress
from fabolas.sklearn.cv_results import CandidateResult, folds_for_formatting, ranks
from fabolas.sklearn.evaluation import EvaluateCandidates, Evaluation, replaced
from fabolas.sklearn.prepare import FitSetup
from fabolas.sklearn.scores import ScoreLoss
from fabolas.study import Study
from fabolas.trials import Trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BEST_ATTRIBUTES = (
    "best_index_",
    "best_params_",
    "best_score_",
    "best_estimator_",
    "refit_time_",
    "feature_names_in_",
)


class FabolasSearchCV(BaseSearchCV):  # type: ignore[misc]
    """Find the hyperparameters that are best on all rows, by training mostly on small subsets.

        search = FabolasSearchCV(
            make_pipeline(StandardScaler(), SVC()),
            {"svc__C": loguniform(1e-5, 1e5), "svc__gamma": loguniform(1e-5, 1e5)},
            time_budget="5m", cv=3, random_state=0,
        ).fit(X, y)

    A candidate is a setting of the parameters. A trial cross-validates one candidate on training folds of a size that
    the search chooses. The folds of different sizes are nested, and stratified for classifiers; test folds are never
    made smaller. A model of all sizes predicts which candidate is best on all rows. ``best_score_`` and
    ``best_index_`` refer to trials on all rows.

    Args:
        estimator: Any estimator or pipeline.
        param_distributions: A dict from names to scipy's uniform, loguniform or randint, lists, ranges, or fabolas
            parameters; or a fabolas.Space; or a ConfigurationSpace. A list of three or more numbers in ascending or
            descending order is an ordered parameter. Any other list is a choice without order.
        time_budget: Seconds, text such as "90s" or "5m", or a timedelta: wall-clock time of ``fit``, including
            overhead, the trials on all rows and the refit. A running training is not stopped.
        n_iter: Number of trials; the same candidate on two numbers of rows is two trials. The last trials run the
            best candidates on all rows; with at most three trials, all are on all rows. Give a time budget, n_iter
            or both. Without a time budget, the search uses the number of rows as the cost of a trial, not its
            seconds.
        min_size: Smallest number of training rows in a fold, or a share of them; "auto" for the largest of 100
            rows, 1/64 of all rows, and as many as contain each class five times (at most 1/16 of all rows). If that
            is more than a quarter of all rows, all trials are on all rows.
        verify: Whether to run the best candidates on all rows before the search ends.
        scoring: As in RandomizedSearchCV. With several metrics the search uses the one that `refit` names, or
            else the first.
        n_jobs: Number of folds to train in parallel; more than there are folds do not help.
        refit: As in RandomizedSearchCV. A callable receives only the entries of ``cv_results_`` on all rows, or all
            entries if there are none on all rows.
        cv: As in RandomizedSearchCV. The splits are computed once in each fit.
        verbose: 1 shows progress on standard error; 2 and more also scikit-learn's messages about each fold.
        pre_dispatch: As in RandomizedSearchCV.
        random_state: Seed of the search and the subsets. With `n_iter` alone, the same seed gives the same search.
            With a time budget, the candidates also depend on how long earlier ones took.
        error_score: As in RandomizedSearchCV; a candidate that failed in any fold never wins.
        return_train_score: As in RandomizedSearchCV.
        storage: A file that keeps the search; an existing one is continued. A search with `n_iter` alone cannot be
            continued with a time budget, nor the reverse, because they decide differently. None starts a new
            search each time.

    Attributes:
        cv_results_: As in RandomizedSearchCV, with one entry for each trial, and with ``n_samples``, the number of
            rows of the largest training fold. Trials on all rows are ranked first.
        best_index_, best_params_, best_score_: The trial on all rows with the best mean test score. If there is
            none (`verify=False`, or Ctrl-C), the candidate with the lowest predicted loss, and its trial on the
            most rows.
        verified_: Whether these refer to a trial on all rows.
        predicted_loss_, predicted_std_: The predicted loss of ``best_params_`` on all rows, and its standard
            deviation. The loss is 1 - score for scores whose upper bound is 1, and -score for others.
        trials_: Every trial of the study.
        study_: The fabolas.Study, closed.
        trajectory_: (seconds, incumbent) pairs, as in ``fabolas.Study``.
        min_size_, max_size_: The range of ``n_samples``; equal if all trials were on all rows.
    """

    _parameter_constraints = {  # noqa: RUF012 - the name and form that scikit-learn validates by
        **BaseSearchCV._parameter_constraints,
        "param_distributions": "no_validation",
        "time_budget": [Real, str, timedelta, None],
        "n_iter": [Integral, None],
        "min_size": [Real, str],
        "verify": ["boolean"],
        "random_state": ["random_state"],
        "storage": "no_validation",
    }

    _clock = staticmethod(time.perf_counter)  # simulations replace it

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        time_budget: Duration | None = None,
        n_iter: int | None = None,
        min_size: float | str = "auto",
        verify: bool = True,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        random_state: Any = None,
        error_score: Any = np.nan,
        return_train_score: bool = False,
        storage: Any = None,
    ) -> None:
        super().__init__(
            estimator=estimator,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.param_distributions = param_distributions
        self.time_budget = time_budget
        self.n_iter = n_iter
        self.min_size = min_size
        self.verify = verify
        self.random_state = random_state
        self.storage = storage

    @property
    def trials_(self) -> tuple[Trial, ...]:
        """Every trial of the study, in the order in which they ended."""
        check_is_fitted(self, "study_")
        trials: tuple[Trial, ...] = self.study_.trials
        return trials

    @property
    def predicted_loss_(self) -> float:
        """The predicted loss of the best parameters on all rows."""
        best = self._best("best_params_")
        return float(self.study_.predict(best).loss[0])

    @property
    def predicted_std_(self) -> float:
        """Standard deviation of that prediction."""
        best = self._best("best_params_")
        return float(self.study_.predict(best).loss_std[0])

    @property
    def verified_(self) -> bool:
        """Whether the best parameters were run on all rows."""
        index = self._best("best_index_")
        return bool(self.cv_results_["n_samples"][index] == self.max_size_)

    def plot(self) -> "Figure":
        """A figure of the search: scores over time by number of rows, and the best score on all rows so far.

        Raises:
            ImportError: If matplotlib is not installed.
        """
        from fabolas.sklearn.plot import plot_data, plot_search

        check_is_fitted(self, "study_")
        figure: Figure = plot_search(plot_data(self))
        return figure

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = False  # rows are chosen by numpy
        return tags

    def _best(self, name: str) -> Any:
        """An attribute that describes the best candidate.

        Raises:
            NotFittedError: Before `fit`.
            AttributeError: If there is no best candidate.
        """
        check_is_fitted(self, "study_")
        if name not in vars(self):
            raise AttributeError(
                f"with several metrics and refit=False there is no best, and no {name}; name a metric in refit"
            )
        return vars(self)[name]

    def fit(self, X: Any, y: Any = None, **params: Any) -> "FabolasSearchCV":
        """Search, then train the best candidate on all rows. Parameters are those of RandomizedSearchCV's ``fit``."""
        before = {name: value for name, value in vars(self).items() if name.endswith("_")}
        try:
            return self._fit(X, y, params)
        except BaseException:
            study = vars(self).get("study_")
            if study is None or study is before.get("study_"):
                # This fit has no result, so the attributes of an earlier fit are restored.
                for name in [name for name in vars(self) if name.endswith("_")]:
                    del self.__dict__[name]
                self.__dict__.update(before)
            raise
        finally:
            self.__dict__.pop("_setup", None)

    def _fit(self, X: Any, y: Any, params: Mapping[str, Any]) -> "FabolasSearchCV":
        # NaN marks a failed fold, because no score can be NaN; the user's number replaces it at the end.
        self._score_of_failures = np.nan if self.error_score == "raise" else self.error_score
        nan_or_raise = np.nan if isinstance(self.error_score, Real) else self.error_score
        with replaced(self, error_score=nan_or_raise):
            if hasattr(BaseSearchCV, "_check_input_parameters"):
                return cast(FabolasSearchCV, super().fit(X, y, **params))
            # scikit-learn before 1.9 does not call that method. A generator of splits can be read only once.
            self._validate_params()
            self._get_scorers()
            X, y = indexable(X, y)
            self._checked_cv_orig = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
            routed = self._get_routed_params_for_fit(params)
            self._check_input_parameters(X, y, routed.splitter.split)
            with replaced(self, cv=self._checked_cv_orig):
                return cast(FabolasSearchCV, super().fit(X, y, **params))

    def _check_input_parameters(self, X: Any, y: Any, split_params: Mapping[str, Any]) -> None:
        """Called by scikit-learn with the data, before the first training."""
        self._setup = FitSetup(self, X, y, split_params)

    def _run_search(self, evaluate_candidates: EvaluateCandidates) -> None:
        # Not kept on self: scikit-learn sends self to its workers with every fold.
        setup: FitSetup = self.__dict__.pop("_setup")
        self.__dict__.pop("study_", None)
        with Interrupts() as interrupts, setup.study() as study:
            setup.check_continues(study)
            n_before = len(study.trials)
            evaluation = Evaluation(self, evaluate_candidates, setup, study.seed)
            engine = Engine(
                study,
                Inline(evaluation),
                setup.budget,
                setup.timer,
                policy=setup.policy(study),
                max_failures=math.inf,
                # joblib's workers receive Ctrl-C too, so there is nothing to wait for.
                finish_running=False,
                count_abandoned=False,
            )
            with show_progress(self.verbose > 0, setup.budget, setup.timer.clock) as display:
                summary = engine.run(
                    _ScoreDisplay(display, setup.loss) if self.verbose > 0 else None, interrupts
                )
            if evaluation.error is not None:
                raise evaluation.error
            _check_success(study, n_before, summary)
            self._set_results(summary, evaluation, study, setup)

    def _set_results(
        self, summary: RunSummary, evaluation: Evaluation, study: Study, setup: FitSetup
    ) -> None:
        """Fill the dict that ``fit`` uses as ``cv_results_``, and find the entry of the incumbent."""
        ended = [trial for trial in study.trials if trial.status != "abandoned"]
        max_size, n_splits = setup.folds.max_size, len(setup.folds.splits)
        results = [
            evaluation.by_trial.get(trial.id) or CandidateResult.of_trial(trial, max_size) for trial in ended
        ]
        at_target = [result.size == max_size for result in results]
        formatted = super()._format_results(
            [result.params for result in results],
            n_splits,
            folds_for_formatting(results, n_splits, self._score_of_failures),
            {"n_samples": [result.size for result in results]},
        )
        for key in [key for key in formatted if key.startswith("rank_test_")]:
            scores = [result.score(key.removeprefix("rank_test_")) for result in results]
            formatted[key] = ranks(scores, at_target)
        cv_results = evaluation.cv_results
        cv_results.clear()
        cv_results.update(formatted)
        for name in _BEST_ATTRIBUTES:  # those of an earlier fit may not apply
            self.__dict__.pop(name, None)
        self.cv_results_ = cv_results  # already now, so that an interrupted refit does not lose it
        self.study_, self.min_size_, self.max_size_ = study, setup.min_size, max_size
        complete = np.isfinite([result.score(setup.loss.metric) for result in results])
        self._indices_on_all_rows = np.flatnonzero(complete & np.array(at_target))
        self._metric, self.trajectory_ = setup.loss.metric, study.trajectory
        self._incumbent_index = None
        if summary.incumbent is not None:  # its trial on the most rows
            index = {trial.id: i for i, trial in enumerate(ended)}
            indices = [index[trial_id] for trial_id in summary.incumbent.trial_ids]
            self._incumbent_index = max(indices, key=lambda i: results[i].size)
        if summary.interrupted:
            warn_caller(
                f"the search was interrupted after {len(results)} trials; the answer is the best of these"
            )
        self._warn(results)

    def _warn(self, results: list[CandidateResult]) -> None:
        """Warn of trials that failed in all folds, and of an answer that was not run on all rows."""
        failed = [result.error for result in results if not result.folds]
        if failed:
            warn_caller(
                f"{len(failed)} of {len(results)} trials failed in all folds and are ranked last; the last one "
                f"failed with:\n{failed[-1]}",
                FitFailedWarning,
            )
        if self.verify and not len(self._indices_on_all_rows):
            has_best = bool(self.refit) or "mean_test_score" in self.cv_results_
            answer = (
                ", so best_params_ has the lowest predicted loss, and best_score_ is from fewer rows "
                "(verified_ is False)"
            )
            warn_caller("no trial on all rows is complete" + (answer if has_best else ""))

    def _format_results(
        self, candidate_params: Any, n_splits: int, out: Any, more_results: Any = None
    ) -> dict[str, Any]:
        """Return the folds as they are; formatting all results after each trial would take quadratic time."""
        return {"folds": out}

    def _select_best_index(self, refit: Any, refit_metric: str, results: dict[str, Any]) -> int:
        """Return the index of the best trial on all rows.

        Without such a trial, or without verification, it is the index of the incumbent's trial on the most rows.
        """
        if callable(refit):
            on_all_rows = self._indices_on_all_rows
            chosen = on_all_rows if len(on_all_rows) else np.arange(len(results["params"]))
            selected = {key: _select(values, chosen) for key, values in results.items()}
            return int(chosen[BaseSearchCV._select_best_index(refit, refit_metric, selected)])
        if self.verify and len(self._indices_on_all_rows):
            return int(np.argmin(results[f"rank_test_{refit_metric}"]))
        assert self._incumbent_index is not None, "a search without a complete trial raises before this"
        return self._incumbent_index


class _ScoreDisplay:
    """Shows the incumbent's score instead of its loss."""

    def __init__(self, display: ProgressDisplay, loss: ScoreLoss) -> None:
        self._display, self._loss = display, loss

    def update(self, snapshot: Snapshot) -> None:
        if snapshot.incumbent is not None:
            score, measured = self._loss.to_score(snapshot.incumbent.loss), snapshot.measured
            if measured is not None and measured.loss is not None:
                measured = replace(measured, loss=self._loss.to_score(measured.loss))
            incumbent = replace(snapshot.incumbent, loss=score)
            snapshot = replace(snapshot, incumbent=incumbent, measured=measured)
        self._display.update(snapshot)

    def notice(self, text: str) -> None:
        self._display.notice(text)


def _check_success(study: Study, n_before: int, summary: RunSummary) -> None:
    """Raise if this fit has no complete trial.

    Raises:
        KeyboardInterrupt: If Ctrl-C ended the search before one.
        ValueError: If all of them failed.
    """
    new = [trial for trial in study.trials[n_before:] if trial.status != "abandoned"]
    if any(trial.status == "complete" for trial in new):
        return
    if summary.interrupted:
        raise KeyboardInterrupt
    before = int(study.history.complete.sum())
    kept = (
        f" The storage has {counted(before, 'complete trial')}, which a fit with at least one complete trial will "
        "include."
        if before
        else ""
    )
    all_failed = "the only trial" if len(new) == 1 else f"all {len(new)} trials"
    raise ValueError(
        f"{all_failed} of this fit failed, so there is no best candidate; set error_score='raise' to "
        f"get the first failure at once.{kept} The last failure was:\n{new[-1].error}"
    )


def _select(values: Any, chosen: IntArray) -> Any:
    return [values[i] for i in chosen] if isinstance(values, list) else values[chosen]
