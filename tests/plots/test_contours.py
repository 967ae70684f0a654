"""The labels of lines of equal loss."""

from fabolas import Space
from fabolas.plots import FIGURES
from fabolas.plots.drawing import Contours, Label
from fabolas.plots.figures import drawing_of
from tests.helpers.views import view_of
from tests.plots.cases import SVM, bowl


def test_two_lines_of_large_and_similar_losses_have_different_labels() -> None:
    study = view_of(Space(SVM), 20, lambda config, fidelity: 1.2345e7 + 1e4 * bowl(config, fidelity))
    (panel,) = drawing_of(FIGURES["contours"].compute(study)).panels
    labels = [layer.text for layer in panel.layers if isinstance(layer, Label)]
    assert len(set(labels)) == len(labels) >= 3
    (lines,) = (layer for layer in panel.layers if isinstance(layer, Contours) and not layer.filled)
    step = lines.levels[2]
    for label in labels:
        mantissa, _, exponent = label.partition("×10")
        assert exponent == "⁷"
        value = float(mantissa) * 1e7
        assert abs((value - lines.levels[0]) / step - round((value - lines.levels[0]) / step)) < 0.15
