"""How hard to think: from an instant's look to the full method, in proportion to what the answer costs to try.

An effort is a number from 0 (least) to 1 (full). Everything that takes time in a suggestion follows from it,
and the seconds that an effort takes are predicted from the recorded efforts and thinking times.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fabolas._types import Array, BoolArray

SHARE = 0.1  # of the time, for thinking


@dataclass(frozen=True)
class Effort:
    """What a suggestion may use."""

    level: float
    steps: int  # of MCMC, where the hyperparameters are refitted
    every: int  # refit at every so many trials
    K: int  # hyperparameter samples
    representers: int
    samples: int  # joint samples
    outcomes: int
    pool: int  # points that representers are chosen from
    climbs: int  # from so many of these to where the models predict less
    screened: int  # candidates whose information is estimated by moments
    counted: int  # candidates whose information is counted; with 0 the best screened one is taken
    refined: int  # further candidates around the best of these

    @classmethod
    def at(cls, level: float, n: int) -> Effort:
        """The effort of this level with n trials: geometric between the ends."""

        def between(least: float, full: float) -> int:
            return int(least * (full / least) ** level + 0.5)

        # A step of MCMC is cubic in n. Its results change ever less as n grows, so it may come ever more seldom.
        return cls(
            level=level,
            steps=between(3, 12),
            every=max(1, round(n / between(8, 100))),
            K=between(4 if n < 500 else 3, 8),
            representers=between(16, 40),
            samples=between(64, 192),
            outcomes=3 if level < 0.5 else 5,
            pool=between(64, 240),
            climbs=between(1, 2),
            screened=between(80, 600),
            counted=0 if level < 0.25 else between(3, 24),
            refined=between(2, 24),
        )


def seconds(level: Array | float, n: Array | float) -> Array:
    """What a suggestion took on one machine when the figures above were chosen; others differ by a factor."""
    least = 0.006 * (1.0 + (np.asarray(n) / 150.0) ** 2)
    full = 0.15 * (1.0 + (np.asarray(n) / 200.0) ** 1.8)
    return np.asarray(least * (full / least) ** level)


def debt(thinking: Array, allowances: Array) -> float:
    """Seconds thought beyond what was allowed, (m,) each, and not made up for since.

    What is left of an allowance is not saved, so this is the sum since its lowest point: the largest of the
    sums over the last 0, 1, ..., m suggestions.
    """
    backwards = np.cumsum((thinking - allowances)[::-1])
    return max(float(backwards.max(initial=0.0)), 0.0)


def choose(
    thinking: Array,
    efforts: Array,
    costs: Array,
    next_cost: float,
    n: int,
    share: float = SHARE,
    decided: BoolArray | None = None,
) -> float | None:
    """The level at which thinking keeps to its share of the time, from the record alone.

    Thinking is to be `share` of the time. What was thought too much is made up for; what was thought too
    little is not: a long trial does not pay for a hundred idle ones.

    Args:
        thinking: (m,) seconds recorded for past suggestions.
        efforts: (m,) their levels.
        costs: (m,) what their trials cost.
        next_cost: predicted cost of the trial being decided.
        n: trials so far.
        share: of the time, for thinking.
        decided: (m,) which suggestions took a decision, and so tell how fast the machine is; None for all.

    Returns:
        From 0 (least) to 1 (full); None where even the least is more than the share allows.
    """
    ratio = share / (1.0 - share)
    allowance = ratio * next_cost - debt(thinking, ratio * costs)
    if allowance <= 0.0:
        return None
    thought = thinking > 0.0 if decided is None else decided & (thinking > 0.0)
    past = np.flatnonzero(thought)[-10:]
    relative = thinking[past] / seconds(efforts[past], past.astype(float))
    machine = float(np.median(relative)) if len(past) else 1.0
    least, full = machine * seconds(0.0, n), machine * seconds(1.0, n)
    level = float(np.log(allowance / least) / np.log(full / least))
    return None if level < 0.0 else min(level, 1.0)
