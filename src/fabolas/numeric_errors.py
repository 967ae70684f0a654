"""Numpy's error state in our own computation: the default one, whatever the user's program has set."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def default_error_state() -> Iterator[None]:
    """Run the body, or a decorated function, with numpy's default error state.

    With ``np.seterr(all="raise")`` in the user's program, a harmless underflow in our computation would end the run.
    The objective is called outside of this, with the user's error state.
    """
    with np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"):
        yield
