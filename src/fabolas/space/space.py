"""``Space``: what is searched, as named axes of the unit cube, and the fidelities beside them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fabolas._types import Array, BoolArray
from fabolas.space.description import describe, difference
from fabolas.space.fidelity import Fidelity, read_fidelities
from fabolas.space.parameters import Axis, Categorical, Constant, Ordinal
from fabolas.space.reading import read_parameters
from fabolas.space.rules import Rows, Rule
from fabolas.space.scale import checked_number

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace

_REFILLS = 200  # rounds of random draws before a space counts as (all but) forbidden


class Space:
    """A search space and its fidelities as the unit cube: x in [0, 1]^d, then u in [0, 1]^f.

    On snapped points ``encode`` and ``decode`` are exact inverses. An inactive hyperparameter is absent from
    the configuration, and its coordinate rests at the hyperparameter's default.

    Args:
        parameters: A mapping name -> Float, Integer, Categorical, Ordinal, a list of choices or a constant;
            or a ``ConfigSpace.ConfigurationSpace``; or another Space, taken with its fidelities if
            it has any.
        fidelities: A mapping name -> Fidelity or (low, high), whose upper end is the target; None for none.

    Attributes:
        names: The d hyperparameters that have a column; constants have none.
        fidelities: The f fidelities, in the order of their columns.
        dim: d.
        n_fidelities: f.
        choices: (d,) the number of choices of a categorical column, 0 for any other.
    """

    names: tuple[str, ...]
    fidelities: Mapping[str, Fidelity]
    dim: int
    n_fidelities: int
    choices: tuple[int, ...]
    _axes: dict[str, Axis]
    _conditions: dict[str, Rule]  # child -> when it is active
    _forbidden: tuple[Rule, ...]

    def __init__(
        self,
        parameters: Mapping[str, Any] | ConfigurationSpace | Space,
        fidelities: Mapping[str, Fidelity | tuple[float, float]] | None = None,
    ) -> None:
        if isinstance(parameters, Space):
            if fidelities is not None and parameters.fidelities:
                raise ValueError("expected no fidelities beside a Space, which has its own; leave them out")
            self._axes, self._conditions = parameters._axes, parameters._conditions
            self._forbidden = parameters._forbidden
            self.fidelities = parameters.fidelities or read_fidelities(fidelities)
        else:
            self._axes, self._conditions, self._forbidden = read_parameters(parameters)
            self.fidelities = read_fidelities(fidelities)
        clash = self._axes.keys() & self.fidelities.keys()
        if clash:
            raise ValueError(
                f"expected different names for hyperparameters and fidelities, got {_listed(clash)} as both; "
                "rename one of them"
            )
        self.names = tuple(name for name, axis in self._axes.items() if not isinstance(axis, Constant))
        if not self.names:
            raise ValueError(
                "a space expected at least one hyperparameter to tune, got only constants; "
                "give one of them a range or several choices"
            )
        self.dim, self.n_fidelities = len(self.names), len(self.fidelities)
        columns = [self._axes[name] for name in self.names]
        self.choices = tuple(
            len(axis.choices) if isinstance(axis, Categorical) and not isinstance(axis, Ordinal) else 0
            for axis in columns
        )
        self._defaults = [axis.default_coordinate() for axis in columns]
        self._order = _activation_order(self._axes, self._conditions)

    def encode(self, config: Mapping[str, Any], fidelity: Mapping[str, Any] | None = None) -> Array:
        """A configuration and its fidelity (None: the target) to their point (d + f,).

        Raises:
            ValueError: A name is unknown, missing or inactive, a value out of range, or the whole forbidden.
            TypeError: A value is of the wrong type.
        """
        _check_names(config, self._axes, "hyperparameter")
        x = np.array(self._defaults)
        for name, value in config.items():
            coordinate = _coordinate(self._axes[name], value, f"hyperparameter {name!r}")
            if name in self.names:
                x[self.names.index(name)] = coordinate
        rows = self._rows(x[None, :])
        active = {name for name in self._axes if rows.active[name][0]}
        if missing := active - config.keys():
            raise ValueError(
                f"expected a value for each active hyperparameter, got none for {_listed(missing)}; add them"
            )
        if idle := config.keys() - active:
            raise ValueError(
                f"expected values of active hyperparameters only, got {_listed(idle)}, inactive here "
                f"(active if {'; '.join(self._conditions[name].text for name in sorted(idle))}); omit them"
            )
        if broken := [rule.text for rule in self._forbidden if rule.holds(rows)[0]]:
            raise ValueError(
                f"expected a legal configuration, got one forbidden by {broken[0]}; change a value"
            )
        return np.concatenate([x, self._encode_fidelity(fidelity)])

    def _encode_fidelity(self, fidelity: Mapping[str, Any] | None) -> Array:
        if fidelity is None:
            return np.ones(self.n_fidelities)
        _check_names(fidelity, self.fidelities, "fidelity")
        if missing := self.fidelities.keys() - fidelity.keys():
            raise ValueError(f"expected a value for each fidelity, got none for {_listed(missing)}; add them")
        sizes = [(kind, fidelity[name], f"fidelity {name!r}") for name, kind in self.fidelities.items()]
        return np.array([_coordinate(*size) for size in sizes], dtype=np.float64)

    def decode(self, point: Array) -> tuple[dict[str, Any], dict[str, float | int]]:
        """A point (d + f,) to its configuration, inactive names absent, and its fidelity, in plain python."""
        point = np.asarray(point, dtype=np.float64)
        if point.shape != (self.dim + self.n_fidelities,):
            raise ValueError(
                f"expected a point of shape ({self.dim + self.n_fidelities},), got {point.shape}; "
                "pass one row"
            )
        snapped = self.snap(point[None, :])
        config = self._rows(snapped[:, : self.dim]).values(0)
        sizes = zip(self.fidelities.items(), snapped[0, self.dim :], strict=True)
        return config, {name: fidelity.value(float(u)) for (name, fidelity), u in sizes}

    def snap(self, points: Array) -> Array:
        """The nearest representable points, inactive coordinates at rest: (m, d + f), or (m, d) for x."""
        columns = self._columns(points)
        axes: list[Axis | Fidelity] = [*(self._axes[name] for name in self.names), *self.fidelities.values()]
        for j in range(len(columns)):
            columns[j] = axes[j].snap(columns[j])
        if self._conditions:
            active = self._active(dict(zip(self.names, columns, strict=False)))
            for j, name in enumerate(self.names):
                if name in self._conditions:
                    columns[j, ~active[name]] = self._defaults[j]
        return np.ascontiguousarray(columns.T)

    def legal(self, points: Array) -> BoolArray:
        """Where no forbidden clause holds, of the snapped points: (m, d + f) or (m, d) -> (m,)."""
        if not self._forbidden:
            return np.ones(len(points), dtype=np.bool_)
        rows = self._rows(self.snap(points)[:, : self.dim])
        illegal: BoolArray = np.logical_or.reduce([rule.holds(rows) for rule in self._forbidden])
        return ~illegal

    def spread(self, n: int, rng: np.random.Generator) -> Array:
        """Configurations (n, d) spread over the cube by a scrambled Sobol sequence, snapped and legal."""
        from scipy.stats import qmc  # slow to import, and needed here only

        exponent = max(n - 1, 0).bit_length()  # the sequence is balanced at powers of two
        x = self.snap(qmc.Sobol(self.dim, scramble=True, rng=rng).random_base2(exponent)[:n])
        for _ in range(_REFILLS):
            bad = ~self.legal(x)
            if not bad.any():
                return x
            x[bad] = self.snap(rng.random((int(bad.sum()), self.dim)))
        raise ValueError(
            f"expected a space with legal configurations, got none in {_REFILLS} rounds of random draws; "
            "loosen the forbidden clauses"
        )

    def configurations(self, most: int) -> Array | None:
        """All legal configurations (m, d) of a finite space; None if there may be more than `most` of them."""
        values = [self._axes[name].every() for name in self.names]
        finite = [each for each in values if each is not None]
        if len(finite) < len(values) or math.prod(len(each) for each in finite) > most:
            return None
        columns = [
            [self._axes[name].coordinate(value) for value in each]
            for name, each in zip(self.names, finite, strict=True)
        ]
        x = self.snap(np.stack(np.meshgrid(*columns, indexing="ij"), axis=-1).reshape(-1, self.dim))
        return np.unique(x[self.legal(x)], axis=0)

    def fidelity_value(self, u: Array) -> Array:
        """Coordinates (..., f) to sizes (..., f) in the user's units."""
        u = np.asarray(u, dtype=np.float64)
        sizes = [fidelity.values(u[..., j]) for j, fidelity in enumerate(self.fidelities.values())]
        return np.stack(sizes, axis=-1) if sizes else np.empty(u.shape)

    def are_at_target(self, points: Array) -> BoolArray:
        """Which of the points (m, d + f) have every fidelity at its target, (m,)."""
        at_target: BoolArray = (points[:, self.dim :] == 1.0).all(axis=1)
        return at_target

    def log_shares(self, points: Array) -> Array:
        """log(value / target) of each fidelity, (m, d + f) -> (m, f): 0 at the target, less below it."""
        targets = np.array([fidelity.high for fidelity in self.fidelities.values()], dtype=float)
        logarithms: Array = np.log(self.fidelity_value(points[:, self.dim :]) / targets)
        return logarithms

    def coordinate(self, name: str, value: float) -> float:
        """A size in the user's units, rounded if only whole ones exist, to its u; the target is exactly 1."""
        _check_names({name: value}, self.fidelities, "fidelity")
        fidelity = self.fidelities[name]
        number = checked_number(value, f"fidelity {name!r}")
        inside = min(max(number, fidelity.low), fidelity.high)
        # A fraction of the target, multiplied back, may miss the end.
        if math.isclose(inside, number, rel_tol=1e-9):
            number = inside
        return _coordinate(fidelity, round(number) if fidelity.integer else number, f"fidelity {name!r}")

    def describe(self) -> dict[str, Any]:
        """JSON-able and complete: two spaces are equal where their descriptions are."""
        return describe(self._axes, self._conditions, self._forbidden, self.fidelities)

    def difference(self, other: Mapping[str, Any]) -> list[str]:
        """One sentence for each difference to another space's description; [] if they are equal."""
        return difference(self.describe(), other)

    def __eq__(self, other: object) -> bool:
        return self.describe() == other.describe() if isinstance(other, Space) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}: {axis!r}" for name, axis in self._axes.items())
        return f"Space({{{parts}}}, fidelities={dict(self.fidelities)!r})"

    def _columns(self, points: Array) -> Array:
        """A clipped copy with the columns as contiguous rows, so that an array and one number round alike."""
        points = np.asarray(points, dtype=np.float64)
        wanted = (self.dim, self.dim + self.n_fidelities)
        if points.ndim != 2 or points.shape[1] not in wanted:
            raise ValueError(
                f"expected points of shape (m, {wanted[1]}), got {points.shape}; "
                "a point is a row, configuration first, then fidelities"
            )
        columns = np.ascontiguousarray(np.clip(points, 0.0, 1.0).T)
        if np.isnan(columns).any():
            raise ValueError("expected points of the unit cube, got NaN among them; remove those rows")
        return columns

    def _rows(self, x: Array) -> Rows:  # x: (m, d), snapped
        coordinates = {name: x[:, j] for j, name in enumerate(self.names)}
        for name, axis in self._axes.items():
            if isinstance(axis, Constant):
                coordinates[name] = np.full(len(x), 0.5)
        return Rows(self._axes, coordinates, self._active(coordinates))

    def _active(self, coordinates: Mapping[str, Array]) -> dict[str, BoolArray]:
        m = len(coordinates[self.names[0]])
        everywhere = np.ones(m, dtype=np.bool_)
        active = dict.fromkeys(self._axes, everywhere)
        if self._order:
            constants = {name: np.full(m, 0.5) for name in self._axes if name not in coordinates}
            rows = Rows(self._axes, {**coordinates, **constants}, active)
            for name in self._order:  # parents first; rows sees each verdict as it falls
                active[name] = self._conditions[name].holds(rows)
        return active


def _activation_order(axes: Mapping[str, Axis], conditions: Mapping[str, Rule]) -> tuple[str, ...]:
    """The conditional hyperparameters, parents before children."""
    order: list[str] = []
    waiting = [name for name in axes if name in conditions]
    while waiting:
        ready = [name for name in waiting if not conditions[name].names & set(waiting)]
        assert ready, "ConfigSpace refuses cyclic conditions"
        order += ready
        waiting = [name for name in waiting if name not in ready]
    return tuple(order)


def _check_names(given: object, known: Mapping[str, Any], what: str) -> None:
    if not isinstance(given, Mapping):
        raise TypeError(f"expected a mapping {what} -> value, got {type(given).__name__}; pass a dict")
    if unknown := given.keys() - known.keys():
        raise ValueError(
            f"expected names among {_listed(known)}, got the unknown {what} {_listed(unknown)}; "
            "correct the name"
        )


def _coordinate(axis: Axis | Fidelity, value: Any, what: str) -> float:
    try:
        return axis.coordinate(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{what}: {error}") from None


def _listed(names: Any) -> str:
    return ", ".join(repr(name) for name in sorted(names, key=str)) or "none at all"
