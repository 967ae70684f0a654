"""Text that describes an estimator or a scoring. Two searches with equal texts have comparable scores."""

import inspect
from collections.abc import Collection, Mapping
from typing import Any

from fabolas.space.validation import readable

# Parameters that do not change what the scores mean.
_IRRELEVANT = ("n_jobs", "verbose", "random_state", "memory", "cache_size")


def describe_estimator(estimator: Any, searched: Collection[str]) -> str:
    """Return the class and the parameters that are neither defaults nor searched, also of nested estimators."""
    return _describe_value(estimator, searched, "")


def describe_scoring(scoring: Any) -> str:
    """Return the names of the metrics, or the functions that compute them."""
    if scoring is None or isinstance(scoring, str):
        return scoring or "score"
    if isinstance(scoring, Mapping):
        return ", ".join(f"{name}: {readable(scoring[name])}" for name in sorted(scoring))
    return readable(scoring) if callable(scoring) else ", ".join(sorted(scoring))


def _describe_value(value: Any, searched: Collection[str], prefix: str) -> str:
    """Return the value of a parameter as text; ``prefix`` precedes the names of its parameters, as in ``svc__C``."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(_describe_value(each, searched, prefix) for each in value)}]"
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(map(readable, value)))}}}"
    if not hasattr(value, "get_params") or isinstance(value, type):
        return readable(value)
    given, defaults = value.get_params(deep=False), inspect.signature(type(value)).parameters
    words = []
    for name in sorted(given):
        full = f"{prefix}{name}"
        known = name in defaults and readable(defaults[name].default) == readable(given[name])
        if known or name in _IRRELEVANT or full in searched:
            continue
        words.append(f"{name}={_describe_steps(given[name], searched, prefix, full)}")
    return f"{type(value).__name__}({', '.join(words)})"


def _describe_steps(value: Any, searched: Collection[str], prefix: str, full: str) -> str:
    """Return the value of a parameter as text.

    A list of named steps, of a pipeline or a voting estimator, is special: the parameters of a step have the name of
    the step as their prefix.
    """
    named = isinstance(value, list) and all(isinstance(each, tuple) and len(each) > 1 for each in value)
    if not named:
        return _describe_value(value, searched, f"{full}__")
    shown = [
        f"{name}: "
        + (
            "searched"
            if f"{prefix}{name}" in searched
            else _describe_value([*rest], searched, f"{prefix}{name}__")
        )
        for name, *rest in value
    ]
    return f"[{', '.join(shown)}]"
