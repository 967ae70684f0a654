"""Several evaluations at once: the chain rule, step by step, against determinants computed whole."""

import numpy as np
import pytest

from fabolas.acquisition.batch import Outcomes, greedy_batch
from fabolas.acquisition.entropy import PosteriorSamples, entropy, gaussian_information
from fabolas.acquisition.representers import Representers
from fabolas.gp.kernels import Amplitude, Matern52, Product
from fabolas.gp.regression import GaussianProcess, Noise


@pytest.fixture(scope="module")
def setting() -> tuple[Representers, PosteriorSamples, np.ndarray]:
    rng = np.random.default_rng(0)
    model = GaussianProcess(Product((Matern52((0, 0)), Amplitude())), Noise())
    P, y = rng.random((12, 2)), rng.normal(size=12)
    theta = np.array([[-1.0, -1.2, 0.1, -4.0], [-0.6, -1.5, 0.3, -3.0]])
    posterior = model.posterior(P, y, theta)
    representers = Representers.at_points(posterior, rng.random((9, 2)))
    return representers, PosteriorSamples.draw(representers, 128, rng), rng.random((25, 2))


def whole(outcomes: Outcomes, draws: PosteriorSamples, chosen: list[int]) -> np.ndarray:
    """Information (K,) of the chosen outcomes together, from determinants of their covariances."""
    e, explained, total = outcomes._e[:, chosen], outcomes._explained, outcomes._total
    block = np.ix_(range(len(e)), chosen, chosen)
    K, R = len(e), draws.Z.shape[1]
    value = 0.5 * np.linalg.slogdet(total[block])[1]
    for k in range(K):
        for r in range(R):
            of_label = e[k][:, draws.labels[k] == r]
            count = of_label.shape[1]
            centred = of_label - of_label.mean(axis=1, keepdims=True) if count else of_label
            scatter = centred @ centred.T + 2.0 * explained[block][k]
            within = scatter / (max(count - 1, 0) + 2.0) + (total - explained)[block][k]
            value[k] -= 0.5 * count / e.shape[2] * np.linalg.slogdet(within)[1]
    return value


def test_alone_each_outcome_informs_as_screening_says(
    setting: tuple[Representers, PosteriorSamples, np.ndarray],
) -> None:
    representers, draws, points = setting
    information = Outcomes.at_points(representers, draws, points).information
    # What is estimated below nothing is left as it is here: sums are to add up.
    information = np.clip(information, 0.0, entropy(draws.pmin)[:, None])
    np.testing.assert_allclose(
        information, gaussian_information(representers, draws)(points), rtol=1e-6, atol=1e-9
    )


def test_what_is_added_step_by_step_is_the_information_of_all_together(
    setting: tuple[Representers, PosteriorSamples, np.ndarray],
) -> None:
    representers, draws, points = setting
    outcomes = Outcomes.at_points(representers, draws, points)
    chosen, added = [3, 17, 8, 20], np.zeros(2)
    for j in chosen:
        added += outcomes.information[:, j]
        outcomes.choose(j)
    np.testing.assert_allclose(added, whole(outcomes, draws, chosen), rtol=1e-8)


def test_an_exact_repetition_adds_next_to_nothing(
    setting: tuple[Representers, PosteriorSamples, np.ndarray],
) -> None:
    representers, draws, points = setting
    twice = np.vstack([points, points[:1]])
    outcomes = Outcomes.at_points(representers, draws, twice)
    alone = outcomes.information[:, -1].copy()
    outcomes.choose(0)
    assert np.all(outcomes.information[:, -1] < 0.5 * alone)


def test_each_choice_is_the_best_for_its_price_given_those_before(
    setting: tuple[Representers, PosteriorSamples, np.ndarray],
) -> None:
    representers, draws, points = setting
    price = np.random.default_rng(1).uniform(0.5, 2.0, len(points))
    allowed = np.ones(len(points), dtype=bool)
    allowed[::4] = False
    chosen = greedy_batch(representers, draws, points, price, allowed, first=5, count=5).tolist()
    assert chosen[0] == 5
    assert len(set(chosen)) == 5
    assert allowed[chosen].all()
    outcomes = Outcomes.at_points(representers, draws, points)
    for step in range(1, 5):
        left = [i for i in range(len(points)) if allowed[i] and i not in chosen[:step]]
        joint = np.array([whole(outcomes, draws, [*chosen[:step], i]).mean() for i in left])
        added = joint - whole(outcomes, draws, chosen[:step]).mean()
        assert left[int(np.argmax(added / price[left]))] == chosen[step]
