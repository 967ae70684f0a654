"""The open file of a study: one locked SQLite connection that notices when another program changes the file."""

import os
import sqlite3
import time
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from fabolas.display import safe_text
from fabolas.storage.base import Identity, Record, UnwritableError, check_same_study
from fabolas.storage.files import open_regular
from fabolas.storage.lock import FileLock
from fabolas.storage.schema import (
    APPLICATION_ID,
    FILE_ID,
    SQLITE_MAGIC,
    check_structure,
    damage_as_value_error,
    load_description,
    load_early_outcomes,
    load_reports,
    load_started,
    load_state,
    load_suggestions,
    load_trajectory,
    load_trials,
)

# How long to wait while another program writes to the file. Long, because the alternative is to end the run.
_BUSY_TIMEOUT_SECONDS = 60.0
# To copy the write-ahead log into the file (SQLite calls it a checkpoint) means to wait for the disk. It may use this
# share of the time.
_LOG_COPYING_SHARE = 0.1

_Content = tuple[str, int, int]  # the file's id, and how many suggestions and trials it has


class StudyDatabase:
    """A study's file that this process has locked and opened.

    Every step is one transaction, written to a log beside the file (``<name>-wal``). After each trial the log is copied
    into the file, so that a copy of the file alone is at most one trial old. Where trials take only milliseconds, that
    happens less often: it uses at most a tenth of the time.

    Args:
        path: The file; it exists.
        lock: The lock on it. It is released by ``close``.
    """

    def __init__(self, path: Path, lock: FileLock) -> None:
        self.path = path
        # This descriptor stays open until SQLite has closed the file: to close it earlier would release the locks
        # of SQLite, which belong to the process and not to a descriptor.
        self._fd = open_regular(path, os.O_RDONLY)
        self.connection = sqlite3.connect(
            path, timeout=_BUSY_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False
        )
        self._seen: tuple[int, int] | None = None
        self._content_of_file: _Content | None = None  # without its log
        self._next_log_copy = 0.0  # not before this time, by time.monotonic
        # If ``close`` is not called, garbage collection calls it: the file must not stay locked.
        self._finalize = weakref.finalize(self, _close, self.connection, self._fd, lock)

    def load(self, identity: Identity) -> Record:
        """Read the record.

        Raises:
            ValueError: If it belongs to another study, or is damaged.
            UnwritableError: If the file can only be read.
        """
        with damage_as_value_error(self.path):
            description = load_description(self.connection)
        check_same_study(str(self.path), identity, description)
        with damage_as_value_error(self.path):
            check_structure(self.connection)
            suggestions = {s.id: s for s in load_suggestions(self.connection, identity.space)}
            trials = tuple(load_trials(self.connection, suggestions))
            early_outcomes = tuple(load_early_outcomes(self.connection, suggestions))
            started, state = load_started(self.connection), load_state(self.connection)
            trajectory = load_trajectory(self.connection, suggestions)
            ended = {trial.id for trial in (*trials, *early_outcomes)}
            reports = {n: r for n, r in load_reports(self.connection).items() if n not in ended}
            record = Record(
                description["seed"],
                tuple(suggestions.values()),
                trials,
                state,
                started,
                early_outcomes,
                trajectory,
                reports,
            )
        with write_errors(self.path):
            # With a write-ahead log, readers and the writer do not wait for each other. With synchronous = NORMAL a
            # step does not wait for the disk: a power cut can lose the last steps, a killed process loses none.
            self.connection.execute("PRAGMA journal_mode = WAL")
            self.connection.execute("PRAGMA synchronous = NORMAL")
            self.connection.execute("PRAGMA foreign_keys = ON")
        return record

    @contextmanager
    def transaction(self, *, copy_log: bool = False) -> Iterator[sqlite3.Connection]:
        """A transaction that is written completely or not at all. Then the log is copied if it is asked for and due."""
        with write_errors(self.path):
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield self.connection
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:  # if the disk is full, SQLite has rolled back already
                    self.connection.execute("ROLLBACK")
                raise
            if copy_log and time.monotonic() >= self._next_log_copy:
                self.copy_log()
        self.remember()

    def copy_log(self) -> None:
        """Copy the write-ahead log into the file, as far as no reader needs the old pages."""
        start = time.monotonic()
        _, in_log, copied = self.connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if in_log == copied:
            self._content_of_file = _content(self.connection)
        end = time.monotonic()
        self._next_log_copy = end + (end - start) * (1 / _LOG_COPYING_SHARE - 1)

    def remember(self) -> None:
        """Regard the file as it is now as unchanged."""
        self._seen = _fingerprint(os.fstat(self._fd))

    def problem(self, suggestions: int, trials: int) -> str:
        """What another program has done to the file since ``remember``, as the end of a sentence; empty if nothing.

        Args:
            suggestions: How many the file must contain.
            trials: How many the file must contain.
        """
        try:
            found = self.path.lstat()
        except FileNotFoundError:
            return "was deleted or renamed"
        except OSError as error:
            return f"cannot be reached any more ({error.strerror})"
        if not os.path.samestat(found, os.fstat(self._fd)):
            return "was replaced by another file"
        if _fingerprint(found) == self._seen:
            return ""
        if not self._contains(suggestions, trials):
            return "was truncated or overwritten"
        self.remember()  # another program has changed something that does not concern us
        return ""

    def _contains(self, suggestions: int, trials: int) -> bool:
        """Whether the file is still this study. This reads the file itself, neither its log nor SQLite's cache."""
        header = os.pread(self._fd, 100, 0)
        if not header.startswith(SQLITE_MAGIC) or header[68:72] != APPLICATION_ID.to_bytes(4, "big"):
            return False
        try:
            with closing(
                sqlite3.connect(f"{self.path.as_uri()}?mode=ro&immutable=1", uri=True)
            ) as connection:
                found = _content(connection)
                intact = connection.execute("PRAGMA quick_check").fetchall() == [("ok",)]
        except sqlite3.Error:
            return False
        # The file is as after our last `copy_log`, or another program has copied the log since then.
        return intact and found in (self._content_of_file, (_file_id(self.connection), suggestions, trials))

    def close(self) -> None:
        """Close the file and release the lock. A second call does nothing."""
        self._finalize()

    def leave(self) -> None:
        """Close a file that has a problem. If it was overwritten, its new content is left as it is."""
        try:
            overwritten = os.path.samestat(self.path.lstat(), os.fstat(self._fd))
        except OSError:
            overwritten = False
        if overwritten:
            self._close_without_writing()
        self._finalize()

    def _close_without_writing(self) -> None:
        self.connection.interrupt()  # SQLite stops copying the log, which it does before it closes
        self.connection.close()
        for suffix in ("-wal", "-shm"):  # SQLite would copy this log into the new content
            with suppress(OSError):
                self.path.with_name(self.path.name + suffix).unlink()


def _content(connection: sqlite3.Connection) -> _Content:
    suggestions, trials = (
        int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
        for table in ("suggestion", "outcome")
    )
    return _file_id(connection), suggestions, trials


def _file_id(connection: sqlite3.Connection) -> str:
    return str(connection.execute("SELECT value FROM study WHERE key = ?", (FILE_ID,)).fetchone())


def _close(connection: sqlite3.Connection, fd: int, lock: FileLock) -> None:
    # Without a log the file is complete, and a reader can tell a complete file from one that lost its log.
    with suppress(sqlite3.Error):
        connection.execute("PRAGMA busy_timeout = 0")
        connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    os.close(fd)
    lock.release()


def _fingerprint(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns


@contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Turn the errors of writing into a sentence."""
    try:
        yield
    except sqlite3.IntegrityError:
        raise
    except (sqlite3.DatabaseError, OSError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        if getattr(error, "sqlite_errorcode", 0) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise UnwritableError(
                f"{safe_text(path)} cannot be written, because it is damaged ({why})"
            ) from error
        raise UnwritableError(
            f"{safe_text(path)} cannot be written ({why}); it keeps everything that was written before. Check that "
            "the disk has space and that no other program writes to the file, then continue the study"
        ) from error
