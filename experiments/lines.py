"""Journals: one JSON object a line, so that a killed comparison goes on where it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read(path: Path) -> list[dict[str, Any]]:
    """All whole lines: a last one that a killed writer left torn never was. Who reads does not write."""
    text = path.read_bytes() if path.exists() else b""
    return [json.loads(line) for line in text[: text.rfind(b"\n") + 1].splitlines()]


def append(path: Path, row: dict[str, Any]) -> None:
    """Write a line at once, in the place of a torn one; what JSON does not know is written as its text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        end = file.tell()
        file.seek(max(end - 1, 0))
        if end and file.read(1) != b"\n":
            file.truncate(path.read_bytes().rfind(b"\n") + 1)
        file.write(json.dumps(row, default=str).encode() + b"\n")
