"""``fabolas export``: the trials of a study's file as a table."""

import argparse
import csv
import io
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fabolas.cli.errors import UserError, told
from fabolas.history import Trial
from fabolas.progress.snapshot import last_line
from fabolas.reader import StudyFile, read
from fabolas.result import row_of
from fabolas.storage import SQLITE


def export(options: argparse.Namespace) -> int:
    """Write a row for every ended trial, in order of ending."""
    target = Path(options.table)
    if target.suffix not in (".csv", ".json"):
        raise UserError(f"the table must be a .csv or a .json file, got {target.name}; choose one of them")
    with told(ValueError):
        study = read(options.study)
    _refuse_a_database(target, study)
    rows = [_finite(_row(study, trial)) for trial in study.trials]
    table = _as_json(rows) if target.suffix == ".json" else _as_csv(_columns(study), rows)
    _write(target, table)
    print(f"{len(rows)} {'trial' if len(rows) == 1 else 'trials'} written to {target}")
    return 0


def _refuse_a_database(target: Path, study: StudyFile) -> None:
    """A table may take the place of a table, never of a study: this one, or any other."""
    if target.is_file():
        with _writable(target), target.open("rb") as file:
            is_database = file.read(len(SQLITE)) == SQLITE
        if is_database or target.samefile(study.path):
            raise UserError(
                f"the table must be a file of its own, got {target}, which is a database and was left as it is; "
                "choose another file"
            )


def _write(target: Path, table: str) -> None:
    """The whole table or nothing: what was there stays until the new one is complete."""
    place = target.resolve()  # a link stays one
    draft = place.with_name(place.name + "-fabolas-new")
    with _writable(target):
        try:
            draft.write_text(table, encoding="utf-8", newline="")
            draft.replace(place)
        finally:
            draft.unlink(missing_ok=True)


@contextmanager
def _writable(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(f"{target} cannot be written: {error.strerror}; choose another file") from error


def _as_json(rows: list[dict[str, Any]]) -> str:
    return json.dumps(rows, indent=1, allow_nan=False) + "\n"


def _as_csv(columns: list[str], rows: list[dict[str, Any]]) -> str:
    table = io.StringIO(newline="")
    writer = csv.DictWriter(table, columns)
    writer.writeheader()
    # Text stays text; what has parts is written as JSON.
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return table.getvalue()


def _cell(value: Any) -> Any:
    return json.dumps(value, allow_nan=False) if isinstance(value, dict | list) else value


def _finite(value: Any) -> Any:
    """The value with null for a number that JSON does not have: NaN and the infinities."""
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _row(study: StudyFile, trial: Trial) -> dict[str, Any]:
    """The names are those of ``Result.to_frame``, and two more; the error is its last line and comes last."""
    row, started = row_of(trial), study.started.get(trial.id)
    del row["error"]
    return {
        **row,
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
