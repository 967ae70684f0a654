"""The rows of the initial design when the time budget has room for few trials."""

import numpy as np
import pytest

from fabolas.few_trials import size_for_few_trials

SHORT, ALL_ROWS = 15.0, 4000


def test_without_a_known_cost_nothing_is_changed() -> None:
    assert size_for_few_trials(np.array([]), np.array([]), SHORT, ALL_ROWS) is None


@pytest.mark.parametrize(("budget", "short"), [(19.9, True), (20.1, False)])
def test_a_budget_is_short_if_it_has_room_for_fewer_than_20_of_the_smallest_trials(
    budget: float, short: bool
) -> None:
    sizes, costs = np.array([100, 100, 400]), np.array([0.5, 1.5, 9.0])  # the smallest take 1 s on average
    assert (size_for_few_trials(sizes, costs, budget, ALL_ROWS) is not None) == short


@pytest.mark.parametrize("exponent", [0.0, 0.28, 0.30, 1.0, 2.0])
def test_sizes_grow_by_4_as_long_as_the_cost_grows_by_less_than_one_and_a_half(exponent: float) -> None:
    """At a cost of size^k, four times the rows cost 4^k; 4^0.2925 = 1.5."""
    chosen = [100]
    for _ in range(4):
        sizes = np.array(chosen)
        rows = size_for_few_trials(sizes, (sizes / 100.0) ** exponent, SHORT, ALL_ROWS)
        assert rows is not None
        chosen.append(rows)
    assert chosen == ([100, 400, 1600, 4000, 4000] if 4.0**exponent < 1.5 else [100, 400, 100, 100, 100])


def test_a_size_of_more_than_half_of_the_target_becomes_the_target() -> None:
    assert size_for_few_trials(np.array([499]), np.array([1.0]), SHORT, ALL_ROWS) == 1996
    assert size_for_few_trials(np.array([501]), np.array([1.0]), SHORT, ALL_ROWS) == ALL_ROWS


def test_the_size_before_the_first_steep_step_is_used() -> None:
    sizes, costs = np.array([100, 400, 1600, 4000]), np.array([1.0, 1.1, 4.0, 4.0])
    assert size_for_few_trials(sizes, costs, SHORT, ALL_ROWS) == 400


def test_the_cost_of_a_size_is_the_geometric_mean_of_its_trials() -> None:
    sizes = np.array([100, 100, 400])
    assert size_for_few_trials(sizes, np.array([0.5, 2.0, 1.49]), SHORT, ALL_ROWS) == 1600
    assert size_for_few_trials(sizes, np.array([0.5, 2.0, 1.51]), SHORT, ALL_ROWS) == 100
