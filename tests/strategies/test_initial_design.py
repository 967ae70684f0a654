"""The initial design: spread, small, cheap, in order."""

import numpy as np
import pytest

from fabolas import Float, Space
from fabolas.strategies import initial_design as design


def sizes(low: float, high: float, k: int = 10) -> np.ndarray:
    space = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)}, {"size": (low, high)})
    points = design.sobol_on_subsets(space, k, np.random.default_rng(0))
    return np.array([space.decode(p)[1]["size"] for p in points]) / high


def test_sizes_are_fractions_of_the_data_from_the_smallest() -> None:
    np.testing.assert_allclose(sorted(set(sizes(250, 64000))), np.array([1, 2, 4, 8]) / 256, rtol=1e-2)


def test_sizes_ascend_and_most_are_the_smallest() -> None:
    s = sizes(64, 64000)
    assert (np.diff(s) >= 0).all()
    assert np.sum(s < 0.005) >= 5


def test_no_size_is_needlessly_small() -> None:
    assert sizes(1, 1_000_000).min() == pytest.approx(1 / 256, rel=1e-3)


@pytest.mark.parametrize("low", [10, 500, 1000, 2500, 5000, 9000])
def test_no_size_is_below_the_smallest(low: int) -> None:
    assert (sizes(low, 10000) >= low / 10000 - 1e-9).all()


@pytest.mark.parametrize("low", [10, 100, 200, 400, 500])
def test_the_design_costs_at_most_a_fifth_of_a_full_training_if_cost_is_linear(low: int) -> None:
    space = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)}, {"size": (low, 10000)})
    assert sizes(low, 10000, design.n_initial_points(space)).sum() <= design.MAX_COST + 1e-6


def test_a_dear_smallest_size_leaves_a_slope_in_every_direction() -> None:
    x = {f"x{i}": Float(0.0, 1.0) for i in range(3)}
    assert design.n_initial_points(Space(x, {"size": (5000, 10000)})) == 5
    assert design.n_initial_points(Space(x)) == 5


def test_without_fidelities_configurations_only() -> None:
    points = design.sobol_on_subsets(Space({"x": Float(0.0, 1.0)}), 6, np.random.default_rng(0))
    assert points.shape == (6, 1)


def test_configurations_are_spread() -> None:
    space = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)}, {"size": (64, 64000)})
    x = design.sobol_on_subsets(space, 16, np.random.default_rng(0))[:, :2]
    quadrant = (x[:, 0] > 0.5).astype(int) * 2 + (x[:, 1] > 0.5)
    assert set(np.bincount(quadrant, minlength=4)) <= {3, 4, 5}


def test_more_dimensions_begin_with_more_configurations() -> None:
    for d, k in ((2, 10), (12, 26)):
        x = {f"x{i}": Float(0.0, 1.0) for i in range(d)}
        assert design.n_initial_points(Space(x, {"size": (64, 64000)})) == k
