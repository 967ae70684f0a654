"""Paths that are no regular files, planted links, hard links, full disks, directories that cannot be written to."""

import errno
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fabolas.storage import UnwritableError
from fabolas.storage.lock import lock_owner
from fabolas.storage.reader import read
from tests.storage.conftest import open_study, read_only, run_trials, small_disk


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def test_a_device_is_refused_and_stays_a_device(tmp_path: Path) -> None:
    device = tmp_path / "null"
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        device = Path("/dev/null")
        if os.access("/dev", os.W_OK):
            pytest.skip("a failure would replace /dev/null")
    with pytest.raises(ValueError, match=r"must be a regular file, got .*, which is a device"):
        open_study(device)
    with pytest.raises(ValueError, match="which is a device"):
        read(device)
    assert stat.S_ISCHR(device.stat().st_mode)


def test_a_named_pipe_and_a_socket_are_refused_at_once_and_stay(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        for name, what in {"pipe": "a named pipe", "socket": "a socket"}.items():
            for look in (open_study, read):
                with pytest.raises(ValueError, match=f"which is {what}"):
                    look(tmp_path / name)
    assert names(tmp_path) == {"pipe", "socket"}


@pytest.mark.parametrize("kind", ["pipe", "link", "directory"])
def test_a_lock_file_that_is_no_regular_file_is_a_sentence_and_blocks_nobody(
    kind: str, tmp_path: Path
) -> None:
    path, victim = tmp_path / "study.db", tmp_path / "victim"
    with open_study(path) as study:
        run_trials(study, 2)
    lock = tmp_path / "study.db-fabolas-lock"
    victim.write_text("mine")
    match kind:
        case "pipe":
            os.mkfifo(lock)
        case "link":
            lock.symlink_to(victim)
        case "directory":
            lock.mkdir()
    for look in (open_study, read, lock_owner):
        with pytest.raises((ValueError, RuntimeError, IsADirectoryError), match=r"study\.db"):
            look(path)
    assert victim.read_text() == "mine"


def test_a_link_planted_where_a_draft_was_expected_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    for suffix in ("-fabolas-new", "-fabolas-new-0123"):
        (tmp_path / f"study.db{suffix}").symlink_to(victim)
    with open_study(tmp_path / "study.db") as study:
        run_trials(study, 1)
    assert victim.read_text() == "mine"


def test_drafts_of_killed_processes_are_removed(tmp_path: Path) -> None:
    (tmp_path / "study.db-fabolas-new-0123").write_text("half a study")
    (tmp_path / "other.db-fabolas-new-0123").write_text("another study")
    open_study(tmp_path / "study.db").close()
    assert names(tmp_path) == {"study.db", "other.db-fabolas-new-0123"}


def test_a_log_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "study.db-wal").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"study\.db-wal, which belongs to another database"):
        open_study(tmp_path / "study.db")
    assert names(tmp_path) == {"study.db-wal"}


def test_a_file_with_two_names_is_refused_under_both(tmp_path: Path) -> None:
    path, other = tmp_path / "study.db", tmp_path / "other.db"
    with open_study(path) as study:
        run_trials(study, 2)
        other.hardlink_to(path)
        with pytest.raises(ValueError, match="has 2 names"):
            open_study(other)
        run_trials(study, 1)  # the study that was first is not disturbed
    for name in (path, other):
        with pytest.raises(ValueError, match="has 2 names"):
            open_study(name)
    other.unlink()
    with open_study(path) as study:
        assert len(study.trials) == 3


def test_a_symbolic_link_to_a_study_is_the_study(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "study.db")
    with open_study(tmp_path / "link.db") as study:
        run_trials(study, 1)
        with pytest.raises(RuntimeError, match="in use by another study"):
            open_study(tmp_path / "study.db")
    assert len(read(tmp_path / "study.db").trials) == 1


def test_the_home_directory_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with open_study("~/study.db") as study:
        run_trials(study, 1)
    assert names(tmp_path) == {"study.db"}
    assert len(read("~/study.db").trials) == 1


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("~nobody_of_this_name/study.db", "storage must be a path, got '~nobody_of_this_name/study.db'"),
        ("sqlite:///study.db", r"got the URL 'sqlite:///study.db'; write 'study.db'"),
        ("postgresql://server/study", r"got the URL 'postgresql://server/study'; give the name of a file"),
        ("study\0.db", "storage must be a"),
        ("x" * 300, "storage must be a file, got .*File name too long"),
    ],
)
def test_a_path_that_cannot_be_is_a_sentence(path: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        open_study(path)


def test_a_loop_of_links_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    for look in (open_study, read):
        with pytest.raises(ValueError, match=r"storage must be a path, got .*(loop|[Ss]ymlink)"):
            look(tmp_path / "a")


def test_a_read_only_directory_is_a_sentence_at_the_start_and_can_be_read(tmp_path: Path) -> None:
    with open_study(tmp_path / "study.db") as study:
        run_trials(study, 3)
    with read_only(tmp_path):
        for name in ("study.db", "new.db"):
            with pytest.raises(
                UnwritableError, match=r"cannot be created in its directory .*choose a directory"
            ):
                open_study(tmp_path / name)
        assert len(read(tmp_path / "study.db").trials) == 3
        assert names(tmp_path) == {"study.db"}


def test_a_file_that_may_not_be_written_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    with open_study(path) as study:
        run_trials(study, 1)
    path.chmod(0o444)
    if os.access(path, os.W_OK):
        pytest.skip("root may write to every file")
    with pytest.raises(UnwritableError, match="cannot be written"):
        open_study(path)
    assert names(tmp_path) == {"study.db"}


KILLED = """
import os, sys
from tests.storage.conftest import open_study, run_trials
study = open_study(sys.argv[1])
run_trials(study, 5)
os.kill(os.getpid(), 9)
"""


def killed(path: Path) -> None:
    process = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert process.returncode == -9


@pytest.mark.slow
def test_what_a_killed_process_left_can_be_read_in_a_read_only_directory(tmp_path: Path) -> None:
    killed(tmp_path / "study.db")
    (tmp_path / "study.db-shm").unlink()  # as after a copy of the file and its log
    before = names(tmp_path)
    assert "study.db-wal" in before
    with read_only(tmp_path):
        assert len(read(tmp_path / "study.db").trials) == 5
        assert names(tmp_path) == before


def test_a_full_disk_at_the_start_is_a_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    with small_disk(tmp_path, "8k"):
        with pytest.raises(UnwritableError, match=r"study\.db cannot be"):
            open_study(tmp_path / "study.db")
        assert names(tmp_path) == set()


def test_a_lock_that_cannot_be_written_is_not_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, data: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(UnwritableError, match="No space left on device"):
            open_study(tmp_path / "study.db")
    assert names(tmp_path) == set()
    open_study(tmp_path / "study.db").close()
