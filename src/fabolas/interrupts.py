"""Ctrl-C: what it does before, in and after a run."""

import signal
import threading
from collections.abc import Callable
from types import FrameType


class Interrupts:
    """Handles Ctrl-C until the result is returned; a context manager around everything that a call does.

    Before the run Ctrl-C raises KeyboardInterrupt, as usual. In the run it calls what ``begin_run`` got. After the
    run it does nothing: the files and workers are being closed, and an exception would lose the result.

    Signals can only be handled in the main thread, and a handler that the user has installed is not replaced.
    """

    def __init__(self) -> None:
        self._calls: list[Callable[[], None]] = [_raise]
        self._is_installed = False

    def __enter__(self) -> "Interrupts":
        usual = threading.current_thread() is threading.main_thread()
        if usual and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._pressed)
            self._is_installed = True
        return self

    def begin_run(self, first: Callable[[], None], further: Callable[[], None]) -> None:
        """Call ``first`` at the first Ctrl-C and ``further`` at each further one."""
        self._calls = [first, further]

    def end_run(self) -> None:
        """Ignore Ctrl-C from now on."""
        self._calls = [_ignore]

    def __exit__(self, *exception: object) -> None:
        if self._is_installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _pressed(self, number: int, frame: FrameType | None) -> None:
        calls = self._calls
        (calls.pop(0) if len(calls) > 1 else calls[0])()


def _raise() -> None:
    raise KeyboardInterrupt


def _ignore() -> None:
    pass
