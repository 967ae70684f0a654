"""What the commands print. User text goes through ``fabolas.display``."""

import json
from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fabolas.direction import loss_or_value
from fabolas.display import make_console, rich_text
from fabolas.plus_minus import beside
from fabolas.progress import text
from fabolas.study import StudyView
from fabolas.trials import Incumbent, Trial

_MAX_NAME_WIDTH = 40  # of a hyperparameter; longer names continue in the next line
_VERIFIED = {  # verified, preliminary
    (True, False): "yes, evaluated at the target",
    (False, False): "no, predicted from trials below the target",
    (False, True): "no, and it is too early to predict the target",
}
_MAX_TRIALS = 8  # trials of the best configuration that are listed


def show(content: RenderableType) -> None:
    """Print on standard output; without trailing spaces if it is not a terminal."""
    console = make_console()
    if console.is_terminal:
        console.print(content)
        return
    with console.capture() as captured:
        console.print(content)
    # Rich fills each line of a table with spaces.
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def show_json(content: Any) -> None:
    """Print JSON on standard output, in printable ASCII."""
    print(json.dumps(content, indent=2).replace("\x7f", "\\u007f"))


def answer(incumbent: Incumbent, study: StudyView) -> RenderableType:
    """Return the best configuration with all digits, its predicted loss, and its trials."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", max_width=_MAX_NAME_WIDTH, overflow="fold")
    table.add_column(overflow="fold")
    for name, value in incumbent.config.items():
        table.add_row(rich_text(name), rich_text(value, style="bold"))
    table.add_row()
    what = loss_or_value(study.direction)
    loss = text.loss(incumbent, study.history.best_measurement(study.sign))
    table.add_row(
        f"{what} so far" if incumbent.preliminary else f"predicted {what}", Text(loss, style="bold green")
    )
    table.add_row("verified", _VERIFIED[incumbent.verified, incumbent.preliminary])
    return Group(table, Text(), _trials_of(incumbent, study.trials, what))


def _trials_of(incumbent: Incumbent, trials: Sequence[Trial], what: str) -> Table:
    """Return the trials of the best configuration; only the last ones if there are many."""
    by_id = {trial.id: trial for trial in trials}
    own = [by_id[trial_id] for trial_id in incumbent.trial_ids]
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    fidelities = list(own[0].fidelity)
    for name in ("trial", *fidelities, what, "seconds"):
        table.add_column(rich_text(name), justify="right")
    for trial in own[-_MAX_TRIALS:]:
        values = (text.number(trial.fidelity[name]) for name in fidelities)
        loss = "" if trial.loss is None else beside(trial.loss, incumbent.std)
        table.add_row(f"#{trial.id}", *values, loss, f"{trial.cost:.3g}")
    if len(own) > _MAX_TRIALS:
        table.caption, table.caption_justify = f"and {len(own) - _MAX_TRIALS} earlier ones", "left"
    return table
