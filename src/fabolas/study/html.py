"""A study as HTML, for notebooks: the answer, what it cost, and the last trials.

The colours are those of the notebook, so that it can be read on a light and on a dark background. All text that
fabolas did not write goes through ``safe_html``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from fabolas.display import counted, error_summary, safe_html
from fabolas.progress.text import duration, number, short
from fabolas.trials import Trial

_LAST_TRIALS = 10
_CARD = (
    "display: inline-block; border: 1px solid rgba(128, 128, 128, .4); border-radius: 6px; padding: .7em 1em; "
    "line-height: 1.45; max-width: 60em"
)
_TABLE = (
    "border-collapse: collapse; margin: .4em 0 0 0; font-size: inherit; color: inherit; "
    "font-variant-numeric: tabular-nums"
)
_CELL = "text-align: left; padding: .1em 1.4em .1em 0; border: none; background: none; vertical-align: top"
_DIM = "opacity: .65"


@dataclass(frozen=True)
class AnswerText:
    """The answer of a study in words.

    Attributes:
        config: The best configuration.
        what: What the number is, for example "predicted loss at the target".
        loss: The number.
        verification: Whether the answer was verified.
    """

    config: dict[str, Any]
    what: str
    loss: str
    verification: str


def study_as_html(title: str, answer: AnswerText | None, work: str, trials: Sequence[Trial]) -> str:
    """The HTML of a study.

    Args:
        title: What it is, for example the name of a class.
        answer: The answer; None if there is none.
        work: How many trials there are, and how long they took.
        trials: All trials.
    """
    parts = [f"<div><b>{safe_html(title)}</b> <span style='{_DIM}'>{safe_html(work)}</span></div>"]
    if answer is None:
        parts.append("<div>no answer yet</div>")
    else:
        parts.append(
            f"<div style='margin-top: .4em'>{safe_html(answer.what)}: <b>{safe_html(answer.loss)}</b> "
            f"<span style='{_DIM}'>{safe_html(answer.verification)}</span></div>"
        )
        rows = [(name, short(value)) for name, value in answer.config.items()]
        parts.append(_table((), rows, strong_last=True))
    if trials:
        shown = trials[-_LAST_TRIALS:]
        label = f"last {len(shown)} of {len(trials)} trials"
        if len(shown) == len(trials):
            label = counted(len(trials), "trial")
        parts.append(
            f"<details style='margin-top: .4em'><summary style='{_DIM}'>{label}</summary>{_trials(shown)}</details>"
        )
    return f"<div style='{_CARD}'>{''.join(parts)}</div>"


def _trials(trials: Sequence[Trial]) -> str:
    names = [*trials[0].fidelity, *dict.fromkeys(name for trial in trials for name in trial.config)]
    rows = []
    for trial in trials:
        values: dict[str, object] = {**trial.config, **trial.fidelity}
        texts = [_value(values[name]) if name in values else "" for name in names]
        loss = (
            f"{trial.loss:.4g}" if trial.loss is not None else f"{trial.status}: {error_summary(trial.error)}"
        )
        rows.append((f"#{trial.id}", *texts, duration(trial.cost), loss))
    return _table(("trial", *names, "time", "loss"), rows)


def _value(value: object) -> str:
    return number(value) if isinstance(value, int) and not isinstance(value, bool) else short(value)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]], *, strong_last: bool = False) -> str:
    """A table; with ``strong_last`` the first column is dim and the last one is bold."""
    head = "".join(
        f"<th style='{_CELL}; {_DIM}; font-weight: normal'>{safe_html(name)}</th>" for name in header
    )
    body = []
    for row in rows:
        cells = [f"<td style='{_CELL}'>{safe_html(text)}</td>" for text in row]
        if strong_last:
            cells[0] = f"<td style='{_CELL}; {_DIM}'>{safe_html(row[0])}</td>"
            cells[-1] = f"<td style='{_CELL}'><b>{safe_html(row[-1])}</b></td>"
        body.append(f"<tr style='background: none'>{''.join(cells)}</tr>")
    first = f"<thead><tr>{head}</tr></thead>" if header else ""
    return f"<table style='{_TABLE}'>{first}<tbody>{''.join(body)}</tbody></table>"
