"""What figures over a fidelity draw, from back to front, and what they say about other fidelities."""

from dataclasses import replace

import numpy as np
import pytest

from fabolas.plots import FIGURES
from fabolas.plots.curves import _better_rivals
from fabolas.plots.drawing import Band, Label, Layer, Line, Points
from fabolas.plots.durations import duration
from fabolas.plots.figures import drawing_of
from fabolas.plots.over_sizes import outside_note
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


def test_a_rival_with_a_better_prediction_than_a_measured_answer_is_explained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    study, incumbent = case("one fidelity"), case("one fidelity").incumbent()
    assert incumbent is not None
    record = FIGURES["curves"].compute(study)
    assert _better_rivals(study, record.curves) == ""
    monkeypatch.setattr("fabolas.plots.curves.incumbent_of", lambda study: replace(incumbent, verified=True))
    rival, answer = record.curves[1], record.curves[0]
    swapped = (replace(rival, name="answer"), replace(answer, name="trial 7"), *record.curves[2:])
    assert _better_rivals(study, swapped).startswith(
        "Trial 7 has a lower prediction; the answer is chosen by"
    )


def test_triangles_at_the_edge_are_explained_if_there_are_any() -> None:
    record = FIGURES["curves"].compute(case("one fidelity"))
    shown = drawing_of(record)
    triangles = [p for p in shown.panels[0].layers if isinstance(p, Points) and p.symbol in ("up", "down")]
    assert bool(triangles) == ("Triangles" in shown.note)
    limits = shown.panels[0].y.range
    assert limits is not None
    inside = np.clip(record.cloud.values, 1.1 * limits[0], 0.9 * limits[1])
    cloud = replace(record.cloud, values=inside, curve=np.full_like(record.cloud.curve, -1))
    assert outside_note(cloud, shown.panels[0].y) == ""
    inside[0] = 2 * limits[1]
    assert outside_note(cloud, shown.panels[0].y) == "Triangles at the edge are trials outside the picture."
