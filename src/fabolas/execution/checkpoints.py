"""Checkpoints of trainings: whether one is complete, and which are kept.

A training has a directory for its checkpoint. When a trial has ended well, the worker writes a manifest beside it: the
value that was reached, and size and checksum of every file. Before a training is continued, the worker compares the
files with the manifest. If anything is missing or differs, the training starts from scratch.
"""

import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

_CHUNK_BYTES = 1 << 20


def manifest_path(directory: Path) -> Path:
    """Where the manifest of a checkpoint is."""
    return directory.with_name(directory.name + ".json")


def write_manifest(directory: Path, value: float) -> None:
    """Record the files of a checkpoint that has reached this value; without files there is no checkpoint."""
    files = _contents(directory)
    path = manifest_path(directory)
    path.unlink(missing_ok=True)
    if files:
        draft = path.with_name(path.name + "-draft")
        draft.write_text(json.dumps({"value": value, "files": files}))
        draft.replace(path)


def read_manifest(directory: Path) -> dict[str, Any] | None:
    """The manifest of a checkpoint; None if there is none that can be read."""
    try:
        manifest = json.loads(manifest_path(directory).read_text())
        return manifest if {"value", "files"} <= manifest.keys() else None
    except (OSError, ValueError, AttributeError):
        return None


def damage(directory: Path, value: float) -> str:
    """Why a training cannot be continued from this checkpoint, as the end of a sentence; empty if it can be."""
    manifest = read_manifest(directory)
    if manifest is None:
        return "its checkpoint is missing"
    if manifest["value"] != value:
        return f"its checkpoint is at {manifest['value']} instead of {value}"
    try:
        found = _contents(directory)
    except OSError as error:
        return f"its checkpoint cannot be read ({error})"
    differing = sorted(
        {*found, *manifest["files"]} - {n for n in found if found[n] == manifest["files"].get(n)}
    )
    return f"its checkpoint is damaged ({', '.join(differing[:3])})" if differing else ""


def remove(directory: Path) -> None:
    """Delete a checkpoint and its manifest. What cannot be deleted stays."""
    manifest_path(directory).unlink(missing_ok=True)
    shutil.rmtree(directory, ignore_errors=True)


def size(directory: Path) -> int:
    """Bytes of a checkpoint, by its manifest."""
    manifest = read_manifest(directory)
    return 0 if manifest is None else sum(int(entry[0]) for entry in manifest["files"].values())


def _contents(directory: Path) -> dict[str, list[int]]:
    """Name -> size and checksum of every file."""
    if not directory.is_dir():
        return {}
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): _fingerprint(path) for path in files}


def _fingerprint(path: Path) -> list[int]:
    checksum, length = 0, 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            checksum, length = crc32(chunk, checksum), length + len(chunk)
    return [length, checksum]


@dataclass(frozen=True)
class CheckpointLimits:
    """How many checkpoints a run keeps.

    Attributes:
        count: The largest number of checkpoints.
        bytes: The largest size of all together.
        keep: Whether they stay when the run ends.
    """

    count: int = 20
    bytes: int = 10_000_000_000
    keep: bool = False


DEFAULT_CHECKPOINT_LIMITS = CheckpointLimits()


class CheckpointDirectory:
    """The checkpoints of a run: one directory per training.

    Args:
        path: The directory that holds them.
        limits: How many are kept.
    """

    def __init__(self, path: Path, limits: CheckpointLimits) -> None:
        self.path, self._limits = path, limits

    def of(self, training: int) -> Path:
        """The directory for the checkpoint of a training, named by its first trial."""
        return self.path / str(training)

    def existing(self, trainings: Iterable[int]) -> list[int]:
        """Those of the trainings that have a checkpoint."""
        return [n for n in trainings if read_manifest(self.of(n)) is not None]

    def value(self, training: int) -> float | None:
        """The value that a checkpoint has reached; None without one."""
        manifest = read_manifest(self.of(training))
        return None if manifest is None else manifest["value"]

    def prune(
        self, wanted: Sequence[int], ranked: Callable[[list[int]], list[int]], running: set[int]
    ) -> list[int]:
        """Delete the checkpoints that are not wanted, and the least wanted ones beyond the limits.

        Args:
            wanted: The trainings that can be continued.
            ranked: Sorts trainings, the most promising first.
            running: Trainings that run now; their directories are in use.

        Returns:
            The trainings whose checkpoint is kept.
        """
        if not self.path.is_dir():
            return []
        present = [int(p.name) for p in self.path.iterdir() if p.is_dir() and p.name.isdigit()]
        for training in present:
            if training not in wanted and training not in running:
                remove(self.of(training))
        kept = self.existing(n for n in wanted if n not in running)
        sizes = {n: size(self.of(n)) for n in kept}
        if len(kept) <= self._limits.count and sum(sizes.values()) <= self._limits.bytes:
            return kept
        total, allowed = 0, list[int]()
        for training in ranked(kept):
            total += sizes[training]
            if len(allowed) < self._limits.count and total <= self._limits.bytes:
                allowed.append(training)
            else:
                total -= sizes[training]
                remove(self.of(training))
        return allowed

    def close(self) -> None:
        """Delete all checkpoints, unless they are to be kept."""
        if not self._limits.keep:
            shutil.rmtree(self.path, ignore_errors=True)
