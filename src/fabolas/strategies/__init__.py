"""Strategies by name; a module is loaded when its strategy is first made. To add one, list it in `_MODULES`."""

import inspect
from importlib import import_module
from typing import Any

from fabolas.keywords import INTERNAL
from fabolas.space import Space
from fabolas.strategies.base import Prediction, PredictiveStrategy, Proposal, Strategy, SurrogateStrategy

__all__ = [
    "NAMES",
    "Prediction",
    "PredictiveStrategy",
    "Proposal",
    "Strategy",
    "SurrogateStrategy",
    "make",
    "option_names",
    "options_of",
]

_MODULES = {
    "fabolas": ("fabolas", "Fabolas"),
    "fabolas2017": ("fabolas2017", "Fabolas2017"),
    "mtbo": ("mtbo", "Mtbo"),
    "es": ("full_data", "EntropySearch"),
    "ei": ("full_data", "ExpectedImprovement"),
    "hyperband": ("hyperband", "Hyperband"),
    "random": ("random", "Random"),
}
NAMES = tuple(_MODULES)


def options_of(strategy: Strategy) -> dict[str, Any]:
    """The options that a study records of a strategy: its attribute ``options``, if it has one."""
    return dict(getattr(strategy, "options", {}))


def make(name: str | Strategy, space: Space, **options: Any) -> Strategy:
    """A strategy for this space by its name; a strategy object is returned as it is.

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
    if name not in _MODULES:
        raise ValueError(f"there is no strategy {name!r}; choose one of {', '.join(NAMES)}")
    known = option_names(name)
    unknown = [option for option in options if option not in known]
    if unknown:
        shown = [option for option in known if option not in INTERNAL]
        takes = f"its options are {', '.join(shown)}" if shown else "it has no options"
        raise TypeError(f"strategy {name!r} has no option {', '.join(unknown)}; {takes}")
    made: Strategy = _class_of(name)(space, **options)
    return made


def option_names(strategy: str | Strategy) -> tuple[str, ...]:
    """The options that a strategy of this name has; none for an unknown name and for an object."""
    if not isinstance(strategy, str) or strategy not in _MODULES:
        return ()
    return tuple(name for name in inspect.signature(_class_of(strategy)).parameters if name != "space")


def _class_of(name: str) -> Any:
    module, cls = _MODULES[name]
    return getattr(import_module(f"fabolas.strategies.{module}"), cls)
