"""Runs under a simulated clock whose answer has to be evaluated at the target."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fabolas
from experiments.asynchronous import Workers
from experiments.synthetic import svm_like
from fabolas import Float, Incumbent, Outcome, Result, Study, Trial, TrialContext
from fabolas.budget import Budget, Timer
from fabolas.engine import Engine
from fabolas.execution import Ended, Inline, Job
from fabolas.policy import AskUntilUsedUp, Policy
from fabolas.strategies.incumbent import prefer_verified
from fabolas.target_plan import VerificationRules
from fabolas.verification import VerifyingPolicy
from tests.helpers.clock import Clock
from tests.helpers.marks import slow
from tests.helpers.waiting import PATIENCE

FULL = 10_000
SPACE = {"x": Float(0.0, 1.0)}, {"size": (100, FULL)}

Loss = Callable[[float, int], float]


def honest(x: float, size: int) -> float:
    return 0.1 + (x - 0.4) ** 2 + 0.02 * (FULL / size) ** 0.5


def misleading(x: float, size: int) -> float:
    """Subsets below half the data prefer x = 0.2, where the loss at the target is bad."""
    return 0.1 + (x - 0.2) ** 2 if size < FULL / 2 else 0.1 + (x - 0.7) ** 2


def run(
    budget: Budget,
    loss: Loss = honest,
    *,
    policy: Policy | None = None,
    cost: float = 10.0,
    seed: int = 0,
    most: int = FULL,
    tick: float = 1e-4,
    growth: Callable[[float], float] = float,
) -> tuple[Result, Clock]:
    """A run in which an evaluation at the target takes `cost` seconds, and fails on more than `most` rows.

    One of a share s of the rows takes `growth(s)` times as long.

    Each reading of the clock takes `tick` seconds: the longer, the fewer evaluations of small subsets fit.
    """
    clock, rng = Clock(tick=tick), np.random.default_rng(seed)

    def evaluate(job: Job) -> Ended:
        size = int(job.fidelity["size"])
        seconds = cost * growth(size / FULL)
        clock.now += seconds
        if size > most:
            return Ended(job.id, "failed", None, seconds, error="too many rows")
        return Ended(job.id, "complete", loss(job.config["x"], size) + 1e-3 * rng.normal(), seconds)

    with Study(*SPACE, seed=seed, clock=clock, effort=0.0) as study:
        engine = Engine(
            study,
            Inline(evaluate),
            budget,
            Timer(clock),
            policy=policy or VerifyingPolicy(),
            max_failures=1000,
        )
        return Result(study, engine.run()), clock


@cache
def usual_run(seconds: float, seed: int) -> tuple[Result, Clock]:
    """A run of the honest problem, for all tests that look at one of this budget."""
    return run(Budget(seconds), seed=seed)


def at_target(trials: Sequence[Trial]) -> list[Trial]:
    return [trial for trial in trials if trial.fidelity["size"] == FULL]


@pytest.mark.parametrize(
    ("full_trainings", "seed"),
    [(2.0, 0), *(pytest.param(4.0, seed, marks=pytest.mark.slow) for seed in (0, 1))],
)
def test_a_short_run_ends_with_a_good_verified_answer_within_the_budget(
    full_trainings: float, seed: int
) -> None:
    seconds = 10.0 * full_trainings
    result, clock = usual_run(seconds, seed)
    assert clock.now < 1.1 * seconds
    assert result.verified
    assert abs(result.best_config["x"] - 0.4) < 0.15
    assert any(trial.config == result.best_config for trial in at_target(result.trials))


@pytest.mark.slow
def test_without_the_policy_a_short_run_ends_with_an_unverified_answer() -> None:
    result, _ = run(Budget(12.0), policy=AskUntilUsedUp())
    assert not result.verified
    result, _ = usual_run(20.0, 0)
    assert result.verified


@pytest.mark.parametrize("seed", slow(0, 1))
def test_if_the_incumbent_disappoints_another_one_is_evaluated_at_the_target(seed: int) -> None:
    result, _ = run(Budget(80.0), misleading, seed=seed, tick=1e-2)
    tried = [trial.config["x"] for trial in at_target(result.trials)]
    assert len(tried) >= 3
    assert abs(result.best_config["x"] - 0.7) < abs(tried[0] - 0.7)
    assert result.verified


def test_a_trial_that_verifies_the_answer_is_not_recorded_as_one_that_the_user_enqueued() -> None:
    result = fabolas.minimize(
        lambda config, size: honest(config["x"], size),
        *SPACE,
        max_trials=9,
        initial=[({"x": 0.9}, {"size": FULL}), ({"x": 0.1}, {"size": 100})],
        seed=0,
        overhead=0.0,
        progress=False,
    )
    origins = [trial.suggestion.origin for trial in result.trials]
    assert origins[:2] == ["enqueued", "enqueued"]
    assert origins[-1] == "verification"
    assert origins.count("enqueued") == 2


@pytest.mark.parametrize("seed", [0, *slow(1)])
def test_with_a_number_of_trials_the_last_ones_are_at_the_target(seed: int) -> None:
    result, _ = run(Budget(None, 15), seed=seed)
    assert [trial.fidelity["size"] for trial in result.trials[-3:]] == [FULL] * 3
    assert len(result.trials) == 15
    assert result.verified


@pytest.mark.slow
def test_a_budget_too_short_for_the_target_is_announced_early_and_kept() -> None:
    with pytest.warns(
        UserWarning, match=r"an evaluation at the target is predicted to take .*s, and .*s of the"
    ):
        result, _ = run(Budget(20.0), cost=100.0)
    assert at_target(result.trials) == []
    assert result.elapsed < 1.1 * 20.0
    assert not result.verified


@pytest.mark.parametrize(
    ("trainings", "growth"),
    [
        pytest.param(2.0, lambda s: s**1.5, id="n^1.5"),
        pytest.param(8.0, lambda s: 1.0, id="constant"),
        pytest.param(12.0, lambda s: 0.5 + 0.5 * s, id="half of it constant"),
    ],
)
def test_the_answer_is_verified_in_time_whatever_the_cost_depends_on(
    trainings: float, growth: Callable[[float], float]
) -> None:
    result, clock = run(Budget(10.0 * trainings), growth=growth, tick=1e-2)
    assert result.verified
    assert clock.now < 1.02 * 10.0 * trainings


@pytest.mark.filterwarnings("ignore:an evaluation at the target is predicted")
def test_once_there_is_an_answer_no_trial_begins_that_will_end_after_the_budget() -> None:
    result, clock = run(Budget(45.0), growth=lambda s: 1.0)  # every training takes 10 s
    assert len(result.trials) == 4
    assert clock.now < 45.0


def test_an_answer_that_cannot_be_verified_is_evaluated_at_the_largest_size_that_fits_at_last() -> None:
    with pytest.warns(UserWarning, match="the answer will not be verified"):
        result, clock = run(Budget(20.0), cost=100.0, tick=1e-2)
    last = [trial for trial in result.trials if trial.suggestion.origin == "verification"][-1]
    assert last.cost > 4.0
    assert clock.now < 1.02 * 20.0


def test_if_the_budget_may_be_exceeded_the_target_is_evaluated_once_with_a_warning() -> None:
    rules = VerificationRules(may_exceed=True, target_steps=True)
    with pytest.warns(
        UserWarning, match=r"predicted to take \d+ s, and \d+ s are left.*verify=False"
    ) as said:
        result, clock = run(Budget(20.0), cost=100.0, policy=VerifyingPolicy(rules))
    assert len(at_target(result.trials)) == 1
    assert result.verified
    assert clock.now < 130.0
    assert said[0].filename == __file__


@pytest.mark.slow
def test_a_run_whose_target_never_works_ends_in_time() -> None:
    result, clock = run(Budget(100.0), most=FULL // 2, tick=1e-2)
    failed = at_target(result.trials)
    assert 1 <= len(failed) <= 25
    assert all(trial.status == "failed" for trial in failed)
    assert not result.verified
    assert clock.now < 1.1 * 100.0


@pytest.mark.parametrize("workers", slow(4))
def test_with_several_workers_the_answer_is_verified_and_nothing_runs_twice_at_once(workers: int) -> None:
    problem, clock = svm_like(), Clock()
    backend = Workers(problem, workers, clock, 1.0, np.random.default_rng(0))
    with Study(problem.space, problem.fidelities, seed=1, overhead=1.0, clock=clock, effort=0.0) as study:
        budget = Budget(1.5 * problem.full_cost)
        result = Result(study, Engine(study, backend, budget, Timer(clock), policy=VerifyingPolicy()).run())
        full = study.space.is_at_target(study.history.points)
    assert result.verified
    points = [tuple(trial.suggestion.point) for trial in np.array(result.trials, dtype=Any)[full]]
    assert len(set(points)) == len(points)


def test_a_cheap_bad_configuration_at_the_target_does_not_become_the_answer() -> None:
    good = Incumbent({"x": 0.4}, 0.02, 0.003, verified=False, trial_ids=(1,))
    bad = Incumbent({"x": 0.9}, 0.9, 0.01, verified=True, trial_ids=(0,))
    close = Incumbent({"x": 0.5}, 0.025, 0.001, verified=True, trial_ids=(2,))
    assert prefer_verified(good, bad) is good
    assert prefer_verified(good, close) is close
    assert prefer_verified(good, None) is good


def sized(config: dict[str, Any], size: int) -> Outcome:
    return Outcome(honest(config["x"], size), cost=10.0 * size / FULL)


def minimized(objective: Any = sized, **settings: Any) -> Result:
    """A run whose seconds are the stated costs, however busy the machine is; with workers, the clock counts too."""
    usual: dict[str, Any] = {"seed": 0, "overhead": 0.001, "effort": 0.0, "progress": False}
    if not {"workers", "executor"} & settings.keys():
        usual["clock"] = Clock()
    return fabolas.minimize(objective, *SPACE, **(usual | settings))


@pytest.mark.slow
def test_minimize_verifies_its_answer_unless_told_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    verified = minimized(time_budget=28.0, storage=path)
    assert verified.verified
    assert fabolas.load(path).incumbent() == verified.incumbent()  # the answer in the file is that of the run
    unverified = minimized(time_budget=12.0, verify=False)
    assert not unverified.verified
    assert unverified.unverified is None
    assert "not verified at the target)" in str(unverified)


@pytest.mark.usefixtures("little_effort")
@pytest.mark.parametrize("strategy", ["random", *slow("ei", "mtbo", "fabolas2017", "hyperband")])
def test_every_strategy_runs_with_verification(strategy: str) -> None:
    options = {} if strategy in ("random", "hyperband", "fabolas2017") else {"effort": 0.0}
    trials = (
        140 if strategy == "hyperband" else 14
    )  # hyperband reaches the target at the end of its first bracket
    result = fabolas.minimize(
        sized, *SPACE, max_trials=trials, strategy=strategy, seed=0, overhead=0.001, progress=False, **options
    )
    assert len(result.trials) == trials
    assert result.verified


@pytest.mark.slow
def test_a_result_that_could_not_be_verified_says_why() -> None:
    def slow(config: dict[str, Any], size: int) -> Outcome:
        return Outcome(honest(config["x"], size), cost=1000.0 * size / FULL)

    with pytest.warns(UserWarning, match=r"the answer will not be verified. Give a longer time_budget"):
        result = minimized(slow, time_budget=100.0)
    assert result.unverified is not None
    assert "did not fit into what was left of the budget of 1m40s" in result.unverified
    assert f": {result.unverified})" in str(result)
    assert sum(trial.cost for trial in result.trials) < 110.0


@pytest.mark.slow
def test_an_answer_whose_evaluations_at_the_target_failed_says_so() -> None:
    def picky(config: dict[str, Any], size: int) -> Outcome:
        if size == FULL:
            raise MemoryError("too many rows")
        return sized(config, size)

    result = minimized(picky, max_trials=15, max_failures=100)
    assert not result.verified
    assert "evaluations at the target failed, the last one with: MemoryError: too many rows" in str(result)


@pytest.mark.parametrize("limit", [1, 2, 7])
def test_verification_does_not_exceed_the_number_of_trials(limit: int) -> None:
    assert len(minimized(max_trials=limit).trials) == limit


@pytest.mark.slow
def test_workers_and_executors_verify_too() -> None:
    def waiting(config: dict[str, Any], size: int) -> float:
        time.sleep(0.3 * size / FULL)
        return honest(config["x"], size)

    alone = minimized(waiting, max_trials=16, overhead=None, workers=2)
    with ThreadPoolExecutor(2) as executor:
        threads = minimized(waiting, max_trials=16, overhead=None, executor=executor)
    assert alone.verified
    assert threads.verified


@pytest.mark.slow
def test_the_last_trials_of_several_workers_are_different_configurations_at_the_target() -> None:
    trials, finalists = 12, 3
    arrived = threading.Barrier(finalists, timeout=PATIENCE)

    def objective(config: dict[str, Any], size: int, trial: TrialContext) -> float:
        if trial.number >= trials - finalists:
            arrived.wait()  # fails unless all of them run at the same time
        return honest(config["x"], size)

    with ThreadPoolExecutor(finalists) as executor:
        result = fabolas.minimize(
            objective,
            *SPACE,
            max_trials=trials,
            seed=0,
            n_initial=4,
            effort=0.0,
            target_share=0.0,
            executor=executor,
            progress=False,
        )
    by_number = sorted(result.trials, key=lambda trial: trial.id)
    assert [trial.status for trial in by_number] == ["complete"] * trials
    last = by_number[-finalists:]
    assert at_target(last) == last
    assert len({trial.config["x"] for trial in last}) == finalists
    # The search itself may suggest the target too; the finalists are other configurations.
    searched = at_target(by_number[:-finalists])
    assert not {trial.config["x"] for trial in last} & {trial.config["x"] for trial in searched}


@pytest.mark.slow
def test_a_file_may_be_continued_with_and_without_verification(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    minimized(max_trials=5, storage=path, verify=False)
    assert minimized(max_trials=15, storage=path).verified
    assert len(minimized(max_trials=16, storage=path, verify=False).trials) == 16


@pytest.mark.slow
def test_a_verifying_trial_records_the_predicted_cost_that_its_timeout_needs() -> None:
    result, _ = usual_run(40.0, 0)
    verifying = [t for t in result.trials if t.suggestion.origin == "verification"]
    assert verifying
    for trial in verifying:
        assert trial.suggestion.predicted_cost == pytest.approx(trial.cost, rel=2.0)


def test_time_that_nobody_records_does_not_make_the_last_evaluation_end_after_the_budget() -> None:
    clock = Clock()

    def objective(config: dict[str, Any], size: int) -> Outcome:
        clock.now += size / 1000
        return Outcome(honest(config["x"], size), cost=size / 1000)

    def slow_callback(study: Study, trial: Trial) -> None:
        clock.now += 0.5 * trial.cost  # is in no record

    settings: dict[str, Any] = {"seed": 0, "overhead": 0.05, "effort": 0.0, "clock": clock, "progress": False}
    result = fabolas.minimize(objective, *SPACE, time_budget=100.0, callbacks=[slow_callback], **settings)
    assert result.verified
    assert clock.now < 110.0
