"""Trials and configurations as lines of text, for hovering. The renderers escape them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fabolas._types import Array, IntArray
from fabolas.plots.drawing import Lines
from fabolas.plots.durations import duration
from fabolas.plots.figure import ReadableStudy
from fabolas.plots.ticks import number
from fabolas.trials import (
    ADDED,
    BATCH,
    DESIGN,
    ENQUEUED,
    IMPROVEMENT,
    INFORMATION,
    RANDOM,
    TARGET,
    VERIFICATION,
    History,
    Trial,
)

MAX_POINTS = 400  # trials in one figure; with more, it shows the best ones and an even sample of the others
MAX_PARAMETERS = 12  # of a configuration in a hover text
_MAX_TEXT = 60  # characters of one value or name
_NARROW_NAME = 15  # characters of the name of a row on a phone
_NAME_START = 7  # characters of a long name that are kept from its start

ORIGINS: Mapping[str, str] = {
    DESIGN: "initial design",
    INFORMATION: "information per second",
    TARGET: "expected improvement",
    IMPROVEMENT: "expected improvement",
    BATCH: "information, in a batch",
    ENQUEUED: "enqueued by the user",
    VERIFICATION: "verification",
    RANDOM: "random",
    ADDED: "measured elsewhere",
}


def why(origin: str) -> str:
    """Why a trial was suggested, in words."""
    return ORIGINS.get(origin, origin)


def where(study: ReadableStudy) -> str:
    """Where losses are compared, as the end of a title or a sentence; nothing without fidelities."""
    return " at the target" if study.space.fidelities else ""


def shortened(text: object) -> str:
    """The text, cut if it is too long for a label."""
    whole = str(text)
    return whole if len(whole) <= _MAX_TEXT else f"{whole[: _MAX_TEXT - 1]}…"


def short_name(name: str, most: int = 24) -> str:
    """A name beside a figure, where a phone has little room; of a long one the middle is left out.

    The end is kept, because it says most in names such as "classifier__learning_rate".
    """
    if len(name) <= most:
        return name
    return f"{name[:_NAME_START]}…{name[-(most - _NAME_START - 1) :]}"


def narrow_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names of rows on a phone: of a long one only the end, unless another one has the same end."""
    ends = [name if len(name) <= _NARROW_NAME else f"…{name[1 - _NARROW_NAME :]}" for name in names]
    count = Counter(ends)
    return tuple(end if count[end] == 1 else name for name, end in zip(names, ends, strict=True))


def value_text(value: Any) -> str:
    """The value of a hyperparameter as short text."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return shortened(value)
    return number(value) if isinstance(value, float) else str(value)


def config_lines(config: Mapping[str, Any]) -> Lines:
    """One line for each hyperparameter, up to a limit."""
    lines = [f"{shortened(name)} = {value_text(value)}" for name, value in config.items()]
    if len(lines) > MAX_PARAMETERS:
        lines = [*lines[:MAX_PARAMETERS], f"and {len(lines) - MAX_PARAMETERS} more"]
    return tuple(lines)


def fidelity_text(fidelity: Mapping[str, float | int]) -> str:
    """Fidelities as text: size 1,250, epochs 3."""
    return ", ".join(f"{shortened(name)} {number(value)}" for name, value in fidelity.items())


def trial_lines(trial: Trial, what: str = "loss") -> Lines:
    """All that hovering over a trial shows: outcome, fidelities, configuration, and why it was suggested."""
    outcome = trial.status if trial.loss is None else f"{what} {number(trial.loss, 5)}"
    lines = [f"Trial {trial.id}", f"{outcome} · {duration(trial.cost)}"]
    if trial.suggestion.fidelity:
        lines.append(fidelity_text(trial.suggestion.fidelity))
    return (*lines, *config_lines(trial.suggestion.config), f"Why: {why(trial.suggestion.origin)}")


def short_lines(trial: Trial, what: str = "loss") -> Lines:
    """The same in short, for figures with many points: which trial, its outcome, and its fidelities."""
    n_fidelity_lines = 1 if trial.suggestion.fidelity else 0
    return trial_lines(trial, what)[: 2 + n_fidelity_lines]


def shown_trials(history: History, at_target: Any, sign: float, limit: int = MAX_POINTS) -> IntArray:
    """The indices of the trials to show, ascending: all, or of very many the best ones and an even sample.

    Args:
        history: All trials.
        at_target: (n,) Which of them are at the target.
        sign: 1 if lower losses are better, else -1.
        limit: How many to show.
    """
    n = len(history)
    if n <= limit:
        return np.arange(n)
    losses = np.where(history.complete, sign * history.losses, np.inf)
    best = np.lexsort((losses, ~np.asarray(at_target)))[: limit // 2]
    others = np.setdiff1d(np.arange(n), best)
    chosen = others[np.linspace(0, len(others) - 1, limit - len(best)).round().astype(int)]
    return np.sort(np.concatenate([best, chosen]))


def positions_of(study: ReadableStudy, shown: IntArray, name: str) -> Array:
    """(n,) The coordinates of a hyperparameter in some trials; NaN where it is not active."""
    history, column = study.history, study.space.names.index(name)
    active = np.array([name in history.trials[i].suggestion.config for i in shown], dtype=np.bool_)
    return np.where(active, history.points[shown, column], np.nan)


def left_out_note(n: int) -> str:
    """A sentence that says that hyperparameters are not shown; nothing if all are."""
    if n <= 0:
        return ""
    names = (
        "One hyperparameter with less influence is"
        if n == 1
        else f"{n} hyperparameters with less influence are"
    )
    return f"{names} not shown."


def thinned_note(n_shown: int, n: int) -> str:
    """A sentence that says that not all trials are shown; nothing if they are."""
    return "" if n_shown >= n else f"{n_shown:,} of {n:,} trials are shown: the best, and an even sample."
