"""What one evaluation makes of an objective that returns odd values, changes its configuration, or forks."""

import os
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fabolas
from fabolas.execution import Job, backend_for
from fabolas.execution.evaluate import evaluate
from tests.execution.conftest import Open
from tests.execution.test_contract import job, run


def outcome_of(value: Any) -> tuple[str, float | None]:
    ended = evaluate(lambda config: value, None, Job(0, {}, {}))
    return ended.status, ended.loss


@pytest.mark.parametrize(
    "value",
    [
        np.ma.masked,
        np.ma.array(0.5, mask=True),
        np.ma.array([0.5], mask=[True])[0],
        np.array(None, dtype=object),
        np.array("0.5", dtype=object),
        np.True_,
        np.array(True),
        complex(0.5, 0.0),
        np.complex128(0.5),
        np.timedelta64(5, "ns"),
        np.datetime64(5, "ns"),
        np.array(5, dtype="timedelta64[ns]"),
        Decimal("NaN"),
        Decimal("sNaN"),
        Decimal("Infinity"),
        np.array([0.5]),
        np.float64("nan"),
    ],
    ids=repr,
)
def test_a_value_that_is_no_real_number_is_a_failed_trial(value: Any) -> None:
    assert outcome_of(value) == ("failed", None)


@pytest.mark.parametrize(
    "value",
    [
        np.array(0.5, dtype=object),
        np.ma.array(0.5, mask=False),
        Decimal("0.5"),
        Fraction(1, 2),
        np.float32(0.5),
        np.array(0.5),
        fabolas.Outcome(Decimal("0.5")),  # type: ignore[arg-type]
    ],
    ids=repr,
)
def test_a_real_number_of_another_type_is_a_loss(value: Any) -> None:
    assert outcome_of(value) == ("complete", 0.5)


def greedy(config: dict[str, Any], size: int) -> float:
    config["layers"].append(99)
    config["nested"]["inner"][0] = 7.0
    return float(len(config["layers"]))


def test_an_objective_that_changes_its_configuration_changes_only_its_own_copy(open_backend: Open) -> None:
    for backend in (backend_for(greedy), open_backend(greedy)):
        config = {"layers": [64, 64], "nested": {"inner": [1.0]}}
        for number in range(2):
            assert run(backend, Job(number, config, {"size": 1}))[number].loss == 3.0
        assert config == {"layers": [64, 64], "nested": {"inner": [1.0]}}


def test_a_value_that_cannot_be_copied_reaches_the_objective_as_it_is(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file:
        ended = evaluate(lambda config: float(config["file"] is file), None, Job(0, {"file": file}, {}))
    assert ended.loss == 1.0


def forking(config: dict[str, Any], size: int) -> float:
    child = os.fork()
    if child == 0:
        match config["child"]:
            case "raise":
                raise ZeroDivisionError("in the child")
            case "exit":
                sys.exit(3)
        return -1.0  # a wrong loss
    return float(os.waitpid(child, 0)[1] >> 8)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(
    ("how", "code"), [("return", 0.0), pytest.param("raise", 1.0, marks=pytest.mark.slow), ("exit", 3.0)]
)
def test_a_child_that_the_objective_forks_ends_and_the_trial_is_the_parents(how: str, code: float) -> None:
    backend = backend_for(forking, workers=2)
    try:
        ended = run(backend, *(job(number, child=how) for number in range(4)))
    finally:
        backend.close()
    assert {(one.status, one.loss) for one in ended.values()} == {("complete", code)}


FORKING_RUN = """
import os, sys, fabolas
def objective(config):
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    with open(sys.argv[2], "a") as log:
        log.write("call\\n")
    return config["x"]
result = fabolas.minimize(objective, {"x": fabolas.Float(0, 1)}, max_trials=3, strategy="random",
                          storage=sys.argv[1], progress=False)
print(len(result.trials), "trials")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_continue_the_study_in_this_process(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-c",
        FORKING_RUN,
        str(tmp_path / "study.db"),
        str(tmp_path / "log"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "3 trials\n"
    assert len((tmp_path / "log").read_text().splitlines()) == 6  # the parent and one child in each trial


class Exits(Fraction):
    """Calls sys.exit where a program looks at it."""

    def __float__(self) -> float:
        sys.exit("from __float__")

    def __repr__(self) -> str:
        sys.exit("from __repr__")


def test_a_returned_object_that_calls_sys_exit_fails_its_trial() -> None:
    assert outcome_of(Exits(1, 2)) == ("failed", None)


@pytest.mark.parametrize("value", [1e200, -1e150, np.float64(1e101), fabolas.Outcome])
def test_a_loss_above_1e100_is_a_failed_trial_with_a_sentence(value: Any) -> None:
    returned = (lambda: fabolas.Outcome(1e200)) if value is fabolas.Outcome else lambda: value
    ended = evaluate(lambda config: returned(), None, Job(0, {}, {}))
    assert (ended.status, ended.loss) == ("failed", None)
    assert "a loss must be between -1e+100 and 1e+100, got" in (ended.error or "")
