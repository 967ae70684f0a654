"""What a fit is to do, settled and refused where it must be before the first training."""

import math
from collections.abc import Callable, Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any, cast

import joblib
import numpy as np
from joblib import effective_n_jobs
from scipy.sparse import issparse
from sklearn.base import is_classifier
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets

from fabolas._types import IntArray
from fabolas.budget import Budget
from fabolas.sklearn.description import estimator_in_words, scoring_in_words
from fabolas.sklearn.distributions import space_of
from fabolas.sklearn.folds import Folds, labels_of
from fabolas.sklearn.loop import Ending, Evaluate, Loop
from fabolas.sklearn.scores import loss_of
from fabolas.space import Fidelity
from fabolas.study import Study

if TYPE_CHECKING:
    from fabolas.sklearn.search import FabolasSearchCV

# Of what identifies a search, what no reader would know again, and what it is called.
_HASHED = {"targets": "targets (y differs)", "data": "data (X differs)", "splits": "splits"}
_LISTED = 10_000  # configurations of a finite space at most that are written down


class Prepared:
    """The folds, the space, the loss and the budget of one fit; the clock runs from here.

    Raises:
        ValueError: If a parameter of the search is not what it should be, or there are no folds.
        TypeError: If the space holds something that cannot be searched.
    """

    def __init__(self, search: "FabolasSearchCV", X: Any, y: Any, split_params: Mapping[str, Any]) -> None:
        self.clock: Callable[[], float] = search._clock
        self.start = self.clock()
        self._search = search
        self.budget = _budget(search.time_budget, search.n_iter)
        drawn = search._checked_cv_orig.split(X, y, **split_params)
        splits = tuple((_rows(train), _rows(test)) for train, test in drawn)
        self.folds = Folds(splits, _classes(search.estimator, y))
        if not self.folds.full:
            raise ValueError(
                "cv expected to give folds with rows to train on, got none; check cv and the data"
            )
        self.smallest = _smallest(search.min_size, self.folds)
        fidelity = None
        if self.smallest < self.folds.full:
            fidelity = Fidelity(self.smallest, self.folds.full)
        self.space = space_of(search.param_distributions, fidelity)
        self.loss = loss_of(search.estimator, search.scoring, search.refit)
        self.jobs = effective_n_jobs(search.n_jobs)
        self._rows = X.shape[0] if hasattr(X, "shape") else len(X)
        # What a study must have in common with the search that continues it: scores of others mean nothing here.
        self.mark = {
            "rows": self._rows,
            "targets": None if y is None else joblib.hash(np.ascontiguousarray(y)),
            "folds": len(splits),
            "scoring": scoring_in_words(search.scoring),
            "metric": self.loss.metric,
            "return_train_score": bool(search.return_train_score),
            "estimator": estimator_in_words(search.estimator, self.space.names),
        }
        if search.storage is not None:
            self.mark |= {"data": joblib.hash(_content(X)), "splits": joblib.hash(splits)}

    def study(self) -> Study:
        """The study of this fit, a new one unless the search has a storage that holds one.

        Raises:
            ValueError: If it is to be kept and its seed is another one each time.
        """
        storage, given = self._search.storage, self._search.random_state
        if storage is not None and not isinstance(given, Integral | None):
            raise ValueError(
                f"with a storage random_state expected a whole number or None, got {given!r}: it must say the same "
                "when the search goes on; choose a number"
            )
        seed = _seed(given)
        return Study(self.space, storage=storage, seed=seed, clock=self.clock, warp=self.loss.warp)

    def loop(self, study: Study, evaluate: Evaluate) -> Loop:
        """The loop that fills the study.

        Raises:
            ValueError: If the study was continued and its trials are of another search.
        """
        n_splits = len(self.folds.splits)
        for trial in study.trials:
            _same_search(trial.info.get("search", self.mark), self.mark)
        rounds = math.ceil(n_splits / self.jobs)
        refit = self._rows / self.folds.full / rounds if self._search.refit else 0.0
        ending = Ending(self._search.verify, refit, self.space.configurations(_LISTED))
        return Loop(
            study,
            evaluate,
            self.loss,
            self.budget,
            ending,
            self.mark,
            self.folds.full,
            self.start,
            self.clock,
        )


def _same_search(recorded: Mapping[str, Any], mark: Mapping[str, Any]) -> None:
    for what, value in mark.items():
        if recorded.get(what, value) != value:
            differs = (
                f"other {_HASHED[what]}"
                if what in _HASHED
                else f"{what} {recorded[what]!r}, and this one has {value!r}"
            )
            seed = "; a cv that shuffles needs a random_state for that" if what == "splits" else ""
            raise ValueError(
                f"storage holds a search with {differs}; continue it with the data, estimator, cv and scoring it "
                f"was begun with{seed}, or choose another file"
            )


def _content(X: Any) -> Any:
    """What the rows hold, however they lie in memory."""
    if issparse(X):
        rows = cast(Any, X).tocsr(copy=True)
        rows.sum_duplicates()
        return rows.shape, rows.data, rows.indices, rows.indptr
    if hasattr(X, "columns"):
        return [(str(name), np.ascontiguousarray(X[name])) for name in X.columns]
    return np.ascontiguousarray(X) if isinstance(X, np.ndarray) else X


def _classes(estimator: Any, y: Any) -> IntArray | None:
    if y is None or not is_classifier(estimator):
        return None
    check_classification_targets(y)
    return labels_of(y)


def _budget(time_budget: float | str | None, n_iter: int | None) -> Budget:
    if time_budget is None and n_iter is None:
        raise ValueError(
            "a search needs an end, got neither time_budget nor n_iter; give time_budget='5m' or n_iter=50, or both"
        )
    if n_iter is not None and n_iter < 1:
        raise ValueError(
            f"n_iter must be a number of candidates >= 1, got {n_iter}; leave it out for no limit"
        )
    return Budget.of(time_budget, None if n_iter is None else int(n_iter))


def _smallest(min_size: float | str, folds: Folds) -> int:
    """The smallest number of training rows in words, in rows or as a share, as rows."""
    if min_size == "auto":
        return folds.smallest()
    if isinstance(min_size, str):
        size = -1
    elif isinstance(min_size, Integral):
        size = int(min_size)
    else:
        size = math.ceil(min_size * folds.full) if 0 < min_size <= 1 else -1
    least = folds.classes()
    if size < 1:
        raise ValueError(
            f"min_size must be 'auto', a whole number of rows >= 1 or a share in (0, 1], got {min_size!r}"
        )
    if size < least:
        raise ValueError(
            f"min_size must be at least {least}, so that each class is present, got {min_size!r}; "
            "give more, or leave it out"
        )
    return min(size, folds.full)


def _rows(rows: Any) -> IntArray:
    array = np.asarray(rows)
    return np.flatnonzero(array) if array.dtype == bool else array.astype(np.int64, copy=False)


def _seed(random_state: Any) -> int | None:
    """A whole number stays itself, so that a storage knows it again; None leaves it to the study."""
    if random_state is None or isinstance(random_state, Integral):
        return None if random_state is None else int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))
