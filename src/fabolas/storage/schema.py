"""The SQLite file of a study: its tables, its header, and how records are read from it.

Seven tables:

- ``study``: what the study is; JSON values by key.
- ``suggestion``: one row per suggestion. ``point`` holds the exact coordinates as bytes. ``config`` and
  ``fidelity`` say the same as JSON, for people who read the file with other tools.
- ``outcome``: the trials, at most one per suggestion, in the order in which they ended.
- ``reported``: the early outcomes, which workers returned and the study was not told yet, in the order in which they
  came. It has nothing to do with reports; another name would need another schema.
- ``report``: what trainings reported on the way, in the order of the reports.
- ``trajectory``: the answers that the study computed while it ran. They are kept because they cannot be computed
  again: the hyperparameters of the models at that time are not in the file.
- ``state``: one row, the strategy's arrays.
"""

import io
import json
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from fabolas._types import Array
from fabolas.caller_warning import warn_caller
from fabolas.curve_reports import Report
from fabolas.display import safe_text
from fabolas.plain_values import to_json
from fabolas.space import Space
from fabolas.storage.base import Record, UnwritableError
from fabolas.storage.files import create_draft
from fabolas.trials import Incumbent, Suggestion, Trial

APPLICATION_ID = 0x4641424F  # "FABO"
SCHEMA = 7  # version of the tables and of the JSON in them; only this one is read
EARLY_OUTCOMES = "reported"  # the table of the early outcomes
RUN_BUDGET = "run_budget"  # key in the table study: the budget of the run that has or had the study open
FILE_ID = "file_id"  # key in the table study: a random text by which a file is told from another one
SQLITE_MAGIC = b"SQLite format 3\0"  # the first bytes of every SQLite database

_NOT_DAMAGE = (  # what the system or another program refuses
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_NOMEM,
)

SUGGESTION_COLUMNS = (
    "origin, overhead, effort, predicted_cost, continues"  # after id, config, fidelity, point
)
OUTCOME_COLUMNS = "suggestion, status, loss, cost, info, error, elapsed, started, ended, stopped, restarted"
REPORT_COLUMNS = "suggestion, fidelity, point, loss, cost"
_OUTCOME_TYPES = """
    suggestion INTEGER NOT NULL UNIQUE REFERENCES suggestion (id),
    status TEXT NOT NULL, loss REAL, cost REAL NOT NULL, info TEXT NOT NULL, error TEXT,
    elapsed REAL NOT NULL,  -- seconds that the study had used when the trial ended
    started REAL, ended REAL,  -- seconds since the epoch; NULL if not known
    stopped INTEGER NOT NULL, restarted INTEGER NOT NULL  -- a training that stopped early; that lost its checkpoint
"""
_TABLES = f"""
CREATE TABLE study (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE suggestion (
    id INTEGER PRIMARY KEY, config TEXT NOT NULL, fidelity TEXT NOT NULL, point BLOB NOT NULL,
    overhead REAL NOT NULL, effort REAL NOT NULL, predicted_cost REAL, origin TEXT NOT NULL,
    started REAL,  -- seconds since the epoch; NULL until a worker started it
    continues INTEGER  -- the suggestion whose training it continues; NULL to start from scratch
);
CREATE TABLE outcome (position INTEGER PRIMARY KEY, {_OUTCOME_TYPES});
CREATE TABLE {EARLY_OUTCOMES} (position INTEGER PRIMARY KEY, {_OUTCOME_TYPES});
CREATE TABLE report (
    position INTEGER PRIMARY KEY, suggestion INTEGER NOT NULL REFERENCES suggestion (id),
    fidelity TEXT NOT NULL, point BLOB NOT NULL, loss REAL NOT NULL,
    cost REAL NOT NULL  -- seconds from the start of the trial
);
CREATE INDEX report_of ON report (suggestion);
CREATE TABLE trajectory (
    position INTEGER PRIMARY KEY, elapsed REAL NOT NULL, loss REAL NOT NULL, std REAL NOT NULL,
    verified INTEGER NOT NULL, preliminary INTEGER NOT NULL,
    trials TEXT NOT NULL  -- JSON: ids of the trials of the configuration
);
CREATE TABLE state (only INTEGER PRIMARY KEY CHECK (only = 0), arrays BLOB NOT NULL);
"""


def check_header(path: Path) -> None:
    """Refuse a file that is not a study of this version.

    This looks at the first 100 bytes only: opening a foreign database with SQLite could already change it.

    Raises:
        ValueError: With the reason.
    """
    with path.open("rb") as file:
        header = file.read(100)
    version, application = (int.from_bytes(header[at : at + 4], "big") for at in (60, 68))
    if not header.startswith(SQLITE_MAGIC) or application != APPLICATION_ID:
        raise ValueError(
            f"{safe_text(path)} is not a study of fabolas and was left as it is; choose another file"
        )
    if version != SCHEMA:
        raise ValueError(
            f"{safe_text(path)} was written by {'a newer' if version > SCHEMA else 'an older'} version of fabolas "
            f"(schema {version}, this version reads schema {SCHEMA}) and was left as it is; "
            "use that version, or choose another file"
        )


@contextmanager
def damage_as_value_error(path: Path) -> Iterator[None]:
    """Turn all errors of reading a damaged file into one sentence."""
    try:
        yield
    except UnwritableError:
        raise
    except Exception as error:  # damaged bytes can raise anything, from SQLite, JSON, numpy or our own checks
        if isinstance(error, OSError) and error.errno is not None:  # the system refuses to read it
            raise
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _NOT_DAMAGE:
            raise ValueError(
                f"{safe_text(path)} cannot be read now ({error}); try again, or check its permissions"
            ) from error
        said = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise ValueError(
            f"{safe_text(path)} is a study but is damaged ({said}); `fabolas salvage FILE COPY` copies the trials "
            "that can still be read to a new file"
        ) from error


def lost_its_log(path: Path) -> bool:
    """Whether the file was copied, or its log deleted, while a process had the study open.

    The header of an open study says that there is a write-ahead log. ``StudyDatabase.close`` removes both.
    """
    with path.open("rb") as file:
        has_log = file.read(20)[18:20] == b"\2\2"
    return has_log and not path.with_name(path.name + "-wal").exists()


def warn_of_lost_log(path: Path) -> None:
    """Warn that the file may lack its last trials, see `lost_its_log`."""
    warn_caller(
        f"{safe_text(path)} may lack its last trials: it was copied during a run without its log "
        f"{safe_text(path.name)}-wal, or the log was deleted. To copy a running study use `fabolas backup FILE COPY`",
        RuntimeWarning,
    )


def check_no_foreign_journal(path: Path) -> None:
    """Refuse to create a database beside the journal of another one: SQLite would copy the journal into it.

    Raises:
        ValueError: If there is such a journal.
    """
    for journal in (path.with_name(path.name + suffix) for suffix in ("-wal", "-journal")):
        if os.path.lexists(journal):
            raise ValueError(
                f"cannot create {safe_text(path)}: {safe_text(journal)}, which belongs to another database, is in "
                "the same directory; move it to its database, or delete it"
            )


def create(path: Path, description: dict[str, Any], record: Record | None = None) -> None:
    """Create the file of a study. It gets its name only when it is complete.

    Args:
        path: The file; an existing one is replaced.
        description: The identity of the study, as ``Identity.describe`` returns it.
        record: What the file contains; None for a study without suggestions.
    """
    draft = create_draft(path)
    try:
        with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
            header = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA};"
            connection.executescript(f"BEGIN; {header} {_TABLES}")
            content = {**description, FILE_ID: secrets.token_hex(8)}
            rows = [(key, json.dumps(value)) for key, value in content.items()]
            connection.executemany("INSERT INTO study VALUES (?, ?)", rows)
            if record is not None:
                _insert_record(connection, record)
            connection.execute("COMMIT")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _insert_record(connection: sqlite3.Connection, record: Record) -> None:
    for suggestion in record.suggestions:
        insert_suggestion(connection, suggestion, record.started.get(suggestion.id))
    for trial in record.trials:
        insert_outcome(connection, "outcome", trial)
    for trial in record.early_outcomes:
        insert_outcome(connection, EARLY_OUTCOMES, trial)
    for number, reports in record.reports.items():
        for report in reports:
            insert_report(connection, number, report)
    for elapsed, incumbent in record.trajectory:
        insert_incumbent(connection, elapsed, incumbent)
    if record.state is not None:
        replace_state(connection, record.state)


def insert_suggestion(connection: sqlite3.Connection, suggestion: Suggestion, started: float | None) -> None:
    """Add a suggestion; ``started`` is in seconds since the epoch, None if it has not started."""
    s = suggestion
    where = (json.dumps(to_json(s.config)), json.dumps(s.fidelity), s.point.astype("<f8").tobytes())
    row = (s.id, *where, s.overhead, s.effort, s.predicted_cost, s.origin, started, s.continues)
    connection.execute("INSERT INTO suggestion VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)


def insert_outcome(connection: sqlite3.Connection, table: str, trial: Trial) -> None:
    """Add a trial to ``outcome`` or to the early outcomes. Its reports replace those that were added one by one."""
    outcome = (trial.status, trial.loss, trial.cost, json.dumps(trial.info), trial.error)
    row = (trial.id, *outcome, trial.elapsed, trial.started, trial.ended, trial.stopped, trial.restarted)
    connection.execute(f"INSERT INTO {table} VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    connection.execute("DELETE FROM report WHERE suggestion = ?", (trial.id,))
    for report in trial.reports:
        insert_report(connection, trial.id, report)


def insert_report(connection: sqlite3.Connection, suggestion_id: int, report: Report) -> None:
    """Add what a training reported on the way."""
    where = (json.dumps(report.fidelity), report.point.astype("<f8").tobytes())
    row = (suggestion_id, *where, report.loss, report.cost)
    connection.execute("INSERT INTO report VALUES (NULL, ?, ?, ?, ?, ?)", row)


def insert_incumbent(connection: sqlite3.Connection, elapsed: float, incumbent: Incumbent) -> None:
    """Add an answer to the trajectory; the first of its trials has the configuration."""
    flags = (incumbent.verified, incumbent.preliminary)
    row = (elapsed, incumbent.loss, incumbent.std, *flags, json.dumps(incumbent.trial_ids))
    connection.execute("INSERT INTO trajectory VALUES (NULL, ?, ?, ?, ?, ?, ?)", row)


def replace_state(connection: sqlite3.Connection, state: dict[str, Array]) -> None:
    """Keep the strategy's arrays."""
    buffer = io.BytesIO()
    np.savez(buffer, **state)  # type: ignore[arg-type]
    connection.execute("REPLACE INTO state VALUES (0, ?)", (buffer.getvalue(),))


def load_state(connection: sqlite3.Connection) -> dict[str, Array] | None:
    """The strategy's arrays; None before the first suggestion."""
    rows = connection.execute("SELECT arrays FROM state").fetchall()
    if not rows:
        return None
    with np.load(io.BytesIO(rows[0][0]), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def check_structure(connection: sqlite3.Connection) -> None:
    """Check that the pages of the database fit together.

    Raises:
        ValueError: With what SQLite says.
    """
    ((found,),) = connection.execute("PRAGMA quick_check(1)").fetchall()
    if found != "ok":
        raise ValueError(found)


def load_started(connection: sqlite3.Connection) -> dict[int, float]:
    """Suggestion id -> when its evaluation started, in seconds since the epoch."""
    rows = connection.execute("SELECT id, started FROM suggestion WHERE started IS NOT NULL")
    return {number: float(started) for number, started in rows}


def load_description(connection: sqlite3.Connection) -> dict[str, Any]:
    """The table ``study``: the identity of the study, and the budget of its run."""
    return {key: json.loads(value) for key, value in connection.execute("SELECT key, value FROM study")}


def load_suggestions(connection: sqlite3.Connection, space: Space) -> Iterator[Suggestion]:
    """The suggestions, ordered by id. The space decodes their points.

    Raises:
        ValueError: If the ids are not 0, 1, 2, ...
    """
    rows = connection.execute(f"SELECT id, point, {SUGGESTION_COLUMNS} FROM suggestion ORDER BY id")
    for expected, (number, blob, *rest) in enumerate(rows):
        if number != expected:
            raise ValueError(f"suggestion {expected} is missing")
        point = point_of_blob(number, blob, space)
        config, fidelity = space.decode(point)
        yield Suggestion(number, config, fidelity, point, *rest)


def point_of_blob(number: int, blob: bytes, space: Space) -> Array:
    """The point of suggestion ``number``.

    Raises:
        ValueError: If it is not a point of the unit cube of this space.
    """
    point: Array = np.frombuffer(blob, dtype="<f8")
    if point.shape != (space.dim + space.n_fidelities,) or not ((point >= 0) & (point <= 1)).all():
        raise ValueError(f"the point of suggestion {number} is not in the space")
    return point


def load_trials(connection: sqlite3.Connection, suggestions: dict[int, Suggestion]) -> Iterator[Trial]:
    """The trials of these suggestions, in the order in which they ended."""
    return _load_outcomes("outcome", connection, suggestions)


def load_early_outcomes(
    connection: sqlite3.Connection, suggestions: dict[int, Suggestion]
) -> Iterator[Trial]:
    """The outcomes that workers returned and the study was not told, in the order in which they came."""
    return _load_outcomes(EARLY_OUTCOMES, connection, suggestions)


def _load_outcomes(
    table: str, connection: sqlite3.Connection, suggestions: dict[int, Suggestion]
) -> Iterator[Trial]:
    reports = load_reports(connection)
    rows = connection.execute(f"SELECT {OUTCOME_COLUMNS} FROM {table} ORDER BY position")
    for row in rows:
        yield outcome_of_row(row, suggestions, reports)


def outcome_of_row(
    row: tuple[Any, ...], suggestions: dict[int, Suggestion], reports: dict[int, tuple[Report, ...]]
) -> Trial:
    """The trial of a row of ``outcome`` or of the early outcomes, without its position."""
    number, status, loss, cost, info, error, elapsed, started, ended, stopped, restarted = row
    return Trial(
        suggestions[number],
        status,
        loss,
        cost,
        json.loads(info),
        error,
        elapsed,
        started,
        ended,
        reports=reports.get(number, ()),
        stopped=bool(stopped),
        restarted=bool(restarted),
    )


def load_reports(connection: sqlite3.Connection) -> dict[int, tuple[Report, ...]]:
    """Suggestion id -> what its training reported, in the order of the reports."""
    found: dict[int, list[Report]] = {}
    for row in connection.execute(f"SELECT {REPORT_COLUMNS} FROM report ORDER BY position"):
        found.setdefault(row[0], []).append(report_of_row(row))
    return {number: tuple(reports) for number, reports in found.items()}


def report_of_row(row: tuple[Any, ...]) -> Report:
    """The report of a row of ``report``, without its position."""
    _, fidelity, blob, loss, cost = row
    return Report(json.loads(fidelity), np.frombuffer(blob, dtype="<f8"), loss, cost)


def load_trajectory(
    connection: sqlite3.Connection, suggestions: dict[int, Suggestion]
) -> tuple[tuple[float, Incumbent], ...]:
    """(elapsed, incumbent) pairs, in the order in which they were computed."""
    found = []
    columns = "elapsed, loss, std, verified, preliminary, trials"
    for elapsed, loss, std, verified, preliminary, trials in connection.execute(
        f"SELECT {columns} FROM trajectory ORDER BY position"
    ):
        ids = tuple(json.loads(trials))
        config = suggestions[ids[0]].config
        found.append((float(elapsed), Incumbent(config, loss, std, bool(verified), ids, bool(preliminary))))
    return tuple(found)
