import math
from datetime import timedelta

import numpy as np
import pytest

from fabolas.budget import Budget, Duration, seconds_of


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [
        *((90, 90.0), (0.5, 0.5), (np.float32(2), 2.0), ("90s", 90.0), ("30m", 1800.0), ("2h", 7200.0)),
        *(("1d", 86400.0), ("1h30m", 5400.0), (" 1H 30M 15s ", 5415.0), ("1.5h", 5400.0), (".5s", 0.5)),
        *(("5 min", 300.0), ("1 hour, 30 minutes", 5400.0), ("2 days", 172800.0), ("10 secs", 10.0)),
        *((timedelta(minutes=5), 300.0), (timedelta(milliseconds=500), 0.5)),
    ],
)
def test_a_duration_is_its_seconds(duration: Duration, seconds: float) -> None:
    assert seconds_of(duration) == seconds


@pytest.mark.parametrize(
    "duration",
    ["", "soon", "30", "30 minute s", "m", "-5s", "1h-3m", "30m1h", 0, -1, "0s", math.nan, timedelta(0)],
)
def test_what_is_no_duration_is_refused_with_examples(duration: Duration) -> None:
    with pytest.raises(ValueError, match=r"time budget must be .*got .*'30m'"):
        seconds_of(duration)


@pytest.mark.parametrize("duration", [True, [30], b"30m"])
def test_another_type_is_refused(duration: object) -> None:
    with pytest.raises(TypeError, match="a number, a timedelta or text, got"):
        seconds_of(duration)  # type: ignore[arg-type]


def test_a_run_without_an_end_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a limit"):
        Budget.of(None, None)
    with pytest.raises(ValueError, match="at least 1, got 0"):
        Budget.of(None, 0)
    with pytest.raises(TypeError, match=r"whole number, got 2\.5"):
        Budget.of(None, 2.5)  # type: ignore[arg-type]


def test_a_budget_is_used_up_by_whichever_limit_comes_first() -> None:
    budget = Budget.of("1m", 10)
    assert not budget.used_up(59.9, 9)
    assert budget.used_up(60.0, 0)
    assert budget.used_up(0.0, 10)
    assert not Budget.of(60, None).used_up(1.0, 10**6)
