"""The live search, its journal, summary and figure, on a problem that trains nothing."""

from dataclasses import dataclass

import numpy as np
import pytest

import fabolas
from experiments.live import compare, figures, summary
from experiments.live.compare import Job, Journal
from experiments.live.search import METHODS, Method, Run, search
from experiments.svm_live import __main__ as svm_live
from experiments.svm_live.problem import Setting


class Bowl:
    """The loss falls with the rows, the test error is another function of the configuration."""

    space = {"x": fabolas.Float(0.0, 1.0)}  # noqa: RUF012
    ranges = {"rows": (10, 100), "epochs": (1, 4)}  # noqa: RUF012

    def __init__(self):
        self.trained, self.tested, self.reported = [], [], []

    def train(self, config, seed, report, *, rows, epochs):
        assert not self.tested, "answers are tested after the search"
        self.trained.append((rows, epochs))
        for epoch in range(1, epochs) if report is not None else ():
            report(epochs=epoch, loss=1.0 / epoch)
            self.reported.append(epoch)
        return (config["x"] - 0.3) ** 2 + 1.0 / rows

    def test(self, config):
        self.tested.append(config["x"])
        return 0.5 + (config["x"] - 0.3) ** 2


@dataclass(frozen=True)
class BowlSetting:
    def describe(self):
        return {"experiment": "bowl"}

    def load(self):
        return Bowl()


def run_of(*answers, elapsed=10.0):
    """A run with answers (time, test error)."""
    known = [{"time": time, "config": {"x": test}, "test": test} for time, test in answers]
    trials = [{"time": time, "rows": 10, "loss": 0.5, "cost": 1.0} for time, _ in answers]
    return Run(elapsed, 1.0, tuple(trials), tuple(known))


def test_a_search_tests_each_answer_once_and_after_the_search():
    problem = Bowl()
    run = search(problem, METHODS["random"], seed=0, time_budget=0.05)
    assert len(problem.tested) == len(set(problem.tested)) >= 1
    assert [answer["test"] for answer in run.answers] == pytest.approx(
        [0.5 + (answer["config"]["x"] - 0.3) ** 2 for answer in run.answers]
    )
    assert len(run.trials) == len(problem.trained)


def test_a_method_without_epochs_trains_for_all_of_them():
    problem = Bowl()
    search(problem, METHODS["hyperband"], seed=0, time_budget=0.05)
    assert {epochs for _, epochs in problem.trained} == {4}
    assert len({rows for rows, _ in problem.trained}) > 1


def test_only_the_method_with_reports_declares_and_receives_them():
    problem = Bowl()
    with_reports = METHODS["fabolas-reports"].declared(problem)
    assert {name: fidelity.reports for name, fidelity in with_reports.items()} == {
        "rows": False,
        "epochs": True,
    }
    assert not any(f.reports for f in METHODS["fabolas-epochs"].declared(problem).values())
    search(problem, Method("random", ("rows", "epochs"), reports=True), seed=0, time_budget=0.02)
    assert problem.reported


def test_an_answer_holds_until_the_next_one():
    run = run_of((1.0, 0.4), (3.0, 0.1), (5.0, 0.2))
    assert run.test_at(0.5) == np.inf
    assert (run.test_at(2.0), run.test_at(3.0), run.test_at(9.0)) == (0.4, 0.1, 0.2)
    assert run.stays_below(0.2) == 3.0
    assert run.stays_below(0.15) == np.inf  # it was there, and left


def test_a_journal_keeps_finished_runs_and_only_the_others_are_made(tmp_path):
    jobs = [Job(BowlSetting(), "random", seed, 5.0) for seed in range(3)]
    journal = Journal(tmp_path / "runs.jsonl")
    journal.add(jobs[1], run_of((1.0, 0.25)))
    again = Journal(tmp_path / "runs.jsonl")
    assert compare.missing(jobs, again) == [jobs[0], jobs[2]]
    [run] = again.of(jobs)["random"]
    assert run.test_at(2.0) == 0.25
    assert run.trials == run_of((1.0, 0.25)).trials
    assert compare.missing([Job(BowlSetting(), "random", 1, 6.0)], again), "another budget is another run"


@pytest.mark.parametrize(
    ("method", "seconds", "clock"), [("grid", 1.0, "cpu"), ("es", 0.0, "cpu"), ("es", 1.0, "sun")]
)
def test_a_job_that_cannot_run_is_refused(method, seconds, clock):
    with pytest.raises(ValueError, match="expected a"):
        Job(BowlSetting(), method, 0, seconds, clock)


def test_the_summary_takes_medians_and_compares_times_with_ours():
    runs = {
        "fabolas": [run_of((1.0, 0.4), (2.0, 0.1)), run_of((1.0, 0.1)), run_of((3.0, 0.12))],
        "random": [run_of((8.0, 0.105)), run_of((4.0, 0.3)), run_of((6.0, 0.104))],
    }
    best = summary.reference(runs, 10.0)
    assert best == 0.1
    rows = [summary.summarise(name, found, best, (0.01,), 10.0) for name, found in runs.items()]
    assert [row.reached for row in rows] == [((2.0, 2),), ((8.0, 2),)]
    assert rows[1].test == (np.inf, np.inf, np.inf, 0.105)  # at 5 s one of three has an answer
    assert "8 (2/3) ×4" in summary.markdown(rows, (0.01,), 10.0)


def test_the_commands_show_and_draw_what_the_journal_has(tmp_path, capsys):
    setting = Setting("mnist", 1000, 200, 400)
    journal = Journal(tmp_path / "runs.jsonl")
    for seed in range(2):
        journal.add(Job(setting, "fabolas", seed, 30.0), run_of((1.0, 0.2), (2.0, 0.1)))
    options = ["--rows", "1000", "--time-budget", "30", "--seeds", "2", "--journal", str(journal.path)]
    assert svm_live.main(["summary", *options]) == 0
    assert "| fabolas | 2 | 1 | 2 (2/2) | 2 (2/2) | 0.1000" in capsys.readouterr().out
    assert svm_live.main(["figures", *options, "--output", str(tmp_path / "figure.png")]) == 0
    assert (tmp_path / "figure.png").stat().st_size > 1000
    assert svm_live.main(["summary", *options, "--rows", "2000"]) == 1


def test_the_figure_has_a_curve_a_method():
    drawn = figures.draw({"fabolas": [run_of((1.0, 0.2))], "random": [run_of((2.0, 0.3))]}, 10.0, "title")
    labels = [text.get_text() for text in drawn.axes[0].get_legend().get_texts()]
    assert labels == ["fabolas", "random"]
