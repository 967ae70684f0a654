"""Rows of the SVM data sets, split and scaled so that the good (C, gamma) lie well inside the grid.

A local copy in the given folder is read first: `mnist.npz`, `covtype.npz` or `vehicle.npz`. Otherwise scikit-learn
fetches the data set, MNIST and vehicle from OpenML, and keeps it in its own cache.

All are scaled to a mean squared norm of one on the training rows: two rows are then about sqrt(2) apart, and
an RBF kernel is neither constant nor diagonal for gamma near one, whatever the number of columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    "vehicle": "columns standardised on the training rows, scaled to mean squared norm one",
}
VEHICLE_ID = 357  # vehicle_sensIT on OpenML: 98,528 rows, 100 columns, 2 classes
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


def load(data: str, source: Path | None, rows: int, valid: int, test: int) -> Split:
    """Three disjoint parts of `data`, always the same for the same numbers.

    Args:
        data: "mnist", "covtype" or "vehicle".
        source: folder that may hold `mnist.npz`, `covtype.npz` or `vehicle.npz`; None fetches the data set.
        rows: number of training rows.
        valid: number of validation rows.
        test: number of test rows.

    Raises:
        ValueError: the data set is unknown or has too few rows.
        FileNotFoundError: there is no local copy, and the data set cannot be fetched.
    """
    readers = {"mnist": _mnist, "covtype": _covtype, "vehicle": _vehicle}
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
    a, b, c = (_components if data == "mnist" else _standardise)(*parts)
    size = np.sqrt(np.mean(np.sum(a**2, axis=1)))
    return Split(a / size, y[:rows], b / size, y[rows:], c / size, y_held)


def local(source: Path | None, name: str) -> Path | None:
    """The local copy, if there is one."""
    path = None if source is None else source / name
    return path if path is not None and path.exists() else None


def fetched(fetch: Callable[[], Any], name: str, source: Path | None) -> Any:
    """What `fetch` returns.

    Raises:
        FileNotFoundError: it has no connection.
    """
    try:
        return fetch()
    except OSError as error:
        raise FileNotFoundError(
            f"expected {name} in the folder {source}, or a connection to fetch it; got neither ({error})."
            " Name the folder of a local copy"
        ) from error


def _mnist(source: Path | None) -> tuple[Floats, Labels, Floats | None, Labels | None]:
    if (path := local(source, "mnist.npz")) is not None:
        with np.load(path) as z:
            flat = [z[k].reshape(len(z[k]), -1).astype(np.float32) / 255.0 for k in ("x_train", "x_test")]
            return flat[0], z["y_train"].astype(np.int64), flat[1], z["y_test"].astype(np.int64)
    from sklearn.datasets import fetch_openml

    x, y = fetched(
        lambda: fetch_openml("mnist_784", version=1, as_frame=False, return_X_y=True), "mnist.npz", source
    )
    x, y = x.astype(np.float32) / 255.0, y.astype(np.int64)
    return x[:60_000], y[:60_000], x[60_000:], y[60_000:]


def _covtype(source: Path | None) -> tuple[Floats, Labels, Floats | None, Labels | None]:
    if (path := local(source, "covtype.npz")) is not None:
        with np.load(path) as z:
            one_hot = [np.eye(m, dtype=np.float32)[z[k]] for k, m in (("wilderness", 4), ("soil", 40))]
            x = np.hstack([z["numeric"].astype(np.float32), *one_hot])
            return x, z["y"].astype(np.int64), None, None
    from sklearn.datasets import fetch_covtype

    x, y = fetched(lambda: fetch_covtype(return_X_y=True), "covtype.npz", source)
    return x.astype(np.float32), y.astype(np.int64), None, None


def _vehicle(source: Path | None) -> tuple[Floats, Labels, Floats | None, Labels | None]:
    if (path := local(source, "vehicle.npz")) is not None:
        with np.load(path) as z:
            x, y = z["x"], z["y"]
    else:
        from sklearn.datasets import fetch_openml

        x, y = fetched(
            lambda: fetch_openml(data_id=VEHICLE_ID, as_frame=False, return_X_y=True), "vehicle.npz", source
        )
    x = x.toarray() if hasattr(x, "toarray") else x  # OpenML stores it sparse
    return x.astype(np.float32), np.unique(y, return_inverse=True)[1].astype(np.int64), None, None


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
