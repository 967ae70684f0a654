"""The commands `run`, `summary` and `figures` of a live experiment."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from experiments.live import summary
from experiments.live.compare import Job, Journal, Setting, missing, run_all
from experiments.live.search import CLOCKS, METHODS

console = Console()


def parser(
    name: str, text: str, methods: Sequence[str], seconds: float, within: Sequence[float]
) -> argparse.ArgumentParser:
    """The options that all live experiments have."""
    made = argparse.ArgumentParser(
        prog=f"python -m experiments.{name}",
        description=text,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("action", choices=["run", "summary", "figures"])
    made.add_argument(
        "--data", type=Path, metavar="DIR", help="folder of local copies; without, data are fetched"
    )
    made.add_argument("--time-budget", type=float, default=seconds, metavar="SECONDS", help="of each run")
    made.add_argument("--seeds", type=int, default=10, help="number of runs of each method")
    made.add_argument(
        "--strategies",
        type=_methods,
        default=list(methods),
        help=f"of {', '.join(METHODS)}; default {', '.join(methods)}",
    )
    made.add_argument(
        "--clock", choices=list(CLOCKS), default="cpu", help="cpu: time of the process; wall: for a GPU"
    )
    made.add_argument("--processes", type=int, default=1, help="runs at the same time, one thread each")
    journal = Path("experiments/results") / f"{name.rsplit('.', 1)[-1]}.jsonl"
    made.add_argument("--journal", type=Path, default=journal, help="file of the finished runs")
    made.add_argument(
        "--within",
        type=float,
        nargs="+",
        default=list(within),
        help="summary: distances from the best test error",
    )
    made.add_argument("--output", type=Path, help="summary: a Markdown file; figures: a PNG file")
    return made


def _methods(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in METHODS]
    if unknown or not names:
        raise argparse.ArgumentTypeError(f"expected some of {', '.join(METHODS)}, got {text!r}")
    return names


def main(options: argparse.Namespace, setting: Setting, title: str) -> int:
    """Carry out the command."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # for the processes that run: process time would count every thread
    jobs = [
        Job(setting, method, seed, options.time_budget, options.clock)
        for seed in range(options.seeds)
        for method in options.strategies
    ]
    actions: dict[str, Callable[[argparse.Namespace, list[Job], Journal, str], int]]
    actions = {"run": _run, "summary": _show, "figures": _draw}
    return actions[options.action](options, jobs, Journal(options.journal), title)


def _run(options: argparse.Namespace, jobs: list[Job], journal: Journal, title: str) -> int:
    """Run what the journal does not have yet."""
    left = missing(jobs, journal)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(title, total=len(jobs), completed=len(jobs) - len(left))
        for job in run_all(left, journal, options.processes):
            progress.update(task, advance=1, description=f"{title}: {job.method}, seed {job.seed}")
    return 0


def _show(options: argparse.Namespace, jobs: list[Job], journal: Journal, title: str) -> int:
    """Print the summary as a Markdown table."""
    found = journal.of(jobs)
    if not found:
        return _nothing(options)
    best = summary.reference(found, options.time_budget)
    rows = [
        summary.summarise(method, runs, best, options.within, options.time_budget)
        for method, runs in found.items()
    ]
    text = summary.markdown(rows, options.within, options.time_budget)
    print(f"{title}; reference test error {best:.4f}\n\n{text}")
    if options.output:
        options.output.write_text(text)
    return 0


def _draw(options: argparse.Namespace, jobs: list[Job], journal: Journal, title: str) -> int:
    """Write the figure."""
    from experiments.live import figures

    found = journal.of(jobs)
    if not found:
        return _nothing(options)
    name = title.lower().replace(" ", "_").replace(",", "").replace("-", "")
    path = options.output or Path("docs/figures") / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    figures.draw(found, options.time_budget, title).savefig(path, dpi=110)
    print(f"wrote {path}")
    return 0


def _nothing(options: argparse.Namespace) -> int:
    print(f"expected finished runs with these options in {options.journal}, got none; use `run` first")
    return 1
