"""The walls of the experiment with failures are where its text says."""

from pathlib import Path

import numpy as np
import pytest

from experiments import failures, lines


def test_a_wall_is_on_the_farther_side_of_the_optimum() -> None:
    left, right = np.array([0.3, 0.5]), np.array([0.8, 0.5])

    def fails(case: str, x: float, optimum: np.ndarray, u: float = 1.0) -> bool:
        return failures.beyond_wall(case, np.array([x, 0.5, u]), optimum)

    assert [fails("beside", x, left) for x in (0.1, 0.3, 0.39, 0.41)] == [False, False, False, True]
    assert [fails("beside", x, right) for x in (0.69, 0.71, 0.9)] == [True, False, False]
    assert [fails("through", x, left) for x in (0.2, 0.3)] == [False, True]
    assert [fails("large sizes", 0.9, left, u) for u in (0.5, 0.7)] == [False, True]
    assert not fails("none", 0.9, left)
    assert not fails("30 %", 0.9, left)


def test_the_factor_is_that_between_the_journals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, regret in (("before", 0.02), ("after", 0.01)):
        for seed in range(4):
            row = {"problem": "mixed", "case": "5 %", "seed": seed, "regret": [regret] * 3, "failed": 2}
            lines.append(tmp_path / name, row)
    failures.compare(tmp_path / "before", tmp_path / "after")
    (found,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("| 5 %"))
    assert found.count("0.50 (0.50, 0.50)") == 3
    assert found.endswith("| 2.0, 2.0 |")
