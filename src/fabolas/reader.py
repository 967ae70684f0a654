"""Reads a study's file without disturbing it, also while another process writes to it."""

import json
import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fabolas._lock import holder
from fabolas._types import Array
from fabolas.budget import Allowance
from fabolas.history import History, Incumbent, Suggestion, Trial
from fabolas.space import Space
from fabolas.space.recorded import recorded_space
from fabolas.storage.base import joined
from fabolas.storage.schema import ALLOWANCE, check_header, load_arrivals, load_trials, unpack_state
from fabolas.strategies import NAMES, make


@dataclass(frozen=True)
class StudyFile:
    """What a study's file held at one moment; it stays so while the study goes on.

    Attributes:
        path: The file.
        holder: Process that has the study open, None if nobody has.
        strategy: Name of its strategy.
        options: The strategy's options.
        seed: Its seed.
        space: Its axes and fidelities, without conditions and forbidden clauses.
        suggestions: Every suggestion by number. Values of a configuration are those of JSON: a tuple is a list.
        started: Suggestion's number -> when it was begun with, in seconds since the epoch.
        trials: Every ended one, in order of ending; also those that its study has not heard of yet.
        state: Arrays that the strategy goes on from; None before the first suggestion.
        allowance: What the run may use that holds the study, or held it last; None if it had no budget.
    """

    path: Path
    holder: int | None
    strategy: str
    options: dict[str, Any]
    seed: int
    space: Space
    suggestions: tuple[Suggestion, ...]
    started: Mapping[int, float]
    trials: tuple[Trial, ...]
    state: dict[str, Array] | None = field(repr=False)
    allowance: Allowance | None = None

    @cached_property
    def history(self) -> History:
        """The trials as arrays."""
        return History(self.trials)

    @property
    def pending(self) -> tuple[Suggestion, ...]:
        """Suggestions without an outcome."""
        ended = {trial.id for trial in self.trials}
        return tuple(s for s in self.suggestions if s.id not in ended)

    @property
    def begun(self) -> tuple[Suggestion, ...]:
        """Pending ones begun with: running if somebody holds the study, else left by who held it."""
        return tuple(s for s in self.pending if s.id in self.started)

    @property
    def thinking(self) -> float:
        """Seconds of thinking on record."""
        return sum(s.thinking for s in self.suggestions)

    def incumbent(self) -> Incumbent | None:
        """What the strategy recommends after these trials; None before there is something to recommend.

        Raises:
            ValueError: If the strategy cannot be made again from what the file says of it.
        """
        if self.strategy not in NAMES:
            raise ValueError(
                f"the strategy {self.strategy!r} of {self.path} is not one of {', '.join(NAMES)}, and only it "
                "knows its answer; open the study with it: fabolas.Study(..., storage=...)"
            )
        try:
            strategy = make(self.strategy, self.space, **self.options)
            if self.state is not None:
                strategy.restore(self.state)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"the strategy {self.strategy!r} of {self.path} was kept by another version of fabolas "
                f"({error!r}); look at it with that version"
            ) from error
        return strategy.incumbent(self.history)


def read(path: str | Path) -> StudyFile:
    """The study in a file as it is now, by one consistent look that writes nothing.

    Raises:
        ValueError: If there is no file, or it is not a study, or of a newer schema, or damaged.
    """
    path = Path(path).expanduser().resolve()
    if not path.is_file():
        what = "is a directory" if path.is_dir() else "does not exist"
        raise ValueError(f"expected a study's file, got {path}, which {what}; give the file of --storage")
    try:
        process = holder(path)
        # A file of our own is known to be a study, and closing it here would give up SQLite's record locks on it.
        if process != os.getpid():
            check_header(path)
        with closing(_connect(path, in_use=process is not None)) as connection:
            connection.execute("BEGIN")
            return _load(path, process, connection)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}; give a file that you may read") from error
    except (sqlite3.DatabaseError, KeyError, json.JSONDecodeError) as error:
        raise ValueError(
            f"{path} has the mark of a study but cannot be read ({error}); choose another file"
        ) from error


def _connect(path: Path, *, in_use: bool) -> sqlite3.Connection:
    """A connection that can only read.

    Without a log of transactions beside it the file is all there is and nobody writes to it. SQLite is told so:
    it would otherwise begin a log to share, and leave it behind.
    """
    log = path.with_name(path.name + "-wal")
    alone = not in_use and not (log.exists() and log.stat().st_size > 0)
    options = "mode=ro&immutable=1" if alone else "mode=ro"
    return sqlite3.connect(f"{path.as_uri()}?{options}", uri=True, isolation_level=None)


def _load(path: Path, process: int | None, connection: sqlite3.Connection) -> StudyFile:
    study = {key: json.loads(value) for key, value in connection.execute("SELECT key, value FROM study")}
    suggestions, started = {}, {}
    columns = "id, started, config, fidelity, point, thinking, effort, predicted_cost, origin"
    for number, when, config, fidelity, blob, *rest in connection.execute(
        f"SELECT {columns} FROM suggestion ORDER BY id"
    ):
        where = (json.loads(config), json.loads(fidelity), np.frombuffer(blob, dtype="<f8"))
        suggestions[number] = Suggestion(number, *where, *rest)
        if when is not None:
            started[number] = when
    trials = joined(load_trials(connection, suggestions), load_arrivals(connection, suggestions))
    state = connection.execute("SELECT arrays FROM state").fetchone()
    return StudyFile(
        path=path,
        holder=process,
        strategy=study["strategy"],
        options=study["options"],
        seed=study["seed"],
        space=recorded_space(study["space"]),
        suggestions=tuple(suggestions.values()),
        started=started,
        trials=trials,
        state=None if state is None else unpack_state(state[0]),
        allowance=Allowance.of(study[ALLOWANCE]) if ALLOWANCE in study else None,
    )
