"""``fabolas report`` writes the report of a study."""

from pathlib import Path

from tests.helpers.command import Fabolas
from tests.helpers.study_files import write_study


def test_the_command_writes_beside_the_reader_and_says_so(command: Fabolas, tmp_path: Path) -> None:
    write_study(tmp_path / "run.db", 3)
    ended = command("report", "run.db")
    assert ended.code == 0
    assert "report written to run.html (2" in ended.out
    assert (tmp_path / "run.html").read_text("utf-8").endswith("</html>")
    assert command("report", "run.db", "-o", "other.html").code == 0
    assert (tmp_path / "other.html").exists()


def test_the_command_says_what_is_wrong(command: Fabolas, tmp_path: Path) -> None:
    assert "does not exist" in command("report", "none.db").err
    write_study(tmp_path / "run.db", 3)
    ended = command("report", "run.db", "-o", "no/such/directory/report.html")
    assert ended.code == 2
    assert "No such file or directory" in ended.err
