"""Kernels against bare formulas, scikit-learn's, and the one property that all must have."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import Matern

from fabolas.gp import priors
from fabolas.gp.kernels import (
    Amplitude,
    Basis,
    BrownianKernel,
    FiniteRank,
    Kernel,
    LinearTrend,
    Matern52,
    between,
    paper_cost_basis,
    paper_loss_basis,
    power_law_basis,
    quadratic_time,
)
from tests.helpers.models import surrogate_prior

RNG = np.random.default_rng(0)


def of_u(basis: Basis) -> Callable[[np.ndarray], np.ndarray]:
    """A basis as a function of u alone, with sizes from 1/100."""
    return lambda u: basis(u, 100.0 ** (u - 1.0))


def reverse_time(u: np.ndarray) -> np.ndarray:
    """The time of a walk that ends at the target."""
    return 1.0 - u


WALK_PRIOR = priors.Normal(-3.0, 1.5)
EQ6 = Matern52((0, 0)) * Amplitude() * FiniteRank(2, of_u(paper_loss_basis))
KERNELS: dict[str, Kernel] = {
    "matern": Matern52((0, 0)),
    "matern with a categorical": Matern52((0, 3)),
    "amplitude": Amplitude(),
    "finite rank loss": FiniteRank(2, of_u(paper_loss_basis)),
    "finite rank power law": FiniteRank(2, of_u(power_law_basis)),
    "drift": BrownianKernel((2,), reverse_time, WALK_PRIOR),
    "drift from the smallest": BrownianKernel((2,), quadratic_time, WALK_PRIOR),
    "trend": LinearTrend(lambda p: of_u(paper_loss_basis)(p[:, 2])),
    "equation 6": EQ6,
    "the loss model": surrogate_prior((0, 0)).loss_gp().kernel,
    "the cost model": surrogate_prior((0, 0)).cost_gp().kernel,
    "two fidelities": surrogate_prior((0,), 2).loss_gp().kernel,
}


def points(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((n, 3))


@pytest.mark.parametrize("name", KERNELS)
@given(seed=st.integers(0, 2**31))
def test_gram_matrices_are_positive_semi_definite(name: str, seed: int) -> None:
    kernel, rng = KERNELS[name], np.random.default_rng(seed)
    P = rng.random((12, 3))
    P[5] = P[3]
    P[7, 2] = 1.0
    theta = priors.sample(kernel.priors, rng, 4) if kernel.priors else np.empty((4, 0))
    gram = np.broadcast_to(between(kernel, P, P)(theta), (4, 12, 12))
    np.testing.assert_allclose(gram, np.swapaxes(gram, 1, 2), rtol=1e-12)
    smallest = np.linalg.eigvalsh(gram)[:, 0]
    assert (smallest >= -1e-10 * np.trace(gram, axis1=1, axis2=2)).all()


@pytest.mark.parametrize("name", KERNELS)
def test_the_diagonal_is_the_gram_matrix_diagonal(name: str) -> None:
    kernel, P = KERNELS[name], points(9)
    theta = priors.sample(kernel.priors, RNG, 3) if kernel.priors else np.empty((3, 0))
    gram = np.broadcast_to(between(kernel, P, P)(theta), (3, 9, 9))
    np.testing.assert_allclose(kernel.diagonal(theta, P), np.diagonal(gram, axis1=1, axis2=2), rtol=1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_a_batch_of_hyperparameters_equals_one_by_one(name: str) -> None:
    kernel, A, B = KERNELS[name], points(5, 1), points(4, 2)
    theta = priors.sample(kernel.priors, RNG, 3) if kernel.priors else np.empty((3, 0))
    evaluate = between(kernel, A, B)
    batch = np.broadcast_to(evaluate(theta), (3, 5, 4)).copy()
    for k in range(3):
        np.testing.assert_allclose(
            batch[k], np.broadcast_to(evaluate(theta[k : k + 1]), (1, 5, 4))[0], rtol=1e-12
        )
    np.testing.assert_array_equal(
        batch, np.broadcast_to(evaluate(theta), (3, 5, 4))
    )  # nothing was overwritten


@pytest.mark.parametrize("name", KERNELS)
def test_pairs_are_entries_of_the_matrix(name: str) -> None:
    kernel, A, B = KERNELS[name], points(5, 1), points(4, 2)
    theta = priors.sample(kernel.priors, RNG, 3) if kernel.priors else np.empty((3, 0))
    rows, columns = np.array([0, 4, 2, 2, 1, 3]), np.array([3, 0, 1, 1, 2, 3])
    matrix = np.broadcast_to(between(kernel, A, B)(theta), (3, 5, 4))
    each = np.broadcast_to(kernel.pairs(A[rows], B[columns])(theta), (3, 6))
    np.testing.assert_allclose(each, matrix[:, rows, columns], rtol=1e-12)


def test_matern_is_scikit_learns() -> None:
    A, B = points(6, 1)[:, :2], points(5, 2)[:, :2]
    lengths = np.array([0.3, 1.7])
    ours = between(Matern52((0, 0)), A, B)(np.log(lengths)[None])[0]
    np.testing.assert_allclose(ours, Matern(lengths, nu=2.5)(A, B), rtol=1e-12)


def test_matern_has_the_papers_formula() -> None:
    # Klein et al. 2017, eq. 1, with d^2 = sum lambda_i (x_i - x_i')^2 and lambda = 1 / length^2.
    a, b, lam = np.array([0.2, 0.9]), np.array([0.5, 0.4]), np.array([4.0, 0.25])
    d = np.sqrt(np.sum(lam * (a - b) ** 2))
    expected = (1 + np.sqrt(5) * d + 5 / 3 * d**2) * np.exp(-np.sqrt(5) * d)
    theta = np.log(1 / np.sqrt(lam))[None]
    assert between(Matern52((0, 0)), a[None], b[None])(theta)[0, 0, 0] == pytest.approx(expected, rel=1e-12)


def test_categories_are_equal_or_not_whatever_their_order() -> None:
    P = np.array([[1 / 6], [3 / 6], [5 / 6]])
    gram = between(Matern52((3,)), P, P)(np.log([[0.7]]))[0]
    off = gram[~np.eye(3, dtype=bool)]
    np.testing.assert_allclose(off, off[0])
    np.testing.assert_allclose(off[0], Matern(0.7, nu=2.5)([[0.0]], [[1.0]])[0, 0])
    np.testing.assert_allclose(np.diag(gram), 1.0)


def test_equation_6_is_matern_times_the_quadratic_form() -> None:
    A, B = points(4, 1), points(3, 2)
    theta = np.array([[np.log(0.4), np.log(0.8), 0.3, -0.6, np.log(0.5)]])
    L = np.array([[1.0, 0.0], [-0.6, 0.5]])
    expected = np.empty((4, 3))
    for i, a in enumerate(A):
        for j, b in enumerate(B):
            s, t = 100.0 ** (a[2] - 1), 100.0 ** (b[2] - 1)
            quadratic = np.array([1, (1 - s) ** 2]) @ L @ L.T @ np.array([1, (1 - t) ** 2])
            matern = Matern([0.4, 0.8], nu=2.5)(a[None, :2], b[None, :2])[0, 0]
            expected[i, j] = np.exp(0.3) * matern * quadratic
    np.testing.assert_allclose(between(EQ6, A, B)(theta)[0], expected, rtol=1e-12)


def cubic(u: np.ndarray) -> np.ndarray:
    return np.stack([np.ones_like(u), u, u**2], axis=-1)


def test_a_factor_of_rank_three_is_lower_triangular_with_a_positive_diagonal() -> None:
    kernel = FiniteRank(0, cubic)
    theta = priors.sample(kernel.priors, RNG, 5)
    L = kernel.factor(theta)
    assert theta.shape[1] == 5
    np.testing.assert_array_equal(L, np.tril(L))
    assert (np.diagonal(L, axis1=1, axis2=2) > 0).all()
    np.testing.assert_array_equal(L[:, 0, 0], 1.0)


def test_the_deviation_is_a_brownian_motion_that_ends_at_the_target() -> None:
    u = np.array([[0.1], [0.4], [0.4], [1.0]])
    gram = between(BrownianKernel((0,), reverse_time, WALK_PRIOR), u, u)(np.log([[2.0]]))[0]
    rng = np.random.default_rng(0)
    grid = np.linspace(0, 1, 21)  # walk backwards from u = 1
    walks = np.concatenate(
        [np.cumsum(rng.normal(0, np.sqrt(2.0 * 0.05), (20000, 20)), axis=1)[:, ::-1], np.zeros((20000, 1))],
        axis=1,
    )
    at = walks[:, [int(np.argmin(np.abs(grid - v))) for v in u[:, 0]]]
    np.testing.assert_allclose(gram, np.cov(at.T), atol=0.06)
    np.testing.assert_array_equal(gram[3], 0.0)


def test_the_deviation_of_the_loss_starts_slowly_at_the_smallest_size() -> None:
    u = np.array([[0.0], [0.3], [0.8], [1.0]])
    gram = between(BrownianKernel((0,), quadratic_time, WALK_PRIOR), u, u)(np.log([[2.0]]))[0]
    np.testing.assert_array_equal(gram[0], 0.0)
    steps = np.diff(np.eye(4), axis=0)  # increments are independent, their variances those of the time passed
    np.testing.assert_allclose(steps @ gram @ steps.T, 2.0 * np.diag(np.diff(u[:, 0] ** 2)), atol=1e-12)


def test_losses_alike_on_the_smallest_subset_leave_doubt_at_the_target() -> None:
    # Chance for everybody on few rows: the basis then has S = (1, -1)' (1, -1), and a walk that begins at the
    # target could have no variance at all.
    kernel, u = (
        surrogate_prior((0,), shared_trend=False).loss_gp().kernel,
        np.array([[0.5, 0.0], [0.5, 0.5], [0.5, 1.0]]),
    )
    theta = np.array([[0.0, 0.0, -1.0, -10.0, np.log(0.5)]])  # length, amplitude, L[1, 0], log L[1, 1], log v
    gram = between(kernel, u, u)(theta)[0]
    np.testing.assert_allclose(gram[0], 0.0, atol=1e-8)
    left = gram[2, 2] - gram[2, 1] ** 2 / gram[1, 1]  # of the target's variance, the middle size once known
    k11, k12, k22 = 0.25 + 0.125, 0.5 + 0.125, 1.0 + 0.5
    assert left == pytest.approx(k22 - k12**2 / k11, rel=1e-6)
    assert left > 0.4


def test_the_papers_bases_are_functions_of_the_relative_size() -> None:
    u, s = np.array([0.0, 0.5, 1.0]), np.array([0.01, 0.1, 1.0])
    np.testing.assert_allclose(paper_loss_basis(u, s), [[1, 0.99**2], [1, 0.81], [1, 0]])  # section 3.1
    np.testing.assert_allclose(paper_cost_basis(u, s), [[1, 0.01], [1, 0.1], [1, 1]])
    np.testing.assert_allclose(power_law_basis(u, s), [[1, 1], [1, 0.5], [1, 0]])
