"""Is the model right? Each trial as the model predicted it from the trials before, against what was measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fabolas._types import Array, BoolArray, IntArray
from fabolas.direction import loss_or_value
from fabolas.display import counted
from fabolas.plots.drawing import Band, Drawing, Label, Layer, Line, Lines, Panel, Points, Symbol
from fabolas.plots.durations import duration
from fabolas.plots.figure import CannotDraw, ReadableStudy
from fabolas.plots.labels import MAX_POINTS, short_lines
from fabolas.plots.model import Interval, Model, log_normal, model_of
from fabolas.plots.ticks import (
    number,
    padded,
    percent,
    percent_axis,
    suits_log,
    time_axis,
    value_axis,
)
from fabolas.trials import DESIGN

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


@dataclass(frozen=True)
class OneStepPredictions:
    """Predicted and measured values of one quantity.

    Attributes:
        measured: (n,) Measurements.
        predicted: Medians and intervals (n,) of a measurement, given only the trials before it.
        error: (n,) Measured minus predicted, in standard deviations; on a log scale where the model uses one.
        after_design: (n,) Whether the trial is not of the initial design.
        coverage: (levels,) Share of measurements of `after_design` within the intervals of these probabilities.
        texts: (n,) What hovering shows.
    """

    measured: Array
    predicted: Interval
    error: Array
    after_design: BoolArray
    coverage: Array
    texts: tuple[Lines, ...]


@dataclass(frozen=True)
class CalibrationRecord:
    """Losses and costs, predicted one trial ahead.

    Attributes:
        loss: Of the loss.
        cost: Of the seconds; None if the model does not predict seconds.
        what: "loss" or "value".
        note: What is left out.
    """

    loss: OneStepPredictions
    cost: OneStepPredictions | None
    what: str
    note: str


def compute(study: ReadableStudy) -> CalibrationRecord:
    """Compute the record.

    Each prediction uses the trials that ended before, and the hyperparameters of the last fit. Those have seen all
    trials, so the intervals look a little better than they were at the time.
    """
    model = model_of(study)
    what = loss_or_value(study.direction)
    surrogate, history = model.fitted.surrogate, study.history
    index = model.fitted.loss_trials
    mean, variance = surrogate.losses_one_step_ahead()
    complete = history.complete[index] & (index >= 0)
    if int(complete.sum()) < 2:
        raise CannotDraw("A prediction needs trials before it; there is only one complete trial yet.")
    standardised = surrogate.transform.forward(study.sign * history.losses[index[complete]])
    mean, variance, index = mean[complete], variance[complete], index[complete]
    error = study.sign * (standardised - mean) / np.sqrt(variance)
    loss = _compare(model, index, history.losses[index], model.losses(mean, variance), error, what)
    cost = _costs(model, what) if model.costs_are_seconds else None
    n, left = int(history.complete.sum()), len(index)
    note = "" if left == n else f"{left:,} of {n:,} trials are shown: those that the model uses."
    return CalibrationRecord(loss, cost, what, note)


def _costs(model: Model, what: str) -> OneStepPredictions:
    surrogate, history = model.fitted.surrogate, model.history
    index = model.fitted.cost_trials
    mean, variance = surrogate.log_costs_one_step_ahead()
    # What a continued training cost before is in the data, but not in the cost of its last trial.
    whole = np.array([trial.suggestion.continues is None for trial in history.trials], dtype=np.bool_)
    complete = history.complete[index] & (index >= 0) & whole[index]
    mean, variance, index = mean[complete], variance[complete], index[complete]
    costs = history.costs[index]
    error = (np.log(costs) - mean) / np.sqrt(variance)
    return _compare(model, index, costs, log_normal(mean, variance), error, what)


def _compare(
    model: Model, index: IntArray, measured: Array, predicted: Interval, error: Array, what: str
) -> OneStepPredictions:
    trials = [model.history.trials[i] for i in index]
    after_design = np.array([trial.suggestion.origin != DESIGN for trial in trials], dtype=np.bool_)
    judged = error[after_design] if after_design.any() else error
    texts = tuple(short_lines(trial, what) for trial in trials)
    return OneStepPredictions(measured, predicted, error, after_design, coverage(judged), texts)


def coverage(error: Array) -> Array:
    """(levels,) Share of standardised errors (n,) within the central interval of each of `LEVELS`."""
    from scipy.special import ndtri  # slow to import

    limits = ndtri(0.5 + 0.5 * np.array(LEVELS))
    return np.asarray((np.abs(error)[None, :] <= limits[:, None]).mean(axis=1))


def drawing(record: CalibrationRecord) -> Drawing:
    """Lay out the figure: losses, costs, and how often measurements lie within the intervals."""
    panels = [_scatter(record.loss, record.what, is_time=False)]
    if record.cost is not None:
        panels.append(_scatter(record.cost, "time", is_time=True))
    panels.append(_coverage(record))
    return Drawing(tuple(panels), len(panels), 1, 270, note=record.note)


def _scatter(of: OneStepPredictions, what: str, *, is_time: bool) -> Panel:
    predicted = of.predicted
    values = np.concatenate([of.measured, predicted.centre])
    log = suits_log(values, 3.0)
    low, high = padded(values, log=log)
    if is_time:
        x, y = (time_axis(f"{kind} time", low, high, log=log, few=True) for kind in ("predicted", "measured"))
    else:
        x, y = (value_axis(f"{kind} {what}", values, log=log) for kind in ("predicted", "measured"))
    shown = np.arange(len(of.measured))[-MAX_POINTS:]
    texts = tuple((*of.texts[i][:1], _predicted(of, i, is_time), *of.texts[i][1:]) for i in shown)
    bars_x = np.column_stack(
        [
            np.clip(predicted.low, low, high),
            np.clip(predicted.high, low, high),
            np.full(len(of.measured), np.nan),
        ]
    )[shown].ravel()
    bars_y = np.repeat(of.measured[shown], 3)
    layers: list[Layer] = [
        Line(np.array([low, high]), np.array([low, high]), "faint", 1.2, "dash"),
        Line(bars_x, bars_y, "answer", 1.0, alpha=0.25),
    ]
    for after_design in (False, True):
        chosen = [j for j, i in enumerate(shown) if of.after_design[i] == after_design]
        index = shown[chosen]
        layers.append(
            Points(
                predicted.centre[index],
                of.measured[index],
                "answer",
                "circle" if after_design else "ring",
                6,
                hover=tuple(texts[j] for j in chosen),
            )
        )
    inside = of.coverage[LEVELS.index(0.95)]
    return Panel(x, y, tuple(layers), what.capitalize(), f"{percent(inside)} inside the 95 % interval")


def _predicted(of: OneStepPredictions, i: int, is_time: bool) -> str:
    values = (of.predicted.centre[i], of.predicted.low[i], of.predicted.high[i])
    median, low, high = (duration(float(v)) if is_time else number(v, 4) for v in values)
    return f"predicted {median} ({low} to {high})"


def _coverage(record: CalibrationRecord) -> Panel:
    levels = np.array(LEVELS)
    n_after_design = int(record.loss.after_design.sum())
    n = n_after_design or len(record.loss.after_design)
    chance = 2.0 * np.sqrt(levels * (1.0 - levels) / n)
    band = Band(levels, np.clip(levels - chance, 0, 1), np.clip(levels + chance, 0, 1), "faint", 0.25)
    layers: list[Layer] = [band, Line(np.array([0.0, 1.0]), np.array([0.0, 1.0]), "faint", 1.2, "dash")]
    series: list[tuple[OneStepPredictions, str, str, Symbol]] = [
        (record.loss, record.what, "answer", "circle")
    ]
    if record.cost is not None:
        series.append((record.cost, "time", "second", "diamond"))
    for i, (of, name, colour, symbol) in enumerate(series):
        layers.append(Label(0.97, 0.14 - 0.085 * i, name, colour, "right", bold=True, relative=True))
        hover = tuple(
            (name, f"{percent(c)} inside the {percent(p)} interval")
            for p, c in zip(LEVELS, of.coverage, strict=True)
        )
        layers.append(Line(levels, of.coverage, colour, 1.5))
        layers.append(Points(levels, of.coverage, colour, symbol, 7, hover=hover))
    x = percent_axis("stated probability", 1.02)
    y = percent_axis("share inside", 1.06)
    which = "after" if n_after_design else "of"
    return Panel(x, y, tuple(layers), "Coverage", f"{counted(n, 'trial')} {which} the initial design")
