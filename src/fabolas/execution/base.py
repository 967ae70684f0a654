"""Jobs, events, and the two protocols: ``Backend`` runs many jobs, ``Worker`` runs one job at a time."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from fabolas.curve_reports import EarlyStopRule
from fabolas.space import Fidelity
from fabolas.trials import Outcome, Status

# The smallest cost of a trial or a report. A coarse clock can measure 0, which has no logarithm.
MIN_COST_SECONDS = 1e-6

Objective = Callable[..., float | Outcome]
"""Called as ``objective(config, size=...)``; returns a loss or an Outcome."""


def seconds_since(start: float | None) -> float:
    """The cost of a job whose objective was called at this time of ``perf_counter``; 0 if it was not called."""
    return 0.0 if start is None else max(time.perf_counter() - start, MIN_COST_SECONDS)


@dataclass(frozen=True)
class Job:
    """One trial to run.

    Attributes:
        id: The id of the suggestion.
        config: Hyperparameters by name.
        fidelity: Fidelities by name.
        timeout: Seconds after which the trial is ended; None for no limit.
        deadline: When the time budget ends, in seconds since the epoch; None without one.
        directory: Where trials get directories of their own.
        worker: The number of the worker that runs it; the backend sets it.
        curve: What it needs to report on the way; None if no fidelity is declared with reports=True.
    """

    id: int
    config: dict[str, Any]
    fidelity: dict[str, float | int]
    timeout: float | None = None
    deadline: float | None = None
    directory: str = ""
    worker: int = 0
    curve: "CurveJob | None" = None


@dataclass(frozen=True)
class Ready:
    """A worker process has loaded the objective and its data, and waits for its first job."""


@dataclass(frozen=True)
class Started:
    """A worker has started a job.

    Attributes:
        id: The id of the job.
        at: When it started, in seconds since the epoch. The engine may read this event much later.
    """

    id: int
    at: float = field(default_factory=time.time, compare=False)


@dataclass(frozen=True)
class Reported:
    """A training has reported its loss on the way.

    Attributes:
        id: The id of the job.
        value: The value of the fidelity that it has reached.
        loss: The loss there.
        cost: Seconds since the objective was called.
    """

    id: int
    value: float | int
    loss: float
    cost: float


@dataclass(frozen=True)
class CurveJob:
    """What a job needs to report on the way.

    Attributes:
        name: The name of the fidelity that the training passes through.
        fidelity: Its range.
        checkpoint: The directory for the checkpoint of the training; empty if it cannot be continued.
        resume_from: The value that the checkpoint has reached; None to start from scratch.
        stop_rule: When the training should stop early; None for never.
    """

    name: str
    fidelity: Fidelity
    checkpoint: str = ""
    resume_from: float | int | None = None
    stop_rule: EarlyStopRule | None = None


@dataclass(frozen=True)
class Ended:
    """The outcome of a job.

    Attributes:
        id: The id of the job.
        status: "complete" with a loss, "failed" with the reason, or "abandoned" if the job is not to blame.
        loss: None unless complete.
        cost: Seconds that the objective ran, without the time in a queue. An estimate if it did not return.
        info: The info of the objective's Outcome.
        error: Why there is no loss.
        fatal: Whether the backend cannot run any further job.
        reports: All that the training reported on the way, including what was published before.
        stopped: Whether the training stopped early, at its last report.
        restarted: Whether it had to start from scratch although it should have continued.
        notice: What the user should know about it; empty if nothing.
    """

    id: int
    status: Status
    loss: float | None = None
    cost: float = 0.0
    info: dict[str, Any] = field(default_factory=dict)
    error: str | None = None
    fatal: bool = False
    reports: tuple[Reported, ...] = ()
    stopped: bool = False
    restarted: bool = False
    notice: str = ""


Event = Started | Ended
EventOrReport = Started | Reported | Ended  # what a listener hears


class Backend(Protocol):
    """Runs up to ``capacity`` jobs at the same time. Further jobs wait in the order of their submission.

    Attributes:
        capacity: How many jobs run at the same time.
        asynchronous: Whether jobs run in the background. If not, a job runs inside ``next``.
    """

    capacity: int
    asynchronous: bool

    def start(self, timeout: float) -> None:
        """Start the workers, and wait until one of them can run a job, for at most ``timeout`` seconds.

        Without this call, each worker starts with its first job. ``wake`` ends the waiting.
        """
        ...

    def submit(self, job: Job) -> None:
        """Run this job as soon as a worker is free."""
        ...

    def next(self, timeout: float | None = None) -> Event | None:
        """Wait for the next event.

        Returns None if there was no event for ``timeout`` seconds, or if ``wake`` was called. With a timeout of 0,
        None means that all events so far were returned, even after ``wake``.
        """
        ...

    def listen(self, listener: Callable[[EventOrReport], None]) -> None:
        """Call ``listener`` with every event when it happens, in a worker's thread, before ``next`` returns it.

        ``next`` does not return reports. A backend that is not asynchronous calls it with reports only.
        """
        ...

    def cancel(self, job_id: int) -> bool:
        """Remove a job that has not started. Returns False if it has started; it then continues."""
        ...

    def abandon(self, job_id: int, reason: str) -> bool:
        """Stop waiting for a job that has started, and kill it if possible. It never blocks.

        The job ends at once, with status "abandoned" and this reason. Returns False if the job does not run here.
        """
        ...

    def wake(self) -> None:
        """Make ``next`` return now. A signal handler may call this."""
        ...

    def close(self) -> None:
        """Abandon all jobs and release everything, within a few seconds. A second call does nothing."""
        ...


class Worker(Protocol):
    """Runs one job at a time. A ``Pool`` gives each worker a thread of its own."""

    def start(self, ready: Callable[[], None]) -> None:
        """Start before the first job, without waiting. Call ``ready`` when it can run a job, or can never do so."""
        ...

    def run(self, job: Job, started: Callable[[], None], report: Callable[[Reported], None]) -> Ended:
        """Run the job and return its outcome.

        Call ``started`` when the objective starts, and ``report`` with every report of its training.
        """
        ...

    def abandon(self, job_id: int) -> None:
        """End job ``job_id`` if it is running, or stop waiting for it. Called from another thread."""
        ...

    def stop(self) -> None:
        """Abandon the running job, and run no other one. Called from another thread."""
        ...

    def close(self) -> None:
        """Release what the worker holds. Called after its last job, in the worker's own thread."""
        ...
