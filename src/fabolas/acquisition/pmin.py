"""p_min by joint sampling: which representer is lowest, counted over samples of all of them.

Notation: K hyperparameter samples, R representers at the target fidelity, S joint samples with common random
numbers Z. Samples are single precision: what is counted is an order, and halving the memory halves the time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from fabolas._types import Array, IntArray
from fabolas.gp.process import cholesky
from fabolas.sequences import spread

Single = npt.NDArray[np.float32]


def normal_numbers(samples: int, dimension: int, rng: np.random.Generator) -> Array:
    """(S, dimension) standard normal numbers, more evenly spread than independent ones."""
    normal: Array = ndtri(np.clip(spread(samples, dimension, rng), 1e-9, 1.0 - 1e-9))
    return normal


def joint_samples(mean: Array, factor: Array, Z: Array) -> Array:
    """f_R = mean + factor Z: mean (K, R), factor (K, R, R) lower, Z (S, R) -> (K, S, R)."""
    return mean[:, None, :] + Z @ np.swapaxes(factor, 1, 2)


def lowest(values: Array | Single) -> IntArray:
    """The index of the lowest along the last axis."""
    labels: IntArray = np.argmin(values, axis=-1)
    return labels


def frequencies(labels: IntArray, R: int) -> Array:
    """How often each of R labels occurs along the last axis: (..., S) -> (..., R), summing to one."""
    leading = labels.shape[:-1]
    rows = np.arange(int(np.prod(leading))) * R
    flat = labels.reshape(len(rows), -1) + rows[:, None]
    counts = np.bincount(flat.ravel(), minlength=len(rows) * R)
    share: Array = counts.reshape(*leading, R) / labels.shape[-1]
    return share


def pmin(mean: Array, covariance: Array, Z: Array) -> Array:
    """p_min over the representers for each hyperparameter sample: (K, R)."""
    F = joint_samples(mean, cholesky(covariance), Z)
    return frequencies(lowest(F), mean.shape[1])


def entropy(p: Array) -> Array:
    """-sum p log p along the last axis, in nats; 0 log 0 = 0."""
    logarithm = np.log(p, out=np.zeros_like(p), where=p > 0)
    total: Array = -np.sum(p * logarithm, axis=-1)
    return total
