"""Trials and reports made of what a study is told. Nothing is recorded here: the ledger does that."""

import traceback
from collections.abc import Mapping
from typing import Any

import numpy as np

from fabolas.execution import MIN_COST_SECONDS, Ended
from fabolas.reports import Report
from fabolas.space import Space
from fabolas.study.open_suggestions import OpenSuggestion
from fabolas.trials import ADDED, Outcome, Suggestion, Trial, as_cost, as_info

NO_REASON = "no reason given"


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
    known = entry.started is not None and cost != 0
    seconds = entry.cost(cost, now) if known else 0.0
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
    seconds, kept = as_cost(cost), as_info(info)
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


def reached(space: Space, entry: OpenSuggestion, fidelity: Mapping[str, float]) -> float:
    """The value of the reported fidelity; arguments as for ``Study.tell_report``.

    Raises:
        ValueError: If it is another fidelity, or the value does not increase.
    """
    name = space.curve_name
    if name is None or list(fidelity) != [name]:
        wanted = "one that is declared with reports=True" if name is None else repr(name)
        raise ValueError(f"expected a report with the fidelity {wanted}, got {', '.join(fidelity) or 'none'}")
    value = fidelity[name]
    if entry.reports and value <= entry.reports[-1].fidelity[name]:
        raise ValueError(
            f"expected reports with increasing {name}, got {value} after {entry.reports[-1].fidelity[name]}"
        )
    return value


def report_of(space: Space, suggestion: Suggestion, value: float, loss: float, cost: float) -> Report | None:
    """The report of a suggestion's training at a value of its fidelity; None if the value is below the range.

    Raises:
        ValueError: If no fidelity has reports, or the value is above what was suggested.
        TypeError: If the value is not a number.
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
