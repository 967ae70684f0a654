import math
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fabolas.curve_reports import Report
from fabolas.trials import ADDED, History, Incumbent, Outcome, Suggestion, Trial


def suggestion(number: int = 0, overhead: float = 0.5) -> Suggestion:
    return Suggestion(
        number, {"C": 1.0}, {"size": 100}, np.array([0.25, 1.0]), "design", overhead, effort=number / 4
    )


def complete(number: int, loss: float, cost: float = 1.0, overhead: float = 0.5) -> Trial:
    return Trial(suggestion(number, overhead), "complete", loss, cost)


def failed(number: int, cost: float = 2.0) -> Trial:
    return Trial(suggestion(number), "failed", None, cost, error="boom")


def test_a_suggestion_is_apart_from_what_made_it_and_its_point_is_read_only() -> None:
    config, point = {"C": 1.0}, np.array([0.5])
    made = Suggestion(0, config, {}, point, "design")
    config["C"], point[0] = 2.0, 0.75
    assert made.config == {"C": 1.0}
    assert made.point[0] == 0.5
    with pytest.raises(ValueError, match="read-only"):
        made.point[0] = 0.1


@pytest.mark.parametrize(
    "wrong",
    [
        *({"id": -1}, {"overhead": -0.1}, {"overhead": math.nan}, {"effort": -1.0}, {"predicted_cost": 0.0}),
        *({"point": np.array([[0.5]])}, {"point": np.array([np.nan])}),
    ],
)
def test_a_suggestion_that_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    right = {"id": 0, "config": {}, "fidelity": {}, "point": np.array([0.5]), "origin": "design"}
    with pytest.raises(ValueError, match="must be"):
        Suggestion(**(right | wrong))  # type: ignore[arg-type]


@pytest.mark.parametrize("loss", [1, 1.0, np.float32(1), np.int64(1), np.array(1.0), Fraction(1)])
def test_every_kind_of_real_number_is_a_loss(loss: float) -> None:
    assert Outcome(loss).loss == 1.0
    assert type(Outcome(loss).loss) is float


@pytest.mark.parametrize(
    "loss",
    [
        None,
        "0.5",
        True,
        np.bool_(True),
        [0.5],
        np.array([0.5]),
        1j,
        np.ma.masked,
        np.ma.array(0.5, mask=True),
    ],
)
def test_what_is_not_a_number_is_no_loss(loss: object) -> None:
    with pytest.raises(TypeError, match="a loss must be a single number, got"):
        Outcome(loss)  # type: ignore[arg-type]


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_not_finite_points_to_fail(loss: float) -> None:
    with pytest.raises(ValueError, match=r"finite number, got .*fail"):
        Outcome(loss)


def test_only_a_trial_that_was_measured_elsewhere_may_have_an_unknown_cost() -> None:
    elsewhere = replace(suggestion(0), origin=ADDED)
    assert Trial(elsewhere, "complete", 0.5, 0.0).cost == 0.0
    with pytest.raises(ValueError, match="a cost must be a finite number of seconds > 0, got 0"):
        Trial(suggestion(0), "complete", 0.5, 0.0)
    with pytest.raises(ValueError, match="got -1"):
        Trial(elsewhere, "complete", 0.5, -1.0)


@pytest.mark.parametrize("cost", [0, -1.0, math.nan, math.inf])
def test_a_cost_that_is_not_positive_is_refused(cost: float) -> None:
    with pytest.raises(ValueError, match="seconds > 0"):
        Outcome(0.5, cost=cost)


def test_info_becomes_what_json_can_hold() -> None:
    info = {"a": np.float64(0.5), "b": np.arange(2), 3: (1, 2), "c": {"d": object}, "e": None}
    made = Outcome(0.5, info=info).info  # type: ignore[arg-type]
    assert made == {"a": 0.5, "b": [0, 1], "3": [1, 2], "c": {"d": repr(object)}, "e": None}
    with pytest.raises(TypeError, match="info must be a dict"):
        Outcome(0.5, info=[1])  # type: ignore[arg-type]


def test_tensors_in_the_info_become_numbers_and_not_their_text() -> None:
    class Tensor:
        """As those of torch and jax."""

        def __init__(self, content: Any) -> None:
            self.content = content

        def tolist(self) -> Any:
            return self.content

    class Eager:
        """As those of tensorflow, which have no ``tolist``."""

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.array([1.5, 2.5])

    class Broken:
        def tolist(self) -> Any:
            raise RuntimeError("on another device")

        def __repr__(self) -> str:
            return "broken"

    info = {
        "loss": Tensor(0.25),
        "curve": Tensor([1, 2.5]),
        "more": [Eager()],
        "kind": Tensor,
        "broken": Broken(),
    }
    made = Outcome(0.5, info=info).info
    assert (made["loss"], made["curve"], made["more"]) == (0.25, [1, 2.5], [[1.5, 2.5]])
    assert made["kind"] == repr(Tensor)
    assert made["broken"] == "broken"


def test_a_trial_is_either_complete_with_a_loss_or_failed_with_a_reason() -> None:
    with pytest.raises(TypeError, match="loss"):
        Trial(suggestion(), "complete", None, 1.0)
    with pytest.raises(ValueError, match="no error"):
        Trial(suggestion(), "complete", 1.0, 1.0, error="boom")
    with pytest.raises(ValueError, match="seconds > 0"):
        Trial(suggestion(), "complete", 1.0, 0.0)
    with pytest.raises(ValueError, match="loss=None"):
        Trial(suggestion(), "failed", 1.0, 1.0, error="boom")
    with pytest.raises(ValueError, match="reason"):
        Trial(suggestion(), "failed", None, 1.0)
    with pytest.raises(ValueError, match=">= 0"):
        Trial(suggestion(), "failed", None, -1.0, error="boom")
    with pytest.raises(ValueError, match="'complete', 'failed' or 'abandoned'"):
        Trial(suggestion(), "running", None, 1.0)  # type: ignore[arg-type]


def test_an_incumbent_is_evaluated_and_finite() -> None:
    with pytest.raises(ValueError, match="trial_ids"):
        Incumbent({}, 0.5, 0.1, True, ())
    with pytest.raises(ValueError, match="std"):
        Incumbent({}, 0.5, math.nan, True, (0,))


def test_appending_makes_a_new_history_with_the_arrays_in_order_of_ending() -> None:
    empty = History()
    history = (
        empty.append(complete(1, 0.5)).append(failed(0)).append(complete(2, 0.25, cost=4.0, overhead=0.1))
    )
    assert len(empty) == 0
    assert [trial.id for trial in history.trials] == [1, 0, 2]
    np.testing.assert_array_equal(history.losses, [0.5, np.nan, 0.25])
    np.testing.assert_array_equal(history.costs, [1.0, 2.0, 4.0])
    np.testing.assert_array_equal(history.failed, [False, True, False])
    np.testing.assert_array_equal(history.overheads, [0.5, 0.5, 0.1])
    np.testing.assert_array_equal(history.efforts, [0.25, 0.0, 0.5])
    assert history.points.shape == (3, 2)
    assert history.spent == pytest.approx(8.1)
    with pytest.raises(ValueError, match="read-only"):
        history.losses[0] = 0.0


def test_an_appended_history_takes_over_what_is_known_and_works_out_the_same() -> None:
    late = [replace(failed(1), elapsed=3.0), replace(failed(2), status="abandoned", elapsed=4.5)]
    trials = (complete(0, 0.5), *late, complete(3, 0.25, cost=4.0, overhead=0.1))
    names = ("points", "losses", "costs", "failed", "abandoned", "complete", "overheads", "efforts")
    grown = History()
    for trial in trials:
        for name in (*names, "spent", "elapsed"):
            getattr(grown, name)  # is worked out, so that the next one takes it over
        grown = grown.append(trial)
    assert set(names) <= vars(grown).keys()
    whole = History(trials)
    for name in names:
        mine, expected = getattr(grown, name), getattr(whole, name)
        np.testing.assert_array_equal(mine, expected)
        assert mine.dtype == expected.dtype
        assert not mine.flags.writeable
    assert (grown.spent, grown.elapsed, grown) == (whole.spent, whole.elapsed, whole)
    with pytest.raises(ValueError, match=r"ends once, got several trials for \[2\]"):
        grown.append(trials[2])


def test_an_empty_history_has_empty_arrays_and_no_overhead() -> None:
    history = History()
    assert history.losses.shape == history.costs.shape == history.failed.shape == (0,)
    assert history.points.shape == (0, 0)
    assert history.spent == 0.0
    assert history.typical_overhead() == 0.0


def test_the_typical_overhead_is_the_median_of_the_last_ones() -> None:
    history = History(
        tuple(complete(i, 0.5, overhead=t) for i, t in enumerate([9.0, 9.0, 1.0, 2.0, 30.0, 4.0, 3.0]))
    )
    assert history.typical_overhead() == 3.0
    assert history.typical_overhead(last=2) == 3.5
    elsewhere = replace(suggestion(0), origin=ADDED, overhead=0.0)
    added = tuple(Trial(replace(elsewhere, id=i), "complete", 0.5, 3600.0) for i in range(7, 12))
    assert History((*history.trials, *added)).typical_overhead() == 3.0  # nobody decided these


def test_a_history_refuses_an_id_twice_and_points_of_different_length() -> None:
    with pytest.raises(ValueError, match=r"several trials for \[0\]"):
        History((complete(0, 0.5), failed(0)))
    other = Trial(Suggestion(1, {}, {}, np.array([0.5]), "design"), "complete", 0.5, 1.0)
    with pytest.raises(ValueError, match=r"lengths \[1, 2\]"):
        History((complete(0, 0.5), other))


@pytest.mark.parametrize("checkpoints", [None, frozenset(), frozenset({0})])
def test_appending_a_trial_keeps_the_known_checkpoints(checkpoints: frozenset[int] | None) -> None:
    history = History((), checkpoints)
    for number in range(3):
        history = history.append(complete(number, 0.5))
        assert history.checkpoints == checkpoints
    assert history == History(history.trials, checkpoints)


def test_nobody_can_change_a_record_through_what_it_returns() -> None:
    layers = [64, {"units": [1, 2]}]
    suggestion = Suggestion(0, {"layers": layers, "x": 1.0}, {"size": 10}, np.zeros(2), "design")
    trial = Trial(suggestion, "complete", 0.5, 1.0, info={"curve": [1.0, 0.5]})
    incumbent = Incumbent({"layers": layers}, 0.5, 0.1, True, (0,))
    layers.append("changed")
    for record in (suggestion, trial, incumbent):
        record.config["layers"].append("changed")
        record.config["layers"][1]["units"].append(3)
        record.config["x"] = 2.0
        assert record.config["layers"] == [64, {"units": [1, 2]}]
        assert record.config.get("x", 1.0) == 1.0
    suggestion.fidelity["size"] = 20
    trial.info["curve"].append(0.1)
    assert (suggestion.fidelity, trial.info) == ({"size": 10}, {"curve": [1.0, 0.5]})
    assert pickle.loads(pickle.dumps(trial)) == trial
    assert replace(suggestion, id=3).config == suggestion.config
    with pytest.raises(FrozenInstanceError):
        suggestion.config = {}  # type: ignore[misc]


def test_a_choice_that_is_an_object_of_the_user_stays_the_same_object() -> None:
    class Kernel:
        pass

    kernel = Kernel()
    assert Suggestion(0, {"kernel": kernel}, {}, np.zeros(1), "design").config["kernel"] is kernel


def report(loss: Any) -> Report:
    return Report({"size": 10}, np.zeros(1), loss, 1.0)


def trial(loss: Any) -> Trial:
    return complete(0, loss)


@pytest.mark.parametrize("loss", [1e101, -1e101, 1.7e308, Decimal("1e200")])
@pytest.mark.parametrize("record", [Outcome, trial, report])
def test_a_loss_too_large_to_compute_with_is_refused(record: Callable[[Any], Any], loss: Any) -> None:
    with pytest.raises(ValueError, match=r"loss.* must be between -1e\+100 and 1e\+100, got -?\d.*scale it"):
        record(loss)
    assert record(1e100).loss == 1e100
    assert record(-1e100).loss == -1e100


def test_a_predicted_loss_may_be_larger_than_a_measured_one() -> None:
    assert Incumbent({}, 1e101, 1.0, False, (0,)).loss == 1e101
    with pytest.raises(ValueError, match="the loss of an incumbent must be a finite number, got nan"):
        Incumbent({}, float("nan"), 1.0, False, (0,))
