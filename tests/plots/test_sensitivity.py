"""Sobol indices against functions whose indices are known in closed form."""

import numpy as np
import pytest

from fabolas._types import Array
from fabolas.plots.sensitivity import sobol_indices


def ishigami(x: Array, a: float = 7.0, b: float = 0.1) -> Array:
    z = np.pi * (2.0 * x - 1.0)
    return np.sin(z[:, 0]) + a * np.sin(z[:, 1]) ** 2 + b * z[:, 2] ** 4 * np.sin(z[:, 0])


def sobol_g(x: Array, a: Array) -> Array:
    return np.prod((np.abs(4.0 * x - 2.0) + a) / (1.0 + a), axis=1)


class TestAnalyticIndices:
    def test_of_the_ishigami_function(self):
        a, b = 7.0, 0.1
        alone = np.array([0.5 * (1 + b * np.pi**4 / 5) ** 2, a**2 / 8, 0.0])
        together = b**2 * np.pi**8 * (1 / 18 - 1 / 50)  # x0 and x2
        variance = alone.sum() + together
        found = sobol_indices(lambda x: ishigami(x)[None], 3, 4096, np.random.default_rng(0))
        assert found.variance[0] == pytest.approx(variance, rel=0.01)
        assert found.first[0] == pytest.approx(alone / variance, abs=0.01)
        assert found.total[0] == pytest.approx(
            (alone + np.array([together, 0.0, together])) / variance, abs=0.01
        )

    def test_of_the_g_function_of_sobol(self):
        a = np.array([0.0, 1.0, 4.5, 9.0, 99.0])
        part = 1.0 / (3.0 * (1.0 + a) ** 2)
        variance = np.prod(1.0 + part) - 1.0
        total = part * np.array([np.prod(np.delete(1.0 + part, i)) for i in range(5)]) / variance
        found = sobol_indices(lambda x: sobol_g(x, a)[None], 5, 4096, np.random.default_rng(0))
        assert found.first[0] == pytest.approx(part / variance, abs=0.015)
        assert found.total[0] == pytest.approx(total, abs=0.015)

    def test_with_few_points_they_are_still_close_enough_for_a_figure(self):
        a = np.array([0.0, 1.0, 9.0])
        part = 1.0 / (3.0 * (1.0 + a) ** 2)
        found = sobol_indices(lambda x: sobol_g(x, a)[None], 3, 256, np.random.default_rng(1))
        assert found.first[0] == pytest.approx(part / (np.prod(1.0 + part) - 1.0), abs=0.06)


class TestSeveralFunctions:
    def test_each_has_its_own_indices(self):
        found = sobol_indices(
            lambda x: np.stack([x[:, 0], x[:, 0] + x[:, 1], 3.0 * x[:, 1]]), 2, 2048, np.random.default_rng(0)
        )
        assert found.first == pytest.approx(np.array([[1, 0], [0.5, 0.5], [0, 1]]), abs=0.02)
        assert found.total == pytest.approx(np.array([[1, 0], [0.5, 0.5], [0, 1]]), abs=0.02)
        assert found.variance == pytest.approx([1 / 12, 1 / 6, 9 / 12], rel=0.02)

    def test_a_constant_function_has_indices_of_zero(self):
        found = sobol_indices(lambda x: np.full((1, len(x)), 4.2), 3, 64, np.random.default_rng(0))
        assert not found.first.any()
        assert not found.total.any()
