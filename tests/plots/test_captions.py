"""The sentence above a figure says what the figure shows of this study, and no more."""

import re

import pytest

from fabolas import Float, Space
from fabolas.plots import FIGURES, CannotDraw
from fabolas.plots.drawing import Label
from fabolas.plots.figures import drawing_of
from tests.helpers.marks import slow
from tests.helpers.views import view_of
from tests.plots.cases import CASES, SIZE, SVM, bowl, case


def captions(name: str) -> dict[str, str]:
    study = case(name)
    return {figure: definition.how_to_read(study) for figure, definition in FIGURES.items()}


@pytest.mark.parametrize("name", [slow(name)[0] if name == "3,000 trials" else name for name in CASES])
def test_each_figure_has_a_sentence(name):
    for text in captions(name).values():
        assert re.fullmatch(r"[A-Z].{20,}\.", text)


def test_no_line_ends_between_a_number_and_its_percent_sign():
    for text in captions("one fidelity").values():
        assert " %" not in text
    assert "95\u00a0%" in captions("one fidelity")["history"]


def test_a_maximised_score_is_a_value():
    said = captions("maximise")
    assert not any("loss" in text for text in said.values())
    assert all("predicted value" in said[figure] for figure in ("history", "slices", "contours"))
    assert "predicted loss at the target" in captions("one fidelity")["slices"]


def test_without_fidelities_there_is_no_target():
    said = captions("no fidelity")
    for figure in FIGURES.keys() - {"curves", "cost"}:  # which it cannot have
        assert "target" not in said[figure]
    assert "at the target" in captions("one fidelity")["importance"]


@pytest.mark.parametrize("name", ["reports", "two fidelities", "random", "on all the data"])
def test_no_sentence_takes_a_fidelity_for_the_size_of_the_data(name):
    """Every training of a study over epochs uses all the data."""
    for text in captions(name).values():
        assert not re.search(r"\b(data|sizes?)\b", text)


@pytest.mark.parametrize("figure", ["history", "slices"])
def test_nor_are_the_axes_and_texts(figure):
    for name, expected in (("no fidelity", False), ("one fidelity", True)):
        record = FIGURES[figure].compute(case(name))
        assert ("at the target" in drawing_of(record).panels[0].y.title) == expected
        assert ("at the target" in repr(record)) == expected


def test_without_a_model_nothing_is_predicted():
    said = captions("random")
    assert said["history"].startswith("The line is the best loss measured at the target until that time")
    for figure in ("history", "curves", "cost"):
        assert not re.search("predict|band|interval|expects", said[figure])
    record = FIGURES["cost"].compute(case("random"))
    assert "The strategy 'random' has no model;" in record.note


def test_a_model_without_curves_has_no_caption_of_curves():
    said = captions("on all the data")
    assert "predicted loss" in said["history"]
    for figure in ("curves", "cost"):
        assert "predicts" not in said[figure]
        assert "predicts" in captions("one fidelity")[figure]


@pytest.mark.parametrize("figure", ["slices", "contours"])
def test_a_figure_of_the_answer_says_when_it_is_too_early(figure):
    study = view_of(Space(SVM, SIZE), 1, bowl, seed=1)
    assert study.incumbent().preliminary
    with pytest.raises(CannotDraw, match=r"^It is too early to predict the loss at the target\.$"):
        FIGURES[figure].compute(study)
    known = view_of(Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)}), 1, bowl)
    assert not known.incumbent().preliminary
    assert FIGURES[figure].compute(known)


def test_before_the_loss_can_be_predicted_curves_have_no_number():
    record = FIGURES["curves"].compute(view_of(Space(SVM, SIZE), 1, bowl, seed=1))
    assert record.note.startswith("It is too early to predict the loss at the target.")
    layers = drawing_of(record).panels[0].layers
    assert "answer" in [layer.text for layer in layers if isinstance(layer, Label)]
    later = FIGURES["curves"].compute(case("one fidelity"))
    layers = drawing_of(later).panels[0].layers
    assert any(layer.text.startswith("answer  0.") for layer in layers if isinstance(layer, Label))


def test_before_the_loss_can_be_predicted_the_last_row_is_what_was_measured():
    study = view_of(Space(SVM, SIZE), 1, bowl, seed=1)
    assert study.incumbent().preliminary
    assert FIGURES["parallel"].compute(study).rows[-1].name == "loss"
    assert FIGURES["parallel"].compute(case("one fidelity")).rows[-1].name == "predicted loss"


def test_without_an_answer_no_line_is_that_of_the_answer():
    assert "answer" in captions("random")["parallel"]
    assert "answer" in captions("one fidelity")["parallel"]
    below = view_of(Space(SVM, SIZE), 0, bowl, strategy="hyperband")
    assert FIGURES["parallel"].how_to_read(below).endswith("the better the trial.")
