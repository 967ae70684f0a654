"""Continuing a training: what can be continued, at which price, and that the search does it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fabolas
from fabolas.strategies.continuation import Continuations
from fabolas.strategies.effort import Effort
from fabolas.strategies.fabolas import Fabolas
from tests.strategies.test_curves import study, train


def continuations(s: fabolas.Study, held: frozenset[int] | None = None) -> Continuations:
    return Continuations.of(s.space, s.history.with_checkpoints(held), s.pending)


def point(s: fabolas.Study, x: float, epochs: int) -> np.ndarray:
    return s.space.encode({"x": x}, {"epochs": epochs})


def test_a_larger_value_of_the_same_configuration_continues_its_last_trial() -> None:
    s = study()
    train(s, 0.2, 4)
    train(s, 0.2, 16, start=4)
    train(s, 0.6, 8)
    found = continuations(s)
    assert found.continues(point(s, 0.2, 32)) == 1
    assert found.continues(point(s, 0.2, 16)) is None  # not larger
    assert found.continues(point(s, 0.6, 9)) == 2
    assert found.continues(point(s, 0.61, 9)) is None


def test_what_is_pending_at_the_target_failed_or_abandoned_is_not_continued() -> None:
    s = study()
    train(s, 0.2, 4)
    train(s, 0.4, 64)
    assert continuations(s).continues(point(s, 0.2, 8)) == 0
    assert continuations(s, frozenset()).continues(point(s, 0.2, 8)) is None
    pending = s.ask_for({"x": 0.2}, {"epochs": 8})
    assert pending.continues == 0
    assert continuations(s).continues(point(s, 0.2, 16)) is None
    s.fail(pending, "out of memory", cost=1.0)
    assert continuations(s).continues(point(s, 0.2, 16)) is None


def test_with_rows_and_epochs_only_the_same_rows_are_continued() -> None:
    fidelities = {"rows": (10, 1000), "epochs": fabolas.Fidelity(1, 64, reports=True, resume=True)}
    with fabolas.Study({"x": fabolas.Float(0.0, 1.0)}, fidelities, seed=0) as s:
        first = s.ask_for({"x": 0.5}, {"rows": 100, "epochs": 4})
        s.tell(first, 0.5, cost=1.0)
        assert s.ask_for({"x": 0.5}, {"rows": 100, "epochs": 8}).continues == 0
        assert s.ask_for({"x": 0.5}, {"rows": 200, "epochs": 8}).continues is None


def test_what_a_continued_training_may_cost_is_limited_by_the_rest_of_it() -> None:
    s = study()
    for x, epochs in ((0.1, 4), (0.3, 16), (0.5, 32), (0.7, 8), (0.9, 64)):
        train(s, x, epochs)
    assert isinstance(s.strategy, Fabolas)
    effort, rng = Effort.at(0.0, 5), np.random.default_rng(0)
    fitted = s.strategy.models.fit(s.history, (), effort, True, rng)
    at = s.strategy.models.context(fitted, s.history, (), None, effort)
    points = np.array([point(s, x, epochs) for x in (0.1, 0.3, 0.5, 0.6) for epochs in (33, 64)])
    limit = at.cost_limit(points)
    whole = at.surrogate.cost_limit(points)
    assert (limit[:6] < whole[:6]).all()
    np.testing.assert_array_equal(limit[6:], whole[6:])  # a training from scratch
    for i, at_point in enumerate(points):
        assert replace(at, max_cost=1.001 * limit[i]).fits(at_point[None])
        assert not replace(at, max_cost=0.999 * limit[i]).fits(at_point[None])


@pytest.fixture(scope="module")
def searched() -> fabolas.Study:
    """A search where an epoch costs ten seconds and overhead nothing, so that decisions are about price."""
    s = study(effort=0.1)
    for _ in range(40 * 64):  # a trial costs ten seconds at least
        if s.spent >= 40 * 64:
            break
        suggestion = s.ask()
        start = 0 if suggestion.continues is None else s.trials[suggestion.continues].fidelity["epochs"]
        end = suggestion.fidelity["epochs"]
        loss = (suggestion.config["x"] - 0.4) ** 2 + 0.1
        for epoch in range(start + 1, end):
            s.tell_report(suggestion, loss + 1 / epoch, 10.0 * (epoch - start), epochs=epoch)
        s.tell(suggestion, loss + 1 / end, cost=10.0 * (end - start))
    return s


@pytest.mark.slow
def test_a_search_continues_trainings(searched: fabolas.Study) -> None:
    continued = [t for t in searched.trials if t.suggestion.continues is not None]
    assert len(continued) >= 2
    for trial in continued:
        before = searched.trials[trial.suggestion.continues or 0]
        assert before.config == trial.config
        assert before.fidelity["epochs"] < trial.fidelity["epochs"]
    incumbent = searched.incumbent()
    assert incumbent is not None
    assert abs(incumbent.config["x"] - 0.4) < 0.1


def test_the_predicted_cost_of_continuing_is_the_difference(searched: fabolas.Study) -> None:
    late = [t for t in searched.trials if t.suggestion.continues is not None and t.suggestion.predicted_cost][
        -5:
    ]
    assert late
    for trial in late:
        assert trial.suggestion.predicted_cost == pytest.approx(trial.cost, rel=0.5)


def test_hyperband_continues_what_it_promotes() -> None:
    with study(strategy="hyperband") as s:
        for _ in range(40):
            suggestion = s.ask()
            if suggestion.continues is not None:
                assert s.trials[suggestion.continues].config == suggestion.config
            s.tell(suggestion, suggestion.config["x"], cost=1.0)
        assert any(t.suggestion.continues is not None for t in s.trials)


def test_two_pending_trainings_do_not_continue_the_same_one() -> None:
    with study(effort=0.0) as s:
        for x in np.linspace(0.1, 0.9, 8):
            train(s, float(x), 4)
        handed_out = [s.ask() for _ in range(6)]
        continued = [suggestion.continues for suggestion in handed_out if suggestion.continues is not None]
        assert len(set(continued)) == len(continued)


def test_rows_and_epochs_together_are_searched_with_reports() -> None:
    fidelities = {"rows": (10, 1000), "epochs": fabolas.Fidelity(1, 27, reports=True, resume=True)}
    with fabolas.Study({"x": fabolas.Float(0.0, 1.0)}, fidelities, seed=0, overhead=0.1, effort=0.0) as s:
        for _ in range(16):
            suggestion = s.ask()
            rows, end = suggestion.fidelity["rows"], suggestion.fidelity["epochs"]
            start = 0
            if suggestion.continues is not None:
                before = s.trials[suggestion.continues]
                assert before.fidelity["rows"] == rows
                start = int(before.fidelity["epochs"])
            loss = 0.1 + (suggestion.config["x"] - 0.4) ** 2 + rows**-0.5
            for epoch in range(start + 1, end):
                s.tell_report(suggestion, loss + 1 / epoch, 1e-3 * rows * (epoch - start), epochs=epoch)
            s.tell(suggestion, loss + 1 / end, cost=1e-3 * rows * (end - start))
        assert s.trials[-1].suggestion.origin != "design"
        assert s.incumbent() is not None
