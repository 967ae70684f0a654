"""Callbacks, stop conditions and the log of a run."""

import logging
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import fabolas
from fabolas import Outcome, Study, Trial
from fabolas.stopping import StopConditions, StopRules
from tests.helpers.marks import slow
from tests.helpers.problems import SIZE, SPACE, bowl, minimize


@pytest.mark.parametrize("where", ["inline", "threads", *slow("processes")])
def test_a_callback_gets_the_study_and_each_trial_after_it_is_recorded(where: str) -> None:
    seen: list[int] = []

    def callback(study: Study, trial: Trial) -> None:
        assert study.trials[-1] is trial
        seen.append(trial.id)

    with ThreadPoolExecutor(2) as executor:
        place: dict[str, Any] = {
            "inline": {},
            "processes": {"workers": 2},
            "threads": {"executor": executor},
        }[where]
        result = minimize(bowl, max_trials=5, callbacks=[callback], **place)
    assert seen == [trial.id for trial in result.trials]
    assert result.stopped is None


def test_a_callback_may_stop_the_run_and_the_result_says_so() -> None:
    def callback(study: Study, trial: Trial) -> None:
        if len(study.trials) == 3:
            study.stop("three are enough")

    result = minimize(bowl, max_trials=50, callbacks=[callback])
    assert len(result.trials) == 3
    assert result.stopped == "three are enough"
    assert not result.interrupted


@pytest.mark.parametrize("workers", [1, *slow(2)])
def test_an_exception_in_a_callback_is_raised_and_no_trial_is_lost(workers: int, tmp_path: Path) -> None:
    def objective(config: dict[str, Any], size: int) -> float:
        time.sleep(0.05)
        return float(config["x"])

    def callback(study: Study, trial: Trial) -> None:
        if len(study.trials) == 3:
            raise ZeroDivisionError("in the callback")

    path = tmp_path / "study.db"
    with pytest.raises(ZeroDivisionError, match="in the callback") as raised:
        minimize(objective, max_trials=50, callbacks=[callback], workers=workers, storage=path)
    assert "raised by a callback after trial" in raised.value.__notes__[0]
    with Study(SPACE, SIZE, strategy="random", storage=path) as study:
        assert 3 <= len(study.trials) <= 3 + workers
        assert all(trial.status == "complete" for trial in study.trials)


@pytest.mark.parametrize("callbacks", [print, [print, 3], {"print": print}])
def test_callbacks_that_cannot_be_called_are_refused_before_anything_runs(callbacks: Any) -> None:
    def never(config: dict[str, Any], size: int) -> float:
        raise AssertionError

    with pytest.raises(
        TypeError, match=r"callbacks must be a list of functions such as `def callback\(study"
    ):
        minimize(never, max_trials=1, callbacks=callbacks)


@pytest.mark.slow
def test_after_the_exception_of_a_callback_no_callback_is_called_again() -> None:
    calls: list[int] = []

    def first(study: Study, trial: Trial) -> None:
        calls.append(trial.id)
        raise ValueError("no")

    def second(study: Study, trial: Trial) -> None:
        raise AssertionError

    with pytest.raises(ValueError, match="no"):
        minimize(bowl, max_trials=9, workers=2, callbacks=[first, second])
    assert len(calls) == 1


def test_target_loss_ends_the_run_with_the_first_trial_at_the_target_that_reaches_it() -> None:
    losses = iter([0.9, 0.5, 0.3, 0.1])
    result = minimize(lambda config, size: next(losses), max_trials=4, target_loss=0.5)
    assert [trial.loss for trial in result.trials] == [0.9, 0.5]
    assert result.stopped == "a trial at the target has the loss 0.5, and target_loss is 0.5"


@pytest.mark.slow
def test_a_low_loss_below_the_target_does_not_count_as_reaching_target_loss() -> None:
    def objective(config: dict[str, Any], size: int) -> Outcome:
        return Outcome(0.0 if size < 1000 else 1.0, cost=size / 1000)

    result = fabolas.minimize(
        objective,
        SPACE,
        SIZE,
        max_trials=12,
        seed=0,
        target_loss=0.5,
        overhead=0.0,
        effort=0.0,
        progress=False,
    )
    assert len(result.trials) == 12
    assert result.stopped is None


def test_target_loss_has_the_sign_of_the_objective_when_it_is_maximized() -> None:
    scores = iter([0.2, 0.8, 0.9])
    result = minimize(lambda config, size: next(scores), max_trials=3, target_loss=0.7, direction="maximize")
    assert [trial.loss for trial in result.trials] == [0.2, 0.8]


def test_a_continued_study_that_has_reached_target_loss_runs_nothing(tmp_path: Path) -> None:
    minimize(lambda config, size: 0.1, max_trials=2, storage=tmp_path / "study.db")
    result = minimize(lambda config, size: 0.1, max_trials=9, target_loss=0.2, storage=tmp_path / "study.db")
    assert len(result.trials) == 2


def test_patience_ends_the_run_when_the_best_loss_has_not_improved_for_so_long() -> None:
    losses = [0.9, 0.8, 0.5, 0.495, 0.6, 0.7, 0.49, 0.1]
    left = iter(losses)
    result = minimize(
        lambda config, size: Outcome(next(left), cost=10.0),
        max_trials=8,
        patience=40.0,
        min_improvement=0.02,
        overhead=0.0,
    )
    # After 70 s the answer is 0.49, and 40 s before it was 0.5.
    assert [trial.loss for trial in result.trials] == losses[:7]
    assert result.stopped is not None
    assert "over the last 40 s (patience) is 0.01, and min_improvement is 0.02" in result.stopped


@pytest.mark.parametrize("sign", [1.0, *slow(-1.0)])
def test_the_improvement_of_the_answer_is_the_difference_that_the_models_predict_now(sign: float) -> None:
    direction: Any = "minimize" if sign > 0 else "maximize"
    with Study(SPACE, SIZE, direction=direction, seed=1, overhead=0.0, effort=0.0) as study:
        conditions = StopConditions(StopRules.of(None, 100.0), study)
        for n in range(16):
            # The first trial at the target, after the initial design, is a bad one.
            s = study.ask_for({"x": 0.95, "y": 0.95}) if n == 8 else study.ask(at_target=n > 8)
            conditions.note(study.tell(s, sign * bowl(s.config, **s.fidelity), cost=10.0))
            answer = study.incumbent()
            assert answer is not None
            early = len(study.trials) < 19  # the first trial at the target ends after 90 s
            assert conditions.answer_improvement(100.0) is None or not early
        before = [each for at, each in study.trajectory if at <= 130.0][-1]
        expected = study.predict(before.config).loss[0] - study.predict(answer.config).loss[0]
        assert conditions.answer_improvement(30.0) == pytest.approx(sign * expected)


@pytest.mark.slow
def test_a_run_with_models_loses_patience_when_its_answer_no_longer_improves() -> None:
    result = fabolas.minimize(
        lambda config, size: Outcome(0.2 + (config["x"] - 0.3) ** 2 + 1 / size, cost=size / 100),
        SPACE,
        SIZE,
        max_trials=120,
        patience=25.0,
        min_improvement=0.01,
        seed=0,
        overhead=0.0,
        effort=0.0,
        progress=False,
    )
    assert result.stopped is not None
    assert "patience" in result.stopped
    assert result.verified
    assert abs(result.best_config["x"] - 0.3) < 0.15


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"target_loss": "low"}, TypeError, "target_loss must be a number, got 'low'"),
        ({"target_loss": float("nan")}, ValueError, "target_loss must be finite"),
        ({"patience": "soon"}, ValueError, "patience must be a duration"),
        (
            {"patience": 1, "min_improvement": -1},
            ValueError,
            "min_improvement must be finite and >= 0, got -1",
        ),
        ({"grace": 5}, ValueError, "grace is the time after the end of a time_budget"),
    ],
)
def test_wrong_stop_conditions_are_sentences(
    arguments: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        minimize(bowl, max_trials=1, **arguments)


def test_the_log_has_the_start_each_trial_and_the_end(caplog: pytest.LogCaptureFixture) -> None:
    def objective(config: dict[str, Any], size: int) -> float:
        if not caplog.messages[1:]:
            raise OSError("disk \x1b[31mfull")
        return 0.25

    with caplog.at_level(logging.INFO, logger="fabolas"):
        minimize(objective, max_trials=3)
    assert caplog.messages[0] == "run started: random, seed 0, 3 trials, one at a time"
    assert caplog.messages[1].startswith(r"trial 0 failed: OSError: disk \x1b[31mfull, ")
    assert caplog.messages[2].startswith("trial 1 complete: loss 0.25, ")
    assert caplog.messages[2].endswith(", size=1000")
    assert caplog.messages[-1].startswith("run ended: 3 trials in ")
    assert len(caplog.messages) == 5
    assert {record.name for record in caplog.records} == {"fabolas"}


def test_without_configuration_nothing_of_the_log_is_on_the_terminal(
    capfd: pytest.CaptureFixture[str],
) -> None:
    minimize(bowl, max_trials=3)
    assert capfd.readouterr() == ("", "")
