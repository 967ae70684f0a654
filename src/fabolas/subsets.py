"""Nested, seeded, stratified, group-aware subsets of the rows of a data set.

All subsets of one data set are prefixes of one order of its rows. The order is found once, by sorting in
O(n log n); a subset is then a slice. Rows belong to *units* that are never torn apart: the groups if there are
any, else every row is a unit of its own. The order starts with units that together show every class in few rows
(see ``cover``), and goes on so that every prefix has each class in about its share of the data: the rows of a class
of n_c rows, shuffled, are placed at the quantiles (k + 1/2) / n_c, and the quantiles of all classes are merged.
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
from fabolas.cover import cover

_FEW_VALUES = 20  # distinct numbers up to which whole ones are classes, however few rows there are
_REMEMBERED = 8


class Subsets:
    """One order of the rows of a data set, whose prefixes are its subsets.

    Args:
        y: (n,) targets, or the number of rows n.
        seed: another seed gives another order.
        stratify: keep the classes' shares; has no effect on a regression target or a mere number of rows.
        groups: (n,) group labels; the rows of a group come together or not at all.
        regression: whether numbers are measurements and not classes; None decides as `subset` says.

    Raises:
        TypeError: labels cannot be compared with each other, such as None and text.
        ValueError: there are no rows, `y` is not one-dimensional or `groups` has another length.
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
        n, labels = _labels(y, stratify, regression)
        units = np.arange(n) if groups is None else _codes(groups, n)
        rng = np.random.default_rng(seed)
        order, head = _order_of_units(labels, units, rng)
        sizes = np.bincount(units)[order]
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        self._rows: IntArray = np.argsort(rank[units], kind="stable")
        self._ends: IntArray = np.cumsum(sizes)
        self._classes = int(labels.max()) + 1
        self._grouped = groups is not None
        self.smallest = int(self._ends[head - 1])
        """The smallest size there is: one row less, and a class would be missing.

        No whole groups with fewer rows show every class, if there are at most 12 classes or each group is of one
        class. With more classes the groups are found greedily: no smaller subset of this order has every class, but
        another choice of groups might.
        """

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, size: int | float) -> IntArray:
        """The rows of the subset of `size` rows, a new array that contains those of every smaller subset.

        With groups it has at most `size` rows: as many as whole groups give.

        Raises:
            TypeError: `size` is not a whole number.
            ValueError: `size` exceeds the number of rows or is too small for the classes and groups.
        """
        wanted = _whole(size)
        n = len(self._rows)
        if wanted > n:
            raise ValueError(
                f"expected a size of at most {n}, the number of rows; got {wanted}. "
                f"Let the upper end of the fidelity be {n}"
            )
        if wanted < self.smallest:
            raise ValueError(
                f"expected a size of at least {self.smallest}, {self._reason()}; got {wanted}. "
                f"Let the lower end of the fidelity be {self.smallest} or more"
                + (", or pass stratify=False" if self._classes > 1 else "")
            )
        return self._rows[: self._ends[np.searchsorted(self._ends, wanted, side="right") - 1]].copy()

    def _reason(self) -> str:
        if self._classes == 1:
            return "the size of the smallest group" if self._grouped else "a single row"
        if self._grouped:
            return f"so that whole groups show each of the {self._classes} classes"
        return f"so that each of the {self._classes} classes is present"


def subset(
    y: npt.ArrayLike | int,
    size: int | float,
    seed: int = 0,
    stratify: bool = True,
    groups: npt.ArrayLike | None = None,
) -> IntArray:
    """Row numbers of a subset of `size` rows: nested, seeded, stratified, with every class present.

    For the same `y`, `seed` and `groups`, a larger subset contains every smaller one. The order of the rows
    of an array is found at its first use and remembered while the array lives; from then on a call is a
    slice, so do not change `y` in place between calls.

    Args:
        y: (n,) targets, or the number of rows n. Strings and booleans are classes. So are whole numbers, unless
            more than 20 of them are distinct and these are more than half as many as the rows. Numbers with
            fractions are classes if at most 20 are distinct and these at most half as many as the rows. Other
            numbers are a regression target and not stratified; pass n for whole numbers that are measurements.
        size: number of rows, from the number of classes up to n; with groups, from the size of the smallest group,
            or of the few that together show every class.
        seed: another seed gives other subsets.
        stratify: keep the classes' shares of the data.
        groups: (n,) group labels. A group comes whole or not at all; the subset then has at most `size` rows.

    Returns:
        (size,) row numbers; the classes are mixed, no need to shuffle.

    Raises:
        TypeError: `size` is not a whole number, or labels cannot be compared, such as None and text.
        ValueError: `size` is too small for the classes and groups (the message names the smallest possible; see
            `Subsets.smallest`) or too large, or `y` or `groups` have the wrong shape.
    """
    return _remembered(y, seed, stratify, groups)[size]


class _Memory:
    """The last few orders, by the identity of arrays that are still alive."""

    def __init__(self) -> None:
        self._entries: OrderedDict[tuple[Any, ...], tuple[Any, Any, Subsets]] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, key: tuple[Any, ...], y: Any, groups: Any) -> Subsets | None:
        with self._lock:
            entry = self._entries.get(key)
            # An identity may have been given to another array since; the weak reference tells.
            if entry is None or entry[0]() is not y or entry[1]() is not groups:
                return None
            self._entries.move_to_end(key)
            return entry[2]

    def keep(self, key: tuple[Any, ...], y: Any, groups: Any, order: Subsets) -> None:
        entry = (self._reference(y, key), self._reference(groups, key), order)
        with self._lock:
            self._entries[key] = entry
            self._entries.move_to_end(key)
            while len(self._entries) > _REMEMBERED:
                self._entries.popitem(last=False)

    def _reference(self, value: Any, key: tuple[Any, ...]) -> Any:
        if value is None or isinstance(value, int):
            return lambda: value
        return weakref.ref(value, lambda _: self._entries.pop(key, None))


_memory = _Memory()


def _remembered(y: Any, seed: int, stratify: bool, groups: Any) -> Subsets:
    y = int(y) if isinstance(y, np.integer) else y
    key = (y if isinstance(y, int) else id(y), type(y), seed, stratify, id(groups))
    found = _memory.find(key, y, groups)
    if found is not None:
        return found
    order = Subsets(y, seed=seed, stratify=stratify, groups=groups)
    with contextlib.suppress(TypeError):  # a list has no weak reference: its order is found at every call
        _memory.keep(key, y, groups, order)
    return order


def _order_of_units(labels: IntArray, units: IntArray, rng: np.random.Generator) -> tuple[IntArray, int]:
    """All units in order, and how many of them at the head it takes to show every class.

    Args:
        labels: (n,) class of each row, 0 ... K-1.
        units: (n,) unit of each row, 0 ... G-1.
        rng: shuffles.
    """
    sizes = np.bincount(units)
    n_classes = int(labels.max()) + 1
    pairs, counts = np.unique(units * n_classes + labels, return_counts=True)
    unit_of, class_of = pairs // n_classes, pairs % n_classes
    # The stratum of a unit is its most frequent class: the last of its pairs by count.
    by_count = np.lexsort((counts, unit_of))
    last = np.flatnonzero(np.diff(unit_of[by_count], append=len(sizes)))
    stratum = class_of[by_count][last]

    shuffled = rng.permutation(len(sizes))
    grouped = shuffled[np.argsort(stratum[shuffled], kind="stable")]  # (G,) by stratum, shuffled within
    ends = np.cumsum(sizes[grouped])
    rows_of = np.bincount(stratum, weights=sizes, minlength=n_classes)
    before = (np.cumsum(rows_of) - rows_of)[stratum[grouped]]
    quantile = np.empty(len(sizes))
    quantile[grouped] = (ends - sizes[grouped] / 2 - before) / rows_of[stratum[grouped]]
    ties = rng.permutation(len(sizes))

    by_chance = np.lexsort((ties, quantile))
    rank = np.empty(len(sizes))
    rank[by_chance] = np.arange(len(sizes))
    head = cover(unit_of, class_of, sizes, rank)
    late = np.ones(len(sizes), dtype=bool)
    late[head] = False
    return np.lexsort((rank, late)), len(head)


def _labels(y: npt.ArrayLike | int, stratify: bool, regression: bool | None) -> tuple[int, IntArray]:
    """The number of rows and the class of each; one class where there is nothing to stratify by."""
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
    distinct, codes = _distinct(values, "targets")
    if regression is None and values.dtype.kind in "fiu" and _is_regression(distinct, len(values)):
        return len(values), np.zeros(len(values), dtype=np.int64)
    return len(values), codes


def _is_regression(distinct: npt.NDArray[Any], n: int) -> bool:
    """Whether these distinct numbers are measurements: many and mostly unlike, or with fractions either of it."""
    many, unlike = len(distinct) > _FEW_VALUES, len(distinct) > max(n / 2, 2)
    whole = distinct.dtype.kind in "iu" or bool(np.all(np.mod(distinct, 1) == 0))
    return (many and unlike) if whole else (many or unlike)


def _distinct(values: npt.NDArray[Any], what: str) -> tuple[npt.NDArray[Any], IntArray]:
    """The distinct labels in order, and which of them each row has."""
    try:
        distinct, codes = np.unique(values, return_inverse=True)
    except TypeError as error:
        kinds = ", ".join(sorted({type(value).__name__ for value in values}))
        raise TypeError(
            f"expected {what} that can be compared with each other, all text or all numbers, got values of type "
            f"{kinds}; give rows without a label one, or leave them out"
        ) from error
    return distinct, codes.astype(np.int64)


def _codes(groups: npt.ArrayLike, n: int) -> IntArray:
    values = np.asarray(groups)
    if values.shape != (n,):
        raise ValueError(f"expected groups of shape ({n},), one label per row; got shape {values.shape}")
    return _distinct(values, "groups")[1]


def _whole(size: Any) -> int:
    number = isinstance(size, (int, float, np.integer, np.floating)) and not isinstance(size, bool)
    if not number or not math.isfinite(size) or size != int(size):
        raise TypeError(
            f"expected size as a whole number of rows, got {size!r}; pass int(share * n) for a share"
        )
    return int(size)
