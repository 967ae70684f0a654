import math
import pickle
import time
from typing import Any

import optuna
import pytest
from optuna.trial import TrialState

from fabolas import Fidelity
from fabolas.optuna import FabolasSampler
from fabolas.optuna.model import COST, StudyModel
from tests.optuna.conftest import ROWS, loss_of


@pytest.mark.slow
def test_only_trials_at_the_target_are_complete_and_the_incumbent_is_near_the_optimum(
    sampler: Any, objective: Any
) -> None:
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=60)
    for trial in study.trials:
        at_target = trial.user_attrs["rows"] == ROWS[1]
        assert trial.state == (TrialState.COMPLETE if at_target else TrialState.PRUNED)
    study.enqueue_trial({"C": 1e5}, user_attrs=sampler.target)  # bad, but at the target
    study.optimize(objective, n_trials=1)
    assert study.best_trial.user_attrs["rows"] == ROWS[1]
    smaller = [t for t in study.trials if t.user_attrs["rows"] < ROWS[1]]
    assert len(smaller) > 30
    incumbent = sampler.incumbent(study)
    truth = loss_of(incumbent.config["C"], ROWS[1])
    assert truth == pytest.approx(0.01, abs=3e-3)  # of random configurations, one in nine is as good
    assert abs(incumbent.loss - truth) < 1e-2
    assert incumbent.std > 0
    numbers = incumbent.trial_ids
    assert all(study.trials[i].params == incumbent.config for i in numbers)
    assert incumbent.verified == any(study.trials[i].state == TrialState.COMPLETE for i in numbers)


def test_a_value_below_the_target_is_reported_with_the_fidelity_as_step(sampler: Any, objective: Any) -> None:
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=1)
    (trial,) = study.trials
    rows, value = trial.user_attrs["rows"], loss_of(trial.params["C"], trial.user_attrs["rows"])
    assert rows < ROWS[1]
    assert trial.intermediate_values == {rows: value}
    assert trial.value == value


def test_a_user_who_reports_epochs_keeps_the_loss_that_finish_was_given() -> None:
    sampler = FabolasSampler({"rows": (10, 99)}, seed=0)

    def objective(trial: Any) -> float:
        trial.suggest_float("x", 0, 1)
        for epoch in range(100):  # also the step that the sampler would use
            trial.report(9.0, epoch)
        sampler.fidelity(trial)
        return float(sampler.finish(trial, 0.5, cost=1.0))

    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=1)
    (trial,) = _history(sampler, study).trials
    assert trial.loss == 0.5


def test_to_forget_finish_is_an_error_and_leaves_no_complete_trial(sampler: Any) -> None:
    def objective(trial: Any) -> float:
        trial.suggest_float("x", 0, 1)
        return float(sampler.fidelity(trial)["rows"])

    study = optuna.create_study(sampler=sampler)
    with pytest.raises(Exception) as raised:  # Optuna adds an exception of its own
        study.optimize(objective, n_trials=1)
    chain = f"{raised.value} {raised.value.__context__}"
    assert "return sampler.finish(trial, value)" in chain
    assert [t.state for t in study.trials] == [TrialState.PRUNED]


def test_an_objective_that_never_asks_for_the_fidelity_is_at_the_target(sampler: Any) -> None:
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=5)
    assert all(t.state == TrialState.COMPLETE for t in study.trials)
    history = _history(sampler, study)
    assert [t.fidelity for t in history.trials] == [{"rows": ROWS[1]}] * 5
    assert sampler.incumbent(study).verified


@pytest.mark.slow
def test_the_cost_is_the_time_of_the_objective_and_not_that_of_the_sampler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decide = StudyModel.decide

    def slow(*arguments: Any) -> Any:
        time.sleep(0.5)
        return decide(*arguments)

    monkeypatch.setattr(StudyModel, "decide", slow)
    sampler = FabolasSampler({"rows": ROWS}, seed=0)

    def objective(trial: Any) -> float:
        sampler.fidelity(trial)
        trial.suggest_float("x", 0, 1)
        time.sleep(0.1)
        return float(sampler.finish(trial, 0.5))

    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=2)
    for trial in study.trials:
        assert trial.duration.total_seconds() > 0.6
        assert 0.1 <= trial.user_attrs[COST] < 0.4
        assert trial.system_attrs["fabolas:suggestion"]["overhead"] > 0.5


def test_what_fails_costs_its_time_and_the_search_goes_on(sampler: Any) -> None:
    def objective(trial: Any) -> float:
        if trial.suggest_float("x", 0, 1) > 0.5:
            time.sleep(0.01)
            raise MemoryError
        return math.nan if trial.number == 3 else 0.5

    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=12, catch=(MemoryError,))
    history = _history(sampler, study)
    for frozen, trial in zip(study.trials, history.trials, strict=True):
        failed = frozen.params["x"] > 0.5 or frozen.number == 3
        assert trial.status == ("failed" if failed else "complete")
        assert trial.cost > (0.01 if frozen.params["x"] > 0.5 else 0)
    assert {"failed", "complete"} == {t.status for t in history.trials}


def test_a_trial_whose_process_died_is_abandoned_and_not_blamed(sampler: Any) -> None:
    study = optuna.create_study(sampler=sampler)
    trial = study.ask()
    trial.suggest_float("x", 0, 1)
    study._storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)  # as `fail_stale_trials` does
    assert [t.status for t in _history(sampler, study).trials] == ["abandoned"]


def test_a_trial_that_the_user_prunes_counts_with_its_last_value(sampler: Any) -> None:
    def objective(trial: Any) -> float:
        trial.suggest_float("x", 0, 1)
        sampler.fidelity(trial)
        trial.report(0.7, step=1)
        trial.report(0.6, step=2)
        raise optuna.TrialPruned

    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=1)
    (trial,) = _history(sampler, study).trials
    assert (trial.status, trial.loss) == ("complete", 0.6)


def test_an_enqueued_trial_keeps_its_parameters_and_gets_a_fidelity(sampler: Any, objective: Any) -> None:
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=2)
    study.enqueue_trial({"C": 3.0})
    study.enqueue_trial({"C": 4.0}, user_attrs={"rows": 2_000})
    study.enqueue_trial({"C": 5.0}, user_attrs=sampler.target)
    study.optimize(objective, n_trials=3)
    first, second, third = study.trials[2:]
    assert [t.params["C"] for t in (first, second, third)] == [3.0, 4.0, 5.0]
    assert ROWS[0] <= first.user_attrs["rows"] < 10_000  # as the initial design has it
    assert second.user_attrs["rows"] == 2_000
    assert study.best_trial.number == third.number
    assert sampler.incumbent(study) is not None
    origins = [t.suggestion.origin for t in _history(sampler, study).trials]
    assert origins[2:] == ["design", "enqueued", "enqueued"]


def test_an_enqueued_fidelity_out_of_range_is_an_error(sampler: Any, objective: Any) -> None:
    study = optuna.create_study(sampler=sampler)
    study.enqueue_trial({"C": 4.0}, user_attrs={"rows": 60_000})
    with pytest.raises(ValueError, match=r"'rows' is the fidelity.*\[500, 50000\], got 60000"):
        study.optimize(objective, n_trials=1)


@pytest.mark.slow
def test_maximising_is_minimising_the_negative() -> None:
    chosen = []
    for sign, direction in ((1.0, "minimize"), (-1.0, "maximize")):
        sampler = FabolasSampler({"rows": ROWS}, seed=1, effort=0.0)

        def objective(trial: Any, sampler: Any = sampler, sign: float = sign) -> float:
            C = trial.suggest_float("C", 1e-5, 1e5, log=True)
            rows = sampler.fidelity(trial)["rows"]
            return float(sampler.finish(trial, sign * loss_of(C, rows), cost=rows / 1000))

        study = optuna.create_study(sampler=sampler, direction=direction)
        study.optimize(objective, n_trials=25)
        incumbent = sampler.incumbent(study)
        chosen.append([(t.params, t.user_attrs["rows"]) for t in study.trials[:12]])
        assert loss_of(incumbent.config["C"], ROWS[1]) < 0.02
        # The measured overhead moves it a little.
        assert sign * incumbent.loss == pytest.approx(0.01, abs=0.015)
    assert chosen[0] == chosen[1]


def test_parallel_trials_are_different_and_see_each_other_as_pending(sampler: Any) -> None:
    study = optuna.create_study(sampler=sampler)
    for _ in range(3):  # the space must be known
        _evaluate(sampler, study.ask())
    trials = [study.ask() for _ in range(4)]
    for trial in trials:
        trial.suggest_float("C", 1e-5, 1e5, log=True)
    pending = sampler._model.pending(study.trials, number=-1)
    assert [s.id for s in pending] == [t.number for t in trials]
    decided = [study.trials[t.number].system_attrs["fabolas:suggestion"]["fidelity"] for t in trials]
    assert [s.fidelity for s in pending] == decided
    assert len({t.params["C"] for t in trials}) == 4


@pytest.mark.slow
def test_n_jobs_runs_the_sampler_in_threads(sampler: Any, objective: Any) -> None:
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=24, n_jobs=4)
    assert len({(t.params["C"], t.user_attrs["rows"]) for t in study.trials}) == 24
    assert len(_history(sampler, study)) == 24


def test_trials_that_are_decided_in_another_order_take_different_points_of_the_design(sampler: Any) -> None:
    study = optuna.create_study(sampler=sampler)
    _evaluate(sampler, study.ask())
    first, second = study.ask(), study.ask()
    _evaluate(sampler, second)  # ends before the first one is decided
    _evaluate(sampler, first)
    decided = [study.trials[i].system_attrs["fabolas:suggestion"] for i in (first.number, second.number)]
    assert [each["origin"] for each in decided] == ["design", "design"]
    assert decided[0]["params"] != decided[1]["params"]


def test_a_trial_that_runs_for_ever_is_not_pending_for_ever(sampler: Any, objective: Any) -> None:
    import datetime

    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=2)
    lost = study.ask()
    lost.suggest_float("C", 1e-5, 1e5, log=True)
    trials = study.get_trials(deepcopy=True)
    assert [s.id for s in sampler._model.pending(trials, number=9)] == [lost.number]
    trials[lost.number].datetime_start -= datetime.timedelta(hours=2)
    assert sampler._model.pending(trials, number=9) == ()


def test_a_value_too_large_for_a_loss_is_a_failed_trial(sampler: Any) -> None:
    study = optuna.create_study(sampler=sampler)
    trial = study.ask()
    trial.suggest_float("C", 1e-5, 1e5, log=True)
    study.tell(trial, 1e200)
    (recorded,) = _history(sampler, study).trials
    assert (recorded.status, recorded.error) == ("failed", "COMPLETE without a finite value within ±1e+100")


def test_fixed_and_frozen_trials_run_at_the_target(sampler: Any, objective: Any) -> None:
    assert objective(optuna.trial.FixedTrial({"C": 10.0})) == loss_of(10.0, ROWS[1])
    distribution = optuna.distributions.FloatDistribution(1e-5, 1e5, log=True)
    frozen = optuna.trial.create_trial(params={"C": 10.0}, distributions={"C": distribution}, value=1.0)
    assert objective(frozen) == loss_of(10.0, ROWS[1])


def test_ask_and_tell(sampler: Any) -> None:
    study = optuna.create_study(sampler=sampler)
    frozen = _evaluate(sampler, study.ask())
    assert frozen.state == TrialState.PRUNED
    assert frozen.user_attrs[COST] == 1.0
    study.enqueue_trial({"C": 10.0}, user_attrs=sampler.target)
    frozen = _evaluate(sampler, study.ask())
    assert (frozen.state, frozen.value) == (TrialState.COMPLETE, loss_of(10.0, ROWS[1]))


def test_several_fidelities_are_chosen_together() -> None:
    sampler = FabolasSampler({"rows": (100, 10_000), "fraction": (0.1, 1.0)}, seed=0)

    def objective(trial: Any) -> float:
        fidelity = sampler.fidelity(trial)  # before the first parameter
        x = trial.suggest_float("x", 0, 1)
        return float(sampler.finish(trial, x + 10 / fidelity["rows"] / fidelity["fraction"], cost=1.0))

    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=14)
    low = study.trials[0]
    assert low.state == TrialState.PRUNED
    product = low.user_attrs["rows"] / 10_000 * low.user_attrs["fraction"]
    assert list(low.intermediate_values) == [round(1000 * product)]
    assert len({(t.user_attrs["rows"], t.user_attrs["fraction"]) for t in study.trials}) > 4


def test_several_objectives_are_refused(sampler: Any) -> None:
    study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)
    with pytest.raises(ValueError, match="one objective, got 2"):
        study.optimize(lambda trial: (trial.suggest_float("x", 0, 1), 1.0), n_trials=1)
    with pytest.raises(ValueError, match="one objective, got 2"):
        sampler.incumbent(study)


def test_constraints_are_refused(sampler: Any) -> None:
    def objective(trial: Any) -> float:
        key = "constraints:memory"
        trial.study._storage.set_trial_system_attr(
            trial._trial_id, key, 1.0
        )  # Optuna 5: trial.set_constraint
        return float(trial.suggest_float("x", 0, 1))

    study = optuna.create_study(sampler=sampler)
    with pytest.raises(ValueError, match="without constraints, got some in trial 0"):
        study.optimize(objective, n_trials=1)


@pytest.mark.parametrize("options", [{"n_startup_trials": 5}, {"target_share": 2.0}, {"nonsense": 1}])
def test_a_wrong_option_is_refused_at_once(options: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError), match=r"n_initial|target_share|nonsense"):
        FabolasSampler({"rows": ROWS}, **options)


def test_a_fidelity_with_reports_is_refused_because_optuna_passes_none_on() -> None:
    with pytest.raises(
        ValueError, match="expected fidelities without reports for FabolasSampler, got 'epochs' with"
    ):
        FabolasSampler({"epochs": Fidelity(1, 27, reports=True)})


def test_a_sampler_can_be_pickled(sampler: Any, objective: Any) -> None:
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=3)
    copy = pickle.loads(pickle.dumps(sampler))
    assert copy.target == sampler.target
    assert copy.incumbent(study).config == sampler.incumbent(study).config


def test_the_same_seed_and_costs_give_the_same_trials() -> None:
    runs = []
    for _ in range(2):
        sampler = FabolasSampler({"rows": ROWS}, seed=5, effort=0.0)
        study = optuna.create_study(sampler=sampler)
        for _ in range(11):
            _evaluate(sampler, study.ask())
        runs.append([(t.params, t.user_attrs["rows"]) for t in study.trials])
    assert runs[0] == runs[1]


def _evaluate(sampler: Any, trial: Any) -> Any:
    C = trial.suggest_float("C", 1e-5, 1e5, log=True)
    rows = sampler.fidelity(trial)["rows"]
    return sampler.tell(trial, loss_of(C, rows), cost=1.0)


def _history(sampler: Any, study: Any) -> Any:
    sampler.incumbent(study)
    return sampler._model.history
