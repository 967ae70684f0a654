"""The suggestions of a study that have not ended, and how a trial is made from a suggestion and its outcome.

Nothing is recorded here: the ledger does that.
"""

import operator
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fabolas._types import Array
from fabolas.curve_reports import Report
from fabolas.display import error_summary, safe_text
from fabolas.execution import MIN_COST_SECONDS, Ended
from fabolas.plain_values import to_number
from fabolas.space import Space
from fabolas.trials import ADDED, Outcome, Suggestion, Trial, as_cost, as_info

NO_REASON = "no reason given"
# Origin of a suggestion that is told after it was abandoned, followed by its first id.
_READMITTED = "readmitted:"


@dataclass
class OpenSuggestion:
    """A suggestion that has not ended. Its states, in order: waiting, handed out, started, outcome known.

    A suggestion that is not enqueued starts with the state "handed out".

    Attributes:
        suggestion: The suggestion.
        waiting: Whether it waits to be handed out by the next ``ask``.
        kept_if_cancelled: Whether it waits again if it is cancelled, instead of being removed. That is so if it was
            enqueued, is older than the last opening of the study, or is followed by enqueued suggestions.
        state_before: The strategy's state before the suggestion; None if it cannot be cancelled.
        clock_at_start: What the study's clock showed when its evaluation started; None if it has not.
        started_at: When its evaluation started, in seconds since the epoch.
        outcome: The early outcome, which a worker has returned; None if there is none.
        reports: What its training has reported on the way.
    """

    suggestion: Suggestion
    waiting: bool = False
    kept_if_cancelled: bool = False
    state_before: dict[str, Array] | None = None
    clock_at_start: float | None = None
    started_at: float | None = None
    outcome: Trial | None = None
    reports: tuple[Report, ...] = ()

    def cost(self, stated: float | None, now: float) -> float:
        """Seconds that the evaluation took: as stated, or since it started.

        Raises:
            ValueError: If nothing is stated and the start is not known.
        """
        if stated is not None:
            return as_cost(stated)
        if self.clock_at_start is None:
            raise ValueError(
                f"it is not known when suggestion {self.suggestion.id} was started; pass its cost in seconds: "
                "tell(..., cost=12.5)"
            )
        return max(now - self.clock_at_start, MIN_COST_SECONDS)


class OpenSuggestions:
    """The suggestions of a study that have not ended, by id, in the order in which they were handed out.

    ``handed_out`` are those that ``Study.pending`` shows. The others wait for the next ``ask``.
    """

    def __init__(self) -> None:
        self._entries: dict[int, OpenSuggestion] = {}

    @property
    def handed_out(self) -> tuple[Suggestion, ...]:
        """Those that were handed out, the earliest first."""
        return tuple(entry.suggestion for entry in self._entries.values() if not entry.waiting)

    @property
    def waiting(self) -> tuple[Suggestion, ...]:
        """Those that the next calls of ``ask`` return."""
        return tuple(entry.suggestion for entry in self._entries.values() if entry.waiting)

    @property
    def all(self) -> tuple[Suggestion, ...]:
        """All of them, those that wait included."""
        return tuple(entry.suggestion for entry in self._entries.values())

    @property
    def started(self) -> tuple[Suggestion, ...]:
        """Those whose evaluation has started."""
        return tuple(entry.suggestion for entry in self._entries.values() if entry.clock_at_start is not None)

    def running_for(self, now: float) -> dict[int, float]:
        """Id -> seconds since its evaluation started."""
        entries = self._entries.items()
        return {
            suggestion_id: now - entry.clock_at_start
            for suggestion_id, entry in entries
            if entry.clock_at_start is not None
        }

    @property
    def overhead(self) -> float:
        """Seconds that it took to decide those that were handed out."""
        return sum(suggestion.overhead for suggestion in self.handed_out)

    def add(self, entry: OpenSuggestion) -> None:
        """Add a suggestion."""
        self._entries[entry.suggestion.id] = entry

    def get(self, suggestion_id: int) -> OpenSuggestion | None:
        """The suggestion of this id, None if it is not here; may be called from any thread."""
        return self._entries.get(suggestion_id)

    def remove(self, suggestion_id: int) -> None:
        """Forget a suggestion because it has ended or was cancelled."""
        self._entries.pop(suggestion_id, None)

    def hand_out_waiting(self) -> OpenSuggestion | None:
        """Hand out the waiting suggestion with the lowest id; None if none waits."""
        waiting = [suggestion_id for suggestion_id, entry in self._entries.items() if entry.waiting]
        if not waiting:
            return None
        entry = self._entries.pop(min(waiting))
        entry.waiting = False
        self.add(entry)  # at the end of the order
        return entry

    def only_waiting_after(self, suggestion_id: int) -> bool:
        """Whether there are suggestions with higher ids, and all of them wait."""
        later = [entry.waiting for other, entry in self._entries.items() if other > suggestion_id]
        return bool(later) and all(later)

    def find(
        self, given: Suggestion | int, ended: Sequence[Trial], or_abandoned: bool = False
    ) -> OpenSuggestion:
        """The open suggestion that belongs to a Suggestion or to an id.

        Args:
            given: What ``ask`` returned, or its id.
            ended: The trials that have ended.
            or_abandoned: Whether to accept one that was abandoned and has not been told since.

        Raises:
            TypeError: If it is neither a suggestion nor an id.
            ValueError: If it is unknown or has ended.
        """
        suggestion_id = _id_of(given)
        entry = self._entries.get(suggestion_id)
        trial = next((t for t in ended if t.id == suggestion_id), None) if entry is None else None
        if trial is not None:
            if or_abandoned and trial.status == "abandoned" and not _was_readmitted(suggestion_id, ended):
                return OpenSuggestion(trial.suggestion)
            how = f"loss {trial.loss}" if trial.error is None else safe_text(error_summary(trial.error))
            raise ValueError(
                f"suggestion {suggestion_id} has already ended ({trial.status}: {how}); tell each one once"
            )
        foreign = isinstance(given, Suggestion) and (
            entry is not None and not np.array_equal(entry.suggestion.point, given.point)
        )
        if entry is None or foreign:
            pending = ", ".join(str(suggestion.id) for suggestion in self.handed_out) or "none"
            raise ValueError(
                f"suggestion {suggestion_id} does not belong to this study; its pending suggestions are: {pending}. "
                "Give what ask() of this study returned"
            )
        return entry


def with_new_id(abandoned: Suggestion, suggestion_id: int) -> Suggestion:
    """An abandoned suggestion that is told after all; it gets a new id because the record only grows."""
    return replace(
        abandoned, id=suggestion_id, overhead=0.0, effort=0.0, origin=f"{_READMITTED}{abandoned.id}"
    )


def _was_readmitted(suggestion_id: int, ended: Sequence[Trial]) -> bool:
    return any(trial.suggestion.origin == f"{_READMITTED}{suggestion_id}" for trial in ended)


def _id_of(given: Suggestion | int) -> int:
    try:
        return given.id if isinstance(given, Suggestion) else operator.index(given)
    except TypeError:
        got = f"got {given!r} of type {type(given).__name__}"
        raise TypeError(f"expected what ask() returned, or its id, {got}") from None


def as_outcome(loss: float | Outcome, cost: float | None, info: Mapping[str, Any] | None) -> Outcome:
    """The arguments of ``Study.tell`` as an outcome.

    Raises:
        TypeError: If an Outcome is given together with a cost or info.
    """
    if not isinstance(loss, Outcome):
        return Outcome(loss, cost, as_info(info))
    if cost is not None or info is not None:
        raise TypeError("an Outcome has its own cost and info, got them as arguments too; give them once")
    return loss


def failed_trial(
    entry: OpenSuggestion,
    reason: str | BaseException,
    cost: float | None,
    info: Mapping[str, Any] | None,
    now: float,
) -> Trial:
    """The trial of a suggestion whose evaluation failed; arguments as for ``Study.fail``."""
    if isinstance(reason, BaseException):
        reason = "".join(traceback.format_exception(reason))
    seconds = 0.0 if cost == 0 else entry.cost(cost, now)
    error = str(reason) or NO_REASON
    return Trial(entry.suggestion, "failed", None, seconds, as_info(info), error, reports=entry.reports)


def abandoned_trial(entry: OpenSuggestion, reason: str, cost: float | None, now: float) -> Trial:
    """The trial of a suggestion that is no longer waited for; arguments as for ``Study.abandon``."""
    unknown = cost == 0 or (cost is None and entry.clock_at_start is None)
    seconds = 0.0 if unknown else entry.cost(cost, now)
    return Trial(entry.suggestion, "abandoned", None, seconds, error=reason, reports=entry.reports)


def trial_from_elsewhere(
    suggestion_id: int,
    space: Space,
    config: Mapping[str, Any],
    fidelity: Mapping[str, Any] | None,
    loss: float | None,
    cost: float,
    info: Mapping[str, Any] | None,
) -> Trial:
    """The trial of a result that was measured elsewhere; arguments as for ``Study.add``."""
    point = space.encode(config, fidelity)
    suggestion = Suggestion(suggestion_id, *space.decode(point), point, ADDED, effort=0.0)
    seconds = 0.0 if cost == 0 else as_cost(cost, remedy="give 0 if it is unknown")
    kept = as_info(info)
    if loss is None:
        return Trial(suggestion, "failed", None, seconds, kept, "added as a failed evaluation")
    return Trial(suggestion, "complete", loss, seconds, kept)


def ended_trial(entry: OpenSuggestion, ended: Ended) -> Trial:
    """The trial of a worker's outcome that is complete or failed."""
    failed, reports = ended.status != "complete", entry.reports
    return Trial(
        entry.suggestion,
        "failed" if failed else "complete",
        None if failed else ended.loss,
        ended.cost if failed else max(ended.cost, MIN_COST_SECONDS),
        ended.info,
        (ended.error or NO_REASON) if failed else None,
        reports=reports,
        stopped=ended.stopped and bool(reports) and not failed,
        restarted=ended.restarted,
    )


def reported_value(space: Space, entry: OpenSuggestion, fidelity: Mapping[str, float]) -> float | int:
    """The value of the reported fidelity as a plain number; arguments as for ``Study.tell_report``.

    Raises:
        ValueError: If it is another fidelity, or the value does not increase.
        TypeError: If the value is not a number.
    """
    name = space.curve_name
    if name is None or list(fidelity) != [name]:
        wanted = "a fidelity that is declared with reports=True" if name is None else f"the fidelity {name!r}"
        raise ValueError(f"expected a report with {wanted}, got {', '.join(fidelity) or 'none'}")
    value = to_number(fidelity[name], f"a reported {name}")
    if entry.reports and value <= entry.reports[-1].fidelity[name]:
        raise ValueError(
            f"expected reports with increasing {name}, got {value} after {entry.reports[-1].fidelity[name]}"
        )
    return value


def report_of(space: Space, suggestion: Suggestion, value: float, loss: float, cost: float) -> Report | None:
    """The report of a suggestion's training at a value of its fidelity; None if the value is below the range.

    Raises:
        ValueError: If no fidelity has reports, or the value is above what was suggested.
    """
    name, column = space.curve_name, space.curve_column
    if name is None or column is None:
        raise ValueError(
            "no fidelity of this space is declared with reports; write fabolas.Fidelity(low, high, reports=True)"
        )
    wanted = suggestion.fidelity[name]
    if value > wanted:
        raise ValueError(f"expected a report with {name} of at most {wanted}, as suggested, got {value}")
    if value < space.fidelities[name].low:
        return None
    point = np.array(suggestion.point)
    point[column] = space.fidelities[name].coordinate(value)
    return Report({**suggestion.fidelity, name: value}, point, loss, cost)
