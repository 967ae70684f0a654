"""``fabolas export``: write the trials of a study to a table."""

import argparse
import csv
import io
import json
import math
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fabolas.cli.best import load_study
from fabolas.cli.errors import UserError
from fabolas.display import counted, error_summary, safe_csv_cell, safe_text
from fabolas.storage import SQLITE_MAGIC
from fabolas.study import LoadedStudy
from fabolas.study.table import columns_of, row_of
from fabolas.trials import Trial


def export(options: argparse.Namespace) -> int:
    """Write one row for each ended trial, in the order in which they ended."""
    target = Path(options.table)
    if target.suffix not in (".csv", ".json"):
        raise UserError(
            f"the table must be a .csv or a .json file, got {target.name}; choose one of the two endings"
        )
    study = load_study(options.study)
    _refuse_to_replace(target, study)
    rows = [_without_nan(_row(trial)) for trial in study.trials]
    table = (
        _as_json(rows) if target.suffix == ".json" else _as_csv(columns_of(study.space, study.trials), rows)
    )
    _write(target, table)
    print(f"{counted(len(rows), 'trial')} written to {safe_text(target)}")
    return 0


def _refuse_to_replace(target: Path, study: LoadedStudy) -> None:
    """Raise UserError if the table would replace a study, another database, or something that is not a file."""
    if target.exists() and not target.is_file():
        raise UserError(
            f"the table must be a file, got {target}, which is something else; choose another file"
        )
    if target.is_file():
        with _os_error_as_user_error(target), target.open("rb") as file:
            is_database = file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC
        if is_database or target.samefile(study.file.path):
            raise UserError(
                f"the table must not replace a database, got {target}, which is one and was left as it is; "
                "choose another file"
            )


def _write(target: Path, table: str) -> None:
    """Replace the file when the new table is complete, so that there is always one complete table."""
    path = target.resolve()  # replace the file that a symbolic link points to, not the link
    draft = path.with_name(f"{path.name}-{secrets.token_hex(4)}")
    with _os_error_as_user_error(target):
        try:
            # Mode "x" fails if the file exists, also as a link.
            with draft.open("x", encoding="utf-8", newline="") as file:
                file.write(table)
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)


@contextmanager
def _os_error_as_user_error(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(f"{target} cannot be written: {error.strerror}; choose another file") from error


def _as_json(rows: list[dict[str, Any]]) -> str:
    return json.dumps(rows, indent=1, allow_nan=False) + "\n"


def _as_csv(columns: list[str], rows: list[dict[str, Any]]) -> str:
    table = io.StringIO(newline="")
    writer = csv.writer(table)
    writer.writerow(map(safe_csv_cell, columns))
    writer.writerows([_csv_cell(row.get(name)) for name in columns] for row in rows)
    return table.getvalue()


def _csv_cell(value: Any) -> Any:
    """Return text and numbers as they are, but never as a formula; dicts and lists as JSON."""
    if isinstance(value, dict | list):
        return json.dumps(value, allow_nan=False)
    return safe_csv_cell(value)


def _without_nan(value: Any) -> Any:
    """Return the value with None for NaN and infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {name: _without_nan(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _row(trial: Trial) -> dict[str, Any]:
    """Return the row of ``to_frame`` with times as text, and with one line of the error."""
    row = row_of(trial)
    times = {name: None if row[name] is None else _utc(row[name]) for name in ("started", "ended")}
    return {**row, **times, "error": error_summary(trial.error) or None}


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
