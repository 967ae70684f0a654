"""What a strategy does when decisions take longer than evaluations: batches, many workers, the end of a budget."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fabolas
from fabolas import Float, History, Space, Study, Suggestion
from fabolas.strategies import Proposal
from fabolas.strategies.candidate import Batch
from fabolas.strategies.effort import Effort, Pace
from fabolas.strategies.fitting import SurrogateFitter
from tests.helpers.problems import evaluate

SPACE = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)}, {"size": (64, 16384)})


def run(trials: int, full_cost: float, **options: Any) -> Study:
    """A study of a bowl; an evaluation on all the data costs `full_cost` seconds, each decision 0.05 s."""
    study = Study(SPACE, seed=0, overhead=0.05, **options)
    for _ in range(trials):
        evaluate(study, study.ask(), full_cost)
    return study


def next_proposal(study: Study, remaining: float | None = None) -> Proposal:
    """The next proposal of a fresh strategy with the study's state: asking again changes nothing."""
    before = study.strategy.state()
    proposal = study.strategy.suggest(study.history, (), np.random.default_rng(0), remaining=remaining)
    study.strategy.restore(before)
    return proposal


def test_a_decision_is_for_seven_evaluations_that_are_too_cheap_for_one_each() -> None:
    with run(10 + 3 * 7, full_cost=1e-3, target_share=0.0) as study:
        origins = [trial.suggestion.origin for trial in study.trials]
        points = np.array([trial.suggestion.point for trial in study.trials])
    assert origins == ["design"] * 10 + 3 * (["information"] + ["batch"] * 6)
    for together in points[10:].reshape(3, 7, 3):
        assert len(np.unique(together, axis=0)) == 7


def test_evaluations_that_cost_more_than_a_decision_are_decided_one_by_one() -> None:
    with run(16, full_cost=1e5) as study:
        assert "batch" not in [trial.suggestion.origin for trial in study.trials]


def test_the_last_evaluations_of_a_budget_are_not_decided_if_deciding_takes_longer_than_they_do() -> None:
    with run(13, full_cost=1e-3) as study:
        cheap = next_proposal(study)
        assert cheap.predicted_cost is not None
        assert cheap.predicted_cost < 0.05
        assert next_proposal(study, remaining=19 * cheap.predicted_cost).origin == "batch"


def test_the_last_twenty_evaluations_of_a_budget_are_decided_one_by_one() -> None:
    with run(13, full_cost=200.0) as study:
        cheap = next_proposal(study)
        assert cheap.origin == "batch"
        assert cheap.predicted_cost is not None
        assert next_proposal(study, remaining=21 * cheap.predicted_cost).origin == "batch"
        last = next_proposal(study, remaining=19 * cheap.predicted_cost)
        assert last.origin != "batch"
        assert last.predicted_cost is not None
        assert last.predicted_cost <= 19 * cheap.predicted_cost


def pending_suggestions(n: int) -> tuple[Suggestion, ...]:
    points = SPACE.snap(np.random.default_rng(1).random((n, 3)))
    return tuple(
        Suggestion(99 + i, *SPACE.decode(p), p, "information", overhead=0.05) for i, p in enumerate(points)
    )


def test_with_many_workers_overhead_is_at_most_half_of_the_time_of_one_thread() -> None:
    """All workers wait for one strategy: with w of them it may take half of a trial's cost divided by w."""
    with run(14, full_cost=3000.0) as study:
        # A decision at full effort takes 0.05 s, as recorded: a tenth of a trial of 1 s is enough for one, a
        # thirty-second part is not.
        alone = Pace.of(study.history, (), 1, 0.1)
        among_sixteen = replace(alone, n_workers=16, typical_cost=1.0)
    assert alone.affordable_level(1.0) == 1.0
    level = among_sixteen.affordable_level(1.0)
    assert level is None or level < 0.9


def test_with_many_workers_one_decision_is_for_as_many_evaluations_as_end_meanwhile() -> None:
    """64 workers, trials of about 0.1 s, decisions of 0.05 s: 32 trials end meanwhile, and a batch is at most 16."""
    with run(12, full_cost=1.0, target_share=0.0) as study:
        strategy, pending, origins = study.strategy, pending_suggestions(63), []
        for i in range(2 * 17):
            proposal = strategy.suggest(study.history, pending, np.random.default_rng(i))
            origins.append(proposal.origin)
            decoded = SPACE.decode(proposal.point)
            pending = (
                *pending[1:],
                Suggestion(200 + i, *decoded, proposal.point, proposal.origin, overhead=0.05),
            )
    first = origins.index("information")
    assert origins[first : first + 17] == ["information"] + 16 * ["batch"]
    points = np.array([s.point for s in pending])
    assert len(np.unique(points, axis=0)) == len(points)


def test_a_strategy_remembers_how_many_workers_there_are() -> None:
    with run(12, full_cost=1000.0) as study:
        strategy, history = study.strategy, study.history
        strategy.suggest(history, pending_suggestions(63), np.random.default_rng(0))
        other = fabolas.strategies.make("fabolas", SPACE)
        other.restore(strategy.state())
        # The others wait: the number of pending evaluations has fallen, and there is no more time than before.
        proposals = [s.suggest(history, (), np.random.default_rng(1)) for s in (strategy, other)]
        other.restore({name: value for name, value in strategy.state().items() if name != "workers"})
        alone = other.suggest(history, (), np.random.default_rng(1))
    assert [p.origin for p in proposals] == ["batch", "batch"]
    assert np.array_equal(proposals[0].point, proposals[1].point)
    assert alone.origin != "batch"


def test_many_workers_do_not_wait_for_two_decisions_when_hyperparameters_are_overdue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fits: list[bool] = []
    fit = SurrogateFitter.fit

    def counted(self: SurrogateFitter, history: History, effort: Effort, refit: bool, rng: Any) -> Any:
        fits.append(refit)
        return fit(self, history, effort, refit, rng)

    with run(11, full_cost=1.0) as study:
        strategy: Any = study.strategy
        monkeypatch.setattr(SurrogateFitter, "fit", counted)
        monkeypatch.setattr(SurrogateFitter, "refit_is_overdue", lambda self, history: True)
        strategy._batch = Batch.empty(3)
        strategy.suggest(study.history, pending_suggestions(63), np.random.default_rng(0))
    assert fits == [True]
