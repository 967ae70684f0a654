"""The families with a known truth: their best is the best."""

import numpy as np
import pytest

from experiments.synthetic import FAMILIES
from fabolas import Space


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("seed", [0, 1])
def test_nothing_is_better_than_the_best_and_something_comes_near_it(name: str, seed: int) -> None:
    problem = FAMILIES[name](seed)
    space = Space(problem.space, problem.fidelities)
    rng = np.random.default_rng(seed)
    near = points = rng.random((300, space.dim))
    for width in (0.3, 0.1, 0.03, 0.01, 0.003):  # a walk downhill in the cube
        losses = [problem.truth(space.decode(np.append(x, 1.0))[0]) for x in near]
        assert min(losses) >= problem.best - 1e-9
        points = near[np.argsort(losses)[:15]]
        steps = points[rng.integers(15, size=300)] + width * rng.normal(size=(300, space.dim))
        near = np.concatenate([points, np.clip(steps, 0.0, 1.0)])
    found = min(problem.truth(space.decode(np.append(x, 1.0))[0]) for x in points)
    assert found - problem.best < 0.02


@pytest.mark.parametrize("name", FAMILIES)
def test_measurements_are_noisy_around_what_they_measure_and_costs_grow_with_the_size(name: str) -> None:
    problem = FAMILIES[name](0)
    space = Space(problem.space, problem.fidelities)
    config, _ = space.decode(np.append(np.full(space.dim, 0.4), 1.0))
    low, high = problem.fidelities["size"]
    rng = np.random.default_rng(0)
    measured = np.array([problem(config, size=high, rng=rng) for _ in range(400)])
    # The mean of 400 logarithms is within four of its deviations, which are problem.noise / 20.
    assert np.log(measured[:, 0]).mean() == pytest.approx(
        np.log(problem.truth(config)), abs=problem.noise / 5
    )
    assert np.log(measured[:, 0]).std() == pytest.approx(problem.noise, rel=0.15)
    small = np.array([problem(config, size=low, rng=rng) for _ in range(400)])
    assert np.log(small[:, 0]).std() == pytest.approx(problem.noise * np.sqrt(high / low), rel=0.15)
    assert small[:, 1].max() < measured[:, 1].min()


def test_stochastic_training_differs_between_repeats_by_the_same_at_every_size() -> None:
    problem = FAMILIES["rugged"](0).stochastic(0.2)
    space = Space(problem.space, problem.fidelities)
    config, _ = space.decode(np.append(np.full(space.dim, 0.4), 1.0))
    rng = np.random.default_rng(0)
    for size in problem.fidelities["size"]:
        measured = np.log([problem(config, size=size, rng=rng)[0] for _ in range(400)])
        noise = problem.noise * np.sqrt(problem.fidelities["size"][1] / size)
        assert measured.std() == pytest.approx(np.hypot(noise, 0.2), rel=0.15)
    assert problem.truth(config) == FAMILIES["rugged"](0).truth(config)
