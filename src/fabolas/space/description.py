"""A space in words that JSON can hold, and the sentences that tell two such descriptions apart."""

from collections.abc import Mapping
from typing import Any

from fabolas.space.fidelity import Fidelity
from fabolas.space.parameters import Axis
from fabolas.space.rules import Rule


def describe(
    axes: Mapping[str, Axis],
    conditions: Mapping[str, Rule],
    forbidden: tuple[Rule, ...],
    fidelities: Mapping[str, Fidelity],
) -> dict[str, Any]:
    """Everything that makes two spaces different, the order of the columns included, as JSON-able values."""
    return {
        "parameters": [{"name": name, **axis.describe()} for name, axis in axes.items()],
        "conditions": sorted(f"{name} if {rule.text}" for name, rule in conditions.items()),
        "forbidden": sorted(rule.text for rule in forbidden),
        "fidelities": [{"name": name, **fidelity.describe()} for name, fidelity in fidelities.items()],
    }


def difference(here: Mapping[str, Any], there: Mapping[str, Any]) -> list[str]:
    """One sentence for each difference between two descriptions; [] if they are equal."""
    return [
        *_named("hyperparameter", here["parameters"], there.get("parameters", [])),
        *_named("fidelity", here["fidelities"], there.get("fidelities", [])),
        *_stated("condition", here["conditions"], there.get("conditions", [])),
        *_stated("forbidden clause", here["forbidden"], there.get("forbidden", [])),
    ]


def _named(what: str, here: list[dict[str, Any]], there: list[dict[str, Any]]) -> list[str]:
    ours = {entry["name"]: entry for entry in here}
    theirs = {entry["name"]: entry for entry in there}
    sentences = [f"{what} {name!r} is only here" for name in ours if name not in theirs]
    sentences += [f"{what} {name!r} is only there" for name in theirs if name not in ours]
    for name in ours:
        for key in sorted({*ours[name], *theirs[name]} if name in theirs else ()):
            a, b = ours[name].get(key, "not given"), theirs[name].get(key, "not given")
            if a != b:
                sentences.append(f"{what} {name!r} has {key} {a} here and {b} there")
    if ours.keys() == theirs.keys() and list(ours) != list(theirs):
        sentences.append(f"the order of names is {list(ours)} here and {list(theirs)} there")
    return sentences


def _stated(what: str, here: list[str], there: list[str]) -> list[str]:
    sentences = [f"the {what} '{text}' is only here" for text in here if text not in there]
    return sentences + [f"the {what} '{text}' is only there" for text in there if text not in here]
