"""Validation error of a network over its hyperparameters, the number of training images and of epochs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

import fabolas
from experiments.live.search import Report
from experiments.networks import images, training

TEST_SEED = 2**31  # of the trainings after the search


@dataclass(frozen=True)
class Scale:
    """Size of an experiment.

    Attributes:
        side: Width and height of the images; those of 32 x 32 are averaged if it is smaller.
        rows: Training images, the target of the search.
        valid: Validation images.
        test: Test images.
        smallest: Images of the smallest subset.
        epochs: Epochs of a full training.
    """

    side: int
    rows: int
    valid: int
    test: int
    smallest: int
    epochs: int


class Architecture(Protocol):
    """A network with its hyperparameters; its `repr` says what they are."""

    tests_on: str  # "test", or "valid" as figure 5 of the paper
    space: Mapping[str, Any]

    def build(self, config: dict[str, Any], side: int) -> nn.Module: ...

    def optimizer(self, config: dict[str, Any], model: nn.Module) -> torch.optim.Optimizer: ...

    def plan(self, config: dict[str, Any], epochs: int) -> training.Plan: ...


@dataclass(frozen=True)
class Setting:
    """A network, a data set, and how much of it is used."""

    architecture: Architecture
    data: str
    scale: Scale
    directory: Path | None = None

    def describe(self) -> dict[str, Any]:
        return {"experiment": repr(self.architecture), "data": self.data, **asdict(self.scale)}

    def load(self) -> Network:
        s = self.scale
        found = images.split(images.load(self.data, self.directory), s.rows, s.valid, s.test)
        return Network(self.architecture, s, found)


class Network:
    """The data in memory; one training at a time."""

    def __init__(self, architecture: Architecture, scale: Scale, split: images.Split) -> None:
        if training.device().type == "cpu":
            torch.set_num_threads(1)
        self.space = architecture.space
        self.ranges = {"rows": (scale.smallest, scale.rows), "epochs": (1, scale.epochs)}
        self._architecture, self._scale, self._labels = architecture, scale, split.train[1]
        self._train, self._valid, self._test = (
            training.tensors(part, scale.side) for part in (split.train, split.valid, split.test)
        )
        training.warm_up()

    def train(
        self, config: dict[str, Any], seed: int, report: Report | None, *, rows: int, epochs: int
    ) -> float:
        """Train on a random subset, stratified by class; validation error."""
        chosen = torch.from_numpy(fabolas.subset(self._labels, rows, seed=seed)).to(self._train[0].device)
        data = self._train[0][chosen], self._train[1][chosen]
        return self._error(config, seed, data, self._valid, epochs, report)

    def test(self, config: dict[str, Any]) -> float:
        """Train on all training images (and the validation images, if others are for the test) for all epochs."""
        data, on = self._train, self._valid
        if self._architecture.tests_on == "test":
            data = tuple(torch.cat(pair) for pair in zip(self._train, self._valid, strict=True))  # type: ignore[assignment]
            on = self._test
        return self._error(config, TEST_SEED, data, on, self._scale.epochs, None)

    def _error(
        self,
        config: dict[str, Any],
        seed: int,
        data: tuple[Tensor, Tensor],
        on: tuple[Tensor, Tensor],
        epochs: int,
        report: Report | None,
    ) -> float:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            model = self._architecture.build(config, self._scale.side).to(data[0].device)
        errors = [np.nan]

        def measure(epoch: int) -> None:
            if report is not None or epoch == epochs:
                errors.append(training.error(model, on))
            if report is not None and epoch < epochs:
                report(epochs=epoch, loss=errors[-1])

        rng = torch.Generator().manual_seed(seed)
        optimizer = self._architecture.optimizer(config, model)
        training.fit(model, optimizer, data, self._architecture.plan(config, epochs), rng, measure)
        return errors[-1]
