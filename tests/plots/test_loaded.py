"""The figures of a study from its file equal those of the study, also where hyperparameters are not active."""

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ConfigSpace import (
    ConfigurationSpace,
    EqualsCondition,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    ForbiddenGreaterThanClause,
)
from ConfigSpace import Float as Real
from ConfigSpace.hyperparameters import CategoricalHyperparameter

import fabolas
from fabolas import Study
from fabolas.plots import FIGURES
from fabolas.plots.model import model_of
from fabolas.study import LoadedStudy
from tests.plots.cases import SIZE


def space() -> ConfigurationSpace:
    """Momentum only with sgd, and sgd only with low rates."""
    optimizer = CategoricalHyperparameter("optimizer", ["adam", "sgd"])
    rate, momentum = Real("rate", (1e-4, 1.0), default=1e-2, log=True), Real("momentum", (0.0, 1.0))
    space = ConfigurationSpace()
    space.add(optimizer, rate, momentum, Real("decay", (0.0, 1.0)))
    space.add(EqualsCondition(momentum, optimizer, "sgd"))
    high = ForbiddenGreaterThanClause(rate, 0.1)
    space.add(ForbiddenAndConjunction(ForbiddenEqualsClause(optimizer, "sgd"), high))
    return space


def loss(config: dict[str, Any], size: int) -> float:
    bowl = (np.log10(config["rate"]) + 1.0) ** 2 + config["decay"]
    return float(bowl + abs(config.get("momentum", 0.2) - 0.9) + 10 / size)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, LoadedStudy]:
    path: Path = tmp_path_factory.mktemp("figures") / "run.db"
    with Study(space(), SIZE, storage=path, seed=0, overhead=0.0, n_initial=6, effort=0.0) as study:
        for _ in range(16):
            s = study.ask()
            study.tell(s, loss(s.config, **s.fidelity), cost=s.fidelity["size"] / 100)
        for trial in sorted(study.trials, key=lambda trial: trial.loss or 0.0)[:4]:
            s = study.ask_for(trial.config)  # so that it is not too early to predict
            study.tell(s, loss(s.config, **s.fidelity), cost=100.0)
    return study, fabolas.load(path)


def assert_equal(one: Any, other: Any) -> None:
    """Compare records with arrays in them."""
    if is_dataclass(one):
        for field in fields(one):
            assert_equal(getattr(one, field.name), getattr(other, field.name))
    elif isinstance(one, tuple | list):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_equal(a, b)
    elif isinstance(one, np.ndarray | float):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-12)
    else:
        assert one == other


@pytest.mark.parametrize("name", ["importance", "slices", "contours", "curves", "parallel"])
def test_a_figure_from_the_file_equals_that_of_the_study(both: tuple[Study, LoadedStudy], name: str) -> None:
    study, loaded = both
    live, from_file = (FIGURES[name].compute(each) for each in (study, loaded))
    assert_equal(live, from_file)


def test_p_min_and_sobol_indices_from_the_file_are_those_of_the_study(
    both: tuple[Study, LoadedStudy],
) -> None:
    live, from_file = map(model_of, both)
    assert_equal(live.optimum, from_file.optimum)
    assert_equal(live.sensitivity, from_file.sensitivity)
    assert from_file.space.is_legal(from_file.optimum.x).all()
    momentum = from_file.space.names.index("momentum")
    configs = [from_file.space.decode(point)[0] for point in from_file.at_target(from_file.optimum.x)]
    idle = [
        x[momentum]
        for x, config in zip(from_file.optimum.x, configs, strict=True)
        if "momentum" not in config
    ]
    assert set(idle) <= {0.5}
