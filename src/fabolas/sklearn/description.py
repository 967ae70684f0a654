"""Estimators and scorings in words: the same ones for what gives the same scores, in any process."""

import inspect
import re
from collections.abc import Collection, Mapping
from typing import Any

# What an estimator may be given without that its scores mean something else.
_INDIFFERENT = ("n_jobs", "verbose", "random_state", "memory", "cache_size")


def estimator_in_words(estimator: Any, searched: Collection[str]) -> str:
    """Its class with what it was given: all that is neither a default nor searched, of what it contains too."""
    return _words(estimator, searched, "")


def scoring_in_words(scoring: Any) -> str:
    """Names of metrics, or what computes them."""
    if scoring is None or isinstance(scoring, str):
        return scoring or "score"
    if isinstance(scoring, Mapping):
        return ", ".join(f"{name}: {_plain(scoring[name])}" for name in sorted(scoring))
    return _plain(scoring) if callable(scoring) else ", ".join(sorted(scoring))


def _words(value: Any, searched: Collection[str], prefix: str) -> str:
    """A parameter's value; those of what it contains are called `prefix`, two underscores and their name."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(_words(each, searched, prefix) for each in value)}]"
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(map(_plain, value)))}}}"
    if not hasattr(value, "get_params") or isinstance(value, type):
        return _plain(value)
    given, defaults = value.get_params(deep=False), inspect.signature(type(value)).parameters
    words = []
    for name in sorted(given):
        full = f"{prefix}{name}"
        known = name in defaults and _plain(defaults[name].default) == _plain(given[name])
        if known or name in _INDIFFERENT or full in searched:
            continue
        words.append(f"{name}={_parts(given[name], searched, prefix, full)}")
    return f"{type(value).__name__}({', '.join(words)})"


def _parts(value: Any, searched: Collection[str], prefix: str, full: str) -> str:
    """A value of an estimator's; the named parts of a pipeline or a vote have their own names' parameters."""
    named = isinstance(value, list) and all(isinstance(each, tuple) and len(each) > 1 for each in value)
    if not named:
        return _words(value, searched, f"{full}__")
    shown = [
        f"{name}: "
        + ("searched" if f"{prefix}{name}" in searched else _words([*rest], searched, f"{prefix}{name}__"))
        for name, *rest in value
    ]
    return f"[{', '.join(shown)}]"


def _plain(value: Any) -> str:
    return re.sub(r" at 0x[0-9A-Fa-f]+", "", repr(value))
