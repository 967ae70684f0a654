"""The initial design: spread, small, cheap, in order."""

import numpy as np
import pytest

from fabolas import Float, Space, design


def sizes(low: float, high: float, k: int = 10) -> np.ndarray:
    space = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)}, {"size": (low, high)})
    points = design.initial(space, k, np.random.default_rng(0))
    return np.array([space.decode(p)[1]["size"] for p in points]) / high


def test_sizes_are_the_papers_fractions_of_the_data() -> None:
    assert set(sizes(64, 64000).round(4)) == {0.0156, 0.0312, 0.0625, 0.125}


def test_sizes_ascend_and_most_are_the_smallest() -> None:
    s = sizes(64, 64000)
    assert (np.diff(s) >= 0).all()
    assert np.sum(s < 0.02) >= 5


@pytest.mark.parametrize("low", [10, 500, 1000, 2500, 5000, 9000])
def test_no_size_is_below_the_smallest(low: int) -> None:
    assert (sizes(low, 10000) >= low / 10000 - 1e-9).all()


@pytest.mark.parametrize("low", [10, 200, 400, 500])
def test_the_design_costs_at_most_half_a_full_training_if_cost_is_linear(low: int) -> None:
    assert sizes(low, 10000).sum() <= 0.5 + 1e-6


def test_without_fidelities_configurations_only() -> None:
    points = design.initial(Space({"x": Float(0.0, 1.0)}), 6, np.random.default_rng(0))
    assert points.shape == (6, 1)


def test_configurations_are_spread() -> None:
    space = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)}, {"size": (64, 64000)})
    x = design.initial(space, 16, np.random.default_rng(0))[:, :2]
    quadrant = (x[:, 0] > 0.5).astype(int) * 2 + (x[:, 1] > 0.5)
    assert set(np.bincount(quadrant, minlength=4)) <= {3, 4, 5}


def test_more_dimensions_begin_with_more_configurations() -> None:
    assert design.count(2) == 10
    assert design.count(12) == 26
