"""The description of a space: to JSON values, back to its parts, and the differences of two descriptions."""

import ast
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

from fabolas.space.described_rules import rules_from_description
from fabolas.space.fidelity import Fidelity
from fabolas.space.parameters import Axis, Categorical, Constant, Float, Integer, Ordinal, label
from fabolas.space.parse import ParsedSpace
from fabolas.space.rules import Rule
from fabolas.space.validation import checked_name

_NUMERIC: dict[str, type[Float] | type[Integer]] = {"float": Float, "integer": Integer}
_CHOICES = {"categorical": Categorical, "ordinal": Ordinal, "constant": Constant}


def describe(
    axes: Mapping[str, Axis],
    conditions: Mapping[str, Rule],
    forbidden: tuple[Rule, ...],
    fidelities: Mapping[str, Fidelity],
) -> dict[str, Any]:
    """Return all that distinguishes two spaces, also the order of columns, as values that JSON can represent."""
    return {
        "parameters": [_describe_axis(name, axis) for name, axis in axes.items()],
        "conditions": {name: rule.describe() for name, rule in sorted(conditions.items())},
        "forbidden": [rule.describe() for rule in sorted(forbidden, key=lambda rule: rule.text)],
        "fidelities": [{"name": name, **fidelity.describe()} for name, fidelity in fidelities.items()],
    }


def condition_texts(description: Mapping[str, Any]) -> list[str]:
    """Return one text for each condition."""
    return [f"{name} if {rule['text']}" for name, rule in description.get("conditions", {}).items()]


def forbidden_texts(description: Mapping[str, Any]) -> list[str]:
    """Return one text for each forbidden clause."""
    return [rule["text"] for rule in description.get("forbidden", [])]


def parameters_from_description(description: Mapping[str, Any]) -> ParsedSpace:
    """Return the described axes and rules; a choice that Python cannot write as a literal is its text."""
    names = [entry["name"] for entry in description["parameters"]]
    if len(set(names)) < len(names):
        raise ValueError(f"expected each hyperparameter once, got {reprlib.repr(names)}")
    # A single choice stays one: a search of scikit-learn with one candidate has nothing else.
    axes = {
        checked_name(entry["name"], "hyperparameter"): _axis(entry) for entry in description["parameters"]
    }
    # Rules that compare values need the values themselves, and not only texts of them.
    exact = {e["name"] for e in description["parameters"] if e == _describe_axis(e["name"], axes[e["name"]])}
    return ParsedSpace(axes, *rules_from_description(description, axes, frozenset(exact)))


def fidelities_from_description(description: Mapping[str, Any]) -> dict[str, Fidelity]:
    """Return the described fidelities."""
    return {
        entry["name"]: Fidelity(**{key: value for key, value in entry.items() if key != "name"})
        for entry in description["fidelities"]
    }


def _describe_axis(name: str, axis: Axis) -> dict[str, Any]:
    return {"name": name, **axis.describe()}


def _axis(entry: Mapping[str, Any]) -> Axis:
    kind = entry["kind"]
    if kind in _NUMERIC:
        return _NUMERIC[kind](entry["low"], entry["high"], entry["log"], entry["default"])
    choices = _choices(entry["choices"])
    return _CHOICES[kind](choices, choices[entry["choices"].index(entry["default"])])


def _choices(texts: Sequence[str]) -> tuple[Any, ...]:
    values = tuple(map(_value, texts))
    # A function ``pkg.f`` and the text "pkg.f" would be equal; then all choices remain texts.
    return values if len(set(map(label, values))) == len(values) else tuple(texts)


def _value(text: str) -> Any:
    """Return the value whose ``repr`` is the text; the text itself if it is not a literal of Python."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    if repr(value) != text:
        return text
    # A lone surrogate cannot be printed.
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def differences(this: Mapping[str, Any], recorded: Mapping[str, Any]) -> list[str]:
    """Return one sentence for each difference between two descriptions; [] if they are equal."""
    return [
        *_named_differences("hyperparameter", this["parameters"], recorded.get("parameters", [])),
        *_named_differences("fidelity", this["fidelities"], recorded.get("fidelities", [])),
        *_text_differences("condition", condition_texts(this), condition_texts(recorded)),
        *_text_differences("forbidden clause", forbidden_texts(this), forbidden_texts(recorded)),
    ]


def _named_differences(what: str, this: list[dict[str, Any]], recorded: list[dict[str, Any]]) -> list[str]:
    ours = {entry["name"]: entry for entry in this}
    theirs = {entry["name"]: entry for entry in recorded}
    sentences = [f"{what} {name!r} is only in this space" for name in ours if name not in theirs]
    sentences += [f"{what} {name!r} is only in the recorded space" for name in theirs if name not in ours]
    for name in ours:
        if name not in theirs:
            continue
        for key in sorted({*ours[name], *theirs[name]}):
            a, b = ours[name].get(key, "not given"), theirs[name].get(key, "not given")
            if a != b:
                sentences.append(f"{what} {name!r} has {key} {a} in this space and {b} in the recorded one")
    if ours.keys() == theirs.keys() and list(ours) != list(theirs):
        sentences.append(
            f"the order of names is {list(ours)} in this space and {list(theirs)} in the recorded one"
        )
    return sentences


def _text_differences(what: str, this: list[str], recorded: list[str]) -> list[str]:
    ours = [f"the {what} '{text}' is only in this space" for text in this if text not in recorded]
    theirs = [f"the {what} '{text}' is only in the recorded space" for text in recorded if text not in this]
    return ours + theirs
