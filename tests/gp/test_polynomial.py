"""The polynomial mean of log-cost against its formula."""

import numpy as np

from fabolas.gp.polynomial import CostTerm, PolynomialLogCost

TERMS = (CostTerm(0.0, -3.0, 2.0), CostTerm(2.0, 1.0, 2.0), CostTerm(3.0, -1.0, 1.0))


def polynomial(theta: np.ndarray, s: np.ndarray) -> np.ndarray:
    """s + w0 + w2 s^2 + w3 s^3, relative to its value at s = 1 and to s."""
    w0, w2, w3 = np.exp(-3.0 + 2.0 * theta[0]), np.exp(1.0 + 2.0 * theta[1]), np.exp(-1.0 + theta[2])
    relative: np.ndarray = np.log((s + w0 + w2 * s**2 + w3 * s**3) / (1.0 + w0 + w2 + w3) / s)
    return relative


def test_it_is_a_sum_of_powers_of_the_size_relative_to_a_proportional_cost() -> None:
    mean = PolynomialLogCost(TERMS, np.log)
    s = np.array([0.01, 0.2, 1.0])
    theta = np.array([[-2.0, 1.0, -1.0], [0.0, 0.0, 0.0]])
    expected = [polynomial(row, s) for row in theta]
    np.testing.assert_allclose(mean.evaluate(theta, s[:, None]), expected, atol=1e-12)
    np.testing.assert_allclose(mean.evaluate(theta, np.ones((1, 1))), 0.0, atol=1e-12)  # at the target


def test_the_polynomials_of_several_fidelities_are_multiplied() -> None:
    mean = PolynomialLogCost(TERMS, np.log, n_fidelities=2)
    rng = np.random.default_rng(0)
    s, theta = rng.uniform(0.01, 1.0, (5, 2)), rng.normal(size=(3, 6))
    expected = [polynomial(row[:3], s[:, 0]) + polynomial(row[3:], s[:, 1]) for row in theta]
    np.testing.assert_allclose(mean.evaluate(theta, s), expected, atol=1e-12)


def test_extreme_weights_stay_finite() -> None:
    mean = PolynomialLogCost(TERMS, np.log)
    theta = np.array([[400.0, 400.0, -400.0], [-400.0, -400.0, -400.0]])
    assert np.isfinite(mean.evaluate(theta, np.array([[1e-9], [1.0]]))).all()
