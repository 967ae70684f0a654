"""Failures by chance: a node that went away says nothing about the configuration that it was training.

The models see a failure as a very bad loss, so that a region where trials fail is avoided. One failure by chance near
the optimum would hide it. So a failure does not count if the trials near it mostly succeeded
(docs/decisions/failures.md).
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from fabolas._types import Array, BoolArray
from fabolas.trials import History

WIDTH = 0.15  # of what is near, times sqrt(d): two random configurations are typically 0.4 sqrt(d) apart
PRIOR = 1.0  # how many failures at its own place a failure is worth: alone, it is taken for the configuration's fault


def without_cause(history: History, n_choices: tuple[int, ...]) -> BoolArray:
    """(n,) Which trials failed for no reason in their configuration.

    Another trial succeeded at the same point, or the failure is `by_chance`.
    """
    points, failed, complete = history.points, history.failed, history.complete
    redeemed = np.zeros(len(points), dtype=np.bool_)
    if failed.any() and complete.any():
        redeemed[failed] = (points[failed, None] == points[None, complete]).all(axis=2).any(axis=1)
    return redeemed | by_chance(points, failed, complete, n_choices)


def by_chance(points: Array, failed: BoolArray, complete: BoolArray, n_choices: tuple[int, ...]) -> BoolArray:
    """Which trials failed by chance: the successes near them outweigh the failures near them and `PRIOR`.

    Args:
        points: (n, D) configurations and fidelities.
        failed: (n,) which trials failed.
        complete: (n,) which have a loss. The others say nothing.
        n_choices: (d,) for each of the first columns 0 if it is numeric, else the number of categories.
    """
    chance = np.zeros(len(points), dtype=np.bool_)
    if failed.any() and complete.any():
        places = _places(points, n_choices)
        squares = 2.0 * WIDTH**2 * max(len(n_choices), 1)
        successes, failures = (
            np.exp(-cdist(places[failed], places[others], "sqeuclidean") / squares).sum(axis=1)
            for others in (complete, failed)
        )
        chance[failed] = successes > failures - 1.0 + PRIOR  # without the failure itself
    return chance


def _places(points: Array, n_choices: tuple[int, ...]) -> Array:
    """(n, p) The points such that the distance of two different categories is 1, as in `Matern52`."""
    columns = []
    for j in range(points.shape[1]):
        column = points[:, j : j + 1]
        is_categorical = j < len(n_choices) and n_choices[j] > 0
        columns.append((column == np.unique(column)) / np.sqrt(2.0) if is_categorical else column)
    return np.concatenate(columns, axis=1)
