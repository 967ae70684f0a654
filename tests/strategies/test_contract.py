"""What every strategy owes a study; a new one is covered by being registered."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabolas import Float, History, Incumbent, Integer, Space, Study, Suggestion, Trial
from fabolas._types import Array
from fabolas.strategies import NAMES, Strategy, make
from tests.helpers.marks import slow

# What every strategy owes does not depend on its effort, so they take little. That of `fabolas` follows from costs.
pytestmark = pytest.mark.usefixtures("little_effort")
SLOW = ("mtbo", "es", "ei")  # they share most of their code with `fabolas`
OPTIONS: dict[str, dict[str, Any]] = {name: {"effort": 0.3} for name in ("mtbo", "es", "ei")}


@pytest.fixture(params=[*(name for name in NAMES if name not in SLOW), *slow(*SLOW)])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def trials(name: str) -> int:
    return n_trials(name)


def n_trials(name: str) -> int:
    """Past the initial design, or past the first recommendation."""
    return 125 if name == "hyperband" else 12


def spaces() -> dict[str, Space]:
    numeric = {"x": Float(0.0, 1.0), "y": Float(1e-3, 1e3, log=True)}
    return {
        "size": Space(numeric, {"size": (50, 5000)}),
        "no fidelity": Space(numeric),
        "two fidelities": Space(numeric, {"size": (50, 5000), "epochs": (1, 20)}),
        "mixed": Space(
            {"x": Float(0.0, 1.0), "n": Integer(1, 4), "kind": ["a", "b", "c"], "five": 5},
            {"size": (50, 5000)},
        ),
        "tiny": Space({"flag": [True, False]}, {"size": (50, 5000)}),
    }


@pytest.fixture(params=list(spaces()))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def loss_of(space: Space, s: Suggestion) -> float:
    return float(np.sum((s.point[: space.dim] - 0.3) ** 2) + 0.1 * np.sum(1 - s.point[space.dim :]))


def cost_of(space: Space, s: Suggestion) -> float:
    return float(np.exp(3 * s.point[space.dim :].sum() - 3))


def drive(study: Study, trials: int, *, peek: bool = False) -> Iterator[Suggestion]:
    """Ask and tell; every fifth evaluation fails."""
    for _ in range(trials):
        s = study.ask(remaining=1000 - study.spent)
        if s.id % 5 == 4:
            study.fail(s, "boom", cost=cost_of(study.space, s))
        else:
            study.tell(s, loss_of(study.space, s), cost=cost_of(study.space, s))
        if peek:
            study.incumbent()
        yield s


def points(suggestions: list[Suggestion]) -> Array:
    return np.stack([s.point for s in suggestions])


def study(name: str, space: Space, **kwargs: Any) -> Study:
    return Study(space, strategy=name, **({"seed": 3, "overhead": 0.05} | OPTIONS.get(name, {}) | kwargs))


@dataclass(frozen=True)
class Driven:
    """A run in one go, without a look at the incumbent before its end."""

    points: Array  # (n, D)
    trials: tuple[Trial, ...]
    incumbent: Incumbent | None
    history: History
    state: dict[str, Array]  # of the strategy, at the end
    following: Array  # (D,) what it suggests next, with a generator of seed 0


@cache  # for all the tests that compare something with it
def driven(name: str, kind: str) -> Driven:
    with study(name, spaces()[kind]) as s:
        asked = points(list(drive(s, n_trials(name))))
        state = {key: np.array(array) for key, array in s.strategy.state().items()}
        incumbent = s.incumbent()
        following = s.strategy.suggest(s.history, (), np.random.default_rng(0), remaining=100.0).point
        return Driven(asked, s.trials, incumbent, s.history, state, following)


def restored(name: str, kind: str) -> Strategy:
    """A strategy in the state that it had after the run."""
    fresh = make(name, spaces()[kind], **OPTIONS.get(name, {}))
    fresh.restore(driven(name, kind).state)
    return fresh


def test_it_is_a_strategy_of_its_name(name: str, kind: str) -> None:
    made = make(name, spaces()[kind])
    assert isinstance(made, Strategy)
    assert made.name == name


def test_suggestions_are_legal_points_that_the_space_can_represent(name: str, trials: int, kind: str) -> None:
    space, asked = spaces()[kind], driven(name, kind).points
    assert asked.shape == (trials, space.dim + space.n_fidelities)
    assert np.all((asked >= 0) & (asked <= 1))
    np.testing.assert_array_equal(space.snap(asked), asked)
    assert space.is_legal(asked).all()


def test_the_incumbent_was_evaluated(name: str, kind: str) -> None:
    d, run = spaces()[kind].dim, driven(name, kind)
    best = run.incumbent
    assert best is not None
    of_it = {t.id: t for t in run.trials if t.status == "complete" and t.config == best.config}
    assert set(best.trial_ids) == set(of_it)
    assert best.verified == any(np.all(t.suggestion.point[d:] == 1) for t in of_it.values())
    assert np.isfinite([best.loss, best.std]).all()


def test_before_a_trial_is_complete_there_is_no_incumbent(name: str, kind: str) -> None:
    with study(name, spaces()[kind]) as s:
        assert s.incumbent() is None
        s.fail(s.ask(), "boom", cost=1.0)
        assert s.incumbent() is None


def test_another_seed_gives_other_suggestions(name: str) -> None:
    with study(name, spaces()["size"], seed=4) as s:
        others = points(list(drive(s, 3)))
    assert not np.array_equal(driven(name, "size").points[:3], others)


def test_the_same_record_and_seed_give_the_same_suggestions_also_if_one_looks_at_the_incumbent(
    name: str, trials: int
) -> None:
    with study(name, spaces()["size"]) as s:
        looked = points(list(drive(s, trials, peek=True)))
    np.testing.assert_array_equal(looked, driven(name, "size").points)


def test_closed_and_reopened_again_and_again_it_suggests_the_same(
    name: str, trials: int, tmp_path: Path
) -> None:
    space, straight = spaces()["size"], driven(name, "size")
    broken, at_once = [], 5 if name == "hyperband" else 1
    for _ in range(trials // at_once):
        with study(name, space, storage=tmp_path / "study.db") as s:
            broken += list(drive(s, at_once))
    np.testing.assert_array_equal(straight.points, points(broken))
    with study(name, space, storage=tmp_path / "study.db") as s:
        assert s.incumbent() == straight.incumbent


def test_its_state_is_arrays_and_restoring_it_restores_the_next_suggestion(name: str) -> None:
    run = driven(name, "size")
    assert all(array.dtype != object for array in run.state.values())
    again = restored(name, "size").suggest(run.history, (), np.random.default_rng(0), remaining=100.0).point
    np.testing.assert_array_equal(again, run.following)


@pytest.mark.slow
def test_it_goes_on_when_everything_fails_and_when_several_are_pending(name: str, trials: int) -> None:
    space = spaces()["size"]
    with study(name, space) as s:
        for _ in range(trials):
            s.fail(s.ask(), "boom", cost=0.1)
        waiting = [s.ask() for _ in range(4)]
        assert len({s.point.tobytes() for s in waiting}) == 4
        for suggestion in waiting:
            s.tell(suggestion, 0.5, cost=1.0)
        list(drive(s, trials))
        assert s.incumbent() is not None


CHEAP = [name for name in NAMES if name not in (*SLOW, "fabolas2017")]
CONSTANT = [[0.5], [0.0], [-1.0]]
MIXED = [[1e-12, 1e12], [-3.0, 0.0, 3.0]]


@pytest.mark.parametrize(
    ("name", "losses"),
    [
        *((name, losses) for name in CHEAP for losses in (*CONSTANT, *MIXED)),
        *(pytest.param("fabolas2017", losses, marks=pytest.mark.slow) for losses in (*CONSTANT, *MIXED)),
        *(pytest.param(name, losses, marks=pytest.mark.slow) for name in SLOW for losses in MIXED),
    ],
)
def test_constant_negative_and_huge_losses_break_nothing(name: str, trials: int, losses: list[float]) -> None:
    space = spaces()["size"]
    with study(name, space) as s:
        for i in range(trials):
            s.tell(s.ask(), losses[i % len(losses)], cost=1.0)
        best = s.incumbent()
    assert best is not None
    assert np.isfinite([best.loss, best.std]).all()


@pytest.mark.parametrize("begun", [False, True], ids=["at the start", "later"])
def test_with_no_time_left_it_still_answers(name: str, begun: bool) -> None:
    space = spaces()["size"]
    with study(name, space) as s:
        strategy, history = (
            (restored(name, "size"), driven(name, "size").history) if begun else (s.strategy, s.history)
        )
        for remaining in (None, 0.0, -5.0, 1e-9):
            proposal = strategy.suggest(history, (), np.random.default_rng(0), remaining=remaining)
            assert proposal.point.shape == (space.dim + space.n_fidelities,)
            assert np.array_equal(space.snap(proposal.point[None])[0], proposal.point)


@pytest.mark.parametrize("begun", [False, True], ids=["in the design", "later"])
@pytest.mark.parametrize("kind", ["size", "two fidelities", "mixed"])
def test_an_evaluation_at_the_target_can_be_asked_for(name: str, kind: str, begun: bool) -> None:
    space = spaces()[kind]
    with study(name, space) as s:
        if begun:
            strategy, history = restored(name, kind), driven(name, kind).history
        else:
            list(drive(s, 3))
            strategy, history = s.strategy, s.history
        proposal = strategy.suggest(history, (), np.random.default_rng(0), at_target=True)
    np.testing.assert_array_equal(proposal.point[space.dim :], 1.0)
    np.testing.assert_array_equal(space.snap(proposal.point[None])[0], proposal.point)
