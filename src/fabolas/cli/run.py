"""``fabolas run``: minimise the problem of a file."""

import argparse
import re
import sys
import warnings
from pathlib import Path
from typing import Any

from fabolas.cli.answer import answer
from fabolas.cli.errors import GIVEN_UP, INTERRUPTED, UNWRITABLE, UserError
from fabolas.cli.output import show
from fabolas.cli.problem import Problem, load
from fabolas.result import Result
from fabolas.run import minimize
from fabolas.storage import Identity, MemoryStorage, Record, SqliteStorage, UnwritableError

# What minimize calls it -> what the command line calls it.
_ARGUMENTS = {
    "time_budget": "budget",
    "max_trials": "max_trials",
    "workers": "workers",
    "strategy": "strategy",
    "seed": "seed",
    "trial_timeout": "timeout",
    "trial_memory": "memory",
}


def run(options: argparse.Namespace) -> int:
    """Run until the budget is used up, print the answer; returns the exit code."""
    if options.budget is None and options.max_trials is None:
        raise UserError("a run needs an end, got none; give --budget 30m or --max-trials 100, or both")
    problem = load(Path(options.problem))
    given = {name: getattr(options, word) for name, word in _ARGUMENTS.items()}
    settings = problem.settings | {name: value for name, value in given.items() if value is not None}
    storage = _WatchedMemory() if options.storage is None else _WatchedFile(options.storage)
    try:
        result = _minimize(problem, storage, progress=not options.quiet, **settings)
    except UnwritableError as error:
        kept = f"what was recorded stays, and `fabolas best {options.storage}` shows its answer"
        print(f"fabolas: {error}; {kept}", file=sys.stderr)
        return UNWRITABLE
    except RuntimeError as error:
        print(f"fabolas: {error}", file=sys.stderr)
        return 1
    if result.given_up is not None:
        print(f"fabolas: {result.given_up}", file=sys.stderr)
    if not options.quiet:
        print(file=sys.stderr)  # between the progress and the answer
    _print(result, options.storage)
    if result.interrupted:
        return INTERRUPTED
    if result.incumbent is None:
        return 1
    return 0 if result.given_up is None else GIVEN_UP


class _Watched:
    """A storage that remembers whether it was opened: what is refused before is the user's to mend."""

    opened = False

    def open(self, identity: Identity) -> Record:
        record: Record = super().open(identity)  # type: ignore[misc]
        self.opened = True
        return record


class _WatchedFile(_Watched, SqliteStorage):
    """A file."""


class _WatchedMemory(_Watched, MemoryStorage):
    """What is kept without one."""


def _minimize(problem: Problem, storage: _WatchedFile | _WatchedMemory, **settings: Any) -> Result:
    try:
        with warnings.catch_warnings():
            # Of an early end alone, which the result tells too; those of the objective are left as they are.
            warnings.filterwarnings("ignore", category=RuntimeWarning, module=re.escape(__name__))
            return minimize(problem.objective, problem.space, problem.fidelities, storage=storage, **settings)
    except (ValueError, TypeError, RuntimeError, OSError) as error:
        if storage.opened:
            raise
        raise UserError(str(error)) from error


def _print(result: Result, storage: str | None) -> None:
    if result.incumbent is not None:
        show(answer(result.incumbent, result.trials))
    else:
        try:
            result.predicted_loss  # noqa: B018 - a result without an answer says why
        except RuntimeError as error:
            print(f"fabolas: {error}", file=sys.stderr)
    if storage is not None:
        show(f"\nThe study is kept in {storage}; the same command with a larger budget continues it.")
