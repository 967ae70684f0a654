"""The state of a run as a few rows for a terminal or a notebook, at any width."""

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from fabolas.budget import Budget
from fabolas.display import rich_text
from fabolas.progress import text
from fabolas.progress.snapshot import RunningTrial, Snapshot

_MAX_RUNNING = 4  # rows of running trials; further ones are only counted
_LABEL_WIDTH = 10  # characters, with the space after the label
_CTRL_C_WIDTH = len("^C^C^C")


def screen(snapshot: Snapshot, budget: Budget) -> RenderableType:
    """Return what is shown during a run: one row per fact, cut at the right if it is too long."""
    return _WithRoomForCtrlC(Group(_budget_bar(snapshot, budget), state_table(snapshot, limit=budget.trials)))


def state_table(snapshot: Snapshot, *, limit: int | None = None, wrap: bool = False) -> Table:
    """Return the rows: trials, overhead, best configuration, fidelities, running trials, last failure.

    Args:
        snapshot: The state of the run.
        limit: Number of trials that the budget allows.
        wrap: Whether a long row continues in the next line; otherwise it is cut.
    """
    table = _grid(wrap=wrap)
    add_row(table, "trials", text.trial_counts(snapshot, limit))
    if snapshot.trials:
        add_row(table, "overhead", text.overhead(snapshot))
    if snapshot.incumbent is None:
        add_row(table, "best", Text("no answer yet", style="dim"))
    else:
        loss = text.loss(snapshot.incumbent, snapshot.measured)
        how = text.what_is_known(snapshot.incumbent)
        style = "bold" if snapshot.incumbent.preliminary else "bold green"
        add_row(table, "best", Text.assemble((loss, style), f", {how}"))
        so_far = "so far " if snapshot.incumbent.preliminary else ""
        add_row(table, "", f"{so_far}{text.configuration(snapshot.incumbent.config)}")
    for i, fidelity in enumerate(snapshot.fidelity_counts):
        at_target = f"  {snapshot.at_target} at the target" if i == 0 else ""
        add_row(table, fidelity.name, Text.assemble((text.bars(fidelity), "cyan"), at_target))
    for i, trial in enumerate(snapshot.running[:_MAX_RUNNING]):
        add_row(table, "running" if i == 0 else "", _running(trial))
    if len(snapshot.running) > _MAX_RUNNING:
        add_row(table, "", Text(f"and {len(snapshot.running) - _MAX_RUNNING} more", style="dim"))
    if snapshot.failure is not None:
        trial_id, error = snapshot.failure
        add_row(table, "failed", rich_text(f"#{trial_id} {error}", style="red"))
    if snapshot.notice is not None:
        add_row(table, "note", rich_text(snapshot.notice, style="yellow"))
    return table


def add_row(table: Table, label: str, content: str | Text) -> None:
    """Add a row. Strings are shown as they are: rich does not interpret them."""
    table.add_row(rich_text(label), content if isinstance(content, Text) else rich_text(content))


@dataclass(frozen=True)
class _WithRoomForCtrlC:
    """Leaves room at the right for the ^C that a terminal writes, which must not start a new line."""

    content: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from console.render(self.content, options.update_width(options.max_width - _CTRL_C_WIDTH))


def _budget_bar(snapshot: Snapshot, budget: Budget) -> Table:
    """Return a bar that is full when the first limit of the budget is reached, and the time beside it."""
    used = [0.0]
    times = text.duration(snapshot.elapsed)
    if budget.seconds is not None:
        used.append(snapshot.elapsed / budget.seconds)
        left = budget.seconds - snapshot.elapsed
        times += f" / {text.duration(budget.seconds)}, "
        times += f"{text.duration(left)} left" if left > 0 else "time is up"
    if budget.trials is not None:
        used.append(snapshot.budget_trials / budget.trials)
    row = Table.grid(padding=(0, 2), expand=True)
    row.add_column(width=_LABEL_WIDTH - 2, no_wrap=True)
    row.add_column(ratio=1)
    row.add_column(no_wrap=True)
    bar = ProgressBar(total=1.0, completed=min(max(used), 1.0), complete_style="cyan", finished_style="green")
    row.add_row(Text("fabolas", style="bold"), bar, Text(times))
    return row


def _running(trial: RunningTrial) -> str:
    expected = f" of about {text.duration(trial.predicted)}" if trial.predicted is not None else ""
    where = f"{text.fidelities(trial.fidelity)}, " if trial.fidelity else ""
    return f"#{trial.id} {where}for {text.duration(trial.seconds)}{expected}"


def _grid(*, wrap: bool) -> Table:
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(style="dim", width=_LABEL_WIDTH - 1, no_wrap=True, overflow="ellipsis")
    # ratio=1 gives this column the rest of the width, so that this column is the one that is cut.
    table.add_column(ratio=1, no_wrap=not wrap, overflow="fold" if wrap else "ellipsis")
    return table
