"""The parts of one decision, each against what it is there to find."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from fabolas import Categorical, Float, Space, surrogate
from fabolas.acquisition.entropy import (
    Information,
    PosteriorSamples,
    entropy,
    gaussian_information,
    monte_carlo_information,
)
from fabolas.acquisition.improvement import log_expected_improvement
from fabolas.acquisition.representers import Representers
from fabolas.optimize import Maximizer, candidate_search, cma_es, direct, direct_and_cma_es
from fabolas.strategies import acquire as decide
from fabolas.strategies.acquire import AcquisitionContext, rank_by_prediction
from fabolas.strategies.candidate import Candidate
from fabolas.strategies.effort import Effort
from fabolas.strategies.fabolas import Fabolas
from fabolas.strategies.models import full_domain


def position(
    d: int,
    n: int,
    *,
    seed: int = 0,
    effort: float = 0.3,
    affordable: float | None = None,
    noise: float = 0.01,
) -> AcquisitionContext:
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
    models, _, _ = surrogate.fit(strategy.models.fitter.prior, data, None, 10, level.K, rng)
    x = points[:, :d]
    return context(strategy, models, x, x[: n // 5], affordable, level)


def context(
    strategy: Fabolas,
    models: surrogate.Surrogate,
    evaluated: np.ndarray,
    measured: np.ndarray,
    max_cost: float | None,
    effort: Effort,
) -> AcquisitionContext:
    tried, there = (rank_by_prediction(models, strategy.models.domain, x) for x in (evaluated, measured))
    return AcquisitionContext(
        strategy.models.domain, models, tried, there, 0.1, max_cost, effort, strategy.models.acquisition
    )


def improving(at: AcquisitionContext) -> Candidate | None:
    rng = np.random.default_rng(1)
    return decide.maximize_improvement(at, decide.configuration_pool(at, rng), rng)


def predicted(at: AcquisitionContext, x: np.ndarray) -> np.ndarray:
    mean: np.ndarray = at.surrogate.loss.mean_of(at.domain.at_target(x)).mean(axis=0)
    return mean


@pytest.mark.parametrize("d", [2, 6, 10])
def test_the_pool_holds_what_the_models_predict_to_be_the_best(d: int) -> None:
    at = position(d, 30 + 5 * d)
    pool = decide.configuration_pool(at, np.random.default_rng(1))
    found = predicted(at, pool).min()
    start = pool[int(np.argmin(predicted(at, pool)))]
    bounds = [(0.0, 1.0)] * d
    truth = minimize(lambda x: predicted(at, x[None])[0], start, method="L-BFGS-B", bounds=bounds).fun
    tried = predicted(at, at.evaluated_by_mean[:1])[0]
    assert found - truth < 0.1 * (tried - truth) + 0.01


def test_climbing_leaves_categories_alone() -> None:
    space = Space({"x": Float(0.0, 1.0), "kind": Categorical(("a", "b", "c"))})
    domain = full_domain(space)

    def value(x: np.ndarray) -> np.ndarray:
        height: np.ndarray = x[:, 1] - (x[:, 0] - 0.7) ** 2
        return height

    top = decide._climb(value, np.array([0.2, 0.5]), domain)
    np.testing.assert_allclose(top, [0.7, 0.5], atol=1e-3)


def test_the_pool_holds_neighbours_of_the_best_configurations() -> None:
    """In six dimensions a random configuration is that near with a probability of 0.2**6."""
    at = position(6, 60)
    pool = decide.configuration_pool(at, np.random.default_rng(1))
    lowest = pool[np.argmin(predicted(at, pool))]
    for centre in (*at.evaluated_by_mean[:5], lowest):
        distance = np.abs(pool - centre).max(axis=1)
        assert ((distance > 0.0) & (distance < 0.1)).any()


@pytest.mark.parametrize("d", [2, 6])
def test_expected_improvement_is_at_a_peak_wherever_the_search_starts(d: int) -> None:
    at = position(d, 30 + 5 * d)
    loss, best = at.surrogate.loss, at.lowest_mean_measured()

    def log_improvement(x: np.ndarray) -> float:
        there = loss.project(at.domain.at_target(x[None]))
        each = log_expected_improvement(loss.mean(there), loss.variance(there), best[:, None])[:, 0]
        return float(np.logaddexp.reduce(each) - np.log(len(each)))

    start = np.random.default_rng(2).random((30, d))  # the search alone ends 0.2 to 0.7 below the peak
    choice = decide.maximize_improvement(at, start, np.random.default_rng(1))
    assert choice is not None
    x, bounds = choice.point[:d], [(0.0, 1.0)] * d
    peak = minimize(lambda x: -log_improvement(x), x, method="L-BFGS-B", bounds=bounds, options={"eps": 1e-5})
    assert log_improvement(x) > -peak.fun - 0.01


def bell(points: np.ndarray) -> np.ndarray:
    height: np.ndarray = np.exp(-5.0 * np.sum((points - 0.37) ** 2, axis=1))
    return height


def with_information_of_a_bell(
    at: AcquisitionContext, **config: object
) -> tuple[AcquisitionContext, list[np.ndarray]]:
    """The context with information of a known form, and a list that gets the points where it is evaluated."""
    evaluated: list[np.ndarray] = []

    def estimator(*_: object, **__: object) -> Callable[[np.ndarray], np.ndarray]:
        def information(points: np.ndarray) -> np.ndarray:
            evaluated.append(points)
            return bell(points)[None]

        return information

    known = replace(at.config, information_estimator=estimator, divide_by_cost=False, **config)  # type: ignore[arg-type]
    return replace(at, config=known), evaluated


@pytest.mark.parametrize("d", [2, 6])
def test_the_most_informative_candidates_are_refined(d: int) -> None:
    """Further points around the best candidates are better than these."""
    at, evaluated = with_information_of_a_bell(position(d, 30, effort=1.0))
    rng = np.random.default_rng(1)
    choice = decide.maximize_information(at, decide.configuration_pool(at, rng), rng)
    start, *refined = evaluated
    assert len(start) == at.effort.n_estimated
    assert sum(map(len, refined)) == at.effort.n_refined > 0
    assert bell(choice.point[None])[0] > 1.1 * bell(start).max()


def test_the_final_choice_uses_the_samples_of_screening_or_more() -> None:
    at, seen = position(2, 30), []

    def spy(
        representers: Representers, samples: PosteriorSamples, *rest: int, **options: bool
    ) -> Information:
        seen.append(len(samples.Z))
        return monte_carlo_information(representers, samples, *rest, **options)

    for times in (1, 4):
        config = replace(at.config, information_estimator=spy, final_samples=times)
        rng = np.random.default_rng(1)
        decide.maximize_information(replace(at, config=config), decide.configuration_pool(at, rng), rng)
    assert seen == [at.effort.n_samples, 4 * at.effort.n_samples]


def test_what_is_to_be_improved_on_was_measured_at_the_target_if_anything_was() -> None:
    at = position(2, 40)
    assert len(at.measured_or_pending) == 8  # a fifth of the trials
    there = at.surrogate.loss.points[at.surrogate.loss.points[:, 2] == 1.0]
    np.testing.assert_allclose(at.lowest_mean_measured(), at.surrogate.loss.mean_of(there).min(axis=1))
    assert (np.diff(predicted(at, at.measured_or_pending)) >= 0.0).all()
    none = replace(at, measured_or_pending=np.empty((0, 2)))
    everything = at.surrogate.loss.mean_of(at.domain.at_target(at.evaluated_by_mean[: decide.N_BEST]))
    np.testing.assert_allclose(none.lowest_mean_measured(), everything.min(axis=1))


def test_a_target_evaluation_takes_what_is_predicted_better_than_all_that_was_measured() -> None:
    """At the target only the hills were measured; the valleys are known from subsets that are nearly as large."""
    rng = np.random.default_rng(0)
    space = Space({"x": Float(0.0, 1.0)}, {"size": (100, 10_000)})
    strategy = Fabolas(space)
    x = np.concatenate([np.tile(np.linspace(0.0, 0.6, 17), 2), [0.05, 0.1, 0.35, 0.4]])
    points = space.snap(np.column_stack([x, np.repeat([0.7, 0.95, 1.0], [17, 17, 4])]))
    losses = np.exp(-2.0 + 0.5 * np.sin(2.0 * np.pi * x / 0.3))
    data = surrogate.Data(points, losses, points[:, 1], np.zeros(38, dtype=bool))
    level = Effort.at(0.3, 38)
    models, _, _ = surrogate.fit(strategy.models.fitter.prior, data, None, 20, level.K, rng)
    at = context(strategy, models, points[:, :1], points[34:, :1], None, level)
    found, elsewhere = improving(at), improving(replace(at, measured_or_pending=at.evaluated_by_mean[:1]))
    assert found is not None
    assert min(abs(found.point[0] - valley) for valley in (0.225, 0.525)) < 0.03
    # It is no improvement on itself: once it is measured, an unknown configuration is taken.
    assert elsewhere is not None
    assert elsewhere.point[0] > 0.6


def test_a_target_evaluation_fits_by_its_cost_limit_and_if_none_does_there_is_none() -> None:
    free = improving(position(2, 40))
    assert free is not None
    enough = position(2, 40, affordable=2.0)
    choice = improving(enough)
    assert choice is not None
    assert enough.surrogate.cost_limit(choice.point[None])[0] <= 2.0
    assert improving(position(2, 40, affordable=0.5)) is None
    # Expected improvement on all the data has nothing else to do.
    short = position(2, 40, affordable=0.5)
    pool = decide.configuration_pool(short, np.random.default_rng(1))
    some = short.allowing_some(short.domain.at_target(pool))
    assert decide.maximize_improvement(some, pool, np.random.default_rng(1)) is not None


@pytest.mark.parametrize("maximizer", [direct, cma_es, direct_and_cma_es])
@pytest.mark.parametrize("d", [2, 6])
def test_direct_and_cma_really_search_at_any_effort(maximizer: Maximizer, d: int) -> None:
    options = {"maximizer": maximizer, "evaluations_per_dimension": 20}
    at, evaluated = with_information_of_a_bell(position(d, 30, effort=0.3), **options)
    rng = np.random.default_rng(1)
    choice = decide.maximize_information(at, decide.configuration_pool(at, rng), rng)
    start, *further = evaluated
    assert sum(map(len, further)) > 10 * (d + 1)
    # At most half as far away, as the logarithm of the bell is minus the squared distance.
    assert np.log(bell(choice.point[None]))[0] > 0.5 * np.log(bell(start)).max()


@pytest.mark.parametrize("maximizer", [candidate_search, direct, cma_es])
def test_what_is_decided_is_affordable_whatever_the_maximizer(maximizer: Maximizer) -> None:
    at = position(2, 40, effort=1.0, affordable=0.05)
    at = replace(at, config=replace(at.config, maximizer=maximizer, evaluations_per_dimension=20))
    rng = np.random.default_rng(1)
    choice = decide.maximize_information(at, decide.configuration_pool(at, rng), rng)
    assert choice.cost <= 0.05 * (1 + 1e-9)


def test_an_evaluation_may_not_take_too_long_by_its_cost_limit() -> None:
    at = position(2, 40)

    def chosen(max_cost: float | None) -> np.ndarray:
        rng = np.random.default_rng(1)
        limited = replace(at, max_cost=max_cost)
        return decide.maximize_information(limited, decide.configuration_pool(limited, rng), rng).point[None]

    free = chosen(None)
    between = float(np.sqrt(at.surrogate.predict_cost(free) * at.surrogate.cost_limit(free))[0])
    assert at.surrogate.predict_cost(free)[0] < between < at.surrogate.cost_limit(free)[0]
    assert not replace(at, max_cost=between).fits(free)[0]
    assert at.surrogate.cost_limit(chosen(between))[0] <= between


def test_if_no_cost_limit_fits_the_cheapest_point_is_taken() -> None:
    at = position(2, 40, affordable=1e-6)
    rng = np.random.default_rng(1)
    choice = decide.maximize_information(at, decide.configuration_pool(at, rng), rng)
    assert choice.point[2] < 0.1  # near the smallest size


def test_information_that_nobody_can_pay_for_does_not_count() -> None:
    found = {}
    for affordable in (None, 0.02):  # a trial on the smallest subset takes 0.018 s
        at = position(2, 40, affordable=affordable)
        rng = np.random.default_rng(1)
        found[affordable] = decide.maximize_information(
            at, decide.configuration_pool(at, rng), rng
        ).max_information
    assert 0.0 < found[0.02] < 0.8 * found[None]


def crowded(n: int = 200) -> tuple[Representers, PosteriorSamples, np.ndarray]:
    """Late in a quiet run of two dimensions: representers close together, all but known."""
    rng = np.random.default_rng(0)
    at = position(2, n, noise=1e-3, effort=0.5)
    x = 0.4 + 0.01 * rng.normal(size=(25, 2))
    representers = Representers.at_points(at.surrogate.loss, at.domain.at_target(x))
    candidates = np.column_stack([0.4 + 0.02 * rng.normal(size=(60, 2)), rng.random(60)])
    return representers, PosteriorSamples.draw(representers, 128, rng), candidates


@pytest.mark.slow
def test_representers_explain_no_more_of_an_outcome_than_there_is() -> None:
    representers, _, candidates = crowded()
    _, a = representers.influence(candidates)
    loss = representers.posterior
    variance = loss.variance(loss.project(candidates))
    share = variance / (variance + loss.noise(candidates))
    assert (np.sum(a**2, axis=2) <= share * 1.01 + 1e-9).all()


@pytest.mark.parametrize("estimate", [gaussian_information, monte_carlo_information])
def test_information_is_between_nothing_and_all_there_is_to_know(estimate: object) -> None:
    representers, draws, candidates = crowded()
    information = estimate(representers, draws)(candidates)  # type: ignore[operator]
    assert (information >= 0.0).all()
    assert (information <= entropy(draws.pmin)[:, None]).all()


def test_if_the_best_is_known_nothing_informs() -> None:
    at = position(2, 60)
    corners = np.array([[0.4, 0.4], [0.0, 1.0], [1.0, 1.0]])
    representers = Representers.at_points(at.surrogate.loss, at.domain.at_target(corners))
    draws = PosteriorSamples.draw(representers, 128, np.random.default_rng(0))
    assert (draws.labels == 0).all()
    assert (gaussian_information(representers, draws)(np.random.default_rng(1).random((50, 3))) == 0.0).all()


@pytest.mark.parametrize("f", [1, 2, 3])
def test_the_target_is_among_the_fidelities_that_are_considered(f: int) -> None:
    space = Space({"x": Float(0.0, 1.0)}, {f"f{i}": (10, 1000) for i in range(f)})
    u = full_domain(space).draw_fidelities(2000, np.random.default_rng(0))
    assert 0.1 < (u == 1.0).all(axis=1).mean() < 0.25
    assert 0.1 < (u == 0.0).all(axis=1).mean() < 0.25
    assert ((u > 0.0) & (u < 1.0)).mean() > 0.4
