"""The discrepancy against draws of the bends, densities of whole vectors, and curves that do bend."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from fabolas import Float, Study
from fabolas.discrepancy import EARLY_PRIOR, EARLY_STDS, Discrepancy
from fabolas.gp.kernels import between
from fabolas.surrogate import Data, Surrogate, fit
from fabolas.transforms import identity_transform
from tests.helpers.models import surrogate_prior

STD = 0.5  # of the late bend, in log-losses


def data(n: int, largest: float, fall: float = 0.0, exponent: float = 1.0, seed: int = 0) -> Data:
    """Power laws on sizes up to u = `largest` that also fall by fall * u^3; small exponents make losses alike."""
    rng = np.random.default_rng(seed)
    x, u = rng.random(n), rng.uniform(0.0, largest, n)
    log_loss = exponent * (-1.0 + 3.0 * (x - 0.6) ** 2 - 0.8 * u) - fall * u**3 + 0.01 * rng.normal(size=n)
    return Data(np.column_stack([x, u]), np.exp(log_loss), np.ones(n), np.zeros(n, dtype=bool))


def fitted(found: Data, **parts: Any) -> Surrogate:
    f = found.points.shape[1] - 1
    prior = surrogate_prior((0,), f, **{"smallest": 0.001, "cost_terms": (), "discrepancy": STD, **parts})
    return fit(prior, found, None, 15, 6, np.random.default_rng(1))[0]


def discrepancy(models: Surrogate) -> Discrepancy:
    columns = tuple(range(1, models.loss.points.shape[1]))
    return Discrepancy(
        models.loss, models.observed, models.prior.over_x(), columns, STD / models.transform.scale
    )


def bend(models: Surrogate, points: np.ndarray, theta: np.ndarray, power: int) -> np.ndarray:
    """The covariance of a bend of unit variance in each fidelity."""
    over_x = between(models.prior.over_x(), points, points)(theta[None, :1])[0]
    times = sum(np.outer(u**power, u**power) for u in points.T[1:])
    return np.asarray(times * 0.5 * (1.0 + over_x))


def with_epochs(found: Data) -> Data:
    """The same trials with a second fidelity."""
    epochs = np.random.default_rng(9).uniform(0.0, 0.8, len(found.points))
    return replace(found, points=np.column_stack([found.points, epochs]))


@pytest.mark.parametrize("kind", ["rows", "rows and epochs", "without a logarithm"])
def test_it_is_the_error_of_the_mean_under_a_truth_that_bends(kind: str) -> None:
    # Draw deviations D(x, u), give them to the same posterior as data, and look at the error of its mean.
    found, at = data(12, largest=0.9), np.array([[0.3, 1.0], [0.8, 0.7], [0.5, 0.2]])
    if kind == "rows and epochs":
        found, at = with_epochs(found), np.column_stack([at, [1.0, 0.5, 1.0]])
    logarithmic = kind != "without a logarithm"
    models = fitted(found) if logarithmic else fitted(found, transform=identity_transform)
    unit = models.transform.scale if logarithmic else 1.0
    early = replace(discrepancy(models), std=STD / unit).early_variance
    points = np.vstack([models.loss.points, at])
    rng, errors = np.random.default_rng(0), []
    for theta, L, V in zip(models.loss.theta, models.loss.L, models.loss.project(at).V, strict=True):
        covariance = bend(models, points, theta, 6) + early * bend(models, points, theta, 3)
        deviations = rng.multivariate_normal(np.zeros(15), covariance, size=20_000, check_valid="ignore")
        predicted = deviations[:, :12] @ np.linalg.solve(L.T, V)
        errors.append(np.mean((deviations[:, 12:] - predicted) ** 2, axis=0))
    variance = (STD / unit) ** 2 * np.mean(errors, axis=0)
    np.testing.assert_allclose(models.discrepancy_variance(at), variance, rtol=0.03, atol=1e-4)


@pytest.mark.parametrize("limit", [150, 8])
def test_the_variance_of_the_early_bend_is_its_expectation_given_the_data(
    limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fabolas.discrepancy.MAX_EVIDENCE_TRIALS", limit)
    models = fitted(with_epochs(data(14, largest=0.7, fall=0.5)))
    loss, variance = models.loss, (STD / models.transform.scale) ** 2
    used = np.argsort(-loss.points[:, 1:].sum(axis=1))[:limit]
    ratios = np.zeros(len(EARLY_PRIOR))
    for theta, L, beta in zip(loss.theta, loss.L, loss.beta, strict=True):
        gram, y = (L @ L.T)[np.ix_(used, used)], (L @ beta)[used]
        extra = variance * bend(models, loss.points[used], theta, 3)
        logs = [multivariate_normal(cov=gram + s**2 * extra).logpdf(y) for s in (0.0, *EARLY_STDS)]
        ratios += np.exp(np.array(logs) - logs[0])
    posterior = ratios * EARLY_PRIOR / np.sum(ratios * EARLY_PRIOR)
    expected = float(posterior[1:] @ EARLY_STDS**2)
    assert discrepancy(models).early_variance == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_curves_that_begin_to_fall_faster_make_the_target_uncertain(seed: int) -> None:
    straight, falling = (
        discrepancy(fitted(data(30, 0.6, fall, seed=seed, exponent=0.2))).early_variance
        for fall in (0.0, 3.0)
    )
    assert falling > 3.0 * straight


def test_no_early_bend_is_four_times_as_likely_as_one_and_small_ones_are_likelier() -> None:
    np.testing.assert_allclose(EARLY_PRIOR, np.append(0.8, 0.2 * np.array([8, 4, 2, 1]) / 15))
    np.testing.assert_array_equal(EARLY_STDS, [1, 2, 4, 8])


@pytest.mark.parametrize("seed", range(3))
def test_failed_and_pending_trials_are_no_evidence_of_a_bend(seed: int) -> None:
    found = data(30, largest=0.6, seed=seed)
    largest = np.argsort(-found.points[:, 1])[:3]
    failed = discrepancy(fitted(replace(found, failed=np.isin(np.arange(30), largest))))
    expected_before = float(EARLY_PRIOR[1:] @ EARLY_STDS**2)
    assert failed.early_variance < expected_before
    assert replace(failed, observed=np.ones(30, dtype=bool)).early_variance > expected_before
    models = fitted(found)
    pending = models.condition_pending(np.array([[0.2, 0.9], [0.7, 1.0]]))
    assert discrepancy(pending).early_variance == pytest.approx(discrepancy(models).early_variance)


def test_a_measurement_at_the_target_removes_most_of_it() -> None:
    models = fitted(data(20, largest=0.6))
    at_target = np.array([[models.loss.points[0, 0], 1.0], [0.5, 1.0]])
    before = models.discrepancy_variance(at_target)
    loss = models.transform.inverse(models.loss.mean_of(at_target[:1])[0])
    measured = models.condition(Data(at_target[:1], loss, np.ones(1), np.zeros(1, dtype=bool)))
    there, elsewhere = measured.discrepancy_variance(at_target)
    assert before.min() > 0.6 * (STD / models.transform.scale) ** 2
    assert there < 0.05 * before[0]
    assert elsewhere < 0.8 * before[1]


@pytest.mark.parametrize("exponent", [0.01, 1.0, 10.0])
def test_curves_may_fall_by_the_same_factor_however_alike_the_losses_are(exponent: float) -> None:
    models = fitted(data(20, largest=0.3, exponent=exponent))
    std = np.sqrt(models.discrepancy_variance(np.array([[0.5, 1.0]])))[0] * models.transform.scale
    assert STD * 0.95 < std < 3.0 * STD


@pytest.mark.parametrize("offset", [100.0, 1e6])
def test_losses_with_a_large_constant_part_bend_in_proportion_to_their_spread_once_the_target_shows_it(
    offset: float,
) -> None:
    small = data(20, largest=0.6)
    small = replace(small, losses=small.losses + offset)
    before = fitted(small)
    assert before._discrepancy is not None
    assert before._discrepancy.late_std * before.transform.scale == pytest.approx(STD)
    at_target, losses = data(4, largest=0.0, seed=3).points, offset + np.array([0.2, 0.25, 0.22, 0.3])
    at_target[:, 1] = 1.0
    at_target[:, 0] = [0.6, 0.4, 0.5, 0.3]
    both = Data(
        np.vstack([small.points, at_target]),
        np.append(small.losses, losses),
        np.ones(24),
        np.zeros(24, dtype=bool),
    )
    after = fitted(both)
    assert after._discrepancy is not None
    assert after._discrepancy.late_std == STD
    assert np.sqrt(after.discrepancy_variance(at_target[:1]))[0] < 1.0  # of the spread


def test_a_bend_at_the_target_by_a_factor_stays_possible_where_losses_differ_by_factors() -> None:
    found = data(20, largest=0.6, exponent=3.0)
    found.points[:4, 1] = 1.0
    models = fitted(found)
    assert models.transform.scale > 1.0
    assert discrepancy(models).late_std * models.transform.scale == pytest.approx(STD)


def test_without_the_term_there_is_none() -> None:
    found = data(5, largest=1.0)
    assert (fitted(found, discrepancy=0.0).discrepancy_variance(found.points) == 0.0).all()


def test_without_sizes_there_is_none() -> None:
    with Study({"x": Float(0.0, 1.0)}, seed=0, effort=0.0) as study:
        for loss in (0.3, 0.2, 0.4):
            study.tell(study.ask(), loss, cost=1.0)
        surrogate = study.strategy.surrogate(study.history).surrogate
        assert (surrogate.discrepancy_variance(np.array([[0.5]])) == 0.0).all()
