"""A trial that does not fit is left out; the model knows all others, also in a new process."""

from typing import Any

import optuna
import pytest
from optuna.trial import TrialState

from fabolas.optuna import FabolasSampler
from fabolas.optuna.model import COST, LOSS
from tests.optuna.conftest import ROWS, loss_of

NOT_ROWS = [499, 60_000, "2000", 2_000.5, True, None, [2_000]]


def known(sampler: Any, study: Any) -> list[int]:
    """The numbers of the trials that the model has."""
    sampler.incumbent(study)
    return [trial.id for trial in sampler._model.history.trials]


def test_trials_outside_of_a_narrower_range_of_the_fidelity_are_left_out(
    sampler: Any, objective: Any
) -> None:
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=12)
    rows = [trial.user_attrs["rows"] for trial in study.trials]
    assert 4 < sum(n > ROWS[0] for n in rows) < 12
    narrower = FabolasSampler({"rows": (ROWS[0] + 1, ROWS[1])}, seed=0)
    for _ in range(2):  # the second answer is the same
        assert known(narrower, study) == [i for i, n in enumerate(rows) if n > ROWS[0]]
        assert narrower.incumbent(study) is not None


@pytest.mark.parametrize("n_before", [0, 3])
@pytest.mark.parametrize("wrong", NOT_ROWS)
def test_an_enqueued_value_that_is_none_of_the_fidelity_fails_only_its_trial(
    sampler: Any, objective: Any, wrong: Any, n_before: int
) -> None:
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=n_before)
    study.enqueue_trial({"C": 4.0}, user_attrs={"rows": wrong})
    study.optimize(objective, n_trials=3, catch=(ValueError,))
    failed = [trial.number for trial in study.trials if trial.state == TrialState.FAIL]
    assert failed == [n_before]
    others = [i for i in range(n_before + 3) if i != n_before]
    for each in (sampler, FabolasSampler({"rows": ROWS}, seed=0)):  # the second one is as in a new process
        assert known(each, study) == others


def test_an_objective_that_does_not_ask_for_a_fidelity_that_does_not_fit_does_not_end_the_run(
    sampler: Any,
) -> None:
    study = optuna.create_study(sampler=sampler)
    study.enqueue_trial({"C": 4.0}, user_attrs={"rows": 60_000})
    study.optimize(lambda trial: loss_of(trial.suggest_float("C", 1, 10), ROWS[1]), n_trials=2)
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE] * 2
    assert known(sampler, study) == [1]


@pytest.mark.parametrize("cost", ["3 s", -1.0, float("nan"), None])
def test_a_cost_of_an_added_trial_that_is_no_number_of_seconds_is_unknown(
    sampler: Any, objective: Any, cost: Any
) -> None:
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=2)
    for attributes in ({COST: cost}, {LOSS: "low"}, {}):
        study.add_trial(
            optuna.create_trial(
                params={"C": 3.0},
                distributions=study.trials[0].distributions,
                value=0.5,
                user_attrs=attributes,
            )
        )
    assert known(sampler, study) == [0, 1, 2, 3, 4]
    trials = sampler._model.history.trials[2:]
    assert [(t.status, t.loss, t.cost) for t in trials] == [
        ("complete", 0.5, 0.0),
        ("failed", None, 0.0),
        ("complete", 0.5, 0.0),
    ]


def test_a_study_that_cannot_be_modelled_is_an_error_each_time(sampler: Any) -> None:
    study = optuna.create_study(sampler=sampler)
    study.optimize(
        lambda trial: trial.suggest_float("rows", 0, 1), n_trials=1
    )  # also the name of the fidelity
    for _ in range(2):
        with pytest.raises(ValueError, match="got 'rows' as both; rename one of them"):
            sampler.incumbent(study)


@pytest.mark.parametrize("seed", [-3, "a", 1.5, True])
def test_a_wrong_seed_is_refused_at_once(seed: Any) -> None:
    with pytest.raises(ValueError, match="seed must be a whole number >= 0, got"):
        FabolasSampler({"rows": ROWS}, seed=seed)
