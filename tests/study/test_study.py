import math
import pickle
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabolas import Float, History, Incumbent, Integer, Outcome, Space, Study, Suggestion, load
from fabolas._types import Array
from fabolas.execution import Ended
from fabolas.storage import MemoryStorage, SqliteStorage
from fabolas.strategies import NAMES, Proposal, make, options_of
from fabolas.strategies.fabolas import Fabolas
from fabolas.trials import Trial
from tests.helpers.clock import Clock

SPACE = {"C": Float(1e-3, 1e3, log=True), "depth": Integer(1, 8), "layers": [(64,), (64, 64)]}
FIDELITIES = {"size": (100, 10_000)}


class Walk:
    """A strategy whose every step depends on all before it: through its state, the record and the clock."""

    name = "walk"

    def __init__(self, space: Space, clock: Clock | None = None, overhead: float = 0.0) -> None:
        self.space, self.clock, self.overhead = space, clock, overhead
        self.at: Array = np.full(space.dim + space.n_fidelities, 0.5)
        self.remaining: list[float | None] = []

    def suggest(
        self,
        history: History,
        pending: tuple[Suggestion, ...],
        rng: np.random.Generator,
        *,
        remaining: float | None = None,
        at_target: bool = False,
    ) -> Proposal:
        if self.clock:
            self.clock.now += self.overhead
        self.remaining.append(remaining)
        pull = float(np.nansum(history.losses)) + history.spent + len(pending)
        self.at = np.mod(self.at + rng.random(self.at.size) + 0.1 * pull, 1.0)
        return Proposal(self.space.snap(self.at[None])[0], "model", effort=0.5, predicted_cost=3.0)

    def incumbent(self, history: History, *, verified_only: bool = False) -> Incumbent | None:
        if self.clock:
            self.clock.now += self.overhead / 10
        done = [t for t in history.trials if t.loss is not None]
        if not done:
            return None
        best = min(done, key=lambda t: t.loss or 0.0)
        return Incumbent(best.config, best.loss or 0.0, 0.1, False, (best.id,))

    def state(self) -> dict[str, Array]:
        return {"at": self.at.copy()}

    def restore(self, state: dict[str, Array]) -> None:
        self.at = state["at"]


def study(**kwargs: Any) -> Study:
    settings: dict[str, Any] = {"strategy": "random", "seed": 0} | kwargs
    return Study(SPACE, FIDELITIES, **settings)


def loss_of(s: Suggestion) -> float:
    return float(np.sum((s.point - 0.3) ** 2))


def test_ask_and_tell_build_the_record() -> None:
    with study() as s:
        first, second = s.ask(), s.ask()
        assert (first.id, second.id) == (0, 1)
        assert s.pending == (first, second)
        s.tell(second, 0.5, cost=2.0, info={"accuracy": np.float32(0.5)})
        s.fail(first.id, "out of memory", cost=1.0, info={"rows": 7})
        assert not s.pending
        assert [(t.id, t.status, t.loss, t.cost, t.error) for t in s.trials] == [
            (1, "complete", 0.5, 2.0, None),
            (0, "failed", None, 1.0, "out of memory"),
        ]
        assert [t.info for t in s.trials] == [{"accuracy": 0.5}, {"rows": 7}]
        assert s.history.losses[0] == 0.5
        assert set(first.config) == set(SPACE)
        assert first.fidelity == {"size": 10_000}
        assert "2 trials (1 failed)" in repr(s)


def test_an_outcome_brings_its_cost_and_info() -> None:
    with study() as s:
        trial = s.tell(s.ask(), Outcome(0.5, cost=7.0, info={"a": 1}))
        assert (trial.loss, trial.cost, trial.info) == (0.5, 7.0, {"a": 1})
        with pytest.raises(TypeError, match="its own cost"):
            s.tell(s.ask(), Outcome(0.5), cost=1.0)


def test_without_a_cost_the_time_since_it_was_handed_out_counts() -> None:
    clock = Clock(1000.0)
    space = Space(SPACE, FIDELITIES)
    with Study(space, strategy=Walk(space, clock, overhead=0.25), seed=0, clock=clock) as s:
        first = s.ask()
        clock.now += 2.0
        second = s.ask()
        clock.now += 3.0
        assert s.tell(first, 0.5).cost == pytest.approx(5.25)
        assert s.fail(second, "boom").cost == pytest.approx(3.0)
        assert s.fail(s.ask(), "died before it began", cost=0.0).cost == 0.0  # nobody knows
        assert s.abandon(s.ask(), "not taken", cost=0.0).cost == 0.0
        assert s.tell(s.ask(), 0.5).cost == pytest.approx(1e-6)  # the clock stood still


def test_every_second_of_overhead_is_in_the_record() -> None:
    clock = Clock(1000.0)
    space = Space(SPACE, FIDELITIES)
    with Study(space, strategy=Walk(space, clock, overhead=0.5), seed=0, clock=clock) as s:
        first = s.ask()
        assert first.overhead == pytest.approx(0.5)
        clock.now += 2.0
        s.tell(first, 0.5)
        s.incumbent()
        s.incumbent()
        assert s.overhead == pytest.approx(0.6)
        second = s.ask()
        assert second.overhead == pytest.approx(0.6)
        clock.now += 1.0
        s.tell(second, 0.5)
        assert s.spent == pytest.approx(clock.now - 1000.0)


def test_a_fixed_overhead_is_recorded_whatever_the_clock_says() -> None:
    clock = Clock(1000.0)
    space = Space(SPACE, FIDELITIES)
    with Study(space, strategy=Walk(space, clock, 0.5), seed=0, clock=clock, overhead=0.125) as s:
        for _ in range(3):
            s.tell(s.ask(), 0.5, cost=1.0)
            s.incumbent()
        assert list(s.history.overheads) == [0.125] * 3
        assert s.overhead == 0.375
        assert s.spent == 3.375


def test_the_overhead_of_a_suggestion_counts_while_it_waits() -> None:
    clock = Clock(1000.0)
    space = Space(SPACE, FIDELITIES)
    with Study(space, strategy=Walk(space, clock, overhead=0.5), seed=0, clock=clock) as s:
        s.enqueue({"C": 2.0, "depth": 3, "layers": (64,)})
        assert [waiting.overhead for waiting in s.waiting] == [pytest.approx(0.5)]
        assert s.overhead == pytest.approx(0.5)
        s.ask()
        assert s.overhead == pytest.approx(0.5)


def test_failed_trials_of_another_study_can_be_added_with_their_unknown_cost(tmp_path: Path) -> None:
    with study(storage=tmp_path / "old.db") as old:
        old.fail(old.ask(), "died before it began", cost=0)
        old.tell(old.ask(), 0.5, cost=2.0)
    with study() as s:
        for trial in load(tmp_path / "old.db").trials:  # as in the docstring of `Study.add`
            s.add(trial.config, trial.fidelity, trial.loss, trial.cost)
        assert [(t.status, t.cost) for t in s.trials] == [("failed", 0.0), ("complete", 2.0)]
        assert s.add(s.trials[0].config, None, 0.25, 0.0).cost == 0.0
        for cost in (-1.0, math.inf):
            with pytest.raises(ValueError, match="a cost must be"):
                s.add(s.trials[0].config, None, 0.25, cost)


def test_the_models_suggest_although_no_cost_is_known() -> None:
    with study(strategy="fabolas", effort=0.0, overhead=0.1) as s:
        for _ in range(20):
            config, fidelity = s.space.decode(
                s.space.snap(np.random.default_rng(len(s.trials)).random((1, 4)))[0]
            )
            s.add(config, fidelity, len(s.trials) / 10, 0.0)
        suggestion = s.ask()
        assert suggestion.origin not in ("design", "random")
        assert suggestion.predicted_cost is not None


def test_the_seed_decides_and_a_drawn_one_can_be_used_again() -> None:
    def points(seed: int | None) -> tuple[int, list[float]]:
        with study(seed=seed) as s:
            return s.seed, [float(s.ask().point[0]) for _ in range(3)]

    drawn, first = points(None)
    assert points(drawn) == (drawn, first)
    assert points(drawn + 1)[1] != first


@pytest.mark.parametrize("kind", ["walk", "random"])
def test_a_study_closed_and_reopened_at_every_trial_suggests_the_same(kind: str, tmp_path: Path) -> None:
    def run(storage: Path | None, trials: int, s: Study | None = None) -> list[Suggestion]:
        asked = []
        for _ in range(trials):
            if s is None or storage is not None:
                space = Space(SPACE, FIDELITIES)
                strategy = Walk(space) if kind == "walk" else "random"
                s = Study(space, strategy=strategy, storage=storage, seed=5, overhead=0.01)
            asked.append(s.ask(remaining=10 - s.spent))
            s.tell(asked[-1], loss_of(asked[-1]), cost=0.5)
            if storage is not None:
                s.close()
        return asked

    straight, broken = run(None, 8), run(tmp_path / "study.db", 8)
    assert straight == broken
    for a, b in zip(straight, broken, strict=True):
        np.testing.assert_array_equal(a.point, b.point)


def test_a_suggestion_without_outcome_is_abandoned_on_reopening_and_keeps_its_id(tmp_path: Path) -> None:
    space = Space(SPACE, FIDELITIES)
    with Study(space, strategy=Walk(space), storage=tmp_path / "study.db", seed=0, overhead=0.5) as s:
        s.tell(s.ask(), 0.5, cost=1.0)
        lost = s.ask()
    with Study(space, strategy=Walk(space), storage=tmp_path / "study.db") as s:
        trial = s.trials[-1]
        assert trial.suggestion == lost
        assert trial.status == "abandoned"
        assert 0.0 <= trial.cost < 3.0  # less than predicted, since it was not begun with so long ago
        assert trial.error is not None
        assert trial.error.startswith("the study was closed")
        assert s.seed == 0
        assert s.spent == pytest.approx(1.0 + 0.5 + trial.cost + 0.5)
        with pytest.raises(ValueError, match=r"already ended \(abandoned: the study"):
            s.fail(lost, "boom")
        assert s.ask().id == 2


def test_the_cost_of_an_abandoned_trial_is_estimated_from_predictions_other_trials_and_the_time_since(
    tmp_path: Path,
) -> None:
    def lost_cost(started: float, predicted: float | None) -> float:
        path = tmp_path / f"{started}-{predicted}.db"
        with study(storage=path) as s:
            for cost in (2.0, 4.0, 60.0):
                s.tell(s.ask(), 0.5, cost=cost)
            s.ask(queued=True)
        with sqlite3.connect(path) as connection:
            connection.execute(
                "UPDATE suggestion SET started = ?, predicted_cost = ? WHERE id = 3", (started, predicted)
            )
        connection.close()
        with study(storage=path) as s:
            return s.trials[3].cost

    long_ago = time.time() - 3600.0
    assert lost_cost(long_ago, 7.0) == 7.0
    assert lost_cost(long_ago, None) == 4.0  # the median of what was completed
    assert lost_cost(long_ago, 1e6) == pytest.approx(3600.0, abs=60.0)
    assert lost_cost(time.time() + 3600.0, 7.0) == 0.0  # a clock that was set back


def test_several_abandoned_trials_ran_at_the_same_time_and_their_time_counts_once(tmp_path: Path) -> None:
    with study(storage=tmp_path / "study.db", overhead=0.0) as s:
        s.tell(s.ask(), 0.5, cost=5.0)
        for _ in range(3):
            s.ask()
    with sqlite3.connect(tmp_path / "study.db") as connection:
        connection.execute(
            "UPDATE suggestion SET started = started - 1000, predicted_cost = 10.0 * id WHERE id > 0"
        )
    connection.close()
    with study(storage=tmp_path / "study.db", overhead=0.0) as s:
        assert [trial.cost for trial in s.trials] == [5.0, 10.0, 20.0, 30.0]
        assert s.spent == 65.0
        assert s.elapsed == 35.0
        s.tell(s.ask(), 0.5, cost=4.0)  # and alone again
        assert s.elapsed == 39.0


@pytest.mark.parametrize("recorded", range(4))
def test_a_process_that_dies_while_it_ends_what_was_left_counts_its_time_once(
    recorded: int, tmp_path: Path
) -> None:
    class Dies(SqliteStorage):
        """Takes so many trials."""

        left = recorded

        def add_trial(self, trial: Trial) -> None:
            if self.left == 0:
                raise MemoryError
            self.left -= 1
            super().add_trial(trial)

    path = tmp_path / "study.db"
    with study(storage=path, overhead=0.0) as s:
        s.tell(s.ask(), 0.5, cost=5.0)
        for _ in range(3):
            s.ask()
    with sqlite3.connect(path) as connection:
        connection.execute(
            "UPDATE suggestion SET started = started - 1000, predicted_cost = 50.0 - 10 * id WHERE id > 0"
        )
    connection.close()
    with suppress(MemoryError):
        study(storage=Dies(path), overhead=0.0).close()
    with study(storage=path, overhead=0.0) as s:
        assert sorted(trial.cost for trial in s.trials) == [5.0, 20.0, 30.0, 40.0]
        assert s.elapsed == 45.0


def test_a_trial_lasts_from_its_start_and_not_from_when_the_study_was_told() -> None:
    clock = Clock(1000.0)
    with study(clock=clock) as s:
        first, second = s.ask(queued=True), s.ask(queued=True)
        s.start(first, at=time.time() - 60.0)
        s.start(second, at=time.time() + 60.0)  # by a clock that is wrong
        clock.now += 2.0
        assert s.running_for == pytest.approx({0: 62.0, 1: 2.0}, abs=1.0)
        assert s.abandon(first, "interrupted").cost == pytest.approx(62.0, abs=1.0)
        assert s.tell(second, 0.5).cost == pytest.approx(2.0)


def test_a_queued_suggestion_costs_nothing_until_it_is_started() -> None:
    clock = Clock(1000.0)
    with study(clock=clock) as s:
        first, second = s.ask(queued=True), s.ask(queued=True)
        clock.now += 100.0
        s.start(first)
        clock.now += 2.0
        assert s.tell(first, 0.5).cost == pytest.approx(2.0)
        assert s.abandon(second, "not needed").cost == 0.0
        assert s.abandon(s.ask(queued=True), "its machine is gone", cost=5.0).cost == 5.0  # stated


def test_a_cancelled_suggestion_was_never_asked_for(tmp_path: Path) -> None:
    def run(path: Path, cancel: bool) -> list[Suggestion]:
        space = Space(SPACE, FIDELITIES)
        with Study(space, strategy=Walk(space), storage=path, seed=4, overhead=0.5) as s:
            s.tell(s.ask(), 0.5, cost=1.0)
            running = s.ask()
            if cancel:
                for suggestion in [s.ask(queued=True) for _ in range(3)][::-1]:
                    s.cancel(suggestion)
                assert s.pending == (running,)
            s.tell(running, 0.25, cost=1.0)
        with Study(space, strategy=Walk(space), storage=path, seed=4, overhead=0.5) as s:
            assert [trial.status for trial in s.trials] == ["complete"] * 2
            return [s.ask(), s.ask()]

    assert run(tmp_path / "a.db", cancel=True) == run(tmp_path / "b.db", cancel=False)


@pytest.mark.parametrize("queued", [False, True])
def test_what_was_not_started_is_suggested_again_as_if_nothing_had_happened(
    queued: bool, tmp_path: Path
) -> None:
    def run(path: Path, killed: bool) -> list[Suggestion]:
        space = Space(SPACE, FIDELITIES)
        settings: dict[str, Any] = {"storage": path, "seed": 4, "overhead": 0.5}
        s = Study(space, strategy=Walk(space), **settings)
        s.tell(s.ask(), 0.5, cost=1.0)
        out = [s.ask(queued=True) for _ in range(2)]
        if killed:
            s.close()
            s = Study(space, strategy=Walk(space), **settings)
            assert (len(s.trials), s.pending) == (1, ())
            out = [s.ask(queued=queued) for _ in range(2)]
        assert s.pending == tuple(out)
        for suggestion in out:
            s.start(suggestion)
            s.tell(suggestion, 0.25, cost=1.0)
        asked = [t.suggestion for t in s.trials] + [s.ask(), s.ask()]
        s.close()
        return asked

    assert run(tmp_path / "a.db", killed=True) == run(tmp_path / "b.db", killed=False)


def test_what_was_suggested_again_and_cancelled_waits_for_the_next(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    with study(storage=path) as s:
        first, second = s.ask(queued=True), s.ask(queued=True)
    with study(storage=path) as s:
        for suggestion in [s.ask(queued=True) for _ in range(3)][::-1]:
            s.cancel(suggestion)
        assert s.pending == ()
    with study(storage=path) as s:
        assert [s.ask(queued=True), s.ask()] == [first, second]
        with pytest.raises(ValueError, match="only the last suggestion can be cancelled"):
            s.cancel(second)
    with study(storage=path) as s:
        assert [(t.id, t.status) for t in s.trials] == [(1, "abandoned")]
        assert s.tell(0, 0.5, cost=1.0).id == 0  # by a worker that began with it unseen
        assert s.ask().id == 2


def test_the_overhead_of_a_cancelled_suggestion_still_counts() -> None:
    clock = Clock(1000.0)
    space = Space(SPACE, FIDELITIES)
    with Study(space, strategy=Walk(space, clock, overhead=0.5), seed=0, clock=clock) as s:
        s.cancel(s.ask(queued=True))
        assert s.overhead == pytest.approx(0.5)
        assert s.ask().overhead == pytest.approx(1.0)


def test_only_the_last_suggestion_that_was_not_started_can_be_cancelled() -> None:
    with study() as s:
        first, second, begun = s.ask(queued=True), s.ask(queued=True), s.ask()
        for other in (first, second, begun):
            with pytest.raises(ValueError, match="only the last suggestion can be cancelled"):
                s.cancel(other)
        assert s.pending == (first, second, begun)


def test_an_abandoned_suggestion_may_be_told_after_all_and_once(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    with study(storage=path) as s:
        s.tell(s.ask(), 0.5, cost=1.0)
        remote = s.ask()
    with study(storage=path) as s:
        with pytest.raises(ValueError, match="it is not known when suggestion 1 was started"):
            s.tell(remote, 0.125)
        late = s.tell(remote.id, 0.125, cost=7.0)
        assert (late.id, late.config, late.loss, late.cost) == (2, remote.config, 0.125, 7.0)
        assert late.suggestion.origin == "readmitted:1"
        with pytest.raises(ValueError, match="already ended"):
            s.tell(remote, 0.125, cost=7.0)
        incumbent = s.incumbent()
        assert incumbent is not None
        assert incumbent.config == remote.config
    with study(storage=path) as s:
        assert [trial.status for trial in s.trials] == ["complete", "abandoned", "complete"]
        with pytest.raises(ValueError, match="already ended"):
            s.tell(remote, 0.125, cost=7.0)
        assert s.ask().id == 3


def test_an_interrupted_ask_leaves_nothing_behind() -> None:
    class Hasty(Walk):
        hurry = False

        def suggest(self, *args: Any, **kwargs: Any) -> Proposal:
            proposal = super().suggest(*args, **kwargs)
            if self.hurry:
                raise KeyboardInterrupt
            return proposal

    def run(interrupted: bool) -> list[Suggestion]:
        space = Space(SPACE, FIDELITIES)
        strategy = Hasty(space)
        with Study(space, strategy=strategy, seed=1, overhead=0.0) as s:
            first = s.ask()
            if interrupted:
                strategy.hurry = True
                with pytest.raises(KeyboardInterrupt):
                    s.ask()
                strategy.hurry = False
            return [first, s.ask()]

    assert run(True) == run(False)


def test_what_the_user_does_to_a_suggestion_does_not_reach_the_record() -> None:
    storage = MemoryStorage()
    with study(storage=storage) as s:
        asked = s.ask()
        kept = dict(asked.config)
        asked.config.clear()
        assert s.tell(asked, 0.5).config == kept


def test_random_search_names_the_lowest_loss_at_the_target() -> None:
    with study() as s:
        assert s.incumbent() is None
        s.fail(s.ask(), "boom")
        assert s.incumbent() is None
        for loss in (0.5, 0.25, 0.75):
            s.tell(s.ask(), loss)
        assert s.incumbent() == Incumbent(s.trials[2].config, 0.25, 0.0, True, (2,))


def unharmed(s: Study) -> tuple[Any, ...]:
    return s.trials, s.pending, s.history.spent


def test_bad_input_to_tell_is_a_sentence_and_changes_nothing(tmp_path: Path) -> None:
    with study(storage=tmp_path / "study.db") as s, study(seed=1) as other:
        told, asked, foreign = s.ask(), s.ask(), other.ask()
        s.tell(told, 0.5, cost=1.0)
        before = unharmed(s)
        wrong: list[tuple[type[Exception], str, Any]] = [
            (
                ValueError,
                r"already ended \(complete: loss 0.5\); tell each one once",
                lambda: s.tell(told, 0.5),
            ),
            (ValueError, r"already ended", lambda: s.fail(told, "boom")),
            (
                ValueError,
                r"suggestion 9 does not belong to this study; its pending suggestions are: 1",
                lambda: s.tell(9, 0.5),
            ),
            (ValueError, r"suggestion -1 does not belong to this study", lambda: s.tell(-1, 0.5)),
            (ValueError, r"does not belong to this study", lambda: s.tell(other.ask(), 0.5)),
            (ValueError, r"already ended|does not belong to this study", lambda: s.tell(foreign, 0.5)),
            (
                TypeError,
                r"expected what ask\(\) returned, or its id, got \{",
                lambda: s.tell(asked.config, 0.5),
            ),  # type: ignore[arg-type]
            (TypeError, r"a loss must be a single number, got None", lambda: s.tell(asked, None)),  # type: ignore[arg-type]
            (TypeError, r"a loss must be a single number, got '0.5'", lambda: s.tell(asked, "0.5")),  # type: ignore[arg-type]
            (ValueError, r"finite number, got nan; .*fail", lambda: s.tell(asked, math.nan)),
            (ValueError, r"finite number, got inf", lambda: s.tell(asked, np.float64("inf"))),
            (ValueError, r"between -1e\+100 and 1e\+100, got 1e\+200", lambda: s.tell(asked, 1e200)),
            (ValueError, r"between .*, got 1e\+200", lambda: s.add(asked.config, None, 1e200, 1.0)),
            (ValueError, r"between .*, got -1e\+200", lambda: s.tell(asked, Outcome(-1e200))),
            (ValueError, r"a cost must be .*> 0, got 0", lambda: s.tell(asked, 0.5, cost=0)),
            (ValueError, r"a cost must be .*> 0, got -1", lambda: s.fail(asked, "boom", cost=-1)),
            (TypeError, r"info must be a dict", lambda: s.tell(asked, 0.5, info=3)),  # type: ignore[arg-type]
        ]
        for kind, message, call in wrong:
            with pytest.raises(kind, match=message):
                call()
            assert unharmed(s) == before
        s.tell(asked, 0.25, cost=1.0)
    with study(storage=tmp_path / "study.db") as s:
        assert [t.loss for t in s.trials] == [0.5, 0.25]


def test_bad_input_to_a_study_is_a_sentence_and_makes_no_file(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    wrong: list[tuple[type[Exception], str, dict[str, Any]]] = [
        (
            ValueError,
            "no strategy 'fabulas'; choose one of fabolas, fabolas2017, mtbo, es, ei, hyperband, random",
            {"strategy": "fabulas"},
        ),
        (TypeError, "strategy must be one of", {"strategy": 3}),
        (TypeError, "'random' has no option overheat; it has no options", {"overheat": 1}),
        (ValueError, "seed must be a whole number >= 0, got -1", {"seed": -1}),
        (ValueError, "seed must be a whole number >= 0, got 0.5", {"seed": 0.5}),
        (ValueError, "overhead must be seconds >= 0, got -1", {"overhead": -1.0}),
        (ValueError, "overhead must be seconds >= 0, got 'x'; leave it out", {"overhead": "x"}),
        (ValueError, "overhead must be seconds >= 0, got nan", {"overhead": float("nan")}),
        (TypeError, "storage must be the name of a file or a Storage, got 3; leave it out", {"storage": 3}),
    ]
    for kind, message, arguments in wrong:
        with pytest.raises(kind, match=message):
            study(**({"storage": path} | arguments))
    assert list(tmp_path.iterdir()) == []


def test_another_space_is_refused_and_the_study_goes_on_with_its_own(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    with study(storage=path) as s:
        s.tell(s.ask(), 0.5, cost=1.0)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"another study and was left as it is: .*depth"):
        Study(SPACE | {"depth": Integer(1, 9)}, FIDELITIES, strategy="random", storage=path)
    with pytest.raises(ValueError, match=r"another study and was left as it is: .*size"):
        Study(SPACE, {"size": (100, 20_000)}, strategy="random", storage=path)
    assert path.read_bytes() == before
    with study(storage=path) as s:
        assert len(s.trials) == 1


def test_a_strategy_object_is_refused_if_it_decides_with_other_options(tmp_path: Path) -> None:
    path, space = tmp_path / "study.db", Space(SPACE, FIDELITIES)
    Study(space, strategy=Fabolas(space, target_share=0.5), storage=path, seed=0).close()
    with pytest.raises(
        ValueError, match=r"its strategy options are \{'target_share': 0.5\}, you asked for \{\}"
    ):
        Study(space, strategy=Fabolas(space), storage=path, seed=0)
    Study(space, strategy="fabolas", target_share=0.5, storage=path, seed=0).close()
    assert options_of(load(path).strategy) == {"target_share": 0.5}


def test_a_closed_study_says_so() -> None:
    s = study()
    asked = s.ask()
    s.close()
    s.close()
    for call in (s.ask, lambda: s.tell(asked, 0.5), lambda: s.fail(asked, "boom")):
        with pytest.raises(RuntimeError, match="closed"):
            call()


def test_a_made_strategy_is_taken_as_it_is_and_takes_no_options() -> None:
    space = Space(SPACE, FIDELITIES)
    walk = Walk(space)
    assert make(walk, space) is walk
    with pytest.raises(TypeError, match="already made"):
        make(walk, space, share=0.1)
    assert "random" in NAMES


def test_a_configuration_of_the_callers_own_is_recorded_and_learnt_from_like_any_other(
    tmp_path: Path,
) -> None:
    config = {"C": 2.0, "depth": 3, "layers": (64,)}
    with Study(SPACE, FIDELITIES, storage=tmp_path / "own.db", seed=0, overhead=0.0) as study:
        for _ in range(12):
            s = study.ask()
            study.tell(s, abs(math.log10(s.config["C"])) + 1.0, cost=1e-3 * s.fidelity["size"])
        own = study.ask_for(config)
        assert (own.config, own.fidelity, own.origin) == (config, {"size": 10_000}, "enqueued")
        study.tell(own, 0.01, cost=10.0)
        small = study.ask_for(config, {"size": 100})
        assert small.fidelity == {"size": 100}
        study.tell(small, 0.9, cost=0.1)
        incumbent = study.incumbent()
        assert incumbent is not None
        assert incumbent.config == config
        assert incumbent.trial_ids == (12, 13)
        assert study.ask().id == 14
        with pytest.raises(ValueError, match="unknown hyperparameter 'D'"):
            study.ask_for({**config, "D": 1})
    with Study(SPACE, FIDELITIES, storage=tmp_path / "own.db", seed=0, overhead=0.0) as study:
        assert study.trials[12].config == config


def test_a_closed_study_and_its_models_can_be_pickled(tmp_path: Path) -> None:
    for storage in (None, tmp_path / "study.db"):
        with Study(SPACE, FIDELITIES, storage=storage, seed=0, overhead=0.0) as study:
            for _ in range(16):
                s = study.ask()
                study.tell(s, abs(math.log10(s.config["C"])) + 1.0, cost=1e-3 * s.fidelity["size"])
        again = pickle.loads(pickle.dumps(study))
        assert again.trials == study.trials
        assert again.incumbent() == study.incumbent()


@pytest.mark.slow
def test_the_models_predict_loss_and_cost_of_any_point() -> None:
    study = Study(SPACE, FIDELITIES, seed=0, overhead=0.0)
    for n in range(25):
        s = study.ask(at_target=n >= 20)
        study.tell(s, 1.0 + abs(math.log10(s.config["C"])), cost=1e-3 * s.fidelity["size"])
    incumbent = study.incumbent()
    assert incumbent is not None
    assert not incumbent.preliminary
    prediction = study.predict(incumbent.config)
    assert prediction.loss[0] == pytest.approx(incumbent.loss)
    assert prediction.loss_std[0] == pytest.approx(incumbent.std)
    assert 3.0 < prediction.cost[0] < 30.0
    assert prediction.cost[0] < prediction.cost_limit[0] < 100.0


def asked_after(prepare: Callable[[Study], object]) -> list[Suggestion]:
    """Two suggestions of a study to which something was done before."""
    space = Space(SPACE, FIDELITIES)
    with Study(space, strategy=Walk(space), seed=4, overhead=0.5) as s:
        prepare(s)
        return [s.ask(), s.ask()]


def test_a_proposal_that_is_accepted_is_what_ask_returns() -> None:
    space = Space(SPACE, FIDELITIES)
    with Study(space, strategy=Walk(space), seed=4, overhead=0.5) as s:
        assert [s.accept(s.propose()), s.accept(s.propose())] == asked_after(lambda s: None)


def test_a_proposal_that_is_not_accepted_leaves_no_trace() -> None:
    def discarded(s: Study) -> None:
        s.propose()
        s.discard()
        s.discard()

    expected = asked_after(lambda s: None)
    assert asked_after(discarded) == expected
    assert asked_after(lambda s: s.propose()) == expected


def test_a_proposal_may_be_accepted_with_another_point() -> None:
    with study() as s:
        proposal = s.propose()
        config = {"C": 2.0, "depth": 3, "layers": (64,)}
        accepted = s.accept(replace(proposal, point=s.space.encode(config, {"size": 100})))
        assert (accepted.config, accepted.fidelity) == (config, {"size": 100})
        assert accepted.origin == proposal.origin
        assert accepted.predicted_cost is None  # that of the proposed point says nothing about this one
        assert s.pending == (accepted,)


def test_there_must_be_a_proposal_to_accept() -> None:
    with study() as s:
        proposal = s.propose()
        s.accept(proposal)
        with pytest.raises(ValueError, match=r"no proposal to accept; call propose\(\) first"):
            s.accept(proposal)
        assert len(s.pending) == 1


def test_a_prediction_needs_a_model_and_a_complete_trial() -> None:
    config = {"C": 2.0, "depth": 3, "layers": (64,)}
    with study() as s, pytest.raises(TypeError, match="'random' has no model to predict with"):
        s.predict(config)
    with (
        Study(SPACE, FIDELITIES, seed=0) as s,
        pytest.raises(ValueError, match="at least one complete trial"),
    ):
        s.predict(config)


def test_a_workers_report_of_a_failure_is_recorded_with_what_was_measured() -> None:
    with study() as s:
        s.ask()
        trial = s.tell_outcome(Ended(0, "failed", None, 2.0, {"folds": 2}, "boom"), elapsed=7.0)
        assert (trial.status, trial.cost, trial.info, trial.error) == ("failed", 2.0, {"folds": 2}, "boom")
        assert trial.elapsed == s.elapsed == 7.0
