"""Weighted set cover: groups of rows that together contain every class, with as few rows as possible."""

import heapq

import numpy as np

from fabolas._types import Array, IntArray

# The exact search needs 2^K steps for K classes, so 4,096 at most.
_MAX_CLASSES_EXACT = 12


def set_cover(group_of: IntArray, class_of: IntArray, sizes: IntArray, rank: Array) -> list[int]:
    """Return groups that together contain every class; none of them is superfluous.

    The total number of rows is minimal if each group has only one class, or if there are at most 12 classes.
    Otherwise the groups are found by the greedy algorithm of Chvatal (1979), whose total is at most
    1 + 1/2 + ... + 1/K times the minimum for K classes.

    Args:
        group_of: (p,) the group of each pair (group, class), where the group has rows of the class.
        class_of: (p,) the class of each pair. No pair is listed twice.
        sizes: (G,) number of rows of each group.
        rank: (G,) breaks ties: of equally good groups, the one with the lowest rank is used.
    """
    n_classes = int(class_of.max()) + 1
    if len(group_of) == len(sizes):  # each group has one class: use the smallest group of each class
        best = np.lexsort((rank[group_of], sizes[group_of], class_of))
        firsts = np.searchsorted(class_of[best], np.arange(n_classes))
        return [int(group) for group in group_of[best[firsts]]]
    if n_classes <= _MAX_CLASSES_EXACT:
        return _exact(group_of, class_of, sizes, rank)
    return _without_superfluous(_greedy(group_of, class_of, sizes, rank), group_of, class_of, sizes)


def _exact(group_of: IntArray, class_of: IntArray, sizes: IntArray, rank: Array) -> list[int]:
    """Dynamic programming over sets of classes; a set is a number whose bits are the classes.

    ``rows[missing]`` is the minimal number of rows that contain all classes of the set ``missing``.
    """
    classes = np.zeros(len(sizes), dtype=np.int64)  # (G,) the set of classes of each group
    np.bitwise_or.at(classes, group_of, 1 << class_of)
    by_size = np.lexsort((rank, sizes))
    _, first = np.unique(classes[by_size], return_index=True)
    groups = by_size[np.sort(first)]  # the smallest group for each set of classes
    all_classes = (1 << (int(class_of.max()) + 1)) - 1
    rows = np.zeros(all_classes + 1, dtype=np.int64)
    choice = np.zeros(all_classes + 1, dtype=np.int64)
    for missing in range(1, all_classes + 1):
        useful = groups[(classes[groups] & missing) != 0]
        total = sizes[useful] + rows[missing & ~classes[useful]]
        best = int(np.argmin(total))
        rows[missing], choice[missing] = total[best], useful[best]
    found, missing = [], all_classes
    while missing:
        found.append(int(choice[missing]))
        missing &= ~int(classes[choice[missing]])
    return found


def _greedy(group_of: IntArray, class_of: IntArray, sizes: IntArray, rank: Array) -> list[int]:
    """Add the group with the fewest rows per new class until no class is missing; O(p log p).

    The price of a group, rows per new class, can only rise. So the heap may hold old prices: a group is used
    only if its price at the top of the heap is the present one.
    """
    groups_with, classes_in = _values_by_key(class_of, group_of), _values_by_key(group_of, class_of)
    n_new = np.bincount(group_of)  # (G,) classes of each group that are still missing
    heap = [(size / n, r, g) for g, (size, n, r) in enumerate(zip(sizes, n_new, rank, strict=True))]
    heapq.heapify(heap)
    missing = np.ones(len(groups_with), dtype=bool)
    found = []
    while missing.any():
        price, _, group = heap[0]
        if n_new[group] == 0:
            heapq.heappop(heap)
        elif price < sizes[group] / n_new[group]:
            heapq.heapreplace(heap, (sizes[group] / n_new[group], rank[group], group))
        else:
            found.append(group)
            for c in classes_in[group][missing[classes_in[group]]]:
                missing[c] = False
                n_new[groups_with[c]] -= 1
    return found


def _without_superfluous(
    groups: list[int], group_of: IntArray, class_of: IntArray, sizes: IntArray
) -> list[int]:
    """Remove groups whose classes the other groups contain too, the largest groups first."""
    classes_in = _values_by_key(group_of, class_of)
    times = np.zeros(int(class_of.max()) + 1, dtype=np.int64)  # (K,) how many groups contain each class
    for group in groups:
        times[classes_in[group]] += 1
    for group in sorted(groups, key=lambda group: -sizes[group]):
        if np.all(times[classes_in[group]] > 1):
            times[classes_in[group]] -= 1
            groups = [other for other in groups if other != group]
    return groups


def _values_by_key(keys: IntArray, values: IntArray) -> list[IntArray]:
    """Return for each key 0, 1, ... the values at its positions."""
    return np.split(values[np.argsort(keys, kind="stable")], np.cumsum(np.bincount(keys))[:-1])
