"""Rules from their descriptions. A description comes from a file, so nothing in it is trusted."""

import math
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from fabolas.space.parameters import Axis, Categorical
from fabolas.space.rules import (
    OPERATORS,
    Comparison,
    Conjunction,
    Disjunction,
    Membership,
    Relation,
    Rule,
    UnknownRule,
    parents_first,
)

# Parts of a rule that are more expensive to read back are an `UnknownRule`: deeper levels of connectives, and relations
# between so many pairs of choices.
_MAX_DEPTH, _MAX_PAIRS = 100, 1_000_000


def rules_from_description(
    description: Mapping[str, Any], axes: Mapping[str, Axis], exact: frozenset[str]
) -> tuple[dict[str, Rule], tuple[Rule, ...]]:
    """Return the conditions by name, and the forbidden clauses.

    A rule that cannot be evaluated without the code of the study, or that depends on a hyperparameter with such a
    condition, is an ``UnknownRule``.

    Args:
        description: The description of a space.
        axes: Name -> axis.
        exact: The names of the axes whose values are in the description, and not only texts of them.

    Raises:
        ValueError, TypeError: A part of the description is not a rule of this space.
    """
    described, clauses = description["conditions"], description["forbidden"]
    if not isinstance(described, dict) or not isinstance(clauses, list):
        raise TypeError(
            "expected conditions as a dict and forbidden clauses as a list, got "
            f"{_shown(described)} and {_shown(clauses)}"
        )
    reader = _Reader(axes, exact)
    conditions = {reader.known(name): reader.rule(rule) for name, rule in described.items()}
    unknown: set[str] = set()
    for name in parents_first(axes, conditions):
        conditions[name] = _unless_unknown(conditions[name], unknown, assumed=True)
        if isinstance(conditions[name], UnknownRule):
            unknown.add(name)
    forbidden = (reader.rule(clause) for clause in clauses)
    return conditions, tuple(_unless_unknown(rule, unknown, assumed=False) for rule in forbidden)


def _unless_unknown(rule: Rule, unknown: set[str], *, assumed: bool) -> Rule:
    if isinstance(rule, UnknownRule):
        return replace(rule, assumed=assumed)
    return _as_unknown(rule, assumed=assumed) if rule.names & unknown else rule


def _as_unknown(rule: Rule, *, assumed: bool = False) -> UnknownRule:
    return UnknownRule(rule.text, rule.names, rule.describe(), assumed)


@dataclass(frozen=True)
class _Reader:
    """Reads the rules of a space; see `rules_from_description` for its attributes."""

    axes: Mapping[str, Axis]
    exact: frozenset[str]

    def rule(self, described: Any, depth: int = 0) -> Rule:
        """Return a rule."""
        rule = self._rule(described, depth)
        if rule.text != described["text"]:
            raise ValueError(f"expected a rule with the text {_shown(rule.text)}, got {_shown(described)}")
        return rule

    def _rule(self, described: Any, depth: int) -> Rule:
        match described:
            case {"kind": str(), "text": str(text)} if depth > _MAX_DEPTH:
                return UnknownRule(text, frozenset(), dict(described), assumed=False)
            case {"kind": "comparison", "text": str(text), "name": name, "op": str(op), "coordinate": at}:
                return Comparison(self.known(name), _operator(op), _coordinate(at), text)
            case {"kind": "membership", "text": str(text), "name": name, "coordinates": [*listed]}:
                return Membership(self.known(name), tuple(map(_coordinate, listed)), text)
            case {"kind": "and" | "or" as kind, "text": str(), "parts": [_, *_] as parts}:
                rules = tuple(self.rule(part, depth + 1) for part in parts)
                joined = Conjunction(rules) if kind == "and" else Disjunction(rules)
                return _as_unknown(joined) if any(isinstance(r, UnknownRule) for r in rules) else joined
            case {"kind": "relation", "text": str(), "left": left, "op": str(op), "right": right}:
                return self._relation(Relation(self.known(left), self.known(right), _operator(op)))
            case {"kind": "custom", "text": str(text), "names": [*listed]}:
                names = frozenset(map(self.known, listed))
                own = {"kind": "custom", "text": text, "names": sorted(names)}
                return UnknownRule(text, names, own, assumed=False)
        raise ValueError(
            "expected a rule of the kind comparison, membership, and, or, relation or custom with all its parts, got "
            f"{_shown(described)}"
        )

    def _relation(self, relation: Relation) -> Rule:
        sides = (self.axes[relation.left], self.axes[relation.right])
        n_pairs = math.prod(len(axis.choices) for axis in sides if isinstance(axis, Categorical))
        if not relation.names <= self.exact or n_pairs > _MAX_PAIRS:
            return _as_unknown(relation)
        relation.check_comparable(self.axes)
        return relation

    def known(self, name: Any) -> str:
        """Return the name of a hyperparameter, which must exist."""
        if not isinstance(name, str) or name not in self.axes:
            raise ValueError(
                f"expected rules about hyperparameters of the space, got the name {_shown(name)} in a rule"
            )
        return name


def _operator(op: str) -> str:
    if op not in OPERATORS:
        raise ValueError(f"expected one of {' '.join(OPERATORS)} in a rule, got {_shown(op)}")
    return op


def _coordinate(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, float | int) or not 0.0 <= value <= 1.0:
        raise ValueError(f"expected a coordinate in [0, 1] in a rule, got {_shown(value)}")
    return float(value)


def _shown(value: object) -> str:
    """Return the value as a short text."""
    return reprlib.repr(value)
