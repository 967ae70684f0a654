import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fabolas import Float, Integer, Space, Study
from fabolas.budget import Budget, RunBudget
from fabolas.curve_reports import Report
from fabolas.plain_values import LARGEST_LOSS
from fabolas.storage import APPLICATION_ID, SCHEMA, Identity, MemoryStorage, SqliteStorage, Storage
from fabolas.trials import Incumbent, Suggestion, Trial

Open = Callable[[], Storage]
SPACE = Space({"C": Float(1e-5, 1e5, log=True), "layers": [(64,), (64, 64)]}, {"size": (100, 50_000)})
IDENTITY = Identity(SPACE, "random", {"share": 0.1}, seed=3)
AWKWARD = (0.1, 1 / 3, np.nextafter(1.0, 2.0), 5e-324, np.nextafter(1e100, 0.0), -2.5e-17)


@pytest.fixture(params=["memory", "sqlite"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """A function that opens the same record: the same object, or the same file."""
    memory = MemoryStorage()
    return (lambda: memory) if request.param == "memory" else (lambda: SqliteStorage(tmp_path / "study.db"))


def suggestion(number: int, overhead: float = 0.1) -> Suggestion:
    point = SPACE.snap(np.random.default_rng(number).random((1, 3)))[0]
    config, fidelity = SPACE.decode(point)
    return Suggestion(number, config, fidelity, point, "design", overhead, 0.3, 1 / 7 if number else None)


def test_a_new_storage_is_empty_and_has_the_seed_of_the_identity(storage: Open) -> None:
    record = storage().open(IDENTITY)
    assert (record.seed, record.suggestions, record.trials, record.state) == (3, (), (), None)


def test_the_record_comes_back_exactly_with_trials_in_order_of_ending(storage: Open) -> None:
    first = storage()
    first.open(IDENTITY)
    suggestions = [suggestion(i, overhead=abs(x)) for i, x in enumerate(AWKWARD)]
    trials = [
        Trial(s, "complete", min(x, LARGEST_LOSS), abs(x), {"x": x})
        for s, x in zip(suggestions[::-1], AWKWARD[::-1], strict=True)
    ]
    trials[0] = Trial(trials[0].suggestion, "failed", None, 0.0, error="Traceback\n  ä: boom", elapsed=1 / 3)
    for s in suggestions:
        first.add_suggestion(s, {"walkers": np.array(AWKWARD), "step": np.array([[s.id]], dtype=float)}, 0.0)
    for trial in trials[:-1]:
        first.add_trial(trial)
    first.close()

    record = storage().open(IDENTITY)
    assert list(record.suggestions) == suggestions
    assert list(record.trials) == trials[:-1]
    assert record.open_suggestions == (suggestions[0],)
    for s, kept in zip(suggestions, record.suggestions, strict=True):
        np.testing.assert_array_equal(s.point, kept.point)
    assert record.state is not None
    np.testing.assert_array_equal(record.state["walkers"], AWKWARD)
    np.testing.assert_array_equal(record.state["step"], [[len(AWKWARD) - 1]])


def test_start_times_come_back_and_a_suggestion_that_was_not_started_can_be_removed(
    storage: Open,
) -> None:
    first = storage()
    first.open(IDENTITY)
    first.add_suggestion(suggestion(0), {"step": np.zeros(1)}, 100.0)
    first.add_suggestion(suggestion(1), {"step": np.ones(1)}, None)
    first.add_suggestion(suggestion(2), {"step": np.full(1, 2.0)}, None)
    first.add_start(1, 101.5)
    first.remove_suggestion(2, {"step": np.ones(1)})
    for number in (0, 1, 2):  # started, started, removed
        with pytest.raises(ValueError, match=r"unknown|has started and cannot be removed"):
            first.remove_suggestion(number, {"step": np.full(1, 9.0)})
    with pytest.raises(ValueError, match="suggestion 2 is unknown"):
        first.add_start(2, 102.0)
    first.close()
    record = storage().open(IDENTITY)
    assert [s.id for s in record.suggestions] == [0, 1]
    assert record.started == {0: 100.0, 1: 101.5}
    assert record.state is not None
    assert record.state["step"][0] == 1.0


def test_a_second_trial_or_one_without_a_suggestion_is_refused_and_changes_nothing(storage: Open) -> None:
    first = storage()
    first.open(IDENTITY)
    first.add_suggestion(suggestion(0), {"a": np.zeros(1)}, 0.0)
    first.add_trial(Trial(suggestion(0), "complete", 0.5, 1.0))
    with pytest.raises(ValueError, match=r"suggestion|once"):
        first.add_trial(Trial(suggestion(0), "complete", 0.25, 1.0))
    with pytest.raises(ValueError, match=r"suggestion|once"):
        first.add_trial(Trial(suggestion(7), "complete", 0.25, 1.0))
    with pytest.raises(ValueError, match=r"already stored|once"):
        first.add_suggestion(suggestion(0), {"a": np.ones(1)}, 0.0)
    first.close()
    record = storage().open(IDENTITY)
    assert [trial.loss for trial in record.trials] == [0.5]
    assert record.state is not None
    assert record.state["a"][0] == 0.0


def test_a_reported_outcome_comes_back_until_its_trial_is_kept(storage: Open) -> None:
    first = storage()
    first.open(IDENTITY)
    for number in range(3):
        first.add_suggestion(suggestion(number), {}, 1.0)
    trials = [Trial(suggestion(n), "complete", 1 / 3, 0.5, {"n": n}, elapsed=n / 7) for n in range(3)]
    trials[1] = Trial(suggestion(1), "failed", None, 0.0, error="ä: boom")
    for number in (2, 0, 1):
        first.add_early_outcome(trials[number])
    first.add_trial(replace(trials[0], loss=0.25))
    first.close()
    record = storage().open(IDENTITY)
    assert record.early_outcomes == (trials[2], trials[1])
    assert [trial.loss for trial in record.trials] == [0.25]
    assert [s.id for s in record.open_suggestions] == [1, 2]


def test_a_report_without_a_suggestion_or_after_the_end_or_a_second_one_is_refused(storage: Open) -> None:
    first = storage()
    first.open(IDENTITY)
    for number in range(2):
        first.add_suggestion(suggestion(number), {}, 1.0)
    first.add_trial(Trial(suggestion(0), "complete", 0.5, 1.0))
    first.add_early_outcome(Trial(suggestion(1), "complete", 0.5, 1.0))
    for number, message in {0: "already ended", 1: "once|already has", 7: "once|unknown"}.items():
        with pytest.raises(ValueError, match=message):
            first.add_early_outcome(Trial(suggestion(number), "complete", 0.25, 1.0))
    first.close()
    assert [trial.loss for trial in storage().open(IDENTITY).early_outcomes] == [0.5]


@pytest.mark.parametrize("number", [0, 7])
def test_a_point_of_a_curve_is_refused_after_the_end_and_without_a_suggestion(
    storage: Open, number: int
) -> None:
    first = storage()
    first.open(IDENTITY)
    first.add_suggestion(suggestion(0), {}, 1.0)
    report = Report({"size": 100}, suggestion(0).point, 0.5, 1.0)
    trial = Trial(suggestion(0), "complete", 0.5, 1.0, reports=(report,))
    first.add_trial(trial)
    with pytest.raises(ValueError, match=r"already ended|unknown"):
        first.add_report(number, report)
    first.close()
    assert storage().open(IDENTITY).trials == (trial,)


def test_the_times_of_a_trial_come_back(storage: Open) -> None:
    first = storage()
    first.open(IDENTITY)
    trials = [
        Trial(suggestion(0), "complete", 0.5, 1.0, elapsed=1 / 3, started=1e9 + 1 / 7, ended=1e9 + 2 / 7),
        Trial(suggestion(1), "failed", None, 0.0, error="boom", elapsed=2 / 3),
    ]
    for trial in trials:
        first.add_suggestion(trial.suggestion, {}, 1.0)
        first.add_early_outcome(trial)
    first.add_trial(trials[0])
    first.close()
    record = storage().open(IDENTITY)
    for trial, kept in zip(trials, [*record.trials, *record.early_outcomes], strict=True):
        assert (kept.elapsed, kept.started, kept.ended) == (trial.elapsed, trial.started, trial.ended)


def test_the_trajectory_comes_back_in_order(storage: Open) -> None:
    first = storage()
    assert first.open(IDENTITY).trajectory == ()
    for number in range(3):
        first.add_suggestion(suggestion(number), {}, 1.0)
    answers = [
        (1 / 3, Incumbent(suggestion(1).config, 1 / 7, 0.0, False, (1,))),
        (2 / 3, Incumbent(suggestion(0).config, -1 / 7, 1e-9, True, (0, 2))),
    ]
    for elapsed, incumbent in answers:
        first.add_incumbent(elapsed, incumbent)
    first.close()
    assert storage().open(IDENTITY).trajectory == tuple(answers)


def test_a_run_budget_can_be_saved_again_and_again(storage: Open) -> None:
    first = storage()
    first.open(IDENTITY)
    for seconds in (10.0, 20.0):
        first.save_run_budget(RunBudget(Budget(seconds, None), 100.0, 0.0, 0.0, 0))
    first.close()
    assert storage().open(IDENTITY).trials == ()


def test_a_file_that_is_not_open_cannot_be_written(tmp_path: Path) -> None:
    closed = SqliteStorage(tmp_path / "study.db")
    closed.open(IDENTITY)
    closed.close()
    with pytest.raises(RuntimeError, match="not open"):
        closed.add_early_outcome(Trial(suggestion(1), "complete", 0.5, 1.0))


def test_another_study_is_refused_with_what_differs_and_the_record_stays(storage: Open) -> None:
    first = storage()
    first.open(IDENTITY)
    first.add_suggestion(suggestion(0), {}, 0.0)
    first.close()
    others = {
        r"C|layers": replace(IDENTITY, space=Space({"C": Float(1e-3, 1e3)}, {"size": (100, 50_000)})),
        r"size": replace(
            IDENTITY, space=Space({"C": Float(1e-5, 1e5, log=True), "layers": [(64,), (64, 64)]})
        ),
        r"strategy is 'random', you asked for 'fabolas'": replace(IDENTITY, strategy="fabolas"),
        r"options are \{'share': 0.1\}, you asked for \{\}": replace(IDENTITY, options={}),
        r"seed is 3, you asked for 4": replace(IDENTITY, seed=4),
    }
    for message, other in others.items():
        with pytest.raises(ValueError, match=f"another study and was left as it is: .*({message})"):
            storage().open(other)
    record = storage().open(replace(IDENTITY, seed=99, seed_given=False))
    assert record.seed == 3
    assert len(record.suggestions) == 1


def test_one_study_at_a_time(storage: Open) -> None:
    first = storage()
    first.open(IDENTITY)
    with pytest.raises(RuntimeError, match=r"in use by another study.*close"):
        storage().open(IDENTITY)
    first.close()
    first.close()
    storage().open(IDENTITY)


def test_a_file_that_is_not_ours_is_refused_and_stays_byte_for_byte(tmp_path: Path) -> None:
    text, database, newer, empty_wal, older = (
        tmp_path / name for name in ("a.txt", "b.db", "c.db", "d.db", "e.db")
    )
    text.write_text("the only copy of my thesis" * 10)
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE study (key, value)")
    connection.close()
    with sqlite3.connect(newer) as connection:
        connection.executescript(
            f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA + 1}"
        )
        connection.execute("CREATE TABLE unheard_of (a)")
    connection.close()
    with sqlite3.connect(older) as connection:
        connection.executescript(f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 1")
        connection.execute("CREATE TABLE study (key, value)")
    connection.close()
    empty_wal.with_name("d.db-wal").write_bytes(b"somebody's last transactions")
    cases = {
        text: "not a study",
        database: "not a study",
        newer: rf"a newer version of fabolas \(schema {SCHEMA + 1}",
        empty_wal: "in the same directory",
        older: r"an older version of fabolas \(schema 1",
    }
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for path, message in cases.items():
        with pytest.raises(ValueError, match=message):
            SqliteStorage(path).open(IDENTITY)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_refused_study_file_stays_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    first = SqliteStorage(path)
    first.open(IDENTITY)
    first.add_suggestion(suggestion(0), {"a": np.zeros(3)}, 0.0)
    first.close()
    before = path.read_bytes()
    with pytest.raises(ValueError, match="another study"):
        SqliteStorage(path).open(replace(IDENTITY, seed=4))
    assert [p.name for p in tmp_path.iterdir()] == ["study.db"]
    assert path.read_bytes() == before


def test_a_damaged_study_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    first = SqliteStorage(path)
    first.open(IDENTITY)
    first.close()
    path.write_bytes(path.read_bytes()[:100] + b"\xff" * 8000)
    with pytest.raises(ValueError, match="is a study but is damaged"):
        SqliteStorage(path).open(IDENTITY)


def test_a_directory_or_a_missing_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is a directory"):
        SqliteStorage(tmp_path).open(IDENTITY)
    with pytest.raises(ValueError, match="does not exist"):
        SqliteStorage(tmp_path / "none" / "study.db").open(IDENTITY)


def test_other_files_in_the_directory_stay_byte_for_byte(tmp_path: Path) -> None:
    others = {tmp_path / f"poetry{suffix}": f"mine {suffix}" for suffix in (".lock", ".new", ".tmp")}
    for path, text in others.items():
        path.write_text(text)
    for _ in range(2):  # a new one and a continued one
        with Study({"x": Float(0, 1)}, strategy="random", storage=tmp_path / "poetry"):
            assert {path: path.read_text() for path in others} == others
    assert {path: path.read_text() for path in others} == others
    assert set(tmp_path.iterdir()) == {*others, tmp_path / "poetry"}


def test_an_empty_file_becomes_a_study(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    path.touch()
    SqliteStorage(path).open(IDENTITY)
    assert path.stat().st_size > 0


def test_a_storage_that_nobody_closed_does_not_stay_locked(tmp_path: Path) -> None:
    forgotten = SqliteStorage(tmp_path / "study.db")
    forgotten.open(IDENTITY)
    del forgotten
    assert SqliteStorage(tmp_path / "study.db").open(IDENTITY).trials == ()


def test_a_study_waits_for_another_program_that_writes_to_the_file_and_loses_nothing(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "study.db")
    with Study({"x": Float(0, 1)}, strategy="random", storage=storage) as study:
        asked = study.ask()
        assert storage._database is not None
        connection = storage._database.connection
        assert connection.execute("PRAGMA busy_timeout").fetchone()[0] >= 60_000
        connection.execute("PRAGMA busy_timeout = 1")
        with closing(sqlite3.connect(tmp_path / "study.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(RuntimeError, match=r"cannot be written \(database is locked\).*continue"):
                study.tell(asked, 0.5)
        assert study.trials == ()
        study.tell(asked, 0.5)
    with Study({"x": Float(0, 1)}, strategy="random", storage=tmp_path / "study.db") as study:
        assert [trial.loss for trial in study.trials] == [0.5]


def test_others_may_read_the_file_while_it_is_in_use(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "study.db")
    storage.open(IDENTITY)
    storage.add_suggestion(suggestion(0), {}, 0.0)
    with sqlite3.connect(f"file:{tmp_path / 'study.db'}?mode=ro", uri=True) as reader:
        rows = reader.execute("SELECT config FROM suggestion").fetchall()
    reader.close()
    assert json.loads(rows[0][0])["C"] == suggestion(0).config["C"]
    storage.add_suggestion(suggestion(1), {}, 0.0)
    storage.close()


HOLDER = """
import sys, time, fabolas
space = {"x": fabolas.Float(0, 1), "n": fabolas.Integer(1, 9)}
study = fabolas.Study(space, strategy="random", storage=sys.argv[1], seed=0, overhead=0.0)
for trial in range(int(sys.argv[2])):
    suggestion = study.ask()
    study.tell(suggestion, suggestion.config["x"], cost=1.0)
study.ask()
print("ready", flush=True)
time.sleep(60)
"""


def hold(path: Path, trials: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", HOLDER, str(path), str(trials)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.slow
def test_a_second_process_is_told_the_owner_and_a_killed_owner_leaves_a_free_and_complete_file(
    tmp_path: Path,
) -> None:
    path = tmp_path / "study.db"
    space = {"x": Float(0, 1), "n": Integer(1, 9)}
    with hold(path, trials=3) as process:
        with pytest.raises(RuntimeError, match=rf"in use by another process \(pid {process.pid}\)"):
            Study(space, strategy="random", storage=path)
        os.kill(process.pid, signal.SIGKILL)
    with Study(space, strategy="random", storage=path) as study:
        assert [trial.id for trial in study.trials] == [0, 1, 2, 3]
        assert [trial.status for trial in study.trials] == ["complete"] * 3 + ["abandoned"]
        assert study.trials[3].error is not None
        assert study.trials[3].error.startswith("the study was closed")
        assert study.ask().id == 4
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_that_outlives_a_killed_process_does_not_keep_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    forking = HOLDER.replace(
        'print("ready"', 'import os\nif os.fork() == 0: time.sleep(5); os._exit(0)\nprint("ready"'
    )
    with subprocess.Popen(
        [sys.executable, "-c", forking, str(path), "1"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.kill()
        process.wait()
        with Study({"x": Float(0, 1), "n": Integer(1, 9)}, strategy="random", storage=path) as study:
            assert len(study.trials) == 2
