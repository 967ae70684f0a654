"""The cost of an algorithm as a sum of non-negative terms: a mean function for log-cost.

Fixed costs, one pass over the data, kernel matrices, their factorisation: powers k = 0, 1, 2, 3 of the relative size s,
and 1.5 for what lies between.
Terms that small sizes do not show may dominate at the target. The weights are sampled, so that predictions include
this possibility.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fabolas._types import Array
from fabolas.gp.priors import Normal, Prior


@dataclass(frozen=True)
class CostTerm:
    """The term w s^power of the cost. Its weight w is relative to the linear term at the target.

    Attributes:
        power: Of the relative size s.
        mean: Prior mean of log w.
        sd: Prior standard deviation of log w.
    """

    power: float
    mean: float
    sd: float


@dataclass(frozen=True)
class PolynomialLogCost:
    """sum_j log(1 + sum_k w_jk s_j^(k - 1)) - log(1 + sum_k w_jk): with several fidelities j, a product of polynomials.

    With one fidelity this is the logarithm of the cost per size, (s + sum_k w_k s^k) / s, minus that at the target.
    So it is zero at the target. The sampled coordinates are the log-weights in prior standard deviations, because MCMC
    expects coordinates of order one.

    Attributes:
        terms: All terms but the linear one; each fidelity has weights of its own.
        log_sizes: Points (n, D) -> log s (n, f); further columns are ignored.
        n_fidelities: f.
    """

    terms: tuple[CostTerm, ...]
    log_sizes: Callable[[Array], Array]
    n_fidelities: int = 1

    @property
    def priors(self) -> tuple[Prior, ...]:
        return (Normal(0.0, 1.0),) * (len(self.terms) * self.n_fidelities)

    def evaluate(self, theta: Array, points: Array) -> Array:
        K, m, f = len(theta), len(self.terms), self.n_fidelities
        power, mean, sd = np.array([(term.power, term.mean, term.sd) for term in self.terms]).T
        log_weights = np.zeros((K, f, m + 1))  # the last one is the linear term
        log_weights[..., :m] = mean + sd * theta.reshape(K, f, m)
        powers = np.append(power - 1.0, 0.0)
        log_s = self.log_sizes(points)[:, :f].T  # (f, n)
        terms = log_weights[:, :, None, :] + log_s[None, :, :, None] * powers  # (K, f, n, m + 1)
        relative = _log_sum_exp(terms) - _log_sum_exp(log_weights)[:, :, None]
        return np.asarray(relative.sum(axis=1))


def _log_sum_exp(terms: Array) -> Array:
    """The logarithm of the sum of exponentials over the last axis; scipy's is slow for small arrays."""
    largest = terms.max(axis=-1)
    return np.asarray(largest + np.log(np.exp(terms - largest[..., None]).sum(axis=-1)))
