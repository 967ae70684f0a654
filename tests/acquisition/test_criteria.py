"""What every criterion promises, and how entropy uses its samples."""

import numpy as np
import pytest

from fabolas.acquisition.criteria import Criterion, EntropyReduction
from fabolas.acquisition.entropy import PosteriorSamples, monte_carlo_information
from fabolas.acquisition.knowledge_gradient import KnowledgeGradient
from fabolas.acquisition.representers import Representers
from fabolas.gp.kernels import Amplitude, Matern52, Product
from fabolas.gp.regression import GaussianProcess, Noise, Posterior


@pytest.fixture(scope="module")
def posterior() -> Posterior:
    rng = np.random.default_rng(0)
    theta = np.array([[-1.0, -1.2, 0.1, -4.0], [-0.6, -1.5, 0.3, -3.0]])
    model = GaussianProcess(Product((Matern52((0, 0)), Amplitude())), Noise())
    return model.posterior(rng.random((12, 2)), rng.normal(size=12), theta)


REPRESENTERS = np.random.default_rng(1).random((9, 2))
POINTS = np.random.default_rng(2).random((25, 2))


def sizes(n_samples: int = 64, seed: int = 3) -> dict[str, object]:
    return {
        "n_fidelities": 0,
        "n_samples": n_samples,
        "n_outcomes": 5,
        "represent": Representers.at_points,
        "rng": np.random.default_rng(seed),
    }


@pytest.mark.parametrize(
    "criterion", [EntropyReduction(), EntropyReduction(final_samples=4), KnowledgeGradient()]
)
def test_worth_is_a_number_that_is_not_negative_and_a_batch_has_different_allowed_points(
    criterion: Criterion, posterior: Posterior
) -> None:
    prepared = criterion.prepare(posterior, REPRESENTERS, posterior.points[:3], **sizes())  # type: ignore[arg-type]
    screened = prepared.screen(POINTS)
    for values in (screened.worth, prepared.evaluate(POINTS)):
        assert values.shape == (2, 25)
        assert np.isfinite(values).all()
        assert (values >= 0.0).all()
        assert values.max() > criterion.negligible
    allowed = np.arange(25) % 3 > 0
    chosen = screened.batch(np.ones(25), allowed, first=1, count=5).tolist()
    assert chosen[0] == 1
    assert len(set(chosen)) == 5
    assert allowed[chosen].all()


def test_the_final_choice_by_entropy_uses_the_samples_of_screening_or_more(posterior: Posterior) -> None:
    representers = Representers.at_points(posterior, REPRESENTERS)
    same = PosteriorSamples.draw(representers, 64, np.random.default_rng(3))
    truth = monte_carlo_information(
        representers, PosteriorSamples.draw(representers, 8192, np.random.default_rng(9))
    )(POINTS)
    error = {}
    for times in (1, 16):
        at = EntropyReduction(final_samples=times).prepare(
            posterior, REPRESENTERS, REPRESENTERS[:1], **sizes()
        )  # type: ignore[arg-type]
        error[times] = np.abs(at.evaluate(POINTS) - truth).mean()
    once = EntropyReduction().prepare(posterior, REPRESENTERS, REPRESENTERS[:1], **sizes())  # type: ignore[arg-type]
    np.testing.assert_array_equal(once.evaluate(POINTS), monte_carlo_information(representers, same)(POINTS))
    assert error[16] < 0.5 * error[1]
