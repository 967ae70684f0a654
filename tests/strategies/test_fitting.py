"""The surrogate of a long history: which trials it is given, and that exact inference is not better."""

from dataclasses import replace

import numpy as np
import pytest

from fabolas import Float, Space
from fabolas.model_spec import NUGGET_FRACTION, ModelSpec
from fabolas.strategies.effort import Effort
from fabolas.strategies.fabolas import Fabolas
from fabolas.strategies.fitting import informative_subset
from fabolas.trials import History, Suggestion, Trial

SPACE = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)}, {"size": (64, 16384)})


def history(n: int, seed: int = 0) -> History:
    rng = np.random.default_rng(seed)
    points = SPACE.snap(
        np.column_stack([rng.random((n, 2)), np.where(rng.random(n) < 0.05, 1.0, rng.random(n))])
    )
    trials = []
    for i, point in enumerate(points):
        loss = float(np.exp(-2 + np.sum((point[:2] - 0.4) ** 2) + 0.6 * (1 - point[2]) + 0.02 * rng.normal()))
        config, fidelity = SPACE.decode(point)
        cost = float(np.exp(5 * (point[2] - 1)))
        trials.append(
            Trial(Suggestion(i, config, fidelity, point, "design", overhead=0.1), "complete", loss, cost)
        )
    return History(tuple(trials))


def test_the_subset_has_the_best_at_the_target_and_the_best_of_each_size_and_some_of_all() -> None:
    rng = np.random.default_rng(0)
    losses, log_sizes = rng.random(5000), np.where(rng.random(5000) < 0.1, 0.0, -5.0 * rng.random(5000))
    chosen = informative_subset(losses, log_sizes, 300)
    assert len(chosen) == len(set(chosen)) == 300
    there = np.flatnonzero(log_sizes == 0.0)
    assert set(there[np.argsort(losses[there])[:100]]) <= set(chosen)
    for octave in range(8):
        members = np.flatnonzero(np.floor(-log_sizes / np.log(2.0)) == octave)
        if len(members):
            assert members[np.argmin(losses[members])] in chosen
    middle = losses[chosen] > 0.5  # not only the good ones
    assert middle.sum() > 30


def test_few_trials_are_all_kept_and_the_thinned_ones_stay_as_the_history_grows() -> None:
    losses, log_sizes = np.random.default_rng(0).random(400), -np.random.default_rng(1).random(400)
    np.testing.assert_array_equal(informative_subset(losses, log_sizes, 400), np.arange(400))
    before, after = (set(informative_subset(losses[:n], log_sizes[:n], 100)) for n in (390, 400))
    assert len(before & after) > 85


def test_a_new_repeat_at_the_target_teaches_the_nugget_before_the_next_fit() -> None:
    trials = history(60).trials
    best = next(t for t in trials if t.suggestion.point[2] == 1.0)
    strategy = Fabolas(SPACE)
    strategy.models.fitter.fit(History(trials), Effort.at(0.0, 60), True, np.random.default_rng(0))
    assert strategy.surrogate(History(trials)).surrogate.nugget_fraction == NUGGET_FRACTION
    for loss, low, high in ((best.loss, 0.95, 1.0), (2.0 * best.loss, 0.0, 0.5)):
        again = replace(best, suggestion=replace(best.suggestion, id=60), loss=loss)
        found = strategy.surrogate(History((*trials, again)))
        assert low < found.surrogate.nugget_fraction < high
        np.testing.assert_array_equal(found.loss_trials, np.arange(61))


@pytest.mark.slow
def test_predictions_of_the_best_configurations_agree_with_exact_inference() -> None:
    record = history(700)
    target = np.column_stack([0.4 + 0.1 * np.random.default_rng(3).normal(size=(20, 2)), np.ones(20)])
    found = {}
    for limit in (200, 10_000):
        strategy = Fabolas(SPACE, model=ModelSpec(max_trials=limit))
        strategy.models.fitter.fit(record, Effort.at(0.5, 100), True, np.random.default_rng(0))
        assert len(strategy.models.fitter.surrogate_of(record).loss.points) == min(limit, 700)
        found[limit] = strategy.predict(record, target)
    truth = np.exp(-2 + np.sum((target[:, :2] - 0.4) ** 2, axis=1))
    for prediction in found.values():
        np.testing.assert_allclose(prediction.loss, truth, rtol=0.05)
    np.testing.assert_allclose(found[200].loss, found[10_000].loss, rtol=0.04)


@pytest.mark.parametrize("seed", range(2))
def test_the_incumbent_of_a_long_history_is_as_good_as_that_of_exact_inference(seed: int) -> None:
    record, distances = history(120, seed), []
    for limit in (40, 10_000):
        strategy = Fabolas(SPACE, effort=0.0, model=ModelSpec(max_trials=limit))
        strategy.suggest(record, (), np.random.default_rng(0))
        incumbent = strategy.incumbent(record)
        assert incumbent is not None
        distances.append((incumbent.config["x"] - 0.4) ** 2 + (incumbent.config["y"] - 0.4) ** 2)
    few, exact = distances
    assert exact < 0.02
    assert few < exact + 0.02  # the noise of a loss is 2 %; a random configuration is at 0.2


@pytest.mark.parametrize("n", [30, 700])
@pytest.mark.parametrize("fitted_on", [0, 20])
def test_a_surrogate_knows_which_trials_its_data_are(n: int, fitted_on: int) -> None:
    strategy, trials = Fabolas(SPACE, effort=0.0), history(n).trials
    if fitted_on:
        strategy.suggest(History(trials[:fitted_on]), (), np.random.default_rng(0))
    # A failure that costs little does not inform the cost model, and one that costs much does. Both are at one place,
    # so that neither is by chance.
    place = trials[-1].suggestion.point
    failed = [
        Trial(replace(trial.suggestion, point=place + shift), "failed", None, cost, error="no")
        for trial, cost, shift in zip(trials[-2:], (1e-9, 1e9), (-1e-3, 0.0), strict=True)
    ]
    whole = History((*trials[:-2], *failed))
    fitted = strategy.surrogate(whole)
    assert np.array_equal(whole.points[fitted.loss_trials], fitted.surrogate.loss.points)
    assert np.array_equal(whole.points[fitted.cost_trials], fitted.surrogate.cost.points)
    if n == 30:
        assert fitted.loss_trials.tolist() == list(range(n))
        assert fitted.cost_trials.tolist() == [*range(n - 2), n - 1]


def test_a_posterior_is_kept_until_there_is_another_history_or_another_fit() -> None:
    record, longer, rng = history(8), history(9), np.random.default_rng(0)
    fitter = Fabolas(SPACE).models.fitter
    first = fitter.surrogate_of(record)
    assert fitter.surrogate_of(record) is first
    assert len(fitter.surrogate_of(longer).loss.points) == 9
    again = fitter.surrogate_of(record)
    assert again is not first
    np.testing.assert_array_equal(again.loss.theta, first.loss.theta)
    fitted = fitter.fit(record, Effort.at(0.0, 8), True, rng)
    assert fitter.surrogate_of(record) is fitted
    state = fitter.state()
    fitter.fit(record, Effort.at(0.0, 8), True, rng)
    fitter.restore(state)
    np.testing.assert_array_equal(fitter.surrogate_of(record).loss.theta, fitted.loss.theta)
