"""The commands ``backup`` and ``salvage``, and what the others say about files that were copied, damaged or deleted."""

import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import fabolas
from fabolas.storage.reader import read
from tests.helpers.command import PROBLEM, Fabolas

RUN = ("run", "problem.py", "--quiet", "--seed", "1", "--max-trials")


def test_backup_copies_a_study_and_replaces_nothing(command: Fabolas) -> None:
    command(*RUN, "3", "--storage", "run.db")
    ended = command("backup", "run.db", "copy.db")
    assert (ended.code, ended.out) == (0, "run.db was copied to copy.db\n")
    assert read("copy.db").trials == read("run.db").trials
    ended = command("backup", "run.db", "copy.db")
    assert (ended.code, ended.out) == (2, "")
    assert "which exists; choose another name" in ended.err


def test_a_damaged_study_is_one_sentence_that_names_salvage_and_salvage_recovers_the_rest(
    command: Fabolas,
) -> None:
    command(*RUN, "5", "--storage", "run.db")
    with closing(sqlite3.connect("run.db", isolation_level=None)) as connection:
        connection.execute("UPDATE outcome SET status = 'x' WHERE position = 2")
        connection.execute("UPDATE outcome SET info = '{' WHERE position = 3")
    for arguments in (
        ("status", "run.db"),
        ("best", "run.db"),
        ("export", "run.db", "t.csv"),
        (*RUN, "6", "--storage", "run.db"),
    ):
        ended = command(*arguments)
        assert (ended.code, ended.out) == (2, "")
        assert ended.err.count("\n") == 1
        assert "`fabolas salvage FILE COPY`" in ended.err
    ended = command("salvage", "run.db", "copy.db")
    assert (ended.code, ended.out) == (
        0,
        "4 trials written to copy.db, 1 row could not be read, 1 row could be read only in part\n",
    )
    assert re.search(r"time +\S+ recorded; first trial started \S+ ago\n", command("status", "copy.db").out)
    command("export", "copy.db", "trials.json")
    assert all(row["started"] <= row["ended"] for row in json.loads(Path("trials.json").read_text()))
    assert command(*RUN, "6", "--storage", "copy.db").code == 0
    assert len(read("copy.db").trials) == 6


def test_a_running_study_can_be_backed_up(command: Fabolas) -> None:
    with fabolas.Study({"x": [1, 2, 3]}, strategy="random", storage="run.db", seed=0) as study:
        study.tell(study.ask(), 0.5, cost=1.0)
        assert command("backup", "run.db", "copy.db").code == 0
        study.tell(study.ask(), 0.25, cost=1.0)
    assert [trial.loss for trial in read("copy.db").trials] == [0.5]


@pytest.mark.parametrize("name", ["backup", "salvage"])
def test_a_copy_never_replaces_a_file_and_needs_a_study(command: Fabolas, name: str) -> None:
    command(*RUN, "1", "--storage", "run.db")
    Path("notes.txt").write_text("the only copy of my thesis" * 10)
    for study, copy in (
        ("run.db", "notes.txt"),
        ("notes.txt", "new.db"),
        ("none.db", "new.db"),
        (".", "new.db"),
    ):
        ended = command(name, study, copy)
        assert (ended.code, ended.out) == (2, "")
        assert ended.err.startswith("fabolas: ")
        assert not Path("new.db").exists()
    assert Path("notes.txt").read_text() == "the only copy of my thesis" * 10
    ended = command(name, "run.db", "nowhere/copy.db")
    assert (ended.code, "Traceback" in ended.err) == (2, False)


def test_status_says_that_a_file_lost_its_log(command: Fabolas) -> None:
    command(*RUN, "3", "--storage", "run.db")
    assert json.loads(command("status", "--json", "run.db").out)["lost_its_log"] is False
    with closing(sqlite3.connect("run.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE notes (text)")
        shutil.copyfile("run.db", "copy.db")  # without its log
    assert json.loads(command("status", "--json", "copy.db").out)["lost_its_log"] is True
    assert "the last trials may be missing" in " ".join(command("status", "copy.db").out.split())
    for given in (("best", "copy.db"), ("export", "copy.db", "trials.csv")):
        said = command(*given).err.splitlines()
        assert len(said) == 1
        assert "copy.db may lack its last trials" in said[0]


@pytest.mark.filterwarnings("ignore:.*was deleted or renamed:RuntimeWarning")
def test_a_run_whose_file_was_deleted_names_the_new_file(command: Fabolas) -> None:
    deleting = "import pathlib\n" + PROBLEM.replace(
        "def objective(config, size):",
        "def objective(config, size):\n    pathlib.Path('run.db').unlink(missing_ok=True)",
    )
    Path("problem.py").write_text(deleting)
    ended = command(*RUN, "4", "--storage", "run.db")
    assert ended.code == 0
    assert f"The study is saved in {Path('run-rescued.db').resolve()}." in ended.out
    assert len(read("run-rescued.db").trials) == 4


@pytest.mark.parametrize("storage", ["sqlite:///run.db", ".", "none/run.db", "~nobody_of_this_name/run.db"])
def test_a_storage_that_cannot_be_is_one_sentence(command: Fabolas, storage: str) -> None:
    ended = command(*RUN, "3", "--storage", storage)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("fabolas: storage must be a")
    assert ended.err.count("\n") == 1
