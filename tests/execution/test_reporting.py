"""Reports of trainings: on every backend they are heard while the trial runs, and come with its outcome."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabolas import Fidelity
from fabolas.curve_reports import EarlyStopRule
from fabolas.execution import CurveJob, Ended, EventOrReport, Inline, Job, Reported
from fabolas.execution.evaluate import evaluate
from fabolas.execution.executors import ReportFile
from tests.execution.conftest import Open
from tests.execution.test_contract import run

EPOCHS = Fidelity(2, 10, reports=True)


def job(directory: Path, number: int = 0, *, rule: EarlyStopRule | None = None, **config: Any) -> Job:
    curve = CurveJob("epochs", EPOCHS, stop_rule=rule)
    return Job(number, config, {"epochs": 6}, directory=str(directory), curve=curve)


def train(config: dict[str, Any], epochs: int, trial: Any) -> float:
    for epoch in range(1, epochs + 1):
        trial.report(epochs=epoch, loss=1 / epoch, cost=float(epoch))
        if trial.should_stop():
            return 1 / epoch
        if config.get("crash") == epoch:
            raise MemoryError("no memory left")
    return 1 / epochs


def misreport(config: dict[str, Any], epochs: int, trial: Any) -> float:
    trial.report(epochs=3, loss=0.5)
    trial.report(**config)
    return 0.0


def wanted(last: int) -> list[Reported]:
    return [Reported(0, epoch, 1 / epoch, float(epoch)) for epoch in range(2, last + 1)]


def test_reports_are_heard_and_come_with_the_outcome(open_backend: Open, tmp_path: Path) -> None:
    backend = open_backend(train)
    heard: list[EventOrReport] = []
    backend.listen(heard.append)
    ended = run(backend, job(tmp_path))[0]
    assert ended.status == "complete"
    assert list(ended.reports) == wanted(6)  # without epoch 1, which is below the range
    found = [event for event in heard if isinstance(event, Reported)]
    assert found == wanted(6)


def train_with_numpy(config: dict[str, Any], epochs: int, trial: Any) -> float:
    for epoch in np.arange(2, epochs + 1):
        trial.report(epochs=epoch, loss=1 / epoch, cost=float(epoch))
    return 1 / epochs


def test_a_reported_value_of_numpy_becomes_a_plain_number(open_backend: Open, tmp_path: Path) -> None:
    ended = run(open_backend(train_with_numpy), job(tmp_path))[0]
    assert ended.error is None
    assert list(ended.reports) == wanted(6)
    assert {type(reported.value) for reported in ended.reports} == {int}


def test_a_training_that_fails_keeps_its_reports(open_backend: Open, tmp_path: Path) -> None:
    ended = run(open_backend(train), job(tmp_path, crash=4))[0]
    assert ended.status == "failed"
    assert list(ended.reports) == wanted(4)


def test_a_training_stops_when_its_loss_is_above_the_limit(open_backend: Open, tmp_path: Path) -> None:
    ended = run(open_backend(train), job(tmp_path, rule=EarlyStopRule((3.0,), (0.3,))))[0]
    assert (ended.status, ended.stopped, ended.loss) == ("complete", True, 1 / 3)
    assert ended.reports[-1].value == 3


def test_without_a_rule_nothing_stops(tmp_path: Path) -> None:
    ended = evaluate(train, None, job(tmp_path))
    assert not ended.stopped
    assert ended.loss == 1 / 6


def test_inline_reports_are_heard_before_the_trial_ends(tmp_path: Path) -> None:
    backend = Inline(partial(evaluate, train, None), reports=True)
    heard: list[EventOrReport] = []
    backend.listen(heard.append)
    backend.submit(job(tmp_path))
    backend.next()
    ended = backend.next()
    assert isinstance(ended, Ended)
    assert heard == wanted(6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epochs": 3, "loss": 0.1}, "expected reports with increasing epochs, got 3 after 3"),
        ({"epochs": 7, "loss": 0.1}, "expected a report with epochs of at most 6, as asked for, got 7"),
        ({"rows": 5, "loss": 0.1}, "expected the fidelity epochs, .* got rows"),
        ({"epochs": 5, "loss": float("nan")}, "the loss of a report must be a finite number, got nan"),
        ({"epochs": 5, "loss": 1e200}, r"the loss of a report must be between .*, got 1e\+200"),
        ({"epochs": 4.5, "loss": 0.1}, "expected a whole number"),
        ({"epochs": 5, "loss": "low"}, "loss of a report"),
    ],
)
def test_a_report_that_cannot_be_is_the_reason_of_the_failure(
    tmp_path: Path, arguments: dict[str, Any], message: str
) -> None:
    ended = evaluate(
        misreport,
        None,
        Job(0, arguments, {"epochs": 6}, directory=str(tmp_path), curve=CurveJob("epochs", EPOCHS)),
    )
    assert ended.status == "failed"
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(ended.error)


def test_a_report_without_a_declared_fidelity_says_what_to_declare(tmp_path: Path) -> None:
    ended = evaluate(train, None, Job(0, {}, {"epochs": 6}, directory=str(tmp_path)))
    assert ended.status == "failed"
    assert (
        "expected a fidelity that is declared with reports=True, as in fidelities="
        '{"epochs": fabolas.Fidelity(1, 52, reports=True)}; got epochs, and no such fidelity'
    ) in (ended.error or "")


def test_a_torn_line_of_a_report_file_is_read_when_it_is_whole(tmp_path: Path) -> None:
    one = job(tmp_path)
    writer, reader = ReportFile(one), ReportFile(one)
    assert reader.read() == []
    writer.write(wanted(3)[0])
    path = tmp_path / "0" / "reports.jsonl"
    line = path.read_bytes()
    path.write_bytes(line[:-5])
    assert reader.read() == []
    path.write_bytes(line)
    assert reader.read() == wanted(2)
    assert reader.read() == []
