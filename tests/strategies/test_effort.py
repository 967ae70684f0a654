"""Effort in proportion: the level follows from the record and keeps to its share, also with many workers."""

import heapq

import numpy as np
import pytest

from fabolas import History, Suggestion, Trial
from fabolas.strategies import effort
from fabolas.strategies.effort import BATCH_SIZE, Effort, Pace, WorkerCount, level_within_share, overspent
from fabolas.trials import ADDED, RANDOM


def level(cost: float, thought: float = 0.0, n: int = 50) -> float | None:
    overhead = np.full(n, thought)
    return level_within_share(overhead, np.zeros(n), np.full(n, cost), cost, n)


def test_the_level_rises_with_the_cost_from_least_to_full() -> None:
    levels = [level(cost) for cost in (0.1, 0.3, 1.0, 3.0, 30.0)]
    assert all(a is not None for a in levels)
    assert np.all(np.diff(np.array(levels, dtype=float)) >= 0)
    assert levels[-1] == 1.0


def test_there_is_no_time_to_think_before_a_trial_of_milliseconds() -> None:
    assert level(0.001) is None


def test_too_much_overhead_is_made_up_for() -> None:
    assert level(1.0, thought=0.5) is None


def test_a_slow_machine_thinks_less_hard() -> None:
    # The same record, but what was decided with the least effort took four times as long.
    quick, slow = (
        level_within_share(
            np.full(50, factor * float(effort.reference_seconds(0.0, 50))),
            np.zeros(50),
            np.full(50, 2.0),
            2.0,
            50,
        )
        for factor in (1.0, 4.0)
    )
    assert quick is not None
    assert slow is not None
    assert slow < quick


def test_the_share_holds_over_a_simulated_run() -> None:
    rng = np.random.default_rng(0)
    for cost in (0.2, 0.5, 1.0):
        overhead: list[float] = []
        levels: list[float] = []
        for n in range(80):
            chosen = level_within_share(np.array(overhead), np.array(levels), np.full(n, cost), cost, n)
            # A machine twice as slow as the one the figures come from, with noise.
            took = (
                2.0 * float(effort.reference_seconds(chosen, n)) * np.exp(0.2 * rng.normal())
                if chosen is not None
                else 1e-3
            )
            overhead.append(took)
            levels.append(chosen or 0.0)
        share = sum(overhead) / (sum(overhead) + 80 * cost)
        assert share < 0.13


@pytest.mark.parametrize("n", [10, 100, 1000])
def test_more_effort_is_never_less_of_anything(n: int) -> None:
    efforts = [Effort.at(level, n) for level in np.linspace(0, 1, 11)]
    for name in (
        "mcmc_steps",
        "K",
        "n_representers",
        "n_samples",
        "n_outcomes",
        "pool_size",
        "n_screened",
        "n_estimated",
        "n_refined",
    ):
        assert np.all(np.diff([getattr(e, name) for e in efforts]) >= 0), name
    assert np.all(np.diff([e.refit_interval for e in efforts]) <= 0)


def test_debt_is_what_a_bucket_holds_that_never_saves() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        overhead, allowed = rng.exponential(size=(2, 30))
        held = 0.0
        for thought, run_budget in zip(overhead, allowed, strict=True):
            held = max(held + thought - run_budget, 0.0)
        assert overspent(overhead, allowed) == pytest.approx(held)
    assert overspent(np.empty(0), np.empty(0)) == 0.0


COST = 10.0


def suggestion(i: int, overhead: float = 0.0, origin: str = "information", effort: float = 0.0) -> Suggestion:
    return Suggestion(i, {}, {}, np.array([0.5]), origin, overhead=overhead, effort=effort)


def suggestions(ids: range, overhead: float = 0.0, origin: str = "information") -> tuple[Suggestion, ...]:
    return tuple(suggestion(i, overhead, origin) for i in ids)


def history(ended: tuple[Suggestion, ...], cost: float = COST) -> History:
    return History(tuple(Trial(s, "complete", 0.5, cost, elapsed=0.0) for s in ended))


def test_trials_measured_elsewhere_say_nothing_about_the_pace() -> None:
    """Their overhead is unknown, and their costs are no time of this study."""
    own = suggestions(range(6), overhead=0.7)
    alone = Pace.of(history(own), (), 1, 0.1)
    added = history(suggestions(range(6, 11), origin=ADDED), cost=3600.0).trials
    both = Pace.of(History((*history(own).trials, *added)), (), 1, 0.1)
    assert both.typical_cost == alone.typical_cost == COST
    assert both.seconds_to_decide == alone.seconds_to_decide == 0.7
    # The debt of the own suggestions stays: the time elsewhere does not pay for it.
    assert both.affordable_level(0.1 * COST) is None
    assert alone.affordable_level(0.1 * COST) is None
    first = Pace.of(History((*added, *history(own).trials)), (), 1, 0.1)
    assert first.affordable_level(100 * COST) == pytest.approx(both.affordable_level(100 * COST), abs=0.05)


def test_random_candidates_say_nothing_about_the_seconds_of_a_decision() -> None:
    own = history(suggestions(range(6), overhead=0.7)).trials
    random = history(suggestions(range(6, 11), overhead=1e-4, origin=RANDOM)).trials
    pace = Pace.of(History((*own, *random)), (), 1, 0.1)
    assert pace.seconds_to_decide == 0.7


def test_workers_that_end_at_the_same_time_wait_and_are_not_gone() -> None:
    count = WorkerCount()
    for i in range(64):
        count = count.updated(history(()), suggestions(range(i)))
    assert count.n == 64
    ended = history(suggestions(range(63)))  # all but the last one
    for i in range(20):
        count = count.updated(ended, suggestions(range(63, 64 + i)))
        assert count.n == 64


def test_a_run_that_goes_on_with_one_worker_soon_knows_it() -> None:
    count, numbers = WorkerCount(64, since=64), []
    for i in range(64, 72):
        count = count.updated(history(suggestions(range(i))), ())
        numbers.append(count.n)
    assert numbers == [64, 32, 16, 8, 4, 2, 1, 1]


def test_workers_that_join_count_at_once() -> None:
    assert WorkerCount(2, since=9).updated(history(()), suggestions(range(40))).n == 41


def test_the_overhead_of_pending_suggestions_counts_as_that_of_ended_ones() -> None:
    ended, pending = suggestions(range(100)), suggestions(range(100, 163), overhead=0.2)
    before = Pace.of(history(ended), suggestions(range(100, 163)), 64, 0.1)
    after = Pace.of(history(ended), pending, 64, 0.1)
    once_ended = Pace.of(history(ended + pending), (), 64, 0.1)
    assert before.affordable_level(COST) is not None
    assert after.affordable_level(COST) is None
    # 0.2 s instead of half of 10 s / 64 = 0.078 s: the debt is the same whether their trials have ended or not.
    assert after.batch_size == once_ended.batch_size


def test_an_expensive_evaluation_gives_no_time_to_the_other_workers() -> None:
    pace = Pace.of(history(suggestions(range(100))), suggestions(range(100, 163)), 64, 0.1)
    assert pace.affordable_level(100 * COST) == pace.affordable_level(COST)
    alone = Pace.of(history(suggestions(range(100))), (), 1, 0.1)
    assert alone.affordable_level(0.01 * COST) != alone.affordable_level(COST)


@pytest.mark.parametrize(("seconds", "expected"), [(0.01, BATCH_SIZE), (0.4, 21), (0.8, 41), (2.0, 64)])
def test_a_batch_is_as_long_as_compensates_the_decision(seconds: float, expected: int) -> None:
    """256 workers, trials of 10 s: half of 10 s / 256 for a suggestion, so 0.4 s for 21. At most a quarter of 256."""
    decision = suggestions(range(1), overhead=seconds)
    compensating = suggestions(range(1, 200), origin="batch")
    pace = Pace.of(history(decision), compensating, 256, 0.1)
    assert pace.batch_size == expected
    assert Pace.of(history(decision), (), 256, 0.1).batch_size >= expected  # not compensated yet


def test_a_longer_batch_is_chosen_from_more_candidates() -> None:
    least = Effort.at(0.0, 300)
    assert least.with_batch(BATCH_SIZE) == least
    assert least.with_batch(40).batch_size == 40
    assert least.with_batch(40).n_screened == 4 * 41


def utilisation(n_workers: int, decision: float, n_trials: int) -> float:
    """Busy share of simulated workers with trials of about 10 s, until the last trial starts.

    The strategy follows its pace. A decision takes the same time at any effort, a point of a batch takes none.
    """
    rng, count, past, pending = np.random.default_rng(0), WorkerCount(), history(()), {}
    running: list[tuple[float, int]] = []  # when and which
    now, idle, batch, origin, took = 0.0, n_workers, 0, "design", 0.0
    intervals = []
    for i in range(n_trials):
        while running and (running[0][0] <= now or not idle):
            end, ended = heapq.heappop(running)
            now, idle = max(now, end), idle + 1
            past = past.append(Trial(pending.pop(ended), "complete", 0.5, COST, elapsed=0.0))
        waiting = tuple(pending.values())
        count = count.updated(past, waiting)
        pace = Pace.of(past, waiting, count.n, 0.1)
        if len(past) and batch and pace.affordable_level(COST) is None:
            origin, took, batch = "batch", 0.0, batch - 1
        elif len(past):
            origin, took, batch = "information", decision, pace.batch_size
        now, idle = now + took, idle - 1
        pending[i] = suggestion(i, took, origin)
        intervals.append((now, now + COST * rng.uniform(2 / 3, 4 / 3)))
        heapq.heappush(running, (intervals[-1][1], i))
    busy = sum(min(end, now) - begin for begin, end in intervals)
    return float(busy / (n_workers * now))


@pytest.mark.parametrize(("n_workers", "decision"), [(64, 0.1), (64, 1.5), (256, 0.4)])
def test_simulated_workers_are_busy_nine_tenths_of_their_time(n_workers: int, decision: float) -> None:
    """With six points a batch at most 7 / decision trials start in a second: with 1.5 s, 4.7 of the 6.4 that end."""
    assert utilisation(n_workers, decision, 3 * n_workers) > 0.9


@pytest.mark.parametrize("n_workers", [1, 5])
def test_few_workers_change_nothing(n_workers: int) -> None:
    ended = suggestions(range(30), overhead=0.4)
    alone = Pace.of(history(ended), (), 1, 0.1)
    few = Pace.of(history(ended), suggestions(range(30, 29 + n_workers), overhead=9.0), n_workers, 0.1)
    for cost in (0.1, 1.0, 10.0, 100.0):
        assert few.affordable_level(cost) == alone.affordable_level(cost)
        assert few.is_near_end(cost, 20 * cost)
        assert not few.is_near_end(cost, 20.001 * cost)
    assert few.batch_size == BATCH_SIZE
    assert few.seconds_to_decide == 0.4
