"""Every form in which CIFAR-10 and SVHN are read, on stand-ins of a few images."""

import json
import pickle

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from experiments.networks import images


@pytest.fixture
def pixels():
    return np.random.default_rng(0).integers(256, size=(12, 32, 32, 3), dtype=np.uint8)


LABELS = np.arange(12) % 10


def check(found, pixels):
    """Ten training images and two test images, in order."""
    assert np.array_equal(found.x_train, pixels[:10])
    assert np.array_equal(found.x_test, pixels[10:])
    assert np.array_equal(np.concatenate([found.y_train, found.y_test]), LABELS)


def test_arrays_in_one_file(tmp_path, pixels):
    parts = {"x_train": pixels[:10], "y_train": LABELS[:10], "x_test": pixels[10:], "y_test": LABELS[10:]}
    np.savez(tmp_path / "svhn.npz", **parts)
    check(images.load("svhn", tmp_path), pixels)


def test_the_original_batches_of_cifar10(tmp_path, pixels):
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    for i, name in enumerate([*(f"data_batch_{k}" for k in range(1, 6)), "test_batch"]):
        rows = slice(2 * i, 2 * i + 2)
        content = {
            b"data": pixels[rows].transpose(0, 3, 1, 2).reshape(2, -1),
            b"labels": LABELS[rows].tolist(),
        }
        (folder / name).write_bytes(pickle.dumps(content))
    check(images.load("cifar10", tmp_path), pixels)


@pytest.mark.parametrize("unpacked", [".", "package"])
def test_the_png_files_of_the_npm_package(tmp_path, pixels, unpacked):
    folder = tmp_path / unpacked
    folder.mkdir(exist_ok=True)
    for i, name in enumerate([*(f"data_batch_{k}" for k in range(1, 6)), "test_batch"]):
        Image.fromarray(pixels[2 * i : 2 * i + 2].reshape(2, 1024, 3)).save(folder / f"{name}.png")
    (folder / "train_lables.json").write_text(json.dumps(LABELS[:10].tolist()))
    (folder / "test_lables.json").write_text(json.dumps(LABELS[10:].tolist()))
    check(images.load("cifar10", tmp_path), pixels)


def test_the_original_files_of_svhn_call_the_digit_zero_ten(tmp_path, pixels):
    for part, rows in (("train", slice(0, 10)), ("test", slice(10, 12))):
        labels = np.where(LABELS[rows] == 0, 10, LABELS[rows])[:, None]
        savemat(tmp_path / f"{part}_32x32.mat", {"X": pixels[rows].transpose(1, 2, 3, 0), "y": labels})
    check(images.load("svhn", tmp_path), pixels)


def test_parts_are_disjoint_and_too_many_images_are_refused(pixels):
    data = images.Images(pixels[:10], LABELS[:10], pixels[10:], LABELS[10:])
    split = images.split(data, rows=6, valid=4, test=2)
    both = np.concatenate([split.train[0], split.valid[0]]).reshape(10, -1)
    assert len(np.unique(both, axis=0)) == 10
    with pytest.raises(ValueError, match=r"at most 10 training and validation images.*got 8 \+ 4"):
        images.split(data, rows=8, valid=4, test=2)


def test_wrong_shapes_and_unknown_names_are_refused(pixels):
    with pytest.raises(ValueError, match=r"expected images \(n, 32, 32, 3\)"):
        images.Images(pixels[:, :16], LABELS, pixels, LABELS)
    with pytest.raises(ValueError, match="expected one of cifar10, svhn, got 'mnist'"):
        images.load("mnist", None)
