"""Options of strategies as values that JSON can hold, and back."""

import dataclasses
import inspect
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from fabolas.plain_values import to_json


class ForeignOptionError(ValueError):
    """An option was a record or function that is not part of this package, so it cannot be read back."""


def encode(value: Any) -> Any:
    """An option in the types of JSON. Records and functions of this package can be read back with `decode`."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        # Fields with their default value are left out, so that a new field does not change old studies.
        changed = {
            field.name: encode(getattr(value, field.name))
            for field in dataclasses.fields(value)
            if getattr(value, field.name) != field.default
        }
        return {"record": _name_of(type(value)), "fields": changed}
    if inspect.isfunction(value):
        return {"function": _name_of(value)}
    if isinstance(value, Mapping):
        return {str(key): encode(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [encode(each) for each in value]
    return to_json(value)


def decode(value: Any) -> Any:
    """The option that `encode` described.

    Raises:
        ForeignOptionError: If it names a record or function that is not part of this package.
    """
    if isinstance(value, Mapping):
        if "record" in value:
            fields = {name: decode(each) for name, each in value["fields"].items()}
            return _find(value["record"])(**fields)
        if "function" in value:
            return _find(value["function"])
        return {key: decode(each) for key, each in value.items()}
    return tuple(decode(each) for each in value) if isinstance(value, list) else value


def _name_of(thing: Any) -> str:
    return f"{thing.__module__}:{thing.__qualname__}"


def _find(name: str) -> Any:
    module, _, attribute = name.partition(":")
    if module.split(".")[0] != "fabolas" or "<" in attribute:
        raise ForeignOptionError(
            f"expected a record or function of fabolas, got {name}; open the study with the objects it was made with"
        )
    return getattr(import_module(module), attribute)
