"""Ctrl-C before, in and after a run."""

import signal
from pathlib import Path

import pytest

import fabolas
from fabolas.interrupts import Interrupts
from fabolas.storage import SqliteStorage


def press() -> None:
    signal.raise_signal(signal.SIGINT)


def test_ctrl_c_raises_before_the_run_is_handled_in_it_and_ignored_after_it() -> None:
    calls: list[str] = []
    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt):
            press()
        interrupts.begin_run(lambda: calls.append("first"), lambda: calls.append("further"))
        for _ in range(3):
            press()
        interrupts.end_run()
        press()
    assert calls == ["first", "further", "further"]
    with pytest.raises(KeyboardInterrupt):
        press()


def test_the_users_own_handler_stays() -> None:
    calls: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: calls.append(number))
    with Interrupts() as interrupts:
        interrupts.begin_run(lambda: pytest.fail("not ours"), lambda: pytest.fail("not ours"))
        press()
    assert calls == [signal.SIGINT]


def test_ctrl_c_while_the_study_is_closed_does_not_lose_the_result(tmp_path: Path) -> None:
    class Pressed(SqliteStorage):
        def close(self) -> None:
            press()
            super().close()
            press()

    result = fabolas.minimize(
        lambda config: config["x"],
        {"x": fabolas.Float(0.0, 1.0)},
        max_trials=3,
        strategy="random",
        storage=Pressed(tmp_path / "study.db"),
        progress=False,
    )
    assert len(result.trials) == 3
