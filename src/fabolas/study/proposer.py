"""How a study makes suggestions: it asks the strategy, and undoes what nobody accepts."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fabolas._types import Array, BoolArray
from fabolas.space import Space
from fabolas.strategies import Proposal, Strategy
from fabolas.strategies.continuation import Continuations
from fabolas.study.ledger import Ledger, OverheadTimer
from fabolas.trials import ENQUEUED, History, Suggestion

MIN_DISTANCE = 1e-3  # between two points of the cube, in the coordinate in which they differ most
_TRIES_PER_DISTANCE = 8


@dataclass(frozen=True)
class _Draft:
    """A proposal that was not accepted or discarded yet.

    Attributes:
        state_before: The strategy's state before it.
        rng: The source of randomness that made it.
        point: (D,) What the strategy proposed; None until the strategy has decided.
    """

    state_before: dict[str, Array]
    rng: np.random.Generator
    point: Array | None = None


class Proposer:
    """Asks the strategy for proposals, and has the ledger record them as suggestions.

    If a suggestion cannot be recorded, the strategy gets back the state that it had before.

    Args:
        space: The search space.
        strategy: Decides what to evaluate next.
        ledger: The record.
        timer: Measures overhead.

    Attributes:
        checkpoints: Ids of the trials whose checkpoint exists; None assumes that all exist.
    """

    def __init__(self, space: Space, strategy: Strategy, ledger: Ledger, timer: OverheadTimer) -> None:
        self._space, self._strategy, self._ledger, self._timer = space, strategy, ledger, timer
        self._draft: _Draft | None = None
        self.checkpoints: frozenset[int] | None = None

    def propose(self, *, remaining: float | None = None, at_target: bool = False) -> Proposal:
        """What ``Study.ask`` would suggest, for a caller that may want another point.

        ``accept`` makes a suggestion of the proposal, as it is or with another point. ``discard`` forgets it: the
        strategy is then as before, and the overhead still counts. Another call of ``propose`` also discards it.

        Args:
            remaining: As in ``Study.ask``.
            at_target: As in ``Study.ask``.
        """
        self._ledger.check_open()
        return self._propose(self._pending, remaining, at_target)

    def _propose(
        self, pending: tuple[Suggestion, ...], remaining: float | None = None, at_target: bool = False
    ) -> Proposal:
        self.discard()
        state_before = self._strategy.state()
        rng = np.random.default_rng([self._ledger.seed, self._ledger.next_id])
        self._draft = _Draft(state_before, rng)
        try:
            with self._timer.timed():
                proposal = self._strategy.suggest(
                    self._history, pending, rng, remaining=remaining, at_target=at_target
                )
        except BaseException:
            self.discard()  # an interrupted proposal must not leave a half-changed strategy
            raise
        self._draft = _Draft(state_before, rng, proposal.point)
        return proposal

    def accept(self, proposal: Proposal, *, queued: bool) -> Suggestion:
        """Hand out a proposal as a suggestion.

        Its configuration is moved a little if the same point is already pending. A suggestion at another point than the
        proposed one does not continue a training and does not stop early. If the caller gave the other point, its cost
        is not predicted; if the point was only moved here, the predicted cost stays.

        Args:
            proposal: What ``propose`` returned, or the same with another point.
            queued: As in ``Study.ask``.

        Raises:
            ValueError: If nothing was proposed since the last suggestion.
        """
        self._ledger.check_open()
        draft = self._draft
        if draft is None or draft.point is None:
            raise ValueError("there is no proposal to accept; call propose() first")
        try:
            with self._timer.timed():
                pending = np.array([s.point for s in self._pending]).reshape(-1, len(proposal.point))
                point = separate_from_pending(self._space, proposal.point, pending, draft.rng)
        except BaseException:
            self.discard()
            raise
        self._draft = None
        if not np.array_equal(proposal.point, draft.point):
            proposal = replace(proposal, predicted_cost=None)
        if not np.array_equal(point, draft.point):  # another configuration: nothing to continue
            proposal = replace(proposal, point=point, continues=None, stop_rule=None)
        return self._record(proposal, draft.state_before, queued=queued)

    def discard(self) -> None:
        """Forget what was proposed and not accepted; its overhead still counts."""
        if self._draft is not None:
            self._strategy.restore(self._draft.state_before)
            self._draft = None

    def ask_for(
        self,
        config: Mapping[str, Any],
        fidelity: Mapping[str, Any] | None,
        *,
        queued: bool,
        origin: str,
        predicted_cost: float | None,
    ) -> Suggestion:
        """Hand out exactly this configuration and fidelity: ``Study.ask_for``."""
        self._ledger.check_open()
        self.discard()
        point = self._space.encode(config, fidelity)
        proposal = Proposal(
            point, origin, effort=0.0, predicted_cost=predicted_cost, continues=self._continues(point)
        )
        return self._record(proposal, self._strategy.state(), queued=queued)

    def enqueue(self, config: Mapping[str, Any], fidelity: Mapping[str, Any] | None) -> None:
        """Have a configuration wait for the next ``ask``: ``Study.enqueue``."""
        self._ledger.check_open()
        self.discard()
        point, state_before = self._space.encode(config, fidelity), self._strategy.state()
        proposal = Proposal(point, ENQUEUED, effort=0.0)
        if fidelity is None and self._space.n_fidelities:
            chosen = self._propose(self._ledger.open_suggestions.all)
            self._draft = None
            d = self._space.dim
            point = np.concatenate([point[:d], chosen.point[d:]])
            proposal = Proposal(point, chosen.origin, chosen.effort)
        self._record(proposal, state_before, waiting=True)

    def cancel(self, suggestion: Suggestion | int) -> None:
        """Take back the last suggestion before it is started: ``Study.cancel``."""
        entry = self._ledger.find(suggestion)
        self.discard()
        state_before = self._ledger.cancel(entry)
        if state_before is not None:
            self._strategy.restore(state_before)

    def _record(
        self,
        proposal: Proposal,
        state_before: dict[str, Array],
        *,
        queued: bool = False,
        waiting: bool = False,
    ) -> Suggestion:
        """Record a suggestion; if that fails, the strategy is reset to the state ``state_before``."""
        try:
            with self._timer.timed():
                config, fidelity = self._space.decode(proposal.point)
            suggestion = Suggestion(
                self._ledger.next_id,
                config,
                fidelity,
                proposal.point,
                continues=proposal.continues,
                stop_rule=proposal.stop_rule,
                overhead=self._timer.next,
                effort=proposal.effort,
                predicted_cost=proposal.predicted_cost,
                origin=proposal.origin,
            )
            if waiting:
                self._ledger.enqueue(suggestion, self._strategy.state())
            else:
                self._ledger.hand_out(suggestion, self._strategy.state(), state_before, queued=queued)
        except BaseException:
            self._strategy.restore(state_before)
            raise
        return replace(suggestion)

    @property
    def _pending(self) -> tuple[Suggestion, ...]:
        return self._ledger.open_suggestions.handed_out

    @property
    def _history(self) -> History:
        return self._ledger.history.with_checkpoints(self.checkpoints)

    def _continues(self, point: Array) -> int | None:
        """The trial whose training an evaluation of the point can continue; None if there is none."""
        if not self._space.resumes:
            return None
        return Continuations.of(self._space, self._history, self._pending).continues(point)


def separate_from_pending(space: Space, point: Array, pending: Array, rng: np.random.Generator) -> Array:
    """The point, or a point next to it if it coincides with a pending evaluation.

    To the models, a pending evaluation leaves little information at its point. Late in a search there may be little
    elsewhere too, so the same point can be chosen again. Only the configuration is moved, by larger and larger steps
    until it is far enough. In a small discrete space there may be no such configuration; then the point stays.

    The distance is that of whole points: the same configuration at two fidelities is two different evaluations.

    Args:
        space: The search space.
        point: (d + f,).
        pending: (p, d + f).
        rng: Used only if the point is moved.

    Returns:
        (d + f,)
    """
    if _is_far(point[None], pending)[0]:
        return point
    radius = 2.0 * MIN_DISTANCE
    while radius < 1.0:
        moved = np.repeat(point[None], _TRIES_PER_DISTANCE, axis=0)
        moved[:, : space.dim] += rng.uniform(-radius, radius, (_TRIES_PER_DISTANCE, space.dim))
        moved = space.snap(np.clip(moved, 0.0, 1.0))
        good = space.is_legal(moved) & _is_far(moved, pending)
        if good.any():
            return np.asarray(moved[int(np.argmax(good))])
        radius *= 2.0
    return point


def _is_far(points: Array, pending: Array) -> BoolArray:
    """(m,) Whether points (m, D) keep the distance from all of (p, D)."""
    if not len(pending):
        return np.ones(len(points), dtype=bool)
    return np.asarray(np.abs(points[:, None] - pending[None]).max(axis=2).min(axis=1) >= MIN_DISTANCE)
