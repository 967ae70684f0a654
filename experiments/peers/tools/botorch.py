"""BoTorch: multi-fidelity max-value entropy search with its recommended model, as in its tutorials.

Settings: `SingleTaskMultiFidelityGP` on (configuration, relative size), `qMultiFidelityMaxValueEntropy` with 1,024
candidates, 4 + 2d initial points at random sizes. BoTorch leaves the cost model to its user: it is the affine one of
the tutorials, fitted by least squares to the time from one evaluation to the next, so that overhead counts. Categories
are one-hot columns that are rounded. The answer is the configuration with the best posterior mean at the target, as
`get_recommendation` of the tutorial, from the fourth evaluation on.
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
from scipy.optimize import nnls

from experiments.peers.session import Session
from fabolas import Space

warnings.filterwarnings("ignore")
torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
MIN_ANSWERED = 4  # evaluations before the first model
N_CANDIDATES = 1024
MIN_COST = 0.01  # of each part of the cost model, in full trainings


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
    initial = encoding.columns(encoding.space.sobol(4 + 2 * len(encoding.n_choices), rng))
    points: list[np.ndarray] = []
    losses: list[float] = []
    seconds: list[float] = []  # of each evaluation, with the overhead before it
    model, now = None, session.clock()
    while not session.over:
        if len(points) < len(initial):
            columns = np.append(initial[len(points)], np.exp(rng.uniform(np.log(lowest), 0.0)))
        else:
            candidates = encoding.columns(encoding.space.sobol(N_CANDIDATES, rng))
            columns = _next(
                model, d, bounds, candidates, _cost_model(np.array(points)[:, d], np.array(seconds), d)
            )
        config, rounded = encoding.config(columns[:d])
        before = now
        loss, _ = session.evaluate(config, float(columns[d]) * session.target)
        now = session.clock()
        points.append(np.append(rounded, columns[d]))
        losses.append(loss)
        seconds.append(now - before)
        if len(points) < MIN_ANSWERED:
            session.answer(None)
            continue
        model = _fitted(np.array(points), np.array(losses))
        with session.looking():
            answer = encoding.config(_recommended(model, d, bounds))[0]
        session.answer(answer)


def _cost_model(sizes: np.ndarray, costs: np.ndarray, d: int) -> AffineFidelityCostModel:
    """Cost = a + b s by least squares, as a share of the cost of a full training."""
    (a, b), _ = nnls(np.stack([np.ones(len(sizes)), sizes], axis=1), costs)
    total = max(a + b, 1e-9)
    return AffineFidelityCostModel(
        fidelity_weights={d: max(b / total, MIN_COST)}, fixed_cost=max(a / total, MIN_COST)
    )


def _fitted(points: np.ndarray, losses: np.ndarray) -> SingleTaskMultiFidelityGP:
    X, Y = torch.tensor(points), -torch.tensor(losses)[:, None]
    model = SingleTaskMultiFidelityGP(
        X, Y, data_fidelities=[X.shape[1] - 1], outcome_transform=Standardize(1)
    )
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


def _next(
    model: SingleTaskMultiFidelityGP,
    d: int,
    bounds: torch.Tensor,
    configurations: np.ndarray,
    cost: AffineFidelityCostModel,
) -> np.ndarray:
    """The next columns (d + 1,); the maximum is sampled on the configurations (N, d) at random sizes."""
    sizes = bounds[0, d] + (bounds[1, d] - bounds[0, d]) * torch.rand(len(configurations), 1)
    candidates = torch.cat([torch.tensor(configurations), sizes], dim=1)
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
