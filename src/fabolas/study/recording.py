"""The half of a study that records outcomes: start, tell, fail, abandon, add."""

import traceback
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from fabolas._types import Array
from fabolas.budget import Clock
from fabolas.execution import Ended, News
from fabolas.run_budget import RunBudget
from fabolas.space import Space
from fabolas.strategies import Prediction, Strategy
from fabolas.study.ledger import Ledger
from fabolas.study.open_suggestions import OpenSuggestion
from fabolas.study.view import StudyView
from fabolas.trials import ADDED, Incumbent, Outcome, Suggestion, Trial, as_cost, as_info

_NO_REASON = "no reason given"


class RecordingStudy(StudyView):
    """A study that can be told outcomes. ``Study`` adds what is asked.

    Args:
        space: The search space.
        strategy: Decides what to evaluate next, and computes the incumbent and predictions.
        ledger: The record.
        clock: Seconds from any origin.

    Attributes:
        closed: Whether the storage was released; nothing can be recorded then.
    """

    def __init__(self, space: Space, strategy: Strategy, ledger: Ledger, clock: Clock) -> None:
        super().__init__(space, ledger)
        self._strategy, self._ledger, self._clock = strategy, ledger, clock
        self.closed = False

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
        return self._ledger.open_suggestions.running_for(self._clock())

    @property
    def spent(self) -> float:
        """Seconds in the record: all evaluations and all overhead, that of pending suggestions included."""
        return self.history.spent + self._ledger.open_suggestions.overhead

    @property
    def elapsed(self) -> float:
        """Seconds that the study has used: ``spent``, unless trials ran at the same time."""
        return self.history.elapsed + self._ledger.open_suggestions.overhead

    def start(self, suggestion: Suggestion | int, at: float | None = None) -> None:
        """Record that the evaluation of a suggestion has started; it was asked for with ``queued=True``.

        Args:
            suggestion: What ``ask`` returned, or its id.
            at: When it started, in seconds since the epoch; None for now.

        Raises:
            ValueError: If the suggestion is unknown or has ended.
        """
        self._ledger.start(self._find(suggestion), at)

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
        now = self._clock()
        entry = self._find(suggestion, or_abandoned=True)
        if isinstance(loss, Outcome):
            if cost is not None or info is not None:
                raise TypeError(
                    "an Outcome has its own cost and info, got them as arguments too; give them once"
                )
            outcome = loss
        else:
            outcome = Outcome(loss, cost, as_info(info))
        seconds = entry.cost(outcome.cost, now)
        admitted = self._ledger.readmit(entry.suggestion, self.strategy.state())
        trial = Trial(
            admitted,
            "complete",
            outcome.loss,
            seconds,
            outcome.info,
            reports=entry.reports,
            stopped=stopped,
            restarted=restarted,
        )
        return self._ledger.add_trial(trial)

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
            ValueError: If the suggestion is unknown or has ended, or the fidelity is not one with reports.
        """
        now = self._clock()
        entry = self._find(suggestion)
        name = self.space.curve_name
        if name is None or list(fidelity) != [name]:
            wanted = "one that is declared with reports=True" if name is None else repr(name)
            raise ValueError(f"a report expected the fidelity {wanted}, got {', '.join(fidelity) or 'none'}")
        value = fidelity[name]
        if entry.reports and value <= entry.reports[-1].fidelity[name]:
            raise ValueError(
                f"reports expected increasing {name}, got {value} after {entry.reports[-1].fidelity[name]}"
            )
        self._ledger.add_report(entry, value, loss, entry.cost(cost, now))
        rule = entry.suggestion.stop_rule
        return rule is not None and rule.stops(value, loss)

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
        now = self._clock()
        entry = self._find(suggestion)
        error = (
            "".join(traceback.format_exception(reason)) if isinstance(reason, BaseException) else str(reason)
        )
        seconds = 0.0 if cost == 0 else entry.cost(cost, now)
        failed = Trial(
            entry.suggestion,
            "failed",
            None,
            seconds,
            as_info(info),
            error or _NO_REASON,
            reports=entry.reports,
        )
        return self._ledger.add_trial(failed)

    def abandon(
        self,
        suggestion: Suggestion | int,
        reason: str,
        cost: float | None = None,
        *,
        elapsed: float | None = None,
    ) -> Trial:
        """Record that the study stopped waiting for a suggestion: its time counts, its configuration is not blamed.

        If a worker has reported its outcome, that outcome is recorded instead.

        Args:
            suggestion: What ``ask`` returned, or its id.
            reason: Why, as text.
            cost: Seconds until it was abandoned, 0 if that is unknown; None takes the time since it was started.
            elapsed: As in ``tell_outcome``.

        Raises:
            ValueError: If the suggestion is unknown or has ended.
        """
        now = self._clock()
        entry = self._find(suggestion)
        if entry.outcome is not None:
            return self._ledger.add_trial(entry.outcome, elapsed)
        known = entry.started is not None and cost != 0
        seconds = entry.cost(cost, now) if known else 0.0
        abandoned = Trial(entry.suggestion, "abandoned", None, seconds, error=reason, reports=entry.reports)
        return self._ledger.add_trial(abandoned, elapsed)

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
            cost: Seconds that the evaluation took.
            info: Anything to keep with the trial, stored as JSON.

        Raises:
            ValueError: If the space has no such configuration or fidelity, the loss is not finite, or the cost is
                not > 0.
            TypeError: If a value is of the wrong type.
        """
        self._check_open()
        point = self.space.encode(config, fidelity)
        kept, where = self.space.decode(point)
        suggestion = Suggestion(self._ledger.next_id, kept, where, point, ADDED, effort=0.0)
        error = "failed where it was measured" if loss is None else None
        trial = Trial(
            suggestion, "failed" if loss is None else "complete", loss, as_cost(cost), as_info(info), error
        )
        return self._ledger.add_from_elsewhere(trial, self.strategy.state())

    def tell_outcome(self, ended: Ended, elapsed: float | None = None) -> Trial:
        """Record what a worker has reported: ``tell``, ``fail`` or ``abandon``, whichever it says.

        Args:
            ended: The worker's report.
            elapsed: Seconds that the study has used by the clock, if trials run at the same time; None if they
                run one after another.

        Raises:
            ValueError: If the suggestion is unknown or has ended.
        """
        entry = self._find(ended.id)
        if ended.status == "abandoned":
            return self.abandon(ended.id, ended.error or _NO_REASON, ended.cost, elapsed=elapsed)
        return self._ledger.add_trial(self._ledger.trial_of(entry, ended), elapsed)

    def save_event(self, event: News, elapsed: float | None = None) -> None:
        """Have the storage keep at once what a worker reports, before the study records it.

        Only this method may be called from any thread, also while the study computes a suggestion. The study's
        trials do not change. If the process is killed before ``tell_outcome``, the next one to open the storage finds
        the outcome as if it had been recorded.
        """
        self._ledger.save_event(event, elapsed)

    def save_run_budget(self, run_budget: RunBudget) -> None:
        """Have the storage keep the budget of this run, for ``fabolas status``."""
        self._ledger.save_run_budget(run_budget)

    def incumbent(self) -> Incumbent | None:
        """The evaluated configuration with the best expected loss at the target; None if there is none.

        Its time counts as overhead. The answer is added to ``trajectory`` if a trial has ended since the last one.
        """
        with self._ledger.timed_overhead():
            incumbent = self.strategy.incumbent(self.history)
            if incumbent is not None and not self.closed:
                self._ledger.note_incumbent(incumbent)
        return incumbent

    def predict_points(self, points: Array) -> Prediction:
        """As in ``StudyView``; its time counts as overhead."""
        with self._ledger.timed_overhead():
            return super().predict_points(points)

    def close(self) -> None:
        """Free the storage for others; a second call does nothing."""
        self.closed = True
        self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _find(self, suggestion: Suggestion | int, or_abandoned: bool = False) -> OpenSuggestion:
        self._check_open()
        return self._ledger.open_suggestions.find(suggestion, self.trials, or_abandoned)

    def _check_open(self) -> None:
        if self.closed:
            raise RuntimeError("this study is closed; open it again with fabolas.Study(..., storage=...)")
