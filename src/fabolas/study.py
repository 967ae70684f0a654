"""Ask and tell: the one place where a strategy meets a clock, a seed and a storage."""

import operator
import secrets
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from fabolas.history import History, Incumbent, Outcome, Suggestion, Trial, as_cost, as_info
from fabolas.space import Fidelity, Space
from fabolas.storage import Identity, MemoryStorage, SqliteStorage, Storage
from fabolas.strategies import Strategy, make

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace

# What a clock too coarse to see an evaluation is taken to have seen; the logarithm of a cost must exist.
RESOLUTION = 1e-6


class Study:
    """Suggests what to evaluate, is told what came of it, and names the best configuration.

    All its decisions follow from its record: the same seed, outcomes and recorded thinking times give the
    same suggestions, also when the study was closed and reopened in between.

        with fabolas.Study(space, {"size": (100, 50_000)}, storage="svm.db") as study:
            suggestion = study.ask()
            study.tell(suggestion, train(suggestion.config, **suggestion.fidelity))

    Args:
        space: Hyperparameters by name, a ConfigurationSpace, or a Space.
        fidelities: Name -> (low, high) or Fidelity; the upper end is the target.
        strategy: Name of a strategy, or a strategy.
        storage: File to keep the record in; an existing one is continued. None keeps it in memory.
        seed: Whole number >= 0; None draws one, which ``study.seed`` shows and the storage keeps.
        overhead: Seconds to record as thinking time of every suggestion instead of the measured time.
        clock: Seconds from any origin.
        **options: For the strategy.

    Raises:
        ValueError: If the storage is not a study of this space, strategy and seed, among others.
        RuntimeError: If the storage is in use.
    """

    def __init__(
        self,
        space: "Mapping[str, Any] | ConfigurationSpace | Space",
        fidelities: Mapping[str, Fidelity | tuple[float, float]] | None = None,
        *,
        strategy: str | Strategy = "fabolas",
        storage: str | Path | Storage | None = None,
        seed: int | None = None,
        overhead: float | None = None,
        clock: Callable[[], float] = time.perf_counter,
        **options: Any,
    ) -> None:
        self.space = space if isinstance(space, Space) and fidelities is None else Space(space, fidelities)
        self.strategy = make(strategy, self.space, **options)
        self._overhead = _check_overhead(overhead)
        self._clock = clock
        self._unrecorded = 0.0
        given = None if seed is None else _check_seed(seed)
        drawn = secrets.randbits(32) if given is None else given
        identity = Identity(self.space, self.strategy.name, options, drawn, seed_given=given is not None)
        self._storage = _storage_of(storage)
        record = self._storage.open(identity)
        self.closed = False
        try:
            self.seed = record.seed
            self.history = History(record.trials)
            self._next_id = len(record.suggestions)
            self._pending: dict[int, Suggestion] = {}
            self._handed_out: dict[int, float] = {}
            if record.state is not None:
                self.strategy.restore(record.state)
            for suggestion in record.pending:
                self._pending[suggestion.id] = suggestion
                self._end(_lost(suggestion))
        except BaseException:
            self.close()
            raise

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All ended trials, in the order in which they ended."""
        return self.history.trials

    @property
    def pending(self) -> tuple[Suggestion, ...]:
        """Suggestions handed out and not yet told or failed."""
        return tuple(self._pending.values())

    @property
    def thinking(self) -> float:
        """Seconds of thinking, with what the next suggestion's record will contain already."""
        recorded = sum(self.history.thinking) + sum(s.thinking for s in self._pending.values())
        return float(recorded) + (self._unrecorded if self._overhead is None else 0.0)

    @property
    def spent(self) -> float:
        """Seconds the record accounts for: evaluations and thinking, pending suggestions' thinking too."""
        return self.history.spent + sum(s.thinking for s in self._pending.values())

    def ask(self, *, remaining: float | None = None) -> Suggestion:
        """The next configuration to evaluate, and at which fidelity.

        Args:
            remaining: Seconds of a time budget that are left, None without one; to be reproducible it must
                follow from the record (a budget less ``study.spent``).
        """
        self._check_open()
        number = self._next_id
        rng = np.random.default_rng([self.seed, number])
        before = self.strategy.state()
        try:
            with self._thinking():
                proposal = self.strategy.suggest(self.history, self.pending, rng, remaining=remaining)
                config, fidelity = self.space.decode(proposal.point)
            thinking = self._unrecorded
            suggestion = Suggestion(
                number,
                config,
                fidelity,
                proposal.point,
                thinking=thinking if self._overhead is None else self._overhead,
                effort=proposal.effort,
                predicted_cost=proposal.predicted_cost,
                origin=proposal.origin,
            )
            with self._thinking():
                self._storage.add_suggestion(suggestion, self.strategy.state(), time.time())
        except BaseException:
            # A suggestion that was interrupted never was: the next one must not start from half of it.
            self.strategy.restore(before)
            raise
        self._unrecorded -= thinking
        self._pending[number] = suggestion
        self._next_id += 1
        self._handed_out[number] = self._clock()
        return replace(suggestion)

    def tell(
        self,
        suggestion: Suggestion | int,
        loss: float | Outcome,
        cost: float | None = None,
        info: Mapping[str, Any] | None = None,
    ) -> Trial:
        """Record the loss of a suggestion.

        Args:
            suggestion: What ``ask`` gave, or its id.
            loss: A finite number, or an Outcome that holds it with cost and info.
            cost: Seconds the evaluation took; None takes the time since the suggestion was handed out.
            info: Anything worth keeping with the trial, stored as JSON.

        Raises:
            ValueError: If the suggestion is unknown or has ended, the loss not finite, or the cost not > 0.
            TypeError: If the loss or the cost is not a number.
        """
        now = self._clock()
        own = self._find(suggestion)
        if isinstance(loss, Outcome):
            if cost is not None or info is not None:
                raise TypeError(
                    "an Outcome brings its own cost and info, got them as arguments too; give one"
                )
            outcome = loss
        else:
            outcome = Outcome(loss, cost, as_info(info))
        seconds = self._cost(own, outcome.cost, now)
        return self._end(Trial(own, "complete", outcome.loss, seconds, outcome.info))

    def fail(
        self, suggestion: Suggestion | int, reason: str | BaseException, cost: float | None = None
    ) -> Trial:
        """Record that a suggestion could not be evaluated; it cost time, and its region is avoided.

        Args:
            suggestion: What ``ask`` gave, or its id.
            reason: What happened, in words or as an exception, whose traceback is kept.
            cost: Seconds until it failed; None takes the time since the suggestion was handed out.

        Raises:
            ValueError: If the suggestion is unknown or has ended, or the cost is not > 0.
        """
        now = self._clock()
        own = self._find(suggestion)
        error = (
            "".join(traceback.format_exception(reason)) if isinstance(reason, BaseException) else str(reason)
        )
        return self._end(
            Trial(own, "failed", None, self._cost(own, cost, now), error=error or "no reason given")
        )

    def lose(self, suggestion: Suggestion | int, reason: str) -> Trial:
        """Record that nobody waits for a suggestion any more: its time counts, its configuration is not blamed.

        Args:
            suggestion: What ``ask`` gave, or its id.
            reason: Why, in words.

        Raises:
            ValueError: If the suggestion is unknown or has ended.
        """
        now = self._clock()
        own = self._find(suggestion)
        return self._end(Trial(own, "lost", None, self._cost(own, None, now), error=reason))

    def incumbent(self) -> Incumbent | None:
        """The evaluated configuration with the lowest predicted loss at the target; None before one."""
        with self._thinking():
            return self.strategy.incumbent(self.history)

    def close(self) -> None:
        """Free the storage for others; a second call does nothing."""
        self.closed = True
        self._storage.close()

    def __enter__(self) -> "Study":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        ended, failed = len(self.history), int(self.history.failed.sum())
        counts = f"{ended} trials ({failed} failed), {len(self._pending)} pending"
        return (
            f"<Study {self.strategy.name!r}: {counts}, seed {self.seed}{', closed' if self.closed else ''}>"
        )

    @contextmanager
    def _thinking(self) -> Iterator[None]:
        """Time the body for the next suggestion's record, so that no time of ours is left out."""
        start = self._clock()
        try:
            yield
        finally:
            self._unrecorded += self._clock() - start

    def _end(self, trial: Trial) -> Trial:
        self._check_open()
        with self._thinking():
            self._storage.add_trial(trial)
            self.history = self.history.append(trial)
            del self._pending[trial.id]
            self._handed_out.pop(trial.id, None)
        return trial

    def _find(self, suggestion: Suggestion | int) -> Suggestion:
        self._check_open()
        try:
            number = suggestion.id if isinstance(suggestion, Suggestion) else operator.index(suggestion)
        except TypeError:
            got = f"got {suggestion!r} of type {type(suggestion).__name__}"
            raise TypeError(f"expected what ask() gave, or its id, {got}") from None
        own = self._pending.get(number)
        if own is None and 0 <= number < self._next_id:
            ended = next(trial for trial in self.trials if trial.id == number)
            how = f"loss {ended.loss}" if ended.error is None else ended.error.strip().splitlines()[-1]
            raise ValueError(
                f"suggestion {number} has already ended ({ended.status}: {how}); tell each one once"
            )
        if own is None or (
            isinstance(suggestion, Suggestion) and not np.array_equal(own.point, suggestion.point)
        ):
            waiting = ", ".join(map(str, self._pending)) or "none"
            raise ValueError(
                f"suggestion {number} is not of this study, whose pending ones are: {waiting}; "
                "tell what this study's ask() gave"
            )
        return own

    def _cost(self, suggestion: Suggestion, cost: float | None, now: float) -> float:
        if cost is not None:
            return as_cost(cost)
        return max(now - self._handed_out[suggestion.id], RESOLUTION)

    def _check_open(self) -> None:
        if self.closed:
            raise RuntimeError("this study is closed; open it again with fabolas.Study(..., storage=...)")


def _lost(suggestion: Suggestion) -> Trial:
    reason = "the study was closed, or its process ended, before an outcome was told"
    return Trial(suggestion, "lost", None, suggestion.predicted_cost or 0.0, error=reason)


def _storage_of(storage: str | Path | Storage | None) -> Storage:
    if storage is None:
        return MemoryStorage()
    return SqliteStorage(storage) if isinstance(storage, str | Path) else storage


def _check_seed(seed: int) -> int:
    try:
        number = operator.index(seed)
    except TypeError:
        number = -1
    if isinstance(seed, bool) or number < 0:
        raise ValueError(f"seed must be a whole number >= 0, got {seed!r}; leave it out to have one drawn")
    return number


def _check_overhead(overhead: float | None) -> float | None:
    if overhead is None:
        return None
    seconds = float(overhead)
    if not (np.isfinite(seconds) and seconds >= 0):
        raise ValueError(f"overhead must be seconds >= 0, got {overhead}; leave it out to have it measured")
    return seconds
