"""How a study is opened: its arguments are checked, and what its last process left unfinished is ended."""

import operator
import secrets
from dataclasses import replace
from numbers import Real
from pathlib import Path

import numpy as np

from fabolas.curve_reports import Report
from fabolas.direction import Direction
from fabolas.space import Space
from fabolas.storage import Identity, MemoryStorage, Record, SqliteStorage, Storage, merge_early_outcomes
from fabolas.strategies import Strategy, options_of
from fabolas.trials import History, Suggestion, Trial


def end_unfinished(record: Record, now: float) -> list[Trial]:
    """The trials that were running when the study was closed or its process died, in the order in which they end now.

    An early outcome, which a worker had returned, is kept. The other trials are abandoned, with an estimated cost.
    Suggestions that were not started are not among them.

    Args:
        record: What the storage knows.
        now: Seconds since the epoch.
    """
    history = History(merge_early_outcomes(record.trials, record.early_outcomes))
    complete = history.costs[history.complete]
    typical = float(np.median(complete)) if len(complete) else 0.0
    known = {trial.id for trial in history.trials}
    started = [s for s in record.open_suggestions if s.id in record.started and s.id not in known]
    abandoned = [
        _abandoned(s, record.started[s.id], typical, now, record.reports.get(s.id, ())) for s in started
    ]
    if len(abandoned) > 1:
        # They ran at the same time, so the longest one says how much time has passed. It is recorded last, and
        # only its `elapsed` includes that time: if this process dies before, the next one counts it once.
        abandoned.sort(key=lambda trial: trial.cost)
        abandoned = [
            replace(trial, elapsed=history.elapsed + (trial.cost if trial is abandoned[-1] else 0.0))
            for trial in abandoned
        ]
    elif abandoned:
        (trial,) = abandoned
        elapsed = history.elapsed + trial.suggestion.overhead + trial.cost
        abandoned = [replace(trial, elapsed=elapsed)]
    return [*history.trials[len(record.trials) :], *abandoned]


def _abandoned(
    suggestion: Suggestion, started: float, typical: float, now: float, reports: tuple[Report, ...]
) -> Trial:
    """A trial whose process died at an unknown time: it ran no longer than predicted, and not beyond now.

    It ran at least until its last report.
    """
    expected = typical if suggestion.predicted_cost is None else suggestion.predicted_cost
    cost = min(expected, max(now - started, 0.0))
    cost = max(cost, reports[-1].cost) if reports else cost
    reason = "the study was closed, or its process ended, before an outcome was told"
    return Trial(
        suggestion,
        "abandoned",
        None,
        cost,
        error=reason,
        started=started,
        ended=started + cost,
        reports=reports,
    )


def storage_of(storage: str | Path | Storage | None) -> Storage:
    """The storage of the user's argument: a file name, a Storage, or None for memory.

    Raises:
        TypeError: If it is something else.
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


def identity_of(space: Space, strategy: Strategy, seed: int | None, direction: Direction) -> Identity:
    """Which study the arguments describe; without a seed, one is drawn.

    Raises:
        ValueError: If the seed is not a whole number >= 0.
    """
    used = secrets.randbits(32) if seed is None else check_seed(seed)
    options = options_of(strategy)
    return Identity(space, strategy.name, options, used, seed_given=seed is not None, direction=direction)


def check_seed(seed: int) -> int:
    """The seed as a plain number.

    Raises:
        ValueError: If it is not a whole number >= 0.
    """
    try:
        number = operator.index(seed)
    except TypeError:
        number = -1
    if isinstance(seed, bool) or number < 0:
        raise ValueError(f"seed must be a whole number >= 0, got {seed!r}; leave it out to have one drawn")
    return number


def check_overhead(overhead: float | None) -> float | None:
    """The overhead as a plain number; None stays None.

    Raises:
        ValueError: If it is not a number of seconds >= 0.
    """
    if overhead is None:
        return None
    number = isinstance(overhead, Real) and not isinstance(overhead, bool)
    if not (number and np.isfinite(float(overhead)) and overhead >= 0):
        raise ValueError(f"overhead must be seconds >= 0, got {overhead!r}; leave it out to have it measured")
    return float(overhead)
