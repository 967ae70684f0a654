"""Figures as images: with matplotlib, without a browser."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from fabolas.plots import FIGURES, CannotDraw, save
from fabolas.plots.drawing import (
    Band,
    Bars,
    Contours,
    Drawing,
    FigureAxis,
    Label,
    Line,
    Panel,
    Points,
    StraightLine,
)
from fabolas.plots.with_matplotlib import draw_with_matplotlib
from tests.plots.cases import case

IMAGES = [name for name in FIGURES if name != "trials"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Glyph .* missing from font")  # hostile names are in many scripts
@pytest.mark.parametrize("figure", IMAGES)
def test_every_figure_can_be_saved(figure, tmp_path):
    record = FIGURES[figure].compute(case("hostile names"))
    save(record, tmp_path / "a.svg", theme="dark")
    root = ET.parse(tmp_path / "a.svg").getroot()
    assert root.tag.endswith("svg")
    assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) > 10


class TestFormats:
    def test_the_ending_is_the_format(self, tmp_path):
        record = FIGURES["time"].compute(case("mixed"))
        for ending, start in ((".png", b"\x89PNG"), (".pdf", b"%PDF"), (".svg", b"<?xml")):
            save(record, tmp_path / f"a{ending}")
            assert (tmp_path / f"a{ending}").read_bytes().startswith(start)

    def test_other_formats_are_refused(self, tmp_path):
        record = FIGURES["time"].compute(case("mixed"))
        with pytest.raises(ValueError, match=r"must end with \.png, \.svg, \.pdf, got 'a\.gif'"):
            save(record, tmp_path / "a.gif")
        with pytest.raises(ValueError, match="positive number of inches, got 0"):
            save(record, tmp_path / "a.png", width=0)

    def test_the_table_is_no_image(self, tmp_path):
        with pytest.raises(CannotDraw, match="no image"):
            save(FIGURES["trials"].compute(case("mixed")), tmp_path / "a.png")

    def test_something_else_than_a_record_is_refused(self, tmp_path):
        with pytest.raises(TypeError, match="expected the record of a figure"):
            save(case("mixed"), tmp_path / "a.png")

    def test_the_same_record_gives_the_same_svg(self, tmp_path):
        record = FIGURES["curves"].compute(case("one fidelity"))
        save(record, tmp_path / "a.svg")
        save(record, tmp_path / "b.svg")
        assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


class TestLayers:
    def test_each_layer_is_where_it_should_be(self):
        x, y = np.array([1.0, 10.0]), np.array([2.0, 3.0])
        layers = (
            Line(x, y, "answer"),
            Band(x, y - 1.0, y, "second"),
            Points(x, y, ("bad", "ink"), "ring"),
            Bars(y, np.zeros(2), x, "third"),
            Contours(x, y, np.array([[0.0, 1.0], [1.0, 2.0]]), "muted", (0.5, 1.5, 0.5)),
            Label(1.0, 2.0, "cost $1 <b>", bold=True),
            StraightLine(x=4.0),
            StraightLine(y=2.5),
        )
        panel = Panel(
            FigureAxis("x $", log=True, range=(1.0, 10.0)), FigureAxis("y", range=(0.0, 5.0)), layers, "title"
        )
        figure = draw_with_matplotlib(Drawing((panel,)))
        (axes,) = figure.axes
        assert axes.get_xscale() == "log"
        assert axes.get_xlim() == pytest.approx((1.0, 10.0))
        assert axes.lines[0].get_xdata() == pytest.approx(x)
        assert {text.get_text() for text in axes.texts} == {r"cost \$1 <b>", "title"}
        assert axes.get_xlabel() == r"x \$"
        assert [bar.get_width() for bar in axes.patches] == pytest.approx(x)

    def test_a_star_is_as_large_as_in_a_browser(self):
        place = np.array([1.0]), np.array([1.0])
        layers = (Points(*place, "answer", "circle", 13), Points(*place, "answer", "star", 13))
        (axes,) = draw_with_matplotlib(Drawing((Panel(FigureAxis("x"), FigureAxis("y"), layers),))).axes
        circle, star = (float(marks.get_sizes()[0]) for marks in axes.collections)
        assert star > 2.0 * circle

    def test_names_of_choices_are_turned_as_in_a_browser(self):
        ticks = tuple(((i + 0.5) / 40, f"choice {i}") for i in range(40))
        names = FigureAxis("x", range=(0.0, 1.0), ticks=ticks, names=True)
        (axes,) = draw_with_matplotlib(Drawing((Panel(names, FigureAxis("y"), ()),))).axes
        assert [label.get_text() for label in axes.get_xticklabels()] == [text for _, text in ticks]
        assert {label.get_rotation() for label in axes.get_xticklabels()} == {90.0}

    def test_a_label_for_phones_only_is_not_drawn(self):
        panel = Panel(FigureAxis("x"), FigureAxis("y"), (Label(1.0, 1.0, "", narrow_text="a"),))
        (axes,) = draw_with_matplotlib(Drawing((panel,))).axes
        assert not axes.texts
