"""How the last answer is drawn in the figure of the answer over time."""

import numpy as np
import pytest

from fabolas.plots.drawing import Band, Drawing, Line
from fabolas.plots.figures import drawing_of
from fabolas.plots.history import HistoryRecord


def drawn(times: list[float], end: float, *, log_time: bool = False) -> Drawing:
    n, texts = len(times), tuple(("Answer",) for _ in times)
    loss = np.linspace(0.5, 0.3, n)
    answers = {"loss": loss, "low": loss - 0.1, "high": loss + 0.1, "verified": np.ones(n, dtype=bool)}
    measured = {"measured_time": np.array(times), "measured": loss, "measured_texts": texts}
    words = {"unit": "seconds", "what": "loss", "where": "", "note": ""}
    record = HistoryRecord(
        time=np.array(times), texts=texts, end=end, log_time=log_time, **answers, **measured, **words
    )
    return drawing_of(record)


@pytest.mark.parametrize("log_time", [False, True])
def test_the_band_of_an_answer_at_the_end_can_be_seen(log_time):
    panel = drawn([1.0, 50.0, 100.0], 100.0, log_time=log_time).panels[0]
    (band,) = [layer for layer in panel.layers if isinstance(layer, Band)]
    assert band.x[-2] == 100.0
    assert 101.5 < band.x[-1] <= panel.x.range[1]
    assert (band.low[-1], band.high[-1]) == pytest.approx((0.2, 0.4))


def test_no_line_looks_like_an_error_bar():
    for end in (100.0, 200.0):
        for layer in drawn([1.0, 50.0, 100.0], end).panels[0].layers:
            if isinstance(layer, Line):
                y = layer.y[np.isfinite(layer.y)]
                assert len(layer.x) > 2
                assert not len(y) or y[-1] == pytest.approx(0.3)


def test_an_answer_before_the_end_holds_until_the_end():
    panel = drawn([1.0, 50.0], 100.0).panels[0]
    (band,) = [layer for layer in panel.layers if isinstance(layer, Band)]
    assert band.x[-1] == 100.0
