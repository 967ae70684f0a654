"""How a study is opened: what was asked for is checked, and what its last process left behind is ended."""

import operator
from dataclasses import replace
from numbers import Real
from pathlib import Path

import numpy as np

from fabolas.history import History, Suggestion, Trial
from fabolas.storage import MemoryStorage, Record, SqliteStorage, Storage, joined


def left_behind(record: Record, now: float) -> list[Trial]:
    """What was under way when the study was closed or its process died, as trials in the order they end in now.

    Outcomes that had arrived are what they are; the other trials are lost, and what each cost is estimated. What
    nobody had begun with is not among them.

    Args:
        record: What the storage knows.
        now: Seconds since the epoch.
    """
    history = History(joined(record.trials, record.arrivals))
    complete = history.costs[history.complete]
    typical = float(np.median(complete)) if len(complete) else 0.0
    known = {trial.id for trial in history.trials}
    begun = [s for s in record.pending if s.id in record.started and s.id not in known]
    lost = [_lost(s, record.started[s.id], typical, now) for s in begun]
    if len(lost) > 1 or any(trial.elapsed is not None for trial in history.trials):
        # They ran side by side: the longest says how much time has passed. It is recorded last, and alone says so:
        # a process that dies before that has counted nothing, and the next one counts it once.
        lost.sort(key=lambda trial: trial.cost)
        lost = [
            replace(trial, elapsed=history.elapsed + (trial.cost if trial is lost[-1] else 0.0))
            for trial in lost
        ]
    return [*history.trials[len(record.trials) :], *lost]


def _lost(suggestion: Suggestion, started: float, typical: float, now: float) -> Trial:
    """Nobody knows when the process died: a trial ran no longer than expected, nor than since it was begun with."""
    expected = typical if suggestion.predicted_cost is None else suggestion.predicted_cost
    cost = min(expected, max(now - started, 0.0))
    reason = "the study was closed, or its process ended, before an outcome was told"
    return Trial(suggestion, "lost", None, cost, error=reason)


def storage_of(storage: str | Path | Storage | None) -> Storage:
    """The storage in the user's words.

    Raises:
        TypeError: If it is none.
    """
    if storage is None:
        return MemoryStorage()
    if isinstance(storage, str | Path):
        return SqliteStorage(storage)
    if not callable(getattr(storage, "open", None)):
        raise TypeError(
            f"storage must be the name of a file or a Storage, got {storage!r}; leave it out to keep the record in "
            "memory"
        )
    return storage


def check_seed(seed: int) -> int:
    """The seed as a plain number.

    Raises:
        ValueError: If it is no whole number >= 0.
    """
    try:
        number = operator.index(seed)
    except TypeError:
        number = -1
    if isinstance(seed, bool) or number < 0:
        raise ValueError(f"seed must be a whole number >= 0, got {seed!r}; leave it out to have one drawn")
    return number


def check_overhead(overhead: float | None) -> float | None:
    """The overhead as a plain number; None is left as it is.

    Raises:
        ValueError: If it is not seconds >= 0.
    """
    if overhead is None:
        return None
    number = isinstance(overhead, Real) and not isinstance(overhead, bool)
    if not (number and np.isfinite(float(overhead)) and overhead >= 0):
        raise ValueError(f"overhead must be seconds >= 0, got {overhead!r}; leave it out to have it measured")
    return float(overhead)
