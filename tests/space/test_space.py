"""The cube and the configurations are exact inverses of each other, for spaces of all kinds."""

import copy
import json
import math
import pickle
from typing import Any

import joblib
import numpy as np
import pytest
from ConfigSpace import (
    CategoricalHyperparameter,
    ConfigurationSpace,
    EqualsCondition,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
)
from hypothesis import given
from hypothesis import strategies as st

from fabolas import Categorical, Fidelity, Float, Integer, Ordinal, Space
from tests.helpers.spaces import floats, integers, points, spaces

SEEDS = st.integers(0, 2**32)
SVM = {
    "C": Float(1e-5, 1e5, log=True),
    "layers": Integer(1, 8),
    "kernel": ["rbf", "poly"],
    "shrinking": [True, False],
    "width": Integer(1, 1000, log=True),
    "depth": Ordinal(["low", "middle", "high"]),
    "cache": 200,
}


def exactly(value: object) -> str:
    """Equal texts are equal values of equal types: 1, True and 1.0 differ, and so do 0.1 and 0.1 + 1e-17."""
    return repr(value)


@given(spaces(), SEEDS)
def test_snapping_twice_is_snapping_once(space: Space, seed: int) -> None:
    snapped = space.snap(points(space, seed))
    assert np.array_equal(space.snap(snapped), snapped)
    assert np.all((snapped >= 0) & (snapped <= 1))


@given(spaces(), SEEDS)
def test_cube_to_configuration_to_cube_is_exactly_snapping(space: Space, seed: int) -> None:
    raw = points(space, seed)
    for point, snapped in zip(raw, space.snap(raw), strict=True):
        config, fidelity = space.decode(point)
        assert exactly(space.decode(snapped)) == exactly((config, fidelity))
        assert np.array_equal(space.encode(config, fidelity), snapped)


@given(spaces(), SEEDS)
def test_configuration_to_cube_to_configuration_is_exact(space: Space, seed: int) -> None:
    for point in points(space, seed, n=10):
        config, fidelity = space.decode(point)
        assert exactly(space.decode(space.encode(config, fidelity))) == exactly((config, fidelity))


@given(spaces(), SEEDS)
def test_snapping_a_batch_is_snapping_each_point(space: Space, seed: int) -> None:
    raw = points(space, seed)
    assert np.array_equal(space.snap(raw), np.vstack([space.snap(row[None]) for row in raw]))
    assert np.array_equal(space.snap(raw[:, : space.dim]), space.snap(raw)[:, : space.dim])


@given(floats())
def test_the_ends_of_a_float_are_exact(parameter: Float) -> None:
    space = Space({"a": parameter})
    for end, x in ((parameter.low, 0.0), (parameter.high, 1.0)):
        assert exactly(space.decode(np.array([x]))[0]["a"]) == exactly(end)
        assert space.encode({"a": end})[0] == x


@given(floats(), SEEDS)
def test_floats_stay_between_their_ends_and_follow_the_scale(parameter: Float, seed: int) -> None:
    space = Space({"a": parameter})
    low, high = parameter.low, parameter.high
    for x in np.random.default_rng(seed).random(20):
        value = space.decode(np.array([x]))[0]["a"]
        assert low <= value <= high
        formula = (
            math.exp(math.log(low) + x * math.log(high / low))
            if parameter.log and high / low < 1e300
            else None
        )
        if not parameter.log:
            formula = low + x * (high - low)
        if formula is not None:
            assert value == pytest.approx(formula, rel=1e-9, abs=1e-9 * (0 if parameter.log else high - low))


@given(st.integers(1, 10**12 - 1), st.integers(-16, -8))
def test_a_decimal_number_with_few_digits_is_encoded_and_decoded_exactly(digits: int, exponent: int) -> None:
    value = float(f"{digits}e{exponent}")
    space = Space({"log": Float(1e-5, 1e5, log=True), "linear": Float(-5, 10_000)})
    config = {"log": max(value, 1e-5), "linear": round(value, 9)}
    assert exactly(space.decode(space.encode(config))[0]) == exactly(config)


@given(integers())
def test_every_integer_is_decoded_exactly_and_in_order(parameter: Integer) -> None:
    middle = (parameter.low + parameter.high) // 2
    numbers = sorted(
        {
            min(max(start + step, parameter.low), parameter.high)
            for start in (parameter.low, middle, parameter.high)
            for step in range(-4, 5)
        }
    )
    space = Space({"n": parameter, "other": [0, 1]})
    encoded = [space.encode({"n": n, "other": 0}) for n in numbers]
    assert [space.decode(point)[0]["n"] for point in encoded] == numbers
    if parameter.low < parameter.high:
        assert np.all(np.diff([point[0] for point in encoded]) > 0)


@given(st.integers(-50, 50), st.integers(1, 40), SEEDS)
def test_snapped_integers_differ_by_whole_steps(low: int, width: int, seed: int) -> None:
    space = Space({"n": Integer(low, low + width)})
    x = space.snap(np.random.default_rng(seed).random((50, 1)))[:, 0]
    steps = (x[:, None] - x[None, :]) * (width + 1)
    assert np.allclose(steps, np.rint(steps), atol=1e-9)
    values = [space.decode(row)[0]["n"] for row in x[:, None]]
    assert np.allclose(x, (np.array(values) - low + 0.5) / (width + 1))


def test_an_integer_on_a_log_scale_is_at_the_centre_of_its_bin() -> None:
    space = Space({"n": Integer(1, 100, log=True)})
    width = math.log(100.5) - math.log(0.5)
    for n in (1, 2, 7, 100):
        edges = [(math.log(n + side) - math.log(0.5)) / width for side in (-0.5, 0.5)]
        assert space.encode({"n": n})[0] == pytest.approx(sum(edges) / 2, abs=1e-12)
        for inside in (edges[0] + 1e-9, edges[1] - 1e-9):
            assert space.decode(np.array([inside]))[0]["n"] == n


def test_categories_and_ordinals_are_at_the_centres_of_equal_cells() -> None:
    space = Space({"c": ["a", "b", "c", "d"], "o": Ordinal([1, 5, 2])})
    assert [space.encode({"c": c, "o": 1})[0] for c in "abcd"] == [0.125, 0.375, 0.625, 0.875]
    assert [space.encode({"c": "a", "o": o})[1] for o in (1, 5, 2)] == [0.5 / 3, 1.5 / 3, 2.5 / 3]
    assert space.n_choices == (4, 0)


def test_decode_returns_the_same_objects_as_the_choices_given() -> None:
    choices = [1, True, 1.0, "1", None, (64, 64), len, {"a": [1]}]
    space = Space({"c": choices})
    for choice in choices:
        decoded = space.decode(space.encode({"c": choice}))[0]["c"]
        assert decoded is choice


def test_numpy_scalars_and_lists_from_json_are_recognised_as_choices() -> None:
    space = Space(
        {"n": Categorical((16, 32)), "flag": [True, False], "layers": [(64,), (64, 64)], "s": ["a", "b"]}
    )
    given_back = {"n": np.int64(32), "flag": np.bool_(False), "layers": [64, 64], "s": np.str_("b")}
    expected = {"n": 32, "flag": False, "layers": (64, 64), "s": "b"}
    assert exactly(space.decode(space.encode(given_back))[0]) == exactly(expected)


def test_constants_have_no_column_and_appear_in_every_configuration() -> None:
    space = Space({**SVM, "single": ["only"], "three": Integer(3, 3)})
    assert space.names == ("C", "layers", "kernel", "shrinking", "width", "depth")
    assert space.n_choices == (0, 0, 2, 2, 0, 0)
    config, fidelity = space.decode(np.full(space.dim, 0.5))
    assert (config["cache"], config["single"], config["three"], fidelity) == (200, "only", 3, {})


@pytest.mark.parametrize("integer", [True, False])
@pytest.mark.parametrize("log", [True, False])
def test_a_fidelity_follows_its_formula_and_its_ends_are_exact(log: bool, integer: bool) -> None:
    space = Space({"a": Float(0, 1)}, {"size": Fidelity(100, 50_000, log=log, integer=integer)})
    ends = [space.encode({"a": 0.5}, {"size": size})[1] for size in (100, 50_000)]
    assert ends == [0.0, 1.0]
    formula = math.log(5) / math.log(500) if log else 400 / 49_900
    assert space.fidelity_coordinate("size", 500) == pytest.approx(formula, abs=1e-12)
    assert space.fidelity_values(np.array([[formula], [0.0], [1.0]]))[:, 0] == pytest.approx(
        [500, 100, 50_000]
    )
    assert exactly(space.decode(np.array([0.5, 1.0]))[1]) == exactly(
        {"size": 50_000 if integer else 50_000.0}
    )


def test_a_fraction_of_the_target_that_is_not_a_whole_number_is_rounded() -> None:
    space = Space({"a": Float(0, 1)}, {"size": (49, 60_000)})
    assert space.fidelity_coordinate("size", 49 / 60_000 * 60_000) == 0.0
    assert space.fidelity_coordinate("size", 60_000 * (1 - 1e-12)) == 1.0
    assert space.fidelity_coordinate("size", 468.75) == space.fidelity_coordinate("size", 469)


def test_without_a_fidelity_given_a_configuration_is_at_the_target() -> None:
    space = Space({"a": Float(0, 1)}, {"size": (10, 1000), "epochs": (1, 27)})
    assert np.array_equal(space.encode({"a": 0.25}), [0.25, 1.0, 1.0])
    assert space.decode(np.array([0.25, 0.0, 1.0]))[1] == {"size": 10, "epochs": 27}


def test_a_fidelity_with_two_integer_bounds_is_an_integer() -> None:
    space = Space({"a": Float(0, 1)}, {"n": (1, 8), "share": (0.1, 1), "lr": Fidelity(1, 2, integer=False)})
    assert [fidelity.integer for fidelity in space.fidelities.values()] == [True, False, False]


def test_a_sobol_sequence_puts_one_point_into_each_bin_of_each_axis() -> None:
    space = Space({"a": Float(0, 1), "b": Float(1e-3, 1e3, log=True), "c": Float(-1, 1)})
    x = space.sobol(32, np.random.default_rng(0))
    assert x.shape == (32, 3)
    for column in x.T:
        assert sorted(np.minimum(column * 32, 31).astype(int)) == list(range(32))


@pytest.mark.parametrize("n", [0, 1, 5, 10, 33])
def test_a_sobol_sequence_is_snapped_and_determined_by_the_seed(n: int) -> None:
    space = Space(SVM, {"size": (10, 100)})
    x = space.sobol(n, np.random.default_rng(7))
    assert x.shape == (n, space.dim)
    assert np.array_equal(x, space.snap(x))
    assert np.array_equal(x, space.sobol(n, np.random.default_rng(7)))
    assert n == 0 or not np.array_equal(x, space.sobol(n, np.random.default_rng(8)))


@given(spaces())
def test_a_description_can_be_written_as_json_and_has_no_difference_to_itself(space: Space) -> None:
    description = json.loads(json.dumps(space.describe(), allow_nan=False))
    assert description == space.describe()
    assert space.differences(description) == []
    assert Space(space) == space
    if not space.fidelities:
        assert Space(space, {"a fidelity": (1, 2)}).fidelities == {"a fidelity": Fidelity(1, 2)}
    assert pickle.loads(pickle.dumps(space)) == space


def test_using_an_axis_does_not_change_its_pickle() -> None:
    def kinds() -> list[Any]:
        return [Float(0.1, 9.0, log=True), Integer(1, 50, log=True), Ordinal([1, 2, 3]), Fidelity(10, 1000)]

    used = kinds()
    space = Space(dict(zip("abc", used, strict=False)), {"size": used[-1]})
    space.decode(space.snap(np.full((1, 4), 0.3))[0])
    space.encode({"a": 0.5, "b": 7, "c": 2}, {"size": 30})
    for one, fresh in zip(used, kinds(), strict=True):
        assert joblib.hash(one) == joblib.hash(fresh)
        assert joblib.hash(copy.deepcopy(one)) == joblib.hash(fresh)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"C": Float(1e-5, 1e4, log=True)},
            "hyperparameter 'C' has high 100000.0 in this space and 10000.0 in the recorded one",
        ),
        (
            {"C": Float(1e-5, 1e5)},
            "hyperparameter 'C' has log True in this space and False in the recorded one",
        ),
        ({"kernel": ["rbf", "sigmoid"]}, "hyperparameter 'kernel' has choices"),
        (
            {"kernel": Ordinal(["rbf", "poly"])},
            "hyperparameter 'kernel' has kind categorical in this space and ordinal in the recorded one",
        ),
        ({"shrinking": [1, False]}, "hyperparameter 'shrinking' has choices"),
        ({"cache": 200.0}, "hyperparameter 'cache' has choices"),
        ({"extra": 1}, "hyperparameter 'extra' is only in the recorded space"),
    ],
)
def test_a_difference_is_one_sentence(change: dict[str, object], sentence: str) -> None:
    here, there = Space(SVM, {"size": (10, 100)}), Space({**SVM, **change}, {"size": (10, 100)})
    assert here != there
    assert any(text.startswith(sentence) for text in here.differences(there.describe()))


def test_differences_of_fidelities_and_of_order_are_sentences_too() -> None:
    here = Space(SVM, {"size": (10, 100)})
    assert here.differences(Space(SVM).describe()) == ["fidelity 'size' is only in this space"]
    shuffled = Space(dict(reversed(SVM.items())), {"size": (10, 100)})
    assert ["order of names" in sentence for sentence in here.differences(shuffled.describe())] == [True]
    assert here.differences({})


def test_all_configurations_of_a_finite_space_are_listed() -> None:
    space = Space({"a": [1, 2, 3], "b": Integer(1, 40, log=True), "c": 7})
    listed = space.enumerate_configurations(1000)
    assert listed is not None
    found = {tuple(space.decode(np.append(x, np.ones(space.n_fidelities)))[0].values()) for x in listed}
    assert found == {(a, b, 7) for a in (1, 2, 3) for b in range(1, 41)}
    assert space.enumerate_configurations(119) is None
    assert Space({"a": [1, 2], "x": Float(0.0, 1.0)}).enumerate_configurations(10**9) is None


def test_forbidden_configurations_are_not_listed_and_inactive_values_give_no_duplicates() -> None:
    there = ConfigurationSpace()
    a, b = CategoricalHyperparameter("a", ["x", "y"]), CategoricalHyperparameter("b", [1, 2, 3])
    there.add(a, b, EqualsCondition(b, a, "x"))
    assert len(Space(there).enumerate_configurations(100)) == 4  # type: ignore[arg-type]
    there = ConfigurationSpace({"a": ["x", "y"], "b": [1, 2, 3]})
    there.add(
        ForbiddenAndConjunction(ForbiddenEqualsClause(there["a"], "x"), ForbiddenEqualsClause(there["b"], 2))
    )
    assert len(Space(there).enumerate_configurations(100)) == 5  # type: ignore[arg-type]


def test_an_axis_is_found_by_its_name() -> None:
    space = Space({"C": Float(0.1, 10.0, log=True), "kind": ["a", "b"], "fixed": 3})
    assert space.axis("C") == Float(0.1, 10.0, log=True)
    assert space.axis("kind").value(0.9) == "b"
    with pytest.raises(ValueError, match="unknown hyperparameter 'D'"):
        space.axis("D")


@pytest.mark.parametrize(
    "fidelities", [None, {"size": (100, 1_000)}, {"size": (100, 1_000), "epochs": (1, 9)}]
)
def test_configurations_at_the_target_have_the_highest_fidelities(
    fidelities: dict[str, tuple[float, float]] | None,
) -> None:
    space = Space({"x": Float(0.0, 1.0)}, fidelities)
    points = space.at_target(np.array([[0.25], [0.5]]))
    assert space.is_at_target(points).all()
    highest = {name: high for name, (_, high) in (fidelities or {}).items()}
    assert [space.decode(point) for point in points] == [({"x": 0.25}, highest), ({"x": 0.5}, highest)]
