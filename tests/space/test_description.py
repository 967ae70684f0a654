"""A space comes back from its description, and a description that is damaged or hostile is refused."""

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from ConfigSpace import (
    AndConjunction,
    ConfigurationSpace,
    EqualsCondition,
    ForbiddenEqualsClause,
    ForbiddenGreaterThanRelation,
    ForbiddenLessThanClause,
    InCondition,
    LessThanCondition,
    OrConjunction,
)
from ConfigSpace.hyperparameters import CategoricalHyperparameter, UniformIntegerHyperparameter
from hypothesis import given
from hypothesis import strategies as st

from fabolas import Space
from tests.helpers.spaces import configuration_spaces, points, spaces


def read_back(space: Space) -> Space:
    return Space.from_description(json.loads(json.dumps(space.describe(), allow_nan=False)))


def sobol_points(space: Space, seed: int) -> Any:
    """Points over the whole cube, and points on its faces."""
    from scipy.stats import qmc

    spread = qmc.Sobol(space.dim + space.n_fidelities, rng=np.random.default_rng(seed)).random(64)
    return np.concatenate([spread, points(space, seed)])


@given(configuration_spaces(), st.integers(0, 2**32))
def test_a_space_with_rules_comes_back_equal_and_behaves_the_same(
    theirs: ConfigurationSpace, seed: int
) -> None:
    space = Space(theirs, {"size": (10, 1000)})
    again, raw = read_back(space), sobol_points(space, seed)
    assert again == space
    assert again.differences(space.describe()) == []
    snapped, legal = space.snap(raw), space.is_legal(raw)
    np.testing.assert_array_equal(again.snap(raw), snapped)
    np.testing.assert_array_equal(again.is_legal(raw), legal)
    for point, allowed in zip(snapped, legal, strict=True):
        config, fidelity = again.decode(point)
        assert (config, fidelity) == space.decode(point)
        if allowed:
            np.testing.assert_array_equal(again.encode(config, fidelity), point)
        else:
            with pytest.raises(ValueError, match="forbidden by"):
                again.encode(config, fidelity)


@given(spaces())
def test_a_space_without_rules_comes_back_equal(space: Space) -> None:
    assert read_back(space) == space


def small() -> ConfigurationSpace:
    """Momentum only with sgd; a batch of one only with a depth above two."""
    space = ConfigurationSpace({"momentum": (0.0, 1.0), "depth": (1, 4), "batch": (1, 8), "lr": (0.0, 1.0)})
    space.add(CategoricalHyperparameter("optimizer", ["adam", "sgd", "lion"]))
    either = OrConjunction(
        EqualsCondition(space["momentum"], space["optimizer"], "sgd"),
        AndConjunction(
            InCondition(space["momentum"], space["optimizer"], ["lion", "sgd"]),
            LessThanCondition(space["momentum"], space["depth"], 3),
        ),
    )
    space.add(either)
    space.add(
        ForbiddenLessThanClause(space["lr"], 0.1),
        ForbiddenGreaterThanRelation(space["depth"], space["batch"]),
    )
    return space


def test_a_space_from_its_description_refuses_inactive_and_forbidden_values() -> None:
    again = read_back(Space(small()))
    config = {"depth": 3, "batch": 4, "lr": 0.5}
    again.encode({"optimizer": "sgd", "momentum": 0.5, **config})
    again.encode({"optimizer": "adam", **config})
    with pytest.raises(ValueError, match=r"got 'momentum', inactive here .*optimizer == 'sgd'"):
        again.encode({"optimizer": "lion", "momentum": 0.5, **config})
    with pytest.raises(ValueError, match="none for 'momentum'"):
        again.encode({"optimizer": "sgd", **config})
    with pytest.raises(ValueError, match="forbidden by depth > batch"):
        again.encode({"optimizer": "adam", **config, "batch": 2})


class Odd(EqualsCondition):
    """A type of condition that fabolas does not know."""


class Never(ForbiddenEqualsClause):
    """A type of clause that fabolas does not know."""


def test_rules_of_unknown_types_come_back_equal_and_are_not_checked() -> None:
    theirs = ConfigurationSpace({"lr": (0.0, 1.0)})
    mode = CategoricalHyperparameter("mode", ["off", "on"])
    rate, extra = UniformIntegerHyperparameter("rate", 1, 4), UniformIntegerHyperparameter("extra", 1, 4)
    theirs.add(mode, rate, extra)
    theirs.add(Odd(rate, mode, "on"), LessThanCondition(extra, rate, 3))
    theirs.add(
        Never(theirs["lr"], 0.0), ForbiddenEqualsClause(rate, 4), ForbiddenEqualsClause(theirs["lr"], 1.0)
    )
    space = Space(theirs)
    again = read_back(space)
    assert again == space
    off = {"mode": "off", "lr": 0.5}
    for config in (off, {**off, "mode": "on", "rate": 2, "extra": 1}, {**off, "lr": 0.0}, {**off, "rate": 4}):
        again.encode(config)  # the rules on `rate`, and on what depends on it, are not known
    with pytest.raises(ValueError, match=r"forbidden by lr == 1\.0"):
        again.encode({**off, "lr": 1.0})
    with pytest.raises(ValueError, match="none for 'lr'"):
        again.encode({"mode": "off"})
    assert set(again.decode(np.full(space.dim, 0.3))[0]) == {"mode", "rate", "extra", "lr"}


def test_relations_between_values_that_are_only_texts_in_the_file_are_not_checked() -> None:
    theirs = ConfigurationSpace()
    theirs.add(CategoricalHyperparameter("a", [Fraction(1, 3), Fraction(5, 2)]))
    theirs.add(CategoricalHyperparameter("b", [Fraction(1, 2), Fraction(10, 3)]))
    theirs.add(ForbiddenGreaterThanRelation(theirs["a"], theirs["b"]))
    space = Space(theirs)
    again = read_back(space)
    grid = np.array([[a, b] for a in (0.25, 0.75) for b in (0.25, 0.75)])
    assert space.is_legal(grid).tolist() == [True, True, False, True]
    assert again.is_legal(grid).all()
    assert again.describe()["forbidden"] == space.describe()["forbidden"]


def nested(depth: int, rule: dict[str, Any]) -> dict[str, Any]:
    for _ in range(depth):
        rule = {"kind": "and", "text": f"({rule['text']})", "parts": [rule]}
    return rule


LR = {"kind": "comparison", "text": "lr > 0.5", "name": "lr", "op": ">", "coordinate": 0.5}
HOSTILE: dict[str, tuple[Any, str]] = {
    "text": ("momentum if True", r"expected a rule of the kind .* got 'momentum if True'"),
    "null": (None, "expected a rule of the kind .* got None"),
    "no kind": ({"text": "x"}, "expected a rule of the kind"),
    "unknown kind": ({**LR, "kind": "eval"}, "expected a rule of the kind"),
    "no text": ({**LR, "text": 3}, "expected a rule of the kind"),
    "unknown name": ({**LR, "name": "nope"}, "hyperparameters of the space, got the name 'nope'"),
    "name of another type": ({**LR, "name": ["lr"]}, r"got the name \['lr'\]"),
    "unknown operator": ({**LR, "op": "__class__"}, "expected one of == != .* got '__class__'"),
    "coordinate outside": ({**LR, "coordinate": 1.5}, r"coordinate in \[0, 1\] in a rule, got 1.5"),
    "coordinate nan": ({**LR, "coordinate": float("nan")}, "coordinate in .* got nan"),
    "coordinate text": ({**LR, "coordinate": "0.5"}, "coordinate in .* got '0.5'"),
    "coordinate bool": ({**LR, "coordinate": True}, "coordinate in .* got True"),
    "members": ({"kind": "membership", "text": "", "name": "lr", "coordinates": [0.5, None]}, "got None"),
    "members no list": ({"kind": "membership", "text": "", "name": "lr", "coordinates": "01"}, "of the kind"),
    "no parts": ({"kind": "or", "text": "()", "parts": []}, "expected a rule of the kind"),
    "bad part": ({"kind": "or", "text": "()", "parts": [{}]}, r"expected a rule of the kind .* got \{\}"),
    "another text": ({"kind": "or", "text": "lr < 0.1", "parts": [LR]}, r"with the text '\(lr > 0.5\)', got"),
    "relation": (
        {"kind": "relation", "text": "lr > optimizer", "left": "lr", "op": ">", "right": "optimizer"},
        "compared",
    ),
    "custom": ({"kind": "custom", "text": "x", "names": ["os.system"]}, "got the name 'os.system'"),
}


@pytest.mark.parametrize("part", ["conditions", "forbidden"])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_rule_is_refused_with_a_sentence(name: str, part: str) -> None:
    rule, sentence = HOSTILE[name]
    description = Space(small()).describe()
    description[part] = {"momentum": rule} if part == "conditions" else [rule]
    with pytest.raises((ValueError, TypeError), match=sentence) as caught:
        Space.from_description(description)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"conditions": ["momentum if optimizer == 'sgd'"]}, "expected conditions as a dict .* got \\["),
        ({"forbidden": {}}, "forbidden clauses as a list"),
        ({"conditions": {"nope": LR}}, "got the name 'nope'"),
        ({"conditions": {"lr": LR}}, "without cycles, got 'lr'"),
        (
            {"conditions": {"lr": {**LR, "name": "depth"}, "depth": LR}},
            "without cycles, got 'lr', 'depth'|without cycles, got 'depth', 'lr'",
        ),
    ],
)
def test_hostile_rules_are_refused_with_a_sentence(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises((ValueError, TypeError), match=sentence):
        Space.from_description({**Space(small()).describe(), **change})


def test_nested_rules_come_back() -> None:
    description = {**Space(small()).describe(), "forbidden": [nested(80, LR)]}
    space = Space.from_description(description)
    assert space.describe() == description
    raw = points(space, seed=0)
    np.testing.assert_array_equal(space.is_legal(raw), space.snap(raw)[:, space.names.index("lr")] <= 0.5)


def test_rules_with_more_than_100_levels_come_back_as_their_texts() -> None:
    description = {**Space(small()).describe(), "forbidden": [nested(120, LR)]}
    space = Space.from_description(description)
    assert space.describe() == description
    assert space.is_legal(points(space, seed=0)).all()


def test_a_relation_between_too_many_pairs_of_choices_is_not_evaluated() -> None:
    many = list(range(1500))
    space = ConfigurationSpace({"a": many, "b": many})
    space.add(ForbiddenGreaterThanRelation(space["a"], space["b"]))
    description = Space(space).describe()
    again = Space.from_description(description)
    assert again.describe() == description
    assert again.is_legal(points(again, seed=0)).all()


def test_a_coordinate_may_be_a_whole_number() -> None:
    """Other writers of JSON write 1.0 as 1."""
    description = {**Space(small()).describe(), "forbidden": [{**LR, "coordinate": 1}]}
    assert Space.from_description(description).describe()["forbidden"] == [{**LR, "coordinate": 1.0}]


def test_a_hyperparameter_that_is_described_twice_is_refused() -> None:
    description = Space(small()).describe()
    with pytest.raises(ValueError, match="expected each hyperparameter once"):
        Space.from_description({**description, "parameters": [*description["parameters"]] * 2})
