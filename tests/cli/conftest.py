"""The command ``fabolas`` as a fixture."""

import sys
from pathlib import Path

import pytest

from fabolas.cli import main
from tests.helpers.command import PROBLEM, Ended, Fabolas


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Fabolas:
    """``fabolas`` in this process, in a directory of its own with a problem."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "problem.py").write_text(PROBLEM)

    def run(*arguments: str) -> Ended:
        before, path = set(sys.modules), list(sys.path)
        try:
            code = main(list(arguments))
        except SystemExit as end:  # argparse
            code = int(end.code or 0)
        finally:
            sys.path[:] = path
            for name in set(sys.modules) - before:
                if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
                    del sys.modules[name]
        return Ended(code, *capsys.readouterr())

    return run
