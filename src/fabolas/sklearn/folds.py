"""The cross-validation of one fit: training folds of any size, nested and stratified; test folds as they are."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fabolas._types import IntArray
from fabolas.subsets import Subsets

Split = tuple[IntArray, IntArray]  # rows to train on, rows to test on

FEWEST = 100  # rows that most estimators can be fitted to at all
SHARE = (
    1 / 64
)  # of the rows, as in the paper: with less, a trial is mostly the scoring of its whole test folds
MEMBERS = 5  # of each class, for estimators that split their training rows again
RARE = 1 / 16  # of the rows: no class, however rare, makes the smallest size larger than this
WORTHWHILE = 4  # times the smallest size at least, or all trials are on all the rows


@dataclass(frozen=True)
class Folds:
    """The splits, drawn once, so that every candidate meets the same folds whatever the splitter.

    Attributes:
        splits: Rows of each fold to train on and to test on.
        labels: (n,) class of each row, None where there is nothing to stratify by.
    """

    splits: tuple[Split, ...]
    labels: IntArray | None

    @property
    def full(self) -> int:
        """Rows of the largest training fold: what `n_samples` is at full size."""
        return max((len(train) for train, _ in self.splits), default=0)

    def smallest(self) -> int:
        """The smallest size by default.

        The largest of 100 rows, 1/64 of them, and as many as hold each class five times in its share; rare
        classes do not ask for more than 1/16 of the rows, beyond one row of each class, which is always there.
        All rows if that is more than a quarter of them.
        """
        size = max(FEWEST, math.ceil(SHARE * self.full))
        if self.labels is not None:
            size = max(size, min(self._rows_for(MEMBERS), math.ceil(RARE * self.full)), self.classes())
        return size if WORTHWHILE * size <= self.full else self.full

    def classes(self) -> int:
        """The largest number of classes in a training fold; 1 without classes."""
        if self.labels is None:
            return 1
        return max(len(np.unique(self.labels[train])) for train, _ in self.splits)

    def _rows_for(self, members: int) -> int:
        """Rows in which each class has so many members, or all that a fold has of it, if all keep their share."""
        assert self.labels is not None
        needed = 1
        for train, _ in self.splits:
            counts = np.bincount(self.labels[train])
            rarest = int(counts[counts > 0].min())
            needed = max(needed, math.ceil(len(train) * min(members, rarest) / rarest))
        return needed

    def orders(self, seed: int) -> tuple[Subsets, ...]:
        """One order of the rows of each training fold; its prefixes are the smaller training folds."""
        return tuple(
            Subsets(len(train) if self.labels is None else self.labels[train], seed=seed, regression=False)
            for train, _ in self.splits
        )


class Subsampled:
    """A splitter that gives all folds with `size` rows to train on, in proportion where folds differ in size.

    None has fewer than `least`, unless it has no more.
    The rows are in the order of the data: at full size the folds are those of the splitter itself.
    """

    def __init__(self, folds: Folds, orders: Sequence[Subsets], size: int, least: int = 1) -> None:
        self._folds, self._orders, self._share, self._least = folds, orders, size / folds.full, least

    def split(self, X: Any, y: Any = None, **_: Any) -> Iterator[Split]:
        """Rows of each fold to train on and to test on. The splitter has drawn them, with all that it asks for."""
        for (train, test), order in zip(self._folds.splits, self._orders, strict=True):
            rows = max(order.smallest, min(self._least, len(train)), round(self._share * len(train)))
            yield train[np.sort(order[rows])], test


def labels_of(y: Any) -> IntArray | None:
    """(n,) whole numbers for the classes of a classifier's targets; None without columns.

    A row with a label in each of several columns counts for the rarest of them: what is rare is then in every
    subset in about its share, and what is frequent is hardly ever missing.
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
    """(n,) Which pair of column and label is the rarest that each row (n, q) has."""
    codes = np.array([_codes(column) for column in columns.T])  # (q, n)
    counts = np.array([np.bincount(code)[code] for code in codes])
    column = counts.argmin(axis=0)
    return _codes(column * (codes.max() + 1) + codes[column, np.arange(len(columns))])


def _codes(labels: npt.NDArray[Any]) -> IntArray:
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)
