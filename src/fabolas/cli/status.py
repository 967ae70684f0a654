"""``fabolas status``: show how far a study is, from its file alone."""

import argparse
import time
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from fabolas.budget import Budget, Usage
from fabolas.cli.best import incumbent_as_json, incumbent_of
from fabolas.cli.errors import UserError, as_user_error, message
from fabolas.cli.output import show, show_json
from fabolas.display import make_console, rich_text, safe_text
from fabolas.progress import Snapshot
from fabolas.progress.screen import add_row, state_table
from fabolas.progress.text import duration
from fabolas.storage.reader import StudyFile, read
from fabolas.study import LoadedStudy
from fabolas.trials import Incumbent

_REFRESH_SECONDS = 2.0  # of --watch
_LOST_ITS_LOG = (
    "the last trials may be missing: the file was copied during a run, or left by a crash, without its log"
)


def status(options: argparse.Namespace) -> int:
    """Print the state of a study, once or until its run ends."""
    if options.watch:
        _wait_for_start(Path(options.study).expanduser())
    study = _read(options.study)
    if options.json:
        show_json(_as_json(study, time.time()))
    elif options.watch:
        _watch(study)
    else:
        show(_screen(study))
    return 0


def _wait_for_start(path: Path) -> None:
    """Return when the file of the study exists and its first run has started."""
    waiting = False
    while not path.exists() or not _has_started(_read(path)):
        if not path.parent.is_dir():
            raise UserError(f"expected the file of a study, got {path}, whose directory does not exist")
        if not waiting:
            message(f"waiting for a run to start with --storage {path}; Ctrl-C ends the waiting")
        waiting = True
        time.sleep(_REFRESH_SECONDS)


def _has_started(study: StudyFile) -> bool:
    return study.lock_owner is not None or len(study.suggestions) > 0


def _watch(study: StudyFile) -> None:
    with Live(_screen(study), console=make_console(), auto_refresh=False) as live:
        while study.lock_owner is not None:
            time.sleep(_REFRESH_SECONDS)
            study = _read(study.path)
            live.update(_screen(study), refresh=True)


def _read(path: str | Path) -> StudyFile:
    with as_user_error(ValueError):
        return read(path)


def _screen(study: StudyFile) -> RenderableType:
    now = time.time()
    incumbent, why_none = _incumbent(study)
    table = state_table(_snapshot(study, incumbent, now), wrap=True)
    if why_none is not None:
        add_row(table, "note", rich_text(why_none, style="yellow"))
    if study.lost_its_log:
        add_row(table, "note", rich_text(_LOST_ITS_LOG, style="yellow"))
    if study.run_budget is not None and (used := study.usage(now)) is not None:
        add_row(table, "budget", _budget(study.run_budget.budget, used))
    add_row(table, "time", _times(study, now))
    if study.lock_owner is None and study.started_suggestions:
        ids = ", ".join(f"#{s.id}" for s in study.started_suggestions)
        was, them = ("was", "it") if len(study.started_suggestions) == 1 else ("were", "them")
        said = f"{ids} {was} running when the run ended; the next run records {them} as abandoned"
        add_row(table, "stopped", said)
    return Group(_heading(study), table)


def _heading(study: StudyFile) -> Text:
    state = Text("not running", style="dim")
    if study.lock_owner is not None:
        state = Text(f"running in process {study.lock_owner}", style="green")
    strategy = f"strategy {safe_text(study.strategy)}, seed {study.seed}"
    return Text.assemble((safe_text(study.path.name), "bold"), "  ", state, f"  {strategy}")


def _incumbent(study: StudyFile) -> tuple[Incumbent | None, str | None]:
    """Return the answer, and why it cannot be computed; everything else is shown in any case."""
    try:
        return incumbent_of(LoadedStudy(study)), None
    except UserError as error:
        return None, str(error)


def _budget(budget: Budget, used: Usage) -> str:
    """Return the used part of the budget as text: 9.0s of 20s, 78 of 100 trials used."""
    parts = []
    if budget.seconds is not None:
        parts.append(f"{duration(used.seconds)} of {duration(budget.seconds)}")
    if budget.trials is not None:
        parts.append(f"{used.trials} of {budget.trials} trials")
    return f"{', '.join(parts)} used"


def _times(study: StudyFile, now: float) -> str:
    if not study.started:
        return "no trial has started"
    recorded = f"{duration(study.history.elapsed)} recorded"
    known = [started for started in study.started.values() if started > 0]  # salvage does not know them
    if not known:
        return recorded
    ago = now - min(known)
    # The clock may have been set back since then, or belong to another machine.
    first = (
        f"first trial started {duration(ago)} ago" if ago >= 0 else "the clock was set back since the start"
    )
    return f"{recorded}; {first}"


def _snapshot(study: StudyFile, incumbent: Incumbent | None, now: float) -> Snapshot:
    running = study.started_suggestions if study.lock_owner is not None else ()
    return Snapshot.of(
        study.space,
        study.history,
        running,
        {s.id: max(now - study.started[s.id], 0.0) for s in running},
        elapsed=study.history.elapsed,
        study_elapsed=study.history.elapsed,
        overhead=study.overhead,
        incumbent=incumbent,
        sign=1.0 if study.direction == "minimize" else -1.0,
    )


def _as_json(study: StudyFile, now: float) -> dict[str, Any]:
    incumbent, why_none = _incumbent(study)
    snapshot = _snapshot(study, incumbent, now)
    return {
        "running": study.lock_owner is not None,
        "process": study.lock_owner,
        "strategy": study.strategy,
        "seed": study.seed,
        "trials": snapshot.trials,
        "failed": snapshot.failed,
        "abandoned": snapshot.abandoned,
        "at_target": snapshot.at_target,
        "seconds": snapshot.elapsed,
        "budget": _budget_as_json(study, now),
        "overhead_share": snapshot.overhead_share,
        "best": None if incumbent is None else incumbent_as_json(study.trials, incumbent),
        "note": why_none,
        "lost_its_log": study.lost_its_log,
        "running_trials": [
            {"id": t.id, "fidelity": t.fidelity, "seconds": t.seconds, "predicted": t.predicted}
            for t in snapshot.running
        ],
    }


def _budget_as_json(study: StudyFile, now: float) -> dict[str, Any] | None:
    run, used = study.run_budget, study.usage(now)
    if run is None or used is None:
        return None
    return {
        "seconds": run.budget.seconds,
        "seconds_used": used.seconds,
        "trials": run.budget.trials,
        "trials_used": used.trials,
    }
