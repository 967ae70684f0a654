"""The facts as a few rows of text for a terminal or a notebook, at any width."""

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from fabolas.budget import Budget
from fabolas.progress import text
from fabolas.progress.snapshot import Running, Snapshot

_MOST_RUNNING = 4  # rows; more are counted
_LABEL = 10  # columns, with the space after it


def screen(news: Snapshot, budget: Budget) -> RenderableType:
    """All that there is to see during a run, a row for each fact; what does not fit is cut, never wrapped."""
    return _Narrower(Group(_budget(news, budget), facts(news, of=budget.trials)))


def facts(news: Snapshot, *, of: int | None = None, wrap: bool = False) -> Table:
    """The rows: trials, answer, sizes, what is running, what failed last.

    Args:
        news: The facts.
        of: The number of trials that the budget allows.
        wrap: Whether a row may go on in the next line; else it is cut.
    """
    table = _grid(wrap=wrap)
    table.add_row("trials", text.counts(news, of))
    if news.incumbent is None:
        table.add_row("best", Text("no answer yet", style="dim"))
    else:
        how = text.verified(news.incumbent)
        table.add_row("best", Text.assemble((text.loss(news.incumbent), "bold green"), f", {how}"))
        table.add_row("", text.configuration(news.incumbent.config))
    for i, sizes in enumerate(news.sizes):
        target = f"  {news.at_target} at the target" if i == 0 else ""
        table.add_row(sizes.name, Text.assemble((text.bars(sizes), "cyan"), target))
    for i, trial in enumerate(news.running[:_MOST_RUNNING]):
        table.add_row("running" if i == 0 else "", _running(trial))
    if len(news.running) > _MOST_RUNNING:
        table.add_row("", Text(f"and {len(news.running) - _MOST_RUNNING} more", style="dim"))
    if news.failure is not None:
        trial_id, error = news.failure
        table.add_row("failure", Text(f"#{trial_id} {error}", style="red"))
    if news.notice is not None:
        table.add_row("note", Text(news.notice, style="yellow"))
    return table


@dataclass(frozen=True)
class _Narrower:
    """Leaves room at the right: where a terminal writes its ^C it must not begin a new line."""

    content: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from console.render(self.content, options.update_width(options.max_width - len("^C^C^C")))


def _budget(news: Snapshot, budget: Budget) -> Table:
    """A bar that is full when the first of the limits is reached, and the time."""
    shares = [0.0]
    said = text.duration(news.elapsed)
    if budget.seconds is not None:
        shares.append(news.elapsed / budget.seconds)
        left = budget.seconds - news.elapsed
        rest = f"{text.duration(left)} left" if left > 0 else "time is up"
        said = f"{said} / {text.duration(budget.seconds)}, {rest}"
    if budget.trials is not None:
        shares.append(news.trials / budget.trials)
    row = Table.grid(padding=(0, 2), expand=True)
    row.add_column(width=_LABEL - 2, no_wrap=True)
    row.add_column(ratio=1)
    row.add_column(no_wrap=True)
    bar = ProgressBar(
        total=1.0, completed=min(max(shares), 1.0), complete_style="cyan", finished_style="green"
    )
    row.add_row(Text("fabolas", style="bold"), bar, said)
    return row


def _running(trial: Running) -> str:
    expected = f" of about {text.duration(trial.predicted)}" if trial.predicted is not None else ""
    where = f"{text.fidelities(trial.fidelity)}, " if trial.fidelity else ""
    return f"#{trial.id} {where}for {text.duration(trial.seconds)}{expected}"


def _grid(*, wrap: bool) -> Table:
    # The second column takes the rest, so that it is the one that gives way.
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(style="dim", width=_LABEL - 1, no_wrap=True, overflow="ellipsis")
    table.add_column(ratio=1, no_wrap=not wrap, overflow="fold" if wrap else "ellipsis")
    return table
