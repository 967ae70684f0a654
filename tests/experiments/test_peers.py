"""The comparison with other tools: its clock, its rules and its table. The tools' own packages are not needed."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fabolas
from experiments.clock import Clock
from experiments.peers import problems, summary
from experiments.peers.compare import BUDGET, Job, Journal, compare
from experiments.peers.session import LargestSoFar, OutOfTimeError, Session, configuration_space
from experiments.peers.tools import TOOLS, run
from experiments.simulate import Run


@dataclass
class Line:
    """The loss is x, and less with more epochs; an epoch costs a second."""

    name: str = "line"
    space: Any = field(default_factory=lambda: {"x": fabolas.Float(0.0, 1.0), "kind": ["a", "b"]})
    fidelities: Any = field(default_factory=lambda: {"epoch": (1, 27)})
    best: float = 0.0
    full_cost: float = 27.0

    def __call__(self, config: dict[str, Any], epoch: float, rng: np.random.Generator) -> tuple[float, float]:
        return config["x"] + 0.1 / epoch, float(epoch)

    def truth(self, config: dict[str, Any]) -> float:
        return float(config["x"])


def session(budget: float = 100.0, **options: Any) -> Session:
    return Session(Line(), 0, budget, max_trials=1000, clock=Clock(measured=False), **options)


GOOD, BAD = {"x": 0.1, "kind": "a"}, {"x": 0.9, "kind": "a"}


def test_a_training_of_the_same_configuration_continues_where_problems_do() -> None:
    runs = session(continues=True)
    assert runs.evaluate(GOOD, 9)[1] == 9.0
    assert runs.evaluate(GOOD, 27)[1] == 18.0  # goes on from epoch 9
    assert runs.evaluate(BAD, 27)[1] == 27.0  # another configuration
    assert runs.evaluate(GOOD, 3)[1] == 3.0  # shorter than the checkpoint: from scratch


def test_without_checkpoints_every_training_is_paid_in_full() -> None:
    assert [session().evaluate(GOOD, epoch)[1] for epoch in (9, 27)] == [9.0, 27.0]
    runs = session(continues=True)
    assert [runs.evaluate(GOOD, epoch, resume=False)[1] for epoch in (9, 27)] == [9.0, 27.0]


def test_the_answer_is_recorded_with_the_time_when_it_was_given() -> None:
    runs = session()
    runs.evaluate(BAD, 9)
    runs.answer(None)
    runs.evaluate(GOOD)
    runs.answer(GOOD)
    found = runs.result()
    np.testing.assert_array_equal(found.time, [9.0, 36.0])
    np.testing.assert_allclose(found.regret, [np.nan, 0.1])
    np.testing.assert_allclose(found.size, [1 / 3, 1.0])


def test_a_tool_that_owns_the_loop_is_ended_when_the_time_is_up() -> None:
    runs = session(budget=10.0)
    runs.evaluate(GOOD)  # the last one may end later than the budget
    with pytest.raises(OutOfTimeError):
        runs.evaluate(GOOD)


@pytest.mark.parametrize("tool", ["random", "hyperband"])
def test_tools_of_this_package_run_to_the_end_of_the_budget(tool: str) -> None:
    runs = session(budget=5 * 27.0)
    run(tool, runs)
    found = runs.result()
    assert found.time[-1] >= 5 * 27.0
    assert found.regret[-1] < 0.5
    assert np.diff(found.time).min() > 0.0


def test_halving_of_scikit_learn_ends_on_all_the_data() -> None:
    pytest.importorskip("sklearn")
    runs = session(budget=4 * 27.0)
    run("sklearn-halving", runs)
    sizes = runs.result().size * 27
    np.testing.assert_array_equal(np.unique(sizes.round()), [1, 3, 9, 27])
    # 27 configurations at the smallest size, 9, 3 and 1: the whole first fit costs four full trainings.
    assert [int((sizes[:40].round() == epochs).sum()) for epochs in (1, 3, 9, 27)] == [27, 9, 3, 1]


@pytest.mark.parametrize("tool", ["optuna-tpe", "optuna-hyperband"])
def test_optuna_answers_with_complete_trials_only(tool: str) -> None:
    pytest.importorskip("optuna")
    runs = session(budget=6 * 27.0, continues=True)
    run(tool, runs)
    found = runs.result()
    first = int(np.argmax(found.size == 1.0))
    assert np.isnan(found.regret[:first]).all()
    assert np.isfinite(found.regret[first:]).all()


def test_a_space_for_other_tools_has_the_same_ranges() -> None:
    space = configuration_space(Line(), seed=3)
    assert space["x"].lower == 0.0
    assert list(space["kind"].choices) == ["a", "b"]


def test_an_unknown_tool_is_refused_with_the_list_of_tools() -> None:
    with pytest.raises(ValueError, match="expected a tool among fabolas"):
        Job("mnist", "grid", 0)


def test_the_journal_keeps_changes_of_the_answer_and_the_end(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    nan = np.full(5, np.nan)
    finished = Run(
        np.arange(1.0, 6.0), np.array([np.nan, 0.2, 0.2, 0.1, 0.1]), np.ones(5), nan, np.zeros(5), nan, nan
    )
    job = Job("mnist", "random", 0)
    journal.add(job, finished)
    again = Journal(journal.path).runs[job.key]
    np.testing.assert_array_equal(again.time, [1.0, 2.0, 4.0, 5.0])
    np.testing.assert_array_equal(again.regret, [np.nan, 0.2, 0.1, 0.1])
    for distance in (0.05, 0.15, 0.25):
        assert again.stays_within(distance) == finished.stays_within(distance)
    for time in (0.5, 1.5, 3.5, 9.0):
        assert again.regret_at(time) == finished.regret_at(time)


def test_a_stopped_comparison_continues_with_what_is_missing(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    nan = np.full(1, np.nan)
    journal.add(Job("mnist", "random", 0), Run(np.ones(1), nan, nan, nan, nan, nan, nan))
    count, _ = compare(["mnist"], ["random", "hyperband"], [0, 1], None, Journal(journal.path), 1)
    assert count == 3


def test_the_committed_problems_have_a_lowest_and_a_typical_loss() -> None:
    for name in problems.NAMES:
        found = problems.known(name)
        assert 0.0 <= found.best < 1.0
        assert found.typical_regret >= problems.MIN_GAIN


def test_a_problem_of_yahpo_needs_its_directory() -> None:
    with pytest.raises(ValueError, match="--yahpo"):
        problems.load("lcbench/1", None)


def test_flat_tasks_and_tasks_without_cheap_sizes_are_not_suitable() -> None:
    assert problems.Screened("good", cost_ratio=0.1, gain=0.1).suitable
    assert not problems.Screened("dear", cost_ratio=0.6, gain=0.1).suitable
    assert not problems.Screened("flat", cost_ratio=0.1, gain=0.01).suitable


def results(regrets: dict[str, list[list[float]]]) -> summary.Results:
    """Tools with one answer at time 2 on two problems, a regret for each seed; NaN has no answer."""
    journal = Journal(Path("does-not-exist"))
    for tool, of_tool in regrets.items():
        for problem, of_problem in zip(("p", "q"), of_tool, strict=True):
            for seed, regret in enumerate(of_problem):
                none = np.full(3, np.nan)
                time, values = np.array([1.5, 2.0, BUDGET]), np.array([np.nan, regret, regret])
                journal.runs[problem, tool, seed] = Run(time, values, none, none, none, none, none)
    seeds = list(range(len(next(iter(regrets.values()))[0])))
    return summary.complete(journal, ["p", "q"], list(regrets), seeds, {"p": 0.5, "q": 0.25})


def test_a_missing_answer_counts_as_a_typical_configuration_and_has_the_last_rank() -> None:
    found = results({"a": [[0.1, 0.1], [0.1, 0.1]], "b": [[np.nan, 0.6], [0.2, 0.2]]})
    np.testing.assert_array_equal(found.answered(1.0)[0], [[0.5, 0.5], [0.25, 0.25]])
    np.testing.assert_array_equal(found.answered(5.0)[1], [[0.5, 0.6], [0.2, 0.2]])
    np.testing.assert_array_equal(summary.ranks(found.regrets(5.0))[1], [[2, 2], [2, 2]])
    np.testing.assert_array_equal(summary.ranks(found.regrets(1.0))[1], [[1.5, 1.5], [1.5, 1.5]])


def test_regrets_count_from_the_lowest_loss_that_any_run_found() -> None:
    found = results({"a": [[-0.05, 0.0], [0.1, 0.1]], "b": [[0.0, 0.0], [0.1, 0.1]]})
    np.testing.assert_allclose(found.regrets(5.0)[0], [[0.0, 0.05], [0.1, 0.1]])
    np.testing.assert_array_equal(found.times_within(0.01)[0], [[2.0, np.inf], [np.inf, np.inf]])


def test_regrets_below_one_validation_example_are_equal() -> None:
    np.testing.assert_array_equal(summary.ranks(np.array([1e-6, 4e-4, 0.1])), [1.5, 1.5, 3.0])


def test_intervals_hold_the_value_and_do_not_depend_on_the_day() -> None:
    table = np.random.default_rng(0).normal(size=(3, 6, 4))
    sources = np.array([0, 0, 1, 1, 2, 3])
    low, high = summary.bootstrap(table, sources, summary.mean)
    assert (low < summary.mean(table)).all()
    assert (summary.mean(table) < high).all()
    np.testing.assert_array_equal(low, summary.bootstrap(table, sources, summary.mean)[0])


def test_problems_that_are_alike_widen_the_intervals() -> None:
    table = np.repeat(
        np.random.default_rng(1).normal(size=(1, 3, 1)), 4, axis=1
    )  # three sources of four problems
    sources = np.repeat(np.arange(3), 4)
    alike = np.diff(summary.bootstrap(table, sources, summary.mean), axis=0)
    independent = np.diff(summary.bootstrap(table, np.arange(12), summary.mean), axis=0)
    assert (alike > 1.5 * independent).all()


def test_an_answer_that_gets_worse_after_the_budget_counts_as_reached() -> None:
    none = np.full(3, np.nan)
    run = Run(np.array([1.0, 2.0, 45.0]), np.array([0.5, 0.001, 0.5]), none, none, none, none, none)
    assert run.stays_within(0.01) == np.inf
    assert run.until(BUDGET).stays_within(0.01) == 2.0


def test_the_answer_of_hyperband_is_the_best_at_the_largest_size_so_far() -> None:
    answer = LargestSoFar()
    steps = ((1.0, 0.5, "a"), (1.0, 0.4, "b"), (3.0, 0.6, "c"), (1.0, 0.1, "d"), (3.0, 0.5, "e"))
    found = [answer.after(size, loss, {"x": name}) for size, loss, name in steps]
    assert [config["x"] for config in found if config] == ["a", "b", "c", "c", "e"]


def test_the_table_has_the_best_tool_first_and_says_when_a_distance_is_not_reached() -> None:
    found = results({"far": [[0.3, 0.3], [0.3, 0.3]], "fabolas": [[0.001, 0.001], [0.001, 0.001]]})
    lines = summary.markdown(found, intervals=False).splitlines()
    assert lines[2] == "| fabolas | 2 | 2 | 0.3536 | 0.0010 | 0.0010 | 0.0010 | 1.1 |"
    assert lines[3].startswith("| far | > 40 | > 40 |")
    assert "300.00 (300.00, 300.00)" in summary.against(found)
    assert summary.by_source(found).splitlines()[2] == "| far | 300.0 | 300.0 | 300.0 | 300.0 |"
    assert summary.answered_share(found).splitlines()[2] == "| far | 0% | 100% |"


def test_tools_ahead_of_the_reference_are_listed_with_a_star_if_beyond_chance() -> None:
    found = results(
        {
            "fabolas": [[0.3, 0.3, 0.3, 0.3], [0.001, 0.001, 0.001, 0.001]],
            "ahead": [[0.1, 0.1, 0.1, 0.1], [0.3, 0.3, 0.3, 0.3]],
            "perhaps": [[0.2, 0.2, 0.2, 0.9], [0.3, 0.3, 0.3, 0.3]],
        }
    )
    rows = summary.ahead(found).splitlines()[2:]
    assert rows == [f"| p | {time} | 0.3000 | ahead 0.1000\\*, perhaps 0.2000 |" for time in (5, 20, 40)]


def test_one_seed_shows_nothing_beyond_chance() -> None:
    found = results({"fabolas": [[0.3], [0.001]], "ahead": [[0.1], [0.3]]})
    assert summary.ahead(found).splitlines()[2] == "| p | 5 | 0.3000 | ahead 0.1000 |"


def test_missing_runs_are_named() -> None:
    with pytest.raises(ValueError, match=r"1 runs are missing, the first is \('p', 'a', 0\)"):
        summary.complete(Journal(Path("does-not-exist")), ["p"], ["a"], [0], {"p": 0.1})


def test_figures_are_drawn_for_every_tool(tmp_path: Path) -> None:
    figures = pytest.importorskip("experiments.peers.figures")
    assert set(figures.STYLES) == set(TOOLS)
    found = results({"random": [[0.3, 0.2], [0.3, 0.2]], "fabolas": [[0.1, 0.1], [0.1, np.nan]]})
    normalised = figures.normalised(found.answered(5.0), found.typical)
    np.testing.assert_allclose(normalised[1], [[0.2, 0.2], [0.4, 1.0]])
    for draw in (figures.overall, figures.per_problem):
        draw(found, tmp_path / "figure.png")
        assert (tmp_path / "figure.png").stat().st_size > 5000


def test_a_live_problem_trains_and_measures_its_time() -> None:
    live = pytest.importorskip("experiments.peers.live")
    problem = live.Live("boosting", n_rows=600, n_valid=200)
    config = {
        "learning_rate": 0.1,
        "max_leaf_nodes": 4,
        "min_samples_leaf": 5,
        "l2_regularization": 1.0,
        "max_features": 1.0,
    }
    error, seconds = problem(config, rng=np.random.default_rng(0), rows=200)
    assert 0.0 < error < 0.9  # five classes: guessing is wrong four times of five
    assert seconds > 0.0
    assert problem.truth(config) == problem.truth(dict(config))


def test_the_table_of_live_problems_has_the_median_error_of_the_answers(tmp_path: Path) -> None:
    live = pytest.importorskip("experiments.peers.live")
    rows = [
        {
            "problem": "live/svc",
            "tool": "dehb",
            "seed": seed,
            "n_trials": 3,
            "time": [2.0, 6.0],
            "regret": [error, 0.1],
        }
        for seed, error in enumerate((0.4, 0.2, 0.3))
    ]
    journal = tmp_path / "live.jsonl"
    journal.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert list(live.table(journal))[-1] == "| live/svc | dehb | 3 | 3 | none | 0.300 | 0.100 | 0.100 |"
