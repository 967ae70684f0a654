"""BoTorch: multi-fidelity max-value entropy search with its recommended model, as in its tutorials.

Settings: `SingleTaskMultiFidelityGP` on (configuration, relative size), `qMultiFidelityMaxValueEntropy` with 1,000
candidates, an affine cost model, 4 + 2d initial points at random sizes. Categories are one-hot columns that are
rounded. The answer is the configuration with the best posterior mean at the target, as `get_recommendation` of the
tutorial.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from botorch.acquisition import PosteriorMean
from botorch.acquisition.cost_aware import InverseCostWeightedUtility
from botorch.acquisition.fixed_feature import FixedFeatureAcquisitionFunction
from botorch.acquisition.max_value_entropy_search import qMultiFidelityMaxValueEntropy
from botorch.acquisition.utils import project_to_target_fidelity
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskMultiFidelityGP
from botorch.models.cost import AffineFidelityCostModel
from botorch.models.transforms import Standardize
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood

from experiments.peers.session import Session
from fabolas import Space

warnings.filterwarnings("ignore")
torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)


class Encoding:
    """Configurations <-> columns in [0, 1]: numbers as the space scales them, categories one-hot."""

    def __init__(self, session: Session) -> None:
        self.space = Space(session.problem.space, session.problem.fidelities)
        self.n_choices = self.space.n_choices
        self.d = sum(max(n, 1) for n in self.n_choices)

    def columns(self, x: np.ndarray) -> np.ndarray:
        """(n, dim) points of the cube -> (n, d)."""
        blocks = []
        for i, n in enumerate(self.n_choices):
            if n:
                blocks.append(np.eye(n)[np.minimum((x[:, i] * n).astype(int), n - 1)])
            else:
                blocks.append(x[:, i : i + 1])
        return np.concatenate(blocks, axis=1)

    def config(self, columns: np.ndarray) -> tuple[dict[str, Any], np.ndarray]:
        """(d,) -> the configuration, and its columns after rounding."""
        x, at = np.empty(len(self.n_choices)), 0
        for i, n in enumerate(self.n_choices):
            width = max(n, 1)
            block = columns[at : at + width]
            x[i] = (np.argmax(block) + 0.5) / n if n else block[0]
            at += width
        point = self.space.snap(np.append(np.clip(x, 0, 1), np.ones(self.space.n_fidelities))[None])
        return self.space.decode(point[0])[0], self.columns(point[:, : len(self.n_choices)])[0]


def run(session: Session) -> None:
    """Max-value entropy per cost."""
    torch.manual_seed(session.seed)
    rng = np.random.default_rng(session.seed)
    encoding = Encoding(session)
    d, lowest = encoding.d, float(session.fidelity.low) / session.target
    bounds = torch.tensor([[0.0] * d + [lowest], [1.0] * (d + 1)])
    points: list[np.ndarray] = []
    losses: list[float] = []

    def evaluate(columns: np.ndarray, s: float) -> None:
        config, rounded = encoding.config(columns)
        loss, _ = session.evaluate(config, s * session.target)
        points.append(np.append(rounded, s))
        losses.append(loss)

    for x in encoding.columns(encoding.space.sobol(4 + 2 * len(encoding.n_choices), rng)):
        evaluate(x, float(np.exp(rng.uniform(np.log(lowest), 0.0))))
        session.answer(None)
    while not session.over:
        model = _fitted(np.array(points), np.array(losses))
        columns = _next(model, d, bounds, lowest)
        evaluate(columns[:d], float(columns[d]))
        with session.looking():
            answer = encoding.config(_recommended(_fitted(np.array(points), np.array(losses)), d, bounds))[0]
        session.answer(answer)


def _fitted(points: np.ndarray, losses: np.ndarray) -> SingleTaskMultiFidelityGP:
    X, Y = torch.tensor(points), -torch.tensor(losses)[:, None]
    model = SingleTaskMultiFidelityGP(
        X, Y, data_fidelities=[X.shape[1] - 1], outcome_transform=Standardize(1)
    )
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


def _next(model: SingleTaskMultiFidelityGP, d: int, bounds: torch.Tensor, lowest: float) -> np.ndarray:
    cost = AffineFidelityCostModel(fidelity_weights={d: 1.0}, fixed_cost=lowest)
    candidates = bounds[0] + (bounds[1] - bounds[0]) * torch.rand(1000, d + 1)
    acquisition = qMultiFidelityMaxValueEntropy(
        model,
        candidate_set=candidates,
        cost_aware_utility=InverseCostWeightedUtility(cost),
        project=lambda X: project_to_target_fidelity(X, {d: 1.0}, d=d + 1),
    )
    best, _ = optimize_acqf(
        acquisition, bounds, q=1, num_restarts=5, raw_samples=128, options={"maxiter": 100}
    )
    return best[0].detach().numpy()


def _recommended(model: SingleTaskMultiFidelityGP, d: int, bounds: torch.Tensor) -> np.ndarray:
    mean = FixedFeatureAcquisitionFunction(PosteriorMean(model), d + 1, [d], [1.0])
    best, _ = optimize_acqf(mean, bounds[:, :d], q=1, num_restarts=5, raw_samples=256)
    return best[0].detach().numpy()
