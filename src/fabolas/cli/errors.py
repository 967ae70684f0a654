"""What the user can mend is a sentence; anything else is a defect of ours and keeps its traceback."""

from collections.abc import Iterator
from contextlib import contextmanager

GIVEN_UP = 3
UNWRITABLE = 4
INTERRUPTED = 130  # as a shell has it: 128 and the number of SIGINT


class UserError(Exception):
    """Says what was expected, what came and what to do; ends the command with exit code 2."""


@contextmanager
def told(*kinds: type[Exception]) -> Iterator[None]:
    """Errors of these kinds in the body are the user's to mend."""
    try:
        yield
    except kinds as error:
        raise UserError(str(error)) from error
