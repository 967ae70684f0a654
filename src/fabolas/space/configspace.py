"""Translates a ``ConfigSpace.ConfigurationSpace`` to axes and rules; the only module that imports ConfigSpace.

Priors and weights are ignored: the model learns where the good values are.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any

from ConfigSpace import ConfigurationSpace
from ConfigSpace import conditions as cs_conditions
from ConfigSpace import forbidden as cs_forbidden
from ConfigSpace import hyperparameters as cs_hyperparameters
from ConfigSpace.types import NotSet

from fabolas.space.parameters import Axis, Categorical, Constant, Float, Integer, Ordinal, label
from fabolas.space.parse import ParsedSpace
from fabolas.space.rules import Comparison, Conjunction, CustomRule, Disjunction, Membership, Relation, Rule

_CONDITION_OPERATORS: dict[type, str] = {
    cs_conditions.EqualsCondition: "==",
    cs_conditions.NotEqualsCondition: "!=",
    cs_conditions.LessThanCondition: "<",
    cs_conditions.GreaterThanCondition: ">",
}
_CLAUSE_OPERATORS: dict[type, str] = {
    cs_forbidden.ForbiddenEqualsClause: "==",
    cs_forbidden.ForbiddenLessThanClause: "<",
    cs_forbidden.ForbiddenLessThanEqualsClause: "<=",
    cs_forbidden.ForbiddenGreaterThanClause: ">",
    cs_forbidden.ForbiddenGreaterThanEqualsClause: ">=",
}
_RELATION_OPERATORS: dict[type, str] = {
    cs_forbidden.ForbiddenEqualsRelation: "==",
    cs_forbidden.ForbiddenLessThanRelation: "<",
    cs_forbidden.ForbiddenLessThanEqualsRelation: "<=",
    cs_forbidden.ForbiddenGreaterThanRelation: ">",
    cs_forbidden.ForbiddenGreaterThanEqualsRelation: ">=",
}


def parse_configuration_space(space: ConfigurationSpace) -> ParsedSpace:
    """Return the axes in ConfigSpace's order, the conditions and the forbidden clauses."""
    axes = {name: parse_hyperparameter(hyperparameter) for name, hyperparameter in space.items()}
    conditions = {condition.child.name: _parse_condition(condition, axes) for condition in space.conditions}
    forbidden = tuple(_parse_forbidden(clause, axes) for clause in space.forbidden_clauses)
    return ParsedSpace(axes, conditions, forbidden)


def parse_hyperparameter(hyperparameter: Any) -> Axis:
    """Return the axis with the same values as a hyperparameter of ConfigSpace."""
    if isinstance(hyperparameter, cs_hyperparameters.Constant):
        return Constant((hyperparameter.value,))
    if isinstance(hyperparameter, cs_hyperparameters.CategoricalHyperparameter):
        return Categorical(tuple(hyperparameter.choices), hyperparameter.default_value)
    if isinstance(hyperparameter, cs_hyperparameters.OrdinalHyperparameter):
        return Ordinal(tuple(hyperparameter.sequence), hyperparameter.default_value)
    for ours, theirs in (
        (Float, cs_hyperparameters.FloatHyperparameter),
        (Integer, cs_hyperparameters.IntegerHyperparameter),
    ):
        if isinstance(hyperparameter, theirs):
            source: Any = hyperparameter
            return ours(source.lower, source.upper, bool(source.log), source.default_value)
    raise TypeError(
        "expected a float, integer, categorical, ordinal or constant hyperparameter, "
        f"got {type(hyperparameter).__name__}; replace it by one of these"
    )


def _parse_condition(condition: Any, axes: dict[str, Axis]) -> Rule:
    kind = type(condition)
    if kind in (cs_conditions.AndConjunction, cs_conditions.OrConjunction):
        parts = tuple(_parse_condition(part, axes) for part in condition.components)
        return Conjunction(parts) if kind is cs_conditions.AndConjunction else Disjunction(parts)
    if kind is cs_conditions.InCondition:
        return _membership(condition.parent.name, condition.values, axes)
    if kind in _CONDITION_OPERATORS:
        op = _CONDITION_OPERATORS[kind]
        try:
            return _comparison(condition.parent.name, op, condition.value, axes)
        except ValueError:
            pass  # a value outside the parent's range has no coordinate: below, ConfigSpace itself decides
    literals = getattr(condition, "dlcs", (condition,))
    parents = frozenset(literal.parent.name for literal in literals)
    return CustomRule(repr(condition), parents, condition.satisfied_by_value, NotSet)


def _parse_forbidden(clause: Any, axes: dict[str, Axis]) -> Rule:
    kind = type(clause)
    if kind in (cs_forbidden.ForbiddenAndConjunction, cs_forbidden.ForbiddenOrConjunction):
        parts = tuple(_parse_forbidden(part, axes) for part in clause.components)
        return Conjunction(parts) if kind is cs_forbidden.ForbiddenAndConjunction else Disjunction(parts)
    if kind is cs_forbidden.ForbiddenInClause:
        return _membership(clause.hyperparameter.name, clause.values, axes)
    if kind in _CLAUSE_OPERATORS:
        return _comparison(clause.hyperparameter.name, _CLAUSE_OPERATORS[kind], clause.value, axes)
    if kind in _RELATION_OPERATORS:
        relation = Relation(clause.left.name, clause.right.name, _RELATION_OPERATORS[kind])
        relation.check_comparable(axes)
        return relation
    return CustomRule(repr(clause), frozenset(axes), clause.is_forbidden_value, None)


def _comparison(name: str, op: str, value: Any, axes: dict[str, Axis]) -> Comparison:
    return Comparison(name, op, axes[name].coordinate(value), f"{name} {op} {_text(axes[name], value)}")


def _membership(name: str, values: Iterable[Any], axes: dict[str, Axis]) -> Membership:
    axis = axes[name]
    listed = list(values)
    texts = sorted(map(partial(_text, axis), listed))
    return Membership(name, tuple(map(axis.coordinate, listed)), f"{name} in {{{', '.join(texts)}}}")


def _text(axis: Axis, value: Any) -> str:
    """Return the value as the axis decodes it, as text, so that 1 and 1.0 give the same text on a Float."""
    return label(axis.value(axis.coordinate(value)))
