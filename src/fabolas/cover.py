"""Few rows that show every class, where rows come in units that are never torn apart: a weighted set cover."""

import heapq

import numpy as np

from fabolas._types import Array, IntArray

# Classes up to which all sets of them are gone through: 4,096, and as many kinds of units at most.
_EXACT = 12


def cover(unit_of: IntArray, class_of: IntArray, sizes: IntArray, rank: Array) -> list[int]:
    """Units that together show every class, none of which could be left out.

    They have the fewest rows possible if every unit shows one class only, or there are at most 12 classes. Else
    they are found greedily, by rows for each class that is new: for K classes in at most 1 + 1/2 + ... + 1/K times
    as many rows.

    Args:
        unit_of: (p,) units and
        class_of: (p,) the classes they show, a pair of each kind.
        sizes: (G,) rows of each unit.
        rank: (G,) of units that would do equally well, the one of the lowest rank is taken.
    """
    n_classes = int(class_of.max()) + 1
    if len(unit_of) == len(sizes):
        best = np.lexsort((rank[unit_of], sizes[unit_of], class_of))
        firsts = np.searchsorted(class_of[best], np.arange(n_classes))
        return [int(unit) for unit in unit_of[best[firsts]]]
    if n_classes <= _EXACT:
        return _fewest(unit_of, class_of, sizes, rank)
    return _irredundant(_greedy(unit_of, class_of, sizes, rank), unit_of, class_of, sizes)


def _fewest(unit_of: IntArray, class_of: IntArray, sizes: IntArray, rank: Array) -> list[int]:
    """By the fewest rows for every set of classes that may still be missing; a set is the bits of a number."""
    shown = np.zeros(len(sizes), dtype=np.int64)
    np.bitwise_or.at(shown, unit_of, 1 << class_of)
    by_size = np.lexsort((rank, sizes))
    _, first = np.unique(shown[by_size], return_index=True)
    units = by_size[np.sort(first)]  # of each kind the smallest
    full = (1 << (int(class_of.max()) + 1)) - 1
    rows = np.zeros(full + 1, dtype=np.int64)
    choice = np.zeros(full + 1, dtype=np.int64)
    for missing in range(1, full + 1):
        useful = units[(shown[units] & missing) != 0]
        least = sizes[useful] + rows[missing & ~shown[useful]]
        best = int(np.argmin(least))
        rows[missing], choice[missing] = least[best], useful[best]
    found, missing = [], full
    while missing:
        found.append(int(choice[missing]))
        missing &= ~int(shown[choice[missing]])
    return found


def _greedy(unit_of: IntArray, class_of: IntArray, sizes: IntArray, rank: Array) -> list[int]:
    """Always the unit with the fewest rows for each new class; O(p log p), since no unit becomes better."""
    shown_by, showing = _lists(class_of, unit_of), _lists(unit_of, class_of)
    new = np.bincount(unit_of)
    heap = [(size / count, r, u) for u, (size, count, r) in enumerate(zip(sizes, new, rank, strict=True))]
    heapq.heapify(heap)
    missing = np.ones(len(shown_by), dtype=bool)
    found = []
    while missing.any():
        price, _, unit = heap[0]
        if new[unit] == 0:
            heapq.heappop(heap)
        elif price < sizes[unit] / new[unit]:  # it was as good as that before others showed what it shows
            heapq.heapreplace(heap, (sizes[unit] / new[unit], rank[unit], unit))
        else:
            found.append(unit)
            for c in showing[unit][missing[showing[unit]]]:
                missing[c] = False
                new[shown_by[c]] -= 1
    return found


def _irredundant(units: list[int], unit_of: IntArray, class_of: IntArray, sizes: IntArray) -> list[int]:
    """The same without those, large ones first, whose classes the others show too."""
    showing = _lists(unit_of, class_of)
    times = np.zeros(int(class_of.max()) + 1, dtype=np.int64)
    for unit in units:
        times[showing[unit]] += 1
    for unit in sorted(units, key=lambda unit: -sizes[unit]):
        if np.all(times[showing[unit]] > 1):
            times[showing[unit]] -= 1
            units = [other for other in units if other != unit]
    return units


def _lists(keys: IntArray, values: IntArray) -> list[IntArray]:
    """For each key 0 ... the values that stand beside it."""
    return np.split(values[np.argsort(keys, kind="stable")], np.cumsum(np.bincount(keys))[:-1])
