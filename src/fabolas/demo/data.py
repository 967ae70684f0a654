"""The sample of MNIST that the package contains."""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from fabolas._types import Array, IntArray


@dataclass(frozen=True)
class Digits:
    """Rows for training, validation and test, with 50 principal components each."""

    x_train: Array  # (n, 50)
    y_train: IntArray  # (n,)
    x_valid: Array  # (v, 50)
    y_valid: IntArray  # (v,)
    x_test: Array  # (t, 50)
    y_test: IntArray  # (t,)

    def __post_init__(self) -> None:
        for part in ("train", "valid", "test"):
            x, y = getattr(self, f"x_{part}"), getattr(self, f"y_{part}")
            if x.ndim != 2 or y.shape != x.shape[:1]:
                raise ValueError(
                    f"expected x_{part} (n, p) and y_{part} (n,), got {x.shape} and {y.shape}; "
                    "pass one label for each row"
                )


@cache
def digits() -> Digits:
    """Return the sample. Its mean squared norm is one, so that good values of gamma are near one."""
    with (files("fabolas.demo") / "mnist.npz").open("rb") as file, np.load(file) as z:
        step = float(z["step"])
        parts = {f"x_{part}": z[f"x_{part}"].T * step for part in ("train", "valid", "test")}
        labels = {f"y_{part}": z[f"y_{part}"].astype(np.int64) for part in ("train", "valid", "test")}
    return Digits(**parts, **labels)
