"""What a policy sees of a run, and what the engine does with its answers."""

import math
from typing import Any

import pytest

from fabolas import Incumbent, Study, Suggestion, Trial
from fabolas.budget import Budget, Timer
from fabolas.engine import Engine, RunSummary
from fabolas.execution import Ended, Inline, Job
from fabolas.policy import AskUntilUsedUp, Policy, RunState
from tests.helpers.clock import Clock
from tests.helpers.problems import SIZE, SPACE


def study(**options: Any) -> Study:
    return Study(SPACE, SIZE, strategy="random", seed=0, overhead=0.0, **options)


class Twice:
    """Runs one configuration at two sizes, and remembers what it was told."""

    config = {"x": 0.25, "y": 0.5}  # noqa: RUF012
    verifies = False

    def __init__(self) -> None:
        self.ended_trials: list[Trial] = []

    def next(self, run: RunState) -> Suggestion | None:
        if len(run.study.trials) == 2:
            return None
        return run.study.ask_for(self.config, {"size": 10 + 90 * len(run.study.trials)}, queued=True)

    def trial_ended(self, trial: Trial, run: RunState) -> None:
        assert run.study.trials[-1] == trial
        self.ended_trials.append(trial)

    def answer(self, run: RunState) -> Incumbent | None:
        return run.incumbent


def run(study: Study, policy: Policy, budget: Budget, **options: Any) -> RunSummary:
    backend = Inline(lambda job: Ended(job.id, "complete", float(job.config["x"]), 1.0))
    return Engine(study, backend, budget, Timer(Clock()), policy=policy, **options).run()


def test_the_policy_alone_decides_what_runs_and_when_the_run_ends() -> None:
    policy = Twice()
    with study() as s:
        ran = run(s, policy, Budget(None, 100))
        assert [trial.fidelity for trial in s.trials] == [{"size": 10}, {"size": 100}]
        assert {tuple(trial.config.items()) for trial in s.trials} == {tuple(Twice.config.items())}
        assert policy.ended_trials == list(s.trials)
    assert (ran.interrupted, ran.given_up) == (False, None)


def test_a_run_state_says_what_is_left_of_both_limits() -> None:
    clock = Clock()
    with study(clock=clock) as s:
        state = RunState(s, Budget(100.0, 5), Timer(clock))
        assert (state.seconds_left, state.trials_left, state.remaining) == (100.0, 5, 100.0)
        s.tell(s.ask(), 0.5, cost=30.0)
        s.ask()
        assert (state.used.seconds, state.seconds_left, state.used.trials, state.trials_left) == (
            30.0,
            70.0,
            1,
            3,
        )
        clock.now += 45.0  # more by the clock than by the record
        assert (state.used.seconds, state.seconds_left, state.remaining) == (45.0, 55.0, 70.0)
        assert not state.used_up
        clock.now += 55.0
        assert state.used_up
        unlimited = RunState(s, Budget(None, None), Timer(clock))
        assert (unlimited.seconds_left, unlimited.trials_left, unlimited.remaining) == (
            math.inf,
            math.inf,
            None,
        )


def test_stated_costs_count_as_time_when_the_incumbent_is_computed_again() -> None:
    """A computation of some seconds is due again after a hundred times as many of the budget, stated ones too."""
    clock = Clock(tick=1.0)
    with study(clock=Clock()) as s:
        state = RunState(s, Budget(1000.0), Timer(clock))
        s.tell(s.ask(), 0.5, cost=10.0)
        state.update_incumbent()
        clock.tick = 0.0
        assert not state.incumbent_is_due
        s.tell(s.ask(), 0.5, cost=500.0)
        assert state.incumbent_is_due


def test_what_the_study_used_before_a_run_counts_unless_the_budget_is_fresh() -> None:
    with study() as s:
        s.tell(s.ask(), 0.5, cost=30.0)
        counted = RunState(s, Budget(100.0, 5), Timer(Clock()))
        fresh = RunState(s, Budget(100.0, 5), Timer(Clock()), fresh_budget=True)
        assert (counted.used.seconds, counted.seconds_used_before, counted.used.trials) == (30.0, 30.0, 1)
        assert (fresh.used.seconds, fresh.seconds_used_before, fresh.used.trials) == (0.0, 0.0, 0)
        assert fresh.used.study_seconds == counted.used.study_seconds == 30.0


@pytest.mark.parametrize(("count_abandoned", "n_trials"), [(True, 4), (False, 5)])
def test_abandoned_trials_count_towards_the_number_of_trials_on_request(
    count_abandoned: bool, n_trials: int
) -> None:
    with study() as s:
        s.abandon(s.ask(), "interrupted")
        run(s, AskUntilUsedUp(), Budget(None, 4), count_abandoned=count_abandoned)
        assert len(s.trials) == n_trials


def test_a_backend_that_cannot_go_on_ends_the_run_and_says_why() -> None:
    def broken(job: Job) -> Ended:
        return Ended(job.id, "failed", cost=1.0, error="the licence has expired", fatal=True)

    with study() as s:
        ran = Engine(s, Inline(broken), Budget(None, 9), Timer(Clock())).run()
        assert [trial.status for trial in s.trials] == ["failed"]
    assert "no trial can be run any more" in (ran.given_up or "")
    assert "the licence has expired" in (ran.given_up or "")
