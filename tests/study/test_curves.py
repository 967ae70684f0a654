"""A study with reports: what may be reported, tables, loading, and both directions."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fabolas
from fabolas.strategies.base import Proposal
from fabolas.strategies.random import Random

SPACE = {"x": fabolas.Float(0.0, 1.0)}
EPOCHS = {"epochs": fabolas.Fidelity(2, 64, reports=True)}


def open_study(**settings: Any) -> fabolas.Study:
    return fabolas.Study(SPACE, EPOCHS, **{"strategy": "random", "seed": 0, "overhead": 0.1, **settings})


def test_resume_needs_reports_and_one_fidelity_reports() -> None:
    with pytest.raises(ValueError, match="expected reports=True together with resume=True"):
        fabolas.Fidelity(1, 10, resume=True)
    twice = {"a": fabolas.Fidelity(1, 10, reports=True), "b": fabolas.Fidelity(1, 10, reports=True)}
    with pytest.raises(ValueError, match="at most one fidelity with reports=True, got"):
        fabolas.Space(SPACE, twice)


def test_a_space_with_reports_is_another_space_than_one_without() -> None:
    plain = fabolas.Space(SPACE, {"epochs": (2, 64)})
    assert plain != fabolas.Space(SPACE, EPOCHS)
    assert plain.describe()["fidelities"] == [
        {"name": "epochs", "low": 2, "high": 64, "log": True, "integer": True}
    ]
    assert fabolas.Space.from_description(fabolas.Space(SPACE, EPOCHS).describe()).curve_name == "epochs"


def test_wrong_reports_are_refused() -> None:
    with open_study() as study:
        suggestion = study.ask_for({"x": 0.5}, {"epochs": 8})
        study.tell_report(suggestion, 0.5, 1.0, epochs=4)
        for value, message in (
            (4, "expected reports with increasing epochs, got 4 after 4"),
            (9, "at most 8"),
        ):
            with pytest.raises(ValueError, match=message):
                study.tell_report(suggestion, 0.5, 1.0, epochs=value)
        with pytest.raises(ValueError, match="expected a report with the fidelity 'epochs', got size"):
            study.tell_report(suggestion, 0.5, 1.0, size=5)
        with pytest.raises(ValueError, match="finite"):
            study.tell_report(suggestion, float("inf"), 1.0, epochs=5)
        with pytest.raises(ValueError, match=r"the loss of a report must be between .*, got 1e\+200"):
            study.tell_report(suggestion, 1e200, 1.0, epochs=5)
        study.tell(suggestion, 0.4, cost=2.0)
        assert len(study.trials[0].reports) == 1
    with fabolas.Study(SPACE, strategy="random") as study, pytest.raises(ValueError, match="reports=True"):
        study.tell_report(study.ask(), 0.5, 1.0, epochs=4)


class ContinuesFirst(Random):
    """Proposes to continue the first trial."""

    def suggest(self, *given: Any, **settings: Any) -> Proposal:
        return replace(super().suggest(*given, **settings), continues=0)


def test_another_point_than_the_proposed_one_continues_no_training() -> None:
    epochs = {"epochs": fabolas.Fidelity(2, 64, reports=True, resume=True)}
    with fabolas.Study(
        SPACE, epochs, strategy=ContinuesFirst(fabolas.Space(SPACE, epochs)), overhead=0.1
    ) as study:
        study.tell(study.ask_for({"x": 0.5}, {"epochs": 8}), 0.5, cost=1.0)
        assert study.accept(study.propose()).continues == 0
        proposal = study.propose()
        other = study.accept(replace(proposal, point=study.space.encode({"x": 0.2}, {"epochs": 16})))
        assert (proposal.continues, other.continues, other.config) == (0, None, {"x": 0.2})


def test_a_report_below_the_range_is_left_out() -> None:
    with open_study() as study:
        suggestion = study.ask_for({"x": 0.5}, {"epochs": 8})
        study.tell_report(suggestion, 0.5, 1.0, epochs=1)
        assert study.tell(suggestion, 0.4, cost=2.0).reports == ()


@pytest.mark.parametrize("value", [np.int64(4), np.array(4), np.float32(4.0), Decimal(4)])
def test_a_reported_value_is_kept_as_a_plain_number(tmp_path: Path, value: Any) -> None:
    with open_study(storage=tmp_path / "t.db") as study:
        suggestion = study.ask_for({"x": 0.5}, {"epochs": 8})
        study.tell_report(suggestion, 0.5, 1.0, epochs=value)
        (report,) = study.tell(suggestion, 0.4, cost=2.0).reports
        assert report.fidelity == {"epochs": 4}
        assert type(report.fidelity["epochs"]) in (int, float)
    assert fabolas.load(tmp_path / "t.db").trials[0].reports[0].fidelity == {"epochs": 4}


def test_the_table_has_a_row_per_report_or_one_per_trial(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    with open_study(storage=tmp_path / "t.db") as study:
        suggestion = study.ask_for({"x": 0.5}, {"epochs": 8})
        for epoch in (2, 4, 8):
            study.tell_report(suggestion, 1 / epoch, float(epoch), epochs=epoch)
        study.tell(suggestion, 1 / 8, cost=9.0)
        frame = study.to_frame(reports=True)
        assert frame["status"].tolist() == ["reported", "reported", "complete"]
        assert frame["fidelity_epochs"].tolist() == [2, 4, 8]
        assert frame["loss"].tolist() == [1 / 2, 1 / 4, 1 / 8]
        assert frame["cost"].tolist() == [2.0, 4.0, 9.0]
        assert len(study.to_frame()) == 1
    assert fabolas.load(tmp_path / "t.db").to_frame(reports=True).equals(frame)


def test_maximizing_reads_the_negative_curves() -> None:
    """The same search twice, once with negative losses: the same suggestions."""
    points = []
    for sign, direction in ((1.0, "minimize"), (-1.0, "maximize")):
        with open_study(strategy="fabolas", direction=direction, effort=0.0, stop_early=True) as study:
            for _ in range(14):
                suggestion = study.ask()
                loss = sign * (-1.0 - suggestion.config["x"])
                for epoch in range(2, suggestion.fidelity["epochs"], 4):
                    study.tell_report(suggestion, loss + sign / epoch, float(epoch), epochs=epoch)
                study.tell(suggestion, loss, cost=float(suggestion.fidelity["epochs"]))
            points.append([trial.suggestion.point.tolist() for trial in study.trials])
    assert points[0] == points[1]
