"""The answer of a study as people read it."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fabolas.history import Incumbent, Trial
from fabolas.progress import text

_MOST = 8  # trials of the answer to list


def answer(incumbent: Incumbent, trials: Sequence[Trial]) -> RenderableType:
    """The configuration with all its digits, what is predicted of it, and the trials behind that."""
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, value in incumbent.config.items():
        facts.add_row(name, Text(str(value), style="bold"))
    facts.add_row()
    facts.add_row("predicted loss", Text(text.loss(incumbent), style="bold green"))
    how = "yes" if incumbent.verified else "no, predicted from trials below the target"
    facts.add_row("run at the target", how)
    return Group(facts, Text(), _behind(incumbent, trials))


def _behind(incumbent: Incumbent, trials: Sequence[Trial]) -> Table:
    """The trials of the answer's configuration, the last ones if they are many."""
    known = {trial.id: trial for trial in trials}
    own = [known[number] for number in incumbent.trial_ids]
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    fidelities = list(own[0].fidelity)
    for name in ("trial", *fidelities, "loss", "seconds"):
        table.add_column(name, justify="right")
    for trial in own[-_MOST:]:
        sizes = (text.number(trial.fidelity[name]) for name in fidelities)
        table.add_row(f"#{trial.id}", *sizes, f"{trial.loss:.4g}", f"{trial.cost:.3g}")
    if len(own) > _MOST:
        table.caption, table.caption_justify = f"and {len(own) - _MOST} earlier ones", "left"
    return table
