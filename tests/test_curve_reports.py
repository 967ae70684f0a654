from __future__ import annotations

import numpy as np
import pytest

from fabolas.curve_reports import EarlyStopRule, Report


def test_a_report_needs_a_finite_loss_and_a_positive_cost() -> None:
    with pytest.raises(ValueError, match="the loss of a report must be a finite number, got nan"):
        Report({"epochs": 3}, np.zeros(2), float("nan"), 1.0)
    with pytest.raises(ValueError, match="the cost of a report must be a finite number > 0, got 0"):
        Report({"epochs": 3}, np.zeros(2), 0.1, 0.0)


def test_a_stop_rule_decides_by_the_last_value_that_was_passed() -> None:
    rule = EarlyStopRule((4.0, 10.0), (0.5, 0.3))
    assert not rule.stops(3, 9.9)  # before the first value
    assert rule.stops(5, 0.6)
    assert not rule.stops(5, 0.4)
    assert rule.stops(10, 0.4)


def test_a_negated_rule_stops_the_negative_losses() -> None:
    rule = EarlyStopRule((4.0,), (0.5,))
    for loss in (0.4, 0.6):
        assert rule.negated().stops(5, -loss) == rule.stops(5, loss)
    with pytest.raises(ValueError, match="ascending values"):
        EarlyStopRule((4.0, 1.0), (0.5, 0.5))
