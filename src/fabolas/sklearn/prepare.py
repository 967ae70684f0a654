"""What one fit needs: folds, space, loss and budget, computed and checked before the first training."""

import math
from collections.abc import Mapping
from itertools import product
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
from fabolas.budget import Budget, Clock, Duration, Timer
from fabolas.model_spec import ModelSpec
from fabolas.sklearn.description import describe_estimator, describe_scoring
from fabolas.sklearn.distributions import parse_space
from fabolas.sklearn.folds import Folds, labels_of
from fabolas.sklearn.policy import SearchPolicy
from fabolas.sklearn.scores import loss_of
from fabolas.space import Fidelity
from fabolas.storage.base import OtherStudyError
from fabolas.storage.option_values import encode
from fabolas.study import Study
from fabolas.transforms import FitTransform, log_excess_transform, log_transform

if TYPE_CHECKING:
    from fabolas.sklearn.search import FabolasSearchCV

# Parts of the fingerprint that are hashes, and how an error message names them.
_HASHED = {"targets": "targets (y differs)", "data": "data (X differs)", "splits": "splits"}
# This share of the time is for trials on all rows: the answer is one of these, so there should be several.
_TARGET_SHARE = 0.5
# The effort of each suggestion of a search without a time budget. More effort gave no better results over ten seeds.
_EFFORT = 0.3
# A space with more configurations than this is not treated as finite.
_MAX_LISTED = 10_000


class FitSetup:
    """The folds, the space, the loss and the budget of one fit; its timer starts here.

    Raises:
        ValueError: If a parameter of the search is not valid, or there are no folds.
        TypeError: If the space holds something that cannot be searched.
    """

    def __init__(self, search: "FabolasSearchCV", X: Any, y: Any, split_params: Mapping[str, Any]) -> None:
        self.clock: Clock = search._clock
        self.timer = Timer(self.clock)
        self._search = search
        self.budget = _budget(search.time_budget, search.n_iter)
        splits_of_cv = search._checked_cv_orig.split(X, y, **split_params)
        splits = tuple((_rows(train), _rows(test)) for train, test in splits_of_cv)
        self.folds = Folds(splits, _labels(search.estimator, y))
        if not self.folds.max_size:
            raise ValueError("expected folds with rows to train on from cv, got none; check cv and the data")
        self.min_size = _min_size(search.min_size, self.folds)
        fidelity = None
        if self.min_size < self.folds.max_size:
            fidelity = Fidelity(self.min_size, self.folds.max_size)
        self.space = parse_space(search.param_distributions, fidelity)
        self.loss = loss_of(search.estimator, search.scoring, search.refit)
        self.jobs = effective_n_jobs(search.n_jobs)
        self._rows = X.shape[0] if hasattr(X, "shape") else len(X)
        # A stored search can be continued only if these are equal, because other scores are not comparable.
        self.fingerprint = {
            "rows": self._rows,
            "targets": None if y is None else joblib.hash(np.ascontiguousarray(y)),
            "folds": len(splits),
            "scoring": describe_scoring(search.scoring),
            "metric": self.loss.metric,
            "return_train_score": bool(search.return_train_score),
            "estimator": describe_estimator(search.estimator, self.space.names),
        }
        if search.storage is not None:
            self.fingerprint |= {"data": joblib.hash(_hashable_content(X)), "splits": joblib.hash(splits)}

    def study(self) -> Study:
        """The study of this fit: a new one, or the one that the storage holds.

        Raises:
            ValueError: If there is a storage and the seed would differ each time, or the storage holds a search that
                decides differently.
        """
        storage, given = self._search.storage, self._search.random_state
        if storage is not None and not isinstance(given, Integral | None):
            raise ValueError(
                f"expected a whole number or None as random_state with a storage, got {given!r}: it must be the same "
                "when the search is continued; choose a number"
            )
        options = _strategy_options(self.budget.seconds is None, self.loss.transform)
        try:
            return Study(self.space, storage=storage, seed=_seed(given), clock=self.clock, **options)
        except OtherStudyError as error:
            self._check_same_options(error.recorded.get("options"))
            raise

    def _check_same_options(self, recorded: Any) -> None:
        """Refuse a stored search of which the recorded options of the strategy differ, in the user's words.

        Raises:
            ValueError: If it was begun with another kind of budget, or with a scoring that needs another transform.
        """
        n_iter_alone = self.budget.seconds is None
        for theirs, transform in product((True, False), (log_transform, log_excess_transform)):
            if recorded != encode(_strategy_options(theirs, transform)):
                continue
            if theirs and not n_iter_alone:
                raise ValueError(
                    "storage holds a search that was begun with n_iter and without time_budget, and this one has the "
                    f"time_budget {self._search.time_budget!r}; continue it without time_budget, or choose another file"
                ) from None
            if n_iter_alone and not theirs:
                raise ValueError(
                    "storage holds a search that was begun with a time_budget, and this one has n_iter alone; continue "
                    "it with a time_budget, or choose another file"
                ) from None
            if transform is not self.loss.transform:
                raise ValueError(
                    f"storage holds a search with another scoring, and this one has {self.fingerprint['scoring']!r}; "
                    "continue it with the scoring it was started with, or choose another file"
                ) from None

    def check_continues(self, study: Study) -> None:
        """Refuse a stored study of another search.

        Raises:
            ValueError: If the data, the estimator, the splits or the scoring differ.
        """
        for trial in study.trials:
            _check_same_search(trial.info.get("search", self.fingerprint), self.fingerprint)

    def policy(self, study: Study) -> SearchPolicy:
        """What the engine runs next in this fit."""
        rounds = math.ceil(len(self.folds.splits) / self.jobs)
        refit_ratio = self._rows / self.folds.max_size / rounds if self._search.refit else 0.0
        return SearchPolicy(
            study,
            self.folds.max_size,
            verify=self._search.verify,
            refit_ratio=refit_ratio,
            configurations=self.space.enumerate_configurations(_MAX_LISTED),
        )


def _strategy_options(n_iter_alone: bool, transform: FitTransform) -> dict[str, Any]:
    """The options of the strategy of a search.

    Without a time budget the same seed gives the same search: costs follow from the rows, not from seconds.
    """
    model = ModelSpec(transform=transform, cost_from_fidelity=n_iter_alone)
    options = {"target_share": _TARGET_SHARE, "model": model}
    return options | {"effort": _EFFORT} if n_iter_alone else options


def _check_same_search(recorded: Mapping[str, Any], fingerprint: Mapping[str, Any]) -> None:
    for what, value in fingerprint.items():
        if recorded.get(what, value) != value:
            differs = (
                f"other {_HASHED[what]}"
                if what in _HASHED
                else f"{what} {recorded[what]!r}, and this one has {value!r}"
            )
            seed = "; a cv that shuffles needs a random_state for that" if what == "splits" else ""
            raise ValueError(
                f"storage holds a search with {differs}; continue it with the data, estimator, cv and scoring it "
                f"was started with{seed}, or choose another file"
            )


def _hashable_content(X: Any) -> Any:
    """The content of the rows, independent of their memory layout."""
    if issparse(X):
        rows = cast(Any, X).tocsr(copy=True)
        rows.sum_duplicates()
        return rows.shape, rows.data, rows.indices, rows.indptr
    if hasattr(X, "columns"):
        return [(str(name), np.ascontiguousarray(X[name])) for name in X.columns]
    return np.ascontiguousarray(X) if isinstance(X, np.ndarray) else X


def _labels(estimator: Any, y: Any) -> IntArray | None:
    if y is None or not is_classifier(estimator):
        return None
    check_classification_targets(y)
    return labels_of(y)


def _budget(time_budget: Duration | None, n_iter: int | None) -> Budget:
    if time_budget is None and n_iter is None:
        raise ValueError(
            "a search needs an end, got neither time_budget nor n_iter; give time_budget='5m' or n_iter=50, or both"
        )
    if n_iter is not None and n_iter < 1:
        raise ValueError(f"n_iter must be a number of trials >= 1, got {n_iter}; leave it out for no limit")
    return Budget.of(time_budget, None if n_iter is None else int(n_iter))


def _min_size(min_size: float | str, folds: Folds) -> int:
    """Return the smallest number of training rows, from the parameter ``min_size``."""
    if min_size == "auto":
        return folds.min_size()
    if isinstance(min_size, str):
        size = -1
    elif isinstance(min_size, Integral):
        size = int(min_size)
    else:
        size = math.ceil(min_size * folds.max_size) if 0 < min_size <= 1 else -1
    if size < 1:
        raise ValueError(
            f"min_size must be 'auto', a whole number of rows >= 1 or a share in (0, 1], got {min_size!r}"
        )
    if size < folds.n_classes():
        raise ValueError(
            f"min_size must be at least {folds.n_classes()}, so that each class is present, got {min_size!r}; "
            "give more, or leave it out"
        )
    if size > folds.max_size:
        raise ValueError(
            f"min_size must be at most {folds.max_size}, the number of rows of the largest training fold, got "
            f"{min_size!r}; give less, or a share such as 0.1"
        )
    return size


def _rows(rows: Any) -> IntArray:
    array = np.asarray(rows)
    return np.flatnonzero(array) if array.dtype == bool else array.astype(np.int64, copy=False)


def _seed(random_state: Any) -> int | None:
    """The seed of the study; a whole number stays the same, so that a storage can be continued."""
    if random_state is None or isinstance(random_state, Integral):
        return None if random_state is None else int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))
