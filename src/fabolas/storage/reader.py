"""Read the file of a study without changing it, even while another process writes to it."""

import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from fabolas._types import Array
from fabolas.budget import RunBudget, Usage
from fabolas.curve_reports import Report
from fabolas.direction import Direction, check_direction
from fabolas.display import safe_text
from fabolas.plain_values import to_json
from fabolas.space import Space
from fabolas.storage.base import merge_early_outcomes
from fabolas.storage.files import kind_of, resolve
from fabolas.storage.lock import lock_owner
from fabolas.storage.schema import (
    RUN_BUDGET,
    SUGGESTION_COLUMNS,
    check_header,
    damage_as_value_error,
    load_description,
    load_early_outcomes,
    load_reports,
    load_started,
    load_state,
    load_trajectory,
    load_trials,
    lost_its_log,
    point_of_blob,
)
from fabolas.trials import History, Incumbent, Suggestion, Trial


@dataclass(frozen=True)
class StudyFile:
    """What the file of a study contained at one moment. It does not change when the study goes on.

    Attributes:
        path: The file.
        lock_owner: Id of the process that has the study open; None if no process has.
        direction: Whether losses are minimised or maximised.
        strategy: Name of the strategy.
        options: The strategy's options.
        seed: The study's seed.
        space: The space, see ``Space.from_description``.
        suggestions: All suggestions, ordered by id. A choice that Python cannot write as a literal is its text.
        started: Suggestion id -> when its evaluation started, in seconds since the epoch.
        trials: All trials in the order in which they ended, then the early outcomes.
        state: The strategy's arrays; None before the first suggestion.
        run_budget: Budget of the run that has the study open, or had it open last; None if it had no budget.
        lost_its_log: Whether the last trials may be missing, because the file was copied during a run without its
            log (``<name>-wal``), or the log was deleted after a crash.
        trajectory: (elapsed, incumbent) pairs.
        space_description: The space as it was described when the study was created.
        reports: Suggestion id -> what its training has reported so far, for suggestions without a trial.
    """

    path: Path
    lock_owner: int | None
    direction: Direction
    strategy: str
    options: dict[str, Any]
    seed: int
    space: Space
    suggestions: tuple[Suggestion, ...]
    started: Mapping[int, float]
    trials: tuple[Trial, ...]
    state: dict[str, Array] | None = field(repr=False)
    run_budget: RunBudget | None = None
    lost_its_log: bool = False
    trajectory: tuple[tuple[float, Incumbent], ...] = ()
    space_description: dict[str, Any] = field(default_factory=dict, repr=False)
    reports: Mapping[int, tuple[Report, ...]] = field(default_factory=dict, repr=False)

    @cached_property
    def history(self) -> History:
        """The trials as arrays."""
        return History(self.trials)

    @property
    def open_suggestions(self) -> tuple[Suggestion, ...]:
        """Suggestions without a trial."""
        ended = {trial.id for trial in self.trials}
        return tuple(s for s in self.suggestions if s.id not in ended)

    @property
    def started_suggestions(self) -> tuple[Suggestion, ...]:
        """Open suggestions that were started: they run if the study is in use, else they were interrupted."""
        return tuple(s for s in self.open_suggestions if s.id in self.started)

    @property
    def overhead(self) -> float:
        """Recorded seconds of overhead."""
        return sum(s.overhead for s in self.suggestions)

    def usage(self, now: float) -> Usage | None:
        """What the run that has, or had, the study open has used of its budget; None without a budget.

        Args:
            now: Seconds since the epoch.
        """
        if self.run_budget is None:
            return None
        run_seconds = None if self.lock_owner is None else max(now - self.run_budget.started, 0.0)
        pending = self.started_suggestions if self.run_budget.workers is None else ()
        return self.run_budget.usage(self.history, pending, run_seconds=run_seconds)


def read(path: str | Path) -> StudyFile:
    """Read a study in one transaction. Nothing is written beside it.

    Raises:
        ValueError: If the file does not exist, is not a study, has another schema, or is damaged.
    """
    path = resolve(path)
    if not path.is_file():
        what = f"is {kind}" if (kind := kind_of(path)) else "does not exist"
        raise ValueError(
            f"expected the file of a study, got {safe_text(path)}, which {what}; give the path of the storage"
        )
    try:
        owner = lock_owner(path)
        try:
            return _read(path, owner)
        except ValueError:
            now = lock_owner(path)
            if now == owner:
                raise
            return _read(path, now)  # a run has started or ended while the file was read
    except OSError as error:
        raise ValueError(
            f"{safe_text(path)} cannot be read: {error.strerror}; give a file that you may read"
        ) from error


def _read(path: Path, owner: int | None) -> StudyFile:
    # A file that this process has open is a study. To open and close it here would release SQLite's locks.
    if owner != os.getpid():
        check_header(path)
    with damage_as_value_error(path), connect_to_read(path, owner) as connection:
        study = _load(path, owner, connection)
    return study if owner is not None else replace(study, lost_its_log=lost_its_log(path))


@contextmanager
def connect_to_read(path: Path, owner: int | None) -> Iterator[sqlite3.Connection]:
    """A connection in one read transaction. It changes nothing in the directory of the file, not even SQLite's index.

    Args:
        path: The file of a study.
        owner: The process that has it open; None if no process has.
    """
    log = path.with_name(path.name + "-wal")
    shared = None if owner is None else _connect_shared(path)
    if shared is not None:
        with closing(shared):
            yield shared
        return
    if not (log.exists() and log.stat().st_size > 0):
        # The file is complete and does not change. Without "immutable" SQLite would create a log beside it.
        with closing(_connect(f"{path.as_uri()}?mode=ro&immutable=1")) as connection:
            yield connection
        return
    # A killed process left the log. SQLite can only read it where it can write, so read a copy of both.
    with tempfile.TemporaryDirectory(prefix="fabolas-") as directory:
        copy = Path(directory) / path.name
        shutil.copyfile(path, copy)
        shutil.copyfile(log, copy.with_name(log.name))
        with closing(_connect(copy.as_uri())) as connection:
            yield connection


def _connect_shared(path: Path) -> sqlite3.Connection | None:
    """A connection to a file that a process writes to; None if SQLite cannot use its shared memory from here."""
    connection = _connect(f"{path.as_uri()}?mode=ro")
    try:
        connection.execute("BEGIN")
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()  # begins to read
    except sqlite3.OperationalError:
        connection.close()
        return None
    return connection


def _connect(uri: str) -> sqlite3.Connection:
    return sqlite3.connect(uri, uri=True, isolation_level=None)


def _load(path: Path, owner: int | None, connection: sqlite3.Connection) -> StudyFile:
    study = load_description(connection)
    space = Space.from_description(study["space"])
    suggestions: dict[int, Suggestion] = {}
    columns = f"id, config, point, {SUGGESTION_COLUMNS}"
    for number, config, blob, *rest in connection.execute(f"SELECT {columns} FROM suggestion ORDER BY id"):
        point = point_of_blob(number, blob, space)
        decoded, fidelity = space.decode(point)
        values = {to_json(name): value for name, value in decoded.items()}
        active = json.loads(config)  # a condition that is an UnknownRule counts as true in `decoded`
        if not (isinstance(active, dict) and active.keys() <= values.keys()):
            raise ValueError(f"the configuration of suggestion {number} is not in the space")
        chosen = {name: value for name, value in values.items() if name in active}
        suggestions[number] = Suggestion(number, chosen, fidelity, point, *rest)
    trials = merge_early_outcomes(
        load_trials(connection, suggestions), load_early_outcomes(connection, suggestions)
    )
    ended = {trial.id for trial in trials}
    return StudyFile(
        path=path,
        lock_owner=owner,
        direction=check_direction(study["direction"]),
        strategy=str(study["strategy"]),
        options=dict(study["options"]),
        seed=int(study["seed"]),
        space=space,
        suggestions=tuple(suggestions.values()),
        started=load_started(connection),
        trials=trials,
        state=load_state(connection),
        run_budget=RunBudget.of(study[RUN_BUDGET]) if RUN_BUDGET in study else None,
        trajectory=load_trajectory(connection, suggestions),
        space_description=study["space"],
        reports={n: found for n, found in load_reports(connection).items() if n not in ended},
    )
