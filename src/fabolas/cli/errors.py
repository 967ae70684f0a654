"""Exit codes, messages on standard error, and the errors that the user can correct."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from fabolas.display import safe_lines

NO_ANSWER = 1
WRONG_INPUT = 2
GIVEN_UP = 3
UNWRITABLE = 4
INTERRUPTED = 130  # the convention of shells: 128 + number of the signal SIGINT


class UserError(Exception):
    """An error that the user can correct. Its message is shown without a traceback; the exit code is 2."""


def message(content: object) -> None:
    """Print a message on standard error."""
    print(f"fabolas: {safe_lines(content)}", file=sys.stderr)


@contextmanager
def as_user_error(*kinds: type[Exception]) -> Iterator[None]:
    """Raise UserError instead of exceptions of these types in the body."""
    try:
        yield
    except kinds as error:
        raise UserError(str(error)) from error
