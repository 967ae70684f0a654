"""Where a study keeps its record: in memory, or in one SQLite file that survives a killed process.

``base.py`` says what a storage implements. ``memory.py`` and ``sqlite.py`` are the two storages. These modules are for
the SQLite file: ``database.py`` (the open file), ``schema.py`` (tables), ``lock.py`` (one process at a time),
``files.py`` (paths), ``reader.py`` (read only) and ``copies.py`` (backup, salvage).
"""

from fabolas.storage.base import Identity, Record, Storage, UnwritableError, merge_early_outcomes
from fabolas.storage.copies import Salvaged, backup, salvage
from fabolas.storage.memory import MemoryStorage
from fabolas.storage.schema import APPLICATION_ID, SCHEMA, SQLITE_MAGIC
from fabolas.storage.sqlite import SqliteStorage

__all__ = [
    "APPLICATION_ID",
    "SCHEMA",
    "SQLITE_MAGIC",
    "Identity",
    "MemoryStorage",
    "Record",
    "Salvaged",
    "SqliteStorage",
    "Storage",
    "UnwritableError",
    "backup",
    "merge_early_outcomes",
    "salvage",
]
