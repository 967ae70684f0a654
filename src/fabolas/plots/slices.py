"""Slices at the target: the predicted loss along each hyperparameter through the answer, and p_min as shading."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fabolas._types import Array
from fabolas.direction import loss_or_value
from fabolas.plots.drawing import Band, Drawing, Layer, Line, Lines, Panel, Points, StraightLine
from fabolas.plots.figure import CannotDraw, ReadableStudy
from fabolas.plots.labels import left_out_note, positions_of, short_lines, shortened, shown_trials, where
from fabolas.plots.model import Interval, Model, incumbent_of, model_of
from fabolas.plots.parameter_axis import ParameterAxis, parameter_axis
from fabolas.plots.ticks import number, suits_log, value_axis

MAX_PANELS = 12
_N_POSITIONS = 33
_BANDWIDTH = 0.04  # of the density of p_min, in the cube
_SHADE_HEIGHT = 0.22  # share of a panel


@dataclass(frozen=True)
class Slice:
    """One hyperparameter.

    Attributes:
        axis: The hyperparameter.
        interval: Predicted losses (m,) at its positions.
        optimum: (m,) Density of the optimum's position, for choices the probability of each; the largest is 1.
        answer: Position of the answer.
        measured: (n,) Positions of the trials at the target; NaN where the hyperparameter is not active.
    """

    axis: ParameterAxis
    interval: Interval
    optimum: Array
    answer: float
    measured: Array


@dataclass(frozen=True)
class SlicesRecord:
    """Slices through the answer.

    Attributes:
        slices: The most important hyperparameter first.
        losses: (n,) Losses of the trials at the target.
        texts: (n,) What hovering shows of them.
        answer: The predicted loss of the answer.
        what: "loss" or "value".
        where: Where it is predicted, as the end of a title.
        note: What is left out.
    """

    slices: tuple[Slice, ...]
    losses: Array
    texts: tuple[Lines, ...]
    answer: float
    what: str
    where: str
    note: str


def compute(study: ReadableStudy, *, names: tuple[str, ...] | None = None) -> SlicesRecord:
    """Compute the record.

    Args:
        study: The study.
        names: The hyperparameters to show; None for the most important ones.
    """
    model, what = model_of(study), loss_or_value(study.direction)
    x, inactive = answer_of(study, model)
    asked = model.by_importance if names is None else check_names(study, names)
    active = [name for name in asked if name not in inactive]
    chosen = active[:MAX_PANELS] if names is None else active
    axes = [parameter_axis(study.space, name, _N_POSITIONS) for name in chosen]
    if not axes:
        raise CannotDraw(_note(asked, 0))
    points = np.concatenate([_along(model, x, axis) for axis in axes])
    flat, history = model.loss(points), study.history
    at_target = history.complete & study.space.is_at_target(history.points)
    shown = shown_trials(history, at_target, study.sign, 200)
    shown = shown[at_target[shown]]
    slices, start = [], 0
    for axis in axes:
        column, end = study.space.names.index(axis.name), start + len(axis.positions)
        measured = positions_of(study, shown, axis.name)
        slices.append(Slice(axis, flat.part(start, end), density(model, axis), float(x[column]), measured))
        start = end
    return SlicesRecord(
        tuple(slices),
        history.losses[shown],
        tuple(short_lines(history.trials[i], what) for i in shown),
        float(model.loss(model.at_target(x[None])).centre[0]),
        what,
        where(study),
        _note(tuple(n for n in inactive if names is None or n in names), len(active) - len(chosen)),
    )


def answer_of(study: ReadableStudy, model: Model) -> tuple[Array, tuple[str, ...]]:
    """The answer's configuration (d,), and the hyperparameters that are not active in it.

    Raises:
        CannotDraw: If it is too early to predict its loss at the target.
    """
    incumbent, history = incumbent_of(study), study.history
    if incumbent is None:
        return model.evaluated[0], ()
    if incumbent.preliminary:
        what = loss_or_value(study.direction)
        raise CannotDraw(f"It is too early to predict the {what}{where(study)}.")
    position = next(i for i, trial in enumerate(history.trials) if trial.id == incumbent.trial_ids[0])
    inactive = tuple(name for name in study.space.names if name not in incumbent.config)
    return history.points[position, : study.space.dim], inactive


def check_names(study: ReadableStudy, names: tuple[str, ...]) -> tuple[str, ...]:
    """The names.

    Raises:
        ValueError: If one of them is no hyperparameter with several values.
    """
    unknown = [name for name in names if name not in study.space.names]
    if unknown or not names:
        raise ValueError(
            f"names must be among {', '.join(study.space.names)}, got {', '.join(unknown) or 'none'}"
        )
    return tuple(names)


def _along(model: Model, x: Array, axis: ParameterAxis) -> Array:
    points = np.repeat(model.at_target(x[None]), len(axis.positions), axis=0)
    points[:, model.space.names.index(axis.name)] = axis.positions
    return model.space.snap(points)


def density(model: Model, axis: ParameterAxis) -> Array:
    """(m,) Density of the optimum along a hyperparameter; of choices their probabilities. The largest is 1."""
    optimum, column = model.optimum_with(axis.name), model.space.names.index(axis.name)
    x = optimum.x[:, column]
    if not axis.ordered:
        nearest = np.argmin(np.abs(x[:, None] - axis.positions[None, :]), axis=1)
        shares = np.bincount(nearest, optimum.probability, minlength=len(axis.positions))
        return np.asarray(shares / shares.max(), dtype=float)
    smooth = kernel_weights(axis.positions, x) @ optimum.probability
    return np.asarray(smooth / smooth.max())


def kernel_weights(positions: Array, x: Array) -> Array:
    """(m, n) Gaussian kernels of samples x (n,) in [0, 1] at positions (m,), reflected at both ends."""
    mirrored = np.stack([x, -x, 2.0 - x])  # (3, n)
    z = (positions[None, :, None] - mirrored[:, None, :]) / _BANDWIDTH
    return np.asarray(np.exp(-0.5 * z**2).sum(axis=0))


def _note(inactive: tuple[str, ...], left_out: int) -> str:
    sentences = []
    if inactive:
        names = ", ".join(map(shortened, inactive[:6])) + (" and others" if len(inactive) > 6 else "")
        sentences.append(f"Not active in the answer: {names}.")
    sentences.append(left_out_note(left_out))
    return " ".join(filter(None, sentences))


def drawing(record: SlicesRecord) -> Drawing:
    """Lay out the figure."""
    parts = [record.losses, np.array([record.answer])]
    parts += [each for s in record.slices for each in (s.interval.centre, s.interval.inner_low)]
    values = np.concatenate(parts)
    log = suits_log(values, 3.0)
    y = value_axis(f"{record.what}{record.where}", values, log=log)
    low, high = y.range or (0.0, 1.0)
    panels = []
    for each in record.slices:
        place = np.maximum(each.optimum, 0.0) * _SHADE_HEIGHT
        top = low * (high / low) ** place if log else low + place * (high - low)
        layers = _slice_layers(record, each, (low, high), top)
        panels.append(Panel(each.axis.draw(), y, tuple(layers)))
    columns = 2 if len(panels) in (2, 4) else min(3, len(panels))
    height = 230 if columns > 1 else 340
    return Drawing(tuple(panels), columns, 1, height, note=record.note, shared_y=True)


def _slice_layers(
    record: SlicesRecord, each: Slice, limits: tuple[float, float], shade: Array
) -> list[Layer]:
    x, of = each.axis.positions, each.interval
    texts = tuple(
        (
            f"{shortened(each.axis.name)} = {label}",
            f"predicted {record.what} {number(m, 4)}",
            f"95 %: {number(a, 3)} to {number(b, 3)}",
        )
        for label, m, a, b in zip(each.axis.labels, of.centre, of.low, of.high, strict=True)
    )
    low, high = np.clip(of.low, *limits), np.clip(of.high, *limits)
    floor = np.full(len(x), limits[0])
    layers: list[Layer] = [StraightLine(x=each.answer)]
    active = np.flatnonzero(np.isfinite(each.measured))
    hover = tuple(record.texts[i] for i in active)
    layers.append(
        Points(each.measured[active], record.losses[active], "faint", size=5, alpha=0.7, hover=hover)
    )
    if each.axis.ordered:
        layers += [
            Band(x, low, high, "answer", 0.16),
            Band(x, floor, shade, "second", 0.45),
            Line(x, of.centre, "answer", 2.2, hover=texts),
        ]
    else:
        gap = np.full(len(x), np.nan)
        across = np.repeat(x, 3)
        for ends, colour, width in (((floor, shade), "second", 9.0), ((low, high), "answer", 3.0)):
            layers.append(Line(across, np.column_stack([*ends, gap]).ravel(), colour, width, alpha=0.45))
        layers.append(Points(x, np.clip(of.centre, *limits), "answer", size=9, hover=texts))
    answer = (("Answer", f"{record.what} {number(record.answer, 4)}"),)
    at, value = np.array([each.answer]), np.array([record.answer])
    layers.append(Points(at, value, "answer", "star", 13, hover=answer))
    return layers
