"""Slices and contours mark what the forbidden clauses of the space exclude."""

import numpy as np

from fabolas.plots import FIGURES
from fabolas.plots.contours import ContoursRecord
from fabolas.plots.drawing import Band, Drawing, Line, Points
from fabolas.plots.figures import drawing_of
from fabolas.plots.slices import SlicesRecord
from tests.plots.cases import case


def is_forbidden(config: dict[str, object]) -> bool:
    """The clauses of `cases.forbidden`, written once more."""
    least, most = config["least"], config["most"]
    assert isinstance(least, float)
    assert isinstance(most, float)
    return least > most or (config["kind"] == "y" and config["level"] in (3, 4))


def crosses(drawing: Drawing) -> list[Points]:
    return [
        layer
        for panel in drawing.panels
        for layer in panel.layers
        if isinstance(layer, Points) and layer.symbol == "cross"
    ]


def answer_of(name: str) -> dict[str, object]:
    incumbent = case(name).incumbent()
    assert incumbent is not None
    return dict(incumbent.config)


def test_slices_have_gaps_and_crosses_where_the_answer_may_not_be_changed() -> None:
    study, answer = case("forbidden"), answer_of("forbidden")
    record = FIGURES["slices"].compute(study)
    assert isinstance(record, SlicesRecord)
    drawing = drawing_of(record)
    assert "Crosses: forbidden" in drawing.note
    n_forbidden = 0
    for each, panel in zip(record.slices, drawing.panels, strict=True):
        axis = study.space.axis(each.axis.name)
        values = [axis.value(float(x)) for x in each.axis.positions]
        expected = [is_forbidden({**answer, each.axis.name: value}) for value in values]
        assert (~each.allowed).tolist() == expected
        n_forbidden += sum(expected)
        marked = np.concatenate(
            [p.x for p in panel.layers if isinstance(p, Points) and p.symbol == "cross"] or [[]]
        )
        assert marked.tolist() == each.axis.positions[expected].tolist()
        if each.axis.ordered:
            (line,) = (layer for layer in panel.layers if isinstance(layer, Line))
            assert np.isnan(line.y).tolist() == expected
            bands = [layer.x for layer in panel.layers if isinstance(layer, Band)][
                :-1
            ]  # the last one is p_min
            assert np.concatenate(bands).tolist() == each.axis.positions[each.allowed].tolist()
    assert n_forbidden > 5


def test_contours_have_a_cross_at_each_forbidden_pair() -> None:
    study, answer = case("forbidden"), answer_of("forbidden")
    record = FIGURES["contours"].compute(study, names=("least", "most"))
    assert isinstance(record, ContoursRecord)
    (pair,) = record.pairs
    low, high = study.space.axis("least"), study.space.axis("most")
    expected = {
        (x, y)
        for x in pair.x.positions.tolist()
        for y in pair.y.positions.tolist()
        if is_forbidden({**answer, "least": low.value(x), "most": high.value(y)})
    }
    drawing = drawing_of(record)
    (marks,) = crosses(drawing)
    assert set(zip(marks.x.tolist(), marks.y.tolist(), strict=True)) == expected
    assert len(marks.x) == len(expected) > 100
    assert "Crosses: forbidden" in drawing.note


def test_a_space_without_clauses_has_no_crosses() -> None:
    for name in ("slices", "contours"):
        drawing = drawing_of(FIGURES[name].compute(case("one fidelity")))
        assert not crosses(drawing)
        assert "forbidden" not in drawing.note
