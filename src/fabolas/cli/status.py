"""``fabolas status``: how a study is going, by its file alone."""

import argparse
import json
import time
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from fabolas.budget import Allowance
from fabolas.cli.best import answer_of, as_json
from fabolas.cli.errors import UserError, told
from fabolas.cli.output import show
from fabolas.history import Incumbent
from fabolas.progress import Snapshot
from fabolas.progress.screen import facts
from fabolas.progress.text import duration
from fabolas.reader import StudyFile, read

_REFRESH = 2.0  # seconds between two looks of --watch


def status(options: argparse.Namespace) -> int:
    """Print the state of the study, once or until its run ends."""
    study = _read(options.study)
    if options.json:
        print(json.dumps(_as_json(study, time.time()), indent=2))
        return 0
    if options.watch:
        _watch(options.study)
    else:
        show(_screen(study))
    return 0


def _watch(path: str) -> None:
    study = _read(path)
    console = Console(highlight=False)
    with Live(_screen(study), console=console, auto_refresh=False) as live:
        while study.holder is not None:
            time.sleep(_REFRESH)
            study = _read(path)
            live.update(_screen(study), refresh=True)


def _read(path: str) -> StudyFile:
    with told(ValueError):
        return read(path)


def _screen(study: StudyFile) -> RenderableType:
    now = time.time()
    state = ("not running", "dim") if study.holder is None else (f"running, process {study.holder}", "green")
    head = Text.assemble((study.path.name, "bold"), "  ", state, f"  {study.strategy}, seed {study.seed}")
    incumbent, why = _answer(study)
    table = facts(_snapshot(study, incumbent, now), wrap=True)
    if why is not None:
        table.add_row("note", Text(why, style="yellow"))
    if study.allowance is not None:
        table.add_row("budget", _budget(study, study.allowance, now))
    table.add_row("time", _times(study, now))
    if study.holder is None and study.begun:
        numbers = ", ".join(f"#{s.id}" for s in study.begun)
        what = "it" if len(study.begun) == 1 else "them"
        table.add_row("left", f"{numbers} under way when the run ended; the next run records {what} as lost")
    return Group(head, table)


def _answer(study: StudyFile) -> tuple[Incumbent | None, str | None]:
    """The answer, or why it cannot be had; the rest is worth seeing all the same."""
    try:
        return answer_of(study), None
    except UserError as error:
        return None, str(error)


def _used(study: StudyFile, allowance: Allowance, now: float) -> tuple[float, int]:
    return allowance.used(study.history.elapsed, len(study.trials), now if study.holder is not None else None)


def _budget(study: StudyFile, allowance: Allowance, now: float) -> str:
    """9.0s of 20s, 78 of 100 trials."""
    seconds, trials = _used(study, allowance, now)
    budget, said = allowance.budget, []
    if budget.seconds is not None:
        said.append(f"{duration(seconds)} of {duration(budget.seconds)}")
    if budget.trials is not None:
        said.append(f"{trials} of {budget.trials} trials")
    return f"{', '.join(said)} used"


def _times(study: StudyFile, now: float) -> str:
    if not study.started:
        return "nothing has begun"
    recorded = duration(study.history.elapsed)
    return f"{recorded} recorded; first trial {duration(now - min(study.started.values()))} ago"


def _snapshot(study: StudyFile, incumbent: Incumbent | None, now: float) -> Snapshot:
    running = study.begun if study.holder is not None else ()
    return Snapshot.of(
        study.space,
        study.history,
        running,
        {s.id: max(now - study.started[s.id], 0.0) for s in running},
        elapsed=study.history.elapsed,
        thinking=study.thinking,
        incumbent=incumbent,
    )


def _budget_as_json(study: StudyFile, allowance: Allowance, now: float) -> dict[str, Any]:
    seconds, trials = _used(study, allowance, now)
    whole = allowance.budget
    return {
        "seconds": whole.seconds,
        "seconds_used": seconds,
        "trials": whole.trials,
        "trials_used": trials,
    }


def _as_json(study: StudyFile, now: float) -> dict[str, Any]:
    incumbent, why = _answer(study)
    news = _snapshot(study, incumbent, now)
    return {
        "running": study.holder is not None,
        "process": study.holder,
        "strategy": study.strategy,
        "seed": study.seed,
        "trials": news.trials,
        "failed": news.failed,
        "lost": news.lost,
        "at_target": news.at_target,
        "seconds": news.elapsed,
        "budget": None if study.allowance is None else _budget_as_json(study, study.allowance, now),
        "thinking_share": news.thinking_share,
        "best": None if incumbent is None else as_json(study, incumbent),
        "note": why,
        "running_trials": [
            {"id": t.id, "fidelity": t.fidelity, "seconds": t.seconds, "predicted": t.predicted}
            for t in news.running
        ],
    }
