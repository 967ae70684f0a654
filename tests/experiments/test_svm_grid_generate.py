import json

import numpy as np
import pytest
from sklearn.svm import SVC

from experiments.svm_grid import generate, votes
from experiments.svm_grid.generate import Cell, Journal, Measurement, Plan
from experiments.svm_grid.problem import Problem

PLAN = Plan("mnist", rows=2048, valid=20, test=20)
ONE = Measurement(valid=0.5, test=0.25, fit=2.0, predict=1.0)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Images of three "digits", each bright in rows of its own, in the layout of the real file."""
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("data")
    parts = {}
    for name, n in (("train", 2100), ("test", 60)):
        y = rng.integers(0, 3, size=n)
        x = rng.integers(0, 80, size=(n, 8, 8))
        x[np.arange(n), y] += 150
        parts |= {f"x_{name}": x.astype(np.uint8), f"y_{name}": y.astype(np.uint8)}
    np.savez(folder / "mnist.npz", **parts)
    return folder


def test_the_plan_has_nine_sizes_with_repetitions_where_they_are_cheap():
    assert PLAN.sizes == [8, 16, 32, 64, 128, 256, 512, 1024, 2048]
    assert [PLAN.repetitions(i) for i in range(9)] == [4, 4, 4, 4, 4, 2, 1, 1, 1]


def test_every_cell_comes_once_and_small_sizes_come_first():
    cells = list(generate.cells(PLAN))
    assert len(cells) == len(set(cells)) == 400 * (5 * 4 + 2 + 3)
    assert [c.size for c in cells] == sorted(c.size for c in cells)


def test_votes_are_the_labels_that_libsvm_predicts():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(200, 4)), rng.integers(0, 5, size=200)
    x += y[:, None] * 0.7
    new = rng.normal(size=(300, 4)) + 1.4
    distances = votes.squared_distances(new, x)
    for c, gamma in ((1.0, 0.5), (2e4, 5e-5), (1e-3, 10.0)):
        model = SVC(C=c, gamma=gamma).fit(x, y)
        labels = votes.predict(model, distances[:, model.support_], gamma, chunk=70)
        np.testing.assert_array_equal(labels, model.predict(new))


def test_a_training_learns_from_more_rows_and_its_subsets_are_nested(source):
    trainer = generate.Trainer(PLAN, source)
    middle = 10  # log C = log gamma = 0.5
    few = trainer(Cell(0, 0, middle, middle))[1]
    many = trainer(Cell(6, 0, middle, middle))[1]
    assert many.valid <= few.valid
    assert many.valid == 0
    assert many.fit > 0
    assert many.predict > 0


def test_a_journal_goes_on_where_it_was_and_cuts_a_torn_line(tmp_path):
    path = tmp_path / "cache" / "j.jsonl"
    journal = Journal(path, PLAN)
    for c in range(3):
        journal.add(Cell(0, 0, c, 5), ONE)
    with path.open("a") as file:
        file.write('{"cell": [0, 0, 3, ')
    again = Journal(path, PLAN)
    assert again.done == {Cell(0, 0, c, 5): ONE for c in range(3)}
    again.add(Cell(0, 0, 7, 7), ONE)
    assert len(Journal(path, PLAN).done) == 4


def test_a_journal_of_another_plan_is_refused(tmp_path):
    Journal(tmp_path / "j.jsonl", PLAN)
    with pytest.raises(ValueError, match=r"expected a journal of .*4096.*got .*2048.*another --cache"):
        Journal(tmp_path / "j.jsonl", Plan("mnist", rows=4096, valid=20, test=20))


def test_packing_an_unfinished_journal_says_what_is_missing(tmp_path):
    journal = Journal(tmp_path / "j.jsonl", PLAN)
    journal.add(Cell(0, 2, 3, 4), ONE)
    missing = generate.pack(PLAN, journal, tmp_path / "t.npz")
    assert missing[0] == "size 8: 1599 of 1600 cells are missing"
    assert len(missing) == 9
    with np.load(tmp_path / "t.npz") as z:
        assert z["valid"].dtype == np.float32
        assert z["valid"][0, 2, 3, 4] == 0.5
        assert z["fit_seconds"][0, 2, 3, 4] == 2.0
        assert np.isnan(z["valid"]).sum() == z["valid"].size - 1
        assert json.loads(str(z["meta"]))["missing"] == missing


def test_a_complete_journal_becomes_a_problem(tmp_path):
    journal = Journal(tmp_path / "j.jsonl", PLAN)
    journal.done = dict.fromkeys(generate.cells(PLAN), ONE)
    assert generate.pack(PLAN, journal, tmp_path / "t.npz") == []
    problem = Problem.load(tmp_path / "t.npz")
    assert problem.best == 0.5
    assert problem.full_cost == pytest.approx(3.0)
    assert problem.meta["rows"] == 2048


def test_the_command_packs_what_there_is_and_needs_a_journal(tmp_path, capsys):
    options = ["--data", "mnist", "--rows", "2048", "--cache", str(tmp_path), "--pack"]
    with pytest.raises(SystemExit):
        generate.main(options)
    assert "there is no journal" in capsys.readouterr().err
    Journal(tmp_path / "mnist-2048.jsonl", Plan("mnist", 2048, 3000, 5000)).add(Cell(0, 0, 0, 0), ONE)
    assert generate.main([*options, "--output", str(tmp_path / "t.npz")]) == 0
    assert "size 2048: 400 of 400 cells are missing" in capsys.readouterr().out


def test_too_few_rows_for_the_smallest_size_are_an_error():
    with pytest.raises(ValueError, match=r"at least 2048 rows.*got 1000"):
        Plan("mnist", rows=1000, valid=10, test=10)
