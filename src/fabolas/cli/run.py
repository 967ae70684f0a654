"""``fabolas run``: minimise the problem of a file."""

import argparse
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from fabolas.cli.answer import answer
from fabolas.cli.errors import UserError, told
from fabolas.cli.output import show
from fabolas.cli.problem import Problem, load
from fabolas.result import Result
from fabolas.run import minimize
from fabolas.storage import Identity, Record, SqliteStorage
from fabolas.strategies import make

INTERRUPTED = 130

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
    settings = problem.settings | _given(options)
    _check_strategy(problem, settings)
    if options.storage is not None:
        settings["storage"] = _Storage(options.storage)
    with _noted_interrupt() as interrupts, _plain_warnings():
        try:
            result = minimize(problem.objective, problem.space, progress=not options.quiet, **settings)
        except RuntimeError as error:
            print(f"fabolas: {error}", file=sys.stderr)
            return 1
    if not options.quiet:
        print(file=sys.stderr)  # between the progress and the answer
    _print(result, options.storage)
    if interrupts:
        return INTERRUPTED
    return 0 if result.incumbent is not None else 1


class _Storage(SqliteStorage):
    """A file whose refusal is the user's to mend: not a study, another one, or in use."""

    def open(self, identity: Identity) -> Record:
        with told(ValueError, RuntimeError, OSError):
            return super().open(identity)


def _given(options: argparse.Namespace) -> dict[str, Any]:
    found = {name: getattr(options, word) for name, word in _ARGUMENTS.items()}
    return {name: value for name, value in found.items() if value is not None}


def _check_strategy(problem: Problem, settings: dict[str, Any]) -> None:
    """Refuse an unknown strategy or option before the run: minimize would too, as it might a defect of ours."""
    own = {*_ARGUMENTS, "data"}
    with told(ValueError, TypeError):
        make(
            settings.get("strategy", "fabolas"),
            problem.space,
            **{name: value for name, value in settings.items() if name not in own},
        )


def _print(result: Result, storage: str | None) -> None:
    try:
        result.predicted_loss  # noqa: B018 - a result without an answer says why
    except RuntimeError as error:
        print(f"fabolas: {error}", file=sys.stderr)
    if result.incumbent is not None:
        show(answer(result.incumbent, result.trials))
    if storage is not None:
        show(f"\nThe study is kept in {storage}; the same command with a larger budget continues it.")


@contextmanager
def _noted_interrupt() -> Iterator[list[int]]:
    """Ctrl-C as ever, and a note of it: minimize answers it with the result so far."""
    noted: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        noted.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Our own warnings without a line of source; those of the objective as they are."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message: Any, category: Any, filename: str, *rest: Any, **named: Any) -> None:
            if filename == __file__:
                print(f"fabolas: {message}", file=sys.stderr)
            else:
                usual(message, category, filename, *rest, **named)

        warnings.showwarning = show
        yield
