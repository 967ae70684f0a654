"""The objectives of the pages on curves of networks and boosting: each is run, from scratch and from a checkpoint."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

import fabolas
from fabolas.execution import CurveJob, Ended, Job
from fabolas.execution.evaluate import evaluate

PAGES = [
    Path(__file__).parents[1] / "docs" / "howto" / f"curves-{kind}.md" for kind in ("networks", "boosting")
]
# Heading -> the library, the name of its objective, the fidelity.
ADAPTERS = {
    "PyTorch": ("torch", "pytorch", "epochs"),
    "Lightning": ("lightning", "with_lightning", "epochs"),
    "Keras": ("keras", "with_keras", "epochs"),
    "XGBoost": ("xgboost", "with_xgboost", "rounds"),
    "LightGBM": ("lightgbm", "with_lightgbm", "rounds"),
}


def block(heading: str) -> str:
    """The code below a heading of the pages."""
    text = "".join(page.read_text("utf-8") for page in PAGES)
    found = re.search(rf"^## {heading}\n.*?```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found is not None, heading
    return found[1]


def trained(objective: Any, name: str, directory: Path, value: int, resume_from: int | None) -> Ended:
    fidelity = fabolas.Fidelity(1, 27, reports=True, resume=True)
    curve = CurveJob(name, fidelity, str(directory / "checkpoints" / "0"), resume_from)
    return evaluate(
        objective, None, Job(0, {"lr": 0.1}, {name: value}, directory=str(directory), curve=curve)
    )


@pytest.mark.slow
@pytest.mark.parametrize("heading", ADAPTERS)
def test_an_adapter_reports_and_continues(heading: str, tmp_path: Path) -> None:
    """In a process of its own: several of these libraries do not like each other's threads."""
    library = ADAPTERS[heading][0]
    for needed in {library, *(["torch"] if library == "keras" else [])}:
        if find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed")
    environment = {**os.environ, "KERAS_BACKEND": "torch", "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    code = f"from tests.test_adapters import check; check({heading!r}, {str(tmp_path)!r})"
    child = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert child.returncode == 0, child.stderr[-3000:]


def check(heading: str, directory: str) -> None:
    """Train to 2 epochs, and continue to 5."""
    _, objective, name = ADAPTERS[heading]
    X, y = load_digits(return_X_y=True)
    X = X.astype(np.float32) / 16.0
    namespace = {"X_train": X[:600], "y_train": y[:600], "X_test": X[600:900], "y_test": y[600:900]}
    exec(block(heading), namespace)
    first = trained(namespace[objective], name, Path(directory), 2, None)
    assert first.status == "complete", first.error
    assert [reported.value for reported in first.reports] == [1, 2]
    then = trained(namespace[objective], name, Path(directory), 5, 2)
    assert (then.status, then.notice) == ("complete", ""), then.error or then.notice
    assert [reported.value for reported in then.reports] == [3, 4, 5]
    assert then.loss == pytest.approx(then.reports[-1].loss)
    assert then.loss <= first.loss + 0.05  # type: ignore[operator]
