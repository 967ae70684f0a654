"""All that a page shows of a study, as frozen records: answer, state of the run, figures, trials, record."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fabolas.plots import FIGURES, CannotDraw
from fabolas.report.answer import Answer, recommended
from fabolas.report.progress import RunProgress
from fabolas.report.readable import ReportableStudy, file_of, strategy_problem
from fabolas.report.record import StudyRecord
from fabolas.storage.reader import StudyFile

TRIALS = "trials"  # the figure that is a table
FIGURE_NAMES = tuple(name for name in FIGURES if name != TRIALS)
OVER_FIDELITIES = ("curves", "cost", "time")  # there is one figure for each fidelity


@dataclass(frozen=True)
class DrawnFigure:
    """A figure of the page.

    Attributes:
        name: Its name in ``plots.FIGURES``.
        figure: The figure of Plotly as JSON; None if the study cannot have it.
        reason: Why the study cannot have it; None if it can.
        more: Further figures below it as JSON: the same over other fidelities.
    """

    name: str
    figure: str | None
    reason: str | None = None
    more: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.figure is None) == (self.reason is None):
            raise ValueError(f"the panel {self.name!r} needs either a figure or a reason")

    def as_json(self) -> str:
        """The panel as text of JSON."""
        more, reason = ",".join(self.more), json.dumps(self.reason)
        return f'{{"figure":{self.figure or "null"},"more":[{more}],"reason":{reason}}}'


@dataclass(frozen=True)
class Overview:
    """What the page says in words and numbers.

    Attributes:
        title: Name of the study.
        answer: What the study recommends.
        state: How far its run is.
        record: What was searched.
        at_target: Number of complete trials at the target.
        captions: How to read each figure, by its name.
    """

    title: str
    answer: Answer
    state: RunProgress
    record: StudyRecord
    at_target: int
    captions: Mapping[str, str]

    def at(self, file: StudyFile | None, now: float) -> "Overview":
        """The same at another time, while the file has not changed: running trials and the used budget."""
        return replace(self, state=RunProgress.of(file, now))

    def without_running_trials(self) -> "Overview":
        """The same without the trials that are being evaluated, when the file says something newer about them."""
        return replace(self, state=replace(self.state, trials=None))


def overview(study: ReportableStudy, now: float, title: str | None = None) -> Overview:
    """Return what the page says in words and numbers.

    Args:
        study: The study.
        now: The time in seconds since the epoch.
        title: Name of the study; None takes the name of its file.
    """
    file, history = file_of(study), study.history
    if title is None:
        title = "Study" if file is None else file.path.stem
    n_at_target = (
        int((history.complete & study.space.is_at_target(history.points)).sum()) if len(history) else 0
    )
    captions = {name: figure.how_to_read(study) for name, figure in FIGURES.items()}
    return Overview(
        title, Answer.of(study), RunProgress.of(file, now), StudyRecord.of(study, now), n_at_target, captions
    )


def panel(study: ReportableStudy, name: str) -> DrawnFigure:
    """Compute and draw a figure; one over a fidelity is drawn for each of them."""
    figure, fidelities = FIGURES[name], tuple(study.space.fidelities)
    several = name in OVER_FIDELITIES and len(fidelities) > 1
    options = [{"fidelity": each} for each in fidelities] if several else [{}]
    try:
        first, *more = (figure.draw(figure.compute(study, **each)).to_json() for each in options)
    except CannotDraw as reason:
        return DrawnFigure(name, None, str(reason))
    except ValueError:
        problem = strategy_problem(study)
        if problem is None:
            raise
        return DrawnFigure(
            name, None, f"This figure needs the model of the study. {problem[:1].upper()}{problem[1:]}."
        )
    return DrawnFigure(name, first, more=tuple(more))


def panels(study: ReportableStudy) -> Iterator[DrawnFigure]:
    """Compute and draw all figures but the table of trials."""
    return (panel(study, name) for name in FIGURE_NAMES)


def trials_table(study: ReportableStudy) -> dict[str, Any]:
    """Return the table of trials in the types of JSON: columns, rows and the ids of the trials of the answer.

    Without a trial, there is the reason why it is empty.
    """
    try:
        record = FIGURES[TRIALS].compute(study)
    except CannotDraw as reason:
        return {"columns": [], "rows": [], "reason": str(reason)}
    incumbent = recommended(study)
    return {
        "best": [] if incumbent is None else list(incumbent.trial_ids),
        "columns": [{"key": c.key, "title": c.title, "kind": c.kind} for c in record.columns],
        "rows": [[_finite(value) for value in row] for row in record.rows],
    }


def _finite(value: Any) -> Any:
    """Return the value in the types of JSON, with text for NaN and infinity, which JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    if isinstance(value, dict):
        return {str(name): _finite(part) for name, part in value.items()}
    return value
