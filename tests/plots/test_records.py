"""The numbers of each figure against the study that they are from."""

from dataclasses import replace

import numpy as np
import pytest

import fabolas
from fabolas import Fidelity, Float, History, Incumbent, Space, Suggestion, Trial
from fabolas.curve_reports import Report
from fabolas.plots import FIGURES, CannotDraw
from fabolas.plots.drawing import Bars, Label, Line, Points
from fabolas.plots.figures import drawing_of
from fabolas.plots.history import full_training
from fabolas.plots.importance import ImportanceRecord
from fabolas.plots.labels import left_out_note
from fabolas.plots.layout import Grid, legend_names, legend_width, vertical_title
from fabolas.plots.model import model_of
from fabolas.plots.over_sizes import spread
from fabolas.plots.time import PURPOSES
from fabolas.strategies import make
from fabolas.study.view import RecordCopy
from tests.helpers.views import View, view_of
from tests.plots.cases import SIZE, SVM, bowl, case, conditional


def compute(name, study, **options):
    return FIGURES[name].compute(study, **options)


def trial(i, size, *, cost=1.0, origin="information", status="complete", loss=0.5, elapsed=1.0):
    space = Space(SVM, SIZE)
    point = space.encode({"C": 1.0, "gamma": 0.01 + 0.001 * i}, {"size": size})
    suggestion = Suggestion(i, *space.decode(point), point, origin, overhead=0.25)
    failed = {"loss": None, "error": "KeyError: 'C'"} if status != "complete" else {"loss": loss}
    return Trial(suggestion, status, cost=cost, elapsed=elapsed, **failed)


def view(trials, trajectory=()):
    space, history = Space(SVM, SIZE), History(tuple(trials))
    record = RecordCopy(0, "minimize", history, float(history.overheads.sum()), tuple(trajectory))
    return View(space, record, make("fabolas", space))


def with_a_condition():
    """A study in which most kernels have no degree, but the best one has."""

    def loss(config, fidelity):
        return bowl(config, fidelity) - (1.0 if "degree" in config else 0.0) + 2.0

    return view_of(conditional(), 40, loss)


class TestHistory:
    def test_has_the_answers_and_the_measurements_at_the_target(self):
        study = case("one fidelity")
        record = compute("history", study)
        assert record.time == pytest.approx([when for when, _ in study.trajectory])
        assert record.loss == pytest.approx([answer.loss for _, answer in study.trajectory])
        measured = [t for t in study.trials if t.fidelity["size"] == 10_000]
        assert record.measured == pytest.approx([t.loss for t in measured])
        assert record.measured_time == pytest.approx([t.elapsed for t in measured])
        assert len(measured) > 3

    def test_it_ends_at_the_loss_that_the_study_states_now(self):
        study = case("one fidelity")
        when, last = study.trajectory[-1]
        before = replace(last, loss=1.01 * last.loss)
        for time, n in ((when, 1), (0.9 * when, 2)):  # predicted when the last trial ended, or earlier
            record = RecordCopy(0, "minimize", study.history, study.overhead, ((time, before),))
            found = compute("history", View(study.space, record, study.strategy))
            assert found.loss[-1] == pytest.approx(study.predicted_loss, rel=1e-9)
            assert found.time[-1] == study.history.elapsed
            assert len(found.time) == n

    def test_time_is_logarithmic_only_if_most_answers_came_very_early(self):
        trials = [trial(i, 10_000, elapsed=10.0 * (i + 1)) for i in range(100)]
        answer = Incumbent({"C": 1.0}, 0.4, 0.01, True, (1,))
        late = view(trials, [(when, answer) for when in (0.1, 30.0, 60.0)])
        early = view(trials, [(when, answer) for when in (0.1, 0.2, 0.5, 60.0)])
        assert not compute("history", late).log_time
        assert compute("history", early).log_time

    def test_answers_for_which_it_was_too_early_are_left_out(self):
        study = view([trial(0, 100)])
        early, later = (
            Incumbent({"C": 1.0}, 0.4, 0.1, False, (0,), preliminary) for preliminary in (True, False)
        )
        assert study.incumbent().preliminary
        with pytest.raises(CannotDraw, match="too early to predict"):
            compute("history", view([trial(0, 100)], [(1.0, early)]))
        assert compute("history", view([trial(0, 100)], [(1.0, early), (2.0, later)])).time.tolist() == [2.0]

    def test_the_first_answers_do_not_take_the_room_of_the_others(self):
        trials = [trial(i, 10_000, loss=0.02, elapsed=10.0 * (i + 1)) for i in range(100)]
        answers = [
            (when, Incumbent({"C": 1.0}, loss, 0.001, True, (1,)))
            for when, loss in ((1.0, 0.9), (2.0, 0.7), (200.0, 0.08), (400.0, 0.03), (900.0, 0.02))
        ]
        axis = drawing_of(compute("history", view(trials, answers))).panels[0].y
        assert axis.log
        assert 0.08 < axis.range[1] < 0.2

    def test_full_trainings_are_the_measured_cost_of_the_answer(self):
        answer = Incumbent({"C": 1.0}, 0.4, 0.01, True, (1,))
        trials = [trial(0, 10_000, cost=9.0), trial(1, 10_000, cost=4.0, loss=0.4, elapsed=20.0)]
        study = view(trials, [(20.0, answer)])
        scale = full_training(study)
        assert scale in (4.0, 9.0)
        assert scale == next(t.cost for t in trials if t.id == study.incumbent().trial_ids[0])
        assert compute("history", study, unit="full trainings").time == pytest.approx([20.0 / scale])

    def test_full_trainings_need_a_trial_at_the_target(self):
        answer = Incumbent({"C": 1.0}, 0.4, 0.01, False, (0,))
        with pytest.raises(CannotDraw, match="No trial at the target is complete"):
            compute("history", view([trial(0, 500)], [(1.0, answer)]), unit="full trainings")

    def test_the_band_of_positive_losses_stays_positive_and_has_their_moments(self):
        answer = Incumbent({"C": 1.0}, 0.3, 0.3, True, (0,))
        record = compute("history", view([trial(0, 10_000)], [(0.5, answer)]))
        assert record.low[0] > 0
        median = np.sqrt(record.low[0] * record.high[0])
        deviation = np.log(record.high[0] / median) / 1.96
        assert median * np.exp(0.5 * deviation**2) == pytest.approx(0.3)
        assert 0.3 * np.sqrt(np.expm1(deviation**2)) == pytest.approx(0.3)

    def test_the_axis_can_be_chosen(self):
        study = case("one fidelity")
        assert drawing_of(compute("history", study, log=True)).panels[0].x.log
        assert not drawing_of(compute("history", study, log=False)).panels[0].x.log

    def test_it_is_dotted_where_the_answer_was_not_verified(self):
        answers = [(1.0, Incumbent({"C": 1.0}, 0.5, 0.1, False, (0,)))]
        answers.append((2.0, Incumbent({"C": 1.0}, 0.4, 0.1, True, (1,))))
        study = view([trial(0, 500), trial(1, 10_000, elapsed=3.0)], answers)
        lines = [x for x in drawing_of(compute("history", study)).panels[0].layers if isinstance(x, Line)]
        dotted, solid = lines
        assert dotted.dash == "dot"
        assert np.nanmax(dotted.x[np.isfinite(dotted.y)]) == 2.0
        assert np.nanmin(solid.x[np.isfinite(solid.y)]) == 2.0


class TestCurves:
    @pytest.mark.parametrize("name", ["one fidelity", "maximise"])
    def test_the_curve_of_the_answer_ends_at_its_predicted_loss(self, name):
        study = case(name)
        curve = compute("curves", study).curves[0]
        assert curve.name == "answer"
        assert curve.sizes[-1] == 10_000
        assert curve.interval.centre[-1] == pytest.approx(study.predicted_loss, rel=1e-9)

    def test_curves_are_predictions_at_each_size(self):
        study = case("one fidelity")
        record = compute("curves", study)
        config = study.best_config
        curve = record.curves[0]
        for i in (0, 20, 40):
            predicted = study.predict(config, {"size": int(curve.sizes[i])})
            assert curve.interval.centre[i] == pytest.approx(predicted.loss[0], rel=1e-9)

    def test_rivals_are_other_configurations(self):
        record = compute("curves", case("one fidelity"))
        assert len({curve.texts for curve in record.curves}) == len(record.curves) == 4

    def test_points_of_a_curve_have_its_configuration(self):
        study = case("one fidelity")
        record = compute("curves", study)
        own = [t for t, i in zip(record.cloud.texts, record.cloud.curve, strict=True) if i == 0]
        ids = study.incumbent().trial_ids
        assert {text[0] for text in own} == {f"Trial {i}" for i in ids}

    def test_with_two_fidelities_the_other_one_is_at_the_target(self):
        study = case("two fidelities")
        record = compute("curves", study, fidelity="epochs")
        assert "size at the target" in record.note
        curve = record.curves[0]
        predicted = study.predict(study.best_config, {"size": 10_000, "epochs": float(curve.sizes[0])})
        assert curve.interval.centre[0] == pytest.approx(predicted.loss[0], rel=1e-9)
        sizes = [t.fidelity["size"] for t in study.trials]
        assert record.cloud.others_at_target.tolist() == [size == 10_000 for size in sizes]

    def test_rivals_are_the_closest_one_and_weaker_ones_of_the_better_half(self):
        study = case("one fidelity")
        ends = [curve.interval.centre[-1] for curve in compute("curves", study).curves]
        model = model_of(study)
        ranked = model.loss(model.at_target(model.evaluated)).centre
        assert ends[0] < min(ends[1:])
        assert ends[1:] == sorted(ends[1:])
        rounding = 1.0 + 1e-9
        assert ends[1] <= ranked[4] * rounding
        assert ranked[len(ranked) // 3] < ends[-1] <= ranked[2 * len(ranked) // 3] * rounding

    def test_a_strategy_without_curves_shows_its_trials_and_says_so(self):
        record = compute("curves", case("on all the data"))
        assert not record.curves
        assert len(record.cloud.values)
        assert "evaluates at the target only" in record.note

    def test_trials_outside_of_the_axis_are_at_its_edge(self):
        drawing = drawing_of(compute("curves", case("one fidelity")))
        low, high = drawing.panels[0].y.range
        for layer in drawing.panels[0].layers:
            if isinstance(layer, Points):
                assert ((layer.y >= low) & (layer.y <= high)).all()


class TestLabels:
    def test_labels_are_moved_apart_and_no_further(self):
        moved = spread(np.array([0.5, 0.51, 0.9, 0.2]), 0.1)
        assert moved == pytest.approx([0.455, 0.555, 0.9, 0.2])

    def test_they_stay_within_the_panel(self):
        moved = spread(np.array([1.0, 1.0, 0.99]), 0.1)
        assert moved.max() <= 1.0
        assert np.diff(np.sort(moved)) == pytest.approx(0.1)


class TestCost:
    def test_points_and_curve_are_seconds(self):
        study = case("one fidelity")
        record = compute("cost", study)
        assert record.cloud.values == pytest.approx(study.history.costs)
        curve = record.curves[0]
        predicted = study.predict(study.best_config)
        assert curve.interval.centre[-1] == pytest.approx(predicted.cost[0], rel=1e-9)


class TestTime:
    def test_sums_up_to_all_recorded_time(self):
        for name in ("one fidelity", "mixed", "no fidelity", "only failures"):
            study = case(name)
            assert compute("time", study).seconds.sum() == pytest.approx(study.spent)

    def test_each_trial_counts_for_its_purpose_and_size(self):
        study = view(
            [
                trial(0, 100, origin="design", cost=1.0),
                trial(1, 100, origin="batch", cost=2.0),
                trial(2, 100, status="failed", cost=4.0),
                trial(3, 10_000, origin="target", cost=8.0),
                trial(4, 10_000, origin="enqueued", cost=16.0),
                trial(7, 10_000, origin="verification", cost=64.0),
                trial(5, 2_000, origin="bracket 1 rung 0", cost=32.0),
                trial(6, 10_000, origin="added", cost=1000.0),
            ]
        )
        record = compute("time", study)
        assert record.rows == ("10,000 (target)", "2,000", "100", "overhead")
        table = {
            (row, purpose): record.seconds[i, j]
            for i, row in enumerate(record.rows)
            for j, purpose in enumerate(PURPOSES)
            if record.seconds[i, j]
        }
        assert table == {
            ("10,000 (target)", "target evaluations"): 8.0,
            ("10,000 (target)", "enqueued"): 16.0,
            ("10,000 (target)", "verification"): 64.0,
            ("2,000", "search"): 32.0,
            ("100", "initial design"): 1.0,
            ("100", "information"): 2.0,
            ("100", "failures"): 4.0,
            ("overhead", "overhead"): 2.0,
        }
        assert record.note == "Trials that were measured elsewhere are not counted."

    def test_over_each_of_several_fidelities_all_trials_are_shown(self):
        study = case("two fidelities")
        for name, other in (("size", "epochs"), ("epochs", "size")):
            record = compute("time", study, fidelity=name)
            assert record.seconds.sum() == pytest.approx(study.spent)
            assert record.counts[:-1].sum() == len(study.trials)
            assert record.note == f"All trials are shown by {name}; those of one bar may differ in {other}."
        assert compute("time", case("one fidelity")).note == ""

    def test_many_sizes_are_put_into_classes_that_hold_them(self):
        record = compute("time", case("one fidelity"))
        assert len(record.rows) <= 8
        assert record.counts[:-1].sum() == 40


class TestSlices:
    def test_the_slice_at_the_answer_is_its_prediction(self):
        study = case("one fidelity")
        record = compute("slices", study)
        assert record.answer == pytest.approx(study.predicted_loss, rel=1e-9)
        for each in record.slices:
            i = int(np.argmin(np.abs(each.axis.positions - each.answer)))
            config = {
                **study.best_config,
                each.axis.name: study.space.axis(each.axis.name).value(float(each.axis.positions[i])),
            }
            assert each.interval.centre[i] == pytest.approx(study.predict(config).loss[0], rel=1e-6)

    def test_the_shade_of_choices_is_their_probability(self):
        record = compute("slices", case("choices only"))
        assert all(s.optimum.max() == 1.0 and len(s.optimum) == len(s.axis.labels) for s in record.slices)

    def test_hyperparameters_that_are_not_active_are_left_out_and_named(self):
        study = case("conditions")
        inactive = {"kernel", "degree", "C"} - study.best_config.keys()
        record = compute("slices", study)
        assert {s.axis.name for s in record.slices} == study.best_config.keys()
        assert all(name in record.note for name in inactive)
        with pytest.raises(CannotDraw, match=f"Not active in the answer: {min(inactive)}"):
            compute("slices", study, names=(min(inactive),))

    def test_of_many_hyperparameters_the_most_important_are_shown(self):
        record = compute("slices", case("20 dimensions"))
        assert len(record.slices) == 12
        assert "8 hyperparameters with less influence are not shown." in record.note


def test_the_most_important_hyperparameter_has_the_longest_bar():
    names = ("a", "b", "c")  # the estimate of b alone is above the better one of its total
    record = ImportanceRecord(names, np.array([[0.3, 0.25, 0.1]]), np.array([[0.4, 0.2, 0.1]]), "")
    alone, others = (layer for layer in drawing_of(record).panels[0].layers if isinstance(layer, Bars))
    assert others.end.tolist() == [0.4, 0.2, 0.1]
    assert alone.end.tolist() == [0.3, 0.2, 0.1]


class TestContours:
    def test_the_contour_is_the_prediction_of_each_configuration(self):
        study = case("one fidelity")
        (pair,) = compute("contours", study).pairs
        for i, j in ((0, 0), (5, 11)):
            config = {
                pair.x.name: study.space.axis(pair.x.name).value(float(pair.x.positions[j])),
                pair.y.name: study.space.axis(pair.y.name).value(float(pair.y.positions[i])),
            }
            assert pair.loss[i, j] == pytest.approx(study.predict(config).loss[0], rel=1e-6)

    def test_trials_without_one_of_the_hyperparameters_are_not_in_the_picture(self):
        study = with_a_condition()
        assert "degree" in study.best_config
        (pair,) = compute("contours", study, names=("degree", "C")).pairs
        without = ["degree" not in trial.config for trial in study.history.trials]
        assert 0 < sum(without) < len(without)
        assert np.isnan(pair.measured[:, 0]).tolist() == without
        drawn = drawing_of(compute("contours", study, names=("degree", "C"))).panels[0].layers
        points = [layer for layer in drawn if isinstance(layer, Points) and layer.symbol == "circle"]
        assert sum(len(layer.x) for layer in points) == len(without) - sum(without)
        (degree,) = compute("slices", study, names=("degree",)).slices
        losses = compute("slices", study).losses
        assert len(degree.measured) == len(losses)
        assert np.isnan(degree.measured).any()

    def test_optima_without_a_hyperparameter_do_not_count_for_its_shade(self):
        study = view_of(conditional(), 30, bowl, seed=3)
        x = model_of(study).optimum_with("degree").x
        assert 0 < len(x) < len(model_of(study).optimum.x)
        assert all("degree" in study.space.decode(point)[0] for point in study.space.at_target(x))

    def test_the_shade_is_highest_where_the_optimum_probably_is(self):
        study = case("one fidelity")
        (pair,) = compute("contours", study).pairs
        i, j = np.unravel_index(np.argmax(pair.optimum), pair.optimum.shape)
        best = pair.loss.min()
        config = {
            pair.x.name: study.space.axis(pair.x.name).value(float(pair.grid[j])),
            pair.y.name: study.space.axis(pair.y.name).value(float(pair.grid[i])),
        }
        assert study.predict(config).loss[0] < best + 0.3 * (np.median(pair.loss) - best)

    def test_named_pairs(self):
        record = compute("contours", case("20 dimensions"), names=("x3", "x7"))
        assert [(pair.x.name, pair.y.name) for pair in record.pairs] == [("x3", "x7")]


class TestParallel:
    def test_positions_are_coordinates_and_gaps_where_not_active(self):
        study = case("conditions")
        record = compute("parallel", study)
        column = [row.name for row in record.rows].index("degree")
        active = np.array(["degree" in t.config for t in study.trials])
        assert np.array_equal(np.isfinite(record.positions[:, column]), active)
        expected = study.history.points[active, study.space.names.index("degree")]
        assert record.positions[active, column] == pytest.approx(expected)

    def test_the_best_trial_has_the_highest_rank(self):
        for name in ("no fidelity", "maximise"):
            study = case(name)
            record = compute("parallel", study)
            best = int(np.argmax(record.rank))
            end = record.positions[:, -1]
            assert end[best] == (end.min() if name == "no fidelity" else end.max())


class TestTrials:
    def test_has_all_trials_with_their_tracebacks_the_last_first(self):
        study = case("mixed")
        record = compute("trials", study)
        keys = [column.key for column in record.columns]
        frame = study.to_frame().iloc[::-1]
        for key in ("id", "status", "cost", "fidelity_size", "config_depth", "config_rate"):
            assert [row[keys.index(key)] for row in record.rows] == frame[key].tolist()
        errors = [row[keys.index("error")] for row in record.rows if row[1] == "failed"]
        assert errors
        assert all("Traceback" in error for error in errors)

    def test_values_are_plain(self):
        for row in compute("trials", case("mixed")).rows:
            assert all(value is None or isinstance(value, str | int | float | bool) for value in row)


class TestCalibration:
    def test_a_prediction_uses_only_the_trials_before(self):
        study = case("one fidelity")
        record = compute("calibration", study)
        surrogate = study.strategy.surrogate(study.history).surrogate
        i = 25
        h = study.history
        gp = surrogate.prior.loss_gp().posterior(
            h.points[:i], surrogate.transform.forward(h.losses[:i]), surrogate.loss.theta
        )
        at = gp.project(h.points[i : i + 1])
        means = gp.mean(at)[:, 0]
        variance = float((gp.variance(at) + gp.noise(h.points[i : i + 1])).mean() + means.var())
        low = surrogate.transform.inverse(np.array(means.mean() - 1.96 * np.sqrt(variance)))
        assert record.loss.predicted.low[i] == pytest.approx(float(low), rel=1e-6)
        error = (surrogate.transform.forward(h.losses[i : i + 1])[0] - means.mean()) / np.sqrt(variance)
        assert record.loss.error[i] == pytest.approx(error, rel=1e-5, abs=1e-7)

    def test_the_coverage_counts_measurements_within_their_intervals(self):
        study = case("one fidelity")
        record = compute("calibration", study)
        for of in (record.loss, record.cost):
            inside = (of.predicted.low <= of.measured) & (of.measured <= of.predicted.high)
            assert of.coverage[-1] == pytest.approx(inside[of.after_design].mean(), abs=0.03)
        assert record.loss.after_design.sum() == sum(t.suggestion.origin != "design" for t in study.trials)

    def test_failures_are_not_compared(self):
        study = case("mixed")
        record = compute("calibration", study)
        assert len(record.loss.measured) == int(study.history.complete.sum())
        assert record.loss.measured == pytest.approx(study.history.losses[study.history.complete])

    def test_a_maximised_score_has_the_same_coverage(self):
        record = compute("calibration", case("maximise"))
        inside = (record.loss.predicted.low <= record.loss.measured) & (
            record.loss.measured <= record.loss.predicted.high
        )
        assert record.loss.coverage[-1] == pytest.approx(inside[record.loss.after_design].mean(), abs=0.03)

    def test_without_seconds_there_is_no_cost(self):
        from fabolas.model_spec import ModelSpec

        space = fabolas.Space({"x": Float(0.0, 1.0)}, {"size": (10, 1000)})
        with fabolas.Study(
            space, seed=0, effort=0.0, overhead=0.0, model=ModelSpec(cost_from_fidelity=True)
        ) as study:
            for i in range(4):
                study.tell(study.ask(), 0.5 + 0.1 * i, cost=1.0)
            assert compute("calibration", study).cost is None
            assert "does not predict seconds" in compute("cost", study).note


def test_the_label_of_the_last_answer_has_room_beside_the_history():
    record = FIGURES["history"].compute(case("one fidelity"))
    long = replace(record, loss=np.append(record.loss[:-1], 0.00605123))
    label = next(
        each for each in drawing_of(long).panels[0].layers if isinstance(each, Label) and each.in_margin
    )
    assert label.text == "0.00605"
    assert drawing_of(long).right >= label.shift[0] + 8.5 * len(label.text)  # bold digits of 13 pixels


def test_contours_of_an_error_rate_have_no_loss_above_one():
    def rate(config, fidelity):
        return min(0.9, 20.0 * bowl(config, fidelity) ** 2)

    study = view_of(Space(SVM, SIZE), 30, rate, fitted=True)
    model = model_of(study)
    points = model.at_target(np.random.default_rng(0).random((500, 2)))
    surrogate = model.fitted.surrogate
    assert surrogate.transform.inverse(surrogate.loss.mean_of(points).mean(axis=0)).max() > 1.0
    assert model.loss(points).centre.max() <= 1.0
    assert max(pair.loss.max() for pair in compute("contours", study).pairs) <= 1.0


def test_what_is_left_out_is_said_in_a_sentence():
    assert [left_out_note(n) for n in (0, 1, 8)] == [
        "",
        "One hyperparameter with less influence is not shown.",
        "8 hyperparameters with less influence are not shown.",
    ]


@pytest.mark.parametrize("narrow", [False, True])
def test_a_legend_with_long_names_has_a_line_for_each_and_room_above_the_panel(narrow):
    few = drawing_of(compute("time", case("mixed")))
    name = "a name of thirty-two characters "
    layers = tuple(
        Line(np.array([0.0, 1.0]), np.array([0.0, 1.0]), "ink", legend=f"{name}{i}") for i in range(6)
    )
    many = replace(few, panels=(replace(few.panels[0], layers=layers),))
    assert legend_names(many) == [f"{name}{i}" for i in range(6)]
    assert legend_width(many) >= 7 * len(f"{name}0")
    lines = 6 if narrow else 2
    above = Grid.of(replace(many, legend=False), narrow=narrow).margin["t"]
    assert Grid.of(many, narrow=narrow).margin["t"] - above >= 19 * lines


def test_slices_name_their_common_vertical_axis_once_in_a_row():
    drawing = drawing_of(compute("slices", case("20 dimensions")))
    titles = [vertical_title(drawing, i, narrow=False) for i in range(len(drawing.panels))]
    assert titles == ["loss at the target", "", ""] * 4
    assert {vertical_title(drawing, i, narrow=True) for i in range(12)} == {"loss at the target"}
    plotly = FIGURES["slices"].draw(compute("slices", case("20 dimensions")))
    assert [plotly.layout[f"yaxis{n}"].title.text for n in ("", 2, 3, 4)] == [titles[0], "", "", titles[0]]
    assert plotly.layout.meta["narrow"]["yaxis2.title.text"] == "loss at the target"


class TestReports:
    @staticmethod
    def study():
        space = Space(SVM, {"epochs": Fidelity(1, 16, reports=True)})
        trials = []
        for i, (epochs, rate) in enumerate([(4, 0.1), (16, 0.01)]):
            point = space.encode({"C": 1.0, "gamma": rate}, {"epochs": epochs})
            passed = [
                Report(
                    {"epochs": e}, space.encode({"C": 1.0, "gamma": rate}, {"epochs": e}), 1.0 / e, float(e)
                )
                for e in range(1, epochs, 2)
            ]
            suggestion = Suggestion(i, *space.decode(point), point, "information")
            trials.append(
                Trial(suggestion, "complete", 1.0 / epochs, float(epochs), elapsed=9.0, reports=tuple(passed))
            )
        record = RecordCopy(0, "minimize", History(tuple(trials)), 0.0, ())
        return View(space, record, make("fabolas", space))

    def test_a_training_is_a_path_through_its_reports_to_its_end(self):
        record = compute("curves", self.study())
        gaps = np.flatnonzero(np.isnan(record.paths.sizes))
        first, second = (part[:-1] for part in np.split(record.paths.sizes, gaps + 1)[:2])
        assert first.tolist() == [1, 3, 4]
        assert second.tolist() == [1, 3, 5, 7, 9, 11, 13, 15, 16]
        known = ~np.isnan(record.paths.sizes)
        np.testing.assert_allclose(record.paths.losses[known], 1.0 / record.paths.sizes[known])
        assert set(record.paths.curve) <= {-1, 0, 1}
        assert "reported on the way" in record.note

    def test_each_path_is_drawn_as_a_line(self):
        (panel,) = drawing_of(compute("curves", self.study())).panels
        paths = [layer for layer in panel.layers if isinstance(layer, Line) and np.isnan(layer.x).any()]
        assert sum(int(np.isnan(layer.x).sum()) for layer in paths) == 2

    def test_a_fidelity_without_reports_has_no_paths(self):
        assert len(compute("curves", case("one fidelity")).paths.sizes) == 0
