"""``fabolas export``: the trials of a study's file as a table."""

import argparse
import csv
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fabolas.cli.errors import UserError, told
from fabolas.history import Trial
from fabolas.progress.snapshot import last_line
from fabolas.reader import StudyFile, read


def export(options: argparse.Namespace) -> int:
    """Write a row for every ended trial, in order of ending."""
    target = Path(options.table)
    if target.suffix not in (".csv", ".json"):
        raise UserError(f"the table must be a .csv or a .json file, got {target.name}; choose one of them")
    with told(ValueError):
        study = read(options.study)
    rows = [_row(study, trial) for trial in study.trials]
    try:
        if target.suffix == ".json":
            target.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        else:
            _write_csv(target, _columns(study), rows)
    except OSError as error:
        raise UserError(f"{target} cannot be written: {error.strerror}; choose another file") from error
    print(f"{len(rows)} {'trial' if len(rows) == 1 else 'trials'} written to {target}")
    return 0


def _write_csv(target: Path, columns: list[str], rows: list[dict[str, Any]]) -> None:
    with target.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        # Text stays text; what has parts is written as JSON.
        writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list) else value


def _row(study: StudyFile, trial: Trial) -> dict[str, Any]:
    """The names are those of ``Result.to_frame``; an inactive hyperparameter has no value."""
    s = trial.suggestion
    started = study.started.get(s.id)
    return {
        "id": s.id,
        "status": trial.status,
        "loss": trial.loss,
        "cost": trial.cost,
        **{f"fidelity_{name}": value for name, value in s.fidelity.items()},
        **{f"config_{name}": value for name, value in s.config.items()},
        "thinking": s.thinking,
        "effort": s.effort,
        "predicted_cost": s.predicted_cost,
        "origin": s.origin,
        "started": None if started is None else _utc(started),
        "info": trial.info,
        "error": last_line(trial.error) or None,
    }


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def _columns(study: StudyFile) -> list[str]:
    space = study.space.describe()
    return [
        *("id", "status", "loss", "cost"),
        *(f"fidelity_{entry['name']}" for entry in space["fidelities"]),
        *(f"config_{entry['name']}" for entry in space["parameters"]),
        *("thinking", "effort", "predicted_cost", "origin", "started", "info", "error"),
    ]
