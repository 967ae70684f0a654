"""Runs with short budgets, and the factor between two versions."""

import argparse
from pathlib import Path

import numpy as np
import pytest

from experiments import lines, short_budgets


@pytest.mark.parametrize("strategy", ["fabolas", "random"])
def test_an_answer_has_its_true_regret_and_the_time_that_its_run_took(
    strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(short_budgets, "MAX_TRIALS", 14)
    monkeypatch.setattr(short_budgets, "EFFORT", 0.0)
    found = short_budgets.answer("svm_like", seed=0, trainings=2.0, strategy=strategy)
    assert 0.0 <= found["regret"] < 0.7  # losses are error rates, and chance is 0.9
    assert found["verified"]
    assert 0.1 < found["end"] < 5.0


def test_a_version_with_half_the_regret_has_the_factor_one_half(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    for name, factor in (("old.jsonl", 1.0), ("new.jsonl", 0.5)):
        for seed in range(5):
            regrets = (factor * (0.1 + 0.01 * seed) * np.ones(3)).tolist()
            row = {"family": "mixed", "seed": seed, "regret": regrets, "verified": [seed > 0] * 3}
            lines.append(tmp_path / name, row | {"end": rng.uniform(0.9, 1.0, 3).tolist()})
    short_budgets.compare(argparse.Namespace(old=tmp_path / "old.jsonl", new=tmp_path / "new.jsonl"))
    said = capsys.readouterr().out
    assert said.count("0.50 (0.50, 0.50)") == 6  # three budgets, the problem and all problems
    assert "verified 80%, 80%, 80%" in said
