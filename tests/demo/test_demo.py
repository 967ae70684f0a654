import importlib.resources

import numpy as np
import pytest
from rich.console import Console

from fabolas.demo import __main__ as command
from fabolas.demo import data, screen, svm
from fabolas.demo.summary import buckets, first_try
from fabolas.history import Incumbent, Suggestion, Trial
from fabolas.result import Result

GOOD, BAD = {"C": 5.0, "gamma": 1.5}, {"C": 1e-3, "gamma": 1e3}


def trial(number, size, cost, config=GOOD, loss=0.1, thinking=0.25):
    s = Suggestion(number, config, {"size": size}, np.full(3, 0.5), thinking)
    if loss is None:
        return Trial(s, "failed", None, cost, error="boom")
    return Trial(s, "complete", loss, cost)


def result(trials, verified=False):
    incumbent = Incumbent(GOOD, 0.021, 0.002, verified, tuple(t.id for t in trials if t.config == GOOD))
    return Result(incumbent, tuple(trials), (), 10.0, sum(t.suggestion.thinking for t in trials), 0)


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


def test_the_sample_is_about_a_megabyte_and_carries_its_attribution():
    folder = importlib.resources.files("fabolas.demo")
    assert len((folder / "mnist.npz").read_bytes()) < 1.1e6
    notice = (folder / "NOTICE.md").read_text()
    assert "LeCun" in notice
    assert "CC BY-SA 3.0" in notice


def test_rows_without_labels_are_refused():
    x, y = np.zeros((4, 2)), np.zeros(4, dtype=np.int64)
    with pytest.raises(ValueError, match=r"x_valid \(n, p\) and y_valid.*got \(4, 2\) and \(3,\)"):
        data.Digits(x, y, x, y[:3], x, y)


def test_more_rows_help_a_good_configuration_and_nothing_helps_a_bad_one():
    objective = svm.Objective(data.digits())
    assert objective(GOOD, size=1000) < objective(GOOD, size=svm.SMALLEST) < 0.4
    assert objective(BAD, size=svm.SMALLEST) > 0.8


def test_buckets_hold_every_trial_once_and_go_down_to_the_smallest_size():
    sizes = [128, 156, 157, 2500, 2501, 19_999, 20_000]
    found = buckets([trial(i, size, cost=2.0) for i, size in enumerate(sizes)], 128, 20_000)
    assert [b.high for b in found] == [156, 312, 625, 1250, 2500, 5000, 10_000, 20_000]
    assert [b.trials for b in found] == [2, 1, 0, 0, 1, 1, 0, 2]
    assert sum(b.seconds for b in found) == pytest.approx(2.0 * len(sizes))


def test_the_first_try_counts_costs_and_thinking_up_to_the_first_completed_trial_of_the_winner():
    trials = [
        trial(0, 128, 1.0, BAD),
        trial(1, 128, 1.0, loss=None),
        trial(2, 500, 2.0),
        trial(3, 20_000, 9.0),
    ]
    first = first_try(result(trials))
    assert first.seconds == pytest.approx(1 + 1 + 2 + 3 * 0.25)
    assert (first.size, first.trial) == (500, 3)


@pytest.mark.parametrize(("verified", "word"), [(True, "yes"), (False, "no, extrapolated")])
def test_the_closing_screens_state_answer_price_and_sizes_within_eighty_columns(verified, word):
    console = Console(width=80)
    with console.capture() as capture:
        outcome = svm.Verification(valid_error=0.0203, test_error=0.019, seconds=4.0)
        screen.closing(console, result([trial(0, 500, 1.0)], verified), outcome, data.digits())
    text = capture.get()
    assert max(map(len, text.splitlines())) <= 80
    for expected in ("C = 5, gamma = 1.5", "2.10% ± 0.20%", "2.03%", "1.90%", "4.0 s", "2.5 trainings", word):
        assert expected in text


def test_the_whole_demo_runs_from_the_command_line(few, monkeypatch, capsys):
    monkeypatch.setattr(data, "digits", lambda: few)
    assert command.main(["--budget", "2s"]) == 0
    shown = capsys.readouterr().out
    assert "The answer" in shown
    assert "trainings on all the data" in shown


def test_without_scikit_learn_the_demo_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    assert command.main([]) == 1
    assert "pip install 'fabolas[sklearn]'" in capsys.readouterr().err


@pytest.mark.parametrize("budget", ["soon", "-3s", "0"])
def test_a_budget_that_cannot_be_read_is_an_error_without_a_traceback(budget, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main([f"--budget={budget}"])
    assert ended.value.code == 2
    assert "budget must be" in capsys.readouterr().err
