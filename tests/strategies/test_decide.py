"""The parts of one decision, each against what it is there to find."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from fabolas import Categorical, Float, Space, surrogate
from fabolas.acquisition.entropy import Draws, Representers, by_moments, by_sampling
from fabolas.acquisition.pmin import entropy
from fabolas.effort import Effort
from fabolas.strategies import decide
from fabolas.strategies.decide import Choice, Position
from fabolas.strategies.fabolas import Fabolas


def position(
    d: int,
    n: int,
    *,
    seed: int = 0,
    effort: float = 0.3,
    affordable: float | None = None,
    noise: float = 0.01,
) -> Position:
    """After n trials of a smooth bowl in d dimensions, a fifth of them at the target, where they take a second."""
    rng = np.random.default_rng(seed)
    space = Space({f"x{i}": Float(0.0, 1.0) for i in range(d)}, {"size": (100, 10_000)})
    strategy = Fabolas(space)
    points = rng.random((n, d + 1))
    points[: n // 5, d] = 1.0
    points = space.snap(points)
    bowl = np.sum((points[:, :d] - 0.4) ** 2, axis=1)
    losses = np.exp(-2.0 + bowl + 0.5 * (1.0 - points[:, d]) + noise * rng.normal(size=n))
    costs = np.exp(4.0 * (points[:, d] - 1.0))
    level = Effort.at(effort, n)
    data = surrogate.Data(points, losses, costs, np.zeros(n, dtype=bool))
    models, _, _ = surrogate.fit(strategy.spec, data, None, 10, level.K, rng)
    x = points[:, :d]
    return Position.of(strategy.region, models, x, x[: n // 5], 0.1, affordable, level, strategy.rules)


def improving(at: Position, check: bool = True) -> Choice | None:
    rng = np.random.default_rng(1)
    return decide.most_improving(at, decide.pool(at, rng), rng, check=check)


def predicted(at: Position, x: np.ndarray) -> np.ndarray:
    mean: np.ndarray = at.surrogate.loss.mean_of(at.region.at_target(x)).mean(axis=0)
    return mean


@pytest.mark.parametrize("d", [2, 6, 10])
def test_the_pool_holds_what_the_models_predict_to_be_the_best(d: int) -> None:
    at = position(d, 30 + 5 * d)
    pool = decide.pool(at, np.random.default_rng(1))
    found = predicted(at, pool).min()
    start = pool[int(np.argmin(predicted(at, pool)))]
    bounds = [(0.0, 1.0)] * d
    truth = minimize(lambda x: predicted(at, x[None])[0], start, method="L-BFGS-B", bounds=bounds).fun
    tried = predicted(at, at.ranked[:1])[0]
    assert found - truth < 0.1 * (tried - truth) + 0.01


def test_climbing_leaves_categories_alone() -> None:
    space = Space({"x": Float(0.0, 1.0), "kind": Categorical(("a", "b", "c"))})
    region = Fabolas(space).region

    def value(x: np.ndarray) -> np.ndarray:
        height: np.ndarray = x[:, 1] - (x[:, 0] - 0.7) ** 2
        return height

    top = decide._climb(value, np.array([0.2, 0.5]), region)
    np.testing.assert_allclose(top, [0.7, 0.5], atol=1e-3)


@pytest.mark.parametrize("d", [2, 6])
def test_expected_improvement_is_at_a_peak(d: int) -> None:
    at = position(d, 30 + 5 * d)
    choice = improving(at, check=False)
    assert choice is not None
    loss, x = at.surrogate.loss, choice.point[:d]
    best = loss.mean_of(at.region.at_target(at.to_beat)).min(axis=1)

    def log_improvement(x: np.ndarray) -> np.ndarray:
        from fabolas.acquisition.improvement import log_expected_improvement

        there = loss.project(at.region.at_target(x))
        each = log_expected_improvement(loss.mean(there), loss.variance(there), best[:, None])
        averaged: np.ndarray = np.logaddexp.reduce(each, axis=0) - np.log(len(each))
        return averaged

    beside = np.clip(x + 0.03 * np.random.default_rng(2).normal(size=(300, d)), 0.0, 1.0)
    assert log_improvement(beside).max() < log_improvement(x[None])[0] + 0.02


def test_what_is_to_be_improved_on_was_measured_at_the_target_if_anything_was() -> None:
    at = position(2, 40)
    assert len(at.to_beat) == 8  # a fifth of the trials
    there = at.surrogate.loss.points[at.surrogate.loss.points[:, 2] == 1.0, :2]
    assert {tuple(x) for x in at.to_beat} == {tuple(x) for x in there}
    assert (np.diff(predicted(at, at.to_beat)) >= 0.0).all()
    none = Position.of(at.region, at.surrogate, at.ranked, np.empty((0, 2)), 0.1, None, at.effort, at.rules)
    np.testing.assert_array_equal(none.to_beat, at.ranked[: decide.RIVALS])


def test_a_check_is_of_what_is_surely_better_than_all_that_was_measured() -> None:
    """At the target only the hills were measured; the valleys are known from subsets that are nearly as large."""
    rng = np.random.default_rng(0)
    space = Space({"x": Float(0.0, 1.0)}, {"size": (100, 10_000)})
    strategy = Fabolas(space)
    x = np.concatenate([np.tile(np.linspace(0.0, 0.6, 17), 2), [0.05, 0.1, 0.35, 0.4]])
    points = space.snap(np.column_stack([x, np.repeat([0.7, 0.95, 1.0], [17, 17, 4])]))
    losses = np.exp(-2.0 + 0.5 * np.sin(2.0 * np.pi * x / 0.3))
    data = surrogate.Data(points, losses, points[:, 1], np.zeros(38, dtype=bool))
    level = Effort.at(0.3, 38)
    models, _, _ = surrogate.fit(strategy.spec, data, None, 20, level.K, rng)
    at = Position.of(
        strategy.region, models, points[:, :1], points[34:, :1], 0.1, None, level, strategy.rules
    )
    check, elsewhere = improving(at), improving(replace(at, measured=at.ranked[:1]))
    assert check is not None
    assert min(abs(check.point[0] - valley) for valley in (0.225, 0.525)) < 0.03
    # It is no improvement on itself: what is seen there already would be left for what nobody knows.
    assert elsewhere is not None
    assert elsewhere.point[0] > 0.6


def test_a_check_surely_fits_into_what_is_left_and_if_none_does_there_is_none() -> None:
    free = improving(position(2, 40))
    assert free is not None
    enough = position(2, 40, affordable=2.0)
    choice = improving(enough)
    assert choice is not None
    assert enough.surrogate.seconds_at_most(choice.point[None])[0] <= 2.0
    assert improving(position(2, 40, affordable=0.5)) is None
    # Expected improvement on all the data has nothing else to do.
    assert improving(position(2, 40, affordable=0.5), check=False) is not None


@pytest.mark.parametrize("maximizer", ["direct", "cma"])
@pytest.mark.parametrize("d", [2, 6])
def test_direct_and_cma_really_search_at_any_effort(maximizer: str, d: int) -> None:
    at = position(d, 30, effort=0.3)
    at = replace(at, rules=replace(at.rules, maximizer=maximizer))
    asked = []

    def value(points: np.ndarray) -> np.ndarray:
        asked.extend(points)
        return -np.sum((points - 0.37) ** 2, axis=1)

    start = np.random.default_rng(0).random((6, d + 1))
    found = decide._maximise(value, start, at, np.random.default_rng(1))
    assert len(asked) > 6 + 10 * (d + 1)
    assert value(found[None])[0] > 0.5 * value(start).max()  # values are negative: at most half as far away


@pytest.mark.parametrize("maximizer", ["candidates", "direct", "cma"])
def test_what_is_decided_is_affordable_whatever_the_maximizer(maximizer: str) -> None:
    at = position(2, 40, effort=1.0, affordable=0.05)
    at = replace(at, rules=replace(at.rules, maximizer=maximizer))
    rng = np.random.default_rng(1)
    choice = decide.most_informative(at, decide.pool(at, rng), rng)
    assert choice.seconds <= 0.05 * (1 + 1e-9)


def test_information_that_nobody_can_pay_for_does_not_count() -> None:
    found = {}
    for affordable in (None, 0.02):  # a trial on the smallest subset takes 0.018 s
        at = position(2, 40, affordable=affordable)
        rng = np.random.default_rng(1)
        found[affordable] = decide.most_informative(at, decide.pool(at, rng), rng).information
    assert 0.0 < found[0.02] < 0.8 * found[None]


def crowded(n: int = 200) -> tuple[Representers, Draws, np.ndarray]:
    """Late in a quiet run of two dimensions: representers close together, all but known."""
    rng = np.random.default_rng(0)
    at = position(2, n, noise=1e-3, effort=0.5)
    x = 0.4 + 0.01 * rng.normal(size=(25, 2))
    representers = Representers.of(at.surrogate.loss, at.region.at_target(x))
    candidates = np.column_stack([0.4 + 0.02 * rng.normal(size=(60, 2)), rng.random(60)])
    return representers, Draws.of(representers, 128, rng), candidates


def test_representers_explain_no_more_of_an_outcome_than_there_is() -> None:
    representers, _, candidates = crowded()
    _, a = representers.influence(candidates)
    loss = representers.posterior
    variance = loss.variance(loss.project(candidates))
    share = variance / (variance + loss.noise(candidates))
    assert (np.sum(a**2, axis=2) <= share * 1.01 + 1e-9).all()


@pytest.mark.parametrize("estimate", [by_moments, by_sampling])
def test_information_is_between_nothing_and_all_there_is_to_know(estimate: object) -> None:
    representers, draws, candidates = crowded()
    information = estimate(representers, draws)(candidates)  # type: ignore[operator]
    assert (information >= 0.0).all()
    assert (information <= entropy(draws.pmin)[:, None]).all()


def test_if_the_best_is_known_nothing_informs() -> None:
    at = position(2, 60)
    corners = np.array([[0.4, 0.4], [0.0, 1.0], [1.0, 1.0]])
    representers = Representers.of(at.surrogate.loss, at.region.at_target(corners))
    draws = Draws.of(representers, 128, np.random.default_rng(0))
    assert (draws.labels == 0).all()
    assert (by_moments(representers, draws)(np.random.default_rng(1).random((50, 3))) == 0.0).all()


@pytest.mark.parametrize("f", [1, 2, 3])
def test_the_target_is_among_the_fidelities_that_are_considered(f: int) -> None:
    space = Space({"x": Float(0.0, 1.0)}, {f"f{i}": (10, 1000) for i in range(f)})
    u = Fabolas(space).draw_fidelities(2000, np.random.default_rng(0))
    assert 0.1 < (u == 1.0).all(axis=1).mean() < 0.25
    assert 0.1 < (u == 0.0).all(axis=1).mean() < 0.25
    assert ((u > 0.0) & (u < 1.0)).mean() > 0.4
