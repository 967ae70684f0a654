import json
import math
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from fabolas import Suggestion, Trial
from fabolas.budget import Budget, Duration, RunBudget, seconds_of
from fabolas.trials import ADDED, History


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


BUDGET = Budget(100.0, 10)
NO_TRIALS = History()


def suggestion(number: int, origin: str = "design") -> Suggestion:
    return Suggestion(number, {"x": 0.5}, {}, np.array([0.5]), origin, overhead=1.0)


def trial(number: int, elapsed: float, cost: float = 4.0, **changed: Any) -> Trial:
    return Trial(suggestion(number), "complete", 0.5, cost, elapsed=elapsed, **changed)


MEASURED_ELSEWHERE = Trial(suggestion(1, ADDED), "complete", 0.5, 1e6, elapsed=5.0)
ABANDONED = Trial(suggestion(2), "abandoned", None, 4.0, error="interrupted", elapsed=10.0)
HISTORY = History((trial(0, 5.0), MEASURED_ELSEWHERE, ABANDONED, trial(3, 15.0)))


def started(history: History = NO_TRIALS, **rules: Any) -> RunBudget:
    usual = {"fresh": False, "count_abandoned": True, "verify": False}
    return RunBudget.start(BUDGET, 1e9, history, history.elapsed, **(usual | rules))


def test_the_record_counts_without_what_was_measured_elsewhere() -> None:
    used = started().usage(HISTORY)
    assert (used.seconds, used.trials, used.study_seconds) == (15.0, 3, 15.0)


def test_the_overhead_of_pending_suggestions_counts() -> None:
    assert started().usage(HISTORY, [suggestion(4), suggestion(5)]).seconds == 17.0


@pytest.mark.parametrize(("run_seconds", "seconds"), [(None, 15.0), (3.0, 15.0), (40.0, 40.0)])
def test_seconds_are_those_of_the_clock_or_of_the_record_whichever_is_more(
    run_seconds: float | None, seconds: float
) -> None:
    assert started().usage(HISTORY, run_seconds=run_seconds).seconds == seconds


def test_seconds_by_the_clock_are_added_to_what_the_study_had_used() -> None:
    assert started(HISTORY).usage(HISTORY, run_seconds=40.0).seconds == 55.0


def test_a_fresh_budget_does_not_count_what_the_study_used_before() -> None:
    run = started(HISTORY, fresh=True)
    longer = HISTORY.append(trial(4, 20.0))
    assert (run.usage(HISTORY).seconds, run.usage(HISTORY).trials) == (0.0, 0)
    used = run.usage(longer, run_seconds=1.0)
    assert (used.seconds, used.trials, used.study_seconds) == (5.0, 1, 20.0)
    assert (run.seconds_before, started(HISTORY).seconds_before) == (0.0, 15.0)


@pytest.mark.parametrize("fresh", [False, True])
def test_abandoned_trials_count_on_request(fresh: bool) -> None:
    before = History(HISTORY.trials[:1])
    n_before = 1 if fresh else 0
    assert started(before, fresh=fresh).usage(HISTORY).trials == 3 - n_before
    assert started(before, fresh=fresh, count_abandoned=False).usage(HISTORY).trials == 2 - n_before


def test_with_several_workers_the_costs_of_the_run_are_divided_among_them() -> None:
    run = started(History(HISTORY.trials[:1]), workers=4)
    at_once = History((*HISTORY.trials, trial(4, 15.0, cost=160.0)))
    assert run.usage(at_once).seconds == 5.0 + (4.0 + 4.0 + 160.0) / 4
    assert run.usage(at_once, run_seconds=30.0).seconds == 5.0 + (4.0 + 4.0 + 160.0) / 4
    assert run.usage(at_once, run_seconds=60.0).seconds == 65.0


def test_after_a_run_with_several_workers_the_time_that_its_trials_recorded_by_the_clock_counts() -> None:
    assert started(workers=4).usage(HISTORY).seconds == 15.0


def test_the_storage_gives_back_the_same_budget() -> None:
    run = started(HISTORY, fresh=True, count_abandoned=False, verify=True, workers=3)
    assert RunBudget.of(json.loads(json.dumps(run.describe()))) == run


def test_the_budget_of_a_file_that_does_not_say_how_many_workers_there_were_is_that_of_one_after_another() -> (
    None
):
    run = started(HISTORY)
    old = {name: value for name, value in run.describe().items() if name != "workers"}
    assert RunBudget.of(old) == run
