"""Slices at the target: the predicted loss along each hyperparameter through the answer, and p_min as shading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np

from fabolas._types import Array, BoolArray, IntArray
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
_MARK_HEIGHT = 0.03  # the same, of the marks of forbidden positions
FORBIDDEN = "forbidden with the other values of the answer"


@dataclass(frozen=True)
class Slice:
    """One hyperparameter.

    Attributes:
        axis: The hyperparameter.
        interval: Predicted losses (m,) at its positions.
        allowed: (m,) Whether no forbidden clause is true there.
        optimum: (m,) Density of the optimum's position, for choices the probability of each; the largest is 1.
        answer: Position of the answer.
        measured: (n,) Positions of the trials at the target; NaN where the hyperparameter is not active.
    """

    axis: ParameterAxis
    interval: Interval
    allowed: BoolArray
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
    flat, allowed, history = model.loss(points), model.space.is_legal(points), study.history
    at_target = history.complete & study.space.is_at_target(history.points)
    shown = shown_trials(history, at_target, study.sign, 200)
    shown = shown[at_target[shown]]
    slices, start = [], 0
    for axis in axes:
        column, end = study.space.names.index(axis.name), start + len(axis.positions)
        measured = positions_of(study, shown, axis.name)
        interval, at = flat.part(start, end), float(x[column])
        slices.append(Slice(axis, interval, allowed[start:end], density(model, axis), at, measured))
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


def _runs(mask: BoolArray) -> list[IntArray]:
    """The indices of each run of neighbours for which the mask is true."""
    index = np.flatnonzero(mask)
    return np.split(index, np.flatnonzero(np.diff(index) > 1) + 1) if len(index) else []


def forbidden_note(allowed: Sequence[BoolArray]) -> str:
    """A sentence about the marks of forbidden configurations; nothing if there are none."""
    return "" if all(each.all() for each in allowed) else f"Crosses: {FORBIDDEN}."


def _forbidden(each: Slice, height: Array) -> list[Layer]:
    """A mark at each forbidden position."""
    index = np.flatnonzero(~each.allowed)
    if not len(index):
        return []
    hover = tuple((f"{shortened(each.axis.name)} = {each.axis.labels[i]}", FORBIDDEN) for i in index)
    return [Points(each.axis.positions[index], height[index], "muted", "cross", 4, 0.7, hover)]


def drawing(record: SlicesRecord) -> Drawing:
    """Lay out the figure."""
    parts = [record.losses, np.array([record.answer])]
    parts += [each for s in record.slices for each in (s.interval.centre, s.interval.inner_low)]
    values = np.concatenate(parts)
    log = suits_log(values, 3.0)
    y = value_axis(f"{record.what}{record.where}", values, log=log)
    low, high = y.range or (0.0, 1.0)

    def at_height(share: Array) -> Array:
        """The value at a share of the height of a panel."""
        return low * (high / low) ** share if log else low + share * (high - low)

    panels = []
    for each in record.slices:
        shade = at_height(np.maximum(each.optimum, 0.0) * _SHADE_HEIGHT)
        layers = _slice_layers(record, each, (low, high), shade)
        layers += _forbidden(each, at_height(np.full(len(each.allowed), _MARK_HEIGHT)))
        panels.append(Panel(each.axis.draw(), y, tuple(layers)))
    columns = 2 if len(panels) in (2, 4) else min(3, len(panels))
    height = 230 if columns > 1 else 340
    note = f"{record.note} {forbidden_note([each.allowed for each in record.slices])}".strip()
    return Drawing(tuple(panels), columns, 1, height, note=note, shared_y=True)


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
        layers += [Band(x[part], low[part], high[part], "answer", 0.16) for part in _runs(each.allowed)]
        layers += [
            Band(x, floor, shade, "second", 0.45),
            Line(x, np.where(each.allowed, of.centre, np.nan), "answer", 2.2, hover=texts),
        ]
    else:
        gap = np.full(len(x), np.nan)
        across = np.repeat(x, 3)
        inside = [np.where(each.allowed, end, np.nan) for end in (low, high)]
        for ends, colour, width in (((floor, shade), "second", 9.0), (inside, "answer", 3.0)):
            layers.append(Line(across, np.column_stack([*ends, gap]).ravel(), colour, width, alpha=0.45))
        centre = np.clip(of.centre, *limits)[each.allowed]
        hover = tuple(compress(texts, each.allowed))
        layers.append(Points(x[each.allowed], centre, "answer", size=9, hover=hover))
    answer = (("Answer", f"{record.what} {number(record.answer, 4)}"),)
    at, value = np.array([each.answer]), np.array([record.answer])
    layers.append(Points(at, value, "answer", "star", 13, hover=answer))
    return layers
