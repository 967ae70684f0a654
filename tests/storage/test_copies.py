"""One file holds the study: copies of it during a run, after a kill, by ``backup`` and by ``salvage``."""

import shutil
import sqlite3
import subprocess
import sys
import warnings
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fabolas import Study
from fabolas.storage import Salvaged, UnwritableError, backup, salvage
from fabolas.storage.reader import read
from fabolas.study import load
from tests.storage.conftest import SPACE, open_study, read_only, run_trials

RUNNING = """
import os, sys, time
from tests.storage.conftest import open_study, run_trials
study = open_study(sys.argv[1])
for _ in range(int(sys.argv[2])):
    start = time.monotonic()
    run_trials(study, 1)
    time.sleep(10 * (time.monotonic() - start))  # copying the log may use a tenth of the time
suggestion = study.ask()
print("ready", flush=True)
sys.stdin.readline()
os.kill(os.getpid(), 9)
"""


def start(path: Path, trials: int) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", RUNNING, str(path), str(trials)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.slow
def test_the_file_alone_lacks_at_most_the_last_trial_during_a_run_and_after_a_kill(tmp_path: Path) -> None:
    path, during, after = (tmp_path / name for name in ("study.db", "during.db", "after.db"))
    with start(path, 8) as process:
        shutil.copyfile(path, during)
        process.communicate("end\n")
    shutil.copyfile(path, after)
    for copy in (during, after):
        file = read(copy)
        assert len(file.trials) >= 7
        assert file.lost_its_log
        with pytest.warns(RuntimeWarning, match=r"may lack its last trials: .*backup"):
            load(copy)
        with (
            pytest.warns(RuntimeWarning, match=r"may lack its last trials: .*backup"),
            open_study(copy) as study,
        ):
            assert len(study.trials) >= 7
    assert not read(path).lost_its_log
    path.with_name("study.db-wal").unlink()
    assert len(read(path).trials) >= 7
    assert read(path).lost_its_log


def test_the_warning_about_a_lost_log_points_to_the_line_that_opens_the_study(tmp_path: Path) -> None:
    path, copy = tmp_path / "study.db", tmp_path / "copy.db"
    with open_study(path) as study:
        run_trials(study, 1)
        shutil.copyfile(path, copy)
    with pytest.warns(RuntimeWarning, match="may lack its last trials") as said:
        load(copy)
    with pytest.warns(RuntimeWarning, match="may lack its last trials") as said_too:
        Study(SPACE, storage=copy, strategy="random").close()
    assert [warning.filename for warning in (*said, *said_too)] == [__file__, __file__]


def test_trials_of_milliseconds_do_not_wait_for_the_disk_each(tmp_path: Path) -> None:
    with open_study(tmp_path / "study.db") as study:
        run_trials(study, 1)
        before = (tmp_path / "study.db").stat().st_mtime_ns
        times = set()
        for _ in range(50):
            run_trials(study, 1)
            times.add((tmp_path / "study.db").stat().st_mtime_ns)
        assert len(times - {before}) < 25
    with open_study(tmp_path / "study.db") as study:
        assert len(study.trials) == 51


def test_a_closed_study_is_one_complete_file_for_every_reader(tmp_path: Path) -> None:
    with open_study(tmp_path / "study.db") as study:
        run_trials(study, 3)
    assert list(tmp_path.iterdir()) == [tmp_path / "study.db"]
    assert not read(tmp_path / "study.db").lost_its_log
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        open_study(tmp_path / "study.db").close()


@pytest.mark.slow
def test_a_backup_during_a_run_is_one_complete_file(tmp_path: Path) -> None:
    path, copy, own = tmp_path / "study.db", tmp_path / "copy.db", tmp_path / "own.db"
    with start(path, 2) as process:
        backup(path, copy)
        process.communicate("end\n")
    backup(path, tmp_path / "after the kill.db")
    with open_study(path) as study:
        run_trials(study, 1)
        backup(path, own)
        run_trials(study, 1)
    for name, trials in {"copy.db": 2, "after the kill.db": 2, "own.db": 4}.items():
        file = read(tmp_path / name)
        assert (len(file.trials), file.lost_its_log) == (trials, False)
    assert not [path for path in tmp_path.iterdir() if "-wal" in path.name or "-fabolas" in path.name]


def test_a_backup_replaces_nothing_and_says_what_it_cannot_do(tmp_path: Path) -> None:
    with open_study(tmp_path / "study.db") as study:
        run_trials(study, 1)
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    for name in ("mine", "link", "study.db"):
        with pytest.raises(ValueError, match="which exists; choose another name"):
            backup(tmp_path / "study.db", tmp_path / name)
    with pytest.raises(ValueError, match="in a directory that exists"):
        backup(tmp_path / "study.db", tmp_path / "none" / "copy.db")
    with pytest.raises(ValueError, match="not a study"):
        backup(tmp_path / "mine", tmp_path / "copy.db")
    with pytest.raises(ValueError, match="does not exist"):
        backup(tmp_path / "none", tmp_path / "copy.db")
    with read_only(tmp_path), pytest.raises(UnwritableError, match="cannot be written"):
        backup(tmp_path / "study.db", tmp_path / "copy.db")
    assert (tmp_path / "mine").read_text() == "mine"


def test_salvage_copies_a_sound_study_without_loss_and_it_can_be_continued(tmp_path: Path) -> None:
    path, copy = tmp_path / "study.db", tmp_path / "copy.db"
    with open_study(path) as study:
        run_trials(study, 5)
        study.fail(study.ask(), "boom", cost=1.0)
        pending = study.ask()
        with pytest.raises(ValueError, match="in use"):
            salvage(path, copy)
        study.tell(pending, 0.5, cost=1.0)
        study.ask()  # without an outcome it is left out
        expected = study.trials
    assert salvage(path, copy) == Salvaged(7, 0)
    assert read(copy).trials == read(path).trials[:7]
    with open_study(copy) as study:
        assert study.trials == expected
        assert study.ask().id == 7


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("suggestion", "config", "-1"),
        ("suggestion", "config", '{"a": 1}'),
        ("suggestion", "fidelity", "["),
        ("suggestion", "overhead", "x"),
        ("suggestion", "origin", b"x"),
        ("outcome", "info", "[]"),
        ("outcome", "started", "x"),
        ("outcome", "ended", 2**62),
        ("outcome", "elapsed", "x"),
    ],
)
def test_salvage_keeps_a_trial_whose_loss_and_point_can_be_read(
    table: str, column: str, value: Any, tmp_path: Path
) -> None:
    path, copy = tmp_path / "study.db", tmp_path / "copy.db"
    with open_study(path) as study:
        run_trials(study, 3)
        expected = study.trials
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = 2", (value,))
    found = salvage(path, copy)
    assert (found.trials, found.unreadable) == (3, 0)
    assert found.incomplete == (column not in ("config", "fidelity"))
    for trials in (read(copy).trials, open_study(copy).trials):
        assert [(trial.config, trial.loss) for trial in trials] == [
            (trial.config, trial.loss) for trial in expected
        ]


@pytest.mark.parametrize(
    ("key", "value"), [("direction", "-1"), ("direction", '"up"'), ("seed", '"x"'), ("options", "[]")]
)
def test_salvage_of_a_study_that_does_not_say_what_it_is_is_refused_in_one_line(
    key: str, value: str, tmp_path: Path
) -> None:
    path, copy = tmp_path / "study.db", tmp_path / "copy.db"
    with open_study(path) as study:
        run_trials(study, 1)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE study SET value = ? WHERE key = ?", (value, key))
    with pytest.raises(ValueError, match=f"says which study it is cannot be read .*{key}"):
        salvage(path, copy)
    assert not copy.exists()


def test_a_point_outside_of_the_space_is_named(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    with open_study(path) as study:
        run_trials(study, 2)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        ((point,),) = connection.execute("SELECT point FROM suggestion WHERE id = 1").fetchall()
        changed = b"\xff\xfe" * (len(point) // 2)  # finite numbers, far outside
        connection.execute("UPDATE suggestion SET point = ? WHERE id = 1", (changed,))
    for opened in (read, open_study):
        with pytest.raises(ValueError, match=r"damaged .*the point of suggestion 1 is not in the space"):
            opened(path)


def test_salvage_of_a_stranger_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("the only copy of my thesis" * 100)
    with pytest.raises(ValueError, match="is not a study of fabolas"):
        salvage(tmp_path / "text", tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()
