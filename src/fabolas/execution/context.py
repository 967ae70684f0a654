"""What an objective can ask about its own trial, and what it can report on the way."""

import contextlib
import inspect
import math
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fabolas.execution.base import MIN_COST_SECONDS, Job, Reported
from fabolas.plain_values import as_loss, to_float, to_number

PARAMETER = "trial"  # an objective with a parameter of this name gets a TrialContext
Publish = Callable[[Reported], None]  # passes a report on at once, to the engine's process


class Reporter:
    """Checks and collects the reports of one trial. Any thread of the objective may report.

    Args:
        job: The trial.
        seconds: Seconds since the objective was called.
        publish: Called with every report.

    Attributes:
        reports: All reports so far.
        stopped: Whether the objective was told to stop.
    """

    def __init__(self, job: Job, seconds: Callable[[], float], publish: Publish) -> None:
        self._job, self._seconds, self._publish = job, seconds, publish
        self._lock = threading.Lock()
        self.reports: list[Reported] = []
        self.stopped = False

    def report(self, loss: object, cost: object, fidelity: dict[str, Any]) -> None:
        """Keep a report.

        Raises:
            ValueError: If the fidelity is not the one with reports, or its value is not increasing or is above what
                was asked for, or the loss or the cost is not a finite number.
            TypeError: If a value is not a number.
        """
        curve = self._job.curve
        name = None if curve is None else curve.name
        if curve is None or name is None or list(fidelity) != [name]:
            given = ", ".join(fidelity) or "none"
            if name is None:
                raise ValueError(
                    "expected a fidelity that is declared with reports=True, as in "
                    f'fidelities={{"epochs": fabolas.Fidelity(1, 52, reports=True)}}; got {given}, and no such fidelity'
                )
            raise ValueError(
                f"expected the fidelity {name}, as in trial.report({name}=3, loss=0.2); got {given}"
            )
        value = to_number(fidelity[name], f"a reported {name}")
        with self._lock:
            self._check_value(name, value)
            number = as_loss(loss, "the loss of a report")
            seconds = self._seconds() if cost is None else to_float(cost, "the cost of a report")
            if not math.isfinite(seconds) or (cost is not None and seconds <= 0):
                raise ValueError(f"the cost of a report must be a finite number > 0, got {seconds}")
            reported = Reported(self._job.id, value, number, max(seconds, MIN_COST_SECONDS))
            self.reports.append(reported)
            if value >= curve.fidelity.low:
                self._publish(reported)

    def _check_value(self, name: str, value: float | int) -> None:
        curve, most = self._job.curve, self._job.fidelity[name]
        assert curve is not None
        if value > most:
            raise ValueError(f"expected a report with {name} of at most {most}, as asked for, got {value}")
        if value >= curve.fidelity.low:
            curve.fidelity.coordinate(value)  # raises if the fidelity has no such value
        if self.reports and value <= self.reports[-1].value:
            raise ValueError(
                f"expected reports with increasing {name}, got {value} after {self.reports[-1].value}"
            )

    def should_stop(self) -> bool:
        """Whether, by the last report, the rest gives less information per second than the best other evaluation."""
        curve = self._job.curve
        if curve is None or curve.stop_rule is None or not self.reports:
            return False
        last = self.reports[-1]
        stops = curve.stop_rule.stops(last.value, last.loss)
        self.stopped = self.stopped or stops
        return stops


@dataclass(frozen=True)
class TrialContext:
    """A trial, as its objective sees it.

    Attributes:
        number: The id of the trial in its study.
        worker: Which of the workers runs it, from 0 to their number minus 1. No two trials that run at the same time
            have the same one, so it can choose a GPU.
        deadline: When the time budget ends, in seconds since the epoch; None without a time budget.
        directory: A directory for this trial alone. It exists. If it is empty when the run ends, it is removed.
        checkpoint: A directory for the checkpoint of this training, which a later trial may continue. It exists. None
            unless a fidelity is declared with ``resume=True``.
        resume_from: The value of that fidelity at which the checkpoint in this directory was left; None to start from
            scratch.
    """

    number: int
    worker: int
    deadline: float | None
    directory: Path
    checkpoint: Path | None = None
    resume_from: float | int | None = None
    _reporter: Reporter | None = field(default=None, repr=False, compare=False)

    @property
    def seconds_left(self) -> float | None:
        """Seconds left of the time budget, at least 0; None without a time budget."""
        return None if self.deadline is None else max(self.deadline - time.time(), 0.0)

    def report(self, loss: float, cost: float | None = None, **fidelity: float) -> None:
        """Report the loss of the training on the way, at the value that it has reached.

            trial.report(epochs=3, loss=0.21)

        Args:
            loss: A finite number.
            cost: Seconds from the start of the trial until now; None takes the measured time.
            **fidelity: The fidelity that was declared with ``reports=True``, and its value. Values increase, and are
                at most what the trial was asked for. One below the range of the fidelity is left out.

        Raises:
            ValueError: If the fidelity, its value, the loss or the cost is not allowed.
            TypeError: If a value is not a number.
        """
        if self._reporter is None:
            raise ValueError("this trial has no study to report to")
        self._reporter.report(loss, cost, fidelity)

    def should_stop(self) -> bool:
        """Whether the rest gives less information per second than the best other evaluation: then return the loss now.

        Always False unless the strategy has the option ``stop_early=True``. A training that stops is recorded as an
        evaluation at its last report, not as a failure.
        """
        return self._reporter is not None and self._reporter.should_stop()

    @classmethod
    def of(cls, job: Job, reporter: Reporter | None = None) -> "TrialContext":
        """The context of a job, whose directories are created."""
        directory = Path(job.directory) / str(job.id)
        directory.mkdir(parents=True, exist_ok=True)
        curve = job.curve
        if curve is None or not curve.checkpoint:
            return cls(job.id, job.worker, job.deadline, directory, _reporter=reporter)
        checkpoint = Path(curve.checkpoint)
        checkpoint.mkdir(parents=True, exist_ok=True)
        return cls(
            job.id, job.worker, job.deadline, directory, checkpoint, curve.resume_from, _reporter=reporter
        )


def remove_empty_directories(directory: str, trials: Iterable[int]) -> None:
    """Remove the directories of these trials in which nothing was written."""
    if not directory:
        return
    for trial in trials:
        path = Path(directory) / str(trial)
        with contextlib.suppress(OSError):  # not empty, not there, or not ours to remove
            path.rmdir()


def wants_context(objective: Callable[..., Any], fidelities: tuple[str, ...]) -> bool:
    """Whether the objective has a parameter ``trial`` beside its first one, which is the configuration."""
    if PARAMETER in fidelities:
        return False
    try:
        parameters = list(inspect.signature(objective).parameters.values())[1:]
    except (ValueError, TypeError):  # some built-in functions have no signature
        return False
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return any(parameter.name == PARAMETER and parameter.kind in kinds for parameter in parameters)
