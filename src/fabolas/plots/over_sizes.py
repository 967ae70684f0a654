"""What the figures over a fidelity share: the trials as points, and predicted curves of a few configurations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fabolas._types import Array, BoolArray, IntArray
from fabolas.plots.drawing import Band, FigureAxis, Label, Layer, Line, Lines, Points, Symbol
from fabolas.plots.figure import CannotDraw, ReadableStudy
from fabolas.plots.labels import (
    config_lines,
    fidelity_text,
    short_name,
    shortened,
    shown_trials,
    thinned_note,
    trial_lines,
)
from fabolas.plots.model import Interval, Model, incumbent_of
from fabolas.plots.ticks import linear_axis, log_ticks, number

COLOURS = ("answer", "second", "third", "fourth", "fifth")  # of the curves, the answer's first
OUTSIDE_NOTE = "Triangles at the edge are trials outside the picture."
_WEAKEST_RIVAL = 0.5  # place in the ranking of all configurations, from 0 for the best to 1
_N_SIZES = 56  # of each curve
_N_PATHS = 200  # trainings whose reports are shown, at most
_MIN_DISTANCES = (0.1, 1e-9)  # between configurations whose curves are shown, in the cube: if possible, ...


@dataclass(frozen=True)
class Cloud:
    """The complete trials of a figure over sizes.

    Attributes:
        sizes: (n,) Their values of the fidelity.
        values: (n,) Losses, or seconds.
        others_at_target: (n,) Whether all other fidelities are at their targets.
        curve: (n,) The curve whose configuration it has; -1 for none.
        texts: (n,) What hovering shows.
    """

    sizes: Array
    values: Array
    others_at_target: BoolArray
    curve: IntArray
    texts: tuple[Lines, ...]


@dataclass(frozen=True)
class Paths:
    """What trainings reported on their way through a fidelity, one path after the other, with NaN between them.

    Attributes:
        sizes: (n,) Values of the fidelity.
        losses: (n,)
        curve: (n,) The curve whose configuration it has; -1 for none.
    """

    sizes: Array
    losses: Array
    curve: IntArray


@dataclass(frozen=True)
class PredictedCurve:
    """The predicted curve of one configuration.

    Attributes:
        name: "answer", or the trial that it is from.
        texts: Lines about the configuration.
        sizes: (m,) Values of the fidelity, ascending; the last one is the target.
        interval: Medians and intervals (m,).
    """

    name: str
    texts: Lines
    sizes: Array
    interval: Interval


@dataclass(frozen=True)
class SizeAxis:
    """The fidelity on the horizontal axis."""

    name: str
    low: float
    target: float
    log: bool


def size_axis_of(study: ReadableStudy, name: str | None) -> SizeAxis:
    """The fidelity of that name; the first one if it is None.

    Raises:
        CannotDraw: If the space has no fidelity.
        ValueError: If it has none of that name.
    """
    names = tuple(study.space.fidelities)
    if not names:
        raise CannotDraw(
            "The study has no fidelity, such as the size of the training set, so there is nothing to show over it."
        )
    if name is not None and name not in names:
        raise ValueError(f"fidelity must be one of {', '.join(map(repr, names))}, got {name!r}")
    name = names[0] if name is None else name
    kind = study.space.fidelities[name]
    return SizeAxis(name, float(kind.low), float(kind.high), kind.log)


def cloud_of(study: ReadableStudy, name: str, values: Array, xs: Array, what: str) -> tuple[Cloud, str]:
    """The complete trials over a fidelity, and a note if not all are shown.

    Args:
        study: The study.
        name: The fidelity.
        values: (n,) A number for each trial of the study.
        xs: (c, d) The configurations of the curves.
        what: What a loss is called.
    """
    space, history = study.space, study.history
    column = list(space.fidelities).index(name)
    shown = shown_trials(history, space.is_at_target(history.points), study.sign)
    shown = shown[history.complete[shown]]
    x, u = np.split(history.points[shown], [space.dim], axis=1)
    curve = np.full(len(shown), -1)
    for i, each in enumerate(xs):
        curve[(x == each).all(axis=1)] = i
    cloud = Cloud(
        space.fidelities[name].values(u[:, column]),
        values[shown],
        (np.delete(u, column, axis=1) == 1.0).all(axis=1),
        curve,
        tuple(trial_lines(history.trials[i], what) for i in shown),
    )
    return cloud, thinned_note(len(shown), int(history.complete.sum()))


def others_note(study: ReadableStudy, name: str, cloud: Cloud, curves: str = "") -> str:
    """What is said of the fidelities that are not on the horizontal axis; nothing if there are none.

    Args:
        study: The study.
        name: The fidelity of the horizontal axis.
        cloud: The trials.
        curves: The beginning of a sentence about curves, such as "The curve is drawn for"; nothing without them.
    """
    others = " and ".join(shortened(other) for other in study.space.fidelities if other != name)
    if not others:
        return ""
    assumed = f"{curves} {others} at the target." if curves else ""
    below = (
        "" if cloud.others_at_target.all() else f"Hollow points are trials with {others} below the target."
    )
    return " ".join(filter(None, [assumed, below]))


def outside_note(cloud: Cloud, axis: FigureAxis) -> str:
    """What is said of trials beyond the vertical axis; nothing if there are none."""
    low, high = within(axis.range or (-np.inf, np.inf), log=axis.log)
    outside = (cloud.curve < 0) & ((cloud.values < low) | (cloud.values > high))
    return OUTSIDE_NOTE if outside.any() else ""


def paths_of(study: ReadableStudy, name: str, xs: Array) -> Paths:
    """The paths of the trainings that reported on their way through a fidelity; the last ones if there are many.

    Args:
        study: The study.
        name: The fidelity.
        xs: (c, d) The configurations of the curves.
    """
    sizes: list[float] = []
    losses: list[float] = []
    curve: list[int] = []
    reporting = study.space.fidelities[name].reports
    trained = [t for t in study.history.trials if t.reports and t.status == "complete"] if reporting else []
    for trial in trained[-_N_PATHS:]:
        passed = [(float(r.fidelity[name]), r.loss) for r in trial.reports]
        if not trial.stopped and trial.loss is not None:
            passed.append((float(trial.fidelity[name]), trial.loss))
        same = np.flatnonzero((xs == trial.point[: study.space.dim]).all(axis=1))
        sizes += [*(size for size, _ in passed), np.nan]
        losses += [*(loss for _, loss in passed), np.nan]
        curve += [int(same[0]) if len(same) else -1] * (len(passed) + 1)
    return Paths(np.array(sizes), np.array(losses), np.array(curve, dtype=int))


def curve_points(model: Model, name: str, xs: Array) -> tuple[Array, Array]:
    """Sizes (m,) of a curve, and points (c, m, d + f) of configurations (c, d), other fidelities at the target."""
    space = model.space
    kind, column = space.fidelities[name], space.dim + list(space.fidelities).index(name)
    u = np.unique(kind.snap(np.linspace(0.0, 1.0, _N_SIZES)))
    points = np.repeat(model.at_target(xs)[:, None, :], len(u), axis=1)
    points[:, :, column] = u
    return kind.values(u), points


def configurations_to_show(study: ReadableStudy, model: Model, n_rivals: int) -> Array:
    """(c, d) The answer, its closest rival, and weaker ones whose curves can be told apart from it.

    Rivals are configurations at even steps of the ranking by predicted loss, if possible not close to another one.
    """
    incumbent, d = incumbent_of(study), study.space.dim
    ranked = model.evaluated
    shown = [ranked[0]]
    if incumbent is not None:
        position = {trial.id: i for i, trial in enumerate(study.history.trials)}
        shown = [study.history.points[position[incumbent.trial_ids[0]], :d]]
    ranks = np.linspace(0.0, _WEAKEST_RIVAL, n_rivals) * (len(ranked) - 1)
    for rank in ranks.round().astype(int):
        candidates = [*ranked[rank:], *ranked[:rank][::-1]]
        for distance in _MIN_DISTANCES:
            far = [x for x in candidates if min(float(np.abs(x - each).max()) for each in shown) >= distance]
            if far:
                shown.append(far[0])
                break
    return np.array(shown)


def curves_of(study: ReadableStudy, xs: Array, sizes: Array, flat: Interval) -> tuple[PredictedCurve, ...]:
    """The curves of configurations (c, d) at sizes (m,), from intervals of (c m,)."""
    curves, m = [], len(sizes)
    for i, x in enumerate(xs):
        same = (study.history.points[:, : study.space.dim] == x).all(axis=1)
        trial = study.history.trials[int(np.flatnonzero(same & study.history.complete)[0])]
        name = "answer" if i == 0 else f"trial {trial.id}"
        interval = flat.part(i * m, (i + 1) * m)
        curves.append(PredictedCurve(name, config_lines(trial.suggestion.config), sizes, interval))
    return tuple(curves)


def draw_axis(axis: SizeAxis) -> FigureAxis:
    """The horizontal axis; the target is its last tick."""
    if not axis.log:
        return linear_axis(short_name(axis.name), axis.low, axis.target)
    margin = (axis.target / axis.low) ** 0.02
    apart = (axis.target / axis.low) ** 0.09  # ticks closer than this would overlap
    inner = [v for v, _ in log_ticks(axis.low, axis.target) if apart * axis.low < v < axis.target / apart]
    ticks = [(v, number(v)) for v in (axis.low, *inner, axis.target)]
    return FigureAxis(
        short_name(axis.name), log=True, range=(axis.low / margin, axis.target * margin), ticks=tuple(ticks)
    )


def draw_cloud(cloud: Cloud, limits: tuple[float, float], *, log: bool) -> list[Layer]:
    """The trials that belong to no curve; those whose other fidelities are below the target are rings.

    Trials beyond the limits of the vertical axis are triangles at its ends.
    """
    layers: list[Layer] = []
    low, high = within(limits, log=log)
    inside = (low <= cloud.values) & (cloud.values <= high)
    kinds: tuple[tuple[bool, Symbol, float], ...] = ((False, "ring", 1.0), (True, "circle", 0.7))
    for full, symbol, alpha in kinds:
        chosen = np.flatnonzero((cloud.curve < 0) & (cloud.others_at_target == full) & inside)
        if len(chosen):
            texts = tuple(cloud.texts[i] for i in chosen)
            layers.append(
                Points(cloud.sizes[chosen], cloud.values[chosen], "faint", symbol, 6, alpha, hover=texts)
            )
    beyond: tuple[tuple[BoolArray, float, Symbol], ...] = (
        (cloud.values > high, high, "up"),
        (cloud.values < low, low, "down"),
    )
    for outside, edge, symbol in beyond:
        chosen = np.flatnonzero((cloud.curve < 0) & outside)
        if len(chosen):
            texts = tuple(cloud.texts[i] for i in chosen)
            at_edge = np.full(len(chosen), edge)
            layers.append(Points(cloud.sizes[chosen], at_edge, "faint", symbol, 8, 0.7, hover=texts))
    return layers


def draw_paths(paths: Paths, limits: tuple[float, float]) -> list[Layer]:
    """A thin line for each training that reported on the way, in the colour of its configuration's curve."""
    layers: list[Layer] = []
    for i in np.unique(paths.curve).tolist():
        chosen = paths.curve == i
        losses = np.clip(paths.losses[chosen], *limits)
        style = ("faint", 1.0, 0.45) if i < 0 else (COLOURS[i], 1.2, 0.7)
        layers.append(Line(paths.sizes[chosen], losses, style[0], style[1], alpha=style[2]))
    return layers


def within(limits: tuple[float, float], *, log: bool) -> tuple[float, float]:
    """Limits a little inside of others, so that a mark at them is not cut."""
    low, high = np.log(limits) if log else limits
    ends = np.array([low + 0.015 * (high - low), high - 0.015 * (high - low)])
    low, high = np.exp(ends) if log else ends
    return float(low), float(high)


def draw_own_points(cloud: Cloud, n_curves: int) -> list[Layer]:
    """The trials of the configurations that have curves, in their colours; the answer's in front.

    They are rings if other fidelities are below the target, because the curves are not about those.
    """
    layers: list[Layer] = []
    for i in reversed(range(n_curves)):
        for full in (False, True):
            chosen = np.flatnonzero((cloud.curve == i) & (cloud.others_at_target == full))
            if len(chosen):
                x, y, texts = cloud.sizes[chosen], cloud.values[chosen], tuple(cloud.texts[j] for j in chosen)
                symbol: Symbol = "circle" if full else "ring"
                layers.append(Points(x, y, COLOURS[i], symbol, 11 if i == 0 else 9, hover=texts))
    return layers


def draw_curves(
    curves: Sequence[PredictedCurve], name: str, limits: tuple[float, float], texts: Sequence[Sequence[str]]
) -> list[Layer]:
    """Lines with their bands; all bands are behind all lines, so that no band changes the colour of a line.

    Args:
        curves: The curves, the answer's first, which is in front.
        name: The fidelity of the horizontal axis.
        limits: The ends of the vertical axis, to which bands are cut.
        texts: (m,) Texts of the medians, for each curve.
    """
    order = list(enumerate(curves))[::-1]
    bands = [layer for i, curve in order for layer in _bands(curve, i, limits)]
    return [*bands, *(_line(curve, i, name, texts[i]) for i, curve in order)]


def _bands(curve: PredictedCurve, i: int, limits: tuple[float, float]) -> list[Layer]:
    """The bands of 50 % and, for the answer, of 95 %."""
    colour, of = COLOURS[i], curve.interval
    low, high, inner_low, inner_high = (
        np.clip(each, *limits) for each in (of.low, of.high, of.inner_low, of.inner_high)
    )
    layers: list[Layer] = [Band(curve.sizes, low, high, colour, 0.16)] if i == 0 else []
    return [*layers, Band(curve.sizes, inner_low, inner_high, colour, 0.25 if i == 0 else 0.1)]


def _line(curve: PredictedCurve, i: int, name: str, medians: Sequence[str]) -> Line:
    """The line of the medians; hovering shows prediction and configuration."""
    hover = tuple(
        (f"Predicted, {curve.name}", text, fidelity_text({name: size}), *curve.texts)
        for text, size in zip(medians, curve.sizes.tolist(), strict=True)
    )
    return Line(curve.sizes, curve.interval.centre, COLOURS[i], 3.0 if i == 0 else 1.7, hover=hover)


def draw_end_labels(
    curves: Sequence[PredictedCurve], axis: FigureAxis, texts: Sequence[str], narrow_texts: Sequence[str]
) -> list[Layer]:
    """Texts at the right ends of the curves, moved apart where they would overlap; on a phone other, shorter ones."""
    if not curves:
        return []
    low, high = axis.range or (0.0, 1.0)
    ends = np.array([curve.interval.centre[-1] for curve in curves])
    if axis.log:
        places = np.log(ends / low) / np.log(high / low)
    else:
        places = (ends - low) / (high - low)
    moved = spread(np.clip(places, 0.0, 1.0), 0.05)
    values = low * (high / low) ** moved if axis.log else low + moved * (high - low)
    return [
        Label(
            float(curve.sizes[-1]),
            float(y),
            texts[i],
            COLOURS[i],
            bold=i == 0,
            shift=(10, 0),
            in_margin=True,
            narrow_text=narrow_texts[i],
        )
        for i, (curve, y) in enumerate(zip(curves, values, strict=True))
    ]


def spread(places: Array, distance: float) -> Array:
    """The nearest places (n,) in [0, 1] that are at least this far apart, in the same order."""
    order = np.argsort(places, kind="stable")
    steps = distance * np.arange(len(places))
    # Least squares under an order is isotonic regression of the places minus their steps.
    level = _isotonic(places[order] - steps)
    level = np.clip(level, 0.0, max(1.0 - float(steps[-1]), 0.0))
    moved = np.empty_like(level)
    moved[order] = level + steps
    return moved


def _isotonic(values: Array) -> Array:
    """The closest non-decreasing sequence (n,) in least squares: pool adjacent violators."""
    blocks: list[tuple[float, int]] = []
    for value in values.tolist():
        mean, count = value, 1
        while blocks and blocks[-1][0] > mean:
            before, n = blocks.pop()
            mean, count = (mean * count + before * n) / (count + n), count + n
        blocks.append((mean, count))
    return np.concatenate([np.full(count, mean) for mean, count in blocks])
