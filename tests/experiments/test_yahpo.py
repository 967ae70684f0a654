"""The loader of YAHPO scenarios, on a small scenario with the same files and a formula in place of the network."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import fabolas
from experiments import yahpo

INPUTS = {
    "lcbench": {
        "numbers": ["epoch", "rate"],
        "categories": ["task", "rule", "extra"],
        "outputs": ["time", "val_accuracy"],
        "fidelities": ["epoch"],
        "instance": "task",
    }
}
SPACE = {
    "hyperparameters": [
        {"name": "task", "type": "categorical", "choices": ["7", "8"], "default": "7"},
        {"name": "epoch", "type": "uniform_int", "log": False, "lower": 1, "upper": 52, "default": 26},
        {"name": "rate", "type": "uniform_float", "log": True, "lower": 0.01, "upper": 1.0, "default": 0.1},
        {"name": "rule", "type": "categorical", "choices": ["a", "b"], "default": "a"},
        {"name": "extra", "type": "categorical", "choices": ["y", "z"], "default": "y"},
    ],
    "conditions": [{"child": "extra", "parent": "rule", "type": "EQ", "value": "b"}],
}
ENCODING = {
    "task": {"#na#": 0, "7": 1, "8": 2},
    "rule": {"#na#": 0, "a": 1, "b": 2},
    "extra": {"#na#": 0, "y": 1, "z": 2},
}


class Formula:
    """Accuracy 90 - 100 (log10 rate + 1)^2 + epoch / 52 - 10 (task - 1); it keeps its last inputs."""

    def run(self, _: None, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
        self.inputs = inputs
        (epoch, rate), (task, *_rest) = inputs["x_cont"][0], inputs["x_cat"][0]
        accuracy = 90.0 - 100.0 * (np.log10(rate) + 1.0) ** 2 + epoch / 52.0 - 10.0 * (task - 1)
        return [np.array([[1.0, accuracy]])]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Formula]:
    (tmp_path / "lcbench").mkdir()
    (tmp_path / "inputs.json").write_text(json.dumps(INPUTS))
    (tmp_path / "lcbench" / "config_space.json").write_text(json.dumps(SPACE))
    (tmp_path / "lcbench" / "encoding.json").write_text(json.dumps(ENCODING))
    formula = Formula()
    monkeypatch.setattr(yahpo, "_session", lambda directory, scenario: formula)
    return tmp_path, formula


def test_loss_and_cost_are_those_of_the_formula(directory: tuple[Path, Formula]) -> None:
    problem = yahpo.load(directory[0], "lcbench", "8")
    loss, cost = problem({"rate": 0.1, "rule": "a"}, epoch=26)
    assert loss == pytest.approx(1.0 - (90.0 + 0.5 - 10.0) / 100.0)
    assert cost == 26.0
    assert problem.truth({"rate": 0.1, "rule": "a"}) == pytest.approx(1.0 - 0.81)


def test_inactive_categories_are_encoded_as_missing(directory: tuple[Path, Formula]) -> None:
    path, formula = directory
    problem = yahpo.load(path, "lcbench", "7")
    problem({"rate": 0.1, "rule": "a"}, epoch=1)
    assert formula.inputs["x_cat"].tolist() == [[1, 1, 0]]
    problem({"rate": 0.1, "rule": "b", "extra": "z"}, epoch=1)
    assert formula.inputs["x_cat"].tolist() == [[1, 2, 2]]


def test_the_space_has_neither_task_nor_fidelity(directory: tuple[Path, Formula]) -> None:
    problem = yahpo.load(directory[0], "lcbench", "7")
    space = fabolas.Space(problem.space, problem.fidelities)
    assert set(problem.space) == {"rate", "rule", "extra"}
    assert list(space.fidelities) == ["epoch"]
    assert problem.full_cost == 52.0


def test_the_lowest_loss_is_found(directory: tuple[Path, Formula], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yahpo, "SEARCHED", 600)
    problem = yahpo.load(directory[0], "lcbench", "7")
    assert problem.best == pytest.approx(0.09, abs=1e-4)


def test_unknown_tasks_and_scenarios_are_refused(directory: tuple[Path, Formula]) -> None:
    with pytest.raises(ValueError, match="expected one of the tasks 7, 8, got '9'"):
        yahpo.load(directory[0], "lcbench", "9")
    with pytest.raises(ValueError, match="expected a scenario among"):
        yahpo.load(directory[0], "nb301", "9")
