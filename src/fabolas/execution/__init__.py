"""Where trials run: in this process, in worker processes, or in any ``concurrent.futures.Executor``.

The engine uses the protocol ``Backend`` only (``base.py``). There are two backends (``backends.py``): ``Inline`` runs a
trial in this process, ``Pool`` has several workers. Each of these runs one trial at a time: in a process
(``ProcessWorker``) or as a future of an executor (``FutureWorker``). ``backend_for`` (``choose.py``) chooses.
"""

from fabolas.execution.backends import Inline, Pool
from fabolas.execution.base import (
    MIN_COST_SECONDS,
    Backend,
    CurveJob,
    Ended,
    Event,
    EventOrReport,
    Job,
    Objective,
    Reported,
    Started,
    Worker,
)
from fabolas.execution.choose import backend_for
from fabolas.execution.context import TrialContext, wants_context
from fabolas.execution.executors import FutureWorker, SharedObjective, capacity_of
from fabolas.execution.limits import NO_LIMITS, Limits
from fabolas.execution.processes import ProcessWorker, process_pool

__all__ = [
    "MIN_COST_SECONDS",
    "NO_LIMITS",
    "Backend",
    "CurveJob",
    "Ended",
    "Event",
    "EventOrReport",
    "FutureWorker",
    "Inline",
    "Job",
    "Limits",
    "Objective",
    "Pool",
    "ProcessWorker",
    "Reported",
    "SharedObjective",
    "Started",
    "TrialContext",
    "Worker",
    "backend_for",
    "capacity_of",
    "process_pool",
    "wants_context",
]
