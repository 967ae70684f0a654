"""p_min by expectation propagation, with its derivatives (Hennig and Schuler, JMLR 2012).

Representer r is lowest if g_j = f_j - f_r > 0 for all j != r. In these differences, g ~ N(m, K), the event is
an orthant, and EP replaces each factor 1[g_j > 0] by a Gaussian site exp(-tau_j g_j^2 / 2 + nu_j g_j) that
gives g_j the mean and variance it has under the true factor and the other sites. All R runs go on at once,
r the first axis. K may be singular: nothing below inverts it.

Notation, for one r: S = diag(tau)^(1/2), B = I + S K S,
    W = S B^-1 S, the precision that the sites add,         V = K - K W K, the approximate covariance,
    a = W (nu / tau - m) = nu - tau mu, the pull,           mu = m + K a, the approximate mean,
    v_j = V_jj / (1 - tau_j V_jj), c_j = mu_j - v_j a_j,    g_j without its site (the cavity), N(c_j, v_j).
Then, with Z_j = Phi(c_j / sqrt(v_j)),
    log Z = sum_j [log Z_j + log(1 + tau_j v_j) / 2 + (m_j - c_j) a_j / 2] - log|B| / 2.
It is stationary in the sites, so its first derivatives are those at fixed sites: d log Z / dm = a and
d log Z / dK = (a a' - W) / 2. The second derivative in m has to follow the sites, see `_curvature`. The steps
are written out in docs/method/ep.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, logsumexp

from fabolas._types import Array, BoolArray
from fabolas.acquisition.truncated_normal import moments, truncated

_JITTER = 1e-10  # variance added to each representer, relative to the largest: ties are split evenly
_EPS = float(np.finfo(np.float64).eps)
_HOPELESS = 500.0  # nats: a probability of e^-500 is zero for every purpose
_CERTAIN = 100.0  # standard deviations by which the placeholder g_r is above zero: Phi is exactly 1 there


@dataclass(frozen=True)
class EpPmin:
    """p_min over R representers, and the derivatives of each log Z (log p_min before normalisation)."""

    log_p: Array  # (R,) normalised
    log_z: Array  # (R,) as EP gives it; the exact ones would sum to one
    d_mean: Array  # (R, R): [r, i] = d log_z[r] / d mean[i]
    d2_mean: Array  # (R, R, R): [r, i, j] = d^2 log_z[r] / d mean[i] d mean[j]
    d_covariance: Array  # (R, R, R): [r, i, j] = d log_z[r] / d covariance[i, j], ij and ji apart

    def __post_init__(self) -> None:
        R = len(self.log_z)
        shapes = {
            "log_p": (R,),
            "d_mean": (R, R),
            "d2_mean": (R, R, R),
            "d_covariance": (R, R, R),
        }
        for name, shape in shapes.items():
            got = getattr(self, name)
            if got.shape != shape:
                raise ValueError(f"{name}: expected shape {shape} as log_z has {R} entries, got {got.shape}")
            if not np.all(np.isfinite(got)):
                raise ValueError(f"{name}: expected finite numbers, got {np.sum(~np.isfinite(got))} others")


def ep_pmin(mean: Array, covariance: Array, *, tolerance: float = 1e-6, max_sweeps: int = 100) -> EpPmin:
    """Which of R jointly normal values is lowest: log-probabilities by EP, with derivatives.

    Exact for R = 2. Valid for singular covariances: every variance is raised by 1e-10 of the largest, which
    decides how representers that are closer than that share their probability.

    Args:
        mean: (R,).
        covariance: (R, R), of the values without noise.
        tolerance: Largest relative mismatch of an approximate moment; log Z is off by about its square.
        max_sweeps: After this many passes over all sites a run ends although its moments do not match.
    """
    m, K = _differences(*_checked(mean, covariance))
    R = len(m)
    tau, nu = np.zeros((R, R)), np.zeros((R, R))
    converged, first_log_z = np.zeros(R, dtype=bool), np.zeros(R)  # log Z as the first sweep estimates it
    runs = np.arange(R)  # those that go on
    for sweep in range(max_sweeps + 1):
        state = _state(m[runs], K[runs], tau[runs], nu[runs])
        go_on = state.mismatch() > tolerance
        converged[runs] = ~go_on
        if not np.any(go_on) or sweep == max_sweeps:
            break
        runs, state = runs[go_on], state.take(go_on)
        if sweep == 0:
            tau[runs], nu[runs], first_log_z[runs] = _sweep(state, give_up=True)
            runs = runs[first_log_z[runs] >= -_HOPELESS]
        else:
            tau[runs], nu[runs], _ = _sweep(state)
    state = _state(m, K, tau, nu)
    hopeless = first_log_z < -_HOPELESS
    log_z = np.where(hopeless, first_log_z, state.log_z())
    return EpPmin(
        log_p=log_z - logsumexp(log_z),
        log_z=log_z,
        d_mean=_to_values(state.a),
        d2_mean=_to_values(_to_values(_curvature(state, converged), 1), 2),
        d_covariance=_to_values(
            _to_values(0.5 * (state.a[:, :, None] * state.a[:, None, :] - state.W()), 1), 2
        ),
    )


def _checked(mean: Array, covariance: Array) -> tuple[Array, Array]:
    """The mean and a symmetric, strictly positive definite covariance."""
    R = len(mean)
    if mean.shape != (R,) or covariance.shape != (R, R) or R == 0:
        raise ValueError(
            f"expected a mean (R,) and a covariance (R, R), R >= 1, got {mean.shape} and {covariance.shape}"
        )
    if not (np.all(np.isfinite(mean)) and np.all(np.isfinite(covariance))):
        raise ValueError(
            "expected finite means and covariances, got others; look at the model that gave them"
        )
    scale = float(np.max(np.diag(covariance)))
    symmetric = 0.5 * (covariance + covariance.T)
    lowest = float(np.linalg.eigvalsh(symmetric)[0])
    if lowest < -1e-4 * scale or np.max(np.abs(covariance - symmetric)) > 1e-4 * scale:
        raise ValueError(
            f"expected a covariance, symmetric and without negative eigenvalues, got one with {lowest:.3g}"
        )
    # The second term only keeps squares of z below overflow where nothing is uncertain at all.
    jitter = max(_JITTER * scale, (1e-15 * float(np.ptp(mean))) ** 2) or 1.0
    return mean, symmetric + (jitter + max(0.0, -lowest)) * np.eye(R)


def _differences(mean: Array, covariance: Array) -> tuple[Array, Array]:
    """m (R, R) and K (R, R, R) of g_j = f_j - f_r for each r; g_r is a placeholder, surely positive."""
    r = np.arange(len(mean))
    variance = np.diag(covariance)
    m = mean[None, :] - mean[:, None]
    K = covariance[None, :, :] - covariance[:, :, None] - covariance[:, None, :]
    K += variance[:, None, None]
    K[r, r, :] = K[r, :, r] = 0.0
    K[r, r, r], m[r, r] = variance, _CERTAIN * np.sqrt(variance)
    return m, K


def _to_values(slopes: Array, axis: int = 1) -> Array:
    """Derivatives by g to derivatives by f along an axis, by g_j = f_j - f_r."""
    r = np.arange(len(slopes))
    out = np.moveaxis(slopes.copy(), axis, 1)
    out[r, r] = 0.0
    out[r, r] = -out.sum(axis=1)
    return np.moveaxis(out, 1, axis)


@dataclass(frozen=True)
class _State:
    """The Gaussian approximation that the sites of A runs define; symbols as at the head of the file."""

    m: Array  # (A, R)
    K: Array  # (A, R, R)
    tau: Array  # (A, R)
    nu: Array  # (A, R)
    X: Array  # (A, R, R) L^-1 S with B = L L', so that W = X' X
    V: Array  # (A, R, R)
    q: Array  # (A, R) diagonal of B^-1 = 1 - tau_j V_jj, so that v_j = V_jj / q_j without a difference
    a: Array  # (A, R)
    mu: Array  # (A, R)
    half_log_det: Array  # (A,) log|B| / 2

    def W(self) -> Array:
        return np.swapaxes(self.X, 1, 2) @ self.X

    def cavity(self) -> tuple[Array, Array]:
        """c and v, (A, R)."""
        v = np.diagonal(self.V, axis1=1, axis2=2) / self.q
        return self.mu - v * self.a, v

    def mismatch(self) -> Array:
        """How far the worst site of each run is from its fixed point, relative, (A,)."""
        c, v = self.cavity()
        h, _, variance = moments(c / np.sqrt(v))
        pull = np.abs(h - np.sqrt(v) * self.a) / (1.0 + h)
        return np.asarray(np.max(np.maximum(pull, np.abs(variance / self.q - 1.0)), axis=1))

    def log_z(self) -> Array:
        c, v = self.cavity()
        sites = log_ndtr(c / np.sqrt(v)) - 0.5 * np.log(self.q) + 0.5 * (self.m - c) * self.a
        return np.asarray(sites.sum(axis=1) - self.half_log_det)

    def take(self, which: BoolArray) -> _State:
        return _State(**{name: value[which] for name, value in vars(self).items()})


def _state(m: Array, K: Array, tau: Array, nu: Array) -> _State:
    """The approximation from its sites, from scratch."""
    s = np.sqrt(tau)
    B = s[:, :, None] * K * s[:, None, :] + np.eye(m.shape[1])
    L = np.linalg.cholesky(B)
    inverse = np.linalg.inv(L)
    X = inverse * s[:, None, :]
    XK = X @ K
    V = K - np.swapaxes(XK, 1, 2) @ XK
    q = np.sum(inverse**2, axis=1)
    pulled = np.divide(nu, s, out=np.zeros_like(nu), where=tau > 0) - s * m
    a = (np.swapaxes(X, 1, 2) @ (inverse @ pulled[:, :, None]))[:, :, 0]
    mu = m + (K @ a[:, :, None])[:, :, 0]
    # A site much narrower than the prior: the same two numbers without their cancellation.
    r, j = np.nonzero(q < 0.5)
    V[r, j, j] = (1.0 - q[r, j]) / tau[r, j]
    i = np.arange(m.shape[1])
    V[:, i, i] = np.maximum(V[:, i, i], _EPS * K[:, i, i])
    mu[r, j] = (nu[r, j] - a[r, j]) / tau[r, j]
    half_log_det = np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1)
    return _State(m, K, tau, nu, X, V, q, a, mu, half_log_det)


def _sweep(state: _State, give_up: bool = False) -> tuple[Array, Array, Array]:
    """Match the moments of each site in turn. Each match changes the approximation by a matrix of rank one.

    The sweep also estimates Z: the product of the probabilities of the factors, each given those before it.

    Args:
        state: Where the sweep starts.
        give_up: Whether to give up a run when this product falls below e^-500. Its other factors are then taken as
            satisfied. This is an upper bound, and it avoids computations in the far tails of normal distributions.

    Returns:
        tau (A, R), nu (A, R) and the estimate of log Z (A,).
    """
    tau, nu = state.tau.copy(), state.nu.copy()
    V, q, a, mu = state.V.copy(), state.q.copy(), state.a.copy(), state.mu.copy()
    log_z, outer = np.zeros(len(tau)), np.empty_like(V)
    for j in range(tau.shape[1]):
        s = V[:, :, j].copy()
        V_j, q_j = s[:, j].copy(), q[:, j].copy()
        v = np.maximum(V_j / q_j, 1e-12 * np.abs(V_j) + 1e-200)  # rounding may leave a cavity without width
        sd = np.sqrt(v)
        z = (mu[:, j] - v * a[:, j]) / sd
        if give_up:
            z = np.where(log_z < -_HOPELESS, _CERTAIN, z)
        log_z += log_ndtr(z)
        h, mean, variance = moments(z)
        tau_j = h * mean / (variance * v)  # the site for which g_j has the moments of the cut-off cavity
        d = q_j + tau_j * V_j  # 1 + step V_j, step the change of tau_j
        push = (h / sd - a[:, j] + tau_j * (sd * mean - mu[:, j])) / d
        shrink = (tau_j - tau[:, j]) / d
        a -= push[:, None] * tau * s
        a[:, j] += push * (tau[:, j] * V_j + q_j)
        mu += push[:, None] * s
        q += shrink[:, None] * tau * s**2
        q[:, j] = q_j / d
        V -= np.multiply((shrink[:, None] * s)[:, :, None], s[:, None, :], out=outer)
        V[:, :, j] = V[:, j, :] = s / d[:, None]
        tau[:, j], nu[:, j] = tau_j, h / sd + tau_j * sd * mean
    return tau, nu, log_z


def _curvature(state: _State, converged: BoolArray) -> Array:
    """d^2 log Z / dm^2 (A, R, R), with the sites following m.

    At fixed sites it would be -W. Moving m moves the cavities; a change of a cavity's mean is already in W, a
    change of its variance is not. Linearising the moment-matching equations gives

        -W + Y' (I - G N / 2)^-1 G Y / 2,   Y = diag(skewness_j / sqrt(V_jj)) (I - V diag(tau)),

    G the squared correlations under the approximation without their diagonal, N the outer product of the
    skewnesses times the correlations, with the excess kurtoses on the diagonal: all numbers of order one.
    """
    R = state.m.shape[1]
    c, v = state.cavity()
    cut = truncated(np.where(converged[:, None], c / np.sqrt(v), _CERTAIN))
    sd = np.sqrt(np.diagonal(state.V, axis1=1, axis2=2))
    rho = state.V / (sd[:, :, None] * sd[:, None, :])
    i = np.arange(R)
    rho[:, i, i] = 0.0
    G = rho**2
    N = cut.skewness[:, :, None] * rho * cut.skewness[:, None, :]
    N[:, i, i] = cut.kurtosis
    Y = -state.V * state.tau[:, None, :]
    Y[:, i, i] = state.q
    Y *= (cut.skewness / sd)[:, :, None]
    H = np.swapaxes(Y, 1, 2) @ np.linalg.solve(np.eye(R) - 0.5 * G @ N, G @ Y)
    return -state.W() + 0.25 * (H + np.swapaxes(H, 1, 2))
