"""Curves: what a training reports on the way (``Report``), and when it should stop early (``EarlyStopRule``)."""

import math
from dataclasses import dataclass, field, replace

import numpy as np

from fabolas._types import Array
from fabolas.plain_values import as_loss, copy_containers, to_float


@dataclass(frozen=True)
class Report:
    """The loss of a training at a fidelity that it passed through.

    Attributes:
        fidelity: Fidelities by name; the one that the training passes through has the value that was reached.
        point: (d + f,) Configuration and fidelities in the unit cube, read-only.
        loss: The loss there, with the sign of the user.
        cost: Seconds from the start of the trial until the report.
    """

    fidelity: dict[str, float | int]
    point: Array = field(compare=False, repr=False)
    loss: float
    cost: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "loss", as_loss(self.loss, "the loss of a report"))
        cost = to_float(self.cost, "the cost of a report")
        if not (math.isfinite(cost) and cost > 0):
            raise ValueError(f"the cost of a report must be a finite number > 0, got {cost}")
        object.__setattr__(self, "cost", cost)
        point = np.array(self.point, dtype=float)
        point.flags.writeable = False
        object.__setattr__(self, "point", point)
        object.__setattr__(self, "fidelity", copy_containers(dict(self.fidelity)))

    def negated(self) -> "Report":
        """The same report with the negative loss."""
        return replace(self, loss=-self.loss)


@dataclass(frozen=True)
class EarlyStopRule:
    """Losses above which a training should stop, computed when it was suggested.

    Attributes:
        values: Values of the reported fidelity, ascending.
        losses: For each value, the loss above which the rest of the training gives less information per second than
            the best other evaluation.
        maximize: Whether higher losses are better; a training then stops below these losses.
    """

    values: tuple[float, ...]
    losses: tuple[float, ...]
    maximize: bool = False

    def __post_init__(self) -> None:
        if len(self.values) != len(self.losses) or list(self.values) != sorted(self.values):
            raise ValueError(
                f"a stop rule needs ascending values with one loss each, got {self.values} and {self.losses}"
            )

    def stops(self, value: float, loss: float) -> bool:
        """Whether a training with this loss at this value should stop.

        The last value of the rule that the training has reached decides. Before the first value it never stops.
        """
        passed = [limit for at, limit in zip(self.values, self.losses, strict=True) if at <= value]
        if not passed:
            return False
        return loss < passed[-1] if self.maximize else loss > passed[-1]

    def negated(self) -> "EarlyStopRule":
        """The same rule for negative losses."""
        return EarlyStopRule(self.values, tuple(-loss for loss in self.losses), not self.maximize)
