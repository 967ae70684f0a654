"""Damaged files of a study: ``python -m tests.faults --only damage``.

Each file is damaged in its bytes or in its fields. Then it is read with its answer, shown and exported by the
commands, opened and salvaged. Every step must succeed or say in one line what is wrong; a traceback of SQLite, JSON or
numpy is a failure. What was salvaged must be readable.
"""

import io
import itertools
import random
import sqlite3
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import fabolas
from fabolas.cli import main
from fabolas.execution import Ended
from fabolas.storage import UnwritableError, salvage
from fabolas.storage.reader import read
from fabolas.study import load
from tests.faults.tally import Tried, attempt

SPACE = fabolas.Space(
    {"x": fabolas.Float(0.0, 1.0), "kernel": ["rbf", "poly"]},
    {"size": fabolas.Fidelity(10, 1000, reports=True)},
)
OPTIONS: dict[str, Any] = {"strategy": "ei", "n_initial": 4, "effort": 0.0}
TRIALS = 60
VALUES = (None, "", "x", "NaN", "[", '{"a": 1}', "[" * 5000, -1, 2**62, float("inf"), b"", b"\xff\xfe" * 12)


def make(path: Path) -> None:
    """A study with completed, failed and pending trials, answers, and an outcome that it was not told."""
    with _open(path) as study:
        for number in range(TRIALS):
            suggestion = study.ask()
            if number % 5 == 0:
                study.tell_report(suggestion, 2.0, 0.1, size=10)
            if number % 7 == 3:
                study.fail(suggestion, "boom", cost=0.5, info={"number": number})
            else:
                study.tell(suggestion, suggestion.config["x"], cost=1.0, info={"number": number})
            if number % 20 == 9:
                study.incumbent()
        study.save_event(Ended(study.ask().id, "complete", 0.5, 1.0), None)
        study.ask()


def _open(path: Path) -> fabolas.Study:
    return fabolas.Study(SPACE, storage=path, seed=1, overhead=0.1, **OPTIONS)


def damaged_bytes(path: Path, rng: random.Random) -> str:
    """Change some bytes of the file; returns how."""
    content = bytearray(path.read_bytes())
    how = rng.choice(["flip", "zero page", "noise page", "truncate", "header", "swap pages", "append"])
    page = 4096 * rng.randrange(len(content) // 4096)
    match how:
        case "flip":
            for _ in range(rng.choice([1, 10, 100])):
                content[rng.randrange(100, len(content))] ^= 1 << rng.randrange(8)
        case "zero page":
            content[page : page + 4096] = bytes(4096)
        case "noise page":
            content[page : page + 4096] = rng.randbytes(4096)
        case "truncate":
            del content[rng.randrange(len(content)) :]
        case "header":
            content[rng.randrange(100)] ^= 1 << rng.randrange(8)
        case "swap pages":
            other = 4096 * rng.randrange(len(content) // 4096)
            content[page : page + 4096], content[other : other + 4096] = (
                content[other : other + 4096],
                content[page : page + 4096],
            )
        case "append":
            content += rng.randbytes(5000)
    path.write_bytes(content)
    return how


def field_damages(path: Path) -> Iterator[tuple[str, str, str | None, Any]]:
    """Table, column, key and value of every damage of a field: each key of ``study``, any row of other tables."""
    with closing(sqlite3.connect(path)) as connection:
        tables = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        ]
        keys = [key for (key,) in connection.execute("SELECT key FROM study")]
        columns = {
            table: [row[1] for row in connection.execute(f"PRAGMA table_info({table})")] for table in tables
        }
    for key, value in itertools.product(keys, VALUES):
        yield "study", "value", key, value
    for table in sorted(columns.keys() - {"study"}):
        for column, value in itertools.product(columns[table], VALUES):
            yield table, column, None, value


def damaged_field(
    path: Path, table: str, column: str, key: str | None, value: Any, rng: random.Random
) -> bool:
    """Change one field; False if the table is empty, or SQLite does not take the value."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        rows = connection.execute(
            f"SELECT rowid FROM {table}{'' if key is None else ' WHERE key = ?'}", [key] if key else []
        )
        found = [row for (row,) in rows]
        if not found:
            return False
        row = rng.choice(found)
        try:
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, row))
        except (sqlite3.IntegrityError, OverflowError):
            return False
    return True


def check(path: Path) -> dict[str, str]:
    """Do everything with a damaged file. Returns for each step "fine" or "sentence"; raises what is neither."""
    copy = path.with_name("salvaged.db")
    copy.unlink(missing_ok=True)
    steps: dict[str, Callable[[], Any]] = {
        "read": lambda: load(path).incumbent(),
        "status": lambda: _command("status", path),
        "best": lambda: _command("best", path),
        "export": lambda: _command("export", path, path.with_name("trials.csv")),
        "salvage": lambda: salvage(path, copy),
        "open": lambda: _open(path).close(),
    }
    found = {name: _outcome(step) for name, step in steps.items()}
    if found["salvage"] == "fine":
        read(copy)
        _command("status", copy)
        # Where the seed or an option was damaged, the copy is another study.
        found["open the salvaged one"] = _outcome(lambda: _open(copy).close())
    return found


def _command(name: str, *files: Path) -> None:
    """Run a command of ``fabolas``; raises ValueError with what it prints if it fails."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as said:
        code = main([name, *map(str, files)])
    if code:
        raise ValueError(said.getvalue().removesuffix("\n"))


def _outcome(step: Callable[[], Any]) -> str:
    said = ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # "may lack its last trials"
            step()
    except (ValueError, UnwritableError) as error:
        said = str(error)
    assert "\n" not in said, f"more than one line: {said}"
    assert not said or "study" in said, f"not a sentence about the file: {said}"
    return "sentence" if said else "fine"


def run(rng: random.Random, short: bool, count: int | None = None) -> Iterator[Tried]:
    """Damage files by turns in their bytes and in their fields."""
    with tempfile.TemporaryDirectory() as directory:
        sound, path = Path(directory) / "sound.db", Path(directory) / "study.db"
        make(sound)
        fields = list(field_damages(sound))
        rng.shuffle(fields)
        for number in range(count or (20 if short else 400)):
            path.write_bytes(sound.read_bytes())
            if number % 2 == 0:
                kind, what = "damaged file: bytes", damaged_bytes(path, rng)
            else:
                # SQLite does not accept every value in every column.
                while not damaged_field(path, *(damage := fields.pop()), rng):
                    pass
                kind, what = "damaged file: fields", repr(damage)[:80]
            yield attempt(kind, f"file {number}, {what}", check, path)
