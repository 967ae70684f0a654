"""Configurations that the user wants to be evaluated first."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from fabolas._types import Array
from fabolas.space import Space
from fabolas.study.study import Study

InitialConfig = Mapping[str, Any] | tuple[Mapping[str, Any], Mapping[str, Any]]
"""A configuration, or a pair of a configuration and the fidelities to evaluate it at."""


def check_initial(space: Space, initial: Iterable[InitialConfig]) -> None:
    """Refuse what is not a configuration of the space.

    Raises:
        ValueError: If the space has no such configuration or fidelity.
        TypeError: If an item is neither a dict nor a pair of dicts, or a value is of the wrong type.
    """
    if isinstance(initial, Mapping | str) or not isinstance(initial, Iterable):
        number = "; the number of configurations of the initial design is n_initial"
        raise TypeError(
            f"initial must be a list of configurations, got {initial!r}; write [{{...}}]"
            f"{number if isinstance(initial, int) else ''}"
        )
    for i, item in enumerate(initial):
        try:
            space.encode(*_pair(item))
        except (ValueError, TypeError) as error:
            raise type(error)(f"configuration {i} of initial: {error}") from None


def enqueue_initial(study: Study, initial: Iterable[InitialConfig]) -> None:
    """Enqueue the configurations that the study does not have yet.

    A run that is continued is called with the same list again. A configuration is known if it was evaluated at any
    fidelity, is being evaluated, or waits. One whose trials were all abandoned is enqueued again.
    """
    d = study.space.dim
    for item in initial:
        config, fidelity = _pair(item)
        if not _is_known(study, study.space.encode(config)[:d]):
            study.enqueue(config, fidelity)


def _is_known(study: Study, x: Array) -> bool:
    tried = [trial.suggestion.point for trial in study.trials if trial.status != "abandoned"]
    known = [*tried, *(s.point for s in study.waiting), *(s.point for s in study.pending)]
    return any(np.array_equal(point[: len(x)], x) for point in known)


def _pair(item: Any) -> tuple[Mapping[str, Any], Mapping[str, Any] | None]:
    if isinstance(item, Mapping):
        return item, None
    if isinstance(item, tuple | list) and len(item) == 2 and all(isinstance(part, Mapping) for part in item):
        return item[0], item[1]
    raise TypeError(f"expected a dict, or a pair (configuration, fidelities) of dicts, got {item!r}")
