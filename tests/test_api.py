import math
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import loguniform, randint, uniform

import fabolas
from fabolas import Outcome, Result, Space, Study
from fabolas.storage import MemoryStorage
from fabolas.strategies.random import Random
from fabolas.trials import Trial
from tests.helpers.clock import Clock
from tests.helpers.problems import SIZE, SPACE, bowl, minimize


def test_the_result_is_the_best_of_what_was_tried() -> None:
    result = minimize(bowl, max_trials=20)
    losses = [trial.loss or 0.0 for trial in result.trials]
    assert len(losses) == 20
    assert result.predicted_loss == min(losses)
    assert bowl(result.best_config, 1000) == result.predicted_loss
    assert (result.predicted_std, result.verified, result.seed) == (0.0, True, 0)
    assert result.incumbent() is not None
    assert 1 <= len(result.trajectory) <= 20  # a look takes time, so not after each of trials this short
    assert result.trajectory[-1][1] == result.incumbent()
    times, best = zip(*[(t, incumbent.loss) for t, incumbent in result.trajectory], strict=True)
    assert list(times) == sorted(times)
    assert set(best) <= set(np.minimum.accumulate(losses))
    assert list(best) == sorted(best, reverse=True)
    assert (result.interrupted, result.given_up) == (False, None)


def test_a_time_budget_ends_the_run_and_counts_every_second() -> None:
    clock = Clock(tick=0.01)

    def slow(config: dict[str, Any], size: int) -> float:
        clock.now += 3.0
        return bowl(config, size)

    begin = clock.now
    result = minimize(slow, time_budget="10s", clock=clock)
    assert len(result.trials) == 4  # the fourth started before the end and was not cut off
    assert result.elapsed == pytest.approx(clock.now - begin, abs=0.05)
    # What the record does not hold is the loop's own glance at the clock.
    assert result.spent == pytest.approx(result.elapsed, abs=1.0)
    assert all(trial.cost == pytest.approx(3.0, abs=0.05) for trial in result.trials)
    assert 0 < result.overhead_share < 0.1


def test_overhead_is_a_share_of_the_time_that_passed_and_not_of_the_sum_of_costs() -> None:
    def slow(config: dict[str, Any], size: int) -> float:
        time.sleep(0.02)
        return bowl(config, size)

    with ThreadPoolExecutor(4) as executor:
        result = minimize(slow, max_trials=24, executor=executor)
    assert result.spent > 1.5 * result.elapsed  # four at a time
    assert result.overhead_share == pytest.approx(result.overhead / result.elapsed, rel=0.05)


def test_a_space_may_have_distributions_ranges_and_lists() -> None:
    space = {
        "C": loguniform(1e-3, 1e3),
        "x": uniform(-1, 3),
        "n": randint(2, 9),
        "k": range(1, 30, 2),
        "m": [1, "a"],
    }
    result = fabolas.minimize(
        lambda config: config["x"], space, max_trials=30, seed=0, progress=False, effort=0.0
    )
    for trial in result.trials:
        config = trial.config
        assert 1e-3 <= config["C"] <= 1e3
        assert -1 <= config["x"] <= 2
        assert config["n"] in range(2, 9)
        assert config["k"] in range(1, 30, 2)
        assert config["m"] in (1, "a")
    assert result.best_config["x"] < -0.8


def test_costs_that_the_objective_states_use_up_the_budget_too() -> None:
    result = minimize(
        lambda config, size: Outcome(bowl(config, size), cost=100.0), time_budget="1h", overhead=20.0
    )
    assert len(result.trials) == 30
    assert result.elapsed == result.spent == 3600.0
    assert result.overhead_share == pytest.approx(1 / 6)


def test_a_continued_file_counts_the_trials_and_the_time_already_spent(tmp_path: Path) -> None:
    def run(**limits: Any) -> Result:
        costly = lambda config, size: Outcome(bowl(config, size), cost=10.0)  # noqa: E731
        return minimize(costly, storage=tmp_path / "study.db", overhead=0.0, **limits)

    assert len(run(max_trials=3).trials) == 3
    assert len(run(max_trials=5).trials) == 5
    assert len(run(time_budget=80).trials) == 8
    again = run(time_budget=80)
    assert len(again.trials) == 8
    assert again.trajectory[-1][0] == 80.0  # all runs of the file are in it, as far as it was kept
    assert again.best_config == run(max_trials=1).best_config


def test_a_run_in_pieces_equals_a_run_in_one(tmp_path: Path) -> None:
    whole = minimize(bowl, max_trials=9, overhead=0.01)
    for trials in (1, 2, 5, 9):
        pieces = minimize(bowl, max_trials=trials, overhead=0.01, storage=tmp_path / "study.db")
    assert [t.config for t in pieces.trials] == [t.config for t in whole.trials]
    assert pieces.incumbent() == whole.incumbent()


def test_the_strategy_hears_what_the_record_leaves_of_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = []
    ask = Study.ask

    def spy(self: Study, *, remaining: float | None = None, queued: bool = False) -> Any:
        heard.append(remaining)
        return ask(self, remaining=remaining, queued=queued)

    monkeypatch.setattr(Study, "ask", spy)
    minimize(lambda config, size: Outcome(1.0, cost=2.0), time_budget=7.5, overhead=0.5)
    assert heard == [7.5, 5.0, 2.5]
    heard.clear()
    minimize(bowl, max_trials=2)
    assert heard == [None, None]


def test_a_failing_evaluation_is_recorded_with_its_reason_and_the_run_goes_on() -> None:
    def moody(config: dict[str, Any], size: int) -> Any:
        calls.append(1)
        match len(calls):
            case 1:
                raise ZeroDivisionError("no rows of class 3")
            case 2:
                return math.nan
            case 3:
                return None
            case 4:
                return "0.5"
            case 5:
                sys.exit(3)
            case 6:
                return Outcome(math.inf)
            case 7:
                return np.array([0.1, 0.2])
        return np.float32(0.5)

    calls: list[int] = []
    result = minimize(moody, max_trials=8)
    assert [trial.status for trial in result.trials] == ["failed"] * 7 + ["complete"]
    errors = [trial.error or "" for trial in result.trials]
    assert "ZeroDivisionError: no rows of class 3" in errors[0]
    assert "in moody" in errors[0]
    assert "evaluate.py" not in errors[0]
    for error, got in zip(errors[1:4], ("nan", "None", "'0.5'"), strict=True):
        assert error == f"the objective must return a finite number or an Outcome, got {got}"
    assert "SystemExit: 3" in errors[4]
    assert "finite number, got inf" in errors[5]
    assert "array" in errors[6]
    assert all(trial.cost > 0 for trial in result.trials)
    assert result.predicted_loss == 0.5
    assert "8 trials (7 failed)" in str(result)


def test_many_failures_in_a_row_end_the_run_and_leave_the_record(tmp_path: Path) -> None:
    def broken(config: dict[str, Any], size: int) -> float:
        calls.append(1)
        if len(calls) == 2:
            return 0.5
        raise OSError("disk full")

    calls: list[int] = []
    with pytest.warns(RuntimeWarning, match=r"3 trials in a row failed .*OSError: disk full"):
        result = minimize(broken, max_trials=100, max_failures=3, storage=tmp_path / "study.db")
    assert result.predicted_loss == 0.5
    assert not result.interrupted
    assert (result.given_up or "").startswith("3 trials in a row failed (max_failures)")
    with Study(SPACE, SIZE, strategy="random", storage=tmp_path / "study.db") as study:
        assert [trial.status for trial in study.trials] == [
            "failed",
            "complete",
            "failed",
            "failed",
            "failed",
        ]


@pytest.mark.parametrize("search", [fabolas.minimize, fabolas.maximize])
def test_the_warning_that_a_run_gave_up_points_to_the_line_that_started_it(search: Any) -> None:
    def broken(config: dict[str, Any]) -> float:
        calls.append(1)
        if len(calls) == 1:
            return 0.5
        raise OSError("disk full")

    calls: list[int] = []
    with pytest.warns(RuntimeWarning, match="in a row failed") as said:
        search(
            broken,
            {"x": fabolas.Float(0.0, 1.0)},
            strategy="random",
            max_trials=9,
            max_failures=3,
            progress=False,
        )
    assert [warning.filename for warning in said] == [__file__]


def test_a_run_that_never_completes_a_trial_ends_with_an_error() -> None:
    def broken(config: dict[str, Any], size: int) -> float:
        raise OSError("disk full")

    with pytest.raises(RuntimeError, match=r"4 trials in a row failed .*OSError: disk full"):
        minimize(broken, max_trials=100, max_failures=4)


@pytest.mark.parametrize(("times", "last"), [(1, "complete"), (2, "abandoned")])
def test_ctrl_c_once_finishes_the_trial_and_twice_stops_it_both_with_the_result_so_far(
    times: int, last: str
) -> None:
    def interrupted(config: dict[str, Any], size: int) -> float:
        calls.append(1)
        if len(calls) == 3:
            for _ in range(times):
                os.kill(os.getpid(), signal.SIGINT)
        return bowl(config, size)

    calls: list[int] = []
    result = minimize(interrupted, max_trials=100)
    assert [trial.status for trial in result.trials] == ["complete", "complete", last]
    assert (result.trials[2].error or "").startswith("interrupted" if times == 2 else "")
    assert result.incumbent() is not None
    assert (result.interrupted, result.given_up) == (True, None)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_twice_before_the_objective_is_called_stops_the_trial_too() -> None:
    class Interrupted(MemoryStorage):
        """The user presses Ctrl-C twice while it is being recorded that the third trial begins."""

        def add_start(self, number: int, started: float) -> None:
            super().add_start(number, started)
            if number == 2:
                signal.raise_signal(signal.SIGINT)
                signal.raise_signal(signal.SIGINT)

    called = list[dict[str, Any]]()
    result = minimize(lambda config, size: called.append(config) or 0.5, max_trials=10, storage=Interrupted())
    assert [trial.status for trial in result.trials] == ["complete"] * 2 + ["abandoned"]
    assert len(called) == 2


def test_an_impatient_third_ctrl_c_does_not_cost_the_answer() -> None:
    class Impatient(MemoryStorage):
        """The user presses Ctrl-C once more while what was stopped is being recorded."""

        def add_trial(self, trial: Trial) -> None:
            if trial.status == "abandoned":
                signal.raise_signal(signal.SIGINT)
            super().add_trial(trial)

    def objective(config: dict[str, Any], size: int) -> float:
        if len(seen) == 3:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        seen.append(config)
        return 0.5

    seen: list[Any] = []
    result = minimize(objective, max_trials=10, storage=Impatient())
    assert [trial.status for trial in result.trials] == ["complete"] * 3 + ["abandoned"]
    assert result.best_config == seen[0]


def test_ctrl_c_during_a_decision_takes_the_suggestion_back(tmp_path: Path) -> None:
    class Interrupted(Random):
        def suggest(self, history: Any, *args: Any, **kwargs: Any) -> Any:
            if len(history) == 2:
                os.kill(os.getpid(), signal.SIGINT)
            return super().suggest(history, *args, **kwargs)

    path = tmp_path / "study.db"
    result = minimize(bowl, max_trials=9, storage=path, strategy=Interrupted(Space(SPACE, SIZE)))
    assert [trial.status for trial in result.trials] == ["complete"] * 2
    whole = minimize(bowl, max_trials=9)
    assert [t.config for t in minimize(bowl, max_trials=9, storage=path).trials] == [
        t.config for t in whole.trials
    ]


def test_a_result_whose_last_trial_was_abandoned_does_not_say_that_it_failed() -> None:
    def interrupted(config: dict[str, Any], size: int) -> float:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        return 0.5

    result = minimize(interrupted, max_trials=2)
    with pytest.raises(
        RuntimeError, match="of 1 trial none completed; the last one was abandoned: interrupted"
    ):
        result.best_config  # noqa: B018


def test_a_result_without_a_trial_says_so() -> None:
    result = minimize(bowl, time_budget=1e-9)
    assert str(result) == "no answer: no trial has ended"
    assert result.trials == ()


def test_a_study_without_a_completed_trial_says_why_it_has_no_answer() -> None:
    with Study(SPACE, SIZE, strategy="random", seed=0) as study:
        for _ in range(2):
            study.fail(study.ask(), "out of memory")
        assert "no trial completed" in str(study)
        with pytest.raises(
            RuntimeError, match="of 2 trials none completed; the last one failed: out of memory"
        ):
            _ = study.best_config


def test_a_run_that_is_interrupted_while_all_trials_fail_returns_its_result() -> None:
    def broken(config: dict[str, Any], size: int) -> float:
        signal.raise_signal(signal.SIGINT)
        raise OSError("disk full")

    result = minimize(broken, max_trials=9)
    assert [trial.status for trial in result.trials] == ["failed"]
    assert result.interrupted


@pytest.mark.parametrize(
    "objective",
    [
        lambda config, **fidelities: 0.5,
        lambda *args, **kwargs: 0.5,
        lambda config, size=3, seed=0: 0.5,
        lambda config, *, size: 0.5,
    ],
)
def test_an_objective_may_take_its_fidelities_in_any_way_by_name(objective: Any) -> None:
    assert minimize(objective, max_trials=1).predicted_loss == 0.5


@pytest.mark.parametrize(
    "objective",
    [lambda config: 0.5, lambda size: 0.5, lambda config, n: 0.5, lambda config, size, other: 0.5, 3],
)
def test_an_objective_that_lacks_a_fidelity_is_refused_before_anything_runs(
    objective: Any, tmp_path: Path
) -> None:
    with pytest.raises(TypeError, match=r"def objective\(config, size\)"):
        minimize(objective, max_trials=1, storage=tmp_path / "study.db")
    assert list(tmp_path.iterdir()) == []


def test_without_fidelities_the_objective_takes_the_configuration_alone() -> None:
    assert minimize(lambda config: config["x"], fidelities=None, max_trials=3).verified
    with pytest.raises(TypeError, match=r"def objective\(config\)"):
        minimize(bowl, fidelities=None, max_trials=3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "needs a limit"),
        ({"time_budget": 0}, "more than 0 seconds"),
        ({"time_budget": "-3m"}, "must be a duration"),
        ({"time_budget": "soon"}, "must be a duration"),
        ({"max_trials": 0}, "at least 1"),
        ({"max_trials": 1, "max_failures": 0}, "max_failures must be a number >= 1, got 0; give"),
        ({"max_trials": 1, "max_failures": "a"}, "max_failures must be a number >= 1, got 'a'; give"),
        ({"max_trials": 1, "strategy": "none"}, "no strategy 'none'"),
        ({"max_trials": 1, "seed": -1}, "seed"),
    ],
)
def test_bad_arguments_are_sentences_and_nothing_runs(
    arguments: dict[str, Any], message: str, tmp_path: Path
) -> None:
    def never(config: dict[str, Any], size: int) -> float:
        raise AssertionError

    with pytest.raises(ValueError, match=message):
        minimize(never, storage=tmp_path / "study.db", **arguments)
    assert list(tmp_path.iterdir()) == []


def test_the_objective_may_change_its_configuration_without_changing_the_record() -> None:
    def greedy_batch(config: dict[str, Any], size: int) -> float:
        return float(config.pop("x"))

    result = minimize(greedy_batch, max_trials=2)
    assert all(trial.config["x"] == trial.loss for trial in result.trials)


def test_the_frame_has_a_row_for_every_trial() -> None:
    def some(config: dict[str, Any], size: int) -> float | None:
        return None if config["x"] < 0.5 else config["x"]

    result = minimize(some, max_trials=6, max_failures=6)
    frame = result.to_frame()
    assert list(frame["id"]) == list(range(6))
    assert list(frame["config_x"]) == [trial.config["x"] for trial in result.trials]
    assert set(frame["fidelity_size"]) == {1000}
    assert list(frame["loss"].isna()) == [trial.loss is None for trial in result.trials]


KILLED = """
import os, signal, sys, fabolas
calls = []
def objective(config, size):
    calls.append(1)
    if len(calls) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    return fabolas.Outcome(config["x"] + 1 / size, cost=size / 100)
space = {"x": fabolas.Float(0.0, 1.0), "y": fabolas.Float(0.0, 1.0)}
fabolas.minimize(objective, space, {"size": (10, 1000)}, max_trials=16, strategy=sys.argv[3], storage=sys.argv[1],
                 seed=0, overhead=0.02, verify=False, progress=False)
"""


def replayed(result: Result, strategy: str) -> list[bytes]:
    """What an uninterrupted study suggests that is told the same outcomes."""
    asked = []
    with Study(SPACE, SIZE, strategy=strategy, seed=0, overhead=0.02) as study:
        for trial in result.trials:
            suggestion = study.ask()
            asked.append(suggestion.point.tobytes())
            if trial.loss is None:
                study.abandon(suggestion, "as before", cost=trial.cost)
            else:
                study.tell(suggestion, trial.loss, cost=trial.cost)
    return asked


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["random", "fabolas", "hyperband"])
def test_a_run_killed_again_and_again_suggests_what_an_uninterrupted_one_does(
    strategy: str, tmp_path: Path
) -> None:
    path = tmp_path / "study.db"
    for trial in ("3", "9"):  # in the initial design, and after it
        command = [sys.executable, "-c", KILLED, str(path), trial, strategy]
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    costly = lambda config, size: Outcome(config["x"] + 1 / size, cost=size / 100)  # noqa: E731
    resumed = minimize(costly, max_trials=16, storage=path, overhead=0.02, strategy=strategy, verify=False)
    assert [t.id for t in resumed.trials] == list(range(16))
    assert [t.id for t in resumed.trials if t.status == "abandoned"] == [2, 11]
    assert [t.suggestion.point.tobytes() for t in resumed.trials] == replayed(resumed, strategy)
    if strategy == "random":  # which does not look at outcomes
        straight = minimize(costly, max_trials=16, overhead=0.02)
        assert [t.config for t in resumed.trials] == [t.config for t in straight.trials]


def test_progress_goes_to_standard_error_and_can_be_silenced(capsys: pytest.CaptureFixture[str]) -> None:
    minimize(bowl, max_trials=2, progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "2 / 2 trials" in shown.err
    minimize(bowl, max_trials=2)
    assert capsys.readouterr().err == ""


def test_texts_that_cannot_be_encoded_are_kept_all_the_same(tmp_path: Path) -> None:
    def objective(config: dict[str, Any], size: int) -> Outcome:
        if config["x"] < 0.5:
            raise ValueError("bad file \udcff")
        return Outcome(0.5, info={"file \udcfe": "\udcff", "digits": 10**5000})

    result = minimize(objective, storage=tmp_path / "study.db", max_trials=8)
    assert {trial.status for trial in result.trials} == {"complete", "failed"}
    for trial in minimize(objective, storage=tmp_path / "study.db", max_trials=8).trials:
        if trial.status == "failed":
            assert "bad file \\udcff" in (trial.error or "")
        else:
            assert trial.info == {"file \\udcfe": "\\udcff", "digits": hex(10**5000)}


def test_a_result_without_a_recommendation_says_so() -> None:
    result = minimize(lambda config, size: config["x"], strategy="hyperband", max_trials=3)
    assert result.incumbent() is None
    assert str(result).startswith("nothing to recommend yet: 3 trials")
    with pytest.raises(RuntimeError, match="after 3 trials the strategy recommends none for the target"):
        _ = result.best_config


@pytest.mark.parametrize("workers", [1, 2])
def test_a_short_run_whose_trials_all_fail_raises_with_the_last_error_and_its_traceback(workers: int) -> None:
    def broken(config: dict[str, Any], size: int) -> float:
        raise OSError("disk full")

    with pytest.raises(
        RuntimeError, match=r"no trial completed: 2 of 2 failed.*OSError: disk full"
    ) as raised:
        minimize(broken, max_trials=2, workers=workers)
    assert "in broken" in str(raised.value)
    assert 'raise OSError("disk full")' in str(raised.value)


def test_an_objective_whose_first_parameter_is_a_hyperparameter_is_refused_before_anything_runs() -> None:
    def wrong(x: float, size: int) -> float:
        raise AssertionError

    with pytest.raises(TypeError, match=r"takes x from it: config\['x'\]; got .* named 'x', which is a"):
        minimize(wrong, max_trials=1)

    class Model:
        def __call__(self, y: float, size: int) -> float:
            raise AssertionError

    with pytest.raises(TypeError, match="named 'y', which is a"):
        minimize(Model(), max_trials=1)


def test_what_happens_before_the_first_suggestion_does_not_count_towards_the_budget() -> None:
    clock = Clock()

    class Slow(MemoryStorage):
        def open(self, identity: Any) -> Any:
            clock.advance(1000.0)
            return super().open(identity)

    def objective(config: dict[str, Any], size: int) -> float:
        clock.advance(4.0)
        return 0.5

    result = minimize(objective, time_budget=10.0, storage=Slow(), clock=clock)
    assert len(result.trials) == 3
    assert result.elapsed == pytest.approx(12.0)


def test_a_second_run_whose_budget_is_used_up_says_that_nothing_was_run(tmp_path: Path) -> None:
    run = partial(
        fabolas.minimize,
        lambda config, size: config["x"],
        {"x": fabolas.Float(0.0, 1.0)},
        {"size": (10, 100)},
        max_trials=4,
        storage=tmp_path / "run.db",
        seed=0,
        progress=False,
    )
    assert "no trial was run now" not in str(run())
    assert "no trial was run now, because earlier runs of this study have used up the budget" in str(run())
    again = str(run(fresh_budget=True))
    assert "no trial was run now" not in again
    assert "the study was continued: 4 trials before, 4 now" in again


def test_a_second_run_that_ends_at_once_says_why(tmp_path: Path) -> None:
    run = partial(
        fabolas.minimize,
        lambda config: config["x"],
        {"x": fabolas.Float(0.0, 1.0)},
        strategy="random",
        storage=tmp_path / "run.db",
        seed=0,
        progress=False,
    )
    run(max_trials=4)
    text = str(run(max_trials=100, target_loss=1.0))
    assert "used up the budget" not in text
    assert "no trial was run now: a trial at the target has the loss" in text
