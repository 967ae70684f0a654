"""Contours at the target: the predicted loss over pairs of hyperparameters through the answer, p_min as shading."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from fabolas._types import Array, BoolArray
from fabolas.direction import loss_or_value
from fabolas.plots.drawing import Contours, Drawing, Label, Layer, Lines, Panel, Points
from fabolas.plots.figure import CannotDraw, ReadableStudy
from fabolas.plots.labels import positions_of, short_lines, shown_trials
from fabolas.plots.model import Model, model_of
from fabolas.plots.parameter_axis import ParameterAxis, parameter_axis
from fabolas.plots.slices import FORBIDDEN, answer_of, check_names, forbidden_note, kernel_weights
from fabolas.plots.ticks import linear_values, numbers, suits_log

N_NAMES = 3  # hyperparameters whose pairs are shown
_N_POSITIONS = 27
_N_DENSITY = 45
_N_LEVELS = 9
# Factors of powers of ten at which lines may be, the densest first.
_LOG_LEVELS = ((1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8), (1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,))
_LABEL_DISTANCE = 0.1  # between labels of lines, as a share of the panel; in a small panel this one:
_SMALL_LABEL_DISTANCE = 0.2


@dataclass(frozen=True)
class Pair:
    """Two hyperparameters.

    Attributes:
        x: The one on the horizontal axis.
        y: The one on the vertical axis.
        loss: (len(y), len(x)) Predicted losses, the others as in the answer.
        allowed: (len(y), len(x)) Whether no forbidden clause is true there.
        optimum: (m, m) Density of the optimum over `grid` (m,) on both axes; the largest is 1.
        grid: (m,) Positions.
        answer: Position (x, y) of the answer.
        measured: (n, 2) Positions of the trials that are shown; NaN where a hyperparameter is not active.
    """

    x: ParameterAxis
    y: ParameterAxis
    loss: Array
    allowed: BoolArray
    optimum: Array
    grid: Array
    answer: tuple[float, float]
    measured: Array


@dataclass(frozen=True)
class ContoursRecord:
    """Contours of pairs.

    Attributes:
        pairs: The pairs.
        texts: (n,) What hovering over the trials shows.
        at_target: (n,) Which of them are at the target.
        what: "loss" or "value".
    """

    pairs: tuple[Pair, ...]
    texts: tuple[Lines, ...]
    at_target: BoolArray
    what: str


def compute(study: ReadableStudy, *, names: tuple[str, ...] | None = None) -> ContoursRecord:
    """Compute the record.

    Args:
        study: The study.
        names: Two or more hyperparameters that are not categorical; None for the three most important ones.
    """
    model, what = model_of(study), loss_or_value(study.direction)
    x, inactive = answer_of(study, model)
    usable = [
        name
        for name in model.by_importance
        if not study.space.n_choices[study.space.names.index(name)] and name not in inactive
    ]
    if names is not None:
        usable = [name for name in check_names(study, names) if name in usable]
    if len(usable) < 2:
        raise CannotDraw(
            f"Contours need two hyperparameters with ordered values that are active in the answer; there "
            f"{'is one' if usable else 'is none'}."
        )
    usable = usable[: N_NAMES if names is None else len(usable)]
    axes = {name: parameter_axis(study.space, name, _N_POSITIONS) for name in usable}
    history = study.history
    at_target = study.space.is_at_target(history.points)
    shown = shown_trials(history, at_target, study.sign, 150)
    shown = shown[history.complete[shown]]
    places = {name: positions_of(study, shown, name) for name in usable}
    pairs = tuple(
        _pair(model, x, axes[a], axes[b], np.column_stack([places[a], places[b]]))
        for a, b in combinations(usable, 2)
    )
    texts = tuple(short_lines(history.trials[i], what) for i in shown)
    return ContoursRecord(pairs, texts, at_target[shown], what)


def _pair(model: Model, x: Array, a: ParameterAxis, b: ParameterAxis, measured: Array) -> Pair:
    i, j = model.space.names.index(a.name), model.space.names.index(b.name)
    grid = np.repeat(model.at_target(x[None]), len(a.positions) * len(b.positions), axis=0)
    grid[:, i], grid[:, j] = np.tile(a.positions, len(b.positions)), np.repeat(b.positions, len(a.positions))
    loss = model.loss(model.space.snap(grid)).centre.reshape(len(b.positions), len(a.positions))
    if not model.sees_differences:
        # Without lines, because they would only show where there are few trials.
        loss = np.full_like(loss, loss.min())
    optimum, positions = model.optimum_with(a.name, b.name), np.linspace(0.0, 1.0, _N_DENSITY)
    weights = kernel_weights(positions, optimum.x[:, j]) * optimum.probability
    density = weights @ kernel_weights(positions, optimum.x[:, i]).T
    answer = (float(x[i]), float(x[j]))
    allowed = model.space.is_legal(grid).reshape(loss.shape)
    return Pair(a, b, loss, allowed, density / density.max(), positions, answer, measured)


def drawing(record: ContoursRecord) -> Drawing:
    """Lay out the figure."""
    panels = tuple(Panel(pair.x.draw(), pair.y.draw(), tuple(_layers(record, pair))) for pair in record.pairs)
    columns = min(3, len(panels))
    note = forbidden_note([pair.allowed for pair in record.pairs])
    return Drawing(panels, columns, 1, 250 if columns > 1 else 380, note=note)


def _layers(record: ContoursRecord, pair: Pair) -> list[Layer]:
    """Shading of p_min, lines of equal loss at round values, trials and the answer."""
    levels = _levels(pair.loss)
    z = _between_levels(pair.loss, levels)
    x, y, there = pair.x.positions, pair.y.positions, record.at_target
    active = np.isfinite(pair.measured).all(axis=1)
    layers: list[Layer] = [
        Contours(pair.grid, pair.grid, pair.optimum, "second", (0.1, 1.0, 0.1), filled=True),
        Contours(
            x,
            y,
            z,
            "muted",
            (0.0, max(len(levels) - 1.0, 0.0), 1.0),
            values=pair.loss,
            hover=f"predicted {record.what}",
        ),
    ]
    distance = _LABEL_DISTANCE if len(record.pairs) == 1 else _SMALL_LABEL_DISTANCE
    layers += [*_forbidden(pair), *_level_labels(pair, z, levels, distance)]
    for chosen, colour, size in ((~there, "faint", 4), (there, "ink", 5)):
        index = np.flatnonzero(chosen & active)
        hover = tuple(record.texts[i] for i in index)
        layers.append(
            Points(
                pair.measured[index, 0], pair.measured[index, 1], colour, size=size, alpha=0.7, hover=hover
            )
        )
    answer = np.array([pair.answer])
    layers.append(Points(answer[:, 0], answer[:, 1], "answer", "star", 14, hover=(("Answer",),)))
    return layers


def _forbidden(pair: Pair) -> list[Layer]:
    """A mark at each forbidden position of the grid."""
    j, i = np.nonzero(~pair.allowed)
    hover = ((FORBIDDEN.capitalize(),),) * len(i)
    x, y = pair.x.positions[i], pair.y.positions[j]
    return [Points(x, y, "faint", "cross", 4, 0.7, hover)] if len(i) else []


def _levels(losses: Array) -> list[float]:
    """Round values for lines, equally spaced; of very different losses, about equally spaced in the logarithm.

    None is at the lowest or the highest loss: large areas can have exactly these, the limits of what is possible.
    """
    low, high = float(losses.min()), float(losses.max())
    if suits_log(losses, 3.0):
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for factors in _LOG_LEVELS:
            levels = [float(f"{factor}e{decade}") for decade in decades for factor in factors]
            inside = [level for level in levels if low < level < high]
            if len(inside) <= _N_LEVELS:
                return inside
    return [level for level in linear_values(low, high, _N_LEVELS) if low < level < high]


def _between_levels(losses: Array, levels: list[float]) -> Array:
    """The losses on a smooth scale on which the levels are 0, 1, 2, ..., because contours are drawn at equal steps."""
    from scipy.interpolate import PchipInterpolator  # slow to import

    if len(levels) < 2:
        return losses - levels[0] if levels else np.ones_like(losses)
    low, high = float(losses.min()), float(losses.max())
    below = (low - levels[0]) / (levels[1] - levels[0])
    above = len(levels) - 1 + (high - levels[-1]) / (levels[-1] - levels[-2])
    knots = [(level, float(i)) for i, level in enumerate(levels)]
    knots = [*([(low, below)] if below < 0 else []), *knots, *([(high, above)] if high > levels[-1] else [])]
    at, place = np.array(knots).T
    return np.asarray(PchipInterpolator(at, place)(losses))


def _level_labels(pair: Pair, z: Array, levels: list[float], distance: float) -> list[Layer]:
    """The value of each line, where it is first crossed on the way from the answer to one of the four sides.

    Labels are at least `distance` apart, as a share of the width of the panel.
    """
    column = int(np.argmin(np.abs(pair.x.positions - pair.answer[0])))
    row = int(np.argmin(np.abs(pair.y.positions - pair.answer[1])))
    at_x, at_y = pair.x.positions, pair.y.positions
    ways = [
        (at_x[column:], np.full(len(at_x) - column, at_y[row]), z[row, column:]),
        (np.full(len(at_y) - row, at_x[column]), at_y[row:], z[row:, column]),
        (at_x[: column + 1][::-1], np.full(column + 1, at_y[row]), z[row, : column + 1][::-1]),
        (np.full(row + 1, at_x[column]), at_y[: row + 1][::-1], z[: row + 1, column][::-1]),
    ]
    labels: list[Layer] = []
    places: list[tuple[float, float]] = [pair.answer]
    texts = numbers(levels) if levels else []
    for i in range(len(levels)):
        level = float(i)
        for way_x, way_y, way_z in ways[i % 4 :] + ways[: i % 4]:
            crossed = np.flatnonzero((way_z[:-1] - level) * (way_z[1:] - level) < 0)
            if len(crossed):
                k = int(crossed[0])
                share = (level - way_z[k]) / (way_z[k + 1] - way_z[k])
                a, b = (float(way[k] + share * (way[k + 1] - way[k])) for way in (way_x, way_y))
                if all(max(abs(a - x), 1.5 * abs(b - y)) > distance for x, y in places):
                    labels.append(Label(a, b, texts[i], "muted", "centre", size=10, background=True))
                    places.append((a, b))
                    break
    return labels
