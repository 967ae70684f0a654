"""What a trial costs: seconds against the size, with the cost model's band."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fabolas._types import Array
from fabolas.direction import loss_or_value
from fabolas.plots.drawing import Drawing, Layer, Panel, StraightLine
from fabolas.plots.durations import duration
from fabolas.plots.figure import CannotDraw, ReadableStudy
from fabolas.plots.layout import label_width
from fabolas.plots.model import model_of, require_complete
from fabolas.plots.over_sizes import (
    Cloud,
    PredictedCurve,
    SizeAxis,
    cloud_of,
    configurations_to_show,
    curve_points,
    curves_of,
    draw_axis,
    draw_cloud,
    draw_curves,
    draw_end_labels,
    draw_own_points,
    others_note,
    size_axis_of,
)
from fabolas.plots.ticks import padded, suits_log, time_axis


@dataclass(frozen=True)
class CostRecord:
    """Seconds of the trials over one fidelity, and the predicted cost of the answer.

    Attributes:
        axis: The fidelity.
        cloud: The trials.
        curves: The answer's curve; empty without a model of the cost.
        note: What the curve assumes, or why there is none, and what is left out.
    """

    axis: SizeAxis
    cloud: Cloud
    curves: tuple[PredictedCurve, ...]
    note: str


def compute(study: ReadableStudy, *, fidelity: str | None = None) -> CostRecord:
    """Compute the record.

    Args:
        study: The study.
        fidelity: The fidelity of the horizontal axis; None for the first one. The others are at their targets.
    """
    require_complete(study)
    axis, what = size_axis_of(study, fidelity), loss_or_value(study.direction)
    xs: Array = np.empty((0, study.space.dim))
    curves: tuple[PredictedCurve, ...] = ()
    why_none = ""
    try:
        xs, curves = _curves(study, axis.name)
    except CannotDraw as reason:
        why_none = str(reason)
    cloud, thinned = cloud_of(study, axis.name, study.history.costs, xs, what)
    others = others_note(study, axis.name, cloud, "The curve is drawn for" if curves else "")
    return CostRecord(axis, cloud, curves, " ".join(filter(None, [why_none, others, thinned])))


def _curves(study: ReadableStudy, name: str) -> tuple[Array, tuple[PredictedCurve, ...]]:
    model = model_of(study)
    if not model.costs_are_seconds:
        raise CannotDraw(
            "The strategy takes the size as the cost of a trial, so it does not predict seconds."
        )
    if not model.sees_fidelities:
        raise CannotDraw(
            f"The strategy {study.strategy.name!r} evaluates at the target only, so it predicts no curve."
        )
    xs = configurations_to_show(study, model, 0)
    sizes, points = curve_points(model, name, xs)
    return xs, curves_of(study, xs, sizes, model.cost(points.reshape(-1, points.shape[-1])))


def drawing(record: CostRecord) -> Drawing:
    """Lay out the figure."""
    values = np.concatenate([record.cloud.values, *(curve.interval.centre for curve in record.curves)])
    if record.curves:
        values = np.append(values, record.curves[0].interval.high[-1])
    log = suits_log(values)
    low, high = padded(values, log=log)
    y = time_axis("time of one trial", low if log else 0.0, high, log=log)
    layers: list[Layer] = [
        StraightLine(x=record.axis.target),
        *draw_cloud(record.cloud, y.range or (0.0, 1.0), log=log),
    ]
    texts = [[duration(v) for v in curve.interval.centre.tolist()] for curve in record.curves]
    layers += draw_curves(record.curves, record.axis.name, y.range or (-np.inf, np.inf), texts)
    layers += draw_own_points(record.cloud, len(record.curves))
    times = [duration(float(curve.interval.centre[-1])) for curve in record.curves]
    labels = [f"predicted {time}" for time in times]
    layers += draw_end_labels(record.curves, y, labels, times)
    panel = Panel(draw_axis(record.axis), y, tuple(layers))
    return Drawing((panel,), height=340, right=max(map(label_width, labels), default=24), note=record.note)
