"""Tunings of real learners as benchmark problems: the surrogates of YAHPO Gym (Pfisterer et al. 2022).

    problem = yahpo.load("path/to/yahpo", "lcbench", "126026")
    loss, seconds = problem(config, epoch=10)

The data are not part of the repository. The directory has one folder per scenario, as in
github.com/slds-lmu/yahpo_data, and `inputs.json`, which names the inputs and outputs of each network in their order.
Needs `onnxruntime`.

A surrogate has no noise of its own. A loss is clipped to [0, 1]. The lowest loss at the target is not known exactly: it
is the lowest of a search with `SEARCHED` evaluations, the same for every run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import ConfigSpace
import numpy as np

import fabolas

Config = dict[str, Any]
MISSING = "#na#"  # the category of an inactive choice; an inactive number is 0
SEARCHED = 6000  # configurations that the search for the lowest loss at the target evaluates
TIMED = 64  # configurations whose median cost at the target is the cost of a full training

# The fidelity that a search may choose, and its smallest value; the others stay at their upper ends.
FIDELITY = {"lcbench": ("epoch", 1), "rbv2_glmnet": ("trainsize", 0.05), "rbv2_aknn": ("trainsize", 0.05)}
FIDELITY |= {"iaml_ranger": ("trainsize", 0.03), "iaml_rpart": ("trainsize", 0.03)}


@dataclass(frozen=True)
class Problem:
    """One task of one scenario, in the form that `experiments.simulate` expects.

    Attributes:
        name: "scenario/task".
        space: hyperparameters with their conditions.
        fidelities: name -> Fidelity; its upper end is the target.
        network: the surrogate.
        noise: standard deviation of the noise that is added to a loss at the target; it grows like 1/sqrt(s).
    """

    name: str
    space: Any
    fidelities: dict[str, fabolas.Fidelity]
    network: Network = field(repr=False)
    noise: float = 0.0

    def __call__(
        self, config: Config, rng: np.random.Generator | None = None, **fidelity: float
    ) -> tuple[float, float]:
        """The loss of an evaluation, and its cost in seconds (in epochs for lcbench)."""
        ((name, fidelity_range),) = self.fidelities.items()
        loss, seconds = loss_and_seconds(
            self.network.scenario, self.network(config | fidelity), fidelity[name]
        )
        if self.noise and rng is not None:
            loss += float(rng.normal()) * self.noise / np.sqrt(fidelity[name] / fidelity_range.high)
        return float(np.clip(loss, 0.0, 1.0)), seconds

    def truth(self, config: Config) -> float:
        """The loss at the target without noise."""
        return self(config, **self.target)[0]

    @property
    def target(self) -> dict[str, float | int]:
        """The fidelities at the target."""
        return {name: fidelity.high for name, fidelity in self.fidelities.items()}

    @cached_property
    def best(self) -> float:
        """The lowest loss at the target that a search found: Sobol points, then steps around the best."""
        space, rng = fabolas.Space(self.space, self.fidelities), np.random.default_rng(2017)
        x = space.sobol(SEARCHED // 2, rng)
        losses = np.array([self._truth_at(space, row) for row in x])
        kept = np.argsort(losses)[:20]
        x, losses = x[kept], losses[kept]
        for step in np.geomspace(0.2, 0.002, 10):
            for _ in range(SEARCHED // 2 // 10):
                start = x[rng.integers(len(x))]
                moved = np.where(
                    rng.random(space.dim) < 0.5, start + step * rng.normal(size=space.dim), start
                )
                value = self._truth_at(space, moved := np.clip(moved, 0.0, 1.0))
                worst = int(np.argmax(losses))
                if value < losses[worst]:
                    x[worst], losses[worst] = moved, value
        return float(losses.min())

    @cached_property
    def full_cost(self) -> float:
        """The median cost of an evaluation at the target."""
        space, rng = fabolas.Space(self.space, self.fidelities), np.random.default_rng(2017)
        configs = [self._config_at(space, row) for row in space.sobol(TIMED, rng)]
        return float(np.median([self(config, **self.target)[1] for config in configs]))

    def _truth_at(self, space: fabolas.Space, x: np.ndarray) -> float:
        return self.truth(self._config_at(space, x))

    def _config_at(self, space: fabolas.Space, x: np.ndarray) -> Config:
        return space.decode(space.snap(np.append(x, np.ones(space.n_fidelities))[None])[0])[0]


@dataclass(frozen=True)
class Network:
    """A surrogate of one scenario for one task: a configuration with its fidelities -> outputs by name."""

    scenario: str
    session: Any = field(repr=False)
    numbers: tuple[str, ...]
    categories: tuple[str, ...]
    outputs: tuple[str, ...]
    codes: Mapping[str, Mapping[str, int]] = field(repr=False)  # category -> code, by name
    fixed: Mapping[str, Any]  # the task, and fidelities that no search chooses

    def __call__(self, values: Mapping[str, Any]) -> dict[str, float]:
        """The outputs at these values; what is inactive is absent."""
        values = {**values, **self.fixed}
        numbers = [[float(values.get(name, 0.0)) for name in self.numbers]]
        categories = [[self.codes[name][str(values.get(name, MISSING))] for name in self.categories]]
        inputs = {
            "x_cont": np.array(numbers, dtype=np.float32),
            "x_cat": np.array(categories, dtype=np.int32),
        }
        (row,) = self.session.run(None, inputs)[0]
        return dict(zip(self.outputs, map(float, row), strict=True))


def loss_and_seconds(scenario: str, outputs: Mapping[str, float], fidelity: float) -> tuple[float, float]:
    """The loss and the cost: the misclassification rate and the seconds, or for lcbench the number of epochs."""
    if scenario == "lcbench":  # the seconds of this network are constant, so they are not usable
        return 1.0 - outputs["val_accuracy"] / 100.0, float(fidelity)
    return outputs["mmce"], max(outputs["timetrain"] + outputs["timepredict"], 1e-3)


def load(directory: str | Path, scenario: str, task: str, *, noise: float = 0.0, **options: bool) -> Problem:
    """One task of a scenario.

    Args:
        directory: where the scenarios are.
        scenario: "lcbench", "rbv2_glmnet", "rbv2_aknn", "iaml_ranger" or "iaml_rpart".
        task: the id of the task, as in `tasks`.
        noise: see `Problem`.
        options: of `fabolas.Fidelity`, for example `reports=True`.

    Raises:
        ValueError: If there is no such scenario or task.
    """
    described = _description(str(directory), scenario)
    known = tasks(directory, scenario)
    if task not in known:
        raise ValueError(f"{scenario} expected one of the tasks {', '.join(known)}, got {task!r}")
    name, low = FIDELITY[scenario]
    entries = {entry["name"]: entry for entry in described.space["hyperparameters"]}
    fixed = {**described.inputs.get("constants", {}), described.inputs["instance"]: task}
    integer = entries[name]["type"] == "uniform_int"
    fidelity = fabolas.Fidelity(low, entries[name]["upper"], integer=integer, **options)
    network = Network(
        scenario,
        _session(str(directory), scenario),
        *(tuple(described.inputs[key]) for key in ("numbers", "categories", "outputs")),
        described.encoding,
        fixed,
    )
    space = _space(described.space, leave_out={*fixed, *described.inputs["fidelities"]})
    return Problem(f"{scenario}/{task}", space, {name: fidelity}, network, noise)


def tasks(directory: str | Path, scenario: str) -> tuple[str, ...]:
    """The ids of the tasks of a scenario that its surrogate knows."""
    described = _description(str(directory), scenario)
    instance = described.inputs["instance"]
    entry = next(e for e in described.space["hyperparameters"] if e["name"] == instance)
    return tuple(choice for choice in entry["choices"] if choice in described.encoding[instance])


@dataclass(frozen=True)
class _Description:
    inputs: dict[str, Any]
    space: dict[str, Any]
    encoding: dict[str, dict[str, int]]


@lru_cache
def _description(directory: str, scenario: str) -> _Description:
    inputs = json.loads((Path(directory) / "inputs.json").read_text())
    if scenario not in FIDELITY or scenario not in inputs:
        raise ValueError(f"expected a scenario among {', '.join(FIDELITY)}, got {scenario!r}")
    folder = Path(directory) / scenario
    read = (json.loads((folder / name).read_text()) for name in ("config_space.json", "encoding.json"))
    return _Description(inputs[scenario], *read)


@lru_cache
def _session(directory: str, scenario: str) -> Any:
    """The network on one thread: a call takes a third of a millisecond."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    path = Path(directory) / scenario / "new_model.onnx"
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _space(described: dict[str, Any], leave_out: set[str]) -> ConfigSpace.ConfigurationSpace:
    """The hyperparameters and conditions of a scenario."""
    space = ConfigSpace.ConfigurationSpace()
    for entry in described["hyperparameters"]:
        if entry["name"] not in leave_out:
            space.add(_hyperparameter(entry))
    for condition in _conditions(described["conditions"]):
        child, parent = space[condition["child"]], space[condition["parent"]]
        space.add(ConfigSpace.EqualsCondition(child, parent, condition["value"]))
    return space


def _conditions(listed: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The conditions, all of which must be equalities."""
    for condition in listed:
        if condition["type"] != "EQ":
            raise ValueError(f"expected conditions of type EQ, got {condition}; add the type to this loader")
        yield condition


def _hyperparameter(entry: dict[str, Any]) -> Any:
    if entry["type"] == "categorical":
        return ConfigSpace.CategoricalHyperparameter(
            entry["name"], entry["choices"], default_value=entry["default"]
        )
    kinds = {
        "uniform_int": ConfigSpace.UniformIntegerHyperparameter,
        "uniform_float": ConfigSpace.UniformFloatHyperparameter,
    }
    return kinds[entry["type"]](
        entry["name"], entry["lower"], entry["upper"], default_value=entry["default"], log=entry["log"]
    )
