"""Where progress appears and when: live on a terminal and in a notebook, plain lines anywhere else."""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from fabolas.budget import Budget
from fabolas.progress.snapshot import Snapshot
from fabolas.progress.text import line

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

# Plain lines are for log files: the first ones soon, then ever fewer.
_FIRST, _GROWTH, _RAREST = 1.0, 1.5, 300.0

_PER_SECOND = 4  # refreshes of a terminal; a notebook gets half of them


class Report(Protocol):
    """Shows the news as fits where they are shown."""

    def __call__(self, news: Snapshot) -> None:
        """Show these from now on."""

    def notice(self, words: str) -> None:
        """Say this too; may be called from a signal handler, so it takes no lock and waits for nothing."""


@contextmanager
def reporting(
    enabled: bool, budget: Budget, elapsed: Callable[[], float], console: "Console | None" = None
) -> Iterator[Report]:
    """What to call with each news.

    Args:
        enabled: False for silence.
        budget: What the run may use.
        elapsed: Seconds used so far, asked between the news too.
        console: Where to write, standard error by default.
    """
    if not enabled:
        yield _Silence()
        return
    from rich.console import Console

    console = console or Console(stderr=True, highlight=False)
    if console.is_jupyter:
        show = _notebook
    elif console.is_terminal and not console.is_dumb_terminal:
        show = _terminal
    else:
        lines = _Lines(console, budget)
        yield lines
        lines.end()
        return
    latest = _Latest(elapsed)
    with show(console, lambda: _screen(latest.now(), budget)):
        yield latest


class _Silence:
    """Shows nothing."""

    def __call__(self, news: Snapshot) -> None:
        pass

    def notice(self, words: str) -> None:
        pass


class _Lines:
    """Plain lines for a log: the first ones soon, then ever fewer, and the last news in any case."""

    def __init__(self, console: "Console", budget: Budget) -> None:
        self._console, self._budget = console, budget
        self._due, self._shown, self._news = _FIRST, -1, Snapshot()

    def __call__(self, news: Snapshot) -> None:
        self._news = news
        if news.elapsed >= self._due and news.trials > self._shown:
            self._print()
            self._due = news.elapsed + min(max(_FIRST, (_GROWTH - 1) * news.elapsed), _RAREST)

    def notice(self, words: str) -> None:
        # A stream may be in the middle of a write of its own; the system's call does not care.
        os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, f"{words}\n".encode())

    def end(self) -> None:
        """Show the last news, unless they were."""
        if self._news.trials > self._shown:
            self._print()

    def _print(self) -> None:
        self._console.print(line(self._news, self._budget), soft_wrap=True)
        self._shown = self._news.trials


class _Latest:
    """The last news, moved on to the present: time goes on while an evaluation runs.

    The display asks from a thread of its own.
    """

    def __init__(self, elapsed: Callable[[], float]) -> None:
        self._elapsed = elapsed
        self._lock = threading.Lock()
        self._news = Snapshot()
        self._since: dict[int, float] = {}  # running trial -> when it began, or was first seen
        self._notice: str | None = None

    def __call__(self, news: Snapshot) -> None:
        now = self._elapsed()
        with self._lock:
            self._since = {trial.id: self._since.get(trial.id, now - trial.seconds) for trial in news.running}
            self._news = news

    def notice(self, words: str) -> None:
        self._notice = words

    def now(self) -> Snapshot:
        """The news as they would be now."""
        now = self._elapsed()
        with self._lock:
            running = tuple(
                replace(trial, seconds=max(now - self._since[trial.id], 0.0)) for trial in self._news.running
            )
            elapsed = max(now, self._news.elapsed)
            notice = self._notice if running else None  # it is about what is running
            return replace(self._news, elapsed=elapsed, running=running, notice=notice)


def _screen(news: Snapshot, budget: Budget) -> "RenderableType":
    from fabolas.progress.screen import screen

    return screen(news, budget)


@contextmanager
def _terminal(console: "Console", render: "Callable[[], RenderableType]") -> Iterator[None]:
    from rich.live import Live

    # What the objective prints appears above the screen; what goes to a file is none of ours.
    with Live(
        console=console,
        get_renderable=render,
        refresh_per_second=_PER_SECOND,
        redirect_stdout=sys.stdout.isatty(),
        redirect_stderr=sys.stderr.isatty(),
    ):
        yield


@contextmanager
def _notebook(console: "Console", render: "Callable[[], RenderableType]") -> Iterator[None]:
    from fabolas.progress.notebook import Display

    display = Display(render)
    ended = threading.Event()

    def refresh() -> None:
        while not ended.wait(2 / _PER_SECOND):
            display.update()

    thread = threading.Thread(target=refresh, name="fabolas-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        display.update()
