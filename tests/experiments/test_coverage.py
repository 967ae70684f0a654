"""The experiment on coverage counts what it says it counts."""

import sys
from pathlib import Path

import pytest

from experiments import coverage
from experiments.coverage import Answer, answers, rows


def test_an_answer_is_covered_if_its_interval_holds_the_truth() -> None:
    assert Answer("mnist", 0, 10, 0.5, 0.1, 0.695, verified=False, preliminary=False).is_covered
    assert not Answer("mnist", 0, 10, 0.5, 0.1, 0.697, verified=False, preliminary=False).is_covered


def test_the_table_separates_predictions_and_verified_answers() -> None:
    given = [
        Answer("mnist", 0, 10, 0.5, 0.1, 0.9, verified=False, preliminary=True),
        Answer("mnist", 1, 10, 0.2, 0.1, 0.2, verified=False, preliminary=False),
        Answer("mnist", 2, 10, 0.2, 0.1, 0.5, verified=True, preliminary=False),
    ]
    assert rows(given)[2:] == [
        "| mnist | 10 | 3 | 33% | 2 | 50% | 1 | 0% | 35.0% |",
        "| all | 10 | 3 | 33% | 2 | 50% | 1 | 0% | 35.0% |",
    ]


def test_a_run_gives_the_answers_of_the_study_and_its_journal_is_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = answers("svm_like", 0, (2, 4))
    assert [a.trials for a in found] == [2, 4]
    assert all(0.0 < a.truth < 1.0 and a.std > 0.0 for a in found)
    calls = []

    def short(name: str, seed: int) -> list[Answer]:
        calls.append((name, seed))
        return found

    monkeypatch.setattr(coverage, "answers", short)
    journal = str(tmp_path / "journal.jsonl")
    command = ["coverage", "--seeds", "1", "--problems", "svm_like", "--journal", journal]
    for _ in range(2):
        monkeypatch.setattr(sys, "argv", command)
        coverage.main()
    first, second = capsys.readouterr().out.split("| problem")[1:]
    assert calls == [("svm_like", 0)]
    assert first == second
