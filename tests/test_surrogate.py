"""The models against functions of the paper's form, and against what a careless model would do."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fabolas import Float, Study
from fabolas.gp.kernels import between
from fabolas.model_spec import COST_LEVEL_STD, COST_TERMS, NUGGET_FRACTION
from fabolas.surrogate import Data, Surrogate, build, fit, mixture_quantile
from fabolas.transforms import FitTransform, identity_transform, log_excess_transform, log_transform
from tests.helpers.models import surrogate_prior

RNG = np.random.default_rng(0)


def data(
    n: int, seed: int = 0, largest: float = 1.0, noise: float = 0.0
) -> tuple[Data, np.ndarray, np.ndarray, np.ndarray]:
    """f(x, u) = g(x) + (1 - u)^2 h(x) and c ~ n^2 exp(x), on log-scaled sizes of which u is the coordinate."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, 1))
    u = rng.uniform(0.0, largest, n)
    losses = loss(x[:, 0], u) * np.exp(noise * rng.normal(size=n))
    costs = np.exp(np.log(2.0) + x[:, 0] + 2.0 * np.log(1000.0) * (u - 1.0))  # sizes from 1/1000
    points = np.column_stack([x, u])
    return Data(points, losses, costs, np.zeros(n, dtype=bool)), points, losses, costs


def loss(x: np.ndarray, u: np.ndarray) -> np.ndarray:
    return np.exp(-1.0 + (x - 0.6) ** 2 * 3.0 + (1 - u) ** 2 * (0.8 + 0.3 * np.sin(4 * x)))


def fitted(found: Data, **options: Any) -> Surrogate:
    prior = surrogate_prior((0,), **{"smallest": 0.001, "noise_by_size": False, "cost_terms": (), **options})
    models, _, _ = fit(prior, found, None, 15, 10, np.random.default_rng(1))
    return models


def test_fitted_on_small_sizes_it_predicts_the_target_within_its_error_bars() -> None:
    # Sizes up to a quarter of the data: u <= 1 + log(1/4) / log(1000) = 0.8 on a thousandfold range.
    found, *_ = data(60, largest=0.8, noise=0.01)
    models = fitted(found)
    grid = np.linspace(0.05, 0.95, 19)
    mean, variance = models.predict_loss(np.column_stack([grid, np.ones(19)]))
    truth = models.transform.forward(loss(grid, np.ones(19)))
    z = (truth - mean) / np.sqrt(variance)
    assert np.abs(z).max() < 3.0
    assert np.sqrt(variance).max() < 0.5  # in units of the losses' spread: it does claim to know something


def test_the_exponent_of_a_power_law_of_costs_is_recovered() -> None:
    found, *_ = data(40, largest=0.5)
    models = fitted(found)
    at = np.array([[0.5, 0.6], [0.5, 1.0]])
    low, high = np.log(models.predict_cost(at))
    assert (high - low) / (0.4 * np.log(1000.0)) == pytest.approx(2.0, abs=0.1)


def test_the_factor_of_a_configuration_walks_away_mostly_near_the_target() -> None:
    gp = surrogate_prior((0,)).cost_gp()
    rng = np.random.default_rng(3)
    points, others = rng.random((2, 6, 2))
    theta = rng.normal(size=(1, len(gp.kernel.priors)))
    log_length, log_amplitude, log_v = theta[0]
    r = np.sqrt(5.0) * np.abs(points[:, None, 0] - others[None, :, 0]) / np.exp(log_length)
    over_x = (1.0 + r + r**2 / 3.0) * np.exp(-r)
    walk = np.minimum(points[:, None, 1], others[None, :, 1]) ** 3
    expected = over_x * (np.exp(log_amplitude) + np.exp(log_v) * walk) + COST_LEVEL_STD**2
    np.testing.assert_allclose(between(gp.kernel, points, others)(theta)[0], expected, rtol=1e-10)


def test_the_quantile_of_a_mixture_is_that_of_its_samples() -> None:
    rng = np.random.default_rng(0)
    means, deviations = np.array([[0.0, 1.0], [3.0, 1.0], [-1.0, 1.0]]), np.array([[1.0, 2.0]] * 3)
    samples = means[:, None] + deviations[:, None] * rng.normal(size=(3, 200_000, 2))
    expected = np.quantile(samples.reshape(-1, 2), 0.975, axis=0)
    np.testing.assert_allclose(mixture_quantile(means, deviations, 0.975), expected, atol=0.02)
    # of equal components it is the normal quantile
    np.testing.assert_allclose(mixture_quantile(means, deviations, 0.975)[1], 1.0 + 2.0 * 1.959964, atol=1e-6)


def test_a_cost_of_two_powers_is_extrapolated_within_its_error_bars() -> None:
    # As of a kernel machine: scoring is linear in the rows, training quadratic.
    rng = np.random.default_rng(5)
    x, u = rng.random(30), np.append(0.6 * rng.random(28) ** 2, [0.6, 0.8])
    size = 100.0 ** (u - 1.0)
    seconds = np.exp(x) * (5.0 * size + 20.0 * size**2)
    found = Data(np.column_stack([x, u]), loss(x, u), seconds, np.zeros(30, dtype=bool))
    models = fitted(found, smallest=0.01, cost_terms=COST_TERMS)
    target = np.column_stack([np.linspace(0.1, 0.9, 9), np.ones(9)])
    truth = 25.0 * np.exp(target[:, 0])
    assert (truth < models.cost_limit(target)).all()
    assert (models.cost_limit(target) < 4.0 * truth).all()


def test_a_cost_of_a_fractional_power_is_extrapolated() -> None:
    """Between n and n^2, as of support vector machines and of sorting; 1/16 of the rows is the most that was seen."""
    rng = np.random.default_rng(5)
    x, u = rng.random(24), np.append(0.5 * rng.random(22) ** 2, [0.4, 0.5])
    found = Data(
        np.column_stack([x, u]), loss(x, u), np.exp(x) * 256.0 ** (1.5 * (u - 1.0)), np.zeros(24, dtype=bool)
    )
    models = fitted(found, smallest=1 / 256, cost_terms=COST_TERMS)
    target = np.column_stack([np.linspace(0.1, 0.9, 9), np.ones(9)])
    ratio = models.predict_cost(target) / np.exp(target[:, 0])
    assert ((ratio > 0.6) & (ratio < 1.7)).all()
    assert (models.cost_limit(target) > np.exp(target[:, 0])).all()


def test_costs_are_predicted_where_they_were_measured() -> None:
    found, points, _, costs = data(40)
    np.testing.assert_allclose(fitted(found).predict_cost(points), costs, rtol=0.1)


def test_a_cost_is_seldom_more_than_at_most() -> None:
    found, *_ = data(12, largest=0.4)
    _, points, _, costs = data(200, seed=5)
    models = fitted(found)
    assert np.mean(costs <= models.cost_limit(points)) > 0.9
    limit = models.cost_limit(points)
    assert (limit >= models.predict_cost(points)).all()
    assert models.costs_at_most(points, 1.001 * limit).all()
    assert not models.costs_at_most(points, 0.999 * limit).any()
    assert not models.costs_at_most(points, 0.0).any()  # nothing is left of a budget
    assert not models.costs_at_most(points, -1.0).any()


def test_scaling_all_costs_scales_all_predictions() -> None:
    found, points, _, _ = data(20)
    scaled = Data(found.points, found.losses, 100.0 * found.costs, found.failed)
    np.testing.assert_allclose(
        fitted(scaled).predict_cost(points), 100.0 * fitted(found).predict_cost(points), rtol=1e-6
    )


def test_further_trials_equal_a_model_built_with_them() -> None:
    found, points, _, _ = data(25)
    spec = surrogate_prior((0,), smallest=0.001, noise_by_size=False, cost_terms=())
    models, _, samples = fit(spec, found, None, 5, 4, np.random.default_rng(0))
    first = Data(found.points[:20], found.losses[:20], found.costs[:20], found.failed[:20])
    rest = Data(found.points[20:], found.losses[20:], found.costs[20:], found.failed[20:])
    grown = build(spec, first, samples).condition(rest)
    # The maps differ a little (they were fitted to twenty trials), so compare in the units of the user.
    at = points[::3]
    ours, theirs = (m.transform.inverse(m.predict_loss(at)[0]) for m in (grown, models))
    np.testing.assert_allclose(ours, theirs, rtol=0.02)


def test_most_of_the_noise_is_the_configurations_own_by_exact_conditioning() -> None:
    found, points, _, _ = data(12, noise=0.3)
    spec = surrogate_prior((0,), smallest=0.001, noise_by_size=False, cost_terms=())
    models, _, _ = fit(spec, found, None, 5, 1, np.random.default_rng(0))  # one hyperparameter sample
    loss = models.loss
    everywhere = np.vstack([points, [[0.35, 1.0]]])  # measured once each, and one never
    y = models.transform.forward(found.losses)
    prior = between(loss.model.kernel, everywhere, everywhere)(loss.model.split(loss.theta)[0])[0]
    noise = loss.noise(everywhere)[0]
    of_outcomes = prior + np.diag(NUGGET_FRACTION * noise)  # the loss and what is the configuration's own
    gain = of_outcomes[:, :12] @ np.linalg.inv((prior + np.diag(noise))[:12, :12])
    counts, averages = np.append(np.ones(12), 0.0), np.append(y, 123.0)
    mean, variance = models.predict_with_nugget(everywhere, counts, averages)
    np.testing.assert_allclose(mean, gain @ y, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(variance, np.diag(of_outcomes - gain @ of_outcomes[:12]), rtol=1e-6, atol=1e-8)


def repeated(own: float, chance: float, seed: int = 0) -> tuple[Data, np.ndarray]:
    """Ten configurations at the target, the first five three times each; which configuration each row has."""
    rng, which = np.random.default_rng(seed), np.append(np.arange(10), np.repeat(np.arange(5), 2))
    x = rng.random(10)[which]
    log_loss = np.log(loss(x, np.ones(20))) + own * rng.normal(size=10)[which] + chance * rng.normal(size=20)
    points = np.column_stack([x, np.ones(20)])
    return Data(points, np.exp(log_loss), np.ones(20), np.zeros(20, dtype=bool)), which


def test_with_repeats_the_loss_of_a_configuration_is_that_of_exact_conditioning() -> None:
    found, which = repeated(0.3, 0.2)
    models, _, _ = fit(surrogate_prior((0,)), found, None, 5, 1, np.random.default_rng(0))  # one sample
    y = models.transform.forward(found.losses)
    first = found.points[:10]
    prior = between(models.loss.model.kernel, first, first)(models.loss.model.split(models.loss.theta)[0])[0]
    noise, f = models.loss.noise(first)[0], models.nugget_fraction
    assert 0.01 < f < 0.99
    of_configurations = prior + np.diag(f * noise)  # the smooth function and the nugget of each
    observed = of_configurations[np.ix_(which, which)] + (1.0 - f) * np.diag(noise[which])
    gain = of_configurations[:, which] @ np.linalg.inv(observed)
    counts = np.bincount(which).astype(float)
    mean, variance = models.predict_with_nugget(first, counts, np.bincount(which, y) / counts)
    np.testing.assert_allclose(mean, gain @ y, rtol=1e-6, atol=1e-8)
    exact = np.diag(of_configurations - gain @ of_configurations[which])
    np.testing.assert_allclose(variance, exact, rtol=1e-6, atol=1e-8)


def test_repeats_teach_the_nugget_fraction_and_without_them_it_is_that_of_the_specification() -> None:
    fractions = [fitted(repeated(own, chance)[0]).nugget_fraction for own, chance in ((0.3, 0.0), (0.0, 0.3))]
    assert fractions[0] > 0.99
    assert fractions[1] < 0.4
    assert fitted(data(20, noise=0.2)[0]).nugget_fraction == NUGGET_FRACTION
    assert fitted(repeated(0.0, 0.3)[0], nugget_fraction=0.0).nugget_fraction == 0.0


def test_exact_repeats_leave_the_noise_of_a_rough_function_as_large_as_it_is_without_them() -> None:
    found, _ = repeated(0.5, 0.0)
    first = replace(found, points=found.points[:10], losses=found.losses[:10], costs=found.costs[:10])
    first = replace(first, failed=found.failed[:10])
    once, often = (np.median(np.log(fitted(d).loss.noise(d.points[:1]))) for d in (first, found))
    assert abs(once - often) < 1.5  # ten independent residuals of zero would lower it to that of rounding


def test_failed_repeats_and_repeats_on_subsets_say_nothing_about_the_nugget() -> None:
    found, _ = repeated(0.3, 0.0)
    failed = np.arange(20) >= 10
    assert replace(found, failed=failed).n_repeats(surrogate_prior((0,))) == 0
    smaller = found.points * [1.0, 0.5]
    assert replace(found, points=smaller).n_repeats(surrogate_prior((0,))) == 0
    assert found.n_repeats(surrogate_prior((0,))) == 10


def test_what_was_measured_often_enough_is_what_it_was_measured_to_be() -> None:
    found, points, _, _ = data(12, noise=0.3)
    models = fitted(found)
    mean, _ = models.predict_loss(points)
    after = [models.predict_with_nugget(points, np.full(12, n), mean + 1.0) for n in (0.0, 1.0, 3.0, 1e6)]
    for (predict_with_nugget, _), part in zip(after, (0.0, 0.9, 27 / 28, 1.0), strict=True):
        np.testing.assert_allclose(predict_with_nugget - mean, part, atol=1e-5)
    variances = np.array([variance for _, variance in after])
    assert (np.diff(variances, axis=0) < 0.0).all()
    assert variances[-1].max() < 1e-5


def test_hyperparameters_mean_what_they_did_when_they_were_fitted() -> None:
    found, points, losses, costs = data(30)
    spec = surrogate_prior((0,), smallest=0.001, noise_by_size=False, cost_terms=())
    early = Data(points[:12], losses[:12] + 1.0, costs[:12], found.failed[:12])  # all alike: a small spread
    all_of_them = Data(points, np.append(early.losses, losses[12:]), costs, found.failed)
    models, _, samples = fit(spec, early, None, 5, 4, np.random.default_rng(1))
    later = build(spec, all_of_them, samples, models.transform)
    # Conditioning does not touch hyperparameters, nor the map that they belong to.
    conditioned = models.condition(Data(points[12:], losses[12:], costs[12:], found.failed[12:]))
    grid = np.column_stack([np.linspace(0.1, 0.9, 7), np.full(7, 0.7)])
    for one, other in zip(later.predict_loss(grid), conditioned.predict_loss(grid), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    assert models.transform.scale < 0.5 * build(spec, all_of_them, samples).transform.scale


def test_a_failed_trial_counts_as_bad_and_never_as_nan() -> None:
    found, *_ = data(20)
    failed = np.zeros(20, dtype=bool)
    failed[[3, 7]] = True
    losses = np.where(failed, np.nan, found.losses)
    broken = Data(found.points, losses, np.where(failed, 0.0, found.costs), failed)
    models = fitted(broken)
    mean, _ = models.predict_loss(broken.points)
    assert np.isfinite(mean).all()
    assert mean[3] > np.median(mean)
    assert np.isfinite(models.predict_cost(broken.points)).all()


def test_failures_that_took_long_are_learnt_as_costs_and_quick_ones_are_not() -> None:
    _, points, losses, costs = data(30)
    failed = points[:, 0] > 0.7  # one end of the space
    there = np.array([[0.9, 0.5]])
    plain = Data(points[~failed], losses[~failed], costs[~failed], np.zeros((~failed).sum(), dtype=bool))
    usual = float(fitted(plain).predict_cost(there)[0])
    timed_out, crashed = (
        fitted(Data(points, losses, np.where(failed, seconds, costs), failed)).predict_cost(there)[0]
        for seconds in (1e5, 1e-3 * costs.min())
    )
    assert timed_out > 10.0 * usual
    assert crashed == pytest.approx(usual, rel=0.5)


@pytest.mark.parametrize(
    "losses",
    [
        np.full(12, 0.5),
        -np.linspace(1, 2, 12),
        np.linspace(-1, 1, 12),
        np.geomspace(1e-12, 1e12, 12),
        np.zeros(12),
    ],
    ids=["constant", "negative", "both signs", "huge range", "zero"],
)
@pytest.mark.parametrize("transform", [log_transform, identity_transform, log_excess_transform])
def test_odd_losses_give_finite_predictions(losses: np.ndarray, transform: FitTransform) -> None:
    found, points, _, _ = data(12)
    models = fitted(Data(points, losses, found.costs, found.failed), transform=transform)
    mean, variance = models.predict_loss(points)
    predicted, std = models.transform.moments(mean, variance)
    assert np.isfinite(predicted).all()
    assert np.isfinite(std).all()


@pytest.mark.parametrize("vanishing", [True, False])
def test_whether_noise_is_gone_at_the_target_is_learnt(vanishing: bool) -> None:
    exact, points, _, costs = data(90)
    points[:30, 1] = 1.0
    size = 1000.0 ** (points[:, 1] - 1.0)
    spread = 0.2 * (np.sqrt((1.0 / size - 1.0) / 999.0) if vanishing else 1.0)
    noisy = loss(points[:, 0], points[:, 1]) * np.exp(spread * np.random.default_rng(5).normal(size=90))
    models = fitted(Data(points, noisy, costs, exact.failed), cost_terms=COST_TERMS, noise_by_size=True)
    at_target, small = models.loss.noise(np.array([[0.5, 1.0], [0.5, 0.0]])).mean(axis=0)
    known = small if vanishing else at_target
    assert np.sqrt(known) * models.transform.scale == pytest.approx(0.2, rel=0.3)
    assert at_target < 0.02 * small if vanishing else at_target > 0.2 * small


def test_a_single_trial_is_enough_to_predict() -> None:
    found, points, _, _ = data(1)
    models = fitted(found)
    assert np.isfinite(models.predict_loss(points)[0]).all()
    assert np.isfinite(models.predict_cost(points)).all()


def test_one_walker_ensemble_goes_on_where_the_last_ended() -> None:
    found, *_ = data(15)
    spec = surrogate_prior((0,), smallest=0.001, noise_by_size=False, cost_terms=())
    _, walkers, samples = fit(spec, found, None, 3, 4, np.random.default_rng(0))
    _, same, _ = fit(spec, found, walkers, 0, 4, np.random.default_rng(1))
    np.testing.assert_array_equal(same.loss, walkers.loss)
    assert all((sample == walkers.loss).all(axis=1).any() for sample in samples.loss)


@pytest.mark.slow
def test_a_diverged_region_does_not_hide_the_best_that_was_measured() -> None:
    rng = np.random.default_rng(0)
    with Study({"a": Float(0.0, 1.0), "b": Float(0.0, 1.0)}, seed=1, overhead=0.01, effort=0.3) as study:
        for _ in range(25):
            suggestion = study.ask()
            a, b = suggestion.config["a"], suggestion.config["b"]
            loss = 1e6 if a > 0.85 else (a - 0.3) ** 2 + (b - 0.6) ** 2 - 1.0 + 1e-4 * rng.normal()
            study.tell(suggestion, loss, cost=1.0)
        best = study.incumbent()
        measured = min(trial.loss for trial in study.trials if trial.loss is not None)
    assert best is not None
    assert (best.config["a"] - 0.3) ** 2 + (best.config["b"] - 0.6) ** 2 - 1.0 < measured + 0.01


class TestOneStepAhead:
    def test_losses_are_predicted_from_the_trials_before(self) -> None:
        found, points, losses, _ = data(20, noise=0.05)
        models = fitted(found)
        mean, variance = models.losses_one_step_ahead()
        i = 14
        gp = models.prior.loss_gp().posterior(
            points[:i], models.transform.forward(losses[:i]), models.loss.theta
        )
        at = gp.project(points[i : i + 1])
        assert mean[i] == pytest.approx(gp.mean(at).mean(), abs=1e-6)
        noisy = (gp.variance(at) + gp.noise(points[i : i + 1])).mean() + gp.mean(at).var()
        assert variance[i] == pytest.approx(noisy, rel=1e-5)

    def test_costs_are_log_seconds(self) -> None:
        found, points, _, costs = data(25)
        models = fitted(found)
        mean, variance = models.log_costs_one_step_ahead()
        assert np.abs(mean[12:] - np.log(costs[12:])).max() < 3.0 * np.sqrt(variance[12:]).max()
        again, _ = models.predict_log_cost(points)
        assert again == pytest.approx(np.log(models.predict_cost(points)))


def test_the_nugget_is_a_part_of_the_noise_at_the_target_for_every_size() -> None:
    found, points, _, _ = data(15, noise=0.1)
    models = fitted(found, noise_by_size=True)
    at_target = np.column_stack([points[:, 0], np.ones(15)])
    expected = NUGGET_FRACTION * models.loss.noise(at_target).mean(axis=0)
    np.testing.assert_allclose(models.nugget_variance(points), expected)
    assert (models.nugget_variance(points) < models.loss.noise(points).mean(axis=0)).all()


def test_stated_losses_add_discrepancy_and_nugget_to_the_variance() -> None:
    found, points, _, _ = data(15, largest=0.5)
    models = fitted(found)
    mean, variance = models.predict_loss(points)
    further = models.discrepancy_variance(points) + models.nugget_variance(points)
    np.testing.assert_array_equal(models.predict_stated_loss(points)[0], mean)
    np.testing.assert_allclose(models.predict_stated_loss(points)[1], variance + further)
    assert (further > 0.0).all()
