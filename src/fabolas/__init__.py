"""Bayesian optimisation that trains on little of the data and answers for all of it.

The public names are loaded when first used, so that ``import fabolas`` costs no more than a dictionary.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fabolas.history import History, Incumbent, Outcome, Suggestion, Trial
    from fabolas.result import Result
    from fabolas.run import minimize
    from fabolas.space import Categorical, Fidelity, Float, Integer, Ordinal, Space
    from fabolas.study import Study
    from fabolas.subsets import subset

__version__ = "0.1.0"

_HOME = {
    "Categorical": "space",
    "Fidelity": "space",
    "Float": "space",
    "Integer": "space",
    "Ordinal": "space",
    "Space": "space",
    "History": "history",
    "Incumbent": "history",
    "Outcome": "history",
    "Suggestion": "history",
    "Trial": "history",
    "Result": "result",
    "Study": "study",
    "minimize": "run",
    "subset": "subsets",
}

__all__ = [
    "Categorical",
    "Fidelity",
    "Float",
    "History",
    "Incumbent",
    "Integer",
    "Ordinal",
    "Outcome",
    "Result",
    "Space",
    "Study",
    "Suggestion",
    "Trial",
    "__version__",
    "minimize",
    "subset",
]


def __getattr__(name: str) -> Any:
    """Load a public name from the module it lives in, once."""
    if name not in _HOME:
        raise AttributeError(f"module 'fabolas' has no attribute {name!r}; its names are {', '.join(_HOME)}")
    value = getattr(import_module(f"fabolas.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
