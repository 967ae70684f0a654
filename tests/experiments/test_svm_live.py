"""Loaders of the SVM data sets on stand-ins, and the live SVM."""

import numpy as np
import pytest

from experiments.svm_grid import sources
from experiments.svm_live.problem import Setting


@pytest.fixture
def folder(tmp_path):
    """A stand-in for vehicle: two Gaussian classes, called -1 and 1 as on OpenML."""
    rng = np.random.default_rng(0)
    y = np.repeat([-1, 1], 150)
    x = rng.normal(size=(300, 5)) + 2.0 * y[:, None]
    np.savez(tmp_path / "vehicle.npz", x=x, y=y)
    return tmp_path


def test_vehicle_is_read_from_a_local_copy_and_scaled(folder):
    split = sources.load("vehicle", folder, rows=150, valid=50, test=100)
    assert set(split.y_train) == {0, 1}
    assert (split.x_train.shape, split.x_valid.shape, split.x_test.shape) == ((150, 5), (50, 5), (100, 5))
    assert np.mean(np.sum(split.x_train**2, axis=1)) == pytest.approx(1.0)
    everything = np.vstack([split.x_train, split.x_valid, split.x_test])
    assert len(np.unique(everything, axis=0)) == 300, "the parts are disjoint"


def test_without_a_copy_and_without_a_connection_the_error_says_what_to_do(tmp_path):
    def fails():
        raise OSError("no route")

    with pytest.raises(
        FileNotFoundError, match=r"expected mnist.npz in the folder .*got neither \(no route\)"
    ):
        sources.fetched(fails, "mnist.npz", tmp_path)


def test_the_live_svm_trains_on_the_rows_that_it_is_given(folder):
    setting = Setting("vehicle", 150, 50, 100, folder)
    svm = setting.load()
    assert svm.ranges == {"rows": (20, 150)}
    good = {"C": 1.0, "gamma": 1.0}
    assert svm.train(good, 0, None, rows=150) < 0.05
    assert svm.test(good) < 0.05
    assert svm.train({"C": 1.0, "gamma": 2e4}, 0, None, rows=150) > 0.2
    assert svm.train(good, 3, None, rows=20) == svm.train(good, 3, None, rows=20)


def test_the_key_of_a_setting_does_not_depend_on_where_the_data_are(folder):
    assert Setting("vehicle", directory=folder).describe() == Setting("vehicle").describe()
    assert Setting("vehicle", rows=99).describe() != Setting("vehicle").describe()
