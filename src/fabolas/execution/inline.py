"""Run trials in this process, one at a time. A debugger works in the objective, and nothing is pickled."""

from collections import deque
from collections.abc import Callable

from fabolas.execution.base import Ended, Event, Job, News, Started


class Inline:
    """Runs a job inside ``next``: the first call returns Started, the second one runs the objective.

    Args:
        run: Evaluates a job, for example ``partial(evaluate, objective, data)``.
        reports: Whether ``run`` also takes ``publish=``, a function that it calls with every report.
    """

    capacity = 1
    asynchronous = False

    def __init__(self, run: Callable[..., Ended], *, reports: bool = False) -> None:
        self._run, self._reports = run, reports
        self._listener: Callable[[News], None] = lambda event: None
        self._jobs: deque[Job] = deque()
        self._started: int | None = None

    def start(self, timeout: float) -> None:
        """Do nothing: this process is running."""

    def submit(self, job: Job) -> None:
        self._jobs.append(job)

    def next(self, timeout: float | None = None) -> Event | None:
        if not self._jobs:
            return None
        if self._started != self._jobs[0].id:
            self._started = self._jobs[0].id
            return Started(self._started)
        job = self._jobs.popleft()
        return self._run(job, publish=self._listener) if self._reports else self._run(job)

    def listen(self, listener: Callable[[News], None]) -> None:
        """Call it with reports; all other events happen inside ``next``."""
        self._listener = listener

    def cancel(self, job_id: int) -> bool:
        found = [job for job in self._jobs if job.id == job_id and job_id != self._started]
        for job in found:
            self._jobs.remove(job)
        return bool(found)

    def abandon(self, job_id: int, reason: str) -> bool:
        """Do nothing: a job runs inside ``next``, so nothing runs when this is called."""
        return False

    def wake(self) -> None:
        """Do nothing: ``next`` does not wait, it runs the objective."""

    def close(self) -> None:
        self._jobs.clear()
