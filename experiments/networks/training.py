"""One training loop for all networks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from experiments.networks.images import Labels, Pixels

EVALUATION_BATCH = 500


def device() -> torch.device:
    """A GPU if there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def warm_up() -> None:
    """Take one step, so that what PyTorch imports at the first one is not counted as time of the first trial."""
    model = nn.Linear(1, 2).to(device())
    data = torch.zeros(1, 1, device=device()), torch.zeros(1, dtype=torch.int64, device=device())
    fit(model, torch.optim.SGD(model.parameters(), 0.0), data, Plan(1, 1), torch.Generator())


def tensors(images: tuple[Pixels, Labels], side: int) -> tuple[Tensor, Tensor]:
    """Images as (n, 3, side, side) about in [-2, 2], averaged from 32 x 32 if `side` is smaller; labels."""
    x = torch.from_numpy(images[0].transpose(0, 3, 1, 2).copy()).float().div(127.5).sub(1.0)
    if side < 32:
        x = nn.functional.avg_pool2d(x, 32 // side)
    return (2.0 * x).to(device()), torch.from_numpy(images[1]).to(device())


@dataclass(frozen=True)
class Plan:
    """How a network is trained.

    Attributes:
        epochs: Number of epochs.
        batch_size: Images in a batch.
        drops: The learning rate is multiplied after these shares of the epochs.
        drop_factor: What it is multiplied by.
        shift: Training images are shifted by up to so many pixels and mirrored at random; 0 leaves them as they are.
    """

    epochs: int
    batch_size: int
    drops: tuple[float, ...] = ()
    drop_factor: float = 1.0
    shift: int = 0


def fit(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    data: tuple[Tensor, Tensor],
    plan: Plan,
    rng: torch.Generator,
    after_epoch: Callable[[int], Any] = lambda epoch: None,
) -> None:
    """Train the model in place; `after_epoch(epoch)` is called after each, counted from 1."""
    x, y = data
    drops = [round(share * plan.epochs) for share in plan.drops]
    for epoch in range(1, plan.epochs + 1):
        model.train()
        for batch in torch.randperm(len(x), generator=rng).split(plan.batch_size):
            rows = batch.to(x.device)
            images = x[rows] if plan.shift == 0 else augmented(x[rows], plan.shift, rng)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), y[rows]).backward()
            optimizer.step()
        if epoch in drops:
            for group in optimizer.param_groups:
                group["lr"] *= plan.drop_factor
        after_epoch(epoch)


def augmented(x: Tensor, shift: int, rng: torch.Generator) -> Tensor:
    """Every image (n, c, side, side) mirrored with probability 1/2 and cut from a padded copy at random."""
    n, _, side, _ = x.shape
    flips = torch.rand(n, generator=rng).to(x.device) < 0.5
    x = torch.where(flips[:, None, None, None], x.flip(3), x)
    padded = nn.functional.pad(x, (shift,) * 4)
    down, right = torch.randint(2 * shift + 1, (2, n, 1), generator=rng).to(x.device)  # (n, 1) each
    steps = torch.arange(side, device=x.device)
    rows, columns = (down + steps)[:, :, None], (right + steps)[:, None, :]  # (n, side, 1), (n, 1, side)
    images = torch.arange(n, device=x.device)[:, None, None]
    return padded[images, :, rows, columns].permute(0, 3, 1, 2)


@torch.no_grad()
def error(model: nn.Module, data: tuple[Tensor, Tensor]) -> float:
    """Share of wrong labels."""
    model.eval()
    x, y = data
    wrong = [
        (model(images).argmax(1) != labels).sum().item()
        for images, labels in zip(x.split(EVALUATION_BATCH), y.split(EVALUATION_BATCH), strict=True)
    ]
    return float(sum(wrong)) / len(y)
