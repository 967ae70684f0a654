"""Bayesian optimisation that trains on little of the data and answers for all of it.

The public names are loaded when first used, so that ``import fabolas`` costs no more than a dictionary.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fabolas.api import Result, maximize, minimize
    from fabolas.execution import TrialContext
    from fabolas.space import Categorical, Fidelity, Float, Integer, Ordinal, Space
    from fabolas.study import Study, load
    from fabolas.subsets import subset
    from fabolas.trials import History, Incumbent, Outcome, Suggestion, Trial

__version__ = "0.2.0"

_HOME = {
    "Categorical": "space",
    "Fidelity": "space",
    "Float": "space",
    "Integer": "space",
    "Ordinal": "space",
    "Space": "space",
    "History": "trials",
    "Incumbent": "trials",
    "Outcome": "trials",
    "Suggestion": "trials",
    "Trial": "trials",
    "Result": "api",
    "Study": "study",
    "TrialContext": "execution",
    "load": "study",
    "maximize": "api",
    "minimize": "api",
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
    "TrialContext",
    "__version__",
    "load",
    "maximize",
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
