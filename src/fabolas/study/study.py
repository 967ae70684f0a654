"""``Study``: ask, enqueue, propose, cancel. ``recording.py`` has tell and fail, ``view.py`` what can be read."""

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fabolas._types import Array
from fabolas.budget import Clock
from fabolas.keywords import check_keywords
from fabolas.space import Fidelity, Space
from fabolas.storage import Identity, Storage
from fabolas.strategies import Proposal, Strategy, make, option_names, options_of
from fabolas.strategies.continuation import Continuations
from fabolas.strategies.maximized import Direction, check_direction, directed
from fabolas.strategies.separation import separate_from_pending
from fabolas.study.ledger import Ledger
from fabolas.study.opening import check_overhead, check_seed, storage_of
from fabolas.study.recording import RecordingStudy
from fabolas.trials import ENQUEUED, Suggestion

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace


@dataclass(frozen=True)
class _Draft:
    """A proposal that was not accepted or discarded yet.

    Attributes:
        undo: The strategy's state before it.
        rng: The source of randomness that made it.
        point: (D,) What the strategy proposed; empty while it decides.
    """

    undo: dict[str, Array]
    rng: np.random.Generator
    point: Array = field(default_factory=lambda: np.empty(0))


class Study(RecordingStudy):
    """Suggests what to evaluate, records the outcomes, and names the best configuration.

    All its decisions follow from its record: the same seed, outcomes and recorded overhead give the same
    suggestions, also if the study was closed and reopened in between.

        with fabolas.Study(space, {"size": (100, 50_000)}, storage="svm.db") as study:
            suggestion = study.ask()
            study.tell(suggestion, train(suggestion.config, **suggestion.fidelity))

    Args:
        space: Hyperparameters by name, a ConfigurationSpace, or a Space.
        fidelities: Name -> (low, high) or Fidelity; the upper end is the target.
        direction: "minimize" or "maximize"; losses keep their sign everywhere.
        strategy: Name of a strategy, or a strategy.
        storage: File that keeps the record; an existing one is continued. None keeps it in memory.
        seed: Whole number >= 0; None draws one, which ``study.seed`` shows and the storage keeps.
        overhead: Seconds to record as overhead of every suggestion instead of the measured time.
        clock: A function that returns seconds from any origin.
        **options: Options of the strategy.

    Raises:
        ValueError: If the storage holds a study of another space, strategy or seed, or an argument is not valid.
        RuntimeError: If the storage is in use.
    """

    def __init__(
        self,
        space: "Mapping[str, Any] | ConfigurationSpace | Space",
        fidelities: Mapping[str, Fidelity | tuple[float, float]] | None = None,
        *,
        direction: Direction = "minimize",
        strategy: str | Strategy = "fabolas",
        storage: str | Path | Storage | None = None,
        seed: int | None = None,
        overhead: float | None = None,
        clock: Clock = time.perf_counter,
        **options: Any,
    ) -> None:
        check_keywords(options, Study, option_names(strategy))
        space = space if isinstance(space, Space) and fidelities is None else Space(space, fidelities)
        made = directed(make(strategy, space, **options), check_direction(direction))
        given = None if seed is None else check_seed(seed)
        seed_used = secrets.randbits(32) if given is None else given
        identity = Identity(
            space, made.name, options_of(made), seed_used, seed_given=given is not None, direction=direction
        )
        ledger = Ledger(storage_of(storage), identity, clock, check_overhead(overhead))
        super().__init__(space, made, ledger, clock)
        self._draft: _Draft | None = None
        self.stop_requested: str | None = None
        # Ids of the trials whose checkpoint exists; None assumes that all exist. The engine sets it.
        self.checkpoints: frozenset[int] | None = None
        if ledger.strategy_state is not None:
            try:
                self.strategy.restore(ledger.strategy_state)
            except Exception as error:
                self.close()
                raise ValueError(
                    f"the storage holds a state that the strategy {made.name!r} cannot continue from ({error!r}); "
                    "it is damaged, or was saved by another version of fabolas"
                ) from error

    def ask(
        self, *, remaining: float | None = None, at_target: bool = False, queued: bool = False
    ) -> Suggestion:
        """The next configuration to evaluate, and its fidelity.

        Configurations that were enqueued come first, and suggestions that were not started when the study was last
        closed.

        Args:
            remaining: Seconds left of a time budget, None without one. For reproducible suggestions it must
                follow from the record (a budget minus ``study.elapsed``).
            at_target: Whether to ask for an evaluation at the target fidelity, if one fits into ``remaining``.
            queued: Whether the evaluation starts later; then call ``start`` when it does.
        """
        waiting = self.ask_waiting(queued=queued)
        if waiting is not None:
            return waiting
        return self.accept(self.propose(remaining=remaining, at_target=at_target), queued=queued)

    def ask_waiting(self, *, queued: bool = False) -> Suggestion | None:
        """The first suggestion that waits: enqueued, or not started when the study was last closed; None if none."""
        self._check_open()
        entry = self._ledger.open_suggestions.hand_out_waiting()
        if entry is None:
            return None
        if not queued:
            self.start(entry.suggestion)
        return replace(entry.suggestion)

    def ask_for(
        self,
        config: Mapping[str, Any],
        fidelity: Mapping[str, Any] | None = None,
        *,
        queued: bool = False,
        origin: str = ENQUEUED,
        predicted_cost: float | None = None,
    ) -> Suggestion:
        """A suggestion for exactly this configuration and fidelity; tell it like any other.

        Args:
            config: A configuration of the space.
            fidelity: Fidelities by name; None for the target.
            queued: Whether the evaluation starts later; then call ``start`` when it does.
            origin: Why it is evaluated. Strategies and verification read it.
            predicted_cost: Predicted seconds, for the record and for ``trial_timeout="auto"``; None if not predicted.

        Raises:
            ValueError: If the space has no such configuration or fidelity.
            TypeError: If a value is of the wrong type.
        """
        self._check_open()
        self.discard()
        point = self.space.encode(config, fidelity)
        proposal = Proposal(
            point, origin, effort=0.0, predicted_cost=predicted_cost, continues=self._continues(point)
        )
        return self._record_suggestion(proposal, self.strategy.state(), queued=queued)

    def _continues(self, point: Array) -> int | None:
        """The trial whose training an evaluation of the point can continue; None if there is none."""
        if not self.space.resumes:
            return None
        history = self.history.with_checkpoints(self.checkpoints)
        return Continuations.of(self.space, history, self.pending).continues(point)

    def enqueue(self, config: Mapping[str, Any], fidelity: Mapping[str, Any] | None = None) -> None:
        """Have a configuration evaluated: the next calls of ``ask`` return what was enqueued, in that order.

        The storage keeps it, so it is not lost if the process ends before.

        Args:
            config: A configuration of the space.
            fidelity: Fidelities by name. With None the strategy chooses them, as for its own next suggestion: at the
                beginning the cheap ones of its initial design. The trial then has the origin of that suggestion.

        Raises:
            ValueError: If the space has no such configuration or fidelity.
            TypeError: If a value is of the wrong type.
        """
        self._check_open()
        self.discard()
        point, undo = self.space.encode(config, fidelity), self.strategy.state()
        proposal = Proposal(point, ENQUEUED, effort=0.0)
        if fidelity is None and self.space.n_fidelities:
            chosen = self._propose(self._ledger.open_suggestions.all)
            self._draft = None
            d = self.space.dim
            point = np.concatenate([point[:d], chosen.point[d:]])
            proposal = Proposal(point, chosen.origin, chosen.effort)
        self._record_suggestion(proposal, undo, waiting=True)

    def propose(self, *, remaining: float | None = None, at_target: bool = False) -> Proposal:
        """What ``ask`` would suggest, for a caller that may want another point.

        ``accept`` makes a suggestion of the proposal, as it is or with another point. ``discard`` forgets it: the
        strategy is then as before, and the overhead still counts. Another call of ``propose`` also discards it.

        Args:
            remaining: As in ``ask``.
            at_target: As in ``ask``.
        """
        self._check_open()
        return self._propose(self.pending, remaining, at_target)

    def _propose(
        self, pending: tuple[Suggestion, ...], remaining: float | None = None, at_target: bool = False
    ) -> Proposal:
        self.discard()
        undo, rng = self.strategy.state(), np.random.default_rng([self.seed, self._ledger.next_id])
        self._draft = _Draft(undo, rng)
        try:
            with self._ledger.timed_overhead():
                history = self.history.with_checkpoints(self.checkpoints)
                proposal = self.strategy.suggest(
                    history, pending, rng, remaining=remaining, at_target=at_target
                )
        except BaseException:
            self.discard()  # an interrupted proposal must not leave a half-changed strategy
            raise
        self._draft = _Draft(undo, rng, proposal.point)
        return proposal

    def accept(self, proposal: Proposal, *, queued: bool = False) -> Suggestion:
        """Hand out a proposal as a suggestion.

        Its configuration is moved a little if the same point is already pending. If the point differs from the proposed
        one, the suggestion does not continue a training, does not stop early, and its cost is not predicted.

        Args:
            proposal: What ``propose`` returned, or the same with another point.
            queued: As in ``ask``.

        Raises:
            ValueError: If nothing was proposed since the last suggestion.
        """
        self._check_open()
        draft = self._draft
        if draft is None:
            raise ValueError("there is no proposal to accept; call propose() first")
        try:
            with self._ledger.timed_overhead():
                pending = np.array([s.point for s in self.pending]).reshape(-1, len(proposal.point))
                point = separate_from_pending(self.space, proposal.point, pending, draft.rng)
        except BaseException:
            self.discard()
            raise
        self._draft = None
        if not np.array_equal(proposal.point, draft.point):
            proposal = replace(proposal, predicted_cost=None)
        if not np.array_equal(point, draft.point):  # another configuration: nothing to continue
            proposal = replace(proposal, point=point, continues=None, stop_rule=None)
        return self._record_suggestion(proposal, draft.undo, queued=queued)

    def discard(self) -> None:
        """Forget what was proposed and not accepted; its overhead still counts."""
        if self._draft is not None:
            self.strategy.restore(self._draft.undo)
            self._draft = None

    def _record_suggestion(
        self, proposal: Proposal, undo: dict[str, Array], *, queued: bool = False, waiting: bool = False
    ) -> Suggestion:
        """Record a suggestion; if that fails, the strategy is reset to the state ``undo``."""
        try:
            with self._ledger.timed_overhead():
                config, fidelity = self.space.decode(proposal.point)
            suggestion = Suggestion(
                self._ledger.next_id,
                config,
                fidelity,
                proposal.point,
                continues=proposal.continues,
                stop_rule=proposal.stop_rule,
                overhead=self._ledger.next_overhead,
                effort=proposal.effort,
                predicted_cost=proposal.predicted_cost,
                origin=proposal.origin,
            )
            if waiting:
                self._ledger.enqueue(suggestion, self.strategy.state())
            else:
                self._ledger.add(suggestion, self.strategy.state(), undo, queued=queued)
        except BaseException:
            self.strategy.restore(undo)
            raise
        return replace(suggestion)

    def cancel(self, suggestion: Suggestion | int) -> None:
        """Take back the last suggestion before it is started, as if it had never been asked for.

        Some suggestions are kept, and the next ``ask`` returns them: those that were enqueued, that are older than the
        last opening of the study, or that are followed only by enqueued ones.

        Raises:
            ValueError: If other suggestions were handed out after it, or if it was started or has ended.
        """
        entry = self._find(suggestion)
        self.discard()
        undo = self._ledger.cancel(entry)
        if undo is not None:
            self.strategy.restore(undo)

    def stop(self, reason: str = "study.stop() was called") -> None:
        """End the run of ``minimize`` that this study belongs to: no new trial starts, running ones are waited for.

        A callback may call this. In your own loop, look at ``stop_requested``, which is the reason, or None.
        """
        self.stop_requested = reason

    def __repr__(self) -> str:
        ended, failed = len(self.history), int(self.history.failed.sum())
        counts = f"{ended} trials ({failed} failed), {len(self.pending)} pending"
        return (
            f"<Study {self.strategy.name!r}: {counts}, seed {self.seed}{', closed' if self.closed else ''}>"
        )
