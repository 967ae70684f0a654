"""How much computation a suggestion may use: from a quick decision to the full method, in proportion to its cost.

An effort level is a number from 0 (least) to 1 (full). All sizes that take time in a suggestion follow from it. The
seconds that a level takes are predicted from the recorded levels and overheads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fabolas._types import Array, BoolArray

OVERHEAD_SHARE = 0.1  # default share of the time for overhead
BATCH_SIZE = 6  # further points that a quick decision keeps for the next suggestions
CANDIDATES_PER_CHOICE = 4  # a batch is chosen from at least so many times its number of candidates


@dataclass(frozen=True)
class Effort:
    """The sizes of one decision."""

    level: float
    mcmc_steps: int  # of a refit of the hyperparameters
    refit_interval: int  # trials between two refits
    K: int  # hyperparameter samples
    n_representers: int
    n_samples: int  # joint samples of the representers, for entropy
    n_outcomes: int  # hypothetical outcomes of an evaluation, for entropy
    pool_size: int  # configurations that representers are chosen from
    n_climbs: int  # L-BFGS runs to minima of the predicted loss
    n_screened: int  # candidates that are screened
    n_monte_carlo: int  # best of them that are estimated accurately; 0 takes the best screened one
    n_refined: int  # further candidates around the best of these
    batch_size: int = BATCH_SIZE  # further points that are kept, if the decision is quick

    @property
    def is_quick(self) -> bool:
        """Whether the best screened candidate is taken as it is."""
        return self.n_monte_carlo == 0

    def with_batch(self, size: int) -> Effort:
        """The same effort with a batch of so many points, and enough candidates to choose them from."""
        n_screened = max(self.n_screened, CANDIDATES_PER_CHOICE * (1 + size))
        return self if size == self.batch_size else replace(self, batch_size=size, n_screened=n_screened)

    @classmethod
    def at(cls, level: float, n: int) -> Effort:
        """The effort of this level with n trials: geometric interpolation between least and full."""

        def interpolate(least: float, full: float) -> int:
            return int(least * (full / least) ** level + 0.5)

        # An MCMC step is cubic in n, and its result changes ever less as n grows: so fits become less frequent.
        return cls(
            level=level,
            mcmc_steps=interpolate(3, 12),
            refit_interval=max(1, round(n / interpolate(8, 100))),
            K=interpolate(4 if n < 500 else 3, 8),
            n_representers=interpolate(16, 40),
            n_samples=interpolate(64, 192),
            n_outcomes=3 if level < 0.5 else 5,
            pool_size=interpolate(64, 240),
            n_climbs=interpolate(1, 2),
            n_screened=interpolate(80, 600),
            n_monte_carlo=0 if level < 0.25 else interpolate(3, 24),
            n_refined=interpolate(2, 24),
        )


def reference_seconds(level: Array | float, n: Array | float) -> Array:
    """Seconds of a suggestion at this level with n trials, measured on one machine; others differ by a factor."""
    least = 0.006 * (1.0 + (np.asarray(n) / 150.0) ** 2)
    full = 0.15 * (1.0 + (np.asarray(n) / 200.0) ** 1.8)
    return np.asarray(least * (full / least) ** level)


def overspent(overheads: Array, allowances: Array) -> float:
    """Seconds of overhead beyond the allowances (m,) that later suggestions have not saved again.

    An allowance that was not used is not kept for later. So this is the largest of the sums of
    (overhead - allowance) over the last 0, 1, ..., m suggestions.
    """
    backwards = np.cumsum((overheads - allowances)[::-1])
    return max(float(backwards.max(initial=0.0)), 0.0)


def affordable_level(
    overheads: Array,
    levels: Array,
    costs: Array,
    next_cost: float,
    n: int,
    overhead_share: float = OVERHEAD_SHARE,
    decided: BoolArray | None = None,
) -> float | None:
    """The effort level that keeps overhead to its share of the time, from the recorded trials alone.

    Overhead above the share is saved again by later suggestions. Overhead below the share is not kept for later: one
    long trial does not allow slow decisions before a hundred short ones.

    Args:
        overheads: (m,) recorded overhead of past suggestions, in seconds.
        levels: (m,) their effort levels.
        costs: (m,) the costs of their trials.
        next_cost: predicted cost of the evaluation that is being decided.
        n: number of trials so far.
        overhead_share: share of the time for overhead.
        decided: (m,) which suggestions needed a decision; only they tell how fast the machine is. None for all.

    Returns:
        From 0 (least) to 1 (full); None if even the least effort takes more than the share allows.
    """
    ratio = overhead_share / (1.0 - overhead_share)
    allowance = ratio * next_cost - overspent(overheads, ratio * costs)
    if allowance <= 0.0:
        return None
    measured = overheads > 0.0 if decided is None else decided & (overheads > 0.0)
    past = np.flatnonzero(measured)[-10:]
    relative = overheads[past] / reference_seconds(levels[past], past.astype(float))
    machine = float(np.median(relative)) if len(past) else 1.0
    least, full = machine * reference_seconds(0.0, n), machine * reference_seconds(1.0, n)
    level = float(np.log(allowance / least) / np.log(full / least))
    return None if level < 0.0 else min(level, 1.0)
