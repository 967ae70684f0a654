"""BOHB (Falkner et al. 2018): the config generator of hpbandster in the brackets of its Hyperband.

Settings: the defaults of `hpbandster.optimizers.BOHB` (eta 3, random fraction 1/3, top 15 %). Its master and workers,
which talk over a network, are left out: the brackets are run one trial after another. The answer is the lowest loss
at the largest budget so far, as `Result.get_incumbent_trajectory` says.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import ConfigSpace
import numpy as np
from hpbandster.optimizers.config_generators.bohb import BOHB

from experiments.peers.session import LargestSoFar, Session, configuration_space

ETA = 3


class OldConfigSpace(ConfigSpace.ConfigurationSpace):
    """The methods of ConfigSpace 0.4 that hpbandster calls."""

    def get_hyperparameters(self) -> list[Any]:
        return list(self.values())

    def get_hyperparameter(self, name: str) -> Any:
        return self[name]

    def get_hyperparameter_by_idx(self, index: int) -> str:
        return self.at[index]


def run(session: Session) -> None:
    """Successive halving brackets, the configurations from kernel density estimates."""
    np.random.seed(session.seed)  # noqa: NPY002 - hpbandster draws from the global generator
    given = configuration_space(session.problem, session.seed)
    space = OldConfigSpace(seed=session.seed)
    space.add(*given.values())
    space.add(*given.conditions)
    generator = BOHB(space)
    low, high = float(session.fidelity.low), session.target
    n_rungs = -int(np.log(low / high) / np.log(ETA)) + 1
    budgets = high * np.power(ETA, -np.linspace(n_rungs - 1, 0, n_rungs))
    answer = LargestSoFar()
    iteration = 0
    while not session.over:
        s = n_rungs - 1 - iteration % n_rungs
        n_first = int(np.floor(n_rungs / (s + 1)) * ETA**s)
        counts = [max(int(n_first * ETA**-i), 1) for i in range(s + 1)]
        configs: list[dict[str, Any]] = []
        losses: list[float] = []
        for i, (count, budget) in enumerate(zip(counts, budgets[-s - 1 :], strict=True)):
            if i:
                configs = [configs[j] for j in np.argsort(losses, kind="stable")[:count]]
            losses = []
            for j in range(count):
                if i == 0:
                    configs.append(dict(generator.get_config(budget)[0]))
                loss, _ = session.evaluate(configs[j], budget)
                losses.append(loss)
                generator.new_result(_job(configs[j], budget, loss))
                session.answer(answer.after(budget, loss, configs[j]))
        iteration += 1


def _job(config: dict[str, Any], budget: float, loss: float) -> SimpleNamespace:
    """A finished job as the config generator reads it."""
    return SimpleNamespace(
        kwargs={"config": config, "budget": budget},
        result={"loss": loss, "info": {}},
        exception=None,
        id=(0, 0, 0),
    )
