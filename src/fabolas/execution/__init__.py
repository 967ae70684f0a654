"""Where trials run: in this process, in processes of their own, or wherever an Executor takes them.

The loop sees the protocol ``Place`` and nothing else. ``Inline`` runs a trial when it is waited for; ``Pool`` has a
number of slots, each of which runs one trial at a time: a process (``ProcessSlot``), or a future of any
``concurrent.futures.Executor`` (``FutureSlot``).
"""

from fabolas.execution.base import Ended, Event, Job, Place, Started
from fabolas.execution.choose import NO_LIMITS, Limits, place_for
from fabolas.execution.futures import FutureSlot, Shared, capacity
from fabolas.execution.inline import Inline
from fabolas.execution.pool import Pool, Slot
from fabolas.execution.processes import ProcessSlot, processes
from fabolas.execution.task import RESOLUTION

__all__ = [
    "NO_LIMITS",
    "RESOLUTION",
    "Ended",
    "Event",
    "FutureSlot",
    "Inline",
    "Job",
    "Limits",
    "Place",
    "Pool",
    "ProcessSlot",
    "Shared",
    "Slot",
    "Started",
    "capacity",
    "place_for",
    "processes",
]
