"""Ticks and numbers that people can read."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabolas import Categorical, Float, Integer, Ordinal, Space
from fabolas.plots.drawing import FigureAxis
from fabolas.plots.labels import narrow_names, short_name
from fabolas.plots.layout import names_are_turned, note_lines, room_for, shortened_names, ticks_with_room
from fabolas.plots.parameter_axis import parameter_axis
from fabolas.plots.ticks import (
    linear_axis,
    linear_values,
    log_ticks,
    number,
    numbers,
    padded,
    percent,
    percent_axis,
    row_axis,
    stated,
    suits_log,
    time_axis,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1250, "1,250"),
        (0.125, "0.125"),
        (1e-5, "10⁻⁵"),
        (3.2e-5, "3.2×10⁻⁵"),
        (2.5e8, "2.5×10⁸"),
        (-0.5, "−0.5"),
        (0.0, "0"),
        (20_000.0, "20,000"),
    ],
)
def test_numbers(value, text):
    assert number(value) == text


@given(st.floats(1e-12, 1e12), st.floats(1.001, 1e15))
def test_ticks_of_a_logarithmic_axis_are_few_and_within_it(low, ratio):
    high = low * ratio
    ticks = log_ticks(low, high)
    values = [value for value, _ in ticks]
    assert 1 <= len(ticks) <= 12
    assert len({text for _, text in ticks}) == len(ticks) or ratio < 1.01
    assert all(low * (1 - 1e-6) <= value <= high * (1 + 1e-6) for value in values)


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [(0.112, 0.42, ["0.15", "0.2", "0.3"]), (0.06, 0.28, ["0.07", "0.1", "0.15", "0.2"])],
)
def test_a_short_logarithmic_axis_has_ticks_also_in_its_lower_half(low, high, texts):
    assert [text for _, text in log_ticks(low, high)] == texts


@pytest.mark.parametrize(
    ("value", "deviation", "text"),
    [
        (-1193.2, 1.1, "−1,193"),
        (0.031287, 0.00039, "0.0313"),
        (0.999213, 0.00002, "0.99921"),
        (0.4, 3.0, "0.4"),
        (123456.7, 1e-9, "123,456.7"),
        (1_000_003.4, 3.0, "1.000003×10⁶"),
        (0.0100312, 0.0, "0.01003"),
        (0.0, 0.1, "0"),
    ],
)
def test_a_predicted_number_has_the_digits_that_its_deviation_justifies(value, deviation, text):
    assert stated(value, deviation) == text


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9))
def test_ticks_of_a_linear_axis_are_few_and_within_it(low, width):
    width = max(width, 1e-6 * abs(low))
    values = linear_values(low, low + width)
    assert len(values) <= 7
    assert all(low - 1e-6 * width <= value <= low + width * (1 + 1e-6) for value in values)


@given(st.floats(1e-5, 1e6), st.floats(1.5, 1e6), st.booleans(), st.booleans())
def test_ticks_of_time_are_few(low, ratio, log, few):
    axis = time_axis("time", low if log else 0.0, low * ratio, log=log, few=few)
    assert axis.ticks is not None
    assert 1 <= len(axis.ticks) <= 16
    assert all(0 <= value <= low * ratio * (1 + 1e-6) for value, _ in axis.ticks)


class TestRange:
    def test_has_a_margin(self):
        assert padded(np.array([1.0, 3.0]), log=False, share=0.1) == pytest.approx((0.8, 3.2))
        low, high = padded(np.array([1.0, 100.0]), log=True, share=0.1)
        assert (low, high) == pytest.approx((100**-0.1, 100**1.1))

    def test_without_a_share_it_is_that_of_the_values(self):
        assert padded(np.array([0.2, 0.9]), log=False, share=0.0) == (0.2, 0.9)
        assert padded(np.array([0.1, 0.9]), log=True, share=0.0) == pytest.approx((0.1, 0.9))

    def test_of_equal_or_no_values_is_not_empty(self):
        for values in (np.array([2.0, 2.0]), np.array([0.0]), np.array([]), np.array([np.nan])):
            for log in (False, True):
                low, high = padded(values, log=log)
                assert low < high

    def test_a_logarithm_needs_positive_values_that_differ(self):
        assert suits_log(np.array([0.01, 1.0]))
        assert not suits_log(np.array([0.5, 1.0]))
        assert not suits_log(np.array([-1.0, 100.0]))
        assert not suits_log(np.array([]))


def test_percentages():
    assert percent(0.954) == "95\u00a0%"
    assert percent(0.0) == "0\u00a0%"
    assert percent(0.004) == "<\u00a01\u00a0%"  # something, not nothing
    assert percent(0.006) == "1\u00a0%"
    assert percent_axis("share", 0.4).ticks == (
        (0.0, "0\u00a0%"),
        (0.1, "10\u00a0%"),
        (0.2, "20\u00a0%"),
        (0.3, "30\u00a0%"),
        (0.4, "40\u00a0%"),
    )


def test_rows_are_named_from_top_to_bottom():
    places, axis = row_axis("size", ("a", "b", "c"))
    assert places.tolist() == [2.0, 1.0, 0.0]
    assert axis.ticks == ((2.0, "a"), (1.0, "b"), (0.0, "c"))


def test_a_note_is_wrapped_to_the_width():
    note = "249 of 299 trials are shown: the best, and an even sample of all the others."
    assert note_lines(note, narrow=False) == [note]
    assert all(len(line) <= 46 for line in note_lines(note, narrow=True))
    assert " ".join(note_lines(note, narrow=True)) == note
    assert note_lines("", narrow=True) == []


class TestRoom:
    def test_even_ticks_stay_even(self):
        axis = FigureAxis(range=(0.0, 10.0), ticks=tuple((float(i), "1,000,000") for i in range(11)))
        shown = ticks_with_room(axis, 300.0)
        assert shown is not None
        assert [value for value, _ in shown] == [0.0, 3.0, 6.0, 9.0]

    def test_labels_that_would_overlap_are_left_out_but_not_the_ends(self):
        ticks = tuple((float(2**i), "1,000,000") for i in range(11))
        shown = ticks_with_room(FigureAxis(log=True, range=(1.0, 1024.0), ticks=ticks), 300.0)
        assert shown is not None
        values = [value for value, _ in shown]
        assert values[0] == 1.0
        assert values[-1] == 1024.0
        assert all(b / a >= 4 for a, b in pairwise(values))
        assert len(values) >= 3

    def test_with_room_all_stay(self):
        axis = FigureAxis(log=True, range=(1.0, 1000.0), ticks=((1.0, "1"), (10.0, "10"), (1000.0, "1,000")))
        assert ticks_with_room(axis, 800.0) == axis.ticks


def choices(*names: str) -> FigureAxis:
    places = [(i + 0.5) / len(names) for i in range(len(names))]
    return FigureAxis(range=(0.0, 1.0), ticks=tuple(zip(places, names, strict=True)), names=True)


def texts(axis: FigureAxis, width: float) -> list[str]:
    return [text for _, text in ticks_with_room(axis, width) or ()]


class TestNamesOfChoices:
    def test_a_long_name_is_shortened_and_the_others_stay(self):
        axis = choices("rbf", "poly", "a kernel with a very long name, number 2")
        assert texts(axis, 270.0) == ["rbf", "poly", "a kerne…r 2"]
        assert not names_are_turned(axis, 270.0)

    def test_many_are_turned_and_all_named(self):
        names = [f"z{i}" for i in range(15)]
        assert texts(choices(*names), 250.0) == names
        assert names_are_turned(choices(*names), 250.0)
        assert not names_are_turned(choices(*names), 800.0)

    def test_numbers_are_turned_and_never_cut(self):
        axis = choices("64", "128", "1048576")
        assert texts(axis, 160.0) == ["64", "128", "1048576"]
        assert names_are_turned(axis, 160.0)

    def test_names_that_would_be_the_same_are_turned(self):
        axis = choices("layer_a_out", "layer_b_out")
        assert texts(axis, 130.0) == ["layer_a_out", "layer_b_out"]
        assert names_are_turned(axis, 130.0)

    def test_only_without_any_room_are_some_left_out(self):
        axis = choices(*(f"name {i}" for i in range(100)))
        assert 10 < len(texts(axis, 250.0)) < 20
        beside = shortened_names(axis, 250.0)  # for rows, where nothing is turned
        assert 3 < len(beside) < 9
        assert all(len(text) >= 4 for _, text in beside)


class TestParameterAxis:
    def test_every_choice_has_a_tick_but_not_every_level(self):
        space = Space({"a": Categorical([f"c{i}" for i in range(30)]), "b": Ordinal(list(range(30)))})
        assert len(parameter_axis(space, "a", 20).ticks) == 30
        assert len(parameter_axis(space, "b", 20).ticks) <= 12
        assert parameter_axis(space, "a", 20).draw().names
        assert not parameter_axis(space, "b", 20).draw().names

    def test_ticks_are_at_the_coordinates_of_their_values(self):
        space = Space({"C": Float(1e-3, 1e3, log=True), "depth": Integer(2, 12)})
        for name, text, value in (("C", "10", 10.0), ("depth", "6", 6)):
            ticks = {label: x for x, label in parameter_axis(space, name, 20).ticks}
            assert ticks[text] == pytest.approx(space.axis(name).coordinate(value))

    def test_ticks_of_whole_numbers_are_whole(self):
        for high in (3, 5, 7, 12, 100):
            space = Space({"n": Integer(1, high)})
            for x, text in parameter_axis(space, "n", 20).ticks:
                assert number(space.axis("n").value(x)) == text

    def test_choices_have_a_place_each(self):
        space = Space({"a": Categorical(["x", None, 3.5, True])})
        axis = parameter_axis(space, "a", 20)
        assert axis.labels == ("x", "None", "3.5", "True")
        assert not axis.ordered


def test_of_a_long_name_the_end_and_a_little_of_the_start_are_kept():
    assert short_name("n_estimators") == "n_estimators"
    assert short_name("a" * 24) == "a" * 24
    assert short_name("preprocessing__classifier__learning_rate") == "preproc…r__learning_rate"
    assert len(short_name("x" * 100, 32)) == 32


def test_on_a_phone_rows_have_the_ends_of_their_names_if_these_differ():
    assert narrow_names(["C", "predicted value"]) == ("C", "predicted value")
    assert narrow_names(["preproc…r__learning_rate", "C"]) == ("…_learning_rate", "C")
    same = ("generator__learning_rate", "critic__learning_rate")
    assert narrow_names([*same, "preprocessing__strategy"]) == (*same, "…sing__strategy")


def test_rows_with_long_names_have_a_wider_margin():
    assert room_for(["C"], 64) == 64
    assert room_for([], 64) == 64
    assert room_for(["C", "a" * 24], 64) > 7 * 24


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([0.0, 0.25, 0.5], ["0.00", "0.25", "0.50"]),
        ([0.055, 0.06, 0.065], ["0.055", "0.060", "0.065"]),
        ([-0.2, -0.1, 0.0, 0.1], ["−0.2", "−0.1", "0.0", "0.1"]),
        ([0.0, 0.0005, 0.001], ["0.0000", "0.0005", "0.0010"]),
        ([0.0, 1e-4, 2e-4], ["0", "10⁻⁴", "2×10⁻⁴"]),
        ([0.0, 1000.0, 2000.0], ["0", "1,000", "2,000"]),
        ([1.234e7, 1.2345e7, 1.235e7], ["1.234×10⁷", "1.2345×10⁷", "1.235×10⁷"]),
        ([1000.5, 1001.0, 1001.5], ["1,000.5", "1,001.0", "1,001.5"]),
        ([10.0**-1.0, 10.0**-0.98, 10.0**-0.96], ["0.1", "0.105", "0.11"]),
        ([0.012345678], ["0.012"]),
    ],
)
def test_numbers_have_the_digits_that_the_step_between_them_needs(
    values: list[float], texts: list[str]
) -> None:
    assert numbers(values) == texts


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e6))
def test_ticks_of_a_linear_axis_have_different_texts(low: float, width: float) -> None:
    high = low + width
    if width > 1e-9 * max(abs(low), abs(high)):
        texts = [text for _, text in linear_axis("", low, high).ticks or ()]
        assert len(set(texts)) == len(texts)
