"""What goes to a place where trials run, what comes back, and what such a place can do."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from fabolas.history import Status

Objective = Callable[..., Any]


@dataclass(frozen=True)
class Job:
    """One trial as a worker receives it.

    Attributes:
        id: The suggestion's number.
        config: Hyperparameters by name.
        fidelity: Fidelities by name.
        timeout: Seconds after which it is to be ended, where a place can do that; None for no limit.
    """

    id: int
    config: dict[str, Any]
    fidelity: dict[str, float | int]
    timeout: float | None = None


@dataclass(frozen=True)
class Started:
    """A worker has begun with a job.

    Attributes:
        id: The job's number.
        at: When, in seconds since the epoch; whoever hears of it may have been busy for a while.
    """

    id: int
    at: float = field(default_factory=time.time, compare=False)


@dataclass(frozen=True)
class Ended:
    """What came of a job.

    Attributes:
        id: The job's number.
        status: "complete" with a loss; "failed" with the reason; "lost" where the job is not to blame.
        loss: None unless complete.
        cost: Seconds in the objective, never in a queue or on the way; as far as can be told if it did not return.
        info: What the objective gave with its loss.
        error: Why there is no loss.
        fatal: Whether the place can run nothing more.
    """

    id: int
    status: Status
    loss: float | None = None
    cost: float = 0.0
    info: dict[str, Any] = field(default_factory=dict)
    error: str | None = None
    fatal: bool = False


Event = Started | Ended


class Place(Protocol):
    """Runs as many jobs at once as it has capacity for, and keeps the others waiting in their order.

    Attributes:
        capacity: How many jobs run at once.
        ahead: Whether jobs run while their submitter does something else, so that another may wait in advance.
    """

    capacity: int
    ahead: bool

    def submit(self, job: Job) -> None:
        """Run this as soon as there is room."""
        ...

    def next(self, timeout: float | None = None) -> Event | None:
        """The next thing that happened; None if nothing did for so many seconds, or ``wake`` was called meanwhile.

        With 0 seconds, None says that nothing has happened which was not given before, whoever called ``wake``.
        """
        ...

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Have a listener hear of everything at once, in the thread it happens in, before ``next`` has it.

        Where nothing happens but in ``next``, there is nothing to hear before.
        """
        ...

    def withdraw(self, number: int) -> bool:
        """Forget a job that has not begun; False if it has, and then it goes on."""
        ...

    def wake(self) -> None:
        """Let ``next`` return now; may be called from a signal handler."""
        ...

    def close(self) -> None:
        """End at once whatever runs, as far as that can be done; a second call does nothing."""
        ...
