"""``FabolasSampler``: the methods that an objective or its caller uses, and those that Optuna calls."""

from __future__ import annotations

import math
import secrets
import threading
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import BaseTrial, FrozenTrial, TrialState

from fabolas.execution import MIN_COST_SECONDS
from fabolas.keywords import check_keywords
from fabolas.optuna.model import (
    COST,
    LOSS,
    SUGGESTION,
    Decision,
    StudyModel,
    check_no_constraints,
    check_single_objective,
)
from fabolas.optuna.parameters import Parameter
from fabolas.space import Float, Space
from fabolas.space.fidelity import Fidelity, parse_fidelities, refuse_reports
from fabolas.strategies import make, option_names
from fabolas.study.opening import check_seed
from fabolas.trials import ENQUEUED, RANDOM, Incumbent, as_cost

SEED = "fabolas:seed"  # system attribute of a study whose sampler was given no seed
# Steps of `trial.report` unless there is a single whole-number fidelity: thousandths of the target.
_STEPS = 1000


@dataclass
class _Clock:
    """Seconds since a trial was created, without those that it spent in the sampler."""

    started: float
    in_sampler: float = 0.0

    def seconds(self) -> float:
        return max(time.perf_counter() - self.started - self.in_sampler, MIN_COST_SECONDS)


class FabolasSampler(BaseSampler):
    """Chooses the parameters of a trial together with how much data it should use.

        sampler = FabolasSampler({"rows": (500, 50_000)}, seed=0)

        def objective(trial):
            C = trial.suggest_float("C", 1e-5, 1e5, log=True)
            rows = sampler.fidelity(trial)["rows"]
            return sampler.finish(trial, train(C, rows))

        study = optuna.create_study(sampler=sampler)
        study.optimize(objective, timeout=600)
        sampler.incumbent(study)

    Everything it knows is in the trials: a new process with the same storage goes on, and processes that share a
    storage see each other's running trials. An objective that does not ask for the fidelity is taken to run at the
    target.

    Args:
        fidelities: Name -> (low, high) or ``fabolas.Fidelity``; the upper end is the target. None for none.
        seed: Whole number >= 0; None draws one, which the study keeps.
        **options: Options of the strategy ``fabolas``: ``n_initial``, ``target_share``, ``overhead_share``, ``effort``.
    """

    def __init__(
        self,
        fidelities: Mapping[str, Fidelity | tuple[float, float]] | None = None,
        *,
        seed: int | None = None,
        **options: Any,
    ) -> None:
        check_keywords(options, FabolasSampler, option_names("fabolas"))
        self._fidelities = parse_fidelities(fidelities)
        refuse_reports(self._fidelities, "FabolasSampler")
        # Raise now if an option or the seed is wrong, and not in the first trial.
        make("fabolas", Space({"any": Float(0.0, 1.0)}, self._fidelities), **options)
        self._given_seed, self._options = None if seed is None else check_seed(seed), options
        self._clocks: dict[int, _Clock] = {}  # by Optuna's id of the trial
        self._forget()

    @property
    def target(self) -> dict[str, float | int]:
        """The fidelities at the target."""
        return {name: fidelity.high for name, fidelity in self._fidelities.items()}

    # What an objective uses.

    def fidelity(self, trial: BaseTrial) -> dict[str, float | int]:
        """The fidelities to evaluate a trial at, by name. They become user attributes of the trial.

        User attributes that are set before are used as they are: ``study.enqueue_trial(params, user_attrs={"rows":
        50_000})``. A ``FixedTrial`` and ``study.best_trial`` without such attributes are at the target.

        Raises:
            ValueError: If a user attribute is not a value of its fidelity. The sampler leaves such a trial out.
        """
        given = {name: trial.user_attrs[name] for name in self._fidelities if name in trial.user_attrs}
        for name, value in given.items():
            _check_fidelity(name, self._fidelities[name], value)
        missing = [name for name in self._fidelities if name not in given]
        if missing and isinstance(trial, optuna.Trial):
            with self._timed(trial._trial_id):
                decided = self._decision(trial.study, trial.study._storage.get_trial(trial._trial_id))
                for name in missing:
                    given[name] = decided.fidelity[name]
                    trial.set_user_attr(name, given[name])
        return {name: given.get(name, high) for name, high in self.target.items()}

    def finish(self, trial: BaseTrial, value: float, cost: float | None = None) -> float:
        """End an evaluation: ``return sampler.finish(trial, value)``.

        At the target it returns the value. Below the target it reports the value and ends the trial as pruned, so
        that ``study.best_trial`` is always a trial at the target.

        Args:
            trial: The trial.
            value: What the objective measured.
            cost: Seconds that the evaluation counts for; None takes the time since the trial started, without the time
                that the sampler took.

        Raises:
            optuna.TrialPruned: Below the target.
        """
        fidelity, value = self.fidelity(trial), float(value)
        if not isinstance(trial, optuna.Trial):
            return value
        clock = self._clocks.get(trial._trial_id)
        if cost is not None or clock is not None:
            trial.set_user_attr(COST, as_cost(cost) if clock is None or cost is not None else clock.seconds())
        if fidelity == self.target:
            return value
        if not math.isfinite(value):
            return math.nan  # Optuna records it as failed
        trial.set_user_attr(LOSS, value)
        step = self._step(fidelity)
        if step not in trial.study._storage.get_trial(trial._trial_id).intermediate_values:
            trial.report(value, step)
        where = ", ".join(f"{name}={number}" for name, number in fidelity.items())
        raise optuna.TrialPruned(f"Its value at {where} is {value:.6g}; the target is higher.")

    def tell(self, trial: optuna.Trial, value: float, cost: float | None = None) -> FrozenTrial:
        """``finish`` for the ask-and-tell interface: tells the study the value, or that the trial is pruned."""
        try:
            return trial.study.tell(trial, self.finish(trial, value, cost))
        except optuna.TrialPruned:
            return trial.study.tell(trial, state=TrialState.PRUNED)

    def incumbent(self, study: Study) -> Incumbent | None:
        """The evaluated configuration with the best expected value at the target; None before a complete trial.

        ``trial_ids`` are the numbers of its trials. To verify a configuration that was not evaluated at the target:
        ``study.enqueue_trial(incumbent.config, user_attrs=sampler.target)``.
        """
        check_single_objective(study)
        with self._lock:
            model = self._model_of(study)
            model.update(study.get_trials(deepcopy=False))
            return model.incumbent()

    # What Optuna calls.

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Start the clock of the trial."""
        self._clocks[trial._trial_id] = _Clock(time.perf_counter())

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The parameters that earlier trials have suggested, conditional ones included."""
        check_single_objective(study)
        with self._timed(trial._trial_id), self._lock:
            model = self._model_of(study)
            model.update(study.get_trials(deepcopy=False))
            return {name: parameter.distribution for name, parameter in model.parameters.items()}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The values of those parameters that are active."""
        check_single_objective(study)
        if not search_space:
            return {}
        with self._timed(trial._trial_id):
            params = self._decision(study, trial).params
        return {name: params[name] for name in search_space if name in params}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """A random value, for a parameter that no earlier trial has suggested or whose range has changed."""
        check_single_objective(study)
        with self._timed(trial._trial_id), self._lock:
            seed = self._model_of(study).seed
        rng = np.random.default_rng([seed, trial.number, zlib.crc32(param_name.encode())])
        return Parameter.of(param_distribution).draw(rng)

    def after_trial(
        self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Keep the seconds that the objective took.

        Raises:
            ValueError: If the trial has constraints, or ended below the target without ``finish``.
        """
        check_no_constraints(trial)
        # Not `fidelity`: it raises if an enqueued value does not fit, and `catch=` does not hold here.
        fidelity = {name: trial.user_attrs.get(name, high) for name, high in self.target.items()}
        clock = self._clocks.pop(trial._trial_id, None)
        if COST not in trial.user_attrs and clock is not None:
            study._storage.set_trial_user_attr(trial._trial_id, COST, clock.seconds())
        if SUGGESTION not in trial.system_attrs:  # nothing was left to decide, or nothing was known
            origin = ENQUEUED if "fixed_params" in trial.system_attrs else RANDOM
            decision = Decision(dict(trial.params), fidelity, origin)
            study._storage.set_trial_system_attr(trial._trial_id, SUGGESTION, asdict(decision))
        if state == TrialState.COMPLETE and fidelity != self.target and self._fits(fidelity):
            # Optuna is about to record it as complete, and `best_trial` would compare it with trials at the target.
            study._storage.set_trial_state_values(trial._trial_id, TrialState.PRUNED, values)
            raise ValueError(
                f"the objective asked for the fidelity of trial {trial.number}, {fidelity}, which is below "
                f"the target {self.target}, and returned its value; write: return sampler.finish(trial, value)"
            )

    def reseed_rng(self) -> None:
        """Nothing: each trial has its own source of randomness, from the seed and its number."""

    def __getstate__(self) -> dict[str, Any]:
        return {
            "_fidelities": self._fidelities,
            "_given_seed": self._given_seed,
            "_options": self._options,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._clocks = {}
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.RLock()
        self._model: StudyModel | None = None
        self._model_source: tuple[Any, int] | None = None  # storage and id of the study of `_model`

    def _model_of(self, study: Study) -> StudyModel:
        storage, study_id = study._storage, study._study_id
        source = self._model_source
        if self._model is None or source is None or source[0] is not storage or source[1] != study_id:
            seed = self._seed_of(study) if self._given_seed is None else self._given_seed
            self._model = StudyModel(study, self._fidelities, seed, self._options)
            self._model_source = (storage, study_id)
        return self._model

    def _seed_of(self, study: Study) -> int:
        """The seed that the study keeps; a new one if it keeps none."""
        kept = study._storage.get_study_system_attrs(study._study_id).get(SEED)
        if kept is None:
            kept = secrets.randbits(32)
            study._storage.set_study_system_attr(study._study_id, SEED, kept)
        return int(kept)

    def _decision(self, study: Study, trial: FrozenTrial) -> Decision:
        """What to evaluate in this trial; decided once."""
        with self._lock:
            known = Decision.of(study._storage.get_trial(trial._trial_id))
            if known is not None:
                return known
            started = time.perf_counter()
            model, trials = self._model_of(study), study.get_trials(deepcopy=False)
            model.update(trials)
            decision = model.decide(trial, trials, started)
            study._storage.set_trial_system_attr(trial._trial_id, SUGGESTION, asdict(decision))
            return decision

    def _fits(self, fidelity: Mapping[str, Any]) -> bool:
        """Whether all these are values of their fidelities."""
        try:
            for name, value in fidelity.items():
                _check_fidelity(name, self._fidelities[name], value)
        except ValueError:
            return False
        return True

    def _step(self, fidelity: Mapping[str, float | int]) -> int:
        """The step of ``trial.report``: a single whole-number fidelity itself, else thousandths of the target."""
        if len(fidelity) == 1:
            ((name, value),) = fidelity.items()
            if self._fidelities[name].integer:
                return int(value)
        return round(_STEPS * math.prod(fidelity[name] / high for name, high in self.target.items()))

    @contextmanager
    def _timed(self, trial_id: int) -> Iterator[None]:
        """Do not count the seconds of this block as cost of the trial."""
        started = time.perf_counter()
        try:
            yield
        finally:
            clock = self._clocks.get(trial_id)
            if clock is not None:
                clock.in_sampler += time.perf_counter() - started


def _check_fidelity(name: str, fidelity: Fidelity, value: Any) -> None:
    try:
        fidelity.coordinate(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"the user attribute {name!r} is the fidelity of a trial: {error}") from None
