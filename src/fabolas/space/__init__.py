"""Configurations and fidelities <-> points of the unit cube: the only place that transforms coordinates.

Notation: x in [0, 1]^d is a configuration, u in [0, 1]^f the fidelities (u = 1 is the target); a point is a
row (d + f,), x first. Every axis has a lattice in [0, 1]; ``snap`` moves points to it, and on it the maps to
values and back are exact inverses.
"""

from fabolas.space.fidelity import Fidelity
from fabolas.space.parameters import Categorical, Float, Integer, Ordinal
from fabolas.space.space import Space

__all__ = ["Categorical", "Fidelity", "Float", "Integer", "Ordinal", "Space"]
