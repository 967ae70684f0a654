"""The study itself: ask, tell and the incumbent."""

import secrets
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from fabolas._types import Array
from fabolas.budget import Allowance
from fabolas.execution import RESOLUTION, Ended, Event, Started
from fabolas.history import History, Incumbent, Outcome, Suggestion, Trial, as_info
from fabolas.space import Fidelity, Space
from fabolas.storage import Identity, Noticeboard, Storage, Witness
from fabolas.strategies import Proposal, Strategy, make
from fabolas.strategies.apart import apart
from fabolas.study.opening import check_overhead, check_seed, left_behind, storage_of
from fabolas.study.pending import Pending, revived

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace


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
        self._overhead = check_overhead(overhead)
        self._clock = clock
        self._unrecorded = 0.0
        given = None if seed is None else check_seed(seed)
        drawn = secrets.randbits(32) if given is None else given
        identity = Identity(self.space, self.strategy.name, options, drawn, seed_given=given is not None)
        self._storage = storage_of(storage)
        record = self._storage.open(identity)
        self.closed = False
        try:
            self.seed = record.seed
            self.history = History(record.trials)
            self._next_id = len(record.suggestions)
            self._pending = Pending()
            self.elapsed_by: Callable[[], float] | None = None
            if record.state is not None:
                self.strategy.restore(record.state)
            for trial in left_behind(record, time.time()):
                self._pending.add(trial.suggestion)
                self._end(trial)
            ended = {trial.id for trial in self.trials}
            for suggestion in record.pending:
                if suggestion.id not in ended:
                    self._pending.wait(suggestion)
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
        return self._pending.all

    @property
    def running(self) -> tuple[Suggestion, ...]:
        """Pending suggestions that somebody has begun with."""
        return self._pending.running

    @property
    def running_for(self) -> dict[int, float]:
        """Their numbers, and for how many seconds somebody has been at them."""
        return self._pending.running_for(self._clock())

    @property
    def thinking(self) -> float:
        """Seconds of thinking, with what the next suggestion's record will contain already."""
        recorded = sum(self.history.thinking.tolist()) + self._pending.thinking
        return float(recorded) + (self._unrecorded if self._overhead is None else 0.0)

    @property
    def spent(self) -> float:
        """Seconds the record accounts for: evaluations and thinking, pending suggestions' thinking too."""
        return self.history.spent + self._pending.thinking

    @property
    def elapsed(self) -> float:
        """Seconds that have passed for this record: ``spent``, unless trials ran side by side.

        Those who run them so set ``elapsed_by`` to a function that says how many seconds the study has used by the
        clock; it is recorded with each trial.
        """
        return self.history.elapsed + self._pending.thinking

    def ask(
        self,
        *,
        remaining: float | None = None,
        queued: bool = False,
        revise: Callable[[Array], Array] | None = None,
    ) -> Suggestion:
        """The next configuration to evaluate, and at which fidelity.

        A suggestion that nobody had begun with when the study was last closed, or its process died, comes first.

        Args:
            remaining: Seconds of a time budget that are left, None without one; to be reproducible it must
                follow from the record (a budget less ``study.spent``).
            queued: Whether nobody begins with it yet; ``start`` then says when somebody does.
            revise: Gives the point to take, having seen the strategy's; if it raises, nothing was suggested.
        """
        self._check_open()
        again = self._pending.next_waiting()
        if again is not None:
            if not queued:
                self.start(again)
            return replace(again)
        rng = np.random.default_rng([self.seed, self._next_id])

        def decide() -> Proposal:
            proposal = self.strategy.suggest(self.history, self.pending, rng, remaining=remaining)
            if revise is not None:
                proposal = replace(proposal, point=revise(proposal.point))
            waiting = np.array([s.point for s in self.pending]).reshape(-1, len(proposal.point))
            return replace(proposal, point=apart(self.space, proposal.point, waiting, rng))

        return self._hand_out(decide, queued)

    def request(self, config: Mapping[str, Any], fidelity: Mapping[str, Any] | None = None) -> Suggestion:
        """A suggestion of the caller's own, to be told like any other: the record and the models take it in.

        Args:
            config: A configuration of the space.
            fidelity: Fidelities by name; None for the target.

        Raises:
            ValueError: If the space has no such configuration or fidelity.
            TypeError: If a value is of the wrong type.
        """
        return self._hand_out(lambda: Proposal(self.space.encode(config, fidelity), "request", effort=0.0))

    def _hand_out(self, decide: Callable[[], Proposal], queued: bool = False) -> Suggestion:
        self._check_open()
        number = self._next_id
        before = self.strategy.state()
        try:
            with self._thinking():
                proposal = decide()
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
                begun = None if queued else time.time()
                self._storage.add_suggestion(suggestion, self.strategy.state(), begun)
        except BaseException:
            # A suggestion that was interrupted never was: the next one must not start from half of it.
            self.strategy.restore(before)
            raise
        self._unrecorded -= thinking
        self._pending.add(suggestion)
        self._next_id += 1
        if queued:
            self._pending.queue(number, before)
        else:
            self._pending.begin(number, self._clock())
        return replace(suggestion)

    def start(self, suggestion: Suggestion | int, at: float | None = None) -> None:
        """Record that somebody begins with a suggestion that was asked for with ``queued=True``.

        Args:
            suggestion: What ``ask`` gave, or its id.
            at: When that was, in seconds since the epoch; None for now.

        Raises:
            ValueError: If the suggestion is unknown or has ended.
        """
        own = self._find(suggestion)
        ago = 0.0 if at is None else max(time.time() - at, 0.0)
        begun = self._clock() - ago
        with self._thinking():
            self._storage.add_start(own.id, time.time() if at is None else at)
        self._pending.begin(own.id, begun)

    def withdraw(self, suggestion: Suggestion | int) -> None:
        """Take back the last suggestion, with which nobody has begun: as if it had never been asked for.

        One from before the study was reopened stays, and is what the next ``ask`` gives.

        Raises:
            ValueError: If it is not the last one, was begun with, or has ended.
        """
        own = self._find(suggestion)
        if self._pending.may_wait(own.id):
            self._pending.wait(own)
            return
        before = self._pending.before(own.id, last=self._next_id - 1)
        self._storage.remove_suggestion(own.id, before)
        self.strategy.restore(before)
        self._pending.remove(own.id)
        self._next_id -= 1
        self._unrecorded += own.thinking if self._overhead is None else 0.0

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
            cost: Seconds the evaluation took; None takes the time since it was begun with.
            info: Anything worth keeping with the trial, stored as JSON.

        A suggestion that was given up as lost may be told after all, as when a worker survived the process that
        opened the study. The loss then becomes a trial of its own, whose number is new.

        Raises:
            ValueError: If the suggestion is unknown or has ended, the loss not finite, or the cost not > 0.
            TypeError: If the loss or the cost is not a number.
        """
        now = self._clock()
        own = self._find(suggestion, late=True)
        if isinstance(loss, Outcome):
            if cost is not None or info is not None:
                raise TypeError(
                    "an Outcome brings its own cost and info, got them as arguments too; give one"
                )
            outcome = loss
        else:
            outcome = Outcome(loss, cost, as_info(info))
        seconds = self._pending.cost(own, outcome.cost, now)
        own = self._revived(own)
        return self._end(Trial(own, "complete", outcome.loss, seconds, outcome.info))

    def fail(
        self,
        suggestion: Suggestion | int,
        reason: str | BaseException,
        cost: float | None = None,
        info: Mapping[str, Any] | None = None,
    ) -> Trial:
        """Record that a suggestion could not be evaluated; it cost time, and its region is avoided.

        Args:
            suggestion: What ``ask`` gave, or its id.
            reason: What happened, in words or as an exception, whose traceback is kept.
            cost: Seconds until it failed, 0 if nobody knows; None takes the time since it was begun with.
            info: Anything worth keeping of what was measured until then, stored as JSON.

        Raises:
            ValueError: If the suggestion is unknown or has ended, or the cost is not >= 0.
        """
        now = self._clock()
        own = self._find(suggestion)
        error = (
            "".join(traceback.format_exception(reason)) if isinstance(reason, BaseException) else str(reason)
        )
        seconds = 0.0 if cost == 0 else self._pending.cost(own, cost, now)
        return self._end(Trial(own, "failed", None, seconds, as_info(info), error or "no reason given"))

    def lose(self, suggestion: Suggestion | int, reason: str, cost: float | None = None) -> Trial:
        """Record that nobody waits for a suggestion any more: its time counts, its configuration is not blamed.

        What a worker has reported is not given up: if the outcome has ``arrived``, it is recorded instead.

        Args:
            suggestion: What ``ask`` gave, or its id.
            reason: Why, in words.
            cost: Seconds until it was given up, 0 if nobody knows; None takes the time since it was begun with.

        Raises:
            ValueError: If the suggestion is unknown or has ended.
        """
        now = self._clock()
        own = self._find(suggestion)
        outcome = self._pending.reported(own.id)
        if outcome is not None:
            return self._end(outcome)
        known = own in self._pending.running and cost != 0
        seconds = self._pending.cost(own, cost, now) if known else 0.0
        return self._end(Trial(own, "lost", None, seconds, error=reason))

    def arrived(self, event: Event) -> None:
        """Have the storage keep at once what a worker reports, before the study itself is told.

        This alone may be called from any thread, also while the study thinks; its trials stay as they are. If the
        process is killed before ``tell`` or ``fail``, whoever opens the record next finds the outcome as if it had
        been told. A storage that is no ``Witness`` is left alone.
        """
        suggestion = self._pending.get(event.id)
        if suggestion is None or (isinstance(event, Ended) and event.status == "lost"):
            return
        outcome: Trial | None = None
        if isinstance(event, Ended):
            elapsed = None if self.elapsed_by is None else self.elapsed_by()
            outcome = replace(_as_told(suggestion, event), elapsed=elapsed)
            self._pending.report(outcome)
        if not isinstance(self._storage, Witness):
            return
        # What cannot be written now will be when the study hears of it, or is an error then.
        with suppress(RuntimeError):
            if outcome is not None:
                self._storage.add_arrival(outcome)
            elif isinstance(event, Started):
                self._storage.add_start(event.id, event.at)

    def allow(self, allowance: Allowance) -> None:
        """Have the storage keep, if it can, what the run of this study may use: for those who look at it."""
        if isinstance(self._storage, Noticeboard):
            self._storage.keep_allowance(allowance)

    def incumbent(self) -> Incumbent | None:
        """The evaluated configuration with the lowest expected loss at the target; None before one."""
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
        counts = f"{ended} trials ({failed} failed), {len(self.pending)} pending"
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
        if self.elapsed_by is not None:
            trial = replace(trial, elapsed=self.elapsed_by())
        with self._thinking():
            self._storage.add_trial(trial)
            self.history = self.history.append(trial)
            self._pending.remove(trial.id)
        return trial

    def _revived(self, suggestion: Suggestion) -> Suggestion:
        """The suggestion itself; one that was lost comes back under a new number."""
        if suggestion in self._pending:
            return suggestion
        again = revived(suggestion, self._next_id)
        with self._thinking():
            self._storage.add_suggestion(again, self.strategy.state(), time.time())
        self._pending.add(again)
        self._next_id += 1
        return again

    def _find(self, suggestion: Suggestion | int, late: bool = False) -> Suggestion:
        self._check_open()
        return self._pending.find(suggestion, self.trials, late)

    def _check_open(self) -> None:
        if self.closed:
            raise RuntimeError("this study is closed; open it again with fabolas.Study(..., storage=...)")


def _as_told(suggestion: Suggestion, ended: Ended) -> Trial:
    """What ``tell`` or ``fail`` makes of an outcome."""
    if ended.status == "complete":
        return Trial(suggestion, "complete", ended.loss, max(ended.cost, RESOLUTION), ended.info)
    return Trial(suggestion, "failed", None, ended.cost, error=ended.error or "no reason given")
