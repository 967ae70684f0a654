"""Prior densities against scipy, integrals and their own samples."""

import numpy as np
import pytest
from scipy import integrate, stats

from fabolas.gp import priors
from fabolas.gp.priors import LogHorseshoe, Normal, Prior, Uniform

ALL: list[Prior] = [Uniform(-5.0, 1.0), Normal(-1.0, 0.5), LogHorseshoe(0.1)]


def test_uniform_is_scipys() -> None:
    t = np.linspace(-6, 2, 50)
    np.testing.assert_allclose(Uniform(-5.0, 1.0).log_density(t), stats.uniform(-5.0, 6.0).logpdf(t))


def test_a_normal_in_the_logarithm_is_scipys_lognormal_with_its_jacobian() -> None:
    t = np.linspace(-4, 4, 50)
    expected = stats.lognorm(s=0.5, scale=np.exp(-1.0)).logpdf(np.exp(t)) + t
    np.testing.assert_allclose(Normal(-1.0, 0.5).log_density(t), expected, rtol=1e-12)


def test_the_horseshoe_is_the_integral_over_its_half_cauchy_scales() -> None:
    scale = 0.1
    for v in (1e-3, 0.05, 0.3, 4.0):

        def mixture(log_lam: float, v: float = v) -> float:
            lam = np.exp(log_lam)
            return 2 * stats.norm(scale=scale * lam).pdf(v) * stats.halfcauchy.pdf(lam) * lam

        density = integrate.quad(mixture, -40, 40, limit=400)[0]
        ours = LogHorseshoe(scale).log_density(np.log([v]))[0]
        assert ours == pytest.approx(np.log(density * v), abs=1e-6)


@pytest.mark.parametrize("prior", ALL, ids=repr)
def test_a_prior_integrates_to_one(prior: Prior) -> None:
    t = np.linspace(-30, 30, 60_001)
    assert integrate.trapezoid(np.exp(prior.log_density(t)), t) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("prior", ALL, ids=repr)
def test_samples_follow_the_density(prior: Prior) -> None:
    t = np.linspace(-30, 30, 60_001)
    cumulative = integrate.cumulative_trapezoid(np.exp(prior.log_density(t)), t, initial=0)
    draws = prior.sample(np.random.default_rng(0), 4000)
    assert stats.kstest(draws, lambda x: np.interp(x, t, cumulative)).pvalue > 1e-3


@pytest.mark.parametrize("prior", ALL, ids=repr)
def test_log_densities_far_out_are_never_nan(prior: Prior) -> None:
    value = prior.log_density(np.array([-1e3, -50.0, 50.0, 1e3]))
    assert not np.isnan(value).any()


def test_independent_priors_add_up() -> None:
    theta = priors.sample(tuple(ALL), np.random.default_rng(1), 7)
    expected = sum(p.log_density(theta[:, i]) for i, p in enumerate(ALL))
    np.testing.assert_allclose(priors.log_density(tuple(ALL), theta), expected)
