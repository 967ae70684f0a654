"""SMAC3 (Lindauer et al. 2022), by ask and tell.

Settings: those of its documentation. `MultiFidelityFacade` with its default Hyperband (eta 3) and five initial
configurations, as in its example with epochs. The incumbent is the default, that of the highest budget observed so far:
the example's "highest_budget" has no answer before the first training on all the data. After this training the two
differ only if a configuration is better on a smaller budget. `HyperparameterOptimizationFacade` has its defaults, on
all the data; a quarter of the expected number of trials is its initial design.
"""

from __future__ import annotations

import logging
import tempfile

from smac import HyperparameterOptimizationFacade, MultiFidelityFacade, Scenario
from smac.runhistory import TrialValue

from experiments.peers.session import Session, configuration_space

logging.getLogger("smac").setLevel(logging.ERROR)


def multi_fidelity(session: Session) -> None:
    """Hyperband with random forests."""
    with tempfile.TemporaryDirectory() as directory:
        scenario = Scenario(
            configuration_space(session.problem, session.seed),
            deterministic=True,
            n_trials=session.max_trials,
            min_budget=float(session.fidelity.low),
            max_budget=session.target,
            seed=session.seed,
            output_directory=directory,
        )
        facade = MultiFidelityFacade
        smac = facade(
            scenario,
            lambda config, seed, budget: 0.0,  # never called: the loop is ours
            initial_design=facade.get_initial_design(scenario, n_configs=5),
            logging_level=logging.ERROR,
            overwrite=True,
        )
        _loop(session, smac)


def full_data(session: Session) -> None:
    """Random forests and expected improvement on all the data."""
    with tempfile.TemporaryDirectory() as directory:
        scenario = Scenario(
            configuration_space(session.problem, session.seed),
            deterministic=True,
            n_trials=session.n_full_trainings,
            seed=session.seed,
            output_directory=directory,
        )
        smac = HyperparameterOptimizationFacade(
            scenario, lambda config, seed: 0.0, logging_level=logging.ERROR, overwrite=True
        )
        _loop(session, smac)


def _loop(session: Session, smac: HyperparameterOptimizationFacade) -> None:
    while not session.over:
        info = smac.ask()
        loss, cost = session.evaluate(dict(info.config), info.budget)
        smac.tell(info, TrialValue(cost=loss, time=cost), save=False)
        with session.looking():
            incumbents = smac.intensifier.get_incumbents()
        session.answer(dict(incumbents[0]) if incumbents else None)
