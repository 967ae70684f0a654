"""Hypothesis strategies for random search spaces of all kinds, plain and of ConfigSpace."""

import string
from typing import Any

import numpy as np
from ConfigSpace import (
    AndConjunction,
    ConfigurationSpace,
    EqualsCondition,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    ForbiddenEqualsRelation,
    ForbiddenGreaterThanClause,
    ForbiddenGreaterThanRelation,
    ForbiddenInClause,
    ForbiddenLessThanClause,
    ForbiddenLessThanEqualsClause,
    ForbiddenLessThanRelation,
    ForbiddenOrConjunction,
    GreaterThanCondition,
    InCondition,
    LessThanCondition,
    NotEqualsCondition,
    OrConjunction,
)
from ConfigSpace.hyperparameters import (
    CategoricalHyperparameter,
    Constant,
    OrdinalHyperparameter,
    UniformFloatHyperparameter,
    UniformIntegerHyperparameter,
)
from hypothesis import assume
from hypothesis import strategies as st

from fabolas import Categorical, Fidelity, Float, Integer, Ordinal, Space

SCALARS = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([1.0, 0.0, 2.5, "1", "True", "rbf", ""])
)
CHOICES = st.lists(SCALARS | st.tuples(SCALARS, SCALARS), min_size=1, max_size=6, unique_by=repr)


@st.composite
def floats(draw: Any) -> Float:
    if draw(st.booleans()):
        low = draw(st.floats(1e-300, 1e300))
        high = draw(st.floats(low, 1e300) | st.floats(1.0, 1e6).map(lambda ratio: min(low * ratio, 1e300)))
        log = draw(st.booleans())
    else:
        low, high, log = draw(st.floats(-1e9, 1e9)), draw(st.floats(-1e9, 1e9)), False
        low, high = min(low, high), max(low, high)
    assume(low < high)
    default = draw(st.none() | st.floats(low, high))
    try:
        return Float(low, high, log=log, default=default)
    except ValueError:  # too narrow for floating point
        assume((high - low) / max(abs(low), abs(high)) < 1e-11)
        assume(False)
        raise


@st.composite
def integers(draw: Any) -> Integer:
    log = draw(st.booleans())
    low = draw(st.integers(1, 10**12) if log else st.integers(-(10**12), 10**12))
    high = draw(st.integers(low, 10**12) | st.integers(0, 20).map(lambda width: min(low + width, 10**12)))
    return Integer(low, high, log=log, default=draw(st.none() | st.integers(low, high)))


@st.composite
def fidelities(draw: Any) -> Fidelity:
    integer = draw(st.booleans())
    low = draw(st.integers(1, 10**11) if integer else st.floats(1e-6, 1e6))
    high = draw(st.integers(low + 1, 10**12) if integer else st.floats(1e-6, 1e9))
    assume(low * (1 + 1e-9) < high or integer)
    return Fidelity(low, high, log=draw(st.booleans()), integer=integer)


PARAMETERS = floats() | integers() | CHOICES | CHOICES.map(Categorical) | CHOICES.map(Ordinal) | SCALARS


@st.composite
def spaces(draw: Any) -> Space:
    names = st.sampled_from(string.ascii_lowercase[:8])
    parameters = draw(st.dictionaries(names, PARAMETERS, max_size=6))
    parameters["always"] = draw(floats())
    sizes = draw(st.dictionaries(st.sampled_from(["size", "epochs"]), fidelities()))
    return Space(parameters, sizes)


def points(space: Space, seed: int, n: int = 25) -> Any:
    """Uniform points, with the corners and the faces of the cube well represented."""
    rng = np.random.default_rng(seed)
    uniform = rng.random((n, space.dim + space.n_fidelities))
    return np.where(rng.random(uniform.shape) < 0.15, np.rint(uniform), uniform)


def _condition(draw: Any, child: Any, parents: list[Any], depth: int = 0) -> Any:
    if depth < 2 and draw(st.integers(0, 3)) == 0:
        kind = draw(st.sampled_from([AndConjunction, OrConjunction]))
        return kind(*(_condition(draw, child, parents, depth + 1) for _ in range(2)))
    parent = draw(st.sampled_from(parents))
    value = draw(values(parent))
    kinds = [EqualsCondition, NotEqualsCondition, InCondition]
    if parent.ORDERABLE:
        kinds += [LessThanCondition, GreaterThanCondition]
    kind = draw(st.sampled_from(kinds))
    return kind(child, parent, [value, draw(values(parent))] if kind is InCondition else value)


def _clause(draw: Any, hyperparameters: list[Any], depth: int = 0) -> Any:
    if depth < 2 and draw(st.integers(0, 2)) == 0:
        kind = draw(st.sampled_from([ForbiddenAndConjunction, ForbiddenOrConjunction]))
        return kind(*(_clause(draw, hyperparameters, depth + 1) for _ in range(2)))
    if draw(st.integers(0, 2)) == 0:
        numeric = [h for h in hyperparameters if h.name in ("count", "real", "narrow", "level")]
        kind = draw(
            st.sampled_from(
                [ForbiddenLessThanRelation, ForbiddenEqualsRelation, ForbiddenGreaterThanRelation]
            )
        )
        return kind(draw(st.sampled_from(numeric)), draw(st.sampled_from(numeric)))
    hyperparameter = draw(st.sampled_from(hyperparameters))
    value = draw(values(hyperparameter))
    kinds = [ForbiddenEqualsClause, ForbiddenInClause]
    if hyperparameter.ORDERABLE:
        kinds += [ForbiddenLessThanClause, ForbiddenLessThanEqualsClause, ForbiddenGreaterThanClause]
    kind = draw(st.sampled_from(kinds))
    return kind(hyperparameter, [value] if kind is ForbiddenInClause else value)


def values(hyperparameter: Any) -> st.SearchStrategy[Any]:
    """Values of one of ConfigSpace's hyperparameters; floats with few digits."""
    if isinstance(hyperparameter, UniformFloatHyperparameter):
        return st.sampled_from([0.1, 0.25, 1.0, 3.0, 7.5])
    if isinstance(hyperparameter, UniformIntegerHyperparameter):
        return st.integers(hyperparameter.lower, hyperparameter.upper)
    if isinstance(hyperparameter, CategoricalHyperparameter):
        return st.sampled_from(hyperparameter.choices)
    if isinstance(hyperparameter, OrdinalHyperparameter):
        return st.sampled_from(hyperparameter.sequence)
    return st.just(hyperparameter.value)


@st.composite
def configuration_spaces(draw: Any, max_clauses: int = 3) -> ConfigurationSpace:
    """Up to four conditional hyperparameters, chained, and a few forbidden clauses."""
    from ConfigSpace.exceptions import ForbiddenValueError

    hyperparameters = [
        CategoricalHyperparameter("kind", ["a", "b", None, True, 2.5]),
        UniformIntegerHyperparameter("count", 1, 9),
        UniformFloatHyperparameter("real", 0.05, 10.0, log=draw(st.booleans())),
        OrdinalHyperparameter("level", [10, 2, 5]),
        Constant("fixed", "value"),
        UniformIntegerHyperparameter("narrow", 1, 4),
        CategoricalHyperparameter("flag", [True, False]),
    ]
    order = draw(st.permutations(hyperparameters))
    space = ConfigurationSpace()
    space.add(*order)
    conditions = [
        _condition(draw, child, order[:3] + order[3:i])
        for i, child in enumerate(order)
        if i >= 3 and draw(st.booleans())
    ]
    try:
        space.add(*conditions)
        space.add(*(_clause(draw, order) for _ in range(draw(st.integers(0, max_clauses)))))
        space.get_default_configuration()
    except (ForbiddenValueError, ValueError):  # ConfigSpace insists that its default be legal
        assume(False)
    return space
