"""Learning curves: all trials against the size, and the model's curves of the answer and its rivals to the target."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fabolas._types import Array
from fabolas.direction import loss_or_value
from fabolas.plots.drawing import Drawing, FigureAxis, Label, Layer, Panel, StraightLine
from fabolas.plots.figure import CannotDraw, ReadableStudy
from fabolas.plots.labels import where
from fabolas.plots.layout import label_width
from fabolas.plots.model import NARROW, Model, incumbent_of, model_of, require_complete
from fabolas.plots.over_sizes import (
    Cloud,
    Paths,
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
    draw_paths,
    others_note,
    outside_note,
    paths_of,
    size_axis_of,
)
from fabolas.plots.ticks import number, stated, suits_log, value_axis

N_RIVALS = 3
_RIGHT = 124  # margin of the labels at the ends of curves, in pixels; more for longer ones


@dataclass(frozen=True)
class CurvesRecord:
    """Trials and predicted curves over one fidelity.

    Attributes:
        axis: The fidelity.
        what: "loss" or "value".
        cloud: The trials.
        paths: What trainings reported on the way.
        curves: The answer's curve first; empty without a model.
        note: What the curves assume, or why there are none, and what is left out.
        preliminary: Whether it is too early to predict the answer's loss at the target.
    """

    axis: SizeAxis
    what: str
    cloud: Cloud
    paths: Paths
    curves: tuple[PredictedCurve, ...]
    note: str
    preliminary: bool = False


def compute(study: ReadableStudy, *, fidelity: str | None = None, n_rivals: int = N_RIVALS) -> CurvesRecord:
    """Compute the record.

    Args:
        study: The study.
        fidelity: The fidelity of the horizontal axis; None for the first one. The others are at their targets.
        n_rivals: How many configurations are shown beside the answer, at most 4.
    """
    require_complete(study)
    axis, what = size_axis_of(study, fidelity), loss_or_value(study.direction)
    xs: Array = np.empty((0, study.space.dim))
    curves: tuple[PredictedCurve, ...] = ()
    why_none = ""
    try:
        model = model_of(study)
        xs, curves = _curves(study, model, axis.name, min(n_rivals, 4))
    except CannotDraw as reason:
        why_none = str(reason)
    cloud, thinned = cloud_of(study, axis.name, study.history.losses, xs, what)
    paths = paths_of(study, axis.name, xs)
    others = others_note(study, axis.name, cloud, "The curves are drawn for" if curves else "")
    reported = "Thin lines are what trainings reported on the way." if len(paths.sizes) else ""
    incumbent = incumbent_of(study)
    preliminary = incumbent is not None and incumbent.preliminary
    early = f"It is too early to predict the {what}{where(study)}." if curves and preliminary else ""
    better = "" if preliminary else _better_rivals(study, curves)
    note = " ".join(filter(None, [why_none, early, better, others, reported, thinned]))
    return CurvesRecord(axis, what, cloud, paths, curves, note, preliminary)


def _better_rivals(study: ReadableStudy, curves: tuple[PredictedCurve, ...]) -> str:
    """Why the answer is not the configuration with the best prediction; nothing if it is."""
    ends = [study.sign * float(curve.interval.centre[-1]) for curve in curves]
    incumbent = incumbent_of(study)
    names = [curve.name for curve, end in zip(curves, ends, strict=True) if end < ends[0]]
    if not names or incumbent is None or not incumbent.verified:
        return ""
    better = "lower" if study.direction == "minimize" else "higher"
    who = f"{' and '.join(names).capitalize()} {'has' if len(names) == 1 else 'have'} a {better} prediction"
    return f"{who}; the answer is chosen by predictions and by measurements{where(study)}."


def _curves(
    study: ReadableStudy, model: Model, name: str, n_rivals: int
) -> tuple[Array, tuple[PredictedCurve, ...]]:
    if not model.sees_fidelities:
        raise CannotDraw(
            f"The strategy {study.strategy.name!r} evaluates at the target only, so it predicts no curves."
        )
    xs = configurations_to_show(study, model, n_rivals)
    sizes, points = curve_points(model, name, xs)
    flat = model.loss(points.reshape(-1, points.shape[-1]))
    return xs, curves_of(study, xs, sizes, flat)


def _loss_axis(record: CurvesRecord) -> FigureAxis:
    """The vertical axis. Without the worst tenth of the trials, there is more room for the curves."""
    values = record.cloud.values
    if not record.curves:
        return value_axis(record.what, values, log=suits_log(values, 3.0))
    medians = np.concatenate([curve.interval.centre for curve in record.curves])
    first = record.curves[0].interval
    if len(values) < 10:
        shown = np.concatenate([values, medians, first.inner_low, first.inner_high])
        return value_axis(record.what, shown, log=suits_log(shown, 3.0), share=0.08)
    middle = np.quantile(values, [0.2, 0.8])
    shown = np.concatenate([medians, [first.low[-1], first.high[-1]], middle])
    best = values[(values <= middle[0]) if record.what == "loss" else (values >= middle[1])]
    shown = np.concatenate([shown, best])
    return value_axis(record.what, shown, log=suits_log(shown, 3.0), share=0.08)


def _end(curve: PredictedCurve) -> tuple[float, float]:
    """The loss at the target and its standard deviation."""
    of = curve.interval
    return float(of.centre[-1]), float(of.inner_high[-1] - of.inner_low[-1]) / (2.0 * NARROW)


def drawing(record: CurvesRecord) -> Drawing:
    """Lay out the figure."""
    y = _loss_axis(record)
    layers: list[Layer] = [
        StraightLine(x=record.axis.target),
        *draw_paths(record.paths, y.range or (-np.inf, np.inf)),
        *draw_cloud(record.cloud, y.range or (0.0, 1.0), log=y.log),
    ]
    texts = [
        [f"{record.what} {number(v, 4)}" for v in curve.interval.centre.tolist()] for curve in record.curves
    ]
    layers += draw_curves(record.curves, record.axis.name, y.range or (-np.inf, np.inf), texts)
    layers += draw_own_points(record.cloud, len(record.curves))
    losses = [stated(*_end(curve)) for curve in record.curves]
    names = [curve.name for curve in record.curves]
    ends = names if record.preliminary else [f"{n}  {loss}" for n, loss in zip(names, losses, strict=True)]
    layers += draw_end_labels(record.curves, y, ends, names)
    layers.append(
        Label(record.axis.target, y.range[1] if y.range else 1.0, "target", "muted", "centre", shift=(0, 8))
    )
    panel = Panel(draw_axis(record.axis), y, tuple(layers))
    note = " ".join(filter(None, [record.note, outside_note(record.cloud, y)]))
    right = max([_RIGHT, *map(label_width, ends)]) if record.curves else 24
    return Drawing((panel,), height=460, right=right, note=note)
