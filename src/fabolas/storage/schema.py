"""The file of a study: its tables, its marks, and how its record is read from it.

Five tables: ``study`` (what the study is, as JSON by key), ``suggestion``, ``outcome`` (at most one per suggestion,
in order of ending), ``arrival`` (outcomes that workers have reported and the study has not heard of yet, in order
of arrival) and ``state`` (what the strategy carries on from). The point of a suggestion is kept as bytes and is the
exact record; its configuration is written beside it as JSON for those who read the file with other tools.
"""

import io
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np

from fabolas._types import Array
from fabolas.history import Suggestion, Trial
from fabolas.space import Space
from fabolas.storage.base import Identity

APPLICATION_ID = 0x4641424F  # "FABO"
SCHEMA = 3
OLDEST = 2  # that is still read, and upgraded when it is opened
ALLOWANCE = "allowance"  # key of what the run may use that has the study open, or had it last
SQLITE = b"SQLite format 3\0"  # the first bytes of every database

_ARRIVAL = """
CREATE TABLE arrival (
    position INTEGER PRIMARY KEY,  -- order of arrival
    suggestion INTEGER NOT NULL UNIQUE REFERENCES suggestion (id),
    status TEXT NOT NULL, loss REAL, cost REAL NOT NULL, info TEXT NOT NULL, error TEXT, elapsed REAL
)
"""
_TABLES = f"""
CREATE TABLE study (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE suggestion (
    id INTEGER PRIMARY KEY, config TEXT NOT NULL, fidelity TEXT NOT NULL, point BLOB NOT NULL,
    thinking REAL NOT NULL, effort REAL NOT NULL, predicted_cost REAL, origin TEXT NOT NULL,
    started REAL  -- seconds since the epoch; NULL until a worker began with it
);
CREATE TABLE outcome (
    position INTEGER PRIMARY KEY,  -- order of ending
    suggestion INTEGER NOT NULL UNIQUE REFERENCES suggestion (id),
    status TEXT NOT NULL, loss REAL, cost REAL NOT NULL, info TEXT NOT NULL, error TEXT,
    elapsed REAL  -- seconds the study had used then, where trials ran side by side
);
{_ARRIVAL.strip()};
CREATE TABLE state (only INTEGER PRIMARY KEY CHECK (only = 0), arrays BLOB NOT NULL);
"""


def check_header(path: Path) -> None:
    """Refuse what is not ours by its first bytes: to open it with SQLite might already change it."""
    with path.open("rb") as file:
        header = file.read(100)
    number = {name: int.from_bytes(header[at : at + 4], "big") for name, at in (("version", 60), ("id", 68))}
    if not header.startswith(SQLITE) or number["id"] != APPLICATION_ID:
        raise ValueError(f"{path} is not a study of fabolas and was left as it is; choose another file")
    if number["version"] > SCHEMA:
        raise ValueError(
            f"{path} was written by a newer fabolas (schema {number['version']}, this one reads up to "
            f"{SCHEMA}) and was left as it is; upgrade fabolas, or choose another file"
        )
    if number["version"] < OLDEST:
        raise ValueError(
            f"{path} was written by an older fabolas (schema {number['version']}, this one reads from {OLDEST} on) "
            "and was left as it is; go on with that version, or choose another file"
        )


def check_leftovers(path: Path) -> None:
    """Refuse a journal without its database: SQLite would play it into the new file."""
    for journal in (path.with_name(path.name + suffix) for suffix in ("-wal", "-journal")):
        if journal.exists():
            raise ValueError(
                f"{path} would be a new study, but {journal} of another database lies beside it; "
                "move it to where its database is, or remove it"
            )


def create(path: Path, identity: Identity) -> None:
    """Write a study without trials; it appears under its name only when it is whole."""
    draft = path.with_name(path.name + "-fabolas-new")
    draft.unlink(missing_ok=True)
    with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
        marks = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA};"
        connection.executescript(f"BEGIN; {marks} {_TABLES}")
        rows = [(key, json.dumps(value)) for key, value in identity.describe().items()]
        connection.executemany("INSERT INTO study VALUES (?, ?)", rows)
        connection.execute("COMMIT")
    draft.replace(path)


def load_suggestions(connection: sqlite3.Connection, space: Space) -> Iterator[Suggestion]:
    """The recorded suggestions, by number; what they mean is the space's to say."""
    columns = "id, point, thinking, effort, predicted_cost, origin"
    for number, blob, *rest in connection.execute(f"SELECT {columns} FROM suggestion ORDER BY id"):
        point = np.frombuffer(blob, dtype="<f8")
        config, fidelity = space.decode(point)
        yield Suggestion(number, config, fidelity, point, *rest)


def load_trials(connection: sqlite3.Connection, suggestions: dict[int, Suggestion]) -> Iterator[Trial]:
    """The recorded outcomes of these suggestions, in order of ending."""
    yield from _load_trials("outcome", connection, suggestions)


def load_arrivals(connection: sqlite3.Connection, suggestions: dict[int, Suggestion]) -> Iterator[Trial]:
    """What workers have reported of these suggestions and their study never heard, in order of arrival."""
    if _version(connection) >= 3:
        yield from _load_trials("arrival", connection, suggestions)


def _load_trials(
    table: str, connection: sqlite3.Connection, suggestions: dict[int, Suggestion]
) -> Iterator[Trial]:
    columns = "suggestion, status, loss, cost, info, error, elapsed"
    rows = connection.execute(f"SELECT {columns} FROM {table} ORDER BY position")
    for number, status, loss, cost, info, error, elapsed in rows:
        yield Trial(suggestions[number], status, loss, cost, json.loads(info), error, elapsed)


def is_current(connection: sqlite3.Connection) -> bool:
    """Whether the file is of this schema, and not of an earlier one."""
    return _version(connection) == SCHEMA


def upgrade(connection: sqlite3.Connection) -> None:
    """Bring a file of the schema before to this one; to be called in a transaction."""
    connection.execute(_ARRIVAL)
    connection.execute(f"PRAGMA user_version = {SCHEMA}")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def pack_state(state: dict[str, Array]) -> bytes:
    """The strategy's arrays as they are kept."""
    buffer = io.BytesIO()
    np.savez(buffer, **state)  # type: ignore[arg-type]
    return buffer.getvalue()


def unpack_state(blob: bytes) -> dict[str, Array]:
    """The strategy's arrays as they were kept."""
    with np.load(io.BytesIO(blob), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}
