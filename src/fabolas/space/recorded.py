"""A space made again from its description, for those who have a study's record and not its space."""

from collections.abc import Mapping
from typing import Any

from fabolas.space.fidelity import Fidelity
from fabolas.space.parameters import Axis, Categorical, Constant, Float, Integer, Ordinal
from fabolas.space.space import Space

_NUMERIC: dict[str, type[Float] | type[Integer]] = {"float": Float, "integer": Integer}
_CHOICES = {"categorical": Categorical, "ordinal": Ordinal, "constant": Constant}


def recorded_space(description: Mapping[str, Any]) -> Space:
    """The cube of a recorded space: enough to predict at its recorded points, not to suggest new ones.

    The axes and fidelities are those of the original. Its conditions and forbidden clauses are left out, since
    recorded points keep them already, and a choice is the text that describes it.
    """
    parameters = {entry["name"]: _axis(entry) for entry in description["parameters"]}
    fidelities = {
        entry["name"]: Fidelity(entry["low"], entry["high"], entry["log"], entry["integer"])
        for entry in description["fidelities"]
    }
    return Space(parameters, fidelities)


def _axis(entry: Mapping[str, Any]) -> Axis:
    kind = entry["kind"]
    if kind in _NUMERIC:
        return _NUMERIC[kind](entry["low"], entry["high"], entry["log"], entry["default"])
    return _CHOICES[kind](tuple(entry["choices"]), entry["default"])
