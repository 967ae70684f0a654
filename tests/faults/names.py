"""Hostile names: the same text as a name, a choice, a fidelity, an error and info, everywhere that fabolas shows it.

Places: terminal, notebook, log, ``fabolas status``, ``best`` and ``export`` to CSV and JSON, the text of a result, and
HTML. Nothing is interpreted, nothing raises, and the text can be read.
"""

import csv
import html
import io
import json
import random
import re
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from html.parser import HTMLParser
from pathlib import Path
from unittest import mock

from rich.console import Console

import fabolas
from fabolas.budget import Budget
from fabolas.cli import main
from fabolas.display import safe_html, safe_text
from fabolas.progress import FidelityCounts, RunningTrial, Snapshot, show_progress
from fabolas.progress.notebook import NotebookOutput
from fabolas.progress.screen import state_table
from tests.faults.tally import Tried, attempt
from tests.helpers.hostile import HOSTILE

FORMULA = re.compile(r"[=@+\-\t\r\n\uff1d\uff0b\uff0d\uff20]")
NUMBER = re.compile(r"[-+.\deE]+")
RICH = re.compile(r"\x1b\[\??[0-9;]*[A-KhlmJ]")  # the sequences that rich itself writes
FIRST = 40  # characters of a long text that must be seen; lines may be cut


def write_study(path: Path, text: str) -> None:
    """A study with the text in every place."""
    space = {text: fabolas.Float(0.0, 1.0), "choice": [text], "other": [text, "b"]}
    with fabolas.Study(space, {f"size {text}": (1, 10)}, strategy="random", storage=path, seed=0) as study:
        study.tell(study.ask(), 0.5, cost=1.0, info={text: text})
        study.fail(study.ask(), f"ValueError: {text}", cost=1.0)


def snapshot(text: str) -> Snapshot:
    """The state of a run with the text in every place."""
    return Snapshot(
        trials=3,
        failed=1,
        incumbent=fabolas.Incumbent({text: 1.0, "choice": text, "list": [text]}, 0.5, 0.1, True, (1,)),
        fidelity={text: 7},
        running=(RunningTrial(4, {text: 7}),),
        fidelity_counts=(FidelityCounts(text, 1, 10, (1, 2)),),
        failure=(2, f"ValueError: {text}"),
        notice=f"note {text}",
    )


def check_shown(text: str, output: str) -> None:
    """The output is printable and shows the text."""
    strange = {c for c in output if not (c.isprintable() or c == "\n" or c >= "\xa0")}
    assert not strange, f"the output has {strange}"
    shown = re.sub(r"\s", "", safe_text(text))[:FIRST]
    assert shown in re.sub(r"\s", "", output), f"{shown} is not in the output"


def command(*arguments: str) -> str:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(list(arguments))
    assert (code, err.getvalue()) == (0, ""), f"exit code {code}: {err.getvalue()}"
    return out.getvalue()


def in_status_and_best(text: str, directory: Path) -> None:
    write_study(directory / "run.db", text)
    for name in ("status", "best"):
        check_shown(text, command(name, str(directory / "run.db")))


def in_csv(text: str, directory: Path) -> None:
    write_study(directory / "run.db", text)
    command("export", str(directory / "run.db"), str(directory / "trials.csv"))
    with (directory / "trials.csv").open(newline="", encoding="utf-8") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    formulas = [cell for cell in cells if FORMULA.match(cell) and not NUMBER.fullmatch(cell)]
    assert not formulas, f"formulas: {formulas}"
    assert "\x1b" not in "".join(cells), "an escape sequence"


def in_json(text: str, directory: Path) -> None:
    write_study(directory / "run.db", text)
    command("export", str(directory / "run.db"), str(directory / "trials.json"))
    rows = json.loads((directory / "trials.json").read_text())
    assert rows[0]["config_choice"] == text.encode(errors="backslashreplace").decode()


def in_terminal(text: str, directory: Path) -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, color_system=None, width=3000, _environ={})
    with show_progress(True, Budget(trials=9), lambda: 0.0, console) as display:
        display.update(snapshot(text))
        display.notice(f"note {text}")
    check_shown(text, RICH.sub("", stream.getvalue()).replace("\r", ""))


def in_log(text: str, directory: Path) -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=False, width=3000, _environ={})
    with show_progress(True, Budget(trials=9), lambda: 0.0, console) as display:
        display.update(snapshot(text))
    check_shown(text, stream.getvalue())


def in_notebook(text: str, directory: Path) -> None:
    contents: list[dict[str, str]] = []
    module = types.ModuleType("IPython.display")
    module.display = lambda content, **_: contents.append(content)  # type: ignore[attr-defined]
    with mock.patch.dict(sys.modules, {"IPython.display": module}):
        NotebookOutput(lambda: state_table(snapshot(text), wrap=True))
    page = contents[0]["text/html"]
    tags = set(re.findall(r"<\s*(/?\w+)", page))
    assert tags <= {"pre", "/pre", "span", "/span"}, f"tags {tags}"
    assert not re.search(r"<[^>]*(href|on\w+|src)=", page), "an attribute"
    check_shown(text, html.unescape(re.sub(r"<[^>]*>", "", page)))


class _Page(HTMLParser):
    """The tags, the attributes and the text of a page, as a browser reads it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags, self.attributes, self.text = set[str](), set[str](), ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


def in_html(text: str, directory: Path) -> None:
    """The page of a study, as a notebook shows it, and text within a quoted attribute."""
    write_study(directory / "run.db", text)
    page = _Page(fabolas.load(directory / "run.db")._repr_html_())
    tags = {"div", "b", "span", "table", "thead", "tbody", "tr", "th", "td", "details", "summary"}
    assert page.tags <= tags, f"tags {page.tags - tags}"
    assert page.attributes <= {"style"}, f"attributes {page.attributes}"
    check_shown(text, page.text)
    assert not set("<>\"'") & set(safe_html(text)), "it can end a tag or an attribute"


def in_result(text: str, directory: Path) -> None:
    space = {text: fabolas.Float(0.0, 1.0), "choice": [text]}
    check_shown(
        repr(text),
        str(
            fabolas.minimize(
                lambda config: config[text], space, max_trials=1, strategy="random", seed=0, progress=False
            )
        ),
    )


PLACES: dict[str, Callable[[str, Path], None]] = {
    "terminal": in_terminal,
    "log": in_log,
    "notebook": in_notebook,
    "HTML": in_html,
    "status, best": in_status_and_best,
    "CSV": in_csv,
    "JSON": in_json,
    "result": in_result,
}


def run(rng: random.Random, short: bool, count: int | None = None) -> Iterator[Tried]:
    texts = HOSTILE[:16:3] if short else HOSTILE
    for place, look in PLACES.items():
        for text in texts[:count]:
            with tempfile.TemporaryDirectory() as name:
                yield attempt(f"name in {place}", repr(text)[:60], look, text, Path(name))
