"""Curves as data: the training of each point, costs of continued trainings, and thinning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fabolas
from fabolas.model_spec import ModelSpec
from fabolas.strategies.curves import (
    MIN_CURVE_POINTS,
    POSITIONS,
    CurveReader,
    TrainingPart,
    reports_to_read,
    training_parts,
)

SPACE = {"x": fabolas.Float(0.0, 1.0)}


def study(**options: Any) -> fabolas.Study:
    fidelity = fabolas.Fidelity(1, 64, reports=True, resume=True)
    return fabolas.Study(SPACE, {"epochs": fidelity}, seed=0, overhead=0.1, **options)


def train(s: fabolas.Study, x: float, epochs: int, *, start: int = 0, end: bool = True) -> fabolas.Suggestion:
    """One second per epoch; the loss is x + 1 / epochs."""
    suggestion = s.ask_for({"x": x}, {"epochs": epochs})
    for epoch in range(start + 1, epochs):
        s.tell_report(suggestion, x + 1 / epoch, float(epoch - start), epochs=epoch)
    if end:
        s.tell(suggestion, x + 1 / epochs, cost=float(epochs - start))
    return suggestion


def read(s: fabolas.Study, limit: int = 600) -> Any:
    history = s.history
    trials = np.arange(len(history))
    return CurveReader(1).data(history, trials, ~history.abandoned, limit)


def test_every_point_has_the_loss_and_the_cost_until_then() -> None:
    s = study()
    train(s, 0.2, 8)
    train(s, 0.7, 4)
    data = read(s)
    epochs = np.rint(64 ** data.points[:, 1])
    np.testing.assert_allclose(data.losses, data.points[:, 0] + 1 / epochs)
    np.testing.assert_allclose(data.costs, epochs)
    assert set(data.points[:, 2]) == {0.0, 1.0}


def test_a_continued_training_is_one_training_at_the_cost_of_both() -> None:
    s = study()
    train(s, 0.2, 8)
    continued = train(s, 0.2, 32, start=8)
    assert continued.continues == 0
    data = read(s)
    epochs = np.rint(64 ** data.points[:, 1])
    np.testing.assert_allclose(data.costs, epochs)
    assert set(data.points[:, 2]) == {0.0}
    assert training_parts(s.history)[1].seconds_before == 8.0


def test_a_restarted_training_is_another_one_at_its_own_cost() -> None:
    s = study()
    train(s, 0.2, 8)
    suggestion = s.ask_for({"x": 0.2}, {"epochs": 16})
    s.tell(suggestion, 0.3, cost=16.0, restarted=True)
    assert training_parts(s.history)[1] == TrainingPart(1, 0.0)


def test_a_curve_is_read_at_few_points_that_are_spread_over_u() -> None:
    s = study()
    train(s, 0.2, 64)
    (trial,) = s.trials
    assert len(trial.reports) == 63
    u = sorted(trial.reports[j].point[1] for j in reports_to_read(trial, 1))
    assert len(u) == len(POSITIONS)
    np.testing.assert_allclose(u, sorted(np.array(POSITIONS) * trial.reports[-1].point[1]), atol=0.1)


def test_the_end_is_not_read_twice() -> None:
    s = study()
    suggestion = s.ask_for({"x": 0.5}, {"epochs": 2})
    s.tell_report(suggestion, 0.9, 1.0, epochs=1)
    s.tell_report(suggestion, 0.8, 2.0, epochs=2)
    s.tell(suggestion, 0.8, cost=2.5)
    assert sorted(np.rint(64 ** read(s).points[:, 1])) == [1.0, 2.0]


def test_many_curves_give_few_points_and_every_end_stays() -> None:
    s, rng = study(), np.random.default_rng(0)
    for x in rng.random(100):
        train(s, float(x), 16)
    data = read(s)
    assert len(data.points) == 100 + MIN_CURVE_POINTS
    assert np.isclose(data.points[:, 1], data.points[:, 1].max()).sum() == 100
    assert len(read(s, limit=110).points) == 110


def test_reports_of_a_training_that_never_ended_count() -> None:
    s = study()
    suggestion = train(s, 0.2, 20, end=False)
    s.abandon(suggestion, "lost", cost=19.0)
    train(s, 0.7, 4)
    data = read(s)
    lost = data.points[:, 2] == 0.0
    assert lost.sum() >= 4
    assert np.isclose(data.losses[lost].min(), 0.2 + 1 / 19)
    assert not data.failed.any()


def test_a_stopped_training_is_an_observation_where_it_stopped() -> None:
    s = study()
    suggestion = train(s, 0.2, 20, end=False)
    trial = s.tell(suggestion, 0.2 + 1 / 19, cost=19.0, stopped=True)
    assert trial.fidelity == {"epochs": 19}
    assert trial.status == "complete"
    np.testing.assert_allclose(np.rint(64 ** s.history.points[0, 1]), 19.0)
    assert s.incumbent() is not None
    assert not s.incumbent().verified  # type: ignore[union-attr]


def test_costs_from_fidelities_do_not_depend_on_the_clock() -> None:
    points = []
    for seconds in (1.0, 50.0):
        with study(effort=0.0, model=ModelSpec(cost_from_fidelity=True)) as s:
            for _ in range(14):
                suggestion = s.ask()
                for epoch in range(1, suggestion.fidelity["epochs"], 3):
                    s.tell_report(
                        suggestion, suggestion.config["x"] + 1 / epoch, seconds * epoch, epochs=epoch
                    )
                s.tell(suggestion, suggestion.config["x"], cost=seconds * suggestion.fidelity["epochs"])
            points.append([trial.suggestion.point.tolist() for trial in s.trials])
    assert points[0] == points[1]


def test_an_answer_with_reports_is_more_certain_of_the_shape() -> None:
    predicted = {}
    for reports in (True, False):
        fidelities = {"epochs": fabolas.Fidelity(1, 64, reports=reports)}
        with fabolas.Study(SPACE, fidelities, seed=0, overhead=0.1, effort=0.0) as s:
            for x in (0.1, 0.3, 0.5, 0.7, 0.9):
                suggestion = s.ask_for({"x": x}, {"epochs": 16})
                for epoch in range(1, 16) if reports else ():
                    s.tell_report(suggestion, (x + 0.1) / epoch**0.5, float(epoch), epochs=epoch)
                s.tell(suggestion, (x + 0.1) / 4.0, cost=16.0)
            s.tell(s.ask(), 0.5, cost=1.0)
            predicted[reports] = s.predict({"x": 0.3})
    truth = 0.4 / 8
    assert abs(predicted[True].loss[0] - truth) < abs(predicted[False].loss[0] - truth)


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("fabolas2017", "mtbo")]


@pytest.mark.usefixtures("little_effort")
@pytest.mark.parametrize("strategy", ["fabolas", "random", "hyperband", "ei", *SLOW])
def test_every_strategy_runs_with_reports(strategy: str) -> None:
    with study(strategy=strategy) as s:
        for _ in range(12):
            suggestion = s.ask()
            if suggestion.fidelity["epochs"] > 1:
                s.tell_report(suggestion, 0.9, 0.5, epochs=1)
            s.tell(suggestion, suggestion.config["x"] + 1 / suggestion.fidelity["epochs"], cost=1.0)
        longer = [trial for trial in s.trials if trial.fidelity["epochs"] > 1]
        assert len(s.trials) == 12
        assert all(len(trial.reports) == 1 for trial in longer)
        best = s.incumbent()
    assert best is None or best.config in [trial.config for trial in s.trials]
