"""``fabolas dashboard`` and ``fabolas run --dashboard``."""

import socket
from pathlib import Path

import pytest

from tests.helpers.command import Fabolas

WATCHED_PROBLEM = """
import json, re, time, urllib.error, urllib.request
from pathlib import Path
import fabolas

space = {"x": fabolas.Float(0.0, 1.0)}
strategy = "random"

def objective(config):
    # Waits for the dashboard of its own run, which it finds in what the command printed.
    page = Path("page.txt")
    deadline = time.time() + 60
    while not page.exists() and time.time() < deadline:
        try:
            with urllib.request.urlopen(Path("address.txt").read_text(), timeout=20) as answer:
                page.write_text(answer.read().decode())
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    return config["x"]
"""


@pytest.mark.slow
def test_a_run_with_a_dashboard_can_be_watched_while_it_lasts(
    command: Fabolas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fabolas.cli.dashboard as module

    usual = module._free_port

    def noted() -> int:
        port = usual()
        (tmp_path / "address.txt").write_text(f"http://127.0.0.1:{port}/")
        return port

    monkeypatch.setattr(module, "_free_port", noted)
    (tmp_path / "watched.py").write_text(WATCHED_PROBLEM)
    ended = command("run", "watched.py", "--max-trials", "2", "--storage", "run.db", "--dashboard", "--quiet")
    assert ended.code == 0
    assert (tmp_path / "address.txt").read_text() in ended.err
    page = (tmp_path / "page.txt").read_text()
    assert "<h1>run</h1>" in page
    assert "chip live" in page


def test_a_dashboard_of_a_run_needs_a_file(command: Fabolas) -> None:
    ended = command("run", "problem.py", "--max-trials", "1", "--dashboard")
    assert ended.code == 2
    assert "--storage run.db" in ended.err


def test_a_port_in_use_is_named(command: Fabolas) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = command("dashboard", ".", "--port", str(port))
    assert ended.code == 2
    assert f"port {port} of 127.0.0.1 cannot be used" in ended.err


@pytest.mark.parametrize("port", ["0", "65536", "http"])
def test_a_port_must_be_one(command: Fabolas, port: str) -> None:
    assert command("dashboard", ".", "--port", port).code == 2


def test_a_file_in_no_directory_is_refused(command: Fabolas) -> None:
    assert "whose directory does not exist" in command("dashboard", "no/such/run.db").err


def test_without_the_libraries_it_says_what_to_install(
    command: Fabolas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fabolas.cli.dashboard.find_spec", lambda name: None)
    ended = command("dashboard", ".")
    assert ended.code == 2
    assert "pip install 'fabolas[dashboard]'" in ended.err
