"""Durations read as in the text of a report; ticks are round numbers, on a linear axis in one unit."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabolas.plots import FIGURES, CannotDraw
from fabolas.plots.durations import duration, tick_durations
from fabolas.plots.ticks import time_axis
from tests.plots.cases import CASES, case

UNITS = {"µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
# 1.67 min, 2.31 d
DECIMALS_OF_LARGE_UNITS = re.compile(r"\d\.\d+\s(min|h|d)\b")


def seconds_of(text: str) -> float:
    parts = re.findall(r"([\d.,e-]+)\s(\S+)", text)
    return sum(float(number.replace(",", "")) * UNITS[unit] for number, unit in parts)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0 s"),
        (7.09e-5, "70.9 µs"),
        (0.25, "250 ms"),
        (0.9996, "1 s"),
        (12.34, "12.3 s"),
        (59.97, "1 min"),
        (65, "1 min 05 s"),
        (100.2, "1 min 40 s"),
        (1200, "20 min"),
        (3599.7, "1 h"),
        (13_900, "3 h 52 min"),
        (172_799, "48 h"),
        (200_000, "2 d 08 h"),
        (1e9, "11,574 d 02 h"),
    ],
)
def test_a_duration_has_two_units(value: float, text: str) -> None:
    assert duration(value).replace("\u00a0", " ") == text


@given(st.floats(1e-5, 1e9))
def test_a_duration_is_the_time_to_two_digits(value: float) -> None:
    assert seconds_of(duration(value)) == pytest.approx(value, rel=0.011)


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([0.0, 30.0, 60.0, 90.0], ["0 min", "0.5 min", "1 min", "1.5 min"]),
        ([0.0, 15.0, 30.0, 45.0, 60.0, 75.0], ["0 s", "15 s", "30 s", "45 s", "60 s", "75 s"]),
        ([0.0, 900.0, 1800.0, 2700.0, 3600.0], ["0 min", "15 min", "30 min", "45 min", "60 min"]),
        ([0.0, 1e-3, 2e-3], ["0 ms", "1 ms", "2 ms"]),
        ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2], ["0 s", "0.2 s", "0.4 s", "0.6 s", "0.8 s", "1 s", "1.2 s"]),
        ([72.5, 75.0, 77.5], ["72.5 s", "75 s", "77.5 s"]),
        ([100.0, 150.0, 200.0], ["100 s", "150 s", "200 s"]),
        ([86400.0 * 1000], ["1,000 d"]),
    ],
)
def test_ticks_of_a_linear_axis_have_one_unit(values: list[float], texts: list[str]) -> None:
    assert tick_durations(values) == texts


@given(st.floats(1e-5, 1e6), st.floats(1.01, 1e6), st.booleans(), st.booleans())
def test_the_label_of_a_tick_is_its_time(low: float, ratio: float, log: bool, few: bool) -> None:
    axis = time_axis("time", low if log else 0.0, low * ratio, log=log, few=few)
    assert axis.ticks
    for value, text in axis.ticks:
        assert seconds_of(text) == pytest.approx(value, rel=1e-6, abs=1e-12)


def test_ticks_of_a_logarithmic_axis_are_whole_numbers() -> None:
    axis = time_axis("time", 0.01, 200_000.0, log=True)
    assert [text for _, text in axis.ticks or ()] == [
        "10 ms", "100 ms", "1 s", "10 s", "1 min", "10 min", "1 h", "10 h", "1 d",
    ]  # fmt: skip
    axis = time_axis("time", 20_000.0, 250_000.0, log=True)
    assert not DECIMALS_OF_LARGE_UNITS.search(" ".join(text for _, text in axis.ticks or ()))


# Many trials have the same texts as few.
@pytest.mark.parametrize("name", [name for name in CASES if name != "3,000 trials"])
def test_no_hover_text_and_no_caption_has_a_decimal_of_a_minute(name: str) -> None:
    for figure in FIGURES.values():
        try:
            record = figure.compute(case(name))
        except CannotDraw:
            continue
        assert not DECIMALS_OF_LARGE_UNITS.search(repr(record))
        assert not DECIMALS_OF_LARGE_UNITS.search(figure.how_to_read(case(name)))
