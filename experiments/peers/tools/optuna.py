"""Optuna: TPE and the GP sampler on all the data, and TPE with the Hyperband pruner.

Settings: the defaults of the samplers. With the pruner a trial is trained at rungs of factor 3, reports each, and may
be pruned; on subsets every rung is a training of its own, with epochs it is one training that goes on. The answer is
`study.best_trial`, which knows complete trials only.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import ConfigSpace
import numpy as np
import optuna

from experiments.peers.session import Session, configuration_space

optuna.logging.set_verbosity(optuna.logging.ERROR)
REDUCTION = 3  # the default of HyperbandPruner


def tpe(session: Session) -> None:
    """TPE, the default sampler."""
    _full_data(session, optuna.samplers.TPESampler(seed=session.seed))


def gp(session: Session) -> None:
    """The GP sampler. It imports torch when it is first used, and imports do not count."""
    import_module("torch")
    session.start()
    _full_data(session, optuna.samplers.GPSampler(seed=session.seed))


def tpe_hyperband(session: Session) -> None:
    """TPE with the Hyperband pruner."""
    rungs = _rungs(session)
    scale = 1.0 if session.fidelity.integer else 1000.0  # the pruner's resources are whole numbers
    pruner = optuna.pruners.HyperbandPruner(
        min_resource=round(scale * rungs[0]),
        max_resource=round(scale * rungs[-1]),
        reduction_factor=REDUCTION,
    )
    study = optuna.create_study(
        study_name=f"seed {session.seed}",  # the pruner derives the brackets from it
        sampler=optuna.samplers.TPESampler(seed=session.seed),
        pruner=pruner,
    )
    space = configuration_space(session.problem, session.seed)
    while not session.over:
        trial = study.ask()
        config = suggest(trial, space)
        for fidelity in rungs:
            loss, _ = session.evaluate(config, fidelity)
            trial.report(loss, round(scale * fidelity))
            pruned = fidelity < rungs[-1] and trial.should_prune()
            if pruned:
                study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            elif fidelity == rungs[-1]:
                study.tell(trial, loss)
            session.answer(_best(session, study))
            if pruned:
                break


def _rungs(session: Session) -> list[float]:
    """Where a trial reports: 1, 3, 9, ... epochs and all of them, where the pruner acts.

    On subsets a report is a training of its own, so that the sizes are few and the last step is as large as the others.
    """
    low, high = float(session.fidelity.low), session.target
    count = int(np.floor(np.log(high / low) / np.log(REDUCTION) + 1e-9)) + 1
    if session.continues:
        return sorted({*(low * REDUCTION**k for k in range(count)), high})
    return [high / REDUCTION**k for k in range(count - 1, -1, -1)]


def _full_data(session: Session, sampler: optuna.samplers.BaseSampler) -> None:
    study = optuna.create_study(sampler=sampler)
    space = configuration_space(session.problem, session.seed)
    while not session.over:
        trial = study.ask()
        loss, _ = session.evaluate(suggest(trial, space))
        study.tell(trial, loss)
        session.answer(_best(session, study))


def _best(session: Session, study: optuna.Study) -> dict[str, Any] | None:
    with session.looking():
        complete = study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
        return dict(study.best_trial.params) if complete else None


def suggest(trial: optuna.Trial, space: ConfigSpace.ConfigurationSpace) -> dict[str, Any]:
    """The configuration of a trial, parents first; what is inactive is left out."""
    config: dict[str, Any] = {}
    conditions = {condition.child.name: condition for condition in space.conditions}
    for name, parameter in space.items():  # ConfigSpace orders parents before children
        condition = conditions.get(name)
        if condition is not None and config.get(condition.parent.name) != condition.value:
            continue
        if isinstance(parameter, ConfigSpace.CategoricalHyperparameter):
            config[name] = trial.suggest_categorical(name, list(parameter.choices))
        elif isinstance(parameter, ConfigSpace.UniformIntegerHyperparameter):
            config[name] = trial.suggest_int(name, parameter.lower, parameter.upper, log=parameter.log)
        else:
            config[name] = trial.suggest_float(name, parameter.lower, parameter.upper, log=parameter.log)
    return config
