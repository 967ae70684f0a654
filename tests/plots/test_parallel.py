"""What the rows of parallel coordinates say, and which trials are in front."""

import numpy as np

from fabolas import Categorical, Float, Integer, Space
from fabolas.plots import FIGURES
from fabolas.plots.drawing import Drawing, Label, Points
from fabolas.plots.figures import drawing_of
from fabolas.plots.with_plotly import draw_with_plotly
from tests.helpers.views import View, view_of
from tests.plots.cases import bowl, case


def drawn(study: View) -> Drawing:
    return drawing_of(FIGURES["parallel"].compute(study))


def row(drawing: Drawing, name: str, *, narrow: bool = False) -> list[str]:
    """The labels of a row from left to right."""
    panel = drawing.panels[0]
    (place,) = [value for value, text in panel.y.ticks or () if text == name]
    labels = [layer for layer in panel.layers if isinstance(layer, Label) and layer.y == place]
    found = [(label.x, label.narrow_text if narrow else label.text) for label in labels]
    return [text for _, text in sorted(found) if text]


class TestTicks:
    def test_every_choice_is_named_also_beside_a_long_one(self):
        names = ["rbf", "poly", "a kernel with a very long name, which nobody would write"]
        drawing = drawn(view_of(Space({"kernel": Categorical(names), "x": Float(0.0, 1.0)}), 8, bowl))
        wide, narrow = row(drawing, "kernel"), row(drawing, "kernel", narrow=True)
        assert wide[:2] == narrow[:2] == names[:2]
        assert len(wide) == len(narrow) == 3
        assert len(narrow[2]) < len(wide[2]) < len(names[2])

    def test_15_choices_are_named_where_there_is_room(self):
        names = [f"z{i}" for i in range(15)]
        drawing = drawn(view_of(Space({"k": Categorical(names), "x": Float(0.0, 1.0)}), 8, bowl))
        assert row(drawing, "k") == names
        assert 3 < len(row(drawing, "k", narrow=True)) < 15

    def test_sizes_have_their_ends_and_all_decades(self):
        study = view_of(Space({"x": Float(0.0, 1.0)}, {"size": (300, 60_000)}), 8, bowl)
        assert row(drawn(study), "size") == ["300", "1,000", "3,000", "10,000", "30,000", "60,000"]
        narrow = row(drawn(study), "size", narrow=True)
        assert (narrow[0], narrow[-1]) == ("300", "60,000")

    def test_whole_numbers_have_their_ends(self):
        study = view_of(Space({"n": Integer(1, 300), "x": Float(0.0, 1.0)}), 8, bowl)
        assert row(drawn(study), "n") == ["1", "100", "200", "300"]

    def test_a_label_without_text_on_a_phone_is_hidden_there(self):
        names = [f"z{i}" for i in range(15)]
        figure = draw_with_plotly(drawn(view_of(Space({"k": Categorical(names)}), 8, bowl)))
        wide, narrow = (
            [key for key, value in figure.layout.meta[layout].items() if value is False]
            for layout in ("wide", "narrow")
        )
        assert not wide
        assert narrow
        assert all(key.endswith(".visible") for key in narrow)


def test_the_answer_is_in_front_of_all_other_ends():
    study = case("one fidelity")
    (points,) = [layer for layer in drawn(study).panels[0].layers if isinstance(layer, Points)]
    n_answer = sum(colour == "second" for colour in points.colour)
    assert 0 < n_answer < len(points.colour)
    assert set(points.colour[-n_answer:]) == {"second"}
    ids = {f"Trial {i}" for i in study.incumbent().trial_ids}
    assert {text[0] for text in points.hover[-n_answer:]} == ids
    assert np.isfinite(points.x).all()
