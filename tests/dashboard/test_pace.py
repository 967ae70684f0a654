"""The rest after an update is in proportion to its work, longer on a busy machine, and limited."""

import os
import time

import pytest

from fabolas.dashboard.pace import BUSY_MACHINE, IDLE_MACHINE, LONGEST_REST, UpdateRest, rest_per_work


def test_the_rest_is_in_proportion_to_the_work_and_limited() -> None:
    now = [100.0]
    pace = UpdateRest(lambda: 25.0, lambda: now[0])
    assert pace.rested()
    pace.add(0.2)
    pace.add(0.1)
    now[0] = 107.4
    assert not pace.rested()
    now[0] = 107.6
    assert pace.rested()
    pace.add(1000.0)
    now[0] += LONGEST_REST
    assert pace.rested()


def test_nested_work_counts_once_and_free_work_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    added: list[float] = []
    pace = UpdateRest()
    monkeypatch.setattr(pace, "add", added.append)
    with pace.work(free=True), pace.work():
        pass
    assert added == []
    started = time.thread_time()
    with pace.work(), pace.work():
        end = time.thread_time() + 0.01
        for _ in range(10_000_000):
            if time.thread_time() >= end:
                break
    assert len(added) == 1
    assert 0.01 <= added[0] <= time.thread_time() - started


@pytest.mark.parametrize(
    ("load", "processors", "expected"),
    [(1.1, 2, IDLE_MACHINE), (1.6, 2, BUSY_MACHINE), (0.9, 1, BUSY_MACHINE), (7.2, 8, IDLE_MACHINE)],
)
def test_on_a_busy_machine_the_rest_is_longer(
    monkeypatch: pytest.MonkeyPatch, load: float, processors: int, expected: float
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(os, "cpu_count", lambda: processors)
    assert rest_per_work() == expected


def test_without_a_known_load_the_machine_counts_as_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "getloadavg")
    assert rest_per_work() == BUSY_MACHINE
