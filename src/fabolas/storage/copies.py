"""Copy the file of a study: ``backup`` copies a sound one, ``salvage`` what can be read of a damaged one."""

import json
import math
import os
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fabolas._types import Array
from fabolas.curve_reports import Report
from fabolas.direction import check_direction
from fabolas.display import safe_text
from fabolas.plain_values import to_json
from fabolas.space import Space
from fabolas.storage.base import Record
from fabolas.storage.database import write_errors
from fabolas.storage.files import create_draft, kind_of, resolve
from fabolas.storage.lock import lock_owner
from fabolas.storage.reader import connect_to_read, read
from fabolas.storage.schema import (
    APPLICATION_ID,
    EARLY_OUTCOMES,
    OUTCOME_COLUMNS,
    REPORT_COLUMNS,
    SCHEMA,
    SQLITE_MAGIC,
    SUGGESTION_COLUMNS,
    check_header,
    create,
    damage_as_value_error,
    load_state,
    outcome_of_row,
    point_of_blob,
    report_of_row,
)
from fabolas.trials import YEAR_10000, Suggestion, Trial, as_info

# In a row; then the search has passed the end of a table whose length cannot be read.
_MAX_MISSING_ROWS = 1000
_MIN_ROW_BYTES = 20  # no row of a suggestion or an outcome is shorter; bounds the search in a damaged table
_UNKNOWN = "unknown"  # origin of a suggestion whose origin cannot be read


@dataclass(frozen=True)
class Salvaged:
    """What ``salvage`` found.

    Attributes:
        trials: How many trials the new file has.
        unreadable: How many rows of suggestions and outcomes could not be read, as far as that can be known.
        incomplete: How many rows were read without a part: info, times, or how the suggestion was made.
    """

    trials: int
    unreadable: int
    incomplete: int = 0


def backup(path: str | Path, copy: str | Path) -> None:
    """Copy a study to a new file, even while it runs. The copy is one complete file.

    Raises:
        ValueError: If the file is not a study or is damaged, or the copy exists.
        UnwritableError: If the copy cannot be written.
    """
    source, target = _source(path), _target(copy)
    owner = lock_owner(source)
    if owner != os.getpid():
        check_header(source)
    with write_errors(target):
        draft = create_draft(target)
    try:
        with (
            damage_as_value_error(source),
            connect_to_read(source, owner) as connection,
            write_errors(target),
            closing(sqlite3.connect(draft, isolation_level=None)) as copied,
        ):
            connection.backup(copied)
            copied.execute("PRAGMA journal_mode = DELETE")
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def salvage(path: str | Path, copy: str | Path) -> Salvaged:
    """Copy the trials that can still be read from a damaged study to a new file. The damaged file is only read.

    The new file has the trials in the order in which they ended. Their suggestions get new numbers without gaps.
    Suggestions without a trial and the trajectory are left out.

    Raises:
        ValueError: If the file is not a study, nothing says what study it is, or the copy exists.
        UnwritableError: If the copy cannot be written.
    """
    source, target = _source(path), _target(copy)
    if lock_owner(source) is not None:
        raise ValueError(
            f"{safe_text(source)} is in use, and only a study that is not in use can be salvaged; end its run first"
        )
    with tempfile.TemporaryDirectory(prefix="fabolas-") as directory:
        work = Path(directory) / "study.db"
        shutil.copyfile(source, work)
        log = source.with_name(source.name + "-wal")
        if log.is_file():
            shutil.copyfile(log, work.with_name("study.db-wal"))
        _restore_header(source, work, with_log=log.is_file())
        with closing(sqlite3.connect(work, isolation_level=None)) as connection:
            description, record, counts = _readable(source, connection, work.stat().st_size)
    with write_errors(target):
        create(target, description, record)
    try:
        read(target)
    except BaseException:
        target.unlink(missing_ok=True)
        raise
    return Salvaged(len(record.trials), counts["unreadable"], counts["incomplete"])


def _source(path: str | Path) -> Path:
    path = resolve(path)
    if not path.is_file():
        what = f"is {kind}" if (kind := kind_of(path)) else "does not exist"
        raise ValueError(f"expected the file of a study, got {safe_text(path)}, which {what}")
    return path


def _target(copy: str | Path) -> Path:
    path = resolve(copy)
    if os.path.lexists(path):
        raise ValueError(
            f"the copy must be a new file, got {safe_text(path)}, which exists; choose another name"
        )
    if not path.parent.is_dir():
        raise ValueError(
            f"the copy must be in a directory that exists, got {safe_text(path)}; choose another name"
        )
    return path


def _restore_header(source: Path, work: Path, *, with_log: bool) -> None:
    """Write the fields of the header that are the same in every study, unless the file is something else."""
    with work.open("r+b") as file:
        header = file.read(100).ljust(100, b"\0")
        version = b"\2\2" if with_log else b"\1\1"  # with or without a write-ahead log
        fields = {
            0: SQLITE_MAGIC,
            16: (4096).to_bytes(2, "big") + version + bytes([0, 64, 32, 32]),
            44: (4).to_bytes(4, "big"),
            56: (1).to_bytes(4, "big") + SCHEMA.to_bytes(4, "big"),
            68: APPLICATION_ID.to_bytes(4, "big"),
        }
        if not header.startswith(SQLITE_MAGIC) and header[68:72] != fields[68]:
            raise ValueError(f"{safe_text(source)} is not a study of fabolas; give the file of a study")
        if header.startswith(SQLITE_MAGIC) and header[68:72] != fields[68] and any(header[68:72]):
            raise ValueError(
                f"{safe_text(source)} is a database of another program; give the file of a study"
            )
        for at, field in fields.items():
            file.seek(at)
            file.write(field)


def _readable(
    source: Path, connection: sqlite3.Connection, size: int
) -> tuple[dict[str, Any], Record, Counter[str]]:
    """The description and the record, and how many rows are "unreadable" and "incomplete"."""
    try:
        description = _description(connection)
        space = Space.from_description(description["space"])
    except Exception as error:
        raise ValueError(
            f"{safe_text(source)} cannot be salvaged: the part that says which study it is cannot be read "
            f"({type(error).__name__}: {_one_line(error)})"
        ) from error
    limit, counts = size // _MIN_ROW_BYTES, Counter[str]()
    suggestions = _suggestions(connection, space, limit, counts)
    trials = _trials(connection, suggestions, limit, counts)
    order = sorted(trials, key=lambda trial: trial.id)
    numbers = {trial.id: number for number, trial in enumerate(order)}
    trials = [replace(t, suggestion=_renumbered(t.suggestion, numbers)) for t in trials]
    state: dict[str, Array] | None = None
    with suppress(Exception):  # without its arrays a strategy starts from the trials
        state = load_state(connection)
    ordered = tuple(trial.suggestion for trial in sorted(trials, key=lambda trial: trial.id))
    started = {trial.id: trial.started or 0.0 for trial in trials}
    record = Record(description["seed"], ordered, tuple(trials), state, started)
    return description, record, counts


def _description(connection: sqlite3.Connection) -> dict[str, Any]:
    """What says which study it is, without the budget of its last run."""
    rows = dict(connection.execute("SELECT key, value FROM study"))
    found = {key: json.loads(rows[key]) for key in ("space", "direction", "strategy", "options", "seed")}
    for key, kind in {"strategy": str, "options": dict, "seed": int}.items():
        if type(found[key]) is not kind:
            raise TypeError(f"its {key} must be of type {kind.__name__}, got {found[key]!r}")
    check_direction(found["direction"])
    return found


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


def _renumbered(suggestion: Suggestion, numbers: dict[int, int]) -> Suggestion:
    """The suggestion with its new number; what it continues may be lost."""
    continues = None if suggestion.continues is None else numbers.get(suggestion.continues)
    return replace(suggestion, id=numbers[suggestion.id], continues=continues)


def _suggestions(
    connection: sqlite3.Connection, space: Space, limit: int, counts: Counter[str]
) -> dict[int, Suggestion]:
    """The suggestions by id."""
    found: dict[int, Suggestion] = {}
    columns = f"id, config, fidelity, point, {SUGGESTION_COLUMNS}"
    for row in _rows(connection, columns, "suggestion", "id", limit):
        try:
            suggestion = _suggestion_of_row(row, space)
        except Exception:  # noqa: BLE001 - damaged bytes can raise anything
            counts["unreadable"] += 1
            continue
        found[suggestion.id] = suggestion
        kept = (suggestion.origin, suggestion.overhead, suggestion.effort, suggestion.predicted_cost)
        counts["incomplete"] += row[4:] != (*kept, suggestion.continues)
    return found


def _suggestion_of_row(row: tuple[Any, ...], space: Space) -> Suggestion:
    """The suggestion of a row. The point is its exact record; the rest is replaced where it is damaged."""
    number, text, _, blob, origin, overhead, effort, predicted_cost, continues = row
    point = point_of_blob(number, blob, space)
    config, fidelity = space.decode(point)
    with suppress(TypeError, ValueError, RecursionError):
        # The point has values for names whose condition is not known here, and only the text has some choices exactly.
        active = json.loads(text)
        config = {name: active[name] for name in map(to_json, config) if name in active} or config
    return Suggestion(
        number,
        config,
        fidelity,
        point,
        origin if isinstance(origin, str) else _UNKNOWN,
        overhead if _is_seconds(overhead) else 0.0,
        effort if _is_seconds(effort) else 0.0,
        predicted_cost if _is_seconds(predicted_cost) and predicted_cost > 0 else None,
        continues if isinstance(continues, int) and 0 <= continues < number else None,
    )


def _trials(
    connection: sqlite3.Connection, suggestions: dict[int, Suggestion], limit: int, counts: Counter[str]
) -> list[Trial]:
    """The trials, then the early outcomes."""
    found: dict[int, Trial] = {}
    elapsed = 0.0
    reports = _reports(connection, limit, counts)
    for table in ("outcome", EARLY_OUTCOMES):
        for row in _rows(connection, OUTCOME_COLUMNS, table, "position", limit):
            try:
                repaired = _repaired(row, elapsed)
                trial = outcome_of_row(repaired, suggestions, reports)
            except Exception:  # noqa: BLE001 - damaged bytes can raise anything
                counts["unreadable"] += 1
                continue
            counts["incomplete"] += row != repaired
            found.setdefault(trial.id, trial)
            elapsed = trial.elapsed
    return list(found.values())


def _repaired(row: tuple[Any, ...], last_elapsed: float) -> tuple[Any, ...]:
    """A row of outcomes. What the result does not depend on, its info and its times, is replaced where damaged."""
    number, status, loss, cost, info, error, elapsed, started, ended, *flags = row
    try:
        as_info(json.loads(info))
    except (TypeError, ValueError, RecursionError):
        info = "{}"
    elapsed = elapsed if _is_seconds(elapsed) else last_elapsed
    times = [t if _is_seconds(t) and t < YEAR_10000 else None for t in (started, ended)]
    flags = [int(flag == 1) for flag in flags]  # stopped, restarted
    return number, status, loss, cost, info, error, elapsed, *times, *flags


def _is_seconds(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value >= 0


def _reports(
    connection: sqlite3.Connection, limit: int, counts: Counter[str]
) -> dict[int, tuple[Report, ...]]:
    """The reports by suggestion."""
    found: dict[int, tuple[Report, ...]] = {}
    for row in _rows(connection, REPORT_COLUMNS, "report", "position", limit):
        try:
            report = report_of_row(row)
            found[int(row[0])] = (*found.get(int(row[0]), ()), report)
        except Exception:  # noqa: BLE001 - damaged bytes can raise anything
            counts["unreadable"] += 1
    return found


def _rows(
    connection: sqlite3.Connection, columns: str, table: str, key: str, limit: int
) -> Iterator[tuple[Any, ...]]:
    """All rows that can be read, and an empty tuple for each that cannot.

    Each row is read by a query of its own, so that a damaged page hides only its own rows.
    """
    try:
        low, high = connection.execute(f"SELECT min({key}), max({key}) FROM {table}").fetchone()
        low, high = max(int(low or 0), 0), min(int(-1 if high is None else high), limit)
    except Exception:  # noqa: BLE001 - damaged bytes can raise anything
        low, high = 0, limit
    missing = 0
    for number in range(low, high + 1):
        try:
            row = connection.execute(f"SELECT {columns} FROM {table} WHERE {key} = ?", (number,)).fetchone()
        except sqlite3.Error:
            yield ()
            continue
        if row is not None:
            yield row
        missing = missing + 1 if row is None else 0
        if missing > _MAX_MISSING_ROWS:
            return
