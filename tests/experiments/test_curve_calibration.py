"""Reports must not spoil the calibration of predictions at the target."""

import numpy as np
import pytest

from experiments.curve_calibration import errors


@pytest.mark.slow
def test_reports_make_predictions_better_and_not_less_calibrated() -> None:
    rms_error, rms_z = {}, {}
    for model in ("ends", "reports, common noise"):
        found = [errors(model, seed) for seed in range(3)]
        error, deviation = (np.concatenate(column) for column in zip(*found, strict=True))
        rms_error[model] = float(np.sqrt(np.mean(error**2)))
        rms_z[model] = float(np.sqrt(np.mean((error / deviation) ** 2)))
    assert rms_error["reports, common noise"] < rms_error["ends"]
    assert rms_z["reports, common noise"] < max(1.3, rms_z["ends"])
