"""What a strategy does when decisions take longer than evaluations: batches, many workers, the end of a budget."""

from typing import Any

import numpy as np

from fabolas import Float, Space, Study, Suggestion
from fabolas.strategies import Proposal
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


def test_with_many_workers_overhead_is_at_most_half_of_the_time_of_one_thread() -> None:
    """All workers wait for one strategy: with w of them it may take half of a trial's cost divided by w."""
    with run(14, full_cost=3000.0) as study:
        points = SPACE.snap(np.random.default_rng(1).random((15, 3)))
        pending = tuple(Suggestion(99 + i, *SPACE.decode(p), p, "information") for i, p in enumerate(points))
        strategy: Any = study.strategy
        alone, among_sixteen = (
            strategy._affordable_level(study.history, others, next_cost=1.0) for others in ((), pending)
        )
    # A decision at full effort takes 0.05 s, as recorded: a tenth of a trial of 1 s is enough for one, a
    # thirty-second part is not.
    assert alone == 1.0
    assert among_sixteen is None or among_sixteen < 0.9
