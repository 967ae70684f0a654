"""The search space: translates configurations and fidelities to points of the unit cube and back.

This is the only package that transforms coordinates. Notation: x in [0, 1]^d is a configuration, u in [0, 1]^f
are the fidelities (u = 1 is the target), and a point is a row (d + f,) with x first.

Each axis has a finite grid of representable coordinates in [0, 1]. ``Space.snap`` moves points to the nearest
grid point. On grid points ``Space.encode`` and ``Space.decode`` are exact inverses.

``parse`` reads what the user wrote, with the help of ``configspace`` and ``distributions``. ``parameters`` and
``fidelity`` define the axes, ``rules`` the conditions and forbidden clauses. ``space`` puts them together.
"""

from fabolas.space.fidelity import Fidelity
from fabolas.space.parameters import Categorical, Float, Integer, Ordinal
from fabolas.space.space import Space

__all__ = ["Categorical", "Fidelity", "Float", "Integer", "Ordinal", "Space"]
