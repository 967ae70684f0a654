"""Rows of the two data sets, split and scaled so that the good (C, gamma) lie well inside the grid.

Both are scaled to a mean squared norm of one on the training rows: two rows are then about sqrt(2) apart, and
an RBF kernel is neither constant nor diagonal for gamma near one, whatever the number of columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Floats = npt.NDArray[np.floating]
Labels = npt.NDArray[np.int64]

COMPONENTS = 50
PREPROCESSING = {
    "mnist": f"first {COMPONENTS} principal components of the training rows, scaled to mean squared norm one",
    "covtype": "numeric and one-hot columns standardised on the training rows (columns constant there are"
    " dropped), scaled to mean squared norm one",
}
SPLIT_SEED = 20170411


@dataclass(frozen=True)
class Split:
    """Training, validation and test rows, scaled by what the training rows say."""

    x_train: Array  # (N, p)
    y_train: Labels  # (N,)
    x_valid: Array  # (V, p)
    y_valid: Labels  # (V,)
    x_test: Array  # (T, p)
    y_test: Labels  # (T,)


def load(data: str, source: Path, rows: int, valid: int, test: int) -> Split:
    """Three disjoint parts of `data`, always the same for the same numbers.

    Args:
        data: "mnist" or "covtype".
        source: folder that holds `mnist.npz` or `covtype.npz`.
        rows: number of training rows.
        valid: number of validation rows.
        test: number of test rows.

    Raises:
        ValueError: the data set is unknown or has too few rows.
    """
    readers = {"mnist": _mnist, "covtype": _covtype}
    if data not in readers:
        raise ValueError(f"expected one of {sorted(readers)}, got {data!r}")
    x, y, x_held, y_held = readers[data](source)
    rng = np.random.default_rng(SPLIT_SEED)
    order = rng.permutation(len(y))
    pool = order[: rows + valid]
    if x_held is None or y_held is None:
        held = order[rows + valid : rows + valid + test]
        x_held, y_held = x[held], y[held]
    else:
        held = rng.permutation(len(y_held))[:test]
        x_held, y_held = x_held[held], y_held[held]
    if len(pool) < rows + valid or len(y_held) < test:
        raise ValueError(
            f"expected at most the {len(y)} rows of {data}, got {rows} training, {valid} validation and"
            f" {test} test rows; ask for fewer"
        )
    x, y = x[pool], y[pool]
    parts = (x[:rows].astype(float), x[rows:].astype(float), x_held.astype(float))
    a, b, c = {"mnist": _components, "covtype": _standardise}[data](*parts)
    size = np.sqrt(np.mean(np.sum(a**2, axis=1)))
    return Split(a / size, y[:rows], b / size, y[rows:], c / size, y_held)


def _mnist(source: Path) -> tuple[Floats, Labels, Floats | None, Labels | None]:
    with np.load(source / "mnist.npz") as z:
        flat = [z[k].reshape(len(z[k]), -1).astype(np.float32) / 255.0 for k in ("x_train", "x_test")]
        return flat[0], z["y_train"].astype(np.int64), flat[1], z["y_test"].astype(np.int64)


def _covtype(source: Path) -> tuple[Floats, Labels, Floats | None, Labels | None]:
    with np.load(source / "covtype.npz") as z:
        one_hot = [np.eye(m, dtype=np.float32)[z[k]] for k, m in (("wilderness", 4), ("soil", 40))]
        x = np.hstack([z["numeric"].astype(np.float32), *one_hot])
        return x, z["y"].astype(np.int64), None, None


def _components(a: Array, b: Array, c: Array) -> tuple[Array, Array, Array]:
    """Scores on the leading principal components of the training rows `a`, not whitened."""
    centre = a.mean(axis=0)
    _, vectors = np.linalg.eigh(np.cov(a - centre, rowvar=False))
    basis = vectors[:, ::-1][:, :COMPONENTS]
    return (a - centre) @ basis, (b - centre) @ basis, (c - centre) @ basis


def _standardise(a: Array, b: Array, c: Array) -> tuple[Array, Array, Array]:
    """Columns of mean zero and variance one on the training rows `a`; columns constant there are dropped."""
    centre, spread = a.mean(axis=0), a.std(axis=0)
    keep = spread > 0
    scaled = [(part[:, keep] - centre[keep]) / spread[keep] for part in (a, b, c)]
    return scaled[0], scaled[1], scaled[2]
