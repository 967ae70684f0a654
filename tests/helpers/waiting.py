"""Waiting for other threads and processes, never for ever."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 60.0  # seconds: far more than anything needs on a busy machine


def wait_until(condition: Callable[[], T], seconds: float = PATIENCE) -> T:
    """Return the first true value of `condition()`; fail if there is none within so many seconds."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"still {value!r} after {seconds} s"
        time.sleep(0.01)
    return value


def burn(seconds: float) -> None:
    """Use so many seconds of this process's time."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
