"""When a training should stop: limits that follow from information per second."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fabolas


def search(stop_early: bool, **settings: Any) -> fabolas.Study:
    """Ten trainings known up to 16 epochs, the best near x = 0.4."""
    fidelity = fabolas.Fidelity(1, 64, reports=True)
    s = fabolas.Study(
        {"x": fabolas.Float(0.0, 1.0)},
        {"epochs": fidelity},
        seed=0,
        overhead=0.1,
        effort=0.3,
        stop_early=stop_early,
        n_initial=1,
        **settings,
    )
    for x in np.linspace(0.05, 0.95, 10):
        suggestion = s.ask_for({"x": float(x)}, {"epochs": 16})
        for epoch in range(1, 16):
            s.tell_report(suggestion, loss(float(x), epoch), 10.0 * epoch, epochs=epoch)
        s.tell(suggestion, loss(float(x), 16), cost=160.0)
    return s


def loss(x: float, epoch: int) -> float:
    return 0.1 + (x - 0.4) ** 2 + 0.5 / epoch


@pytest.fixture(scope="module")
def suggested() -> tuple[fabolas.Study, fabolas.Suggestion]:
    s = search(True)
    return s, s.ask(at_target=True)


def test_a_bad_training_stops_and_a_good_one_does_not(
    suggested: tuple[fabolas.Study, fabolas.Suggestion],
) -> None:
    s, suggestion = suggested
    rule = suggestion.stop_rule
    assert rule is not None
    assert suggestion.fidelity == {"epochs": 64}
    x = suggestion.config["x"]
    for value, limit in zip(rule.values, rule.losses, strict=True):
        predicted = s.predict({"x": x}, {"epochs": int(value)})
        assert 1 < value < 64
        assert limit > predicted.loss[0]  # only what is worse than expected stops
    assert rule.stops(63, 0.9)
    assert not rule.stops(63, loss(0.4, 63))


def test_nothing_stops_unless_asked_for() -> None:
    assert search(False).ask(at_target=True).stop_rule is None
    with pytest.raises(ValueError, match="stop_early: expected True or False, got 1"):
        search(1)  # type: ignore[arg-type]


def test_a_study_says_when_to_stop(suggested: tuple[fabolas.Study, fabolas.Suggestion]) -> None:
    s, suggestion = suggested
    assert s.tell_report(suggestion, 0.2, 10.0, epochs=2) is False
    assert s.tell_report(suggestion, 5.0, 400.0, epochs=40) is True
    trial = s.tell(suggestion, 5.0, cost=400.0, stopped=True)
    assert trial.status == "complete"
    assert trial.fidelity == {"epochs": 40}


def test_the_answer_does_not_depend_on_whether_trainings_may_stop() -> None:
    def answer(stop_early: bool) -> fabolas.Incumbent:
        s = search(stop_early)
        s.ask(at_target=True)
        incumbent = s.incumbent()
        assert incumbent is not None
        return incumbent

    assert answer(True) == answer(False)
