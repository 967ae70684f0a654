"""Names, choices, errors and paths are shown as they are, whatever they contain."""

import csv
import json
import re
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import fabolas
from fabolas.display import safe_csv_cell, safe_text
from tests.helpers.command import Fabolas
from tests.helpers.hostile import HOSTILE

PATHS = tuple(text for text in HOSTILE if "/" not in text and "\0" not in text and len(text) < 200)
STARTS = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"


def study_with(text: str, path: str = "run.db") -> None:
    """Write a study with the text as a name, a choice, a fidelity and an error."""
    Path(path).write_bytes(file_with(text))


@cache  # for all the commands that show it
def file_with(text: str) -> bytes:
    with TemporaryDirectory() as place:
        write_study(text, path := Path(place) / "run.db")
        return path.read_bytes()


def write_study(text: str, path: Path) -> None:
    space = {text: fabolas.Float(0.0, 1.0), "choice": [text], "other": [text, "b"]}
    with fabolas.Study(space, {f"size {text}": (1, 10)}, strategy="random", storage=path, seed=0) as study:
        study.tell(study.ask(), 0.5, cost=1.0)
        study.tell(study.ask(), 0.7, cost=1.0, info={text: text})
        study.fail(study.ask(), f"Traceback (most recent call last):\n  File\nValueError: {text}\n", cost=1.0)


def is_safe(output: str) -> bool:
    return all(c.isprintable() or c == "\n" or c >= "\xa0" for c in output)


def without_blanks(output: str) -> str:
    return re.sub(r"\s", "", output)


@pytest.mark.parametrize("text", HOSTILE)
def test_status_and_best_show_user_text_as_it_is(command: Fabolas, text: str) -> None:
    study_with(text)
    status, best = command("status", "run.db"), command("best", "run.db")
    for ended in (status, best):
        assert (ended.code, ended.err) == (0, "")
        assert is_safe(ended.out)
        assert without_blanks(safe_text(text)) in without_blanks(ended.out)
    first_line = text.split("\n")[0].rstrip()
    error = without_blanks(status.out)
    assert without_blanks(f"failed #2 ValueError: {safe_text(first_line)}") in error


def test_watching_shows_user_text_as_it_is(command: Fabolas) -> None:
    study_with("[/a]\x1b[2J")
    ended = command("status", "run.db", "--watch")
    assert (ended.code, is_safe(ended.out)) == (0, True)
    assert "choice = [/a]\\x1b[2J" in ended.out


@pytest.mark.parametrize("text", HOSTILE)
def test_json_has_the_exact_text_in_printable_ascii(command: Fabolas, text: str) -> None:
    study_with(text)
    out = command("best", "run.db", "--json").out
    text = text.encode(errors="backslashreplace").decode()  # a study has no lone surrogates
    assert out.replace("\n", "").isascii()
    assert out.replace("\n", "").isprintable()
    assert json.loads(out)["config"]["choice"] == text
    assert json.loads(command("status", "run.db", "--json").out)["best"]["config"]["choice"] == text
    assert command("export", "run.db", "trials.json").code == 0
    rows = json.loads(Path("trials.json").read_text())
    assert [row["config_choice"] for row in rows] == [text] * 3
    assert rows[1][f"info_{text}"] == text
    assert rows[2]["error"].startswith("ValueError:")


@pytest.mark.parametrize("text", HOSTILE)
def test_no_cell_of_a_csv_file_is_a_formula_or_an_escape_sequence(command: Fabolas, text: str) -> None:
    study_with(text)
    assert command("export", "run.db", "trials.csv").code == 0
    with Path("trials.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = list(csv.reader(file))
    cells = [*header, *(cell for row in rows for cell in row)]
    assert is_safe("".join(cells).replace("\t", "").replace("\r", ""))
    assert not [
        cell for cell in cells if cell[:1] and cell[0] in STARTS and not re.fullmatch(r"[-+.\deE]+", cell)
    ]
    assert [row[header.index("config_choice")] for row in rows] == [safe_csv_cell(text)] * 3
    assert [float(row[header.index("cost")]) for row in rows] == [1.0] * 3


def test_negative_numbers_stay_numbers_in_csv(command: Fabolas) -> None:
    space = {"x": fabolas.Float(-2.0, -1.0), "word": ["-1.5"]}
    with fabolas.Study(space, strategy="random", storage="run.db", seed=0) as study:
        study.tell(study.ask(), -0.25, cost=1.0)
    command("export", "run.db", "trials.csv")
    with Path("trials.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert float(row["loss"]) == -0.25
    assert -2 <= float(row["config_x"]) <= -1
    assert row["config_word"] == "-1.5"


@pytest.mark.parametrize("text", PATHS)
def test_paths_are_shown_as_they_are(command: Fabolas, text: str) -> None:
    path = f"{text}.db"
    ended = command("run", "problem.py", "--max-trials", "1", "--seed", "0", f"--storage={path}", "--quiet")
    assert ended.code == 0
    assert is_safe(ended.out)
    assert f"The study is saved in {safe_text(path)}. " in ended.out
    status = command("status", "--", path)
    assert (status.code, is_safe(status.out)) == (0, True)
    assert without_blanks(safe_text(path)) in without_blanks(status.out)
    exported = command("export", "--", path, f"{text}.csv")
    assert exported.out == f"1 trial written to {safe_text(f'{text}.csv')}\n"
    missing = command("best", "--", f"no {path}")
    assert (missing.code, is_safe(missing.err.replace("\t", ""))) == (2, True)
    assert safe_text(path) in missing.err


@pytest.mark.parametrize("text", HOSTILE)
def test_a_result_shows_user_text_as_it_is(text: str) -> None:
    result = fabolas.minimize(
        lambda config: config[text],
        {text: fabolas.Float(0.0, 1.0), "choice": [text]},
        max_trials=2,
        strategy="random",
        seed=0,
        progress=False,
    )
    assert is_safe(str(result))
    assert f"choice={safe_text(repr(text))}" in str(result)


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("first_loss", [None, 1.0])
def test_what_a_run_says_about_failures_shows_user_text_as_it_is(first_loss: float | None, text: str) -> None:
    losses = [first_loss]

    def objective(config: dict[str, float]) -> float:
        loss = losses.pop() if losses else None
        if loss is None:
            raise ValueError(text)
        return loss

    def run(max_trials: int) -> fabolas.Result:
        return fabolas.minimize(
            objective,
            {"x": fabolas.Float(0.0, 1.0)},
            max_trials=max_trials,
            strategy="random",
            seed=0,
            max_failures=2,
            progress=False,
        )

    if first_loss is None:
        with pytest.raises(RuntimeError, match="2 trials in a row failed") as caught:
            run(9)
        said = str(caught.value)
    else:
        with pytest.warns(RuntimeWarning, match="2 trials in a row failed") as warned:
            run(9)
        said = str(warned[0].message)
    assert is_safe(said.replace("\t", ""))
    assert f"ValueError: {safe_text(text.split(chr(10))[0])}".rstrip() in said
