"""``Space``: hyperparameters and fidelities as named axes of the unit cube."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fabolas._types import Array, BoolArray
from fabolas.space.description import (
    describe,
    differences,
    fidelities_from_description,
    parameters_from_description,
)
from fabolas.space.fidelity import Fidelity, parse_fidelities
from fabolas.space.parameters import Axis, Categorical, Constant, Ordinal
from fabolas.space.parse import ParsedSpace, parse_parameters
from fabolas.space.rules import ConfigColumns, Rule, UnknownRule, parents_first
from fabolas.space.validation import finite_number

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace

_MAX_REDRAWS = 200  # rounds of random draws after which a space is said to have no legal configuration
_CONSTANT_COORDINATE = 0.5


class Space:
    """A search space with its fidelities as the unit cube: x in [0, 1]^d, followed by u in [0, 1]^f.

    On snapped points ``encode`` and ``decode`` are exact inverses. An inactive hyperparameter is absent from the
    configuration; its coordinate in the cube is that of its default.

    Args:
        parameters: A mapping name -> Float, Integer, Categorical, Ordinal, a list of choices, a range, a scipy
            distribution or a constant; or a ``ConfigSpace.ConfigurationSpace``; or another Space, whose fidelities
            are used if it has any.
        fidelities: A mapping name -> Fidelity or (low, high), where high is the target; None for no fidelity.

    Attributes:
        names: The d hyperparameters that have a column in the cube. Constants have none.
        fidelities: The f fidelities, in the order of their columns.
        dim: d.
        n_fidelities: f.
        n_choices: (d,) the number of choices of each categorical column; 0 for the other columns.
    """

    names: tuple[str, ...]
    fidelities: Mapping[str, Fidelity]
    dim: int
    n_fidelities: int
    n_choices: tuple[int, ...]
    _axes: dict[str, Axis]
    _conditions: dict[str, Rule]  # name of a conditional hyperparameter -> when it is active
    _forbidden: tuple[Rule, ...]

    def __init__(
        self,
        parameters: Mapping[str, Any] | ConfigurationSpace | Space | ParsedSpace,
        fidelities: Mapping[str, Fidelity | tuple[float, float]] | None = None,
    ) -> None:
        if isinstance(parameters, Space):
            if fidelities is not None and parameters.fidelities:
                raise ValueError(
                    "expected no fidelities together with a Space that has fidelities; leave them out"
                )
            self._axes, self._conditions = parameters._axes, parameters._conditions
            self._forbidden = parameters._forbidden
            self.fidelities = parameters.fidelities or parse_fidelities(fidelities)
        else:
            self._axes, self._conditions, self._forbidden = parse_parameters(parameters)
            self.fidelities = parse_fidelities(fidelities)
        _check_different_names(self._axes, self.fidelities)
        _check_one_reports(self.fidelities)
        self.names = tuple(name for name, axis in self._axes.items() if not isinstance(axis, Constant))
        if not self.names:
            raise ValueError(
                "expected a space with at least one hyperparameter to tune, got only constants; "
                "give one of them a range or several choices"
            )
        self.dim, self.n_fidelities = len(self.names), len(self.fidelities)
        columns = [self._axes[name] for name in self.names]
        self.n_choices = tuple(
            len(axis.choices) if isinstance(axis, Categorical) and not isinstance(axis, Ordinal) else 0
            for axis in columns
        )
        self._defaults = [axis.default_coordinate() for axis in columns]
        self._conditional_names = parents_first(self._axes, self._conditions)

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> Space:
        """Return the space that ``describe`` described, equal to the original one.

        Two things cannot be in a description. A choice that Python cannot write as a literal, such as a function, comes
        back as the text that describes it. A rule that only the code of the study can evaluate is not checked:
        hyperparameters with such a condition are always active, but may be left out of a configuration.

        Raises:
            ValueError, TypeError, KeyError: The description is not one of a space.
        """
        return cls(parameters_from_description(description), fidelities_from_description(description))

    def encode(self, config: Mapping[str, Any], fidelity: Mapping[str, Any] | None = None) -> Array:
        """Map a configuration and its fidelities (None: the target) to their point (d + f,).

        Raises:
            ValueError: A name is unknown, missing or inactive, a value is out of range, or the configuration is
                forbidden.
            TypeError: A value has the wrong type.
        """
        _check_known_names(config, self._axes, "hyperparameter")
        x = np.array(self._defaults)
        for name, value in config.items():
            coordinate = _coordinate(self._axes[name], value, f"hyperparameter {name!r}")
            if name in self.names:
                x[self.names.index(name)] = coordinate
        configs = self._config_columns(x[None, :])
        self._check_active_names(config, configs)
        if broken := [rule.text for rule in self._forbidden if rule.holds(configs)[0]]:
            raise ValueError(
                f"expected a legal configuration, got one forbidden by {broken[0]}; change a value"
            )
        return np.concatenate([x, self._encode_fidelities(fidelity)])

    def _check_active_names(self, config: Mapping[str, Any], configs: ConfigColumns) -> None:
        active = {name for name in self._axes if configs.active[name][0]}
        optional = {name for name, rule in self._conditions.items() if isinstance(rule, UnknownRule)}
        if missing := active - config.keys() - optional:
            raise ValueError(
                f"expected a value for each active hyperparameter, got none for {_listed(missing)}; add them"
            )
        if inactive := config.keys() - active:
            raise ValueError(
                f"expected values of active hyperparameters only, got {_listed(inactive)}, inactive here "
                f"(active if {'; '.join(self._conditions[name].text for name in sorted(inactive))}); omit them"
            )

    def _encode_fidelities(self, fidelity: Mapping[str, Any] | None) -> Array:
        if fidelity is None:
            return np.ones(self.n_fidelities)
        _check_known_names(fidelity, self.fidelities, "fidelity")
        if missing := self.fidelities.keys() - fidelity.keys():
            raise ValueError(f"expected a value for each fidelity, got none for {_listed(missing)}; add them")
        u = [
            _coordinate(kind, fidelity[name], f"fidelity {name!r}") for name, kind in self.fidelities.items()
        ]
        return np.array(u, dtype=np.float64)

    def decode(self, point: Array) -> tuple[dict[str, Any], dict[str, float | int]]:
        """Map a point (d + f,) to its configuration, without inactive names, and its fidelities."""
        point = np.asarray(point, dtype=np.float64)
        if point.shape != (self.dim + self.n_fidelities,):
            raise ValueError(
                f"expected a point of shape ({self.dim + self.n_fidelities},), got {point.shape}; "
                "pass one row"
            )
        snapped = self.snap(point[None, :])
        config = self._config_columns(snapped[:, : self.dim]).config(0)
        u = zip(self.fidelities.items(), snapped[0, self.dim :], strict=True)
        return config, {name: fidelity.value(float(each)) for (name, fidelity), each in u}

    def snap(self, points: Array) -> Array:
        """Move points (m, d + f), or configurations (m, d), to the nearest grid points.

        Coordinates of inactive hyperparameters become those of their defaults.
        """
        columns = self._clipped_columns(points)
        axes: list[Axis | Fidelity] = [*(self._axes[name] for name in self.names), *self.fidelities.values()]
        for j in range(len(columns)):
            columns[j] = axes[j].snap(columns[j])
        if self._conditions:
            active = self._active(dict(zip(self.names, columns, strict=False)))
            for j, name in enumerate(self.names):
                if name in self._conditions:
                    columns[j, ~active[name]] = self._defaults[j]
        return np.ascontiguousarray(columns.T)

    def is_legal(self, points: Array) -> BoolArray:
        """Return (m,) whether no forbidden clause is true at the snapped points (m, d + f) or (m, d)."""
        if not self._forbidden:
            return np.ones(len(points), dtype=np.bool_)
        configs = self._config_columns(self.snap(points)[:, : self.dim])
        illegal: BoolArray = np.logical_or.reduce([rule.holds(configs) for rule in self._forbidden])
        return ~illegal

    def sobol(self, n: int, rng: np.random.Generator) -> Array:
        """Return configurations (n, d) from a scrambled Sobol sequence, snapped and legal.

        Points of the sequence that are not legal are replaced by uniform random draws. Each call scrambles anew, which
        takes milliseconds; `optimize.sobol`, for the candidates of every decision, only rotates one sequence.
        """
        from scipy.stats import qmc  # slow to import

        exponent = max(n - 1, 0).bit_length()  # the sequence is balanced at powers of two
        x = self.snap(qmc.Sobol(self.dim, scramble=True, rng=rng).random_base2(exponent)[:n])
        for _ in range(_MAX_REDRAWS):
            bad = ~self.is_legal(x)
            if not bad.any():
                return x
            x[bad] = self.snap(rng.random((int(bad.sum()), self.dim)))
        raise ValueError(
            f"expected a space with legal configurations, got none in {_MAX_REDRAWS} rounds of random draws; "
            "remove or relax forbidden clauses"
        )

    def enumerate_configurations(self, limit: int) -> Array | None:
        """Return all legal configurations (m, d) of a finite space; None if there may be more than ``limit``."""
        values = [self._axes[name].all_values() for name in self.names]
        finite = [each for each in values if each is not None]
        if len(finite) < len(values) or math.prod(len(each) for each in finite) > limit:
            return None
        columns = [
            [self._axes[name].coordinate(value) for value in each]
            for name, each in zip(self.names, finite, strict=True)
        ]
        x = self.snap(np.stack(np.meshgrid(*columns, indexing="ij"), axis=-1).reshape(-1, self.dim))
        return np.unique(x[self.is_legal(x)], axis=0)

    def axis(self, name: str) -> Axis:
        """Return the axis of a hyperparameter: its values by coordinate, and its kind."""
        _check_known_names({name: None}, self._axes, "hyperparameter")
        return self._axes[name]

    def fidelity_values(self, u: Array) -> Array:
        """Map fidelity coordinates (..., f) to values (..., f) in the user's units."""
        u = np.asarray(u, dtype=np.float64)
        values = [fidelity.values(u[..., j]) for j, fidelity in enumerate(self.fidelities.values())]
        return np.stack(values, axis=-1) if values else np.empty(u.shape)

    def fidelity_coordinate(self, name: str, value: float) -> float:
        """Map a value of the fidelity ``name`` to its coordinate u.

        An integer fidelity rounds the value. A value that differs from an end of the range only by rounding errors
        counts as that end: ``fraction * target`` may miss it.
        """
        _check_known_names({name: value}, self.fidelities, "fidelity")
        fidelity = self.fidelities[name]
        number = finite_number(value, f"fidelity {name!r}")
        inside = min(max(number, fidelity.low), fidelity.high)
        if math.isclose(inside, number, rel_tol=1e-9):
            number = inside
        return _coordinate(fidelity, round(number) if fidelity.integer else number, f"fidelity {name!r}")

    def fidelity_at(self, fraction: float) -> Array:
        """(f,) The coordinates of this fraction of each target, or of the lowest value if that is more."""
        u = [
            self.fidelity_coordinate(name, max(fraction * f.high, f.low))
            for name, f in self.fidelities.items()
        ]
        return np.array(u)

    @property
    def curve_name(self) -> str | None:
        """The name of the fidelity that trainings report; None if there is none."""
        return next((name for name, fidelity in self.fidelities.items() if fidelity.reports), None)

    @property
    def curve_column(self) -> int | None:
        """The column of that fidelity in a point."""
        return None if self.curve_name is None else self.dim + list(self.fidelities).index(self.curve_name)

    @property
    def resumes(self) -> bool:
        """Whether a training can be continued from its checkpoint."""
        return self.curve_name is not None and self.fidelities[self.curve_name].resume

    def at_target(self, x: Array) -> Array:
        """Return the configurations x (m, d) as points (m, d + f) at the target."""
        return np.concatenate([x, np.ones((len(x), self.n_fidelities))], axis=1)

    def is_at_target(self, points: Array) -> BoolArray:
        """Return (m,) whether all fidelities of the points (m, d + f) are at the target."""
        at_target: BoolArray = (points[:, self.dim :] == 1.0).all(axis=1)
        return at_target

    def log_fractions(self, points: Array) -> Array:
        """Return log(value / target) of each fidelity at the points, (m, d + f) -> (m, f); 0 at the target."""
        targets = np.array([fidelity.high for fidelity in self.fidelities.values()], dtype=float)
        logarithms: Array = np.log(self.fidelity_values(points[:, self.dim :]) / targets)
        return logarithms

    def describe(self) -> dict[str, Any]:
        """Return values that JSON can represent; two spaces are equal if their descriptions are."""
        return describe(self._axes, self._conditions, self._forbidden, self.fidelities)

    def differences(self, recorded: Mapping[str, Any]) -> list[str]:
        """Return one sentence for each difference to the description of a recorded space; [] if they are equal."""
        return differences(self.describe(), recorded)

    def __eq__(self, other: object) -> bool:
        return self.describe() == other.describe() if isinstance(other, Space) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}: {axis!r}" for name, axis in self._axes.items())
        return f"Space({{{parts}}}, fidelities={dict(self.fidelities)!r})"

    def _clipped_columns(self, points: Array) -> Array:
        """Return a copy of the points, clipped to [0, 1] and transposed to (d + f, m).

        The columns are contiguous, so that numpy rounds the same for one point as for many.
        """
        points = np.asarray(points, dtype=np.float64)
        widths = (self.dim, self.dim + self.n_fidelities)
        if points.ndim != 2 or points.shape[1] not in widths:
            raise ValueError(
                f"expected points of shape (m, {widths[1]}), got {points.shape}; "
                "a point is a row with the configuration first and then the fidelities"
            )
        columns = np.ascontiguousarray(np.clip(points, 0.0, 1.0).T)
        if np.isnan(columns).any():
            raise ValueError("expected points of the unit cube, got NaN among them; remove those rows")
        return columns

    def _config_columns(self, x: Array) -> ConfigColumns:  # x: (m, d), snapped
        coordinates = {name: x[:, j] for j, name in enumerate(self.names)}
        for name, axis in self._axes.items():
            if isinstance(axis, Constant):
                coordinates[name] = np.full(len(x), _CONSTANT_COORDINATE)
        return ConfigColumns(self._axes, coordinates, self._active(coordinates))

    def _active(self, coordinates: Mapping[str, Array]) -> dict[str, BoolArray]:
        """Return name -> (m,) whether the hyperparameter is active, for snapped coordinates name -> (m,)."""
        m = len(coordinates[self.names[0]])
        active = dict.fromkeys(self._axes, np.ones(m, dtype=np.bool_))
        if self._conditional_names:
            constants = {
                name: np.full(m, _CONSTANT_COORDINATE) for name in self._axes if name not in coordinates
            }
            configs = ConfigColumns(self._axes, {**coordinates, **constants}, active)
            # `configs` refers to the dict `active`, so children see the entries of their parents.
            for name in self._conditional_names:
                active[name] = self._conditions[name].holds(configs)
        return active


def _check_different_names(axes: Mapping[str, Any], fidelities: Mapping[str, Any]) -> None:
    if both := axes.keys() & fidelities.keys():
        raise ValueError(
            f"expected different names for hyperparameters and fidelities, got {_listed(both)} as both; "
            "rename one of them"
        )


def _check_one_reports(fidelities: Mapping[str, Fidelity]) -> None:
    reporting = [name for name, fidelity in fidelities.items() if fidelity.reports]
    if len(reporting) > 1:
        raise ValueError(
            f"expected at most one fidelity with reports=True, got {_listed(reporting)}; a training passes through "
            "the values of one fidelity, so leave it out for the others"
        )


def _check_known_names(given: object, known: Mapping[str, Any], what: str) -> None:
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


def _listed(names: Iterable[object]) -> str:
    return ", ".join(repr(name) for name in sorted(names, key=str)) or "no names"
