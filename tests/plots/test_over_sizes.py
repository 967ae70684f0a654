"""What figures over a fidelity draw, from back to front, and what they say about other fidelities."""

import pytest

from fabolas.plots import FIGURES
from fabolas.plots.drawing import Band, Label, Layer, Line, Points
from fabolas.plots.durations import duration
from fabolas.plots.figures import drawing_of
from tests.plots.cases import case


def layers_of(figure: str, study: str, **options: str) -> tuple[Layer, ...]:
    (panel,) = drawing_of(FIGURES[figure].compute(case(study), **options)).panels
    return panel.layers


@pytest.mark.parametrize("figure", ["curves", "cost"])
def test_all_bands_are_behind_all_lines(figure: str) -> None:
    layers = layers_of(figure, "one fidelity")
    bands = [i for i, layer in enumerate(layers) if isinstance(layer, Band)]
    lines = [i for i, layer in enumerate(layers) if isinstance(layer, Line) and layer.hover]
    assert max(bands) < min(lines)
    front = layers[lines[-1]]
    assert isinstance(front, Line)
    assert front.colour == "answer"


@pytest.mark.parametrize("figure", ["curves", "cost"])
def test_trials_below_the_target_of_another_fidelity_are_hollow_and_explained(figure: str) -> None:
    record = FIGURES[figure].compute(case("two fidelities"), fidelity="epochs")
    assert "Hollow points are trials with size below the target." in record.note
    inside = [
        layer
        for layer in layers_of(figure, "two fidelities", fidelity="epochs")
        if isinstance(layer, Points) and layer.symbol in ("ring", "circle")
    ]
    rings = sum(len(layer.x) for layer in inside if layer.symbol == "ring")
    circles = sum(len(layer.x) for layer in inside if layer.symbol == "circle")
    assert 0 < rings <= (~record.cloud.others_at_target).sum()
    assert 0 < circles <= record.cloud.others_at_target.sum()
    assert all(layer.alpha >= 0.7 for layer in inside)


def test_with_one_fidelity_there_is_nothing_to_explain() -> None:
    assert FIGURES["curves"].compute(case("one fidelity")).note == ""


def test_the_label_of_the_cost_says_that_it_is_predicted() -> None:
    record = FIGURES["cost"].compute(case("one fidelity"))
    (label,) = (layer for layer in layers_of("cost", "one fidelity") if isinstance(layer, Label))
    assert label.text == f"predicted {duration(float(record.curves[0].interval.centre[-1]))}"
