"""Sobol indices: which part of a function's variance each of its independent uniform inputs explains.

Notation: A and B are independent samples (N, d); A_B^i is A with column i from B.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fabolas._types import Array
from fabolas.optimize import sobol


@dataclass(frozen=True)
class SobolIndices:
    """First-order and total indices of each of K functions, (K, d), and their variances (K,)."""

    first: Array
    total: Array
    variance: Array


def sobol_indices(
    function: Callable[[Array], Array], d: int, n: int, rng: np.random.Generator
) -> SobolIndices:
    """Estimate the indices from n (d + 2) points of a quasi-random sequence.

    Args:
        function: Points (m, d) of the unit cube -> the values (K, m) of K functions.
        d: Number of inputs.
        n: Size of each sample; a power of two is best.
        rng: Rotates the sequence.
    """
    both = sobol(n, 2 * d, rng)
    A, B = both[:, :d], both[:, d:]
    mixed = np.repeat(A[None], d, axis=0)  # (d, n, d)
    for i in range(d):
        mixed[i, :, i] = B[:, i]
    values = function(np.concatenate([A, B, mixed.reshape(-1, d)]))
    K = len(values)
    of_a, of_b, of_mixed = values[:, :n], values[:, n : 2 * n], values[:, 2 * n :].reshape(K, d, n)
    variance = values[:, : 2 * n].var(axis=1)
    centre = values[:, : 2 * n].mean(axis=1)[:, None, None]
    # Saltelli et al. 2010, table 2: (b) for the first order, (f), due to Jansen, for the total.
    first = np.mean((of_b[:, None] - centre) * (of_mixed - of_a[:, None]), axis=2)
    total = 0.5 * np.mean((of_a[:, None] - of_mixed) ** 2, axis=2)
    divisor = np.where(variance > 0, variance, 1.0)[:, None]
    return SobolIndices(first / divisor, total / divisor, variance)
