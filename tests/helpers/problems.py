"""Simple problems for tests: `bowl` of a configuration, `bowl_loss` of a point of the cube.

For realistic ones see `experiments.synthetic.FAMILIES`: problems with noise and costs, whose optimum is known.
"""

from typing import Any

import numpy as np

import fabolas
from fabolas import Float, Result, Study, Suggestion
from fabolas._types import Array
from tests.helpers.objectives import bowl

__all__ = ["SIZE", "SPACE", "bowl", "bowl_loss", "evaluate", "minimize"]

SPACE = {"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)}
SIZE = {"size": (10, 1000)}


def bowl_loss(point: Array, optimum: float = 0.4, d: int = 2) -> float:
    """The loss at a point (D,): 0.05 at the optimum (the same in all d coordinates) on all the data, more elsewhere."""
    x, u = point[:d], point[d:]
    return float(0.05 + np.sum((x - optimum) ** 2) + 0.1 * np.sum((1 - u) ** 2))


def evaluate(study: Study, suggestion: Suggestion, full_cost: float = 1.0) -> None:
    """Tell the bowl's loss at a point (x, y, u) and a cost that is quadratic in the size, `full_cost` at the target."""
    point = suggestion.point
    study.tell(suggestion, bowl_loss(point), cost=float(full_cost * np.exp(8.0 * (point[2] - 1.0))))


def minimize(objective: Any, **settings: Any) -> Result:
    """`fabolas.minimize` on `SPACE` with one fidelity; by default a random search with a fixed seed."""
    usual: dict[str, Any] = {"fidelities": SIZE, "strategy": "random", "seed": 0, "progress": False}
    return fabolas.minimize(objective, SPACE, **(usual | settings))
