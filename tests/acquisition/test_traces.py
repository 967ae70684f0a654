"""What a trace says about the representers, against conditioning on all its points."""

from __future__ import annotations

import numpy as np

from fabolas.acquisition.representers import Representers
from fabolas.acquisition.traces import trace_influence
from fabolas.gp.kernels import (
    Amplitude,
    BrownianKernel,
    FiniteRank,
    Matern52,
    Product,
    Sum,
    power_law_basis,
    quadratic_time,
)
from fabolas.gp.priors import Normal
from fabolas.gp.regression import GaussianProcess, Noise, Posterior
from fabolas.gp.trainings import SameTraining, in_training


def posterior() -> Posterior:
    basis = FiniteRank(1, lambda u: power_law_basis(u, u))
    kernel = Product(
        (Matern52((0,)), Amplitude(), Sum((basis, BrownianKernel((1,), quadratic_time, Normal(-3.0, 1.5)))))
    )
    gp = GaussianProcess(kernel, Noise()).sharing_noise(SameTraining(2))
    rng = np.random.default_rng(1)
    points = in_training(rng.random((12, 2)), np.repeat([1, 2, 3, 4], 3))
    theta = np.array([[-1.0, 0.0, 0.1, -0.5, -3.0, -4.0, -5.0], [-1.5, 0.3, -0.2, 0.0, -2.0, -3.0, -6.0]])
    assert theta.shape[1] == len(gp.priors)
    return gp.posterior(points, rng.normal(size=12), theta)


def representers(at: Posterior, *fractions: float) -> Representers:
    """Representers for evaluations that report at these fractions of their way; without fractions, for others."""
    x = np.linspace(0.05, 0.95, 7)
    reported = (lambda points: traces(points, fractions)) if fractions else None
    return Representers.at_points(at, np.column_stack([x, np.ones(7)]), reported)


def whole_influence(of: Representers, *fractions: float) -> tuple[np.ndarray, np.ndarray]:
    return trace_influence(of.posterior, of.at, of.factor, traces(CANDIDATES, fractions))


def traces(points: np.ndarray, fractions: tuple[float, ...]) -> np.ndarray:
    steps = []
    for fraction in fractions:
        step = points.copy()
        step[:, 1] *= fraction
        steps.append(in_training(step, -1.0 - np.arange(len(points))))
    return np.stack(steps, axis=1)


CANDIDATES = np.array([[0.2, 0.5], [0.7, 0.9], [0.4, 0.2]])


def test_a_trace_of_one_point_says_what_that_point_says() -> None:
    plain = representers(posterior())
    along = representers(posterior(), 1.0)
    b, a = plain.influence(CANDIDATES)
    found_b, found_a = along.influence(CANDIDATES)
    np.testing.assert_allclose(np.abs(found_b), np.abs(b), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(np.abs(found_a), np.abs(a), rtol=1e-6, atol=1e-12)


def test_all_reports_reduce_the_covariance_as_conditioning_on_them_does() -> None:
    now = posterior()
    plain = representers(now)
    B, _ = whole_influence(plain, 0.3, 0.6, 1.0)
    before = now.covariance(plain.at, plain.at)
    for i in range(len(CANDIDATES)):
        given = now.condition(traces(CANDIDATES, (0.3, 0.6, 1.0))[i])
        at = given.project(plain.at.points)
        reduction = before - given.covariance(at, at)
        np.testing.assert_allclose(B[:, i] @ np.swapaxes(B[:, i], 1, 2), reduction, rtol=1e-5, atol=1e-9)


def test_the_summary_keeps_most_and_never_more_than_the_trace() -> None:
    along = representers(posterior(), 0.3, 0.6, 1.0)
    _, a = along.influence(CANDIDATES)
    _, A = whole_influence(along, 0.3, 0.6, 1.0)
    kept, whole = np.sum(a**2, axis=2), np.sum(A**2, axis=(2, 3))
    assert (kept <= whole + 1e-9).all()
    assert (kept >= whole / 3).all()  # of three directions it is the most telling one
    assert kept.sum() > 0.7 * whole.sum()


def test_a_trace_tells_at_least_as_much_as_its_end() -> None:
    plain = representers(posterior())
    along = representers(posterior(), 0.3, 0.6, 1.0)
    (_, end), (_, trace) = plain.influence(CANDIDATES), along.influence(CANDIDATES)
    assert (np.sum(trace**2, axis=2) >= np.sum(end**2, axis=2) - 1e-9).all()


def test_a_repeated_point_does_not_count_twice() -> None:
    once = representers(posterior(), 0.5, 1.0)
    twice = representers(posterior(), 0.5, 1.0, 1.0)
    np.testing.assert_allclose(
        np.sum(once.influence(CANDIDATES)[1] ** 2, axis=2),
        np.sum(twice.influence(CANDIDATES)[1] ** 2, axis=2),
        rtol=1e-4,
    )
