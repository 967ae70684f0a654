"""p_min from a mean and a covariance alone."""

import numpy as np

from fabolas.acquisition.entropy import frequencies, joint_samples, lowest
from fabolas.gp.regression import cholesky


def pmin(mean: np.ndarray, covariance: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """p_min over the representers for each hyperparameter sample: (K, R)."""
    F = joint_samples(mean, cholesky(covariance), Z)
    return frequencies(lowest(F), mean.shape[1])
