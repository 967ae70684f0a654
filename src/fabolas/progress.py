"""One line that says how a run is going: live on a terminal, now and then anywhere else."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fabolas.budget import Budget
from fabolas.history import Incumbent

if TYPE_CHECKING:
    from rich.console import Console

# Plain lines are for log files: the first ones soon, then ever fewer.
_FIRST, _GROWTH, _RAREST = 1.0, 1.5, 300.0


@dataclass(frozen=True)
class Snapshot:
    """How far a run has come.

    Attributes:
        elapsed: Seconds used of the budget.
        trials: Ended trials.
        failed: Failed ones among them.
        incumbent: The best so far.
        fidelity: Of the last suggestion.
        thinking_share: Share of the recorded time that was spent thinking.
    """

    elapsed: float = 0.0
    trials: int = 0
    failed: int = 0
    incumbent: Incumbent | None = None
    fidelity: dict[str, float | int] | None = None
    thinking_share: float = 0.0


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
    if console.is_terminal or console.is_jupyter:
        with _live(console, budget, elapsed) as report:
            yield report
    else:
        yield from _plain(console, budget)


@contextmanager
def _live(console: "Console", budget: Budget, elapsed: Callable[[], float]) -> Iterator[Report]:
    from rich.live import Live
    from rich.text import Text

    last = Snapshot()
    lock = threading.Lock()

    def render() -> Text:
        # Rich asks from a thread of its own, so that the time goes on while an evaluation runs.
        with lock:
            now = replace(last, elapsed=max(elapsed(), last.elapsed))
            return Text(line(now, budget), overflow="ellipsis", no_wrap=True)

    def report(news: Snapshot) -> None:
        nonlocal last
        with lock:
            last = news

    with Live(console=console, get_renderable=render, refresh_per_second=4):
        yield report


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


def line(news: Snapshot, budget: Budget) -> str:
    """The news in one line: ``1m05s / 30m00s | 23 trials | best 0.03 ± 0.01 | size 1,250 | 9% thinking``."""
    of_time = f" / {duration(budget.seconds)}" if budget.seconds is not None else ""
    of_trials = f" / {budget.trials}" if budget.trials is not None else ""
    failed = f" ({news.failed} failed)" if news.failed else ""
    trials = f"{news.trials}{of_trials} {'trial' if news.trials == 1 and not of_trials else 'trials'}{failed}"
    parts = [f"{duration(news.elapsed)}{of_time}", trials]
    if news.incumbent is None:
        parts.append("no answer yet")
    else:
        parts.append(f"best {news.incumbent.loss:.4g} ± {news.incumbent.std:.2g}")
    if news.fidelity:
        parts.append(", ".join(f"{name} {_number(value)}" for name, value in news.fidelity.items()))
    if news.trials:
        parts.append(f"{news.thinking_share:.0%} thinking")
    return " | ".join(parts)


def duration(seconds: float) -> str:
    """Seconds as people say them: 4.2s, 1m05s, 2h03m."""
    if seconds < 10:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes == 0:
        return f"{rest}s"
    if minutes < 60:
        return f"{minutes}m{rest:02d}s"
    return f"{minutes // 60}h{minutes % 60:02d}m"


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"
