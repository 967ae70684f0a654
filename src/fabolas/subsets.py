"""Nested, seeded, stratified, group-aware subsets of the rows of a data set.

All subsets of a data set are prefixes of one order of its rows. The order is computed once by sorting, in
O(n log n); after that a subset is a slice.

Rows belong to *units* that are never split: the groups if there are groups, otherwise each row is a unit. The order
starts with units that together contain every class in few rows (see ``set_cover``). The other units follow in an
order for which each prefix has about the same class frequencies as the data: the rows of a class with n_c rows are
shuffled and placed at the quantiles (k + 1/2) / n_c, and the quantiles of all classes are merged.
"""

from __future__ import annotations

import contextlib
import math
import threading
import weakref
from collections import OrderedDict
from typing import Any

import numpy as np
import numpy.typing as npt

from fabolas._types import IntArray
from fabolas.set_cover import set_cover

_MAX_CLASS_VALUES = 20  # up to this many distinct whole numbers are always classes
_CACHE_SIZE = 8  # orders that `subset` remembers


class Subsets:
    """One order of the rows of a data set; its prefixes are the subsets.

    Args:
        y: (n,) targets, or the number of rows n.
        seed: Another seed gives another order.
        stratify: Whether subsets keep the class frequencies; ignored if there are no classes.
        groups: (n,) group labels; a subset contains all rows of a group or none.
        regression: Whether the targets are measurements and not classes; None decides by the rule of `subset`.

    Attributes:
        min_size: The smallest size of a subset that contains every class. It is the smallest possible one if there
            are no groups, at most 12 classes, or one class per group. Otherwise a greedy algorithm chooses the
            groups, and another choice might need fewer rows.

    Raises:
        TypeError: Labels cannot be compared with each other, such as None and text.
        ValueError: There are no rows, `y` is not one-dimensional, or `groups` has another length.
    """

    def __init__(
        self,
        y: npt.ArrayLike | int,
        *,
        seed: int = 0,
        stratify: bool = True,
        groups: npt.ArrayLike | None = None,
        regression: bool | None = None,
    ) -> None:
        n, classes = _classes(y, stratify, regression)
        units = np.arange(n) if groups is None else _group_numbers(groups, n)
        rng = np.random.default_rng(seed)
        order, n_first = _order_of_units(classes, units, rng)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        self._rows: IntArray = np.argsort(rank[units], kind="stable")
        self._unit_ends: IntArray = np.cumsum(np.bincount(units)[order])
        self._n_classes = int(classes.max()) + 1
        self._has_groups = groups is not None
        self.min_size = int(self._unit_ends[n_first - 1])

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, size: int | float) -> IntArray:
        """Return the row numbers of the subset of `size` rows; it contains every smaller subset.

        `size` is a number of rows, or a fraction of them if it is a float of at most 1.0. With groups the subset
        has at most `size` rows: as many as complete groups give.

        Raises:
            TypeError: `size` is neither a whole number nor a fraction.
            ValueError: `size` is more than the number of rows, or too small for the classes and groups.
        """
        n = len(self._rows)
        n_rows = _number_of_rows(size, n)
        if n_rows > n:
            raise ValueError(
                f"expected a size of at most {n}, the number of rows; got {size}. "
                f"Let the upper end of the fidelity be {n}"
            )
        if n_rows < self.min_size:
            given = f"{size}" if n_rows == size else f"{size}, which is {n_rows} of {n} rows"
            raise ValueError(
                f"expected a size of at least {self.min_size}, {self._reason()}; got {given}. "
                f"Let the lower end of the fidelity be {self.min_size} or more"
                + (", or pass stratify=False" if self._n_classes > 1 else "")
            )
        return self._rows[
            : self._unit_ends[np.searchsorted(self._unit_ends, n_rows, side="right") - 1]
        ].copy()

    def _reason(self) -> str:
        if self._n_classes == 1:
            return "the size of the smallest group" if self._has_groups else "a single row"
        if self._has_groups:
            return f"so that complete groups contain each of the {self._n_classes} classes"
        return f"so that each of the {self._n_classes} classes is present"


def subset(
    y: npt.ArrayLike | int,
    size: int | float,
    seed: int = 0,
    stratify: bool = True,
    groups: npt.ArrayLike | None = None,
) -> IntArray:
    """Return the row numbers of a subset of `size` rows: nested, seeded, stratified, with every class present.

    For the same `y`, `seed` and `groups`, a larger subset contains every smaller one. The order of the rows is
    computed at the first call for an array and remembered as long as the array exists; later calls are slices.
    So do not change `y` in place between calls.

    Args:
        y: (n,) targets, or the number of rows n. Targets are either classes, and then the subset is stratified, or
            a regression target. Strings and booleans are classes. For numbers, let v be the number of distinct
            values. Whole numbers are classes if v <= 20 or v <= n / 2. Numbers with fractional parts are classes if
            v <= 20 and v <= n / 2. Pass n instead of y if whole numbers are measurements.
        size: Number of rows; or a fraction of all rows, if it is a float of at most 1.0 (1 is one row, 1.0 is all
            rows). The smallest possible size is the number of classes; with groups, the size of the smallest group,
            or of the groups that together contain every class.
        seed: Another seed gives other subsets.
        stratify: Whether the subset keeps the class frequencies of the data.
        groups: (n,) group labels. The subset contains all rows of a group or none, and at most `size` rows.

    Returns:
        (size,) row numbers. The classes are mixed, so there is no need to shuffle.

    Raises:
        TypeError: `size` is neither a whole number nor a fraction, or labels cannot be compared, such as None and
            text.
        ValueError: `size` is too small for the classes and groups (the message says the smallest possible size) or
            too large, or `y` or `groups` has the wrong shape.
    """
    return _cached_subsets(y, seed, stratify, groups)[size]


class _Cache:
    """The last few Subsets, found by the identity of arrays that still exist."""

    def __init__(self) -> None:
        self._entries: OrderedDict[tuple[Any, ...], tuple[Any, Any, Subsets]] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, key: tuple[Any, ...], y: Any, groups: Any) -> Subsets | None:
        with self._lock:
            entry = self._entries.get(key)
            # A new array can have the identity of a deleted one; the weak references show that.
            if entry is None or entry[0]() is not y or entry[1]() is not groups:
                return None
            self._entries.move_to_end(key)
            return entry[2]

    def add(self, key: tuple[Any, ...], y: Any, groups: Any, subsets: Subsets) -> None:
        entry = (self._reference(y, key), self._reference(groups, key), subsets)
        with self._lock:
            self._entries[key] = entry
            self._entries.move_to_end(key)
            while len(self._entries) > _CACHE_SIZE:
                self._entries.popitem(last=False)

    def _reference(self, value: Any, key: tuple[Any, ...]) -> Any:
        if value is None or isinstance(value, int):
            return lambda: value
        return weakref.ref(value, lambda _: self._entries.pop(key, None))


_cache = _Cache()


def _cached_subsets(y: Any, seed: int, stratify: bool, groups: Any) -> Subsets:
    y = int(y) if isinstance(y, np.integer) else y
    key = (y if isinstance(y, int) else id(y), type(y), seed, stratify, id(groups))
    found = _cache.find(key, y, groups)
    if found is not None:
        return found
    subsets = Subsets(y, seed=seed, stratify=stratify, groups=groups)
    with contextlib.suppress(TypeError):  # a list has no weak references, so it is not cached
        _cache.add(key, y, groups, subsets)
    return subsets


def _order_of_units(classes: IntArray, units: IntArray, rng: np.random.Generator) -> tuple[IntArray, int]:
    """Return all units in order, and how many of the first ones contain every class.

    Args:
        classes: (n,) class of each row, 0 ... K-1.
        units: (n,) unit of each row, 0 ... G-1.
        rng: Shuffles the units.
    """
    sizes = np.bincount(units)
    n_classes = int(classes.max()) + 1
    pairs, counts = np.unique(units * n_classes + classes, return_counts=True)
    unit_of, class_of = pairs // n_classes, pairs % n_classes
    quantile = _class_quantiles(_most_frequent_class(unit_of, class_of, counts), sizes, rng)
    shuffled_ties = np.lexsort((rng.permutation(len(sizes)), quantile))
    rank = np.empty(len(sizes))
    rank[shuffled_ties] = np.arange(len(sizes))
    first = set_cover(unit_of, class_of, sizes, rank)
    is_later = np.ones(len(sizes), dtype=bool)
    is_later[first] = False
    return np.lexsort((rank, is_later)), len(first)


def _most_frequent_class(unit_of: IntArray, class_of: IntArray, counts: IntArray) -> IntArray:
    """Return the most frequent class of each unit, (G,), from the number of rows of each pair (unit, class)."""
    by_count = np.lexsort((counts, unit_of))
    last_of_unit = np.flatnonzero(np.diff(unit_of[by_count], append=unit_of.max() + 1))
    most_frequent: IntArray = class_of[by_count][last_of_unit]
    return most_frequent


def _class_quantiles(class_of_unit: IntArray, sizes: IntArray, rng: np.random.Generator) -> np.ndarray:
    """Shuffle the units of each class and return the quantile of each unit among the rows of its class, (G,)."""
    shuffled = rng.permutation(len(sizes))
    by_class = shuffled[np.argsort(class_of_unit[shuffled], kind="stable")]
    ends = np.cumsum(sizes[by_class])
    rows_in_class = np.bincount(class_of_unit, weights=sizes)
    rows_before = (np.cumsum(rows_in_class) - rows_in_class)[class_of_unit[by_class]]
    quantile = np.empty(len(sizes))
    quantile[by_class] = (ends - sizes[by_class] / 2 - rows_before) / rows_in_class[class_of_unit[by_class]]
    return quantile


def _classes(y: npt.ArrayLike | int, stratify: bool, regression: bool | None) -> tuple[int, IntArray]:
    """Return the number of rows and the class of each row, (n,); all zero if there are no classes."""
    if isinstance(y, (int, np.integer)) and not isinstance(y, bool):
        if y < 1:
            raise ValueError(
                f"expected at least one row, got n = {y}; pass the number of rows or their targets"
            )
        return int(y), np.zeros(int(y), dtype=np.int64)
    values = np.asarray(y)
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(
            f"expected targets of shape (n,) with n >= 1 or a number of rows, got shape {values.shape}; "
            "for several targets pass the number of rows"
        )
    if not stratify or regression:
        return len(values), np.zeros(len(values), dtype=np.int64)
    distinct, numbers = _distinct(values, "targets")
    if regression is None and values.dtype.kind in "fiu" and _is_regression(distinct, len(values)):
        return len(values), np.zeros(len(values), dtype=np.int64)
    return len(values), numbers


def _is_regression(distinct: npt.NDArray[Any], n: int) -> bool:
    """Return whether n numbers with these distinct values are measurements, by the rule of `subset`."""
    many, mostly_different = len(distinct) > _MAX_CLASS_VALUES, len(distinct) > max(n / 2, 2)
    whole = distinct.dtype.kind in "iu" or bool(np.all(np.mod(distinct, 1) == 0))
    return (many and mostly_different) if whole else (many or mostly_different)


def _distinct(values: npt.NDArray[Any], what: str) -> tuple[npt.NDArray[Any], IntArray]:
    """Return the distinct labels in order, and the index of each row's label among them, (n,)."""
    try:
        distinct, numbers = np.unique(values, return_inverse=True)
    except TypeError as error:
        kinds = ", ".join(sorted({type(value).__name__ for value in values}))
        raise TypeError(
            f"expected {what} that can be compared with each other, all text or all numbers, got values of type "
            f"{kinds}; give a label to rows without one, or leave them out"
        ) from error
    return distinct, numbers.astype(np.int64)


def _group_numbers(groups: npt.ArrayLike, n: int) -> IntArray:
    values = np.asarray(groups)
    if values.shape != (n,):
        raise ValueError(f"expected groups of shape ({n},), one label per row; got shape {values.shape}")
    return _distinct(values, "groups")[1]


def _number_of_rows(size: Any, n: int) -> int:
    """Return the number of rows that ``size`` means: a float of at most 1.0 is a fraction of the n rows."""
    number = isinstance(size, (int, float, np.integer, np.floating)) and not isinstance(size, bool)
    if number and isinstance(size, (float, np.floating)) and 0 < size <= 1:
        return max(1, round(float(size) * n))
    if not number or not math.isfinite(size) or size != int(size):
        raise TypeError(
            f"expected size as a whole number of rows, or a fraction of them in (0, 1], got {size!r}; round it"
        )
    return int(size)
