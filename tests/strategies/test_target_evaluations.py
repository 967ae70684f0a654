"""Regular evaluations at the target: how often they come, and which configurations they take."""

from typing import Any

import pytest

from fabolas import Float, Integer, Space, Study
from fabolas.strategies.acquire import AcquisitionContext
from fabolas.strategies.fabolas import target_or_information
from tests.helpers.problems import bowl_loss, evaluate

SPACE = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)}, {"size": (64, 16384)})


@pytest.mark.slow
def test_target_evaluations_have_their_share_of_the_time() -> None:
    with Study(SPACE, seed=0, overhead=0.001, effort=0.0, target_share=0.5) as study:
        for _ in range(200):
            if study.spent >= 7.0:
                break
            evaluate(study, study.ask())
        # Where there is nothing left to learn, improvement decides before a target evaluation is due.
        aimed = [t.suggestion.origin in ("target", "improvement") for t in study.trials]
        costs, at_target = study.history.costs, study.history.points[:, 2] == 1.0
    assert at_target[aimed].all()
    first = aimed.index(True)  # before it the cost at the target is a guess
    assert costs[:first].sum() < 4.0
    assert costs[first:].sum() <= 2.0 * costs[aimed].sum() + 1.5


def test_an_information_evaluation_at_the_target_does_not_delay_a_target_evaluation() -> None:
    # Without a smaller size everything is at the target: what is measured for information, and what to improve.
    with Study(
        Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)}),
        seed=0,
        overhead=0.1,
        effort=0.0,
        target_share=0.5,
    ) as study:
        for _ in range(16):
            s = study.ask()
            study.tell(s, bowl_loss(s.point), cost=1.0)
        decided = [t.suggestion.origin for t in study.trials if t.suggestion.origin != "design"]
    assert decided.count("target") >= len(decided) // 2 - 1
    assert "information" in decided


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "share"), [(8, 1 / 3), (2, 1 / 2)])
def test_with_several_workers_target_evaluations_have_their_share_of_the_time(
    workers: int, share: float
) -> None:
    space = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})
    with Study(space, seed=0, overhead=0.001, effort=0.0, target_share=share) as study:
        for _ in range(60):  # the oldest ends whenever all workers have something to do
            study.ask()
            if len(study.pending) == workers:
                first = study.pending[0]
                study.tell(first, bowl_loss(first.point), cost=1.0)
        decided = [
            t.suggestion.origin for t in study.trials if t.suggestion.origin not in ("design", "batch")
        ]
        batch = [t.suggestion.origin for t in study.trials].count("batch")
    assert decided.count("target") / (len(decided) + batch) == pytest.approx(share, abs=0.15)


def test_with_a_share_of_one_every_trial_is_at_the_target_if_it_fits_into_what_is_left() -> None:
    with Study(SPACE, seed=0, overhead=0.001, effort=0.5, target_share=1.0) as study:
        for _ in range(10):
            evaluate(study, study.ask())
        origins = []
        for remaining in (10.0, 10.0, 0.1):  # a trial at the target costs 1
            s = study.ask(remaining=remaining)
            origins.append(s.origin)
            evaluate(study, s)
    assert origins == ["target", "target", "information"]


def test_a_target_evaluation_improves_on_pending_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    space = Space({"kind": list("abcdef")}, {"size": (10, 1000)})
    losses = dict(zip("abcdef", (0.5, 0.45, 0.1, 0.4, 0.42, 0.48), strict=True))
    rivals: list[set[str]] = []

    def spy(context: AcquisitionContext, *rest: Any) -> Any:
        at = context.domain.at_target(context.measured_or_pending)
        rivals.append({space.decode(point)[0]["kind"] for point in at})
        return target_or_information(context, *rest)

    with Study(space, seed=0, overhead=0.001, effort=0.0, target_share=1.0) as study:
        for size in (100, 500, 900):
            for kind, loss in losses.items():
                study.tell(study.ask_for({"kind": kind}, {"size": size}), loss, cost=size / 1000)
        study.tell(study.ask_for({"kind": "a"}), losses["a"], cost=1.0)
        monkeypatch.setattr(study.strategy, "_choose_next", spy)
        first, second = study.ask(), study.ask()
    assert {first.origin, second.origin} == {"target"}
    assert first.config["kind"] == "c"  # never measured there, and surely better than what was
    assert second.config["kind"] != "c"
    assert rivals == [{"a"}, {"a", "c"}]


@pytest.mark.slow
@pytest.mark.parametrize("fidelities", [{}, {"size": (10, 1000)}], ids=["none", "size"])
def test_no_configuration_is_evaluated_at_the_target_twice(fidelities: dict[str, tuple[int, int]]) -> None:
    space = Space({"k": Integer(0, 4), "kind": ["a", "b"]}, fidelities)  # ten configurations
    with Study(space, seed=0, overhead=0.001, effort=0.0, target_share=10 / 11) as study:
        for _ in range(40):
            s = study.ask()
            loss = 0.1 + 0.02 * abs(s.config["k"] - 3) + 0.01 * (s.config["kind"] == "a")
            study.tell(s, loss, cost=s.fidelity.get("size", 1000) / 1000)
    known: set[tuple[float, ...]] = set()
    n_target = 0
    for trial in study.trials:
        point = tuple(trial.suggestion.point)
        if trial.suggestion.origin in ("target", "improvement"):
            n_target += 1
            assert point not in known
        known.add(point)
    assert n_target > 2


def test_what_the_user_asked_for_at_the_target_counts_as_a_target_evaluation() -> None:
    with Study(
        SPACE, seed=0, overhead=0.001, effort=0.0, target_share=1 - 1e-6
    ) as study:  # one after anything else
        for _ in range(12):
            evaluate(study, study.ask())
        evaluate(study, study.ask_for({"x": 0.4, "y": 0.4}))
        after = study.ask()
        evaluate(study, after)
        assert (after.origin, study.ask().origin) == ("information", "target")


def test_when_nothing_informs_it_improves_at_the_target() -> None:
    space = Space({"flag": [True, False]}, {"size": (10, 1000)})
    origins = []
    with Study(space, seed=0, overhead=0.01, effort=0.5, target_share=0.0) as study:
        for _ in range(26):
            s = study.ask()
            origins.append((s.origin, s.fidelity["size"]))
            study.tell(s, 0.1 + 0.5 * s.config["flag"], cost=s.fidelity["size"] / 1000)
    assert ("improvement", 1000) in origins
