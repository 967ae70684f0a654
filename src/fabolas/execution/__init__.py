"""Where trials run: in this process, in worker processes, or in any ``concurrent.futures.Executor``.

The engine uses the protocol ``Backend`` only (``base.py``). ``Inline`` runs a trial in this process. ``Pool`` has
several workers, each of which runs one trial at a time: a process (``ProcessWorker``) or a future of an executor
(``FutureWorker``). ``backend_for`` (``backends.py``) chooses.
"""

from fabolas.execution.backends import backend_for
from fabolas.execution.base import (
    Backend,
    Curve,
    Ended,
    Event,
    Job,
    News,
    Objective,
    Reported,
    Started,
    Worker,
)
from fabolas.execution.context import TrialContext, wants_context
from fabolas.execution.evaluate import MIN_COST_SECONDS
from fabolas.execution.executors import FutureWorker, SharedObjective, capacity_of
from fabolas.execution.inline import Inline
from fabolas.execution.limits import NO_LIMITS, Limits
from fabolas.execution.pool import Pool
from fabolas.execution.processes import ProcessWorker, process_pool

__all__ = [
    "MIN_COST_SECONDS",
    "NO_LIMITS",
    "Backend",
    "Curve",
    "Ended",
    "Event",
    "FutureWorker",
    "Inline",
    "Job",
    "Limits",
    "News",
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
