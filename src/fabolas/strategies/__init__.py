"""Strategies by name; each module is loaded when its strategy is first made."""

import inspect
from importlib import import_module
from typing import Any

from fabolas.space import Space
from fabolas.strategies.base import Proposal, Strategy

__all__ = ["NAMES", "Proposal", "Strategy", "make"]

_HOME = {
    "fabolas": ("fabolas", "Fabolas"),
    "mtbo": ("mtbo", "Mtbo"),
    "es": ("bayesian", "EntropySearch"),
    "ei": ("bayesian", "ExpectedImprovement"),
    "hyperband": ("hyperband", "Hyperband"),
    "random": ("random", "Random"),
}
NAMES = tuple(_HOME)


def make(name: str | Strategy, space: Space, **options: Any) -> Strategy:
    """A strategy for this space, by its name; one that is already made is returned as it is.

    Raises:
        ValueError: If there is no strategy of that name.
        TypeError: If the strategy has no such option, or ``name`` is neither a name nor a strategy.
    """
    if not isinstance(name, str):
        if isinstance(name, type) or not isinstance(name, Strategy):
            raise TypeError(
                f"strategy must be one of {', '.join(NAMES)} or an object made from one, got {name!r}"
            )
        if options:
            raise TypeError(f"the strategy is already made, got options for it too: {', '.join(options)}")
        return name
    if name not in _HOME:
        raise ValueError(f"there is no strategy {name!r}; choose one of {', '.join(NAMES)}")
    module, cls = _HOME[name]
    factory = getattr(import_module(f"fabolas.strategies.{module}"), cls)
    known = [option for option in inspect.signature(factory).parameters if option != "space"]
    unknown = [option for option in options if option not in known]
    if unknown:
        takes = f"its options are {', '.join(known)}" if known else "it has no options"
        raise TypeError(f"strategy {name!r} has no option {', '.join(unknown)}; {takes}")
    made: Strategy = factory(space, **options)
    return made
