"""The cross-validation of one fit: training folds of any size, nested and stratified; test folds unchanged."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fabolas._types import IntArray
from fabolas.subsets import Subsets

Split = tuple[IntArray, IntArray]  # rows to train on, rows to test on

# The smallest training fold has at least this many rows; most estimators can be fitted to them.
MIN_ROWS = 100
# It has at least this fraction of all rows, as in the paper. With fewer, scoring on the test folds, which are never
# made smaller, takes most of the time of a trial.
MIN_FRACTION = 1 / 64
# It has at least this many rows of each class, because some estimators split their training rows again.
MIN_ROWS_PER_CLASS = 5
# But rare classes do not make it larger than this fraction of all rows.
MAX_FRACTION_FOR_RARE_CLASSES = 1 / 16
# If all rows are fewer than this many times the smallest size, every trial is on all rows.
MIN_RANGE = 4


@dataclass(frozen=True)
class Folds:
    """The splits, drawn once, so that every candidate has the same folds even if the splitter shuffles.

    Attributes:
        splits: Rows of each fold to train on and to test on.
        labels: (n,) class of each row; None without classes.
    """

    splits: tuple[Split, ...]
    labels: IntArray | None

    @property
    def max_size(self) -> int:
        """Rows of the largest training fold, when training is on all rows: the largest `n_samples`."""
        return max((len(train) for train, _ in self.splits), default=0)

    def min_size(self) -> int:
        """The default smallest number of training rows.

        The largest of: 100 rows; 1/64 of all rows; as many as contain five rows of each class if classes keep
        their shares, but at most 1/16 of all rows; one row of each class. If that is more than a quarter of all
        rows, it is all rows.
        """
        size = max(MIN_ROWS, math.ceil(MIN_FRACTION * self.max_size))
        if self.labels is not None:
            most = math.ceil(MAX_FRACTION_FOR_RARE_CLASSES * self.max_size)
            size = max(size, min(self._rows_for(MIN_ROWS_PER_CLASS), most), self.n_classes())
        return size if MIN_RANGE * size <= self.max_size else self.max_size

    def n_classes(self) -> int:
        """The largest number of classes in a training fold; 1 without classes."""
        if self.labels is None:
            return 1
        return max(len(np.unique(self.labels[train])) for train, _ in self.splits)

    def _rows_for(self, per_class: int) -> int:
        """Rows that contain `per_class` rows of each class, or all that a fold has, if classes keep their shares."""
        assert self.labels is not None
        needed = 1
        for train, _ in self.splits:
            counts = np.bincount(self.labels[train])
            rarest = int(counts[counts > 0].min())
            needed = max(needed, math.ceil(len(train) * min(per_class, rarest) / rarest))
        return needed

    def orders(self, seed: int) -> tuple[Subsets, ...]:
        """An order of the rows of each training fold; the smaller training folds are its prefixes."""
        return tuple(
            Subsets(len(train) if self.labels is None else self.labels[train], seed=seed, regression=False)
            for train, _ in self.splits
        )


class Subsampled:
    """A splitter whose largest training fold has `size` rows; other folds shrink in the same proportion.

    A training fold has at least `min_size` rows, if the user's splitter gives it as many. Rows keep the order of
    the data, so on all rows the folds are exactly those of the user's splitter.
    """

    def __init__(self, folds: Folds, orders: Sequence[Subsets], size: int, min_size: int = 1) -> None:
        self._folds, self._orders, self._min_size = folds, orders, min_size
        self._share = size / folds.max_size

    def split(self, X: Any, y: Any = None, **_: Any) -> Iterator[Split]:
        """Training and test rows of each fold. The arguments are not used: the splits were computed before."""
        for (train, test), order in zip(self._folds.splits, self._orders, strict=True):
            rows = max(order.min_size, min(self._min_size, len(train)), round(self._share * len(train)))
            yield train[np.sort(order[rows])], test


def labels_of(y: Any) -> IntArray | None:
    """(n,) The class of each row as a whole number; None if there is no target.

    With several target columns, the class of a row is its rarest label. So rare labels keep about their share in
    every subset, and frequent labels are rarely missing.
    """
    if y is None:
        return None
    values: npt.NDArray[Any] = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim not in (1, 2) or values.size == 0:
        return None
    return _codes(values) if values.ndim == 1 else _rarest(values)


def _rarest(columns: npt.NDArray[Any]) -> IntArray:
    """(n,) The rarest pair of column and label of each row, from targets (n, q)."""
    codes = np.array([_codes(column) for column in columns.T])  # (q, n)
    counts = np.array([np.bincount(code)[code] for code in codes])
    column = counts.argmin(axis=0)
    return _codes(column * (codes.max() + 1) + codes[column, np.arange(len(columns))])


def _codes(labels: npt.NDArray[Any]) -> IntArray:
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)
