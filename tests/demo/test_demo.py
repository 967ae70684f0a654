import importlib.resources
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from fabolas.api import Result
from fabolas.demo import __main__ as command
from fabolas.demo import data, screen, svm
from fabolas.demo.summary import buckets, early_answer, random_search
from fabolas.engine import RunSummary
from fabolas.space import Space
from fabolas.strategies import Prediction
from fabolas.trials import History, Incumbent, Suggestion, Trial

GOOD, BAD = {"C": 5.0, "gamma": 1.5}, {"C": 1e-3, "gamma": 1e3}


def trial(number, size, cost, config=GOOD, loss=0.1, overhead=0.25):
    s = Suggestion(number, config, {"size": size}, np.full(3, 0.5), "design", overhead)
    if loss is None:
        return Trial(s, "failed", None, cost, error="boom")
    return Trial(s, "complete", loss, cost)


class Constant:
    """A strategy whose model predicts the same everywhere."""

    name = "constant"

    def predict(self, history, points):
        same = np.ones(len(points))
        return Prediction(0.021 * same, 0.002 * same, 4.0 * same, 8.0 * same)

    def suggest(self, *args, **kwargs):
        raise NotImplementedError

    incumbent = state = restore = suggest


def result(trials, verified=False):
    incumbent = Incumbent(GOOD, 0.021, 0.002, verified, tuple(t.id for t in trials if t.config == GOOD))
    overhead = sum(t.suggestion.overhead for t in trials)
    study = SimpleNamespace(
        space=Space(svm.SPACE, {"size": (128, 20_000)}),
        strategy=Constant(),
        seed=0,
        direction="minimize",
        history=History(tuple(trials)),
        overhead=overhead,
        trajectory=((1.5, incumbent),),
    )
    return Result(study, RunSummary(incumbent, 10.0, 10.0, interrupted=False, given_up=None))


@pytest.fixture
def few():
    """The first rows of the sample: enough to learn from, quick to train on."""
    d = data.digits()
    rows, held = slice(500), slice(300)
    return data.Digits(
        d.x_train[rows], d.y_train[rows], d.x_valid[held], d.y_valid[held], d.x_test[held], d.y_test[held]
    )


def test_the_sample_has_enough_rows_of_all_ten_digits_and_unit_norm():
    d = data.digits()
    assert d.x_train.shape == (20_000, 50)
    assert len(d.y_valid) == len(d.y_test) == 3_000
    assert np.mean(np.sum(d.x_train**2, axis=1)) == pytest.approx(1, abs=0.01)
    for labels in (d.y_train, d.y_valid, d.y_test):
        assert np.bincount(labels, minlength=10).min() > 0.08 * len(labels)


def test_the_sample_is_about_a_megabyte_and_has_its_attribution():
    folder = importlib.resources.files("fabolas.demo")
    assert len((folder / "mnist.npz").read_bytes()) < 1.1e6
    notice = (folder / "NOTICE.md").read_text()
    assert "LeCun" in notice
    assert "CC BY-SA 3.0" in notice


def test_rows_without_labels_are_refused():
    x, y = np.zeros((4, 2)), np.zeros(4, dtype=np.int64)
    with pytest.raises(ValueError, match=r"x_valid \(n, p\) and y_valid.*got \(4, 2\) and \(3,\)"):
        data.Digits(x, y, x, y[:3], x, y)


def test_more_rows_reduce_the_error_of_a_good_configuration_and_a_bad_one_stays_bad():
    objective = svm.Objective(data.digits())
    assert objective(GOOD, size=1000) < objective(GOOD, size=svm.MIN_SIZE) < 0.4
    assert objective(BAD, size=svm.MIN_SIZE) > 0.8


def test_each_trial_is_in_one_bucket_and_the_first_bucket_contains_the_smallest_size():
    sizes = [128, 156, 157, 2500, 2501, 19_999, 20_000]
    found = buckets([trial(i, size, cost=2.0) for i, size in enumerate(sizes)], 128, 20_000)
    assert [b.high for b in found] == [156, 312, 625, 1250, 2500, 5000, 10_000, 20_000]
    assert [b.trials for b in found] == [2, 1, 0, 0, 1, 1, 0, 2]
    assert sum(b.seconds for b in found) == pytest.approx(2.0 * len(sizes))


def test_a_good_answer_counts_from_when_no_later_answer_is_bad():
    trials = [
        replace(trial(i, size, 1.0), elapsed=float(i + 1)) for i, size in enumerate([128, 300, 128, 20_000])
    ]
    losses = {0.1: 0.026, 0.2: 0.5, 0.3: 0.025, 0.4: 0.021}  # by C: good, bad, good, the answer
    answers = [Incumbent({"C": c}, 0.1, 0.1, False, (0,)) for c in losses]
    searched = SimpleNamespace(
        predicted_loss=0.021,
        trajectory=[(float(i + 1), incumbent) for i, incumbent in enumerate(answers)],
        predict=lambda config: SimpleNamespace(loss=[losses[config["C"]]]),
        trials=trials,
    )
    early = early_answer(searched)
    assert (early.seconds, early.trials, early.size) == (3.0, 3, 300)


def test_random_search_needs_one_over_the_share_of_good_configurations():
    space = Space(svm.SPACE, {"size": (128, 20_000)})

    def predict(points):
        assert (points[:, 2] == 1.0).all()  # on all rows
        return SimpleNamespace(loss=np.where(points[:, 0] < 0.25, 0.02, 0.5), cost=np.full(len(points), 3.0))

    expected = random_search(SimpleNamespace(space=space, predicted_loss=0.02, predict_points=predict))
    assert (expected.trials, expected.seconds) == pytest.approx((4.0, 12.0), rel=0.01)


@pytest.mark.parametrize(
    ("verified", "word"), [(True, "yes"), (False, "not during the search: predicted from")]
)
def test_the_closing_screens_state_answer_cost_and_sizes_within_eighty_columns(verified, word):
    console = Console(width=80)
    with console.capture() as capture:
        outcome = svm.TrueErrors(valid_error=0.0203, test_error=0.019, seconds=4.0)
        screen.closing(console, result([trial(0, 500, 1.0)], verified), outcome, data.digits())
    text = capture.get()
    assert max(map(len, text.splitlines())) <= 80
    for expected in (
        "C = 5, gamma = 1.5",
        "2.10% ± 0.20%",
        "2.03%",
        "1.90%",
        "4.0 s",
        "2.5 full trainings",
        "after 1.5 s = 0.38 full trainings",
        "at most 500 rows; within 0.5% of the final one",
        "1 in 1 is good",
        "fabolas had a good answer after 0.38 full trainings.\nA random search on all rows needs about 1.",
        word,
    ):
        assert expected in text


def test_a_search_too_short_for_a_prediction_says_so():
    early = result([trial(0, 500, 1.0)])
    early._summary = replace(early._summary, incumbent=replace(early.incumbent(), preliminary=True))
    outcome = svm.TrueErrors(valid_error=0.0203, test_error=0.019, seconds=4.0)
    console = Console(width=80)
    with console.capture() as capture:
        console.print(screen.answer(early, outcome, data.digits()))
    assert "too early to predict" in capture.get()
    assert "±" not in capture.get()


@pytest.mark.slow
def test_the_whole_demo_runs_from_the_command_line(few, monkeypatch, capsys):
    monkeypatch.setattr(data, "digits", lambda: few)
    assert command.main(["--time-budget", "2s"]) == 0
    shown = capsys.readouterr().out
    assert "The answer" in shown
    assert "full trainings" in shown


def test_without_scikit_learn_the_demo_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    assert command.main([]) == 1
    assert "pip install 'fabolas[sklearn]'" in capsys.readouterr().err


@pytest.mark.parametrize("budget", ["soon", "-3s", "0"])
def test_a_budget_that_cannot_be_read_is_an_error_without_a_traceback(budget, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main([f"--time-budget={budget}"])
    assert ended.value.code == 2
    assert "budget must be" in capsys.readouterr().err


def test_make_demo_installs_only_what_the_demo_needs():
    root = Path(__file__).parents[2]
    printed = subprocess.run(
        ["make", "--no-print-directory", "--dry-run", "--always-make", "demo"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert re.findall(r'-e "(.*)"', printed) == [".[sklearn]"]
    assert printed.rstrip().endswith("-m fabolas.demo")
