"""What the figures ask the model: predictions, intervals, p_min, and one prediction ahead of each trial."""

import numpy as np
import pytest
from scipy.stats import norm

from fabolas import Float, Space
from fabolas.plots.calibration import LEVELS, coverage
from fabolas.plots.model import NARROW, WIDE, log_normal, model_of
from tests.helpers.views import view_of
from tests.plots.cases import SIZE, bowl, case


class TestPredictions:
    @pytest.mark.parametrize("name", ["one fidelity", "maximise", "mixed", "no fidelity"])
    def test_the_centre_is_what_the_study_predicts(self, name):
        study = case(name)
        points, model = study.history.points[:7], model_of(study)
        predicted = study.predict_points(points)
        assert model.loss(points).centre == pytest.approx(predicted.loss, rel=1e-9)
        assert model.cost(points).centre == pytest.approx(predicted.cost, rel=1e-9)

    @pytest.mark.parametrize("name", ["one fidelity", "maximise", "negative losses"])
    def test_intervals_are_quantiles_of_the_transformed_gaussian(self, name):
        study = case(name)
        points, model = study.history.points[:5], model_of(study)
        of, surrogate = model.loss(points), model.fitted.surrogate
        mean, variance = surrogate.predict_stated_loss(points)
        draws = np.random.default_rng(0).normal(mean, np.sqrt(variance), size=(200_000, 5))
        losses = study.sign * surrogate.transform.inverse(draws)
        spread = losses.std(axis=0)
        for share, found in ((0.025, of.low), (0.25, of.inner_low), (0.75, of.inner_high), (0.975, of.high)):
            assert np.abs(np.quantile(losses, share, axis=0) - found).max() < 0.03 * spread.max()

    def test_the_intervals_hold_what_they_state(self):
        assert norm.cdf(WIDE) - norm.cdf(-WIDE) == pytest.approx(0.95, abs=1e-3)
        assert norm.cdf(NARROW) - norm.cdf(-NARROW) == pytest.approx(0.5, abs=1e-3)

    def test_costs_are_lognormal(self):
        of = log_normal(np.array([1.0]), np.array([0.04]))
        assert of.high[0] == pytest.approx(np.exp(1.0 + WIDE * 0.2))
        assert of.inner_low[0] == pytest.approx(np.exp(1.0 - NARROW * 0.2))


class TestOptimum:
    def test_agrees_with_independent_functions_drawn_on_a_grid(self):
        study = view_of(Space({"x": Float(0.0, 1.0)}), 6, lambda c, f: 1.0 + (c["x"] - 0.6) ** 2, fitted=True)
        model = model_of(study)
        grid = np.linspace(0.0, 1.0, 201)[:, None]
        posterior, rng, lowest = model.fitted.surrogate.loss, np.random.default_rng(1), []
        at = posterior.project(grid)
        means, covariances = posterior.mean(at), posterior.covariance(at, at)
        for mean, covariance in zip(means, covariances, strict=True):
            draws = rng.multivariate_normal(mean, covariance + 1e-9 * np.eye(201), size=2000, method="svd")
            lowest.append(grid[np.argmin(draws, axis=1), 0])
        expected = np.concatenate(lowest)
        found = model.optimum
        assert found.probability.sum() == pytest.approx(1.0)
        mean = found.probability @ found.x[:, 0]
        assert mean == pytest.approx(expected.mean(), abs=0.03)
        spread = np.sqrt(found.probability @ (found.x[:, 0] - mean) ** 2)
        assert spread == pytest.approx(expected.std(), abs=0.03)

    def test_lies_at_the_highest_value_if_the_study_maximises(self):
        def hill(config, fidelity):
            return 5.0 - 10.0 * (config["x"] - 0.2) ** 2

        study = view_of(Space({"x": Float(0.0, 1.0)}), 15, hill, direction="maximize", fitted=True)
        found = model_of(study).optimum
        assert found.probability @ found.x[:, 0] == pytest.approx(0.2, abs=0.05)


class TestImportance:
    def test_of_the_posterior_mean_is_that_of_the_function_where_there_are_many_trials(self):
        def loss(config, fidelity):
            return 10.0 + 3.0 * config["a"] + 1.0 * config["b"]  # shares 0.9 and 0.1

        space = Space({name: Float(0.0, 1.0) for name in ("a", "b", "c")})
        model = model_of(view_of(space, 60, loss, fitted=True))
        assert model.by_importance == ("a", "b", "c")
        assert model.sensitivity.total.mean(axis=0) == pytest.approx([0.9, 0.1, 0.0], abs=0.04)
        assert model.sensitivity.first.mean(axis=0) == pytest.approx([0.9, 0.1, 0.0], abs=0.04)

    def test_is_at_the_target(self):
        def loss(config, fidelity):  # b matters on small sizes only
            return (
                2.0 + config["a"] + 4.0 * config["b"] * (1.0 - np.log(fidelity["size"] / 100) / np.log(100))
            )

        model = model_of(view_of(Space({"a": Float(0, 1), "b": Float(0, 1)}, SIZE), 60, loss, fitted=True))
        assert model.by_importance[0] == "a"
        assert model.sensitivity.total.mean(axis=0)[1] < 0.25


class TestOneModel:
    def test_figures_of_the_same_trials_share_it(self):
        study = view_of(Space({"x": Float(0.0, 1.0)}, SIZE), 5, bowl)
        assert model_of(study) is model_of(study)

    def test_it_knows_which_trials_its_data_are(self):
        for name in ("one fidelity", "mixed", "3,000 trials"):
            study = case(name)
            fitted = model_of(study).fitted
            history, surrogate = study.history, fitted.surrogate
            assert np.array_equal(history.points[fitted.loss_trials], surrogate.loss.points)
            assert np.array_equal(history.points[fitted.cost_trials], surrogate.cost.points)


class TestCoverage:
    def test_of_errors_that_are_standard_normal_is_what_is_stated(self):
        errors = np.random.default_rng(0).normal(size=100_000)
        assert coverage(errors) == pytest.approx(np.array(LEVELS), abs=0.005)

    def test_of_a_model_that_is_too_sure_is_lower(self):
        errors = 3.0 * np.random.default_rng(0).normal(size=10_000)
        assert (coverage(errors) < np.array(LEVELS)).all()
