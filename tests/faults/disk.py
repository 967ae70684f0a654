"""A full disk and a read-only directory: ``python -m tests.faults.disk CHECK DIRECTORY [SIZE]``.

A run that cannot write says so in one sentence and leaves no lock; what was written before can be read.
"""

import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fabolas
from fabolas.cli import main as command
from fabolas.storage import UnwritableError
from fabolas.storage.reader import read
from tests.faults.tally import SkippedError, Tried, attempt

ROOT = Path(__file__).parents[2]
NOBODY = 65534
SIZES = (0, 1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)  # KiB
SHORT_SIZES = (0, 8, 64)


def objective(config: dict[str, Any], size: int) -> fabolas.Outcome:
    return fabolas.Outcome(config["x"], info={"text": "x" * 1000})


def minimize(path: Path, trials: int = 200) -> None:
    fabolas.minimize(
        objective,
        {"x": fabolas.Float(0.0, 1.0)},
        {"size": (10, 1000)},
        max_trials=trials,
        strategy="random",
        storage=path,
        seed=0,
        progress=False,
    )


def refused(path: Path) -> str:
    """Run on a storage that cannot be written; returns what the run says."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            minimize(path)
    except (ValueError, OSError, UnwritableError) as error:
        said = str(error)
    else:
        raise AssertionError("the run ended as if everything was written")
    assert "\n" not in said, f"more than one line: {said}"
    assert path.name in said, f"it does not name the file: {said}"
    assert not said.startswith("[Errno"), f"a bare error of the system: {said}"
    return said


def check_left(path: Path) -> None:
    """After a run that ended for lack of room: no lock, and the file can be read or was never begun."""
    left = [other.name for other in path.parent.iterdir() if "-fabolas" in other.name]
    assert not left, f"left behind: {left}"
    if path.exists():
        study = read(path)
        assert study.lock_owner is None
        assert [trial.id for trial in study.trials] == list(range(len(study.trials)))


def full(directory: Path, kibibytes: int) -> None:
    """A directory in which no file may grow beyond a size."""
    path = directory / "study.db"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024 * kibibytes, limits[1]))
    refused(path)
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    check_left(path)


def full_mount(directory: Path, kibibytes: int) -> None:
    """A real file system without room."""
    refused(directory / "study.db")
    check_left(directory / "study.db")


def readonly(directory: Path, kibibytes: int) -> None:
    """A directory that may be read only: a new study, an old one, and the commands that read."""
    old = directory / "old.db"
    minimize(old, trials=5)
    for name in ("status", "best"):  # another user may not be able to import modules
        command([name, str(old)])
    directory.chmod(0o555)
    old.chmod(0o444)
    if os.getuid() == 0:
        directory.parent.chmod(0o755)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    refused(directory / "new.db")
    refused(old)
    for name in ("status", "best"):
        assert command([name, str(old)]) == 0, name
    assert len(read(old).trials) == 5


CHECKS: dict[str, Callable[[Path, int], None]] = {
    "full": full,
    "full_mount": full_mount,
    "readonly": readonly,
}


def in_own_process(check: str, directory: Path, kibibytes: int) -> None:
    """Limits and another user cannot be taken back, so each check has its own process."""
    arguments = [check, str(directory), str(kibibytes)]
    ended = subprocess.run(
        [sys.executable, "-m", "tests.faults.disk", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    said = ended.stderr.strip().splitlines()
    assert ended.returncode == 0, said[-1] if said else f"exit code {ended.returncode}"


@contextmanager
def small_file_system(place: Path, kibibytes: int) -> Iterator[Path]:
    """A file system of this size in memory."""
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if mount is None or umount is None or os.getuid() != 0:
        raise SkippedError("mounting a small file system needs root")
    made = subprocess.run(
        [mount, "-t", "tmpfs", "-o", f"size={kibibytes}k", "tmpfs", str(place)],
        capture_output=True,
        check=False,
    )
    if made.returncode != 0:
        raise SkippedError(f"a small file system cannot be mounted here: {made.stderr.decode().strip()}")
    try:
        yield place
    finally:
        subprocess.run([umount, str(place)], check=True)


def on_small_file_system(place: Path, kibibytes: int) -> None:
    with small_file_system(place, kibibytes) as directory:
        in_own_process("full_mount", directory, kibibytes)


def run(rng: random.Random, short: bool, count: int | None = None) -> Iterator[Tried]:
    for size in (SHORT_SIZES if short else SIZES)[:count]:
        with tempfile.TemporaryDirectory() as name:
            kind, what = "disk: a limit on the size of files", f"{size} KiB"
            yield attempt(kind, what, in_own_process, "full", Path(name), size)
    for size in (() if short else SIZES[2:])[:count]:
        with tempfile.TemporaryDirectory() as name:
            yield attempt("disk: a full file system", f"{size} KiB", on_small_file_system, Path(name), size)
    with tempfile.TemporaryDirectory() as name:
        (place := Path(name) / "place").mkdir()
        kind, what = "disk: a read-only directory", "a new study, an old one, status, best"
        yield attempt(kind, what, in_own_process, "readonly", place, 0)


if __name__ == "__main__":
    CHECKS[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]))
