"""The rows and the axis of "where the time went"."""

import numpy as np
import pytest

from fabolas import Fidelity, Space
from fabolas.plots.figures import FIGURES, drawing_of
from fabolas.plots.time import PURPOSES, TimeRecord
from tests.helpers.views import view_of
from tests.plots.cases import SVM, bowl


def test_the_last_tick_is_within_the_axis():
    for longest in (1.0, 37.5, 150.0, 300.0, 5000.0):
        seconds = np.zeros((2, len(PURPOSES)))
        seconds[:, 1] = longest, 1.0
        record = TimeRecord("size", ("10,000 (target)", "overhead"), seconds, np.ones_like(seconds, int), "")
        axis = drawing_of(record).panels[0].x
        assert axis.range[1] >= 1.2 * longest
        assert all(value < 0.995 * axis.range[1] for value, _ in axis.ticks)


@pytest.mark.parametrize(
    ("fidelity", "rows"),
    [
        (Fidelity(1, 12), ["12 (target)", "8 to 11", "5 to 7", "3 to 4", "2", "1"]),
        (
            Fidelity(1, 61, log=False),
            ["61 (target)", "51 to 60", "41 to 50", "31 to 40", "21 to 30", "11 to 20"],
        ),
        (
            Fidelity(1.0, 7.0, log=False, integer=False),
            ["7 (target)", "6 to 7", "5 to 6", "4 to 5", "3 to 4"],
        ),
    ],
)
def test_classes_of_whole_numbers_share_no_end(fidelity, rows):
    study = view_of(Space(SVM, {"epochs": fidelity}), 100, bowl)
    record = FIGURES["time"].compute(study)
    assert list(record.rows[: len(rows)]) == rows
    values = np.array([trial.fidelity["epochs"] for trial in study.trials])
    for row, counts in zip(record.rows[1:-1], record.counts[1:-1], strict=True):
        first, last = float(row.split()[0]), float(row.split()[-1])
        inside = (values >= first) & ((values <= last) if fidelity.integer else (values < last))
        assert counts.sum() == inside.sum()
