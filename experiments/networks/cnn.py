"""Figure 4 of the paper: a convolutional network tuned live on CIFAR-10 or SVHN.

    python -m experiments.networks.cnn run --dataset svhn --data DIR --scale small --time-budget 60 --seeds 3
    python -m experiments.networks.cnn summary --dataset svhn --scale small --time-budget 60 --seeds 3
    python -m experiments.networks.cnn figures --dataset svhn --scale small --time-budget 60 --seeds 3

Three convolutional layers with batch normalisation, trained with Adam. Hyperparameters: learning rate, batch size,
units of each layer. The methods `fabolas-epochs` and `fabolas-reports` choose the number of epochs too.

| | `--scale paper` | `--scale small` |
|---|---|---|
| images | 32 x 32 | averaged to 16 x 16 |
| CIFAR-10: training, validation, test images | 40,000, 10,000, 10,000 | 2,000, 1,000, 2,000 |
| SVHN: training, validation, test images | 67,257, 6,000, 26,032 | 2,000, 1,000, 2,000 |
| smallest subset | 512 images | 64 images |
| epochs | 40 | 6 |
| units of a layer | 16 to 1,024 | 4 to 16 |
| batch size | 32 to 512 | 16 to 64 |
| learning rate | 1e-6 to 1 | 1e-6 to 1 |

`--scale paper` is meant for a GPU: add `--clock wall`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

import fabolas
from experiments.live import command
from experiments.networks.problem import Scale, Setting
from experiments.networks.training import Plan

FILTER = 5  # pixels
METHODS = (
    "fabolas",
    "fabolas-epochs",
    "fabolas-reports",
    "fabolas2017",
    "mtbo",
    "es",
    "ei",
    "hyperband",
    "random",
)
PAPER = {
    "cifar10": Scale(side=32, rows=40_000, valid=10_000, test=10_000, smallest=512, epochs=40),
    "svhn": Scale(side=32, rows=67_257, valid=6_000, test=26_032, smallest=512, epochs=40),
}
SMALL = Scale(side=16, rows=2_000, valid=1_000, test=2_000, smallest=64, epochs=6)


@dataclass(frozen=True)
class Cnn:
    """Convolution, batch normalisation, rectifier and max-pooling, three times; then a linear layer.

    Attributes:
        units: Fewest and most units of a layer.
        batches: Smallest and largest batch.
    """

    units: tuple[int, int] = (16, 1024)
    batches: tuple[int, int] = (32, 512)
    tests_on = "test"

    @property
    def space(self) -> Mapping[str, Any]:
        """The five hyperparameters."""
        layers = {f"units_{i}": fabolas.Integer(*self.units, log=True) for i in (1, 2, 3)}
        return {
            "learning_rate": fabolas.Float(1e-6, 1.0, log=True),
            "batch_size": fabolas.Integer(*self.batches),
            **layers,
        }

    def build(self, config: dict[str, Any], side: int) -> nn.Module:
        """The network for images of `side` x `side`."""
        layers: list[nn.Module] = []
        channels = 3
        for i in (1, 2, 3):
            units = config[f"units_{i}"]
            convolution = nn.Conv2d(channels, units, FILTER, padding=FILTER // 2, bias=False)
            nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")
            layers += [convolution, nn.BatchNorm2d(units), nn.ReLU(), nn.MaxPool2d(3, 2, padding=1)]
            channels = units
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels * (side // 8) ** 2, 10))

    def optimizer(self, config: dict[str, Any], model: nn.Module) -> torch.optim.Optimizer:
        """Adam."""
        return torch.optim.Adam(model.parameters(), config["learning_rate"])

    def plan(self, config: dict[str, Any], epochs: int) -> Plan:
        """No schedule and no augmentation."""
        return Plan(epochs, config["batch_size"])


def setting(options: Any) -> Setting:
    """The network and its data by the options."""
    if options.scale == "paper":
        return Setting(Cnn(), options.dataset, PAPER[options.dataset], options.data)
    return Setting(Cnn((4, 16), (16, 64)), options.dataset, SMALL, options.data)


def main(arguments: list[str] | None = None) -> int:
    """Command line."""
    parser = command.parser("networks.cnn", __doc__ or "", METHODS, 600.0, (0.02, 0.01))
    parser.add_argument("--dataset", choices=list(PAPER), default="cifar10")
    parser.add_argument("--scale", choices=["small", "paper"], default="small")
    options = parser.parse_args(arguments)
    return command.main(options, setting(options), f"CNN on {options.dataset}, {options.scale} scale")


if __name__ == "__main__":
    sys.exit(main())
