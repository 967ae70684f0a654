"""A fidelity says how much of something (rows, epochs, pixels) an evaluation uses; its upper end is the target."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np

from fabolas._types import Array
from fabolas.space.parameters import Float
from fabolas.space.scale import PicklesFieldsOnly, Scale
from fabolas.space.validation import checked_name, finite_number, whole_number


@dataclass(frozen=True)
class Fidelity(PicklesFieldsOnly):
    """The range of a fidelity. A value v has the coordinate u = (log v - log low) / (log high - log low).

    Args:
        low: The smallest value that an evaluation may use; more than 0.
        high: The target: the answer is the best configuration at this value.
        log: Whether u is linear in log v, as above, or in v.
        integer: Whether only whole numbers are allowed.
        reports: Whether an evaluation passes through all smaller values and reports its loss there (epochs, boosting
            rounds, trees): ``trial.report(epochs=3, loss=0.21)``. At most one fidelity of a space may have reports.
        resume: Whether an evaluation can continue an earlier one from its checkpoint, so that only the difference
            costs time. Needs ``reports``.
    """

    low: float
    high: float
    log: bool = True
    integer: bool = True
    reports: bool = False
    resume: bool = False

    def __post_init__(self) -> None:
        if self.resume and not self.reports:
            raise ValueError(
                "expected reports=True together with resume=True, got resume=True alone. Only a training that passes "
                "through smaller values and reports can be continued; give both"
            )
        for name in ("low", "high"):
            number = finite_number(getattr(self, name), f"Fidelity's {name}")
            if self.integer and number != np.floor(number):
                raise ValueError(
                    f"expected a whole number for Fidelity's {name}, got {number!r}; "
                    "round it, or pass integer=False"
                )
            object.__setattr__(self, name, int(number) if self.integer else number)
        if self.low <= 0:
            raise ValueError(
                f"expected low > 0 for a Fidelity, got low={self.low!r}; choose the smallest useful value"
            )
        if self.low == self.high:
            raise ValueError(
                f"expected low < high for a Fidelity, got {self.low!r} for both; widen it, or use no fidelity"
            )
        if self.low > self.high:
            raise ValueError(
                f"expected low < high for a Fidelity, got low={self.low!r}, high={self.high!r}; swap them: "
                "the upper end is the target"
            )
        if self.integer and self.high > 1e12:
            raise ValueError(
                f"expected high <= 1e12 for an integer Fidelity, got {self.high!r}; "
                "pass integer=False, or count in larger units"
            )

        if not self.integer:
            Float(self.low, self.high, log=self.log)  # raises if floating point cannot resolve the range

    @cached_property
    def _scale(self) -> Scale:
        return Scale(float(self.low), float(self.high), self.log)

    @cached_property
    def _float(self) -> Float:
        return Float(float(self.low), float(self.high), log=self.log)

    def values(self, u: Array) -> Array:
        """Map coordinates of any shape to values in [low, high], rounded if the fidelity is an integer."""
        values = self._scale.from_unit(u)
        return np.rint(values) if self.integer else values

    def snap(self, u: Array) -> Array:
        """Move coordinates to the nearest grid coordinates; 0 and 1 stay as they are."""
        return self._scale.to_unit(self.values(u)) if self.integer else self._float.snap(u)

    def value(self, u: float) -> float | int:
        """Map one coordinate to its value, a Python number."""
        return round(float(self.values(np.array([u]))[0])) if self.integer else self._float.value(u)

    def coordinate(self, value: Any) -> float:
        """Map one value to its coordinate in [0, 1]."""
        if not self.integer:
            return self._float.coordinate(value)
        number = whole_number(value, "an integer fidelity")
        if not self.low <= number <= self.high:
            raise ValueError(
                f"expected a value in [{self.low}, {self.high}], got {value!r}; "
                "choose one in this range, or widen it"
            )
        return float(self._scale.to_unit(np.array([float(number)]))[0])

    def describe(self) -> dict[str, Any]:
        """Return everything that defines the fidelity, as values that JSON can represent."""
        described = {"low": self.low, "high": self.high, "log": self.log, "integer": self.integer}
        # Only where they are set, so that studies without curves have the description that they always had.
        return described | {name: True for name in ("reports", "resume") if getattr(self, name)}


def parse_fidelities(fidelities: object) -> dict[str, Fidelity]:
    """Return name -> Fidelity for a mapping name -> Fidelity or (low, high); None means no fidelity."""
    if fidelities is None:
        return {}
    if not isinstance(fidelities, Mapping):
        raise TypeError(
            "expected fidelities as a mapping name -> (low, high) or fabolas.Fidelity, "
            f'got {type(fidelities).__name__}; write {{"size": (100, 50_000)}}'
        )
    return {checked_name(name, "fidelity"): _parse_fidelity(name, spec) for name, spec in fidelities.items()}


def refuse_reports(fidelities: Mapping[str, Fidelity], who: str) -> None:
    """Refuse fidelities with reports, for an interface that does not support reports.

    Raises:
        ValueError: If a fidelity is declared with ``reports=True``. The strategy would expect reports that never come.
    """
    for name, fidelity in fidelities.items():
        if fidelity.reports:
            raise ValueError(
                f"expected fidelities without reports for {who}, got {name!r} with reports=True, which only "
                "fabolas.minimize and fabolas.Study can use; leave it out"
            )


def _parse_fidelity(name: str, spec: object) -> Fidelity:
    if isinstance(spec, Fidelity):
        return spec
    if not isinstance(spec, tuple | list) or len(spec) != 2:
        raise TypeError(
            f"fidelity {name!r}: expected (low, high) or fabolas.Fidelity, got {spec!r}; "
            "the upper end is the target"
        )
    low, high = spec
    whole = all(isinstance(end, Integral) for end in spec)
    try:
        return Fidelity(low, high, log=True, integer=whole)
    except (TypeError, ValueError) as error:
        raise type(error)(f"fidelity {name!r}: {error}") from None
