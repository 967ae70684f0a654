"""The knowledge gradient against refitted posteriors, integrals, closed forms and its limits."""

import itertools

import numpy as np
import pytest
from scipy.stats import norm

from fabolas.acquisition.improvement import expected_improvement
from fabolas.acquisition.knowledge_gradient import KnowledgeGradient, PreparedGradient, expected_decrease
from fabolas.acquisition.representers import Representers
from fabolas.gp.kernels import Amplitude, Matern52, Product
from fabolas.gp.regression import GaussianProcess, Noise, Posterior

MODEL = GaussianProcess(Product((Matern52((0, 0, 0)), Amplitude())), Noise())
THETA = np.array(
    [[-1.0, -1.2, -0.3, 0.1, -3.0], [-0.6, -1.5, 0.2, 0.3, -1.0]]
)  # log lengths, amplitude, noise


@pytest.fixture(scope="module")
def posterior() -> Posterior:
    """Two coordinates and a fidelity, two hyperparameter samples, 14 trials."""
    rng = np.random.default_rng(0)
    points, y = rng.random((14, 3)), 0.3 * rng.normal(size=14)
    points[:3, 2] = 1.0
    return MODEL.posterior(points, y, THETA)


def gradient(posterior: Posterior, representers: np.ndarray, tried: np.ndarray) -> PreparedGradient:
    return KnowledgeGradient().prepare(
        posterior,
        representers,
        tried,
        n_fidelities=1,
        n_samples=0,
        n_outcomes=0,
        represent=Representers.at_points,
        rng=np.random.default_rng(0),
    )


def at_target(x: np.ndarray) -> np.ndarray:
    return np.column_stack([x, np.ones(len(x))])


@pytest.fixture(scope="module")
def prepared(posterior: Posterior) -> PreparedGradient:
    rng = np.random.default_rng(1)
    return gradient(posterior, at_target(rng.random((9, 2))), at_target(posterior.points[:3, :2]))


def refitted(prepared: PreparedGradient, point: np.ndarray, k: int, outcomes: int) -> float:
    """The same by brute force: posteriors of hyperparameters k fitted anew to each of many equally likely outcomes."""
    before = prepared.posterior
    mean = before.mean_of(point[None])[k, 0]
    sd = np.sqrt(before.variance(before.project(point[None])) + before.noise(point[None]))[k, 0]
    compared = np.vstack([prepared.shared.points, [*point[:2], 1.0]])
    y = before.L[k] @ before.beta[k]  # the targets: the mean function is zero
    points = np.vstack([before.points, point])
    after = [
        MODEL.posterior(points, np.append(y, outcome), THETA[k : k + 1]).mean_of(compared).min()
        for outcome in norm.ppf((np.arange(outcomes) + 0.5) / outcomes, mean, sd)
    ]
    return float(before.mean_of(compared)[k].min() - np.mean(after))


def test_it_is_what_posteriors_fitted_again_to_every_outcome_say(prepared: PreparedGradient) -> None:
    points = np.random.default_rng(2).random((4, 3))
    points[0, 2] = 1.0
    ours = prepared.evaluate(points)
    truth = np.array([[refitted(prepared, point, k, 200) for point in points] for k in range(2)])
    assert truth.max() > 0.02
    np.testing.assert_allclose(ours, truth, rtol=0.02, atol=1e-4)


@pytest.mark.parametrize("scale", [0.03, 1.0, 30.0])
def test_the_expectation_is_the_integral(scale: float) -> None:
    rng = np.random.default_rng(0)
    mean, slope = rng.normal(size=(5, 12)), scale * rng.normal(size=(5, 12))
    w, h = np.linspace(-9.0, 9.0, 100_001, retstep=True)
    for m, b, ours in zip(mean, slope, expected_decrease(mean, slope), strict=True):
        lowest = np.min(m[:, None] + b[:, None] * w, axis=0)
        assert ours == pytest.approx(m.min() - h * np.sum(lowest * norm.pdf(w)), rel=1e-5, abs=1e-8)


def test_of_two_lines_it_is_the_closed_form_also_far_out() -> None:
    for c in (0.0, 0.7, 5.0, 20.0):
        ours = expected_decrease(np.array([0.0, 2.0 * c]), np.array([-0.5, 1.5]))
        truth = 2.0 * expected_improvement(np.array([c]), np.ones(1), 0.0)[0]
        assert ours == pytest.approx(truth, rel=1e-9)


def test_nothing_is_gained_where_no_prediction_moves_or_all_move_together() -> None:
    mean = np.array([0.3, -1.0, 2.0, -1.0])
    assert expected_decrease(mean, np.zeros(4)) == 0.0
    assert expected_decrease(mean, np.full(4, 0.7)) == 0.0
    assert expected_decrease(mean, np.array([0.0, 0.0, 1e-300, 0.0])) == 0.0


def test_order_and_repetition_of_lines_do_not_matter() -> None:
    rng = np.random.default_rng(0)
    mean, slope = rng.normal(size=(20, 9)), rng.normal(size=(20, 9))
    order = rng.permutation(np.repeat(np.arange(9), 2))
    np.testing.assert_allclose(
        expected_decrease(mean[:, order], slope[:, order]), expected_decrease(mean, slope), rtol=1e-12
    )


def test_an_evaluation_without_noise_and_independent_of_the_best_is_worth_its_expected_improvement() -> None:
    """Full information: the outcome is the candidate's value, and nothing else moves."""
    theta = np.array([[-4.0, -4.0, -4.0, 0.0, -30.0]])  # short lengths, no noise
    known = np.array([[0.1, 0.1, 1.0], [0.9, 0.9, 1.0]])
    posterior = MODEL.posterior(known, np.array([-0.4, 0.2]), theta)
    worth = gradient(posterior, known, known).evaluate(np.array([[0.5, 0.5, 1.0]]))
    truth = expected_improvement(np.zeros(1), np.ones(1), -0.4)
    np.testing.assert_allclose(worth[0], truth, rtol=1e-4)


def test_what_is_known_already_is_worth_nothing() -> None:
    theta = np.array([[-1.0, -1.0, -1.0, 0.0, -30.0]])
    known = np.array([[0.1, 0.1, 1.0], [0.9, 0.9, 1.0]])
    posterior = MODEL.posterior(known, np.array([-0.4, 0.2]), theta)
    assert gradient(posterior, at_target(np.full((1, 2), 0.5)), known).evaluate(known).max() < 1e-3


def test_the_candidate_itself_is_compared_too(posterior: Posterior) -> None:
    """A configuration far from all shared points moves none of them, but it may be the best."""
    theta = THETA.copy()
    theta[:, :2] = -4.0
    apart = MODEL.posterior(posterior.points, np.zeros(14), theta)
    tried = at_target(posterior.points[:3, :2])
    assert (gradient(apart, tried, tried).evaluate(np.array([[0.02, 0.98, 0.9]])) > 0.05).all()


def test_each_of_a_batch_is_the_best_per_cost_with_those_before_it_pending(
    prepared: PreparedGradient,
) -> None:
    rng = np.random.default_rng(3)
    points, divisor = rng.random((25, 3)), rng.uniform(0.5, 2.0, 25)
    points[:8, 2] = 1.0
    allowed = np.arange(25) % 4 > 0
    chosen = prepared.screen(points).batch(divisor, allowed, first=5, count=5).tolist()
    assert chosen[0] == 5
    pending = prepared.posterior
    for before, after in itertools.pairwise(chosen):
        pending = pending.condition(points[before][None])
        then = PreparedGradient(pending, pending.project(prepared.shared.points), prepared.mean, 1)
        worth = np.where(allowed, then.evaluate(points).mean(axis=0) / divisor, -np.inf)
        worth[chosen[: chosen.index(after)]] = -np.inf
        assert int(np.argmax(worth)) == after


def test_a_batch_has_no_more_points_than_are_allowed(prepared: PreparedGradient) -> None:
    points = np.random.default_rng(3).random((6, 3))
    allowed = np.array([True, False, True, False, False, True])
    chosen = prepared.screen(points).batch(np.ones(6), allowed, first=2, count=7)
    assert sorted(chosen.tolist()) == [0, 2, 5]
