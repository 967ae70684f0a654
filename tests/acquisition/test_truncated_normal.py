"""The cut-off normal: against quadrature and, on both sides of the seam, against 120-digit arithmetic."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.integrate import quad

from fabolas.acquisition.truncated_normal import moments, truncated


def exact(x: float, depth: int = 4000) -> list[float]:
    """The textbook formulas at z = -x, in 120 digits, where their cancellation does no harm."""
    with localcontext() as context:
        context.prec = 120
        X = Decimal(x)
        h = X
        for k in range(depth, 0, -1):
            h = X + Decimal(k) / h
        mean = h - X
        beta = h * mean
        variance = 1 - beta
        slope = h * variance - beta * mean
        bend = -slope * (mean + h) - 2 * beta * variance
        return [
            float(v) for v in (h, mean, variance, -slope / variance ** Decimal("1.5"), -bend / variance**2)
        ]


@pytest.mark.parametrize("z", [-5.0, -1.0, 0.0, 0.7, 3.0])
def test_the_cumulants_are_those_of_the_cut_off_density(z):
    mass, *raw = (quad(lambda g, k=k: g**k * np.exp(-0.5 * (g - z) ** 2), 0, z + 15)[0] for k in range(5))
    m1, m2, m3, m4 = (value / mass for value in raw)
    variance = m2 - m1**2
    third = m3 - 3 * m1 * m2 + 2 * m1**3
    fourth = m4 - 4 * m1 * m3 + 6 * m1**2 * m2 - 3 * m1**4
    got = truncated(np.array([z]))
    assert got.mean[0] == pytest.approx(m1, rel=1e-7)
    assert got.variance[0] == pytest.approx(variance, rel=1e-6)
    assert got.skewness[0] == pytest.approx(third / variance**1.5, rel=1e-4)
    assert got.kurtosis[0] == pytest.approx(fourth / variance**2 - 3, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("x", [4.0, 5.99, 6.01, 8.0, 30.0, 1e3, 1e6])
def test_they_are_exact_however_far_out_the_cut_is(x):
    got = [float(value[0]) for value in truncated(np.array([-x]))]
    np.testing.assert_allclose(got, exact(x), rtol=1e-9 if x < 6 else 1e-14)


def test_far_out_it_is_the_exponential_distribution():
    got = truncated(np.array([-1e12]))
    assert (got.skewness[0], got.kurtosis[0]) == pytest.approx((2.0, 6.0))
    assert got.mean[0] == pytest.approx(1e-12)


def test_an_uncut_normal_is_left_alone():
    got = truncated(np.array([50.0, 1e10]))
    np.testing.assert_array_equal(got.hazard, 0.0)
    np.testing.assert_array_equal(got.mean, [50.0, 1e10])
    np.testing.assert_array_equal(got.variance, 1.0)


def test_the_moments_alone_are_the_same_numbers():
    z = np.linspace(-40, 40, 200).reshape(4, 50)
    for a, b in zip(moments(z), truncated(z)[:3], strict=True):
        np.testing.assert_array_equal(a, b)
