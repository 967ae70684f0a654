"""Directories that cannot be written to, and small studies."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fabolas import Float, Space, Study

SPACE = Space({"x": Float(0.0, 1.0), "layers": [(64,), (64, 64)]}, {"size": (10, 1000)})


def open_study(path: Any, **settings: Any) -> Study:
    return Study(SPACE, strategy="random", storage=path, seed=3, overhead=0.1, **settings)


def run_trials(study: Study, number: int) -> None:
    for _ in range(number):
        suggestion = study.ask()
        study.tell(suggestion, suggestion.config["x"], cost=1.0, info={"id": suggestion.id})


@contextmanager
def read_only(directory: Path) -> Iterator[None]:
    """Nobody can write to the directory. Root can do that in spite of permissions, so it needs a mount."""
    if os.geteuid() != 0:
        directory.chmod(0o555)
        try:
            yield
        finally:
            directory.chmod(0o755)
        return
    _mount("--bind", str(directory), str(directory))
    try:
        _mount("-o", "remount,ro,bind", str(directory))
        yield
    finally:
        subprocess.run(["umount", str(directory)], check=True)


@contextmanager
def small_disk(directory: Path, size: str) -> Iterator[None]:
    """The directory is a disk of this size. Only root can do that."""
    _mount("-t", "tmpfs", "-o", f"size={size}", "none", str(directory))
    try:
        yield
    finally:
        subprocess.run(["umount", str(directory)], check=True)


def _mount(*arguments: str) -> None:
    command = shutil.which("mount")
    if (
        command is None
        or subprocess.run([command, *arguments], capture_output=True, check=False).returncode != 0
    ):
        pytest.skip("needs the right to mount")
