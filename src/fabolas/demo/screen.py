"""The screens of the demo."""

import math

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from fabolas.api import Result
from fabolas.demo.data import Digits
from fabolas.demo.summary import (
    TOLERANCE,
    Bucket,
    RandomSearch,
    buckets,
    early_answer,
    random_search,
)
from fabolas.demo.svm import MIN_SIZE, SPACE, TrueErrors

_ACCENT = "bold green"
_BAR_WIDTH = 20
_WIDTH = 80
_GRID_TRAININGS = 100  # of a 10 x 10 grid search


def opening(digits: Digits, budget: str) -> RenderableType:
    """Return the screen that says what the demo does."""
    n, v, t = len(digits.y_train), len(digits.y_valid), len(digits.y_test)
    table = _two_columns()
    for name, parameter in SPACE.items():
        table.add_row(name, f"{parameter.low:g} to {parameter.high:g}, on a log scale")
    table.add_row("rows", f"{n:,} for training, {v:,} for validation, {t:,} for the test")
    table.add_row("budget", f"{budget} of wall-clock time, everything included")
    question = (
        f"Which C and gamma are best on all {n:,} rows? A trial may use any number of rows from {MIN_SIZE} on: "
        "fabolas chooses the configuration and the number of rows."
    )
    heading = Text("Tune an SVM on handwritten digits (MNIST)\n", style="bold")
    body = Group(heading, table, Text("\n" + question))
    return Panel(body, title="fabolas", border_style="cyan", padding=(1, 2), width=_WIDTH)


def answer(result: Result, full_training: TrueErrors, digits: Digits) -> RenderableType:
    """Return the screen with the best configuration, its predicted error, and its true errors."""
    table = _two_columns()
    table.add_row("best configuration", Text(_config(result), style=_ACCENT))
    incumbent = result.incumbent()
    predicted = f"{result.predicted_loss:.2%} ± {result.predicted_std:.2%}"
    if incumbent is not None and incumbent.preliminary:
        predicted = "none: too early to predict the error on all rows"
    table.add_row("predicted error", predicted)
    table.add_row(
        "evaluated on all rows",
        "yes, during the search" if result.verified else "not during the search: predicted from subsets",
    )
    table.add_section()
    table.add_row("validation error", f"{full_training.valid_error:.2%}, now trained on all rows")
    tested = f"{full_training.test_error:.2%}, on {len(digits.y_test):,} digits never used before"
    table.add_row("test error", Text(tested, style=_ACCENT))
    return Panel(table, title="The answer", border_style="green", padding=(1, 2), width=_WIDTH)


def cost(result: Result, full_training: TrueErrors) -> RenderableType:
    """Return the screen with the cost of the search, in units of one full training."""
    seconds = full_training.seconds
    table = _two_columns()
    table.add_row("one full training", f"{seconds:.1f} s, on all rows")
    early = early_answer(result)
    found = f"after {early.seconds:.1f} s = {early.seconds / seconds:.2g} full trainings"
    table.add_row("good answer", Text(found, style=_ACCENT))
    table.add_row("", f"at most {early.size:,} rows; within {TOLERANCE:.1%} of the final one")
    table.add_row("whole search", f"{result.elapsed:.0f} s = {result.elapsed / seconds:.1f} full trainings")
    overhead = f"{result.overhead_share:.0%} of the time for choosing them"
    table.add_row("", f"{len(result.trials)} trials, {overhead}")
    table.add_section()
    table.add_row("random search", _random(random_search(result), seconds))
    grid = f"{_GRID_TRAININGS * seconds / 60:.0f} min = {_GRID_TRAININGS} full trainings"
    table.add_row("10 x 10 grid search", f"about {grid}")
    return Panel(table, title="The cost", border_style="green", padding=(1, 2), width=_WIDTH)


def sizes(result: Result, digits: Digits) -> RenderableType:
    """Return the screen with the number of trials and their time by number of rows."""
    table = Table(box=None, pad_edge=False, padding=(0, 2))
    table.add_column("rows", justify="right")
    table.add_column("trials", justify="right")
    table.add_column("seconds", justify="right")
    table.add_column("share of the training time")
    found = buckets(result.trials, MIN_SIZE, len(digits.y_train))
    total = max(sum(b.seconds for b in found), 1e-9)
    for bucket in found:
        share = bucket.seconds / total
        percent = f" {share:.0%}" if bucket.trials else ""
        bar = Text.assemble(("█" * round(_BAR_WIDTH * share), "cyan"), percent)
        table.add_row(_range(bucket), f"{bucket.trials or '-'}", f"{bucket.seconds:.1f}", bar)
    title = "How many rows the trials used"
    return Panel(table, title=title, border_style="cyan", padding=(1, 2), width=_WIDTH)


def conclusion(result: Result, full_training: TrueErrors) -> RenderableType:
    """Return the message of the demo in one sentence."""
    early, search = early_answer(result).seconds, random_search(result).seconds
    found = f"fabolas had a good answer after {early / full_training.seconds:.2g} full trainings."
    if math.isfinite(search):
        found += f"\nA random search on all rows needs about {search / full_training.seconds:.0f}."
    return Text(f"\n{found}\n", style=_ACCENT)


def closing(console: Console, result: Result, full_training: TrueErrors, digits: Digits) -> None:
    """Print the screens after the search."""
    screens = (answer(result, full_training, digits), cost(result, full_training), sizes(result, digits))
    console.print(Group(*screens, conclusion(result, full_training)))


def _two_columns() -> Table:
    table = Table.grid(padding=(0, 3))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    return table


def _config(result: Result) -> str:
    return ", ".join(f"{name} = {value:.3g}" for name, value in result.best_config.items())


def _random(search: RandomSearch, full_training: float) -> str:
    if math.isinf(search.trials):
        return "none of 2,048 random configurations is predicted to be as good"
    trainings = f"{search.seconds / full_training:.0f} full trainings"
    return f"about {search.seconds / 60:.0f} min = {trainings}: 1 in {search.trials:.0f} is good"


def _range(bucket: Bucket) -> str:
    return f"{max(bucket.low + 1, MIN_SIZE):,} - {bucket.high:,}"
