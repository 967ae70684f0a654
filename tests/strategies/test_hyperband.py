import math

import numpy as np
import pytest

from fabolas import Float, Space, Study, Suggestion
from fabolas.strategies.hyperband import Hyperband
from fabolas.trials import History, Trial

SPACE = Space({"x": Float(0.0, 1.0)}, {"size": (1, 81)})
NINE = Space({"x": Float(0.0, 1.0)}, {"size": (1, 9)})


def run(study: Study, trials: int) -> list[Suggestion]:
    asked = []
    for _ in range(trials):
        asked.append(study.ask())
        study.tell(asked[-1], asked[-1].config["x"], cost=1.0)
    return asked


def test_brackets_are_those_of_li_et_al_for_eighty_one_and_three() -> None:
    # Their table for R = 81 and eta = 3: (n_i, r_i) of s = 4, 3, 2, 1, 0.
    table = [
        [(81, 1), (27, 3), (9, 9), (3, 27), (1, 81)],
        [(34, 3), (11, 9), (3, 27), (1, 81)],
        [(15, 9), (5, 27), (1, 81)],
        [(8, 27), (2, 81)],
        [(5, 81)],
    ]
    hyperband = Hyperband(SPACE)
    for bracket, rungs in enumerate(table):
        assert [(r.count, 81 // 3**r.n_reductions) for r in hyperband.rungs(bracket)] == rungs
    assert hyperband.rungs(5) == hyperband.rungs(0)


@pytest.mark.parametrize(
    ("low", "high", "eta", "s_max"),
    [(1, 81, 3, 4), (1, 80, 3, 3), (1, 1000, 10, 3), (64, 16384, 3, 5), (9, 10, 3, 0)],
)
def test_there_are_as_many_n_reductions_as_the_range_allows(
    low: int, high: int, eta: float, s_max: int
) -> None:
    assert Hyperband(Space({"x": [0, 1]}, {"size": (low, high)}), eta=eta).s_max == s_max


def test_a_round_of_brackets_has_the_sizes_in_order_and_promotes_the_best() -> None:
    with Study(NINE, strategy="hyperband", seed=0) as study:
        asked = run(study, 9 + 3 + 1 + 5 + 1 + 3 + 9)
    sizes = [s.fidelity["size"] for s in asked]
    assert sizes == [1] * 9 + [3] * 3 + [9] + [3] * 5 + [9] + [9] * 3 + [1] * 9
    x = [s.config["x"] for s in asked]
    assert x[9:12] == sorted(x[:9])[:3]
    assert x[12] == min(x[:9])
    assert x[18] == min(x[13:18])
    assert len(set(x[:9] + x[13:18] + x[19:22] + x[22:])) == 26


def test_without_a_fidelity_it_is_random_search() -> None:
    with Study({"x": Float(0.0, 1.0)}, strategy="hyperband", seed=0) as study:
        xs = [s.config["x"] for s in run(study, 20)]
    assert len(set(xs)) == 20


def test_several_fidelities_shrink_together_and_stop_at_their_low_ends() -> None:
    space = Space({"x": Float(0.0, 1.0)}, {"size": (10, 810), "epochs": (3, 9)})
    with Study(space, strategy="hyperband", seed=0) as study:
        asked = run(study, 121)
    seen = list(dict.fromkeys((s.fidelity["size"], s.fidelity["epochs"]) for s in asked))
    assert seen == [(10, 3), (30, 3), (90, 3), (270, 3), (810, 9)]


def test_failed_trials_are_not_promoted_and_a_failed_bracket_ends() -> None:
    with Study(NINE, strategy="hyperband", seed=0) as study:
        first = [study.ask() for _ in range(9)]
        for s in first[:7]:
            study.fail(s, "boom", cost=1.0)
        for s in first[7:]:
            study.tell(s, 1.0, cost=1.0)
        promoted = run(study, 2)
        assert [s.config for s in promoted] == [s.config for s in first[7:]]
        last = study.ask()
        assert last.fidelity["size"] == 9
        study.fail(last, "boom", cost=1.0)
        assert study.ask().origin == "bracket 1 rung 0"


def test_while_a_rung_is_pending_the_next_bracket_begins_and_the_rung_is_caught_up_later() -> None:
    with Study(NINE, strategy="hyperband", seed=0) as study:
        first = [study.ask() for _ in range(9)]
        for s in first[1:]:
            study.tell(s, s.config["x"], cost=1.0)
        assert [study.ask().origin for _ in range(2)] == ["bracket 1 rung 0"] * 2
        study.tell(first[0], -1.0, cost=1.0)
        second = [study.ask() for _ in range(3)]
        assert [s.origin for s in second] == ["bracket 0 rung 1"] * 3
        assert second[0].config == first[0].config
        assert study.ask().origin == "bracket 1 rung 0"


def test_everything_follows_from_the_record_in_whatever_order_trials_end() -> None:
    with Study(NINE, strategy="hyperband", seed=0) as study:
        asked = run(study, 12)
        trials = [Trial(s, "complete", s.config["x"], 1.0) for s in asked]
        shuffled = History(tuple(trials[i] for i in np.random.default_rng(0).permutation(12)))
        proposals = [
            Hyperband(NINE).suggest(h, (), np.random.default_rng(0)) for h in (study.history, shuffled)
        ]
    assert proposals[0].origin == proposals[1].origin == "bracket 0 rung 2"
    np.testing.assert_array_equal(proposals[0].point, proposals[1].point)


def test_the_incumbent_is_the_best_at_full_size_and_there_is_none_before() -> None:
    with Study(NINE, strategy="hyperband", seed=0) as study:
        run(study, 12)
        assert study.incumbent() is None
        run(study, 1 + 5 + 1 + 3)
        best = study.incumbent()
    assert best is not None
    full = [t for t in study.trials if t.fidelity["size"] == 9]
    assert best.loss == min(t.loss for t in full if t.loss is not None)
    assert best.verified


@pytest.mark.parametrize("eta", [1.0, 0.5, math.nan, math.inf])
def test_an_eta_that_promotes_everything_is_refused(eta: float) -> None:
    with pytest.raises(ValueError, match=r"eta: expected a number above 1, usually 3 or 4, got"):
        Hyperband(SPACE, eta=eta)
