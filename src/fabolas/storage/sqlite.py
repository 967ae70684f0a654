"""A record in one SQLite file that a killed process cannot harm; every step is one transaction."""

import json
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fabolas._lock import FileLock
from fabolas._types import Array
from fabolas.budget import Allowance
from fabolas.history import Suggestion, Trial, plain
from fabolas.storage.base import Identity, Record, UnwritableError, refuse_others
from fabolas.storage.schema import (
    ALLOWANCE,
    check_header,
    check_leftovers,
    create,
    is_current,
    load_arrivals,
    load_suggestions,
    load_trials,
    pack_state,
    unpack_state,
    upgrade,
)

_PATIENCE = 60.0  # seconds to wait for another program that writes to the file; a run of hours is worth it


class SqliteStorage:
    """Keeps the record in a file, which one process at a time may use and any may read.

    Its threads may all write: one connection, whose transactions wait for each other.

    Raises:
        ValueError: From ``open``, if the file is not a study, is another study, or is of a newer schema.
        RuntimeError: From ``open``, if the file is in use.
        UnwritableError: From any step that could not be written, and was not.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser().resolve()
        self._connection: sqlite3.Connection | None = None
        self._turn = threading.Lock()

    def __reduce__(self) -> tuple[type["SqliteStorage"], tuple[Path]]:
        return SqliteStorage, (self.path,)  # a copy is the same file, not yet open

    def open(self, identity: Identity) -> Record:
        if self.path.is_dir() or not self.path.parent.is_dir():
            what = "is a directory" if self.path.is_dir() else "lies in a directory that does not exist"
            raise ValueError(
                f"storage must be a file to write to, got {self.path}, which {what}; choose another"
            )
        lock = FileLock(self.path)
        try:
            if self.path.exists() and self.path.stat().st_size > 0:
                check_header(self.path)
            else:
                check_leftovers(self.path)
                with _written(self.path):
                    create(self.path, identity)
            connection = sqlite3.connect(
                self.path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
            )
            # Also when nobody calls close: the file must not stay locked for the rest of the process.
            self._finalize = weakref.finalize(self, _release, connection, lock)
        except BaseException:
            lock.release()
            raise
        try:
            record = _load(self.path, connection, identity)
            if not is_current(connection):
                _upgrade(self.path, connection)
            with _written(self.path):  # that of the last run is not this one's
                connection.execute("DELETE FROM study WHERE key = ?", (ALLOWANCE,))
        except BaseException:
            self._finalize()
            raise
        self._connection = connection
        return record

    def add_suggestion(self, suggestion: Suggestion, state: dict[str, Array], started: float | None) -> None:
        s = suggestion
        where = (json.dumps(plain(s.config)), json.dumps(s.fidelity), s.point.astype("<f8").tobytes())
        row = (s.id, *where, s.thinking, s.effort, s.predicted_cost, s.origin, started)
        with self._transaction() as connection:
            connection.execute("INSERT INTO suggestion VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
            connection.execute("REPLACE INTO state VALUES (0, ?)", (pack_state(state),))

    def add_start(self, number: int, started: float) -> None:
        with self._transaction() as connection:
            found = connection.execute("UPDATE suggestion SET started = ? WHERE id = ?", (started, number))
            if found.rowcount != 1:
                raise ValueError(f"suggestion {number} is unknown and cannot be begun with")

    def remove_suggestion(self, number: int, state: dict[str, Array]) -> None:
        with self._transaction() as connection:
            found = connection.execute("DELETE FROM suggestion WHERE id = ? AND started IS NULL", (number,))
            if found.rowcount != 1:
                raise ValueError(f"suggestion {number} is unknown or was begun with, and stays")
            connection.execute("REPLACE INTO state VALUES (0, ?)", (pack_state(state),))

    def add_trial(self, trial: Trial) -> None:
        with self._transaction() as connection:
            connection.execute("INSERT INTO outcome VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", _row(trial))
            connection.execute("DELETE FROM arrival WHERE suggestion = ?", (trial.id,))

    def add_arrival(self, trial: Trial) -> None:
        with self._transaction() as connection:
            if connection.execute("SELECT 1 FROM outcome WHERE suggestion = ?", (trial.id,)).fetchone():
                raise ValueError(
                    f"suggestion {trial.id} has already ended, and nothing can come of it any more"
                )
            connection.execute("INSERT INTO arrival VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", _row(trial))

    def keep_allowance(self, allowance: Allowance) -> None:
        with self._transaction() as connection:
            row = (ALLOWANCE, json.dumps(allowance.describe()))
            connection.execute("REPLACE INTO study VALUES (?, ?)", row)

    def close(self) -> None:
        with self._turn:
            if self._connection is not None:
                self._connection = None
                self._finalize()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._turn:
            if self._connection is None:
                raise RuntimeError(f"the storage {self.path} is not open; open it, or use a study that does")
            with _written(self.path), _transaction(self._connection):
                try:
                    yield self._connection
                except sqlite3.IntegrityError as error:
                    raise ValueError(
                        f"{self.path} keeps each suggestion and each outcome once: {error}"
                    ) from error


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk has ended it already
            connection.execute("ROLLBACK")
        raise


@contextmanager
def _written(path: Path) -> Iterator[None]:
    """What SQLite could not write is a sentence: the disk is full, or another program has the file."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise UnwritableError(
            f"{path} cannot be written ({error}), and keeps what it had; see that the disk has room and that no "
            "other program writes to the file, then continue the study"
        ) from error


def _release(connection: sqlite3.Connection, lock: FileLock) -> None:
    connection.close()
    lock.release()


def _load(path: Path, connection: sqlite3.Connection, identity: Identity) -> Record:
    try:
        recorded = {
            key: json.loads(value) for key, value in connection.execute("SELECT key, value FROM study")
        }
        refuse_others(str(path), identity, recorded)
        # A reader does not hold up the writer, and a step costs no wait for the disk; a power cut may cost
        # the last steps, a killed process none.
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        suggestions = {s.id: s for s in load_suggestions(connection, identity.space)}
        trials = tuple(load_trials(connection, suggestions))
        arrivals = tuple(load_arrivals(connection, suggestions))
        state = connection.execute("SELECT arrays FROM state").fetchone()
        begun = dict(connection.execute("SELECT id, started FROM suggestion WHERE started IS NOT NULL"))
    except (sqlite3.DatabaseError, KeyError, json.JSONDecodeError) as error:
        raise ValueError(
            f"{path} has the mark of a study but cannot be read ({error}); choose another file"
        ) from error
    arrays = None if state is None else unpack_state(state[0])
    return Record(recorded["seed"], tuple(suggestions.values()), trials, arrays, begun, arrivals)


def _upgrade(path: Path, connection: sqlite3.Connection) -> None:
    with _written(path):
        with _transaction(connection):
            upgrade(connection)
        # From the log to the file itself, in whose first bytes the version is looked for.
        connection.execute("PRAGMA wal_checkpoint")


def _row(trial: Trial) -> tuple[object, ...]:
    outcome = (trial.status, trial.loss, trial.cost, json.dumps(trial.info), trial.error)
    return (trial.id, *outcome, trial.elapsed)
