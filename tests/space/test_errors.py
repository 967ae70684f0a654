"""Errors about bad input: what was expected, what was given, what to do."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace, EqualsCondition, ForbiddenEqualsClause, ForbiddenLessThanRelation
from scipy import stats

from fabolas import Categorical, Fidelity, Float, Integer, Ordinal, Space


def space() -> Space:
    return Space(
        {"C": Float(0.1, 10, log=True), "n": Integer(1, 8), "kernel": ["rbf", "poly"]}, {"size": (10, 1000)}
    )


def conditional() -> ConfigurationSpace:
    theirs = ConfigurationSpace({"mode": ["on", "off", "broken"], "rate": (0.0, 1.0)})
    theirs.add(
        EqualsCondition(theirs["rate"], theirs["mode"], "on"), ForbiddenEqualsClause(theirs["mode"], "broken")
    )
    return theirs


def incomparable() -> ConfigurationSpace:
    theirs = ConfigurationSpace({"a": (1, 5), "b": ["x", "y"]})
    clause = ForbiddenLessThanRelation(theirs["a"], theirs["b"])
    theirs._dag.unconditional_forbiddens.append(clause)  # ConfigSpace itself would fail on its default
    return theirs


CONFIG = {"C": 1.0, "n": 2, "kernel": "rbf"}
UNIT = {"a": Float(0, 1)}

CASES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    # the space
    (lambda: Space({}), ValueError, "at least one hyperparameter, got none"),
    (lambda: Space(ConfigurationSpace()), ValueError, "at least one hyperparameter, got none"),
    (lambda: Space({"a": 1, "b": ["only"]}), ValueError, "got only constants"),
    (lambda: Space([("a", Float(0, 1))]), TypeError, "got list"),
    (lambda: Space({1: Float(0, 1)}), TypeError, "a non-empty string as the name of a hyperparameter, got 1"),
    (
        lambda: Space({"": Float(0, 1)}),
        TypeError,
        "a non-empty string as the name of a hyperparameter, got ''",
    ),
    (lambda: Space({"a": {1, 2}}), TypeError, "of type set"),
    (lambda: Space({"a": []}), ValueError, "'a': expected at least one choice for Categorical"),
    (lambda: Space({"a": (0.1, 1.0)}), TypeError, r"write fabolas.Float\(0.1, 1.0\)"),
    (lambda: Space({"a": Fidelity(1, 2)}), TypeError, "of type Fidelity"),
    (lambda: Space(UNIT, {"a": (1, 2)}), ValueError, "got 'a' as both"),
    (lambda: Space(space(), {"size": (1, 2)}), ValueError, "no fidelities together with a Space"),
    (lambda: Space(incomparable()), TypeError, "values that can be compared"),
    # ranges
    (lambda: Float(2, 1), ValueError, "low < high for a Float, got low=2.0, high=1.0; swap"),
    (lambda: Float(1, 1), ValueError, "got 1.0 for both; write the number alone"),
    (lambda: Float(1, 1 + 1e-15), ValueError, "more than rounding errors"),
    (lambda: Float(0, 1, log=True), ValueError, "expected low > 0 for a Float on a log scale, got low=0.0"),
    (lambda: Float(-1, 1, log=True), ValueError, "expected low > 0 for a Float on a log scale, got low=-1.0"),
    (lambda: Float(1e-310, 1, log=True), ValueError, "expected low >= .* for a Float on a log scale"),
    (lambda: Float(-1e308, 1e308), ValueError, "finite width"),
    (lambda: Float(0, float("inf")), ValueError, "finite number for .*, got inf"),
    (lambda: Float(float("nan"), 1), ValueError, "finite number for .*, got nan"),
    (lambda: Float("0", 1), TypeError, "expected a number for Float's low, got '0' of type str"),
    (lambda: Float(True, 2), TypeError, "of type bool"),
    (lambda: Float(0, 10**400), ValueError, "finite number"),
    (lambda: Float(0, 1, default=2), ValueError, r"value in \[0.0, 1.0\], got 2.0"),
    (lambda: Integer(3, 1), ValueError, "low < high for an Integer, got low=3, high=1"),
    (
        lambda: Integer(0, 5, log=True),
        ValueError,
        "expected low > 0 for an Integer on a log scale, got low=0",
    ),
    (lambda: Integer(0.5, 5), ValueError, "whole number for .*, got 0.5"),
    (lambda: Integer(None, 5), TypeError, "got None of type NoneType"),
    (lambda: Integer(0, 10**13), ValueError, "within ±10"),
    (lambda: Integer(0, 5, default=6), ValueError, "got 6"),
    (lambda: Categorical([]), ValueError, "at least one choice for Categorical, got none"),
    (
        lambda: Categorical("rbf"),
        TypeError,
        "list or tuple of choices for Categorical, got 'rbf' of type str",
    ),
    (lambda: Categorical({"a", "b"}), TypeError, "of type set"),
    (lambda: Categorical([1, 2, 1]), ValueError, "different choices for .*, got 1 twice"),
    (lambda: Categorical([1, 2], default=3), ValueError, "one of 1, 2, got 3"),
    (lambda: Ordinal([]), ValueError, "expected at least one choice for Ordinal"),
    # fidelities
    (lambda: Fidelity(5, 5), ValueError, "low < high for a Fidelity, got 5 for both"),
    (lambda: Fidelity(5, 4), ValueError, "low=5, high=4; swap them"),
    (lambda: Fidelity(0, 4), ValueError, "low > 0 for a Fidelity, got low=0"),
    (lambda: Fidelity(-1, 4, log=False), ValueError, "low > 0 for a Fidelity, got low=-1"),
    (
        lambda: Fidelity(0.5, 4),
        ValueError,
        "whole number for Fidelity's low, got 0.5; round it, or pass integer=False",
    ),
    (lambda: Fidelity(1, 10**13), ValueError, "high <= 1e12"),
    (lambda: Fidelity("1", 4), TypeError, "of type str"),
    (lambda: Fidelity(1.0, 1 + 1e-15, integer=False), ValueError, "more than rounding errors"),
    (lambda: Space(UNIT, {"size": (5, 5)}), ValueError, "fidelity 'size': expected low < high"),
    (lambda: Space(UNIT, {"size": (0, 5)}), ValueError, "fidelity 'size': expected low > 0"),
    (lambda: Space(UNIT, {"size": 5}), TypeError, r"fidelity 'size': expected \(low, high\)"),
    (lambda: Space(UNIT, {"size": (1, 2, 3)}), TypeError, r"got \(1, 2, 3\)"),
    (
        lambda: Space(UNIT, {3: (1, 2)}),
        TypeError,
        "expected a non-empty string as the name of a fidelity, got 3",
    ),
    (lambda: Space(UNIT, ("size", 1, 2)), TypeError, "mapping name -> "),
    # configurations
    (lambda: space().encode({**CONFIG, "gamma": 1}), ValueError, "unknown hyperparameter 'gamma'"),
    (lambda: space().encode({"C": 1.0}), ValueError, "got none for 'kernel', 'n'"),
    (
        lambda: space().encode({**CONFIG, "C": 11}),
        ValueError,
        r"'C': expected a value in \[0.1, 10.0\], got 11",
    ),
    (lambda: space().encode({**CONFIG, "C": "1"}), TypeError, "'C': expected a number for a Float, got '1'"),
    (
        lambda: space().encode({**CONFIG, "C": float("nan")}),
        ValueError,
        "'C': expected a finite number for a Float",
    ),
    (lambda: space().encode({**CONFIG, "n": 9}), ValueError, r"'n': expected a value in \[1, 8\], got 9"),
    (
        lambda: space().encode({**CONFIG, "n": 2.5}),
        ValueError,
        "'n': expected a whole number for an Integer, got 2.5",
    ),
    (
        lambda: space().encode({**CONFIG, "n": True}),
        TypeError,
        "'n': expected a number for an Integer, got True",
    ),
    (
        lambda: space().encode({**CONFIG, "kernel": "cubic"}),
        ValueError,
        "'kernel': expected one of 'rbf', 'poly'",
    ),
    (lambda: space().encode([1.0, 2]), TypeError, "expected a mapping hyperparameter -> value, got list"),
    (
        lambda: Space({"a": [1, 0], "b": 3}).encode({"a": True, "b": 3}),
        ValueError,
        "'a': expected one of 1, 0",
    ),
    (
        lambda: Space({"a": [1, 0], "b": 3}).encode({"a": 1, "b": 4}),
        ValueError,
        "'b': expected one of 3, got 4",
    ),
    (
        lambda: space().encode(CONFIG, {"size": 5}),
        ValueError,
        r"'size': expected a value in \[10, 1000\], got 5",
    ),
    (
        lambda: space().encode(CONFIG, {"size": 10.5}),
        ValueError,
        "'size': expected a whole number for an integer fidelity",
    ),
    (lambda: space().encode(CONFIG, {"epochs": 5}), ValueError, "unknown fidelity 'epochs'"),
    (lambda: space().encode(CONFIG, {}), ValueError, "each fidelity, got none for 'size'"),
    (lambda: space().fidelity_coordinate("epochs", 5), ValueError, "unknown fidelity 'epochs'"),
    (lambda: space().fidelity_coordinate("size", 2000), ValueError, "got 2000"),
    (lambda: Space(conditional()).encode({"mode": "on"}), ValueError, "got none for 'rate'"),
    (
        lambda: Space(conditional()).encode({"mode": "off", "rate": 0.5}),
        ValueError,
        "got 'rate', inactive here .active if mode == 'on'.; omit",
    ),
    (lambda: Space(conditional()).encode({"mode": "broken"}), ValueError, "forbidden by mode == 'broken'"),
    # points
    (lambda: space().decode(np.zeros(3)), ValueError, r"shape \(4,\), got \(3,\)"),
    (lambda: space().snap(np.zeros(4)), ValueError, r"shape \(m, 4\), got \(4,\)"),
    (lambda: space().snap(np.zeros((2, 7))), ValueError, r"shape \(m, 4\), got \(2, 7\)"),
    (lambda: space().snap(np.full((1, 4), np.nan)), ValueError, "got NaN"),
]


@pytest.mark.parametrize(("bad", "kind", "words"), CASES, ids=[words for _, _, words in CASES])
def test_an_error_says_what_was_expected_what_was_given_and_what_to_do(
    bad: Callable[[], Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words) as caught:
        bad()
    message = str(caught.value)
    assert "expected" in message
    assert ";" in message  # what to do comes after it
    assert type(caught.value) is kind


def test_a_space_without_a_legal_configuration_is_an_error_and_not_an_endless_search() -> None:
    theirs = ConfigurationSpace({"n": (1, 3), "x": (0.0, 1.0)})
    for n in (1, 2, 3):
        theirs._dag.unconditional_forbiddens.append(ForbiddenEqualsClause(theirs["n"], n))
    with pytest.raises(ValueError, match="remove or relax forbidden clauses"):
        Space(theirs).sobol(4, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (stats.norm(0, 1), r"got scipy's norm\(0, 1\)"),
        (
            stats.loguniform(1, 10, loc=2),
            r"got scipy's reciprocal\(1, 10, loc=2\)|loguniform\(1, 10, loc=2\)",
        ),
        (stats.uniform, "got scipy's uniform without arguments"),
        (stats.randint(5, 2), r"low < high, got scipy's randint\(5, 2\)"),
        (object(), "got <object object> of type object"),
        (lambda: 1, "of type function"),
    ],
)
def test_an_error_about_a_distribution_or_object_shows_no_memory_address(spec: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words) as caught:
        Space({"a": spec})
    assert "0x" not in str(caught.value)
    assert str(caught.value).startswith("hyperparameter 'a': ")
