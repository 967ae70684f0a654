import json
from itertools import pairwise

import numpy as np
import pytest

from experiments.simulate import Run
from experiments.svm_grid import __main__ as command
from experiments.svm_grid import compare, curves, summary
from experiments.svm_grid.compare import Job, Journal, Setting
from experiments.svm_grid.problem import Problem

SIZES, REPEATS = [64, 128, 256, 512, 1024], [2, 2, 1, 1, 1]
GRID = np.linspace(-4.0, 4.0, 9)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A made-up table: a bowl whose floor falls with the size, cost linear in the size."""
    c, gamma = np.meshgrid(GRID, GRID, indexing="ij")
    valid = np.full((5, 2, 9, 9), np.nan, dtype=np.float32)
    seconds = valid.copy()
    for s, repeats in enumerate(REPEATS):
        for r in range(repeats):
            valid[s, r] = 0.05 + 0.05 * (4 - s) + 0.02 * ((c - 1) ** 2 + gamma**2) + 0.01 * r
            seconds[s, r] = 0.1 * SIZES[s] / 1024 * np.exp(0.1 * c)
    path = tmp_path_factory.mktemp("table") / "tiny.npz"
    np.savez_compressed(
        path,
        log_c=GRID,
        log_gamma=GRID,
        sizes=np.array(SIZES),
        repetitions=np.array(REPEATS),
        valid=np.minimum(valid, 0.9),
        test=np.minimum(valid + 0.01, 0.91),
        fit_seconds=seconds,
        predict_seconds=seconds,
        meta=np.array(json.dumps({})),
    )
    return path


@pytest.fixture
def setting(table):
    return Setting(str(table), budget=6.0, max_trials=12, overhead=0.01)


def run_of(time, regret, **columns):
    n = len(time)
    filled = {
        "size": np.ones(n),
        "cost": np.ones(n),
        "overhead": np.zeros(n),
        "origin": np.array(["model"] * n),
    }
    filled["test"] = np.array(regret) + 0.1
    return Run(time=np.array(time, float), regret=np.array(regret, float), **(filled | columns))


@pytest.fixture(scope="module")
def journal(table, tmp_path_factory):
    """A comparison of three methods, two seeds each."""
    journal = Journal(tmp_path_factory.mktemp("journal") / "deep" / "runs.jsonl")
    setting = Setting(str(table), budget=6.0, max_trials=12, overhead=0.01)
    for method in ("fabolas", "mtbo", "mtbo-1/32", "random"):
        for seed in range(2):
            job = Job(setting, method, seed)
            journal.add(job, job.run())
    return journal


def test_a_run_is_known_by_the_defaults_that_it_had(table):
    setting = Setting(str(table))
    options, other = (json.loads(Job(setting, method, 0).key)[2] for method in ("mtbo", "mtbo-1/32"))
    assert {name for name in options if options[name] != other[name]} == {"auxiliary"}
    fabolas = json.loads(Job(setting, "fabolas", 0).key)[2]
    assert fabolas["target_share"] == pytest.approx(1 / 3)


def test_time_counts_after_which_the_incumbent_stays_within_the_distance():
    touches = run_of([1, 2, 3, 4, 5], [np.nan, 0.001, 0.5, 0.004, 0.003])
    never = run_of([1, 2], [0.5, 0.4])
    stays = run_of([2, 4], [0.009, 0.009])
    problem = type("P", (), {"full_cost": 2.0})
    row = summary.summarise("ei", [touches, never, stays], problem, (1.0, 2.0))
    assert [r.runs for r in row.reached] == [2, 1, 0]
    assert [r.median for r in row.reached] == [2.0, np.inf, np.inf]  # of 2, 1 and never
    assert row.regret == (0.009, 0.009)
    assert row.ended == (0, 1)
    assert row.trials == 2
    assert row.end == 2.0


def test_a_row_says_how_many_times_longer_than_fabolas_a_method_takes():
    problem = type("P", (), {"full_cost": 1.0})
    rows = [
        summary.summarise(name, [run_of([t], [0.001])], problem, (20.0,))
        for name, t in (("fabolas", 0.5), ("ei", 6))
    ]
    lines = summary.markdown(rows, (20.0,)).splitlines()
    assert lines[0].startswith("| method | within 0.01 | within 0.005 | within 0.002 | regret at 20 |")
    assert lines[2].startswith("| fabolas | 0.5 (1/1) | 0.5 (1/1) | 0.5 (1/1) | 0.00100* | 1 |")
    assert lines[3].startswith("| ei | 6 (1/1) ×12 | ")
    slow = summary.summarise("es", [run_of([1, 2], [0.5, 0.5])], problem, ())
    assert summary.cells(slow, rows[0])[1] == "— (0/1)"


def test_a_lead_is_the_difference_of_medians_and_its_interval_tells_level_from_behind():
    problem = type("P", (), {"full_cost": 1.0})
    rng = np.random.default_rng(0)
    ours, same, worse = (
        [run_of([1], [level + 0.1 * rng.random()]) for _ in range(200)] for level in (0.1, 0.1, 0.2)
    )
    level, behind = (summary.lead("m", runs, ours, problem, (1.0,)) for runs in (same, worse))
    assert level.low[0] < 0.0 < level.high[0]
    assert behind.median[0] == pytest.approx(0.1, abs=0.02)
    # A median of 200 uniform numbers on a tenth has a deviation of 0.1 / (2 sqrt(200)).
    deviation = 0.1 / (2.0 * np.sqrt(200.0)) * np.sqrt(2.0)
    assert behind.high[0] - behind.low[0] == pytest.approx(2 * 1.96 * deviation, rel=0.3)
    # Who has nothing to recommend yet is last, not infinitely far behind.
    assert summary.lead("m", [run_of([2], [0.1])] * 3, ours, problem, (1.0,)).median[0] > 0.8
    assert summary.leads_markdown([level], (1.0,)).startswith("| method | more regret at 1 |")


def test_a_run_is_read_back_as_it_was_and_is_not_run_again(journal, table, setting):
    again = Journal(journal.path)
    assert len(again.runs) == 8
    for seed, run in journal.of(setting, "fabolas", 10).items():
        read = again.of(setting, "fabolas", 10)[seed]
        np.testing.assert_allclose(read.time, run.time, rtol=1e-5)
        np.testing.assert_allclose(read.regret, run.regret, rtol=1e-4, atol=1e-6)
        np.testing.assert_array_equal(read.origin, run.origin)
    assert compare.compare(setting, ["fabolas", "random"], 2, again, 1)[0] == 0
    assert compare.compare(setting, ["fabolas", "ei"], 2, again, 1)[0] == 2
    other = Setting(str(table), budget=7.0, max_trials=12, overhead=0.01)
    assert compare.compare(other, ["fabolas"], 2, again, 1)[0] == 2


def test_a_run_that_ended_at_a_lower_limit_of_trials_is_made_anew(journal, table):
    longer = Setting(str(table), budget=6.0, max_trials=1000, overhead=0.01)
    unit = longer.problem.full_cost
    capped = [run for run in journal.of(longer, "fabolas", 2).values() if run.time[-1] < 6 * unit]
    assert capped
    assert compare.compare(longer, ["fabolas", "random"], 2, journal, 1)[0] == len(capped)
    shorter = Setting(str(table), budget=6.0, max_trials=5, overhead=0.01)
    assert compare.compare(shorter, ["fabolas", "random"], 2, journal, 1)[0] == 0


def test_only_so_many_seeds_are_shown_as_are_asked_for(journal, setting):
    assert list(journal.of(setting, "fabolas", 1)) == [0]


def test_a_journal_has_no_run_of_another_table_of_the_same_name(
    journal, table, setting, tmp_path, monkeypatch
):
    with np.load(table) as z:
        columns = dict(z)
    columns["valid"] = columns["valid"] + np.float32(0.001)
    np.savez_compressed(tmp_path / "tiny.npz", **columns)
    monkeypatch.setattr(compare, "_load", lambda *_: Problem.load(tmp_path / "tiny.npz"))
    assert not journal.of(setting, "fabolas", 10)


def test_a_torn_line_of_a_journal_never_was_and_who_writes_next_cuts_it_off(journal, setting, tmp_path):
    path = tmp_path / "runs.jsonl"
    torn = journal.path.read_text() + '{"key": "half'
    path.write_text(torn)
    again = Journal(path)
    assert len(again.runs) == 8
    assert path.read_text() == torn  # who reads does not write: another process may be about to
    job = Job(setting, "random", 1)
    again.add(job, journal.runs[job.key])
    assert path.read_text().startswith(journal.path.read_text())
    assert len(path.read_text().splitlines()) == 9
    assert len(Journal(path).runs) == 8


def test_a_model_based_run_ends_at_the_limit_of_trials_and_random_search_at_the_budget(journal, setting):
    unit = setting.problem.full_cost
    for run in journal.of(setting, "fabolas", 10).values():
        assert len(run.time) == 12 or run.time[-1] >= 6 * unit
    for run in journal.of(setting, "random", 10).values():
        assert run.time[-1] >= 6 * unit
        assert np.all(run.size == 1)


def test_runs_record_the_test_error_and_size_of_what_they_tried(journal, setting):
    for run in journal.of(setting, "mtbo", 10).values():
        assert set(run.size) <= {0.25, 1.0}
        # The made-up test error is the validation error plus 0.01.
        np.testing.assert_allclose(run.test, run.regret + setting.problem.best + 0.01, atol=1e-5)


def test_quantiles_over_time_begin_when_half_of_the_runs_recommend_something():
    runs = [run_of([1, 4], [0.3, 0.1]), run_of([2, 8], [np.nan, 0.2]), run_of([2, 8], [0.5, 0.4])]
    band = curves.over_time(runs, unit=2.0, end=16.0)
    assert band.at[0] == 0.5
    assert np.isnan(band.middle[band.at < 0.99]).all()
    assert band.middle[np.searchsorted(band.at, 1.5)] == pytest.approx(0.6)  # 0.4, 0.6 and none
    last = np.flatnonzero(np.isfinite(band.middle))[-1]
    assert band.at[last] == pytest.approx(4.0, rel=0.03)  # where half of the runs have ended
    assert band.middle[last] == pytest.approx(0.3)
    assert band.lower[last] == pytest.approx(0.2)
    assert band.upper[last] == pytest.approx(0.5)
    assert np.isinf(band.upper[np.searchsorted(band.at, 1.5)])


def test_sizes_chosen_are_means_with_a_quarter_of_the_deviation():
    runs = [
        run_of([1, 2], [0.1, 0.1], size=np.array([0.25, 1.0])),
        run_of([1, 2, 3], [0.1] * 3, size=np.array([0.75, 1, 1])),
    ]
    band = curves.sizes_chosen(runs)
    np.testing.assert_allclose(band.middle, [0.5, 1.0, 1.0])
    np.testing.assert_allclose(band.lower, [0.5 - 0.25 / 4, 1.0, 1.0])


def test_sizes_of_many_trials_are_means_of_groups_that_hold_each_trial_once():
    size = np.random.default_rng(0).random(500)
    band = curves.sizes_chosen([run_of(np.arange(500), [0.1] * 500, size=size)], groups=9)
    edges = np.geomspace(1, 501, 10).round().astype(int)  # 1, 2, 4, 8, 16, 32, ...
    means = [size[a - 1 : b - 1].mean() for a, b in pairwise(edges)]
    np.testing.assert_allclose(band.middle, means)
    assert (np.diff(band.at) > 0).all()
    assert band.at[0] == 1.0


def test_least_squares_recovers_what_is_of_the_form_of_the_basis(setting):
    u = np.linspace(0, 1, 7)
    at = np.linspace(0, 1, 5)
    fitted = curves.least_squares(
        curves.paper_loss_basis, u, 0.1 + 0.4 * (1 - 0.01 ** (1 - u)) ** 2, at, smallest=0.01
    )
    np.testing.assert_allclose(fitted, 0.1 + 0.4 * (1 - 0.01 ** (1 - at)) ** 2)
    line = curves.scaling(setting.problem, (5, 4))
    np.testing.assert_allclose(line.seconds_fit[[0, -1]], line.seconds[[0, -1]])  # linear in the size: exact
    assert line.grid[0] == pytest.approx(1 / 16)
    assert line.loss[0] == pytest.approx(0.255, abs=1e-6)  # the mean of two repetitions


def test_typical_cells_begin_with_the_best(setting):
    cells = curves.typical_cells(setting.problem)
    assert cells[0] == (5, 4)  # log C = 1, log gamma = 0
    errors = [curves.surface(setting.problem, 1.0)[1][cell] for cell in cells]
    assert errors == sorted(errors)


def test_the_command_runs_summarises_and_draws(table, tmp_path, capsys):
    options = ["--data", str(table), "--budget", "3", "--max-trials", "11", "--overhead", "0.01"]
    options += ["--journal", str(tmp_path / "runs.jsonl")]
    methods = ["--strategies", "random,hyperband", "--seeds", "2", "--processes", "1"]
    assert command.main(["run", *options, *methods]) == 0
    assert command.main(["summary", *options, "--output", str(tmp_path / "summary.md")]) == 0
    assert "hyperband" in capsys.readouterr().out
    assert (tmp_path / "summary.md").read_text().count("\n") == 4
    assert command.main(["summary", *options, "--at", "1", "2.5"]) == 0
    assert "regret at 2.5" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        command.main(["run", "--strategies", "grid"])
    assert "expected some of fabolas, fabolas2017, mtbo" in capsys.readouterr().err


@pytest.mark.slow
def test_five_figures_are_drawn_from_the_runs(journal, table, tmp_path):
    options = ["--data", str(table), "--budget", "6", "--max-trials", "12", "--overhead", "0.01"]
    command.main(["figures", *options, "--journal", str(journal.path), "--output", str(tmp_path)])
    names = {path.name for path in tmp_path.glob("*.png")}
    assert names == {f"svm_grid_tiny_{n}.png" for n in ("surface", "basis", "over_time", "mtbo", "sizes")}


def test_an_unknown_method_and_an_impossible_setting_are_refused(setting):
    with pytest.raises(ValueError, match=r"expected a method among fabolas, .* got 'grid'"):
        Job(setting, "grid", 0)
    with pytest.raises(ValueError, match="expected a budget > 0"):
        Setting(budget=0)
    with pytest.raises(ValueError, match="expected max_trials >= 1"):
        Setting(max_trials=0)
