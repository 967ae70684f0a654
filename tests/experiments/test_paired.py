"""Factors between regrets, from runs with known ones."""

import numpy as np
import pytest

from experiments.paired import factor_cell, mean_known, paired_log_ratios

TIMES = (0.5, 1.0, 2.0)


def test_a_checkpoint_counts_only_for_seeds_whose_runs_all_reached_it() -> None:
    first = [{"regret": [0.4, 0.2, 0.1], "end": 3.0}, {"regret": [0.4, 0.2, 0.2], "end": 1.5}]
    second = [{"regret": [0.2, 0.2, 0.05], "end": 2.5}, {"regret": [np.inf, 0.1, 0.1], "end": 3.0}]
    found = paired_log_ratios([first, second], TIMES)
    np.testing.assert_array_equal(found[0][np.isfinite(found[0])], 0.0)
    np.testing.assert_allclose(np.exp(found[1]), [[0.5, 1.0, 0.5], [np.nan, 0.5, np.nan]])


def test_regrets_far_below_the_usual_one_are_luck() -> None:
    runs = [[{"regret": [0.1], "end": 1.0}] * 3, [{"regret": [r], "end": 1.0} for r in (0.1, 1e-9, 0.1)]]
    assert np.exp(paired_log_ratios(runs, TIMES)[1, 1, 0]) == pytest.approx(0.01)


def test_the_mean_is_over_what_is_known() -> None:
    values = np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan]])
    np.testing.assert_array_equal(mean_known(values), [2.0, np.nan])


def test_a_factor_is_the_geometric_mean_over_problems_and_few_seeds_are_left_out() -> None:
    rng = np.random.default_rng(0)
    half, double, lonely = np.log([0.5] * 4), np.log([2.0, 2.0, np.nan, 2.0]), np.log([9.0, np.nan])
    assert factor_cell([half], rng) == "0.50 (0.50, 0.50) n=4"
    assert factor_cell([double], rng) == "2.00 (2.00, 2.00) n=3"
    assert factor_cell([half, double, lonely], rng) == "1.00 (1.00, 1.00) n=2"
    assert factor_cell([lonely], rng) == ""
