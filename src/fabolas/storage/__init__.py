"""Where a study keeps its record: in memory, or in one SQLite file that a killed process cannot harm."""

from fabolas.storage.base import Identity, Noticeboard, Record, Storage, UnwritableError, Witness, joined
from fabolas.storage.memory import MemoryStorage
from fabolas.storage.schema import APPLICATION_ID, SCHEMA, SQLITE
from fabolas.storage.sqlite import SqliteStorage

__all__ = [
    "APPLICATION_ID",
    "SCHEMA",
    "SQLITE",
    "Identity",
    "MemoryStorage",
    "Noticeboard",
    "Record",
    "SqliteStorage",
    "Storage",
    "UnwritableError",
    "Witness",
    "joined",
]
