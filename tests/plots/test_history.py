"""How the last answer is drawn in the figure of the answer over time."""

import numpy as np
import pytest

import fabolas
from fabolas import Space
from fabolas.plots import FIGURES, CannotDraw
from fabolas.plots.drawing import Band, Drawing, Line, Points
from fabolas.plots.figures import drawing_of
from fabolas.plots.history import HistoryRecord
from tests.helpers.views import view_of
from tests.plots.cases import SIZE, SVM, bowl


def drawn(times: list[float], end: float, *, log_time: bool = False) -> Drawing:
    n, texts = len(times), tuple(("Answer",) for _ in times)
    loss = np.linspace(0.5, 0.3, n)
    answers = {"loss": loss, "low": loss - 0.1, "high": loss + 0.1, "verified": np.ones(n, dtype=bool)}
    measured = {"measured_time": np.array(times), "measured": loss, "measured_texts": texts}
    words = {"unit": "seconds", "what": "loss", "where": "", "note": ""}
    record = HistoryRecord(
        time=np.array(times), texts=texts, end=end, log_time=log_time, **answers, **measured, **words
    )
    return drawing_of(record)


@pytest.mark.parametrize("log_time", [False, True])
def test_the_band_of_an_answer_at_the_end_can_be_seen(log_time):
    panel = drawn([1.0, 50.0, 100.0], 100.0, log_time=log_time).panels[0]
    (band,) = [layer for layer in panel.layers if isinstance(layer, Band)]
    assert band.x[-2] == 100.0
    assert 101.5 < band.x[-1] <= panel.x.range[1]
    assert (band.low[-1], band.high[-1]) == pytest.approx((0.2, 0.4))


def test_no_line_looks_like_an_error_bar():
    for end in (100.0, 200.0):
        for layer in drawn([1.0, 50.0, 100.0], end).panels[0].layers:
            if isinstance(layer, Line):
                y = layer.y[np.isfinite(layer.y)]
                assert len(layer.x) > 2
                assert not len(y) or y[-1] == pytest.approx(0.3)


def test_an_answer_before_the_end_holds_until_the_end():
    panel = drawn([1.0, 50.0], 100.0).panels[0]
    (band,) = [layer for layer in panel.layers if isinstance(layer, Band)]
    assert band.x[-1] == 100.0


def test_the_band_is_pale_where_the_answer_was_not_measured():
    texts = tuple(("Answer",) for _ in range(4))
    loss = np.array([0.5, 0.4, 0.35, 0.3])
    answers = {"loss": loss, "low": loss - 0.1, "high": loss + 0.1, "texts": texts}
    measured = {"measured_time": np.array([2.0]), "measured": loss[1:2], "measured_texts": texts[:1]}
    words = {"unit": "seconds", "what": "loss", "where": "", "note": "", "log_time": False}
    record = HistoryRecord(
        time=np.arange(4.0),
        verified=np.array([False, True, True, False]),
        end=10.0,
        **answers,
        **measured,
        **words,
    )
    bands = [layer for layer in drawing_of(record).panels[0].layers if isinstance(layer, Band)]
    assert [(band.x[0], band.x[-1]) for band in bands] == [(0.0, 1.0), (1.0, 3.0), (3.0, 10.0)]
    assert bands[0].alpha == bands[2].alpha < bands[1].alpha


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_without_a_model_the_line_is_the_best_measurement_so_far(direction):
    sign = 1.0 if direction == "minimize" else -1.0
    loss = {"minimize": bowl, "maximize": lambda config, fidelity: -bowl(config, fidelity)}[direction]
    study = view_of(Space(SVM, SIZE), 40, loss, strategy="random", direction=direction, seed=5)
    record = FIGURES["history"].compute(study)
    there = study.space.is_at_target(study.history.points)
    losses = np.where(there, sign * study.history.losses, np.inf)
    for time, value in zip(record.time, record.loss, strict=True):
        until = [trial.elapsed <= time for trial in study.trials]
        assert sign * value == losses[until].min()
    assert len(set(record.loss)) == len(set(np.minimum.accumulate(losses)) - {np.inf}) > 3


@pytest.mark.parametrize("worst", [0.9, 30.0])
def test_a_very_bad_measurement_does_not_squeeze_the_answers(worst):
    texts = tuple(("Answer",) for _ in range(4))
    loss = np.array([0.05, 0.04, 0.035, 0.03])
    answers = {"loss": loss, "low": 0.9 * loss, "high": 1.1 * loss, "texts": texts}
    measured = {"measured_time": np.arange(4.0), "measured": np.array([0.04, 0.035, worst, 0.031])}
    words = {"unit": "seconds", "what": "loss", "where": "", "note": "", "log_time": False}
    record = HistoryRecord(
        time=np.arange(4.0),
        verified=np.ones(4, bool),
        end=4.0,
        measured_texts=texts,
        **answers,
        **measured,
        **words,
    )
    shown = drawing_of(record)
    low, high = shown.panels[0].y.range
    assert low < 0.027
    assert 0.04 < high < 0.2
    (outside,) = (
        layer for layer in shown.panels[0].layers if isinstance(layer, Points) and layer.symbol == "up"
    )
    assert list(outside.x) == [2.0]
    assert low < outside.y[0] < high
    assert shown.note == "Triangles at the edge are trials outside the picture."


def test_a_study_of_trials_from_elsewhere_has_no_history():
    with fabolas.Study(SVM, SIZE, seed=0) as study:
        study.add({"C": 1.0, "gamma": 0.1}, None, 0.3, 60.0)
        with pytest.raises(CannotDraw, match="measured elsewhere"):
            FIGURES["history"].compute(study)


def test_a_line_of_few_answers_says_that_it_may_be_behind():
    study = view_of(Space(SVM, SIZE), 40, bowl)
    assert len(study.trajectory) == 3
    note = "The run computed its answer 3 times in 40 trials, so the line may be behind the measurements."
    assert FIGURES["history"].compute(study).note == note
    assert FIGURES["history"].compute(view_of(Space(SVM, SIZE), 10, bowl)).note == ""
    assert FIGURES["history"].compute(view_of(Space(SVM, SIZE), 40, bowl, strategy="random")).note == ""
