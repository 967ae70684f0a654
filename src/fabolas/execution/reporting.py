"""What a training reports on the way: checked where it runs, and passed on at once.

A worker process sends reports to its parent. An executor returns nothing but the result of its job. So there a report
is also a line of a file in the directory of the trial, which the engine's process reads while the trial runs, if both
see the same files. In any case all reports come again with the outcome.
"""

import json
import math
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fabolas.execution.base import Job, Reported
from fabolas.plain_values import as_loss, to_float

Publish = Callable[[Reported], None]
MIN_SECONDS = 1e-6  # the smallest cost of a report
_FILE = "reports.jsonl"


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
        value = fidelity[name]
        with self._lock:
            self._check_value(name, value)
            number = as_loss(loss, "the loss of a report")
            seconds = self._seconds() if cost is None else to_float(cost, "the cost of a report")
            if not math.isfinite(seconds) or (cost is not None and seconds <= 0):
                raise ValueError(f"the cost of a report must be a finite number > 0, got {seconds}")
            reported = Reported(self._job.id, value, number, max(seconds, MIN_SECONDS))
            self.reports.append(reported)
            if value >= curve.fidelity.low:
                self._publish(reported)

    def _check_value(self, name: str, value: Any) -> None:
        curve, most = self._job.curve, self._job.fidelity[name]
        assert curve is not None
        if to_float(value, f"a reported {name}") > most:
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


class ReportFile:
    """The reports of a trial as lines of a file in its directory. One process writes it, another one reads it."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._path = Path(job.directory) / str(job.id) / _FILE
        self._position = 0

    def write(self, reported: Reported) -> None:
        """Add a report."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(reported)) + "\n")

    def read(self) -> list[Reported]:
        """The reports since the last call; none if the file cannot be seen from here."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._position)
                text = file.read()
        except OSError:
            return []
        whole = text[: text.rfind(b"\n") + 1]
        self._position += len(whole)
        return [Reported(**json.loads(line)) for line in whole.splitlines()]

    def clear(self) -> None:
        """Remove the file of an earlier trial with this number."""
        self._path.unlink(missing_ok=True)
