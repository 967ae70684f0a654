"""How much computation a suggestion may use: from a quick decision to the full method, in proportion to its cost.

An effort level is a number from 0 (least) to 1 (full). All sizes that take time in a suggestion follow from it
(`Effort`). The seconds that a level takes are predicted from the recorded levels and overheads (`Pace`).

One strategy serves all workers. While it decides, those whose trials end wait. So overhead has two limits, and the
stricter one counts: the user's share of the time, and half of the time of the thread that decides. With w workers a
trial ends every `cost / w` seconds, so a suggestion may take half of that. If a decision takes longer, the next
suggestions come from its batch, without a decision, until the extra time is compensated. The batch is long enough for
that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fabolas._types import Array, BoolArray
from fabolas.trials import ADDED, BATCH, DESIGN, ENQUEUED, RANDOM, VERIFICATION, History, Suggestion

OVERHEAD_SHARE = 0.1  # default share of the time for overhead
BATCH_SIZE = 6  # further points that a quick decision keeps for the next suggestions
CANDIDATES_PER_CHOICE = 4  # screened candidates for each point of a quick decision and its batch, at least
# With several workers, overhead takes at most this share of one thread's time: a strategy that always computes keeps
# some of them waiting.
MAX_BUSY_SHARE = 0.5
# With at most this many evaluations left in the budget, the overhead share no longer decides: the last evaluations
# should be the best ones. The batch is then used only if a decision takes longer than the evaluation.
N_LAST_EVALUATIONS = 20.0

# Origins of suggestions that needed no decision.
_NOT_DECIDED = (DESIGN, BATCH, RANDOM, ENQUEUED, VERIFICATION, ADDED)
# A batch has at most one point for this many workers. In a longer one, the last points would be chosen without the
# outcomes of many trials.
WORKERS_PER_BATCH_POINT = 4


@dataclass(frozen=True)
class Effort:
    """The sizes of one decision."""

    level: float
    mcmc_steps: int  # of a refit of the hyperparameters
    refit_interval: int  # trials between two refits
    K: int  # hyperparameter samples
    n_representers: int
    n_samples: int  # joint samples of the representers
    n_outcomes: int  # hypothetical outcomes of an evaluation
    pool_size: int  # configurations that representers are chosen from
    n_climbs: int  # L-BFGS runs to minima of the predicted loss
    n_screened: int  # candidates that are screened
    n_estimated: int  # best screened candidates that are estimated accurately; 0 takes the best screened one
    n_refined: int  # further candidates around the best of these
    batch_size: int = BATCH_SIZE  # further points that are kept, if the decision is quick

    @property
    def is_quick(self) -> bool:
        """Whether the best screened candidate is taken as it is."""
        return self.n_estimated == 0

    def with_batch(self, size: int) -> Effort:
        """The same effort with a batch of this many points, and enough candidates to choose them from."""
        n_screened = max(self.n_screened, CANDIDATES_PER_CHOICE * (1 + size))
        return self if size == self.batch_size else replace(self, batch_size=size, n_screened=n_screened)

    @classmethod
    def at(cls, level: float, n: int) -> Effort:
        """The effort of this level with n trials: geometric interpolation between least and full."""

        def interpolate(least: float, full: float) -> int:
            return int(least * (full / least) ** level + 0.5)

        # An MCMC step is cubic in n, and new trials change its result less and less. So refits become less frequent.
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
            n_estimated=0 if level < 0.25 else interpolate(3, 24),
            n_refined=interpolate(2, 24),
        )


def reference_seconds(level: Array | float, n: Array | float) -> Array:
    """Seconds of a suggestion at this level with n trials, measured on one machine; others differ by a factor."""
    least = 0.006 * (1.0 + (np.asarray(n) / 150.0) ** 2)
    full = 0.15 * (1.0 + (np.asarray(n) / 200.0) ** 1.8)
    return np.asarray(least * (full / least) ** level)


def overspent(overheads: Array, allowances: Array) -> float:
    """Seconds of overhead beyond the allowances (m,) that later suggestions have not made up for.

    An allowance that was not used is not kept for later. So this is the largest of the sums of
    (overhead - allowance) over the last 0, 1, ..., m suggestions.
    """
    backwards = np.cumsum((overheads - allowances)[::-1])
    return max(float(backwards.max(initial=0.0)), 0.0)


def level_within_share(
    overheads: Array,
    levels: Array,
    costs: Array,
    next_cost: float,
    n: int,
    overhead_share: float = OVERHEAD_SHARE,
    decided: BoolArray | None = None,
) -> float | None:
    """The effort level that keeps overhead to its share of the time, from the recorded trials alone.

    Later suggestions make up for overhead above the share. Overhead below the share is not kept for later: one long
    trial does not allow slow decisions before a hundred short ones.

    Args:
        overheads: (m,) recorded overhead of past suggestions, in seconds.
        levels: (m,) their effort levels.
        costs: (m,) the costs of their trials.
        next_cost: Predicted cost of the evaluation that is being decided.
        n: Number of trials so far.
        overhead_share: Share of the time for overhead.
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


@dataclass(frozen=True)
class WorkerCount:
    """How many workers there are, as far as pending suggestions tell.

    Few pending suggestions can mean that workers wait for the strategy, or that they are gone. A worker that has asked
    for nothing during a whole trial is probably gone.

    Attributes:
        n: The number.
        since: How many suggestions had been made when it was last confirmed or reduced.
    """

    n: int = 1
    since: int = 0

    def updated(self, history: History, pending: tuple[Suggestion, ...]) -> WorkerCount:
        """The number when another suggestion is asked for: it rises at once, and is halved at most once per trial."""
        at_once, suggested = len(pending) + 1, len(history) + len(pending)
        if at_once >= self.n:
            return WorkerCount(at_once, suggested)
        if any(trial.id >= self.since for trial in history.trials):
            return WorkerCount(max(at_once, self.n // 2), suggested)
        return self


@dataclass(frozen=True)
class Pace:
    """The overhead of past suggestions, and its limit.

    Attributes:
        overheads: (m,) seconds.
        levels: (m,) effort levels.
        costs: (m,) seconds of the evaluations, the typical cost where they are pending, 0 where they were measured
            elsewhere.
        decided: (m,) which of them needed a decision.
        n_workers: How many workers there are.
        overhead_share: Share of the time for overhead, as the user chose it.
        typical_cost: Mean seconds of the last evaluations, one for each worker; 0 without one.
    """

    overheads: Array
    levels: Array
    costs: Array
    decided: BoolArray
    n_workers: int
    overhead_share: float
    typical_cost: float

    @classmethod
    def of(
        cls, history: History, pending: tuple[Suggestion, ...], n_workers: int, overhead_share: float
    ) -> Pace:
        """The pace of a study with this history.

        With many workers most of the last suggestions are pending. Their overhead counts at once: when their trials
        end, it is too late to compensate it. With few workers the ended trials are enough.
        """
        recent = history.costs[history.complete & ~history.added][-n_workers:]
        typical = float(np.mean(recent)) if len(recent) else 0.0
        counted = pending if _limited_by_workers(n_workers, overhead_share) else ()
        suggestions = [*(trial.suggestion for trial in history.trials), *counted]
        return cls(
            np.append(history.overheads, [s.overhead for s in counted]),
            np.append(history.efforts, [s.effort for s in counted]),
            np.append(np.where(history.added, 0.0, history.costs), np.full(len(counted), typical)),
            np.array([s.origin not in _NOT_DECIDED for s in suggestions], dtype=np.bool_),
            n_workers,
            overhead_share,
            typical,
        )

    @property
    def limited_by_workers(self) -> bool:
        """Whether there are so many workers that their limit is stricter than the user's."""
        return _limited_by_workers(self.n_workers, self.overhead_share)

    @property
    def share(self) -> float:
        """The share of a trial's cost that its suggestion may take: the stricter of both limits."""
        return min(self.overhead_share, MAX_BUSY_SHARE / self.n_workers)

    def affordable_level(self, next_cost: float) -> float | None:
        """The effort level that keeps overhead to its share; None if even the least effort does not.

        If workers limit overhead, the limit depends on how often trials end, so on their typical cost. If the next
        trial costs more, those of the other workers still end as often as before.
        """
        if self.limited_by_workers:
            next_cost = min(next_cost, self.typical_cost)
        return level_within_share(
            self.overheads, self.levels, self.costs, next_cost, len(self.costs), self.share, self.decided
        )

    def is_near_end(self, next_cost: float, remaining: float) -> bool:
        """Whether at most `N_LAST_EVALUATIONS` evaluations of this cost are left in the budget.

        One worker can make `remaining / next_cost` evaluations. If workers limit overhead, this is multiplied by
        n_workers / n, because many workers make more. With n = MAX_BUSY_SHARE / overhead_share workers both limits of
        overhead are equal, so that the factor is 1 there.
        """
        return remaining * (self.overhead_share / self.share) <= N_LAST_EVALUATIONS * next_cost

    @property
    def seconds_to_decide(self) -> float:
        """Median overhead of the last suggestions that needed a decision; 0 without one."""
        last = self.overheads[self.decided][-5:]
        return float(np.median(last)) if len(last) else 0.0

    @property
    def batch_size(self) -> int:
        """How many points a quick decision keeps: if workers limit overhead, those that compensate it."""
        if not self.limited_by_workers:
            return BATCH_SIZE
        ratio = self.share / (1.0 - self.share)
        seconds = overspent(self.overheads, ratio * self.costs) + self.seconds_to_decide
        wanted = np.ceil(seconds / max(ratio * self.typical_cost, 1e-9))
        return int(max(BATCH_SIZE, min(wanted, self.n_workers // WORKERS_PER_BATCH_POINT)))


def _limited_by_workers(n_workers: int, overhead_share: float) -> bool:
    """Whether there are so many workers that their limit is stricter than the user's."""
    return MAX_BUSY_SHARE / n_workers < overhead_share
