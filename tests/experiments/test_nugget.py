"""What repeats at the target are worth: the answers of one search, and the factors between them."""

import numpy as np
import pytest

from experiments import nugget
from fabolas.model_spec import NUGGET_FRACTION


def row(time: float, repeats: int, answer: str, regret: float, covered: bool | None) -> dict[str, object]:
    return {
        "time": time,
        "repeats": repeats,
        "answer": answer,
        "fraction": 0.4,
        "regret": regret,
        "covered": covered,
        "width": 0.1,
    }


def test_factors_compare_answers_at_the_same_times() -> None:
    rows = [
        row(5.0, 0, "fixed", 0.1, True),
        row(5.0, 1, "learnt", 0.2, True),
        row(10.0, 1, "learnt", 9.0, None),
    ]
    runs = [{"seed": s, "chance": 0.1, "problem": "mixed", "rows": rows} for s in range(3)]
    (ratios,) = nugget.log_ratios(runs, (1, "learnt"), (0, "fixed"))
    np.testing.assert_allclose(ratios, np.log(2.0))


@pytest.mark.slow
def test_repeats_lower_the_fraction_of_stochastic_training_and_count_as_time() -> None:
    found = nugget.search("misleading", 0.2, 0, 0.0)
    without = [r for r in found if r["repeats"] == 0]
    assert {r["fraction"] for r in without} == {NUGGET_FRACTION}
    learnt = [r["fraction"] for r in found if r["repeats"] == 4 and r["answer"] == "learnt"]
    assert learnt
    assert np.median(learnt) < 0.7
    assert {r["time"] for r in found} == set(nugget.CHECKPOINTS)
    assert (
        sum(
            "| 4 |" in line
            for line in nugget.table([{"chance": 0.2, "problem": "misleading", "rows": found}])
        )
        == 1
    )
