"""The first experiment of the paper (section 4.1, figures 1 and 2) on the committed tables.

    python -m experiments.svm_grid run --strategies fabolas,mtbo,es,ei,hyperband,random --seeds 10 --processes 2
    python -m experiments.svm_grid summary
    python -m experiments.svm_grid figures

A run is simulated: a trial costs what the table says, plus the measured overhead of the strategy. Finished runs are
kept, so a stopped comparison continues where it was; runs that ended at a lower `--max-trials` are repeated.
`--cost-scale 100` gives trainings of minutes to an hour, as in the paper. `summary` and `figures` show the finished
runs of the same settings.
"""

from __future__ import annotations

import os

# One thread a process: the arrays are small, and the processes share the cores.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402

from rich.console import Console  # noqa: E402
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: E402

from experiments.svm_grid import summary  # noqa: E402
from experiments.svm_grid.compare import COMPARED, JOURNAL, METHODS, Journal, Setting, compare  # noqa: E402

console = Console()


def run(options: argparse.Namespace, setting: Setting, journal: Journal) -> None:
    """Simulate what the journal does not have yet."""
    total, finished = compare(setting, options.strategies, options.seeds, journal, options.processes)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(setting.problem.name, total=total)
        for job in finished:
            progress.update(
                task, advance=1, description=f"{setting.problem.name} {job.method} seed {job.seed}"
            )


def show(options: argparse.Namespace, setting: Setting, journal: Journal) -> None:
    """Print the summary table, and write it as Markdown where `--output` says."""
    problem = setting.problem
    checkpoints = tuple(c for c in options.at if c <= setting.budget)
    found = {
        method: list(journal.of(setting, method, options.seeds).values()) for method in options.strategies
    }
    rows = [summary.summarise(method, runs, problem, checkpoints) for method, runs in found.items() if runs]
    title = (
        f"{problem.name}: time until the incumbent stays within a distance of the best error {problem.best:.4f}, "
        f"in full trainings of {problem.full_cost:.3g} s\n(median over seeds; runs that got there; "
        "× times FABOLAS's time), and regret after so many full trainings\n(* of runs of which some had ended "
        "before, at the limit of trials)"
    )
    Console(width=max(console.width, 130)).print(summary.table(rows, title, checkpoints))
    text = summary.markdown(rows, checkpoints)
    ours = found.get("fabolas")
    if ours and checkpoints:
        leads = [
            summary.lead(method, runs, ours, problem, checkpoints)
            for method, runs in found.items()
            if runs and method != "fabolas"
        ]
        differences = summary.leads_markdown(leads, checkpoints)
        console.print(
            f"\nMedian regret minus FABOLAS's, with 95 % intervals from drawing runs anew:\n{differences}"
        )
        text += "\n" + differences
    if options.output:
        options.output.write_text(text)


def draw(options: argparse.Namespace, setting: Setting, journal: Journal) -> None:
    """Draw the figures that there are runs for."""
    from experiments.svm_grid import figures

    found = {method: list(journal.of(setting, method, options.seeds).values()) for method in METHODS}
    runs = {method: of_method for method, of_method in found.items() if of_method}
    for path in figures.draw(setting.problem, runs, setting.budget, options.output or Path("docs/figures")):
        console.print(f"wrote {path}")


def _methods(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in METHODS]
    if unknown or not names:
        raise argparse.ArgumentTypeError(f"expected some of {', '.join(METHODS)}, got {text!r}")
    return names


def main(arguments: list[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.svm_grid",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("action", choices=["run", "summary", "figures"])
    parser.add_argument(
        "--strategies", type=_methods, default=list(COMPARED), help=f"of {', '.join(METHODS)}"
    )
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--data", default="mnist", help="mnist, covtype or the path of a packed table (.npz)")
    parser.add_argument("--largest", type=int, help="tabulated size to take as the target")
    parser.add_argument("--cost-scale", type=float, default=1.0, help="1 as measured, 100 as in the paper")
    parser.add_argument(
        "--budget", type=float, default=40.0, help="in full trainings of the best configuration"
    )
    parser.add_argument(
        "--max-trials", type=int, default=400, help="where a model-based run ends in any case"
    )
    parser.add_argument(
        "--overhead", type=float, help="seconds a suggestion counts for instead of the measured ones"
    )
    parser.add_argument(
        "--at",
        type=float,
        nargs="+",
        default=summary.CHECKPOINTS,
        metavar="T",
        help="summary: full trainings after which to show the regret",
    )
    parser.add_argument("--journal", type=Path, default=JOURNAL, help="file of the finished runs")
    parser.add_argument("--output", type=Path, help="summary: a Markdown file; figures: a folder")
    options = parser.parse_args(arguments)
    setting = Setting(
        options.data,
        options.cost_scale,
        options.largest,
        options.budget,
        options.max_trials,
        options.overhead,
    )
    {"run": run, "summary": show, "figures": draw}[options.action](options, setting, Journal(options.journal))
    return 0


if __name__ == "__main__":
    sys.exit(main())
