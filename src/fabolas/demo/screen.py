"""What the demo shows."""

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from fabolas.demo.data import Digits
from fabolas.demo.summary import Bucket, FirstTry, buckets, first_try
from fabolas.demo.svm import SMALLEST, SPACE, Verification
from fabolas.result import Result

_ACCENT = "bold green"
_BAR = 20
_WIDTH = 80
_GRID = 100  # trainings of a 10 x 10 grid


def opening(digits: Digits, budget: str) -> RenderableType:
    """What is about to happen."""
    n, v, t = len(digits.y_train), len(digits.y_valid), len(digits.y_test)
    table = _facts()
    for name, p in SPACE.items():
        table.add_row(name, f"{p.low:g} to {p.high:g}, on a log scale")
    table.add_row("rows", f"{n:,} to train on, {v:,} to validate with, {t:,} to test with")
    table.add_row("budget", f"{budget} of wall-clock time, our own thinking included")
    question = (
        f"Which C and gamma are best on all {n:,} rows? A trial may train on {SMALLEST} of them "
        "or on all: fabolas chooses what to try, and on how many."
    )
    heading = Text("Tune an SVM on handwritten digits (MNIST)\n", style="bold")
    body = Group(heading, table, Text("\n" + question))
    return Panel(body, title="fabolas", border_style="cyan", padding=(1, 2), width=_WIDTH)


def answer(result: Result, verification: Verification, digits: Digits) -> RenderableType:
    """The best configuration, what was promised of it, and what it turned out to be."""
    table = _facts()
    table.add_row("best configuration", Text(_config(result), style=_ACCENT))
    table.add_row("predicted error on all rows", f"{result.predicted_loss:.2%} ± {result.predicted_std:.2%}")
    table.add_row(
        "run on all rows in the search",
        "yes" if result.verified else "no, extrapolated from subsets",
    )
    table.add_section()
    table.add_row("trained on all rows for you", f"{verification.valid_error:.2%}")
    tested = f"{verification.test_error:.2%} of {len(digits.y_test):,} digits never used before"
    table.add_row("on held-out test data", Text(tested, style=_ACCENT))
    return Panel(table, title="The answer", border_style="green", padding=(1, 2), width=_WIDTH)


def price(result: Result, verification: Verification) -> RenderableType:
    """What it cost, in units of one training on all the rows."""
    unit, first = verification.seconds, first_try(result)
    table = _facts()
    table.add_row("one training on all rows", f"{unit:.1f} s")
    table.add_row(
        "the whole search",
        Text(f"{result.elapsed:.0f} s = {_trainings(result.elapsed, unit)}", style=_ACCENT),
    )
    table.add_row("", f"{len(result.trials)} trials, {result.thinking_share:.0%} of the time spent thinking")
    table.add_row("winner first tried", _first(first, unit))
    table.add_row("10 x 10 grid at that price", f"{_GRID * unit / 60:.0f} min = {_GRID} trainings")
    return Panel(table, title="The price", border_style="green", padding=(1, 2), width=_WIDTH)


def sizes(result: Result, digits: Digits) -> RenderableType:
    """How many trials on how many rows, and how long they took."""
    table = Table(box=None, pad_edge=False, padding=(0, 2))
    table.add_column("rows", justify="right")
    table.add_column("trials", justify="right")
    table.add_column("seconds", justify="right")
    table.add_column("share of the training time")
    found = buckets(result.trials, SMALLEST, len(digits.y_train))
    total = max(sum(b.seconds for b in found), 1e-9)
    for bucket in found:
        share = bucket.seconds / total
        bar = Text.assemble(("█" * round(_BAR * share), "cyan"), f" {share:.0%}" if bucket.trials else "")
        table.add_row(_range(bucket), f"{bucket.trials or '-'}", f"{bucket.seconds:.1f}", bar)
    return Panel(table, title="How sizes were spent", border_style="cyan", padding=(1, 2), width=_WIDTH)


def closing(console: Console, result: Result, verification: Verification, digits: Digits) -> None:
    """Print all that there is to say after the search."""
    screens = (answer(result, verification, digits), price(result, verification), sizes(result, digits))
    console.print(Group(*screens))


def _facts() -> Table:
    table = Table.grid(padding=(0, 3))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    return table


def _config(result: Result) -> str:
    return ", ".join(f"{name} = {value:.3g}" for name, value in result.best_config.items())


def _trainings(seconds: float, unit: float) -> str:
    return f"{seconds / unit:.1f} trainings on all the data"


def _first(first: FirstTry, unit: float) -> str:
    return f"after {first.seconds:.1f} s = {first.seconds / unit:.2g} trainings, on {first.size:,} rows"


def _range(bucket: Bucket) -> str:
    return f"{max(bucket.low + 1, SMALLEST):,} - {bucket.high:,}"
