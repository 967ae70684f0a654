"""Where progress appears and when: live on a terminal and in a notebook, plain lines anywhere else."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from fabolas.budget import Budget
from fabolas.progress.snapshot import Snapshot
from fabolas.progress.text import line

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

# Plain lines are for log files: the first ones soon, then ever fewer.
_FIRST, _GROWTH, _RAREST = 1.0, 1.5, 300.0

_PER_SECOND = 4  # refreshes of a terminal; a notebook gets half of them

Report = Callable[[Snapshot], None]


@contextmanager
def reporting(
    enabled: bool, budget: Budget, elapsed: Callable[[], float], console: "Console | None" = None
) -> Iterator[Report]:
    """A function to call with each news, which shows it as fits where it is shown.

    Args:
        enabled: False for silence.
        budget: What the run may use.
        elapsed: Seconds used so far, asked between the news too.
        console: Where to write, standard error by default.
    """
    if not enabled:
        yield lambda _: None
        return
    from rich.console import Console

    console = console or Console(stderr=True, highlight=False)
    if console.is_jupyter:
        show = _notebook
    elif console.is_terminal and not console.is_dumb_terminal:
        show = _terminal
    else:
        yield from _plain(console, budget)
        return
    latest = _Latest(elapsed)
    with show(console, lambda: _screen(latest.now(), budget)):
        yield latest.report


class _Latest:
    """The last news, moved on to the present: time goes on while an evaluation runs.

    The display asks from a thread of its own.
    """

    def __init__(self, elapsed: Callable[[], float]) -> None:
        self._elapsed = elapsed
        self._lock = threading.Lock()
        self._news = Snapshot()
        self._since: dict[int, float] = {}  # running trial -> when it was first seen

    def report(self, news: Snapshot) -> None:
        now = self._elapsed()
        with self._lock:
            self._since = {trial.id: self._since.get(trial.id, now) for trial in news.running}
            self._news = news

    def now(self) -> Snapshot:
        now = self._elapsed()
        with self._lock:
            running = tuple(
                replace(trial, seconds=max(now - self._since[trial.id], 0.0)) for trial in self._news.running
            )
            return replace(self._news, elapsed=max(now, self._news.elapsed), running=running)


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


def _plain(console: "Console", budget: Budget) -> Iterator[Report]:
    due, shown, last = _FIRST, -1, Snapshot()

    def report(news: Snapshot) -> None:
        nonlocal due, shown, last
        last = news
        if news.elapsed >= due and news.trials > shown:
            console.print(line(news, budget), soft_wrap=True)
            due, shown = news.elapsed + min(max(_FIRST, (_GROWTH - 1) * news.elapsed), _RAREST), news.trials

    yield report
    if last.trials > shown:
        console.print(line(last, budget), soft_wrap=True)
