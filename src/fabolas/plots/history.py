"""The answer over time: the predicted loss of the incumbent with its band, and measurements at the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NoReturn

import numpy as np

from fabolas._types import Array, BoolArray
from fabolas.direction import loss_or_value
from fabolas.plots.drawing import (
    Band,
    Drawing,
    FigureAxis,
    Label,
    Line,
    Lines,
    Panel,
    Points,
    StraightLine,
    Symbol,
)
from fabolas.plots.durations import duration
from fabolas.plots.figure import CannotDraw, ReadableStudy
from fabolas.plots.labels import config_lines, shown_trials, thinned_note, trial_lines, where
from fabolas.plots.model import WIDE, incumbent_of, require_complete
from fabolas.plots.over_sizes import OUTSIDE_NOTE, within
from fabolas.plots.ticks import number, stated, suits_log, time_axis, value_axis
from fabolas.plus_minus import justified_digits
from fabolas.strategies import SurrogateStrategy
from fabolas.trials import History, Incumbent

MAX_ANSWERS = 150
_BOLD_CHARACTER = 10  # pixels, in the label of the last answer
_EARLY = 0.02  # share of the time; a linear axis shows it as a thin strip
_LAST = 0.02  # share of the time axis that the last answer takes at least
_LEAST_ANSWERS = 3  # that the vertical axis holds
_FEW_ANSWERS = 0.2  # of the trials; with fewer, the figure says that its line may be behind
_MANY_MEASUREMENTS = 60  # with more, their marks are smaller

Unit = Literal["seconds", "full trainings"]


@dataclass(frozen=True)
class HistoryRecord:
    """The answers of a study, and its measurements at the target.

    Attributes:
        time: (a,) When each answer was computed, in `unit`.
        loss: (a,) Its predicted loss.
        low: (a,) Lower end of its 95 % interval.
        high: (a,) Upper end.
        verified: (a,) Whether it was measured at the target.
        texts: (a,) What hovering shows.
        measured_time: (m,) When each measurement at the target ended.
        measured: (m,) Its loss.
        measured_texts: (m,) What hovering shows.
        end: When the last trial ended.
        unit: Of all times.
        what: "loss" or "value".
        where: Where it is predicted and measured, as the end of a title.
        log_time: Whether the time axis is logarithmic.
        note: What is left out.
    """

    time: Array
    loss: Array
    low: Array
    high: Array
    verified: BoolArray
    texts: tuple[Lines, ...]
    measured_time: Array
    measured: Array
    measured_texts: tuple[Lines, ...]
    end: float
    unit: Unit
    what: str
    where: str
    log_time: bool
    note: str


def compute(study: ReadableStudy, *, unit: Unit = "seconds", log: bool | None = None) -> HistoryRecord:
    """Compute the record.

    Args:
        study: The study.
        unit: "seconds", or "full trainings": the time of one training of the answer at the target.
        log: Whether time is on a logarithmic axis; None for what suits the data.
    """
    _require_time(study)
    history, answers = study.history, _answers(study)
    at_target = history.complete & study.space.is_at_target(history.points)
    what = loss_or_value(study.direction)
    if not answers and not at_target.any():
        _refuse(study, what)
    scale = 1.0 if unit == "seconds" else full_training(study)
    time = np.array([when for when, _ in answers]) / scale
    loss, std = (np.array([getattr(answer, name) for _, answer in answers]) for name in ("loss", "std"))
    shown = shown_trials(history, at_target, study.sign)
    shown = shown[at_target[shown]]
    ended = np.array([trial.elapsed for trial in history.trials]) / scale
    low, high = _interval(loss, std)
    first = min([*time[:1], *ended[shown][:1]])
    return HistoryRecord(
        time=time,
        loss=loss,
        low=low,
        high=high,
        verified=np.array([answer.verified for _, answer in answers], dtype=np.bool_),
        texts=tuple(_answer_lines(when, answer, what, where(study)) for when, answer in answers),
        measured_time=ended[shown],
        measured=history.losses[shown],
        measured_texts=tuple(trial_lines(history.trials[i], what) for i in shown),
        end=float(ended[-1]),
        unit=unit,
        what=what,
        where=where(study),
        log_time=_suits_log_time(time, first, float(ended[-1])) if log is None else log,
        note=" ".join(filter(None, [thinned_note(len(shown), int(at_target.sum())), _lag_note(study)])),
    )


def _require_time(study: ReadableStudy) -> None:
    if not len(study.history):
        raise CannotDraw("There is no trial yet.")
    if not study.history.elapsed > 0:
        raise CannotDraw(
            "No time is recorded: the trials were measured elsewhere, or their costs are not known."
        )


def _refuse(study: ReadableStudy, what: str) -> NoReturn:
    require_complete(study)
    raise CannotDraw(
        f"It is too early to predict the {what} at the target, and nothing was measured there yet."
    )


def predicted_answers(trajectory: Sequence[tuple[float, Incumbent]]) -> list[tuple[float, Incumbent]]:
    """The answers of a trajectory whose loss was predicted; for the first ones it may be too early.

    Of several at the same time, only the last one: the answer of a run replaces the incumbent at its end.
    """
    last_by_time = dict(trajectory)
    return [(when, answer) for when, answer in last_by_time.items() if not answer.preliminary]


def _lag_note(study: ReadableStudy) -> str:
    """What is said if the run computed its answer only now and then, because trials were faster than that."""
    n_answers, n = len({when for when, _ in study.trajectory}), len(study.history)
    if not 0 < n_answers < _FEW_ANSWERS * n or _measured_answers(study) is not None:
        return ""
    times = "once" if n_answers == 1 else f"{n_answers:,} times"
    return f"The run computed its answer {times} in {n:,} trials, so the line may be behind the measurements."


def known_answers(study: ReadableStudy) -> list[tuple[float, Incumbent]]:
    """The answers of a study over time, without computing one from a model."""
    measured = _measured_answers(study)
    return predicted_answers(study.trajectory) if measured is None else measured


def _answers(study: ReadableStudy) -> list[tuple[float, Incumbent]]:
    """The answers of the study and its answer now; of very many, those where it changed, and an even sample.

    The present answer is added even if only its predicted loss has changed, because the other figures state that loss.
    """
    answers = known_answers(study)
    now = incumbent_of(study)
    if now is not None and not now.preliminary and (not answers or _stated(answers[-1][1]) != _stated(now)):
        answers = predicted_answers([*answers, (study.history.elapsed, now)])
    if len(answers) <= MAX_ANSWERS:
        return answers
    even = np.linspace(0, len(answers) - 1, MAX_ANSWERS // 2).round().astype(int)
    pairs = enumerate(pairwise(answers), start=1)
    changed = [i for i, (a, b) in pairs if a[1].trial_ids[0] != b[1].trial_ids[0]]
    return [answers[i] for i in sorted({*even.tolist(), *changed[-MAX_ANSWERS // 2 :]})]


def _measured_answers(study: ReadableStudy) -> list[tuple[float, Incumbent]] | None:
    """All answers of a strategy without a model: the best measurement at the target, each time that it improved.

    The trajectory has only those that the run computed. None if the strategy has a model, or is not known here.
    """
    try:
        strategy = study.strategy
    except ValueError:  # a file of a strategy that is not one of fabolas
        return None
    if isinstance(strategy, SurrogateStrategy):
        return None
    history = study.history
    if not len(history):
        return []
    at_target = history.complete & study.space.is_at_target(history.points)
    best = np.minimum.accumulate(np.where(at_target, study.sign * history.losses, np.inf))
    improved = np.flatnonzero(best < np.concatenate([[np.inf], best[:-1]]))[-MAX_ANSWERS:]
    answers = ((i, strategy.incumbent(History(history.trials[: i + 1]))) for i in improved.tolist())
    return [(history.trials[i].elapsed, answer) for i, answer in answers if answer is not None]


def _stated(answer: Incumbent) -> tuple[tuple[int, ...], float]:
    return answer.trial_ids, answer.loss


def _suits_log_time(answers: Array, first: float, end: float) -> bool:
    """Whether most answers (a,) were found so early that a linear axis would show them as one."""
    return bool(len(answers)) and bool(first > 0 and np.median(answers) < _EARLY * end)


def full_training(study: ReadableStudy) -> float:
    """Seconds of one training of the answer at the target: the measured mean, or else of all trials there.

    Raises:
        CannotDraw: If no trial at the target is complete.
    """
    history = study.history
    there = history.complete & study.space.is_at_target(history.points)
    if not there.any():
        raise CannotDraw(
            "No trial at the target is complete, so the time of a full training is not known yet."
        )
    incumbent = incumbent_of(study)
    ids = set() if incumbent is None else set(incumbent.trial_ids)
    own = there & np.array([trial.id in ids for trial in history.trials])
    return float(np.mean(history.costs[own if own.any() else there]))


def _interval(loss: Array, std: Array) -> tuple[Array, Array]:
    """95 % intervals. If all losses are positive they are lognormal, so that the band stays above zero."""
    if len(loss) and loss.min() > 0:
        deviation = np.sqrt(np.log1p((std / loss) ** 2))
        median = loss * np.exp(-0.5 * deviation**2)
        return median * np.exp(-WIDE * deviation), median * np.exp(WIDE * deviation)
    return loss - WIDE * std, loss + WIDE * std


def _answer_lines(when: float, answer: Incumbent, what: str, there: str) -> Lines:
    verified = f"measured{there}" if answer.verified else f"predicted, not measured{there}"
    digits = justified_digits(answer.loss, answer.std) if answer.std > 0 else 4
    loss = f"{what} {number(answer.loss, digits)}"
    if answer.std > 0:
        loss += f" ± {number(float(f'{answer.std:.2g}'))}"
    return ("Answer", loss, verified, f"after {duration(when)}", *config_lines(answer.config))


def drawing(record: HistoryRecord) -> Drawing:
    """Lay out the figure."""
    values = np.concatenate([record.loss, record.measured])
    log = suits_log(values, 3.0)
    y = value_axis(f"{record.what}{record.where}", _worth_showing(record, log=log), log=log)
    layers: list[Band | Line | Points | Label | StraightLine] = []
    right = 64
    if len(record.time):
        x = np.append(record.time, _stop(record))  # the last answer holds until then
        low, high, loss = (np.append(each, each[-1]) for each in (record.low, record.high, record.loss))
        measured = np.append(record.verified, record.verified[-1])
        low, high = (np.clip(each, *(y.range or (0.0, 1.0))) for each in (low, high))
        layers += _bands(x, low, high, measured)
        texts = (*record.texts, record.texts[-1])
        layers += [
            Line(*_where(x, loss, ~measured), "answer", 1.8, "dot", hover=_repeated(texts), step=False),
            Line(*_where(x, loss, measured), "answer", 2.6, hover=_repeated(texts), step=False),
        ]
    size, alpha = (8, 1.0) if len(record.measured) <= _MANY_MEASUREMENTS else (6, 0.45)
    layers += _measurements(record, y, size, alpha)
    if len(record.time):
        best, last = record.loss[-1], x[-1:]
        layers.append(Points(last, record.loss[-1:], "answer", size=10, hover=record.texts[-1:]))
        text = stated(float(best), float(record.high[-1] - record.low[-1]) / (2.0 * WIDE))
        style: dict[str, Any] = {"bold": True, "shift": (10, 0), "size": 13, "in_margin": True}
        layers.append(Label(float(last[0]), float(best), text, "answer", **style))
        right = max(right, 24 + _BOLD_CHARACTER * len(text))
    outside = any(isinstance(layer, Points) and layer.symbol in ("up", "down") for layer in layers)
    note = f"{record.note} {OUTSIDE_NOTE}".lstrip() if outside else record.note
    return Drawing((Panel(_time(record), y, tuple(layers)),), right=right, note=note)


def _measurements(record: HistoryRecord, y: FigureAxis, size: float, alpha: float) -> list[Points]:
    """Diamonds, and triangles at the edge for measurements beyond it."""
    low, high = within(y.range or (-np.inf, np.inf), log=y.log)
    kinds: tuple[tuple[BoolArray, Symbol], ...] = (
        ((record.measured >= low) & (record.measured <= high), "diamond"),
        (record.measured > high, "up"),
        (record.measured < low, "down"),
    )
    layers = []
    for chosen, symbol in kinds:
        hover = tuple(record.measured_texts[i] for i in np.flatnonzero(chosen))
        place = (record.measured_time[chosen], np.clip(record.measured[chosen], low, high))
        if len(hover):
            layers.append(Points(*place, "second", symbol, size, alpha, hover=hover))
    return layers


def _bands(x: Array, low: Array, high: Array, measured: BoolArray) -> list[Band]:
    """The band of a line of steps (a,) in parts: pale from an answer on that was not measured at the target."""
    ends = [*(np.flatnonzero(measured[1:] != measured[:-1]) + 1).tolist(), len(measured) - 1]
    parts = [slice(start, end + 1) for start, end in pairwise([0, *ends])]
    return [
        Band(x[part], low[part], high[part], "answer", 0.16 if measured[part.start] else 0.06, step=True)
        for part in parts
    ]


def _where(x: Array, y: Array, chosen: BoolArray) -> tuple[Array, Array]:
    """The steps of a line that start at chosen points, each with the riser to it; NaN between the others."""
    corner_x, corner_y = np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1]
    kept = np.repeat(chosen, 2)[:-1]
    kept[:-1] |= kept[1:]  # a chosen step after another one starts at the end of that one
    return corner_x, np.where(kept, corner_y, np.nan)


def _repeated(texts: tuple[Lines, ...]) -> tuple[Lines, ...]:
    """The texts of the corners of a line of steps: only the first corner of each step has one."""
    return tuple(each for text in texts for each in (text, ()))[:-1]


def _worth_showing(record: HistoryRecord, *, log: bool) -> Array:
    """The values that the axis must hold. The first answers would leave no room for the others."""
    last = np.array([*record.low[-1:], *record.high[-1:]])
    if log:
        late = record.log_time | (record.time >= _EARLY * record.end)
        late[-_LEAST_ANSWERS:] = True
        answers = np.append(record.loss[late], last)
    else:
        answers = np.append(record.loss[len(record.loss) // 5 :], last)
    return np.append(answers, record.measured[_near(record.measured, answers, record.what, log=log)])


def _near(measured: Array, answers: Array, what: str, *, log: bool) -> BoolArray:
    """Which measurements (m,) the axis holds: the better half, and those not much worse than the answers."""
    if len(measured) < 2 or len(answers) < 2:
        return np.ones(len(measured), dtype=np.bool_)
    m, a = (np.log(each) if log else each for each in (measured, answers))
    worse, a = (m, a) if what == "loss" else (-m, -a)
    limit = max(a.max() + np.ptp(a), np.median(worse))
    return np.asarray(worse <= limit)


def _stop(record: HistoryRecord) -> float:
    """Where the last answer ends: with the search, or a little later, so that its band can be seen."""
    if not len(record.time):
        return record.end
    last = float(record.time[-1])
    if record.log_time:
        return max(record.end, float(last * (record.end / _first(record)) ** _LAST))
    return max(record.end, last + _LAST * record.end)


def _first(record: HistoryRecord) -> float:
    return float(min([record.end, *record.time[:1], *record.measured_time[:1]]))


def _time(record: HistoryRecord) -> FigureAxis:
    first, stop = _first(record), _stop(record)
    low = 0.85 * first if record.log_time else 0.0
    if record.unit == "seconds":
        return time_axis("time of the search", low, 1.02 * stop, log=record.log_time)
    return value_axis(
        "time of the search, in full trainings",
        np.array([max(first, 1e-12), stop] if record.log_time else [0.0, stop]),
        log=record.log_time,
        share=0.02,
    )
