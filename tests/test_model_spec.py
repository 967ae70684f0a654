"""The priors of both GPs: what they extrapolate, and the noise of subsets."""

import numpy as np
import pytest

from fabolas.gp import priors
from fabolas.gp.regression import NOISE_FLOOR
from fabolas.model_spec import COST_TERMS, Columns, ModelSpec, SurrogatePrior
from fabolas.surrogate import Data, fit
from tests.helpers.models import surrogate_prior


def test_a_quadratic_cost_is_extrapolated_within_its_limit() -> None:
    rng = np.random.default_rng(0)
    x, u = rng.random(24), 0.375 * rng.random(24) ** 1.5
    s = 256.0 ** (u - 1.0)
    costs = s**2 * np.exp(x + 0.03 * rng.normal(size=24))
    data = Data(np.column_stack([x, u]), rng.random(24), costs, np.zeros(24, dtype=bool))
    prior = surrogate_prior((0,), smallest=1 / 256)
    models, _, _ = fit(prior, data, None, 40, 12, np.random.default_rng(1))
    target = np.column_stack([np.linspace(0.1, 0.9, 9), np.ones(9)])
    ratio = models.cost_limit(target) / np.exp(target[:, 0])
    assert ((ratio > 1.0) & (ratio < 6.0)).all()
    median = models.predict_cost(target) / np.exp(target[:, 0])
    assert ((median > 0.2) & (median < 5.0)).all()


def test_small_sizes_do_not_speak_against_a_cost_that_they_cannot_show() -> None:
    """A quadratic term that makes the target 25 times as expensive is invisible at 1/1000 of it."""
    rng, gp = np.random.default_rng(0), surrogate_prior((0,), smallest=2.0**-16).cost_gp()
    points = rng.random((24, 2)) * [1.0, 0.3]
    log_costs = 0.3 * points[:, 0] + 0.03 * rng.normal(size=24)  # relative to the size
    theta = np.repeat(priors.sample(gp.priors, rng, 1), 2, axis=0)
    theta[:, -4:] = -4.0  # negligible weights of s^0, s^1.5, s^2 and s^3
    theta[1, -2] = (np.log(24.0) - COST_TERMS[2].mean) / COST_TERMS[2].sd
    density = gp.log_density(points, log_costs - log_costs.mean())(theta)
    negligible, expensive = density - priors.log_density(gp.priors, theta)
    assert abs(expensive - negligible) < 1.0


@pytest.mark.slow
def test_the_noise_of_a_subset_is_that_of_a_mean_over_rows_drawn_without_replacement() -> None:
    rng = np.random.default_rng(0)
    rows, sizes = rng.normal(size=256), np.array([4, 16, 64, 128])
    variances = [
        np.var([rng.permutation(rows)[:size].mean() for _ in range(4000)]) / np.var(rows) for size in sizes
    ]
    noise = surrogate_prior((0,), smallest=4 / 256).loss_gp().noise
    u = 1.0 + np.log(sizes / 256.0) / np.log(256.0 / 4.0)
    theta = np.array([[0.0, -30.0]])  # nothing remains on all the data
    modelled = noise.variance(theta, np.column_stack([u, u]))[0] - NOISE_FLOOR
    np.testing.assert_allclose(modelled / modelled[0], np.array(variances) / variances[0], rtol=0.1)
    at_target = noise.variance(np.array([[0.0, 0.0]]), np.ones((1, 2)))[0, 0]
    np.testing.assert_allclose(at_target, 0.5 + NOISE_FLOOR)  # r = 1/2 remains there


def test_with_two_fidelities_the_noise_is_largest_where_both_are_smallest() -> None:
    noise = surrogate_prior((0,), 2).loss_gp().noise
    points = np.array([[0.5, 0.0, 0.0], [0.5, 0.0, 1.0], [0.5, 1.0, 0.0], [0.5, 1.0, 1.0]])
    modelled = noise.variance(np.array([[0.0, -30.0]]), points)[0]
    np.testing.assert_allclose(modelled, [1.0, 0.5, 0.5, 0.0], atol=1e-5)


def test_the_noise_of_reported_epochs_does_not_disappear_at_the_target_but_that_of_rows_does() -> None:
    sizes = (lambda u: 0.01 ** (1.0 - u),) * 2
    points = np.array([[0.5, 0.0, 0.0], [0.5, 0.0, 1.0], [0.5, 1.0, 0.0], [0.5, 1.0, 1.0]])
    both = SurrogatePrior(ModelSpec(), Columns((0,), 2, sizes, training=3, curve=2)).loss_gp().noise
    theta = np.array([[0.0, -20.0]])  # all noise is that of subsets
    assert both.variance(theta, points)[0] == pytest.approx([1.0, 1.0, 0.0, 0.0], abs=1e-5)
    epochs = SurrogatePrior(ModelSpec(), Columns((0,), 1, sizes[:1], training=2, curve=1)).loss_gp().noise
    assert epochs.variance(theta[:, :1], points[:, :2])[0] == pytest.approx(1.0, abs=1e-5)
