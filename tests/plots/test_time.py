"""The axis of "where the time went"."""

import numpy as np

from fabolas.plots.figures import drawing_of
from fabolas.plots.time import PURPOSES, TimeRecord


def test_the_last_tick_is_within_the_axis():
    for longest in (1.0, 37.5, 150.0, 300.0, 5000.0):
        seconds = np.zeros((2, len(PURPOSES)))
        seconds[:, 1] = longest, 1.0
        record = TimeRecord("size", ("10,000 (target)", "overhead"), seconds, np.ones_like(seconds, int), "")
        axis = drawing_of(record).panels[0].x
        assert axis.range[1] >= 1.2 * longest
        assert all(value < 0.995 * axis.range[1] for value, _ in axis.ticks)
