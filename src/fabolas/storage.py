"""Where a study keeps its record: in memory, or in one SQLite file that a killed process cannot harm.

The file holds four tables: ``study`` (what the study is, as JSON by key), ``suggestion``, ``outcome`` (at
most one per suggestion, in order of ending) and ``state`` (what the strategy carries on from). Every step is
one transaction. The point of a suggestion is kept as bytes and is the exact record; its configuration is
written beside it as JSON for those who read the file with other tools.
"""

import io
import json
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from fabolas._lock import FileLock
from fabolas._types import Array
from fabolas.history import Suggestion, Trial, plain
from fabolas.space import Space

APPLICATION_ID = 0x4641424F  # "FABO"
SCHEMA = 2
_PATIENCE = 60.0  # seconds to wait for another program that writes to the file; a run of hours is worth it
SQLITE = b"SQLite format 3\0"  # the first bytes of every database

_TABLES = """
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
CREATE TABLE state (only INTEGER PRIMARY KEY CHECK (only = 0), arrays BLOB NOT NULL);
"""


@dataclass(frozen=True)
class Identity:
    """What makes a study the same study: its space with the fidelities, its strategy, its seed.

    A seed that was drawn (``seed_given=False``) gives way to the recorded one; a given one must equal it.
    """

    space: Space
    strategy: str
    options: dict[str, Any]
    seed: int
    seed_given: bool = True

    def describe(self) -> dict[str, Any]:
        """The identity in the types of JSON."""
        own = {"strategy": self.strategy, "options": plain(self.options), "seed": self.seed}
        return {"space": self.space.describe(), **own}

    def differences(self, recorded: dict[str, Any]) -> list[str]:
        """Sentences on how a recorded description differs."""
        found = list(self.space.difference(recorded["space"]))
        if recorded["strategy"] != self.strategy:
            found.append(f"its strategy is {recorded['strategy']!r}, asked for was {self.strategy!r}")
        elif recorded["options"] != plain(self.options):
            found.append(
                f"its strategy options are {recorded['options']}, asked for were {plain(self.options)}"
            )
        if self.seed_given and recorded["seed"] != self.seed:
            found.append(f"its seed is {recorded['seed']}, asked for was {self.seed}")
        return found


@dataclass(frozen=True)
class Record:
    """All that a storage knows of a study.

    Attributes:
        seed: The recorded seed, which goes before the one asked for.
        suggestions: Every suggestion, by number.
        trials: Every ended one, in order of ending.
        state: Arrays for the strategy to carry on from; None before the first suggestion.
        started: When each suggestion was begun with, in seconds since the epoch; the others were never begun.
    """

    seed: int
    suggestions: tuple[Suggestion, ...] = ()
    trials: tuple[Trial, ...] = ()
    state: dict[str, Array] | None = None
    started: dict[int, float] = field(default_factory=dict)

    @property
    def pending(self) -> tuple[Suggestion, ...]:
        """Suggestions without an outcome."""
        ended = {trial.id for trial in self.trials}
        return tuple(s for s in self.suggestions if s.id not in ended)


class Storage(Protocol):
    """Keeps what a study did; one study at a time."""

    def open(self, identity: Identity) -> Record:
        """Start or continue the study of this identity; another one's is refused and stays as it is."""
        ...

    def add_suggestion(self, suggestion: Suggestion, state: dict[str, Array], started: float | None) -> None:
        """Keep a suggestion and the strategy's state after it, both or neither."""
        ...

    def add_start(self, number: int, started: float) -> None:
        """Keep when a suggestion was begun with, in seconds since the epoch."""
        ...

    def remove_suggestion(self, number: int, state: dict[str, Array]) -> None:
        """Forget a suggestion that was never begun with, and have the strategy's state be the one before it."""
        ...

    def add_trial(self, trial: Trial) -> None:
        """Keep the outcome of a suggestion that is kept and has none."""
        ...

    def close(self) -> None:
        """Let others use it; a second call does nothing."""
        ...


@dataclass
class MemoryStorage:
    """Keeps the record as long as this object lives; a closed study can be reopened from it."""

    _recorded: dict[str, Any] | None = None
    _suggestions: dict[int, Suggestion] = field(default_factory=dict)
    _trials: dict[int, Trial] = field(default_factory=dict)
    _state: dict[str, Array] | None = None
    _started: dict[int, float] = field(default_factory=dict)
    _open: bool = False

    def open(self, identity: Identity) -> Record:
        if self._open:
            raise RuntimeError(
                "this storage is in use by another study; close that one first (study.close())"
            )
        if self._recorded is None:
            self._recorded = identity.describe()
        _refuse_others("this storage", identity, self._recorded)
        self._open = True
        suggestions, trials = tuple(self._suggestions.values()), tuple(self._trials.values())
        return Record(self._recorded["seed"], suggestions, trials, self._state, dict(self._started))

    def add_suggestion(self, suggestion: Suggestion, state: dict[str, Array], started: float | None) -> None:
        if suggestion.id in self._suggestions:
            raise ValueError(f"suggestion {suggestion.id} is already kept")
        self._suggestions[suggestion.id] = suggestion
        self._state = {name: np.array(array) for name, array in state.items()}
        if started is not None:
            self._started[suggestion.id] = started

    def add_start(self, number: int, started: float) -> None:
        if number not in self._suggestions:
            raise ValueError(f"suggestion {number} is unknown and cannot be begun with")
        self._started[number] = started

    def remove_suggestion(self, number: int, state: dict[str, Array]) -> None:
        if number not in self._suggestions or number in self._started or number in self._trials:
            raise ValueError(f"suggestion {number} is unknown or was begun with, and stays")
        del self._suggestions[number]
        self._state = {name: np.array(array) for name, array in state.items()}

    def add_trial(self, trial: Trial) -> None:
        if trial.id not in self._suggestions or trial.id in self._trials:
            raise ValueError(f"suggestion {trial.id} is unknown or has already ended")
        self._trials[trial.id] = trial

    def close(self) -> None:
        self._open = False


class SqliteStorage:
    """Keeps the record in a file, which one process at a time may use and any may read.

    Raises:
        ValueError: From ``open``, if the file is not a study, is another study, or is of a newer schema.
        RuntimeError: From ``open``, if the file is in use; from any step that could not be written, and was not.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser().resolve()
        self._connection: sqlite3.Connection | None = None

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
                _check_leftovers(self.path)
                with _written(self.path):
                    _create(self.path, identity)
            connection = sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None)
            # Also when nobody calls close: the file must not stay locked for the rest of the process.
            self._finalize = weakref.finalize(self, _release, connection, lock)
        except BaseException:
            lock.release()
            raise
        try:
            record = _load(self.path, connection, identity)
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
            connection.execute("REPLACE INTO state VALUES (0, ?)", (_pack(state),))

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
            connection.execute("REPLACE INTO state VALUES (0, ?)", (_pack(state),))

    def add_trial(self, trial: Trial) -> None:
        outcome = (trial.status, trial.loss, trial.cost, json.dumps(trial.info), trial.error)
        with self._transaction() as connection:
            connection.execute(
                "INSERT INTO outcome VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", (trial.id, *outcome, trial.elapsed)
            )

    def close(self) -> None:
        if self._connection is not None:
            self._connection = None
            self._finalize()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
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
        raise RuntimeError(
            f"{path} cannot be written ({error}), and keeps what it had; see that the disk has room and that no "
            "other program writes to the file, then continue the study"
        ) from error


def _release(connection: sqlite3.Connection, lock: FileLock) -> None:
    connection.close()
    lock.release()


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
    if number["version"] < SCHEMA:
        raise ValueError(
            f"{path} was written by an older fabolas (schema {number['version']}, this one reads {SCHEMA}) and "
            "was left as it is; go on with that version, or choose another file"
        )


def _check_leftovers(path: Path) -> None:
    """Refuse a journal without its database: SQLite would play it into the new file."""
    for journal in (path.with_name(path.name + suffix) for suffix in ("-wal", "-journal")):
        if journal.exists():
            raise ValueError(
                f"{path} would be a new study, but {journal} of another database lies beside it; "
                "move it to where its database is, or remove it"
            )


def _create(path: Path, identity: Identity) -> None:
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


def _load(path: Path, connection: sqlite3.Connection, identity: Identity) -> Record:
    try:
        recorded = {
            key: json.loads(value) for key, value in connection.execute("SELECT key, value FROM study")
        }
        _refuse_others(str(path), identity, recorded)
        # A reader does not hold up the writer, and a step costs no wait for the disk; a power cut may cost
        # the last steps, a killed process none.
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        suggestions = {s.id: s for s in _load_suggestions(connection, identity.space)}
        trials = tuple(load_trials(connection, suggestions))
        state = connection.execute("SELECT arrays FROM state").fetchone()
        begun = dict(connection.execute("SELECT id, started FROM suggestion WHERE started IS NOT NULL"))
    except (sqlite3.DatabaseError, KeyError, json.JSONDecodeError) as error:
        raise ValueError(
            f"{path} has the mark of a study but cannot be read ({error}); choose another file"
        ) from error
    arrays = None if state is None else unpack_state(state[0])
    return Record(recorded["seed"], tuple(suggestions.values()), trials, arrays, begun)


def _load_suggestions(connection: sqlite3.Connection, space: Space) -> Iterator[Suggestion]:
    columns = "id, point, thinking, effort, predicted_cost, origin"
    for number, blob, *rest in connection.execute(f"SELECT {columns} FROM suggestion ORDER BY id"):
        point = np.frombuffer(blob, dtype="<f8")
        config, fidelity = space.decode(point)
        yield Suggestion(number, config, fidelity, point, *rest)


def load_trials(connection: sqlite3.Connection, suggestions: dict[int, Suggestion]) -> Iterator[Trial]:
    """The recorded outcomes of these suggestions, in order of ending."""
    columns = "suggestion, status, loss, cost, info, error, elapsed"
    rows = connection.execute(f"SELECT {columns} FROM outcome ORDER BY position")
    for number, status, loss, cost, info, error, elapsed in rows:
        yield Trial(suggestions[number], status, loss, cost, json.loads(info), error, elapsed)


def _refuse_others(what: str, identity: Identity, recorded: dict[str, Any]) -> None:
    found = identity.differences(recorded)
    if found:
        raise ValueError(
            f"{what} holds another study and was left as it is: {'; '.join(found)}. "
            "Ask for what it holds, or choose another file"
        )


def _pack(state: dict[str, Array]) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **state)  # type: ignore[arg-type]
    return buffer.getvalue()


def unpack_state(blob: bytes) -> dict[str, Array]:
    """The strategy's arrays as they were kept."""
    with np.load(io.BytesIO(blob), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}
