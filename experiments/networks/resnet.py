"""Figure 5 of the paper: a residual network tuned live on CIFAR-10.

    python -m experiments.networks.resnet run --data DIR --scale small --time-budget 60 --seeds 3
    python -m experiments.networks.resnet summary --scale small --time-budget 60 --seeds 3
    python -m experiments.networks.resnet figures --scale small --time-budget 60 --seeds 3

Trained by gradient descent with momentum. Hyperparameters: learning rate, L2 regularisation, momentum, and the factor
by which the learning rate is multiplied after 1/2 and 3/4 of the epochs (41 and 61 of 82 in the paper). As in the
paper, the answers are trained on all training images and measured on the validation images.

| | `--scale paper` | `--scale small` |
|---|---|---|
| images | 32 x 32, mirrored and shifted by up to 4 pixels | averaged to 16 x 16, mirrored and shifted by up to 2 |
| training, validation images | 40,000, 10,000 | 2,000, 2,000 |
| smallest subset | 256 images | 64 images |
| epochs | 82 | 6 |
| layers | 32 (5 blocks a stage; 16, 32, 64 channels) | 8 (1 block a stage; 8, 16, 32 channels) |
| batch | 128 | 32 |

`--scale paper` is meant for a GPU: add `--clock wall`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

import fabolas
from experiments.live import command
from experiments.live.search import COMPARED
from experiments.networks.problem import Scale, Setting
from experiments.networks.training import Plan

PAPER = Scale(side=32, rows=40_000, valid=10_000, test=0, smallest=256, epochs=82)
SMALL = Scale(side=16, rows=2_000, valid=2_000, test=0, smallest=64, epochs=6)


class Block(nn.Module):
    """Two convolutions of 3 x 3 beside a shortcut that has no weights (option A of He et al. 2016)."""

    def __init__(self, channels: int, out: int) -> None:
        super().__init__()
        self._stride, self._added = (2, out - channels) if out > channels else (1, 0)
        self.body = nn.Sequential(
            *_convolution(channels, out, self._stride), nn.ReLU(), *_convolution(out, out, 1)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Where channels are added, the shortcut takes every second pixel, and zeros for the new channels."""
        shortcut = x[:, :, :: self._stride, :: self._stride]
        before = self._added // 2
        shortcut = nn.functional.pad(shortcut, (0, 0, 0, 0, before, self._added - before))
        return nn.functional.relu(self.body(x) + shortcut)


def _convolution(channels: int, out: int, stride: int) -> list[nn.Module]:
    convolution = nn.Conv2d(channels, out, 3, stride, padding=1, bias=False)
    nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")
    return [convolution, nn.BatchNorm2d(out)]


@dataclass(frozen=True)
class ResNet:
    """The residual network for small images of He et al. (2016): three stages of blocks.

    Attributes:
        blocks: Blocks in each stage; the network has 6 blocks + 2 layers.
        width: Channels of the first stage.
        batch_size: Images in a batch.
        shift: Pixels of the random shift.
    """

    blocks: int = 5
    width: int = 16
    batch_size: int = 128
    shift: int = 4
    tests_on = "valid"
    space = {  # noqa: RUF012 - never changed
        "learning_rate": fabolas.Float(1e-6, 1.0, log=True),
        "l2": fabolas.Float(1e-6, 1.0, log=True),
        "decay_factor": fabolas.Float(1e-4, 1.0, log=True),
        "momentum": fabolas.Float(0.1, 0.999),
    }

    def build(self, config: dict[str, Any], side: int) -> nn.Module:
        """The network; it has the same weights for every size of the images."""
        stages = [self.width * 2**i for i in range(3)]
        widths = [self.width, *(width for width in stages for _ in range(self.blocks))]
        blocks = [Block(a, b) for a, b in pairwise(widths)]
        pooled = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(stages[-1], 10)]
        return nn.Sequential(*_convolution(3, self.width, 1), nn.ReLU(), *blocks, *pooled)

    def optimizer(self, config: dict[str, Any], model: nn.Module) -> torch.optim.Optimizer:
        """Gradient descent with momentum. The penalty is l2 times the sum of squares: its gradient has a factor 2."""
        return torch.optim.SGD(
            model.parameters(), config["learning_rate"], config["momentum"], weight_decay=2.0 * config["l2"]
        )

    def plan(self, config: dict[str, Any], epochs: int) -> Plan:
        """The learning rate drops after 41 and 61 of 82 epochs."""
        return Plan(epochs, self.batch_size, (41 / 82, 61 / 82), config["decay_factor"], self.shift)


def setting(options: Any) -> Setting:
    """The network and its data by the options."""
    if options.scale == "paper":
        return Setting(ResNet(), "cifar10", PAPER, options.data)
    return Setting(ResNet(blocks=1, width=8, batch_size=32, shift=2), "cifar10", SMALL, options.data)


def main(arguments: list[str] | None = None) -> int:
    """Command line."""
    parser = command.parser("networks.resnet", __doc__ or "", COMPARED, 600.0, (0.02, 0.01))
    parser.add_argument("--scale", choices=["small", "paper"], default="small")
    options = parser.parse_args(arguments)
    return command.main(options, setting(options), f"ResNet on cifar10, {options.scale} scale")


if __name__ == "__main__":
    sys.exit(main())
