"""Information of an evaluation that reports on the way: all points of its curve (its trace) at once.

The reports y (m,) of one training are jointly Gaussian. Whitened, w = L^-1 (y - mean) with L L' = Cov(y), they move
the representers along the columns of B = Cov(f_R, w), (R, m): conditioning on all of them is an update of rank m.
Most of it is in one direction, because the points of one curve move the representers alike. So the trace is summarised
by the linear combination v'w that explains most of the variance of the representers: v is the first eigenvector of A'A,
where A = factor^-1 B are the same influences in whitened coordinates. So it explains at least as much variance as the
end of the trace alone. It is a function of the trace, so its information is at most that of the whole trace: we compute
a lower bound. The update stays of rank one, and everything that is defined for a single outcome holds for it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fabolas._types import Array
from fabolas.gp.regression import Posterior, Projection, cholesky

_IGNORED = 1e9  # noise variance of a point that repeats another one of its trace, so that it has no effect

Traces = Callable[[Array], Array]
"""Points (M, D) -> what each evaluation reports, with the number of its training, (M, m, D + 1).

Its own point is the last one. A report that repeats the next one of its trace does not count.
"""


def summary_influence(
    posterior: Posterior, at: Projection, factor: Array, traces: Array
) -> tuple[Array, Array]:
    """What the linear combination v'w that summarises each trace says about R representers.

    Args:
        posterior: Of the loss.
        at: The R representers.
        factor: (K, R, R) lower Cholesky factor of their covariance.
        traces: (M, m, D + 1).

    Returns:
        b, a (K, M, R), see `Representers.influence`.
    """
    B, A = trace_influence(posterior, at, factor, traces)
    _, vectors = np.linalg.eigh(np.swapaxes(A, 2, 3) @ A)  # (K, M, m, m), ascending eigenvalues
    v = vectors[..., -1:]
    return (B @ v)[..., 0], (A @ v)[..., 0]


def trace_influence(
    posterior: Posterior, at: Projection, factor: Array, traces: Array
) -> tuple[Array, Array]:
    """What the whitened reports of each trace say about R representers: B and A, both (K, M, R, m)."""
    M, m, D = traces.shape
    K, R, _ = factor.shape
    reports = posterior.project(traces.reshape(M * m, D))
    cross = posterior.covariance(at, reports).reshape(K, R, M, m)
    whitening = cholesky(outcome_covariance(posterior, traces, reports).reshape(K * M, m, m))
    whitened = np.linalg.solve(whitening.reshape(K, M, m, m), cross.transpose(0, 2, 3, 1))  # (K, M, m, R)
    B = np.swapaxes(whitened, 2, 3)
    flat = B.transpose(0, 2, 1, 3).reshape(K, R, M * m)
    A = np.linalg.solve(factor, flat).reshape(K, R, M, m).transpose(0, 2, 1, 3)
    return np.asarray(B), np.asarray(A, dtype=np.float64)


def outcome_covariance(posterior: Posterior, traces: Array, at: Projection) -> Array:
    """The covariance of the reports of each trace, noise included: (K, M, m, m).

    Args:
        posterior: Of the loss.
        traces: (M, m, D + 1).
        at: The same points, (M * m, D + 1).
    """
    M, m, D = traces.shape
    K = len(posterior.theta)
    kernel_theta = posterior.model.split(posterior.theta)[0]
    joint = posterior.model.kernel.pairs(traces[:, :, None], traces[:, None])(kernel_theta)
    V = at.V.reshape(K, at.V.shape[1], M, m)
    explained = np.einsum("knmi,knmj->kmij", V, V, optimize=True)
    covariance = np.broadcast_to(joint, (K, M, m, m)) - explained
    noise = posterior.noise(traces.reshape(M * m, D)).reshape(K, M, m)
    repeated = (traces[:, :-1] == traces[:, 1:]).all(axis=2)  # (M, m - 1)
    noise = noise + _IGNORED * np.pad(repeated, ((0, 0), (0, 1)))
    diagonal = np.arange(m)
    covariance[:, :, diagonal, diagonal] += noise
    return np.asarray(covariance)
