"""A number beside its standard deviation has the digits that the deviation justifies, and is easy to read."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fabolas
from fabolas.plus_minus import beside, plus_minus


@pytest.mark.parametrize(
    ("value", "std", "text"),
    [
        (0.105, 0.0011, "0.105 ± 0.0011"),
        (0.03125, 0.0041, "0.03125 ± 0.0041"),
        (-0.25, 0.0, "-0.25 ± 0"),
        (0.9999645, 2.5e-6, "0.9999645 ± 2.5e-06"),
        (3.21e-8, 4.2e-9, "3.21e-08 ± 4.2e-09"),
        (999.96, 0.0, "1,000 ± 0"),
        (1_000_003.42, 1.24, "1,000,003.4 ± 1.2"),
        (1_500_123_456.0, 9.2e5, "1,500,120,000 ± 920,000"),
        (41_234.5, 21_000.0, "41,000 ± 21,000"),
        (500.0, 123.0, "500 ± 120"),
        (-12_345.678, 0.4, "-12,345.68 ± 0.4"),
        (1.23456e20, 1e17, "1.2346e+20 ± 1e+17"),
        (0.1, 1e-17, "0.1 ± 1e-17"),
        (0.5, math.inf, "0.5 ± inf"),
        (0.0, 0.0012, "0 ± 0.0012"),
    ],
)
def test_a_loss_has_at_least_four_digits_and_those_that_its_deviation_justifies(
    value: float, std: float, text: str
) -> None:
    assert plus_minus(value, std) == text


@given(st.floats(-1e30, 1e30), st.floats(1e-30, 1e30))
def test_what_is_written_differs_from_the_number_by_little_of_the_deviation(value: float, std: float) -> None:
    written = float(beside(value, std).replace(",", ""))
    assert abs(written - value) <= 0.051 * std + 1e-11 * abs(value)


def test_a_measured_accuracy_near_one_has_the_digits_of_the_predicted_one() -> None:
    with fabolas.Study(
        {"x": fabolas.Float(0.0, 1.0)}, {"size": (64, 16_384)}, direction="maximize", seed=0, effort=0.0
    ) as study:
        for x in (0.1, 0.3, 0.5, 0.7, 0.9):
            study.tell(study.ask_for({"x": x}), 0.99996 - 1e-5 * (x - 0.5) ** 2, cost=1.0)
        said = str(study).splitlines()[1]
    assert "0.99995" in said or "0.99996" in said
    assert "measured 1 there" not in said
    assert "target: 1 ±" not in said
