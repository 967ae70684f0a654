"""A storage in one SQLite file. A process that is killed does not damage it and loses no finished step."""

import json
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from fabolas._types import Array
from fabolas.budget import RunBudget
from fabolas.caller_warning import warn_caller
from fabolas.curve_reports import Report
from fabolas.display import safe_text
from fabolas.storage.base import Identity, Record, UnwritableError
from fabolas.storage.database import StudyDatabase, write_errors
from fabolas.storage.files import kind_of, remove_drafts, resolve, unused_name
from fabolas.storage.lock import FileLock
from fabolas.storage.memory import MemoryStorage
from fabolas.storage.schema import (
    EARLY_OUTCOMES,
    RUN_BUDGET,
    check_header,
    check_no_foreign_journal,
    create,
    insert_incumbent,
    insert_outcome,
    insert_report,
    insert_suggestion,
    lost_its_log,
    replace_state,
    warn_of_lost_log,
)
from fabolas.trials import Incumbent, Suggestion, Trial


class SqliteStorage:
    """Keeps the record in a file. One process at a time may write to it; any process may read it.

    All threads of the process may write: they share one connection and take turns. The record is kept in memory too.
    If another program deletes, replaces or overwrites the file during a run, the next step notices it, writes the
    record to a new file beside it, warns, and continues there.

    Attributes:
        path: The file; after a rescue the new one.

    Raises:
        ValueError: From ``open``, if the file is not a study, is another study, has another schema or is damaged.
        RuntimeError: From ``open``, if the file is in use.
        UnwritableError: From every method that writes, if the step could not be written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = resolve(path)
        self._identity: Identity | None = None
        self._database: StudyDatabase | None = None
        self._mirror = MemoryStorage()  # what the file contains
        self._lock = threading.RLock()

    def __reduce__(self) -> tuple[type["SqliteStorage"], tuple[Path]]:
        return SqliteStorage, (self.path,)  # a copy refers to the same file and is not open

    def open(self, identity: Identity) -> Record:
        _check_path(self.path)
        database = _locked(self.path, lambda: _create_if_new(self.path, identity))
        try:
            record = database.load(identity)
            with database.transaction(copy_log=True) as connection:
                # The budget of the last run does not apply to this one.
                connection.execute("DELETE FROM study WHERE key = ?", (RUN_BUDGET,))
        except BaseException:
            database.close()
            raise
        self._database, self._identity = database, replace(identity, seed=record.seed)
        self._mirror = MemoryStorage.of(self._identity, record)
        return record

    def add_suggestion(self, suggestion: Suggestion, state: dict[str, Array], started: float | None) -> None:
        with self._lock:
            with self._transaction() as connection:
                insert_suggestion(connection, suggestion, started)
                replace_state(connection, state)
            self._mirror.add_suggestion(suggestion, state, started)

    def add_start(self, suggestion_id: int, started: float) -> None:
        with self._lock:
            with self._transaction() as connection:
                row = connection.execute(
                    "UPDATE suggestion SET started = ? WHERE id = ?", (started, suggestion_id)
                )
                if row.rowcount != 1:
                    raise ValueError(f"suggestion {suggestion_id} is unknown; add it first")
            self._mirror.add_start(suggestion_id, started)

    def remove_suggestion(self, suggestion_id: int, state: dict[str, Array]) -> None:
        with self._lock:
            with self._transaction() as connection:
                unstarted = "DELETE FROM suggestion WHERE id = ? AND started IS NULL"
                if connection.execute(unstarted, (suggestion_id,)).rowcount != 1:
                    raise ValueError(
                        f"suggestion {suggestion_id} is unknown, or has started and cannot be removed"
                    )
                replace_state(connection, state)
            self._mirror.remove_suggestion(suggestion_id, state)

    def add_report(self, suggestion_id: int, report: Report) -> None:
        with self._lock:
            with self._transaction() as connection:
                _check_unended(connection, suggestion_id)
                insert_report(connection, suggestion_id, report)
            self._mirror.add_report(suggestion_id, report)

    def add_early_outcome(self, trial: Trial) -> None:
        with self._lock:
            with self._transaction(copy_log=True) as connection:
                _check_unended(connection, trial.id)
                insert_outcome(connection, EARLY_OUTCOMES, trial)
            self._mirror.add_early_outcome(trial)

    def add_trial(self, trial: Trial) -> None:
        with self._lock:
            with self._transaction(copy_log=True) as connection:
                insert_outcome(connection, "outcome", trial)
                connection.execute(f"DELETE FROM {EARLY_OUTCOMES} WHERE suggestion = ?", (trial.id,))
            self._mirror.add_trial(trial)

    def add_incumbent(self, elapsed: float, incumbent: Incumbent) -> None:
        with self._lock:
            with self._transaction() as connection:
                insert_incumbent(connection, elapsed, incumbent)
            self._mirror.add_incumbent(elapsed, incumbent)

    def save_run_budget(self, run_budget: RunBudget) -> None:
        with self._lock:
            with self._transaction() as connection:
                _save_run_budget(connection, run_budget)
            self._mirror.save_run_budget(run_budget)

    def close(self) -> None:
        with self._lock:
            if self._database is not None:
                self._database.close()
                self._database = None

    @contextmanager
    def _transaction(self, *, copy_log: bool = False) -> Iterator[sqlite3.Connection]:
        if self._database is None:
            raise RuntimeError(
                f"the storage {safe_text(self.path)} is not open; call open() first, or use a study that is open"
            )
        if problem := self._database.problem(*self._mirror.counts):
            self._database = self._rescue(self._database, problem)
        with self._database.transaction(copy_log=copy_log) as connection:
            try:
                yield connection
            except sqlite3.IntegrityError as error:
                raise ValueError(
                    f"{safe_text(self.path)} keeps each suggestion and each outcome once, and nothing about an unknown "
                    f"suggestion: {error}"
                ) from error

    def _rescue(self, lost: StudyDatabase, problem: str) -> StudyDatabase:
        """Write the record to a new file beside the lost one, or in the directory for temporary files."""
        errors = []
        for directory in (self.path.parent, Path(tempfile.gettempdir())):
            try:
                database = self._write_copy(directory)
            except (UnwritableError, OSError) as error:
                errors.append(str(error))
                continue
            lost.leave()
            self.path = database.path
            warn_caller(
                f"{safe_text(lost.path)} {problem} while the study was in use. All its {self._mirror.counts[1]} "
                f"trials are in {safe_text(self.path)}, and the study continues there; give this file as storage to "
                "continue it later",
                RuntimeWarning,
            )
            return database
        raise UnwritableError(
            f"{safe_text(lost.path)} {problem} while the study was in use, and its record could not be written to "
            f"another file ({'; '.join(errors)}). The trials are still in memory: result.trials or study.trials"
        )

    def _write_copy(self, directory: Path) -> StudyDatabase:
        assert self._identity is not None
        path = unused_name(directory / self.path.name, "rescued")
        description, record = self._identity.describe(), self._mirror.record
        database = _locked(path, lambda: create(path, description, record))
        database.load(self._identity)
        with database.transaction(copy_log=True) as connection:
            if self._mirror.run_budget is not None:
                _save_run_budget(connection, self._mirror.run_budget)
        return database


def _check_path(path: Path) -> None:
    try:
        kind = kind_of(path)
        directory = path.parent.is_dir()
        names = path.stat().st_nlink if path.exists() else 1
    except OSError as error:
        raise ValueError(
            f"storage must be a file, got {safe_text(path)}: {error.strerror}; choose another"
        ) from error
    if kind or not directory:
        what = f"is {kind}" if kind else "is in a directory that does not exist"
        raise ValueError(
            f"storage must be a regular file, got {safe_text(path)}, which {what}; choose another"
        )
    if names > 1:
        raise ValueError(
            f"{safe_text(path)} has {names} names (hard links), and another process could write to it under another "
            "name; make a copy of it and give the copy"
        )


def _locked(path: Path, prepare: Callable[[], None]) -> StudyDatabase:
    """Lock a file, prepare it, and open it. The lock is released if that fails."""
    lock = FileLock(path)
    try:
        with write_errors(path):
            prepare()
            return StudyDatabase(path, lock)
    except BaseException:
        lock.release()
        raise


def _create_if_new(path: Path, identity: Identity) -> None:
    remove_drafts(path)
    if path.exists() and path.stat().st_size > 0:
        check_header(path)
        if lost_its_log(path):
            warn_of_lost_log(path)
    else:
        check_no_foreign_journal(path)
        create(path, identity.describe())


def _check_unended(connection: sqlite3.Connection, suggestion_id: int) -> None:
    if connection.execute("SELECT 1 FROM outcome WHERE suggestion = ?", (suggestion_id,)).fetchone():
        raise ValueError(f"suggestion {suggestion_id} has already ended")


def _save_run_budget(connection: sqlite3.Connection, run_budget: RunBudget) -> None:
    connection.execute("REPLACE INTO study VALUES (?, ?)", (RUN_BUDGET, json.dumps(run_budget.describe())))
