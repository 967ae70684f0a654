"""Make the compact MNIST sample that the demo tunes on.

    python -m experiments.demo_sample --source DIR

DIR holds `mnist.npz` with the arrays x_train, y_train, x_test, y_test. The sample has 20,000 training and
3,000 validation images out of the 60,000 training images and 3,000 of the 10,000 test images, each as 50
principal components of the 20,000, rounded to 8-bit numbers of one common step.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from experiments.svm_grid import sources

TRAIN, VALID, TEST = 20_000, 3_000, 3_000
TARGET = Path(__file__).parents[1] / "src/fabolas/demo/mnist.npz"


def main() -> None:
    """Read the images, write the sample."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--source", type=Path, required=True, help="folder with mnist.npz")
    parser.add_argument("--output", type=Path, default=TARGET)
    options = parser.parse_args()
    split = sources.load("mnist", options.source, TRAIN, VALID, TEST)
    parts = {"train": split.x_train, "valid": split.x_valid, "test": split.x_test}
    labels = {"train": split.y_train, "valid": split.y_valid, "test": split.y_test}
    step = max(np.abs(x).max() for x in parts.values()) / 127
    arrays = {f"y_{name}": y.astype(np.uint8) for name, y in labels.items()}
    for name, x in parts.items():
        # A component a row: numbers of like size next to each other compress better.
        arrays[f"x_{name}"] = np.ascontiguousarray(np.round(x / step).astype(np.int8).T)
    np.savez_compressed(options.output, allow_pickle=False, step=np.array(step), **arrays)
    print(f"wrote {options.output} ({options.output.stat().st_size / 1e3:.0f} kB)")


if __name__ == "__main__":
    main()
