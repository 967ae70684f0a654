"""Where and when progress is shown: live in a terminal and in a notebook, as single lines anywhere else."""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from fabolas.budget import Budget, Clock
from fabolas.display import make_console, safe_text
from fabolas.progress.snapshot import Snapshot
from fabolas.progress.text import line

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

# Seconds between two lines of a log file: at first 1, then half of the elapsed time, at most 300.
_FIRST_INTERVAL, _INTERVAL_SHARE, _LONGEST_INTERVAL = 1.0, 0.5, 300.0

_REFRESHES_PER_SECOND = 4  # of a terminal; a notebook is refreshed half as often


class ProgressDisplay(Protocol):
    """Shows snapshots of a run."""

    def update(self, snapshot: Snapshot) -> None:
        """Show this snapshot from now on."""

    def notice(self, text: str) -> None:
        """Show a message. A signal handler may call this, so it must not wait for a lock."""


@contextmanager
def show_progress(
    enabled: bool, budget: Budget, clock: Clock, console: "Console | None" = None
) -> Iterator[ProgressDisplay]:
    """Show the progress of the run in the body; the body calls ``update`` of the returned display.

    Args:
        enabled: False shows nothing.
        budget: The limits of the run.
        clock: Seconds from any origin; the live display adds the time since the last update.
        console: Where to write; standard error by default.
    """
    if not enabled:
        yield _NoDisplay()
        return
    console = console or make_console(stderr=True)
    if console.is_jupyter:
        show = _notebook
    elif console.is_terminal and not console.is_dumb_terminal:
        show = _terminal
    else:
        lines = _LineDisplay(console, budget)
        yield lines
        lines.close()
        return
    display = _LiveDisplay(clock)
    with show(console, lambda: _screen(display.current(), budget)):
        yield display


class _NoDisplay:
    """Shows nothing."""

    def update(self, snapshot: Snapshot) -> None:
        pass

    def notice(self, text: str) -> None:
        pass


class _LineDisplay:
    """Prints lines for a log: often at first, then less and less often, and always the last snapshot."""

    def __init__(self, console: "Console", budget: Budget) -> None:
        self._console, self._budget = console, budget
        self._next_time, self._trials_shown, self._snapshot = _FIRST_INTERVAL, -1, Snapshot()

    def update(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        if snapshot.elapsed >= self._next_time and snapshot.trials > self._trials_shown:
            self._print()
            interval = max(_FIRST_INTERVAL, _INTERVAL_SHARE * snapshot.elapsed)
            self._next_time = snapshot.elapsed + min(interval, _LONGEST_INTERVAL)

    def notice(self, text: str) -> None:
        # Python's stream may be in the middle of a write when a signal arrives; os.write works all the same.
        os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, f"{safe_text(text)}\n".encode())

    def close(self) -> None:
        """Print the last snapshot if it was not printed."""
        if self._snapshot.trials > self._trials_shown:
            self._print()

    def _print(self) -> None:
        self._console.print(line(self._snapshot, self._budget), soft_wrap=True, markup=False, emoji=False)
        self._trials_shown = self._snapshot.trials


class _LiveDisplay:
    """Keeps the last snapshot, and brings its times up to date whenever it is shown.

    A thread of the terminal or notebook calls ``current``.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._snapshot = Snapshot()
        self._updated = clock()  # when the snapshot was given
        self._started: dict[int, float] = {}  # id of a running trial -> when it started, or was first seen
        self._notice: str | None = None

    def update(self, snapshot: Snapshot) -> None:
        now = self._clock()
        with self._lock:
            self._started = {
                trial.id: self._started.get(trial.id, now - trial.seconds) for trial in snapshot.running
            }
            self._snapshot, self._updated = snapshot, now

    def notice(self, text: str) -> None:
        self._notice = text

    def current(self) -> Snapshot:
        """Return the last snapshot with the times of now."""
        now = self._clock()
        with self._lock:
            running = tuple(
                replace(trial, seconds=max(now - self._started[trial.id], 0.0))
                for trial in self._snapshot.running
            )
            elapsed = self._snapshot.elapsed + now - self._updated
            notice = self._notice if running else None  # notices are about running trials
            return replace(self._snapshot, elapsed=elapsed, running=running, notice=notice)


def _screen(snapshot: Snapshot, budget: Budget) -> "RenderableType":
    from fabolas.progress.screen import screen  # imports parts of rich that are slow to import

    return screen(snapshot, budget)


@contextmanager
def _terminal(console: "Console", render: "Callable[[], RenderableType]") -> Iterator[None]:
    from rich.live import Live

    # What the objective prints appears above the screen. If it goes to a file, it is left alone.
    with Live(
        console=console,
        get_renderable=render,
        refresh_per_second=_REFRESHES_PER_SECOND,
        redirect_stdout=sys.stdout.isatty(),
        redirect_stderr=sys.stderr.isatty(),
    ):
        yield


@contextmanager
def _notebook(console: "Console", render: "Callable[[], RenderableType]") -> Iterator[None]:
    from fabolas.progress.notebook import NotebookOutput

    output = NotebookOutput(render)
    ended = threading.Event()

    def refresh() -> None:
        while not ended.wait(2 / _REFRESHES_PER_SECOND):
            output.update()

    thread = threading.Thread(target=refresh, name="fabolas-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        output.update()
