"""Bayesian optimisation that trains on little of the data and answers for all of it.

The public names are loaded when first used, so that ``import fabolas`` costs no more than a dictionary.
"""

from importlib import import_module
from typing import Any

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
    "Result": "study",
    "Study": "study",
    "minimize": "study",
    "subset": "subsets",
}

__all__ = [*_HOME, "__version__"]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    """Load a public name from the module it lives in, once."""
    if name not in _HOME:
        raise AttributeError(f"module 'fabolas' has no attribute {name!r}; its names are {', '.join(_HOME)}")
    value = getattr(import_module(f"fabolas.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
