"""``fabolas run``: minimise the objective of a problem file."""

import argparse
import sys
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from fabolas.api import GaveUpWarning, NoAnswerError, Result, minimize
from fabolas.cli.dashboard import dashboard_of_run
from fabolas.cli.errors import GIVEN_UP, INTERRUPTED, NO_ANSWER, UNWRITABLE, UserError, as_user_error, message
from fabolas.cli.output import answer, show
from fabolas.cli.problem import Problem, load
from fabolas.display import safe_text
from fabolas.storage import Identity, MemoryStorage, Record, SqliteStorage, UnwritableError

# Options of the command line that are arguments of minimize, with the same names.
_ARGUMENTS = (
    "time_budget",
    "max_trials",
    "workers",
    "strategy",
    "seed",
    "trial_timeout",
    "trial_memory",
    "verify",
)


def run(options: argparse.Namespace) -> int:
    """Run until the budget is used up, print the answer, and return the exit code."""
    if options.time_budget is None and options.max_trials is None:
        raise UserError("a run needs a budget, got none; give --time-budget 30m or --max-trials 100, or both")
    problem = load(Path(options.problem))
    given = {name: getattr(options, name) for name in _ARGUMENTS}
    settings = problem.settings | {name: value for name, value in given.items() if value is not None}
    with as_user_error(ValueError):
        storage = _MemoryStorage() if options.storage is None else _FileStorage(options.storage)
    with dashboard_of_run(options.storage) if options.dashboard else nullcontext():
        return _run(problem, storage, options, settings)


def _run(
    problem: Problem,
    storage: "_FileStorage | _MemoryStorage",
    options: argparse.Namespace,
    settings: dict[str, Any],
) -> int:
    try:
        result = _minimize(problem, storage, progress=not options.quiet, **settings)
    except UnwritableError as error:
        message(f"{error}; `fabolas best {options.storage}` shows the answer of the trials that were written")
        return UNWRITABLE
    except NoAnswerError as error:
        message(error)
        return NO_ANSWER
    if result.given_up is not None:
        message(result.given_up)
    if not options.quiet:
        print(file=sys.stderr)  # an empty line between progress and answer
    _print(result, storage.name if isinstance(storage, _FileStorage) else None)
    if result.interrupted:
        return INTERRUPTED
    if result.incumbent() is None:
        return NO_ANSWER
    return 0 if result.given_up is None else GIVEN_UP


class _RemembersOpening:
    """A storage that remembers whether it was opened. Errors before that are errors of the user's input."""

    opened = False

    def open(self, identity: Identity) -> Record:
        record: Record = super().open(identity)  # type: ignore[misc]
        self.opened = True
        return record


class _FileStorage(_RemembersOpening, SqliteStorage):
    """The storage of a run with --storage."""

    def __init__(self, given: str) -> None:
        super().__init__(given)
        self._given, self._first = given, self.path

    @property
    def name(self) -> str:
        """The file as the user gave it, or the new file if it was deleted or overwritten during the run."""
        return self._given if self.path == self._first else str(self.path)


class _MemoryStorage(_RemembersOpening, MemoryStorage):
    """The storage of a run without --storage."""


def _minimize(problem: Problem, storage: _FileStorage | _MemoryStorage, **settings: Any) -> Result:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GaveUpWarning)  # it is printed as a message
            return minimize(problem.objective, problem.space, problem.fidelities, storage=storage, **settings)
    except (ValueError, TypeError, RuntimeError, OSError) as error:
        if storage.opened:
            raise
        raise UserError(str(error)) from error


def _print(result: Result, storage: str | None) -> None:
    incumbent = result.incumbent()
    if incumbent is not None:
        show(answer(incumbent, result))
    else:
        try:
            result.predicted_loss  # noqa: B018 - a result without an answer says why
        except RuntimeError as error:
            message(error)
    if storage is not None:
        budget_left = result.interrupted or result.given_up is not None
        how = "Repeat the command" if budget_left else "Repeat the command with a larger budget"
        print(f"\nThe study is saved in {safe_text(storage)}. {how} to continue it.")
