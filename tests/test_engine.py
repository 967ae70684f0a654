"""Runs with several workers: budget, record, interrupts, kills. Places are real, or under a simulated clock."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import deque
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.asynchronous import Workers, simulate_workers
from experiments.synthetic import svm_like
from fabolas import Outcome, Space, Study
from fabolas.api import Result
from fabolas.budget import Budget, Timer
from fabolas.engine import Engine
from fabolas.execution import Job
from fabolas.interrupts import Interrupts
from fabolas.storage import MemoryStorage
from fabolas.storage.reader import read
from fabolas.strategies.random import Random
from tests.helpers.clock import Clock
from tests.helpers.problems import SIZE, SPACE, bowl, minimize
from tests.helpers.waiting import PATIENCE, wait_until


@pytest.mark.slow
def test_two_processes_find_what_one_does() -> None:
    result = minimize(bowl, max_trials=12, workers=2)
    assert sorted(trial.id for trial in result.trials) == list(range(12))
    alone = minimize(bowl, max_trials=12)
    assert {tuple(t.config.values()) for t in result.trials} == {
        tuple(t.config.values()) for t in alone.trials
    }
    assert result.best_config == alone.best_config


@pytest.mark.slow
def test_data_reach_the_objective_by_name_wherever_it_runs() -> None:
    def objective(config: dict[str, Any], size: int, data: list[float]) -> float:
        return data[0] * config["x"]

    alone = minimize(objective, data=[2.0], max_trials=4)
    assert alone.trials[0].loss == 2.0 * alone.trials[0].config["x"]
    assert minimize(objective, data=[2.0], max_trials=4, workers=2).predicted_loss == alone.predicted_loss
    with ThreadPoolExecutor(2) as executor:
        threads = minimize(objective, data=[2.0], max_trials=4, executor=executor)
    assert threads.predicted_loss == alone.predicted_loss


def test_an_objective_that_does_not_take_the_data_is_refused_before_anything_runs() -> None:
    with pytest.raises(TypeError, match=r"def objective\(config, size, data\)"):
        minimize(bowl, data=[1.0], max_trials=1)
    with pytest.raises(ValueError, match="a fidelity named 'data'"):
        minimize(lambda config, data: 0.5, fidelities={"data": (1, 10)}, data=[1.0], max_trials=1)


@pytest.mark.slow
def test_a_trial_that_hangs_or_dies_is_a_failure_and_the_run_goes_on() -> None:
    def violent(config: dict[str, Any], size: int) -> float:
        if config["x"] < 0.2:
            os.kill(os.getpid(), signal.SIGSEGV)
        if config["x"] > 0.8:
            time.sleep(1000)
        return float(config["x"])

    result = minimize(violent, max_trials=10, workers=2, trial_timeout=0.5)
    for trial in result.trials:
        x = trial.config["x"]
        assert trial.status == ("complete" if 0.2 <= x <= 0.8 else "failed")
        assert ("SIGSEGV" in (trial.error or "")) == (x < 0.2)
        assert ("timed out" in (trial.error or "")) == (x > 0.8)
    failed = [trial for trial in result.trials if trial.config["x"] > 0.8]
    assert failed
    assert all(trial.cost >= 0.5 for trial in failed)
    assert len({trial.status for trial in result.trials}) == 2


@pytest.mark.slow
def test_failures_in_a_row_are_counted_in_the_order_of_ending() -> None:
    def broken(config: dict[str, Any], size: int) -> float:
        raise OSError("disk full")

    with pytest.raises(RuntimeError, match=r"3 trials in a row failed .*OSError: disk full"):
        minimize(broken, max_trials=100, max_failures=3, workers=2)


@pytest.mark.slow
def test_a_broken_executor_ends_the_run_with_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fabolas.execution.executors._PAUSES_SECONDS", (0.01, 0.05))
    executor = ThreadPoolExecutor(2)

    def last(config: dict[str, Any], size: int) -> float:
        executor.shutdown(wait=False)
        return 0.5

    with pytest.warns(RuntimeWarning, match=r"no trial can be run any more, .*shutdown"):
        result = minimize(last, max_trials=100, executor=executor)
    assert result.predicted_loss == 0.5
    with pytest.raises(RuntimeError, match="no trial can be run any more"):
        minimize(last, max_trials=100, executor=executor)


class Simulated:
    """Runs under a simulated clock: costs as stated, overhead a fixed overhead, nothing left to chance."""

    def __init__(
        self, storage: Any = None, workers: int = 4, overhead: float = 0.5, strategy: str = "random"
    ):
        self.problem = svm_like()
        self.clock = Clock()
        self.study = Study(
            self.problem.space,
            self.problem.fidelities,
            strategy=strategy,
            storage=storage,
            seed=3,
            overhead=overhead,
            clock=self.clock,
        )
        self.backend = Workers(self.problem, workers, self.clock, overhead, np.random.default_rng(0))

    def run(self, **limits: Any) -> Result:
        fresh = limits.pop("fresh_budget", False)
        budget = Budget.of(limits.get("time_budget"), limits.get("max_trials"))
        with self.study:
            engine = Engine(self.study, self.backend, budget, Timer(self.clock), fresh_budget=fresh)
            return Result(self.study, engine.run())


def test_the_budget_is_the_clock_and_not_the_sum_of_the_costs() -> None:
    cost = svm_like().full_cost
    result = Simulated().run(time_budget=5 * cost)
    used = sum(trial.cost for trial in result.trials)
    assert used > 2.5 * 5 * cost
    assert result.elapsed == pytest.approx(max(trial.elapsed for trial in result.trials))
    # What began before the end is finished, and nothing begins after it.
    begun = [trial.elapsed - trial.cost for trial in result.trials]
    assert max(begun) < 5 * cost
    assert result.elapsed >= 5 * cost


class SlowToStart(Workers):
    """Workers that take long to start."""

    def start(self, timeout: float) -> None:
        self._clock.advance(1000.0 * self._problem.full_cost)


@pytest.mark.parametrize("before", [0, 5])
def test_the_start_of_the_workers_does_not_count_towards_the_budget(before: int) -> None:
    cost, results = svm_like().full_cost, list[Result]()
    for kind in (Workers, SlowToStart):
        storage = MemoryStorage()
        if before:
            Simulated(storage).run(max_trials=before)
        simulated = Simulated(storage)
        simulated.backend = kind(simulated.problem, 4, simulated.clock, 0.5, np.random.default_rng(0))
        results.append(simulated.run(time_budget=5 * cost))
    usual, slow = results
    assert [trial.elapsed for trial in slow.trials] == pytest.approx(
        [trial.elapsed for trial in usual.trials]
    )
    assert slow.elapsed == pytest.approx(usual.elapsed)
    assert len(slow.trials) > before + 5


class LoadsWhen:
    """Data that are loaded when a file exists."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __setstate__(self, state: dict[str, Path]) -> None:
        wait_until(state["file"].exists)
        self.__dict__.update(state)


@pytest.mark.slow
def test_the_budget_of_worker_processes_starts_when_the_data_are_loaded(tmp_path: Path) -> None:
    def objective(config: dict[str, Any], size: int, data: LoadsWhen) -> float:
        return float(data.file.stat().st_size)

    storage, go = MemoryStorage(), tmp_path / "go"
    thread = threading.Timer(1.0, go.write_text, ["now"])
    thread.start()
    result = minimize(
        objective, data=LoadsWhen(go), time_budget=1.0, grace=PATIENCE, workers=2, storage=storage
    )
    assert {trial.status for trial in result.trials} == {"complete"}
    assert storage.run_budget is not None
    assert storage.run_budget.started >= go.stat().st_mtime


class InterruptedStart(Workers):
    """Ctrl-C is pressed while the workers start."""

    def start(self, timeout: float) -> None:
        signal.raise_signal(signal.SIGINT)


def test_ctrl_c_while_the_workers_start_ends_the_run_with_its_result() -> None:
    simulated = Simulated()
    backend = InterruptedStart(simulated.problem, 4, simulated.clock, 0.5, np.random.default_rng(0))
    with Interrupts() as interrupts, simulated.study as study:
        run = Engine(study, backend, Budget(None, 10), Timer(simulated.clock)).run(None, interrupts)
    assert run.interrupted
    assert study.trials == ()


def test_workers_are_not_started_for_a_budget_that_is_used_up(tmp_path: Path) -> None:
    storage = MemoryStorage()
    minimize(bowl, max_trials=2, storage=storage)
    again = minimize(  # its data would never be loaded
        lambda config, size, data: 0.5,
        data=LoadsWhen(tmp_path / "never"),
        max_trials=2,
        workers=2,
        storage=storage,
    )
    assert len(again.trials) == 2


def test_a_continued_file_goes_on_at_the_clocks_time_unless_told_otherwise() -> None:
    storage, cost = MemoryStorage(), svm_like().full_cost
    first = Simulated(storage).run(time_budget=5 * cost)
    assert len(Simulated(storage).run(time_budget=5 * cost).trials) == len(first.trials)
    second = Simulated(storage).run(time_budget=10 * cost)
    assert second.elapsed == pytest.approx(10 * cost, rel=0.2)
    assert len(second.trials) > len(first.trials)
    third = Simulated(storage).run(time_budget=5 * cost, fresh_budget=True)
    assert third.elapsed == pytest.approx(5 * cost, rel=0.4)
    assert len(third.trials) > len(second.trials)
    fourth = Simulated(storage).run(max_trials=3, fresh_budget=True)
    assert len(fourth.trials) == len(third.trials) + 3
    stamps = [trial.elapsed for trial in fourth.trials]
    assert stamps == sorted(stamps)


def test_what_no_worker_started_before_the_end_was_never_asked_for() -> None:
    storage = MemoryStorage()
    result = Simulated(storage, overhead=2.0).run(time_budget=4 * svm_like().full_cost)
    record = Simulated(storage).study
    assert not any(trial.status == "abandoned" for trial in record.trials)
    assert len(record.trials) == len(result.trials)
    assert record.ask().id == len(result.trials)


class StartsThree(Workers):
    """Three workers that start one trial each and no more: the others wait until they are cancelled."""

    n_begun = 0

    def _begin(self, job: Job, start: float) -> None:
        self.n_begun += 1
        super()._begin(job, start)

    def _settle(self) -> None:
        waiting = self._waiting
        self._waiting = waiting if self.n_begun < 3 else deque()
        super()._settle()
        self._waiting = waiting


def test_a_run_whose_last_trials_are_all_cancelled_ends_without_a_warning() -> None:
    simulated = Simulated()
    simulated.backend = StartsThree(simulated.problem, 3, simulated.clock, 0.5, np.random.default_rng(0))
    result = simulated.run(time_budget=5 * svm_like().full_cost)  # warnings are errors
    assert [trial.status for trial in result.trials] == ["complete"] * 3


@pytest.mark.slow
def test_a_simulated_run_repeats_itself() -> None:
    runs = [
        simulate_workers(svm_like(), 4, seed=1, max_trials=24, overhead=0.1, effort=0.0) for _ in range(2)
    ]
    np.testing.assert_array_equal(runs[0][0].time, runs[1][0].time)
    np.testing.assert_array_equal(runs[0][0].regret, runs[1][0].regret)


def test_workers_do_not_wait_for_overhead_that_fits_beside_their_trials() -> None:
    problem = svm_like()
    overhead = 0.1 * problem.full_cost  # four fit well beside a trial; without that 0.88 would be the best
    _, used = simulate_workers(problem, 4, "random", seed=1, max_trials=200, overhead=overhead)
    assert used > 0.93


@pytest.mark.slow
def test_a_trial_that_no_worker_could_start_has_an_unknown_cost() -> None:
    class Closed(Executor):
        """Takes nothing."""

        def submit(self, *arguments: Any, **named: Any) -> Any:
            raise OSError("closed for today")

    storage = MemoryStorage()
    with pytest.raises(RuntimeError, match="closed for today"):
        minimize(bowl, max_trials=1, executor=Closed(), workers=1, storage=storage)
    with Study(SPACE, SIZE, strategy="random", storage=storage) as study:
        assert [(trial.status, trial.cost) for trial in study.trials] == [("abandoned", 0.0)]


SCRIPT = """
import signal, sys, time, fabolas
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a run in the background does not have
def objective(config, size):
    open(f"{sys.argv[2]}/begun", "a").write("x")
    time.sleep(0.3 if sys.argv[3] == "short" else 1000)
    return config["x"]
space = {"x": fabolas.Float(0.0, 1.0), "y": fabolas.Float(0.0, 1.0)}
result = fabolas.minimize(objective, space, {"size": (10, 1000)}, max_trials=1000, strategy="random",
                          storage=sys.argv[1], seed=0, workers=2)
print([trial.status for trial in result.trials])
"""


def begin(tmp_path: Path, length: str) -> "subprocess.Popen[str]":
    """A run of two workers as a script without `if __name__`; its file says that both have begun."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(tmp_path / "study.db"), str(tmp_path), length]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    begun = tmp_path / "begun"

    def both_run() -> bool:
        assert process.poll() is None, process.communicate()
        written = begun.exists() and len(begun.read_text()) >= 2
        return written and len(read(tmp_path / "study.db").started) == 2

    wait_until(both_run)
    return process


def outcomes(tmp_path: Path) -> list[tuple[str, float | None, float]]:
    with sqlite3.connect(tmp_path / "study.db") as connection:
        rows = connection.execute("SELECT status, elapsed, cost FROM outcome ORDER BY position").fetchall()
        (asked,) = connection.execute("SELECT count(*) FROM suggestion").fetchone()
    connection.close()
    assert asked == len(rows)
    return rows


@pytest.mark.slow
def test_ctrl_c_once_waits_for_the_running_trials(tmp_path: Path) -> None:
    process = begin(tmp_path, "short")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "waiting for the running trials; press it again" in err
    rows = outcomes(tmp_path)
    assert len(rows) >= 2
    assert {status for status, _, _ in rows} == {"complete"}
    assert out.strip() == str([status for status, _, _ in rows])


@pytest.mark.slow
def test_ctrl_c_twice_stops_now_and_the_time_that_trials_took_is_kept(tmp_path: Path) -> None:
    process = begin(tmp_path, "long")
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    said = iter(process.stderr.readline, "")
    assert any("press it again" in line for line in said)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out.strip() == "['abandoned', 'abandoned']"
    assert all(0 < cost < 60 and elapsed is not None for _, elapsed, cost in outcomes(tmp_path))


class Interrupted(Random):
    """Ctrl-C is pressed twice in its thought, which goes on until so many outcomes have come."""

    def __init__(self, path: Path, pressed: threading.Event, outcomes: int, at: int) -> None:
        super().__init__(Space(SPACE, SIZE))
        self.path, self.pressed, self.outcomes, self.at = path, pressed, outcomes, at
        self.asked = 0

    def suggest(self, *arguments: Any, **named: Any) -> Any:
        self.asked += 1
        if self.asked == self.at:
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGINT)
            self.pressed.set()
            wait_until(lambda: len(read(self.path).trials) >= self.outcomes)
        return super().suggest(*arguments, **named)


@pytest.mark.parametrize("lasting", [False, True])
def test_ctrl_c_twice_during_a_decision_loses_nothing_that_was_measured(
    lasting: bool, tmp_path: Path
) -> None:
    """Two of three trials end while the fourth is thought of; the third ends too, or lasts."""
    path, pressed, over = tmp_path / "study.db", threading.Event(), threading.Event()
    third = minimize(bowl, max_trials=3).trials[2].config["x"]

    def objective(config: dict[str, Any], size: int) -> float:
        pressed.wait()
        if lasting and config["x"] == third:
            over.wait()
        return float(config["x"])

    with ThreadPoolExecutor(3) as executor:
        try:
            result = minimize(
                objective,
                strategy=Interrupted(path, pressed, outcomes=3 - lasting, at=4),
                executor=executor,
                max_trials=9,
                storage=path,
            )
        finally:
            over.set()
    assert result.interrupted
    assert {trial.id: trial.status for trial in result.trials} == {
        0: "complete",
        1: "complete",
        2: "abandoned" if lasting else "complete",
    }
    assert all(trial.loss == trial.config["x"] for trial in result.trials if trial.status == "complete")
    assert read(path).trials == result.trials


def test_the_start_of_a_trial_is_recorded_when_it_happened_and_not_when_the_engine_read_it() -> None:
    class Slow(Random):
        """Thinks while the workers begin."""

        def suggest(self, *arguments: Any, **named: Any) -> Any:
            time.sleep(0.1)
            return super().suggest(*arguments, **named)

    class Diary(MemoryStorage):
        """Shows what it is told of starts."""

        def add_start(self, number: int, started: float) -> None:
            begun[number] = started
            super().add_start(number, started)

    begun: dict[int, float] = {}
    space = Space(SPACE, SIZE)
    with ThreadPoolExecutor(2) as executor:
        result = minimize(
            lambda config, size: Outcome(0.5, info={"called": time.time()}),
            strategy=Slow(space),
            storage=Diary(),
            max_trials=4,
            executor=executor,
        )
    for trial in result.trials:
        assert begun[trial.id] <= trial.info["called"]


@pytest.mark.slow
def test_a_killed_run_of_several_workers_goes_on_and_counts_its_time_once(tmp_path: Path) -> None:
    process = begin(tmp_path, "long")
    process.kill()
    process.communicate()
    with Study(SPACE, SIZE, strategy="random", storage=tmp_path / "study.db") as study:
        assert {trial.status for trial in study.trials} == {"abandoned"}
        assert study.elapsed == study.trials[-1].elapsed  # the longest of those that ran side by side
        assert len(study.trials) == 2  # the one prepared ahead is not lost: nobody had begun with it
        assert study.elapsed <= max(trial.cost for trial in study.trials) + 1e-9
    result = minimize(bowl, storage=tmp_path / "study.db", seed=0, max_trials=8, workers=2)
    assert len(result.trials) == 8
    straight = minimize(bowl, max_trials=8)
    assert {t.id: t.config for t in result.trials} == {t.id: t.config for t in straight.trials}


def test_a_file_in_use_is_refused_before_a_worker_starts(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    with Study(SPACE, SIZE, strategy="random", storage=path), pytest.raises(RuntimeError, match="in use"):
        minimize(bowl, max_trials=1, workers=2, storage=path)


@pytest.mark.slow
def test_stated_costs_use_up_the_budget_as_fast_as_the_workers_could() -> None:
    result = minimize(
        lambda config, size: Outcome(bowl(config, size), cost=100.0),
        time_budget=1000,
        workers=2,
        overhead=0.0,
    )
    assert len(result.trials) in (20, 21)
    assert result.elapsed == pytest.approx(1000.0, rel=0.1)


class Forgetful(Executor):
    """Accepts every trial and runs only the first ones; the futures of the others never end."""

    def __init__(self, n_run: int) -> None:
        self._left = n_run

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._left -= 1
        if self._left >= 0:
            future.set_result(function(*arguments, **named))
        return future


def test_a_run_ends_after_the_grace_period_although_trials_never_end() -> None:
    start = time.monotonic()
    with pytest.warns(RuntimeWarning, match=r"2 trials \(#\d, #\d\) had not ended 0.3 s after .*or grace"):
        result = minimize(bowl, time_budget=0.5, grace=0.3, executor=Forgetful(3), workers=2)
    assert time.monotonic() - start < PATIENCE
    assert [trial.status for trial in result.trials] == ["complete"] * 3 + ["abandoned"] * 2
    assert result.trials[-1].error == "it had not ended 0.3 s after the end of the time budget (see grace)"


@pytest.mark.slow
def test_worker_processes_are_killed_after_the_grace_period(tmp_path: Path) -> None:
    def hangs(config: dict[str, Any], size: int) -> float:
        (tmp_path / str(os.getpid())).touch()
        time.sleep(1000)
        return 0.0

    with pytest.warns(RuntimeWarning, match="no longer waited for"):
        result = minimize(hangs, time_budget=1.5, grace=0.2, workers=2)
    assert {trial.status for trial in result.trials} == {"abandoned"}
    for pid in [int(path.name) for path in tmp_path.iterdir()]:
        wait_until(lambda pid=pid: not Path(f"/proc/{pid}").exists())  # type: ignore[misc]


@pytest.mark.slow
def test_a_trial_that_ends_within_the_grace_period_is_kept() -> None:
    def slow(config: dict[str, Any], size: int) -> float:
        time.sleep(1.0)
        return 0.5

    with ThreadPoolExecutor(1) as executor:
        result = minimize(slow, time_budget=0.3, grace=20, executor=executor)
    assert [trial.status for trial in result.trials] == ["complete"]


def test_ctrl_c_while_closing_does_not_cost_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def press_and_close(self: Study) -> None:
        for _ in range(3):
            signal.raise_signal(signal.SIGINT)
        close(self)

    close = Study.close
    monkeypatch.setattr(Study, "close", press_and_close)
    result = minimize(bowl, max_trials=3)
    assert len(result.trials) == 3
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_before_the_first_suggestion_raises_as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pressed(MemoryStorage):
        def open(self, identity: Any) -> Any:
            signal.raise_signal(signal.SIGINT)
            return super().open(identity)

    with pytest.raises(KeyboardInterrupt):
        minimize(bowl, max_trials=3, storage=Pressed())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_fresh_budget_runs_something_even_if_the_incumbent_of_a_large_study_takes_longer() -> None:
    clock = Clock()

    class Slow(Random):
        """Computing the incumbent takes longer than the budget."""

        def incumbent(self, history: Any, *, verified_only: bool = False) -> Any:
            clock.advance(10.0)
            return super().incumbent(history, verified_only=verified_only)

    def objective(config: dict[str, Any], size: int) -> float:
        clock.advance(1.0)
        return 0.5

    storage, strategy = MemoryStorage(), Slow(Space(SPACE, SIZE))
    minimize(objective, max_trials=2, storage=storage, strategy=strategy, clock=clock)
    more = minimize(
        objective,
        time_budget=5.0,
        fresh_budget=True,
        storage=storage,
        strategy=strategy,
        clock=clock,
        progress=True,
    )
    assert len(more.trials) > 2
