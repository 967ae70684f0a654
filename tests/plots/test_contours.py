"""The labels of lines of equal loss."""

import numpy as np
import pytest

from fabolas import Space
from fabolas.plots import FIGURES
from fabolas.plots.contours import _levels
from fabolas.plots.drawing import Contours, Label
from fabolas.plots.figures import drawing_of
from fabolas.plots.with_matplotlib import _refined
from tests.helpers.views import view_of
from tests.plots.cases import SVM, bowl


def test_two_lines_of_large_and_similar_losses_have_different_labels() -> None:
    study = view_of(Space(SVM), 20, lambda config, fidelity: 1.2345e7 + 1e4 * bowl(config, fidelity))
    (panel,) = drawing_of(FIGURES["contours"].compute(study)).panels
    labels = [layer.text for layer in panel.layers if isinstance(layer, Label)]
    assert len(set(labels)) == len(labels) >= 3
    (lines,) = (layer for layer in panel.layers if isinstance(layer, Contours) and not layer.filled)
    assert lines.values is not None
    order = np.argsort(lines.values, axis=None)
    for label in labels:
        mantissa, _, exponent = label.partition("×10")
        assert exponent == "⁷"
        place = np.interp(float(mantissa) * 1e7, lines.values.ravel()[order], lines.z.ravel()[order])
        assert abs(place - round(place)) < 0.15


@pytest.mark.parametrize("spread", [0.3, 3.0, 30.0, 3e4])
def test_lines_of_very_different_losses_are_at_round_values(spread: float) -> None:
    def loss(config: dict[str, float], fidelity: dict[str, float]) -> float:
        return 0.0237 * (1.0 + spread * bowl(config, fidelity))

    record = FIGURES["contours"].compute(view_of(Space(SVM), 25, loss))
    (panel,) = drawing_of(record).panels
    (lines,) = (layer for layer in panel.layers if isinstance(layer, Contours) and not layer.filled)
    labels = [layer.text for layer in panel.layers if isinstance(layer, Label)]
    assert lines.values is not None
    assert lines.values is record.pairs[0].loss
    if spread >= 3.0:
        assert all(len(text.replace(",", "").strip("0.")) <= 2 for text in labels)
    for label in labels:
        level = float(label.replace(",", ""))
        order = np.argsort(lines.values, axis=None)
        place = np.interp(level, lines.values.ravel()[order], lines.z.ravel()[order])
        assert abs(place - round(place)) < 0.1
        assert (lines.z.ravel()[lines.values.ravel() < 0.99 * level] < round(place)).all()


def test_no_line_is_at_the_highest_loss_of_a_plateau() -> None:
    x = np.linspace(0.0, 1.0, 20)
    for low in (0.02, 0.5):
        losses = np.minimum(low + (1.0 - low) * 4.0 * x[:, None] * (x + 0.5), 1.0)
        assert (losses == 1.0).mean() > 0.2
        assert len(_levels(losses)) >= 2
        assert max(_levels(losses)) < 1.0


def test_saved_lines_have_no_new_islands() -> None:
    positions, wave = np.linspace(0.0, 1.0, 9), np.where(np.arange(9) < 4, 0.0, 5.0)
    z = np.tile(wave, (9, 1))
    x, y, dense = _refined(Contours(positions, positions, z, "muted", (0.0, 4.0, 1.0)))
    assert dense.shape == (len(y), len(x))
    assert len(x) == 36
    assert dense.min() >= 0.0
    assert dense.max() <= 5.0
    assert (np.diff(dense, axis=1) >= -1e-12).all()


def test_without_any_difference_there_is_no_line() -> None:
    study = view_of(Space(SVM), 12, lambda config, fidelity: 0.0)
    (panel,) = drawing_of(FIGURES["contours"].compute(study)).panels
    (lines,) = (layer for layer in panel.layers if isinstance(layer, Contours) and not layer.filled)
    assert not [layer for layer in panel.layers if isinstance(layer, Label)]
    assert (lines.z > lines.levels[1]).all()
