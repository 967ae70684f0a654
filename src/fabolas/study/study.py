"""``Study``: ask and tell. What can be read from a study is in ``view.py``.

``ask`` goes on in ``proposer.py``, which asks the strategy. ``tell`` goes on in ``ledger.py``, which writes the record.
A run of ``minimize`` uses more methods of the same class. Its policy calls ``ask``, or ``propose`` and ``accept`` to
look at a proposal first. Its engine calls ``tell_outcome`` instead of ``tell``.
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from fabolas._types import Array
from fabolas.budget import Clock, RunBudget
from fabolas.direction import Direction, check_direction
from fabolas.execution import Ended, EventOrReport
from fabolas.keywords import check_keywords
from fabolas.space import Fidelity, Space
from fabolas.storage import Storage
from fabolas.strategies import Prediction, Proposal, Strategy, make, option_names
from fabolas.strategies.maximized import directed
from fabolas.study.ledger import Ledger, OverheadTimer
from fabolas.study.opening import check_overhead, identity_of, storage_of
from fabolas.study.proposer import Proposer
from fabolas.study.view import StudyView
from fabolas.trials import ENQUEUED, Incumbent, Outcome, Suggestion, Trial

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace


class Study(StudyView):
    """Suggests what to evaluate, records the outcomes, and names the best configuration.

    All its decisions follow from its record: the same seed, outcomes and recorded overhead give the same
    suggestions, even if the study was closed and reopened in between.

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
        identity = identity_of(space, made, seed, direction)
        timer = OverheadTimer(clock, check_overhead(overhead))
        ledger = Ledger(storage_of(storage), identity, clock, timer)
        ledger.restore(made)
        super().__init__(space, ledger)
        self._strategy, self._ledger, self._timer = made, ledger, timer
        self._proposer = Proposer(space, made, ledger, timer)
        self.stop_reason: str | None = None

    @property
    def strategy(self) -> Strategy:
        """Decides what to evaluate next."""
        return self._strategy

    @property
    def pending(self) -> tuple[Suggestion, ...]:
        """Suggestions that were handed out and have not ended."""
        return self._ledger.open_suggestions.handed_out

    @property
    def waiting(self) -> tuple[Suggestion, ...]:
        """Suggestions that the next calls of ``ask`` return: enqueued, or left over from before a restart."""
        return self._ledger.open_suggestions.waiting

    @property
    def running(self) -> tuple[Suggestion, ...]:
        """Pending suggestions whose evaluation has started."""
        return self._ledger.open_suggestions.started

    @property
    def running_for(self) -> dict[int, float]:
        """Id -> seconds running, for all running suggestions."""
        return self._ledger.running_for

    @property
    def spent(self) -> float:
        """Seconds in the record: all evaluations, and the overhead of ended and pending suggestions."""
        return self.history.spent + self._ledger.open_suggestions.overhead

    @property
    def elapsed(self) -> float:
        """Seconds that the study has used: ``spent``, unless trials ran at the same time."""
        return self.history.elapsed + self._ledger.open_suggestions.overhead

    @property
    def closed(self) -> bool:
        """Whether the storage was released; nothing can be recorded then."""
        return self._ledger.closed

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
        self._ledger.check_open()
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
        return self._proposer.ask_for(
            config, fidelity, queued=queued, origin=origin, predicted_cost=predicted_cost
        )

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
        self._proposer.enqueue(config, fidelity)

    def propose(self, *, remaining: float | None = None, at_target: bool = False) -> Proposal:
        """What ``ask`` would suggest, for a caller that may want another point; see ``Proposer.propose``."""
        return self._proposer.propose(remaining=remaining, at_target=at_target)

    def accept(self, proposal: Proposal, *, queued: bool = False) -> Suggestion:
        """Hand out a proposal, as it is or with another point; see ``Proposer.accept``."""
        return self._proposer.accept(proposal, queued=queued)

    def discard(self) -> None:
        """Forget what was proposed and not accepted; its overhead still counts."""
        self._proposer.discard()

    def cancel(self, suggestion: Suggestion | int) -> None:
        """Take back the last suggestion before it is started, as if it had never been asked for.

        Some suggestions are not removed; the next ``ask`` returns them again. These are suggestions that were enqueued,
        that were made before the study was last opened, or after which only enqueued ones were made.

        Raises:
            ValueError: If other suggestions were handed out after it, or if it was started or has ended.
        """
        self._proposer.cancel(suggestion)

    def start(self, suggestion: Suggestion | int, at: float | None = None) -> None:
        """Record that the evaluation of a suggestion has started; it was asked for with ``queued=True``.

        Args:
            suggestion: What ``ask`` returned, or its id.
            at: When it started, in seconds since the epoch; None for now.

        Raises:
            ValueError: If the suggestion is unknown or has ended.
        """
        self._ledger.start(suggestion, at)

    def tell(
        self,
        suggestion: Suggestion | int,
        loss: float | Outcome,
        cost: float | None = None,
        info: Mapping[str, Any] | None = None,
        *,
        stopped: bool = False,
        restarted: bool = False,
    ) -> Trial:
        """Record the loss of a suggestion.

        A suggestion that was abandoned may be told after all, for example if a worker survived the process that
        had opened the study. The loss then becomes a trial of its own with a new id.

        Args:
            suggestion: What ``ask`` returned, or its id.
            loss: A finite number, or an Outcome that holds it with cost and info.
            cost: Seconds that the evaluation took; None takes the time since it was started.
            info: Anything to keep with the trial, stored as JSON.
            stopped: Whether the training stopped early. The trial is then an evaluation at its last report.
            restarted: Whether it started from scratch although the suggestion continues another training.

        Raises:
            ValueError: If the suggestion is unknown or has ended, the loss is not finite, or the cost is not > 0.
            TypeError: If the loss or the cost is not a number.
        """
        state = self.strategy.state()
        return self._ledger.tell(suggestion, loss, cost, info, state, stopped=stopped, restarted=restarted)

    def tell_report(
        self, suggestion: Suggestion | int, loss: float, cost: float | None = None, **fidelity: float
    ) -> bool:
        """Record the loss of a training on the way, at a value of the fidelity that was declared with reports.

            study.tell_report(suggestion, loss=0.21, epochs=3)

        Args:
            suggestion: What ``ask`` returned, or its id.
            loss: A finite number.
            cost: Seconds from the start of the trial until now; None takes the time since it was started.
            **fidelity: The fidelity by name, and the value that the training has reached. Values increase; one below
                the range of the fidelity is left out.

        Returns:
            Whether the training should stop, see ``stop_early`` of the strategy; tell it with ``stopped=True`` then.

        Raises:
            ValueError: If the suggestion is unknown or has ended, the fidelity is not one with reports, its value does
                not increase or is above the suggested one, or the loss or the cost is not a finite number.
            TypeError: If a value is not a number.
        """
        return self._ledger.tell_report(suggestion, loss, cost, fidelity)

    def fail(
        self,
        suggestion: Suggestion | int,
        reason: str | BaseException,
        cost: float | None = None,
        info: Mapping[str, Any] | None = None,
    ) -> Trial:
        """Record that the evaluation of a suggestion failed: its time counts, and its region is avoided.

        Args:
            suggestion: What ``ask`` returned, or its id.
            reason: What happened, as text or as an exception, whose traceback is kept.
            cost: Seconds until it failed, 0 if that is unknown; None takes the time since it was started.
            info: Anything to keep of what was measured until then, stored as JSON.

        Raises:
            ValueError: If the suggestion is unknown or has ended, or the cost is not >= 0.
        """
        return self._ledger.fail(suggestion, reason, cost, info)

    def abandon(
        self,
        suggestion: Suggestion | int,
        reason: str,
        cost: float | None = None,
        *,
        elapsed: float | None = None,
    ) -> Trial:
        """Record that the study stopped waiting for a suggestion: its time counts, its configuration is not blamed.

        If a worker has returned its outcome, that outcome is recorded instead.

        Args:
            suggestion: What ``ask`` returned, or its id.
            reason: Why, as text.
            cost: Seconds until it was abandoned, 0 if that is unknown; None takes the time since it was started.
            elapsed: Seconds that the study has used by the clock, if trials run at the same time; None if they
                run one after another.

        Raises:
            ValueError: If the suggestion is unknown or has ended.
        """
        return self._ledger.abandon(suggestion, reason, cost, elapsed)

    def add(
        self,
        config: Mapping[str, Any],
        fidelity: Mapping[str, Any] | None,
        loss: float | None,
        cost: float,
        info: Mapping[str, Any] | None = None,
    ) -> Trial:
        """Add a result that was measured elsewhere. The models learn from it as from any other.

        It is not part of the study's time: ``elapsed`` stays as it is, and it does not count towards a budget. To take
        over the trials of another study, for example one with a narrower space:

            for trial in fabolas.load("old.db").trials:
                if trial.status != "abandoned":
                    study.add(trial.config, trial.fidelity, trial.loss, trial.cost)

        Args:
            config: A configuration of the space.
            fidelity: Fidelities by name; None for the target.
            loss: A finite number; None if the evaluation failed.
            cost: Seconds that the evaluation took; 0 if that is unknown.
            info: Anything to keep with the trial, stored as JSON.

        Raises:
            ValueError: If the space has no such configuration or fidelity, the loss is not finite, or the cost is
                not >= 0.
            TypeError: If a value is of the wrong type.
        """
        return self._ledger.add_from_elsewhere(config, fidelity, loss, cost, info, self.strategy.state())

    def tell_outcome(self, ended: Ended, elapsed: float | None = None) -> Trial:
        """Record what a worker has returned; see ``Ledger.tell_outcome``."""
        return self._ledger.tell_outcome(ended, elapsed)

    def save_event(self, event: EventOrReport, elapsed: float | None = None) -> None:
        """Have the storage keep at once what a worker reports, from any thread; see ``Ledger.save_event``."""
        self._ledger.save_event(event, elapsed)

    def save_run_budget(self, run_budget: RunBudget) -> None:
        """Have the storage keep the budget of this run, for ``fabolas status``."""
        self._ledger.save_run_budget(run_budget)

    def set_checkpoints(self, ids: frozenset[int]) -> None:
        """Say which trials have a checkpoint that can be continued. Without this, all of them count as having one."""
        self._proposer.checkpoints = ids

    def incumbent(self) -> Incumbent | None:
        """The evaluated configuration with the best expected loss at the target; None if there is none.

        Its time counts as overhead. The answer is added to ``trajectory`` if a trial has ended since the last one.
        """
        with self._timer.timed():
            incumbent = self.strategy.incumbent(self.history)
            if incumbent is not None and not self.closed:
                self._ledger.note_incumbent(incumbent)
        return incumbent

    def save_answer(self, answer: Incumbent) -> None:
        """Add the answer of a run to ``trajectory`` when the run ends, unless it is already the last one there.

        The answer of a run that verifies can differ from ``incumbent`` (see ``verified_incumbent``). Then
        ``trajectory`` has both for the same trials.
        """
        if not self.closed:
            self._ledger.note_answer(answer)

    def predict_points(self, points: Array) -> Prediction:
        """As in ``StudyView``; its time counts as overhead."""
        with self._timer.timed():
            return super().predict_points(points)

    def stop(self, reason: str = "study.stop() was called") -> None:
        """End the run of ``minimize`` that this study belongs to: no new trial starts, running ones are waited for.

        A callback may call this. In your own loop, look at ``stop_reason``, which is the reason, or None.
        """
        self.stop_reason = reason

    def close(self) -> None:
        """Free the storage for others; a second call does nothing."""
        self._ledger.close()

    def __enter__(self) -> Self:
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
