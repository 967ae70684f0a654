"""Conditions and forbidden clauses agree with ConfigSpace for each point."""

import numpy as np
import pytest
from ConfigSpace import (
    AndConjunction,
    Configuration,
    ConfigurationSpace,
    EqualsCondition,
    ForbiddenEqualsClause,
    ForbiddenGreaterThanEqualsClause,
    ForbiddenGreaterThanEqualsRelation,
    ForbiddenGreaterThanRelation,
    ForbiddenInClause,
    ForbiddenLessThanEqualsRelation,
    ForbiddenLessThanRelation,
    GreaterThanCondition,
    InCondition,
    LessThanCondition,
    NotEqualsCondition,
)
from ConfigSpace.exceptions import (
    ActiveHyperparameterNotSetError,
    ForbiddenValueError,
    InactiveHyperparameterSetError,
)
from ConfigSpace.hyperparameters import (
    BetaFloatHyperparameter,
    CategoricalHyperparameter,
    NormalIntegerHyperparameter,
    UniformFloatHyperparameter,
    UniformIntegerHyperparameter,
)
from hypothesis import given
from hypothesis import strategies as st

from fabolas import Float, Space
from fabolas.space.description import condition_texts
from tests.helpers.spaces import configuration_spaces, points


def is_legal_to_configspace(space: ConfigurationSpace, config: dict[str, object]) -> bool:
    """What ConfigSpace says; any other error than "forbidden" (wrong activity, wrong value) fails the test."""
    try:
        Configuration(space, values=config)
    except ForbiddenValueError:
        return False
    return True


def passes_its_own_check(sample: Configuration) -> bool:
    """False for samples of ConfigSpace 1.2.2 that its own check refuses.

    Its sampler may decide on a child before the child's parent, and takes "forbidden <=" for ">=".
    """
    try:
        sample.check_valid_configuration()
    except (InactiveHyperparameterSetError, ActiveHyperparameterNotSetError):
        return False
    return True


@pytest.mark.slow
@given(configuration_spaces(), st.integers(0, 2**32))
def test_activity_and_legality_are_those_of_configspace(theirs: ConfigurationSpace, seed: int) -> None:
    space = Space(theirs, {"size": (10, 1000)})
    raw = points(space, seed, n=40)
    verdicts = [is_legal_to_configspace(theirs, space.decode(point)[0]) for point in raw]
    assert space.is_legal(raw).tolist() == verdicts


@given(configuration_spaces(), st.integers(0, 2**32))
def test_conditional_spaces_round_trip_exactly(theirs: ConfigurationSpace, seed: int) -> None:
    space = Space(theirs, {"size": (10, 1000)})
    raw = points(space, seed, n=20)
    snapped = space.snap(raw)
    assert np.array_equal(space.snap(snapped), snapped)
    for point, legal in zip(snapped, space.is_legal(snapped), strict=True):
        config, fidelity = space.decode(point)
        if legal:
            assert np.array_equal(space.encode(config, fidelity), point)
        else:
            with pytest.raises(ValueError, match="forbidden by"):
                space.encode(config, fidelity)


@given(configuration_spaces(max_clauses=0))
def test_samples_of_configspace_are_encoded_and_decoded_exactly(theirs: ConfigurationSpace) -> None:
    space = Space(theirs)
    theirs.seed(1)
    for sample in theirs.sample_configuration(10):
        if not passes_its_own_check(sample):
            continue
        config = {
            name: value.item() if isinstance(value, np.generic) else value for name, value in sample.items()
        }
        real = config.pop("real", None)
        back = space.decode(space.encode(sample))[0]
        assert back.pop("real", None) == (None if real is None else pytest.approx(real, rel=1e-10))
        assert back == config


def chained() -> ConfigurationSpace:
    space = ConfigurationSpace()
    booster = CategoricalHyperparameter("booster", ["tree", "linear"])
    depth = UniformIntegerHyperparameter("depth", 1, 9, default_value=3)
    prune = UniformFloatHyperparameter("prune", 0.0, 1.0, default_value=0.25)
    space.add(booster, depth, prune)
    space.add(EqualsCondition(depth, booster, "tree"), GreaterThanCondition(prune, depth, 5))
    return space


def test_an_inactive_hyperparameter_has_its_default_coordinate_and_is_not_in_the_configuration() -> None:
    space = Space(chained())
    j = {name: space.names.index(name) for name in space.names}
    raw = np.random.default_rng(0).random((200, 3))
    snapped = space.snap(raw)
    linear = raw[:, j["booster"]] >= 0.5
    assert np.all(snapped[linear, j["depth"]] == (3 - 1 + 0.5) / 9)
    assert np.all(snapped[linear, j["prune"]] == 0.25)
    shallow = ~linear & (snapped[:, j["depth"]] < 5 / 9)
    assert np.all(snapped[shallow, j["prune"]] == 0.25)
    assert set(space.decode(raw[np.argmax(linear)])[0]) == {"booster"}
    assert len(np.unique(snapped[linear], axis=0)) == 1


def test_a_condition_on_an_inactive_parent_is_false_except_for_not_equals() -> None:
    theirs = chained()
    extra = UniformFloatHyperparameter("extra", 0.0, 1.0)
    theirs.add(extra)
    theirs.add(NotEqualsCondition(extra, theirs["depth"], 2))
    space = Space(theirs)
    point = space.snap(np.full((1, 4), 0.9))[0]
    assert set(space.decode(point)[0]) == {"booster", "extra"}
    assert is_legal_to_configspace(theirs, space.decode(point)[0])


@pytest.mark.parametrize(
    ("relation", "compare", "default"),
    [
        (ForbiddenLessThanRelation, np.less, 1.0),
        (ForbiddenLessThanEqualsRelation, np.less_equal, 1.0),
        (ForbiddenGreaterThanRelation, np.greater, 5.0),
        (ForbiddenGreaterThanEqualsRelation, np.greater_equal, 5.0),
    ],
)
def test_relations_between_a_float_and_an_integer_hold_for_their_values(
    relation: type, compare: np.ufunc, default: float
) -> None:
    theirs = ConfigurationSpace(
        {"a": (1, 5), "b": UniformFloatHyperparameter("b", 0.5, 5.5, default_value=default)}
    )
    theirs.add(relation(theirs["a"], theirs["b"]))
    space = Space(theirs)
    grid = np.array([[a, b] for a in np.linspace(0, 1, 11) for b in [*np.linspace(0, 1, 11), 0.3, 0.7]])
    values = np.array([[c["a"], c["b"]] for c in (space.decode(point)[0] for point in grid)])
    assert (values[:, 0] == values[:, 1]).any()
    assert np.array_equal(space.is_legal(grid), ~compare(values[:, 0], values[:, 1]))


def test_relations_between_strings_are_those_of_python() -> None:
    theirs = ConfigurationSpace({"a": ["x", "y", "z"], "b": ["z", "y"]})
    theirs.add(ForbiddenGreaterThanRelation(theirs["a"], theirs["b"]))
    space = Space(theirs)
    for a in "xyz":
        for b in "zy":
            point = [[(("xyz".index(a)) + 0.5) / 3, ("zy".index(b) + 0.5) / 2]]
            assert space.is_legal(np.array(point))[0] == (not a > b)


def test_a_forbidden_greater_or_equal_includes_the_value() -> None:
    theirs = ConfigurationSpace({"n": (1, 10)})
    theirs.add(ForbiddenGreaterThanEqualsClause(theirs["n"], 8))
    space = Space(theirs)
    centres = (np.arange(10)[:, None] + 0.5) / 10
    assert space.is_legal(centres).tolist() == [n < 8 for n in range(1, 11)]


def test_rules_of_unknown_types_are_called_for_each_configuration() -> None:
    class Odd(EqualsCondition):
        """A type of condition that fabolas does not know."""

    class Never(ForbiddenEqualsClause):
        """A type of clause that fabolas does not know."""

    known, unknown = ConfigurationSpace(), ConfigurationSpace()
    for theirs, condition, clause in ((known, EqualsCondition, ForbiddenEqualsClause), (unknown, Odd, Never)):
        mode = CategoricalHyperparameter("mode", ["off", "on"])
        rate = UniformIntegerHyperparameter("rate", 1, 4)
        theirs.add(mode, rate)
        theirs.add(condition(rate, mode, "on"), clause(rate, 4))
    raw = np.random.default_rng(0).random((60, 2))
    a, b = Space(known), Space(unknown)
    assert np.array_equal(a.snap(raw), b.snap(raw))
    assert np.array_equal(a.is_legal(raw), b.is_legal(raw))
    assert not a.is_legal(raw).all()


def test_a_threshold_outside_the_parents_range_is_still_a_condition() -> None:
    theirs = ConfigurationSpace({"n": (1, 4), "x": UniformFloatHyperparameter("x", 0.0, 1.0)})
    theirs.add(LessThanCondition(theirs["x"], theirs["n"], 9, check_condition_legality=False))
    assert set(Space(theirs).decode(np.array([0.99, 0.5]))[0]) == {"n", "x"}


def test_a_conditional_constant_appears_only_where_it_is_active() -> None:
    theirs = ConfigurationSpace({"on": [True, False], "word": "yes"})
    theirs.add(EqualsCondition(theirs["word"], theirs["on"], True))
    space = Space(theirs)
    assert space.decode(np.array([0.2]))[0] == {"on": True, "word": "yes"}
    assert space.decode(np.array([0.8]))[0] == {"on": False}
    assert np.array_equal(space.encode({"on": False}), [0.75])


def test_hyperparameters_with_priors_become_their_ranges() -> None:
    theirs = ConfigurationSpace()
    theirs.add(
        NormalIntegerHyperparameter("n", mu=5, sigma=2, lower=1, upper=100, log=True),
        BetaFloatHyperparameter("b", alpha=2, beta=3, lower=0, upper=10),
    )
    assert Space(theirs).decode(np.array([1.0, 1.0]))[0] == {"b": 10.0, "n": 100}


def test_a_dict_may_contain_hyperparameters_of_configspace() -> None:
    space = Space({"a": UniformFloatHyperparameter("a", 0.0, 2.0), "b": Float(0, 1)})
    assert space.decode(np.array([0.5, 0.5]))[0] == {"a": 1.0, "b": 0.5}


def test_a_sobol_sequence_has_only_legal_configurations() -> None:
    theirs = ConfigurationSpace({"a": (1, 10), "b": (1, 10)})
    theirs.add(ForbiddenLessThanRelation(theirs["a"], theirs["b"]), ForbiddenInClause(theirs["a"], [9, 10]))
    space = Space(theirs)
    x = space.sobol(40, np.random.default_rng(0))
    assert x.shape == (40, 2)
    assert space.is_legal(x).all()
    assert len(np.unique(x, axis=0)) > 15


def test_equal_rules_have_equal_descriptions_and_different_ones_are_named() -> None:
    theirs, other = chained(), chained()
    assert Space(theirs) == Space(other)
    other.add(ForbiddenEqualsClause(other["booster"], "linear"))
    assert Space(theirs).differences(Space(other).describe()) == [
        "the forbidden clause 'booster == 'linear'' is only in the recorded space"
    ]
    conditional = ConfigurationSpace({"a": [1, 2, 3], "b": (1, 4), "c": (0.0, 1.0)})
    both = AndConjunction(
        InCondition(conditional["c"], conditional["a"], [3, 1]),
        LessThanCondition(conditional["c"], conditional["b"], 3),
    )
    conditional.add(both)
    assert condition_texts(Space(conditional).describe()) == ["c if (a in {1, 3} and b < 3)"]
