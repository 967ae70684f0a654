"""``FabolasSearchCV``: scikit-learn's search over hyperparameters, mostly on few of the rows."""

import time
from collections.abc import Mapping
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import check_cv
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils.validation import check_is_fitted, indexable

from fabolas._types import IntArray
from fabolas.history import Trial
from fabolas.progress import reporting
from fabolas.sklearn.evaluation import EvaluateCandidates, Evaluation, replaced
from fabolas.sklearn.loop import Loop
from fabolas.sklearn.prepare import Prepared
from fabolas.sklearn.rows import Row, formattable, ranks
from fabolas.sklearn.warn import warn
from fabolas.strategies.model_based import Forecast, ModelBased
from fabolas.study import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_OF_THE_BEST = (
    "best_index_",
    "best_params_",
    "best_score_",
    "best_estimator_",
    "refit_time_",
    "feature_names_in_",
)


class FabolasSearchCV(BaseSearchCV):  # type: ignore[misc]
    """Search for the hyperparameters that are best on all the rows, mostly by training on few of them.

        search = FabolasSearchCV(
            make_pipeline(StandardScaler(), SVC()),
            {"svc__C": loguniform(1e-5, 1e5), "svc__gamma": loguniform(1e-5, 1e5)},
            time_budget="5m", cv=3, random_state=0,
        ).fit(X, y)

    Each candidate is cross-validated on training folds of a size that the search chooses: nested subsets,
    stratified for classifiers. Test folds are never made smaller. What it learns at each size tells it where the
    best candidate on all the rows may be; ``best_score_`` and ``best_index_`` refer to trainings on all of them.

    Args:
        estimator: Any estimator or pipeline.
        param_distributions: Name -> scipy's uniform, loguniform or randint, a list, or a fabolas parameter; or
            a fabolas.Space or a ConfigurationSpace. Three or more numbers in order are taken as ordered, any
            other list as choices without order.
        time_budget: Seconds, or text such as "90s" or "5m": wall clock for all of ``fit``, thinking, the
            evaluation on all the rows and the refit included. A training that runs is not cut off.
        n_iter: Number of candidates to evaluate, at any size; one on another number of rows counts again, and the
            last ones are for the best on all the rows. Up to three are all on all of them. Give a time budget,
            this, or both. Without a time budget what a trial costs is taken to be its rows, not its seconds.
        min_size: Training rows in a fold at least, if it has as many: a number or a share; "auto" for the largest
            of 100 rows, 1/64 of them, and as many as hold each class five times in its share (rare classes ask for
            no more than 1/16 of the rows). If that is more than a quarter of the rows, all trials are on all.
        verify: Whether to evaluate the best candidates on all the rows before the search ends.
        scoring: As in RandomizedSearchCV. With several metrics the search is by the one that `refit` names, or
            else by the first.
        n_jobs: Folds to train in parallel; more than there are folds are of no use.
        refit: As in RandomizedSearchCV. A callable is given the rows of ``cv_results_`` at full size only,
            or all of them if there is none.
        cv: As in RandomizedSearchCV. The splits are drawn once in each fit.
        verbose: 1 shows how it goes on standard error, 2 and more also what scikit-learn says of each fold.
        pre_dispatch: As in RandomizedSearchCV.
        random_state: Seed of the search and the subsets. With `n_iter` alone, the same seed gives the same search.
            With a time budget which candidates come also depends on how long the ones before took, so two searches
            agree only as far as their times do.
        error_score: As in RandomizedSearchCV; a candidate that failed in any fold never wins.
        return_train_score: As in RandomizedSearchCV.
        storage: A file that keeps the search; an existing one is continued. None starts afresh each time.

    Attributes:
        cv_results_: As in RandomizedSearchCV, with ``n_samples``, the rows of the largest training fold. Ranks
            are first for rows at full size.
        best_index_, best_params_, best_score_: The best mean test score at full size. Without one
            (`verify=False`, or an interrupt), the lowest predicted loss, at the largest size it was run at.
        verified_: Whether these are of a run at full size.
        predicted_loss_, predicted_std_: What the model expects of ``best_params_`` at full size, and how surely.
            The loss is 1 - score for scores whose best is 1, -score for others.
        trials_: Every trial of the study.
        study_: The fabolas.Study, closed.
        trajectory_: (seconds, incumbent) whenever the models were looked at during the search.
        min_size_, max_size_: The range of ``n_samples``; equal if all trials were on all the rows.
    """

    _parameter_constraints = {  # noqa: RUF012 - the name and form that scikit-learn validates by
        **BaseSearchCV._parameter_constraints,
        "param_distributions": "no_validation",
        "time_budget": [Real, str, None],
        "n_iter": [Integral, None],
        "min_size": [Real, str],
        "verify": ["boolean"],
        "random_state": ["random_state"],
        "storage": "no_validation",
    }

    _clock = staticmethod(time.perf_counter)  # another one for simulations

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        time_budget: float | str | None = None,
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
        trials: tuple[Trial, ...] = self.study_.trials
        return trials

    @property
    def predicted_loss_(self) -> float:
        """The loss that the model expects of the best parameters at full size."""
        return float(self._forecast().losses[0])

    @property
    def predicted_std_(self) -> float:
        """Standard deviation of that prediction."""
        return float(self._forecast().stds[0])

    @property
    def verified_(self) -> bool:
        """Whether the best parameters were run at full size."""
        return bool(self.cv_results_["n_samples"][self._best("best_index_")] == self.max_size_)

    def plot(self) -> "Figure":
        """A figure of the search: scores over time by number of rows, and the best so far at full size.

        Raises:
            ImportError: If matplotlib is not installed.
        """
        from fabolas.sklearn.plot import draw, progress_of

        check_is_fitted(self, "study_")
        figure: Figure = draw(progress_of(self))
        return figure

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = False  # rows are chosen by numpy
        return tags

    def _best(self, name: str) -> Any:
        """What the search holds for the best.

        Raises:
            NotFittedError: Before `fit`.
            AttributeError: If there is none.
        """
        check_is_fitted(self, "study_")
        if name not in vars(self):
            raise AttributeError(
                f"with several metrics and refit=False there is no best, and no {name}; name a metric in refit"
            )
        return vars(self)[name]

    def _forecast(self) -> Forecast:
        best = self._best("best_params_")
        study: Study = self.study_
        point = study.space.encode(best)
        return cast(ModelBased, study.strategy).forecast(study.history, point[None])

    def fit(self, X: Any, y: Any = None, **params: Any) -> "FabolasSearchCV":
        """Search, and train the best on all the data; parameters are those of RandomizedSearchCV's ``fit``."""
        before = {name: value for name, value in vars(self).items() if name.endswith("_")}
        try:
            return self._fit(X, y, params)
        except BaseException:
            study = vars(self).get("study_")
            if study is None or study is before.get("study_"):
                # No search of this fit has ended: what an earlier one found stays whole.
                for name in [name for name in vars(self) if name.endswith("_")]:
                    del self.__dict__[name]
                self.__dict__.update(before)
            raise
        finally:
            self.__dict__.pop("_prepared", None)

    def _fit(self, X: Any, y: Any, params: Mapping[str, Any]) -> "FabolasSearchCV":
        # Not a number marks a failed fold, and cannot be a score by chance; the user's number is put in at the end.
        self._score_of_failures = np.nan if self.error_score == "raise" else self.error_score
        marked = np.nan if isinstance(self.error_score, Real) else self.error_score
        with replaced(self, error_score=marked):
            if hasattr(BaseSearchCV, "_check_input_parameters"):
                return cast(FabolasSearchCV, super().fit(X, y, **params))
            # Until scikit-learn 1.9 nobody calls that, and a generator of splits can be read only once.
            self._validate_params()
            self._get_scorers()
            X, y = indexable(X, y)
            self._checked_cv_orig = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
            routed = self._get_routed_params_for_fit(params)
            self._check_input_parameters(X, y, routed.splitter.split)
            with replaced(self, cv=self._checked_cv_orig):
                return cast(FabolasSearchCV, super().fit(X, y, **params))

    def _check_input_parameters(self, X: Any, y: Any, split_params: Mapping[str, Any]) -> None:
        """Called with the data: all that can be refused is refused before the first training."""
        self._prepared = Prepared(self, X, y, split_params)

    def _run_search(self, evaluate_candidates: EvaluateCandidates) -> None:
        # Not kept on self: scikit-learn sends self to its workers with every fold.
        prepared: Prepared = self.__dict__.pop("_prepared")
        self.__dict__.pop("study_", None)
        with prepared.study() as study:
            evaluation = Evaluation(self, evaluate_candidates, prepared, study.seed)
            loop = prepared.loop(study, evaluation)
            with reporting(self.verbose > 0, prepared.budget, loop.elapsed) as report:
                loop.run(report)
        self._conclude(loop, evaluation.results, study, prepared)

    def _conclude(self, loop: Loop, results: dict[str, Any], study: Study, prepared: Prepared) -> None:
        """Turn the dict that ``fit`` holds into ``cv_results_``, and say which of its rows is the answer."""
        rows, full = list(loop.rows.values()), prepared.folds.full
        n_splits = len(prepared.folds.splits)
        formatted = super()._format_results(
            [row.params for row in rows],
            n_splits,
            formattable(rows, n_splits, self._score_of_failures),
            {"n_samples": [row.size for row in rows]},
        )
        for key in [key for key in formatted if key.startswith("rank_test_")]:
            scores = [row.score(key.removeprefix("rank_test_")) for row in rows]
            formatted[key] = ranks(scores, [row.size == full for row in rows])
        results.clear()
        results.update(formatted)
        for name in _OF_THE_BEST:  # where there is none this time, that of an earlier fit is not it
            self.__dict__.pop(name, None)
        self.cv_results_ = results  # now already: a refit that is interrupted does not lose it
        self.study_, self.min_size_, self.max_size_ = study, prepared.smallest, full
        complete = [row.size == full and np.isfinite(row.score(prepared.loss.metric)) for row in rows]
        self._complete = np.flatnonzero(complete)
        self._answer, self._metric = loop.answer(), prepared.loss.metric
        self.trajectory_ = tuple(loop.trajectory)
        self._warn(rows)

    def _warn(self, rows: list[Row]) -> None:
        """Say what scikit-learn cannot: candidates that failed in all folds are ours, and so are sizes."""
        failed = [row.error for row in rows if not row.folds]
        if failed:
            warn(
                f"{len(failed)} of {len(rows)} candidates failed in all folds and are ranked last; the last one "
                f"with:\n{failed[-1]}",
                FitFailedWarning,
            )
        if self.verify and not len(self._complete):
            there_is_a_best = self.refit or "mean_test_score" in self.cv_results_
            answer = (
                ", so best_params_ are those of lowest predicted loss, and best_score_ is of fewer rows "
                "(verified_ is False)"
            )
            warn("no candidate was evaluated on all the rows" + answer * bool(there_is_a_best))

    def _format_results(
        self, candidate_params: Any, n_splits: int, out: Any, more_results: Any = None
    ) -> dict[str, Any]:
        """Hand the folds on as they are: to format all rows after each of many trials would be quadratic."""
        return {"folds": out}

    def _select_best_index(self, refit: Any, refit_metric: str, results: dict[str, Any]) -> int:
        """The best row at full size; without one, or if nobody is to verify, the incumbent's largest."""
        if callable(refit):
            chosen = self._complete if len(self._complete) else np.arange(len(results["params"]))
            shown = {key: _some(values, chosen) for key, values in results.items()}
            return int(chosen[BaseSearchCV._select_best_index(refit, refit_metric, shown)])
        if self.verify and len(self._complete):
            return int(np.argmin(results[f"rank_test_{refit_metric}"]))
        assert self._answer is not None, "a search without a complete trial has raised before"
        return self._answer


def _some(values: Any, chosen: IntArray) -> Any:
    return [values[i] for i in chosen] if isinstance(values, list) else values[chosen]
