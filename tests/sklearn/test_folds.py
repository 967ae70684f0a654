"""The training folds of a search: sizes, nesting, stratification."""

import math
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import KFold, StratifiedKFold, TimeSeriesSplit

from fabolas.sklearn.folds import Folds, Subsampled, labels_of


def folds_of(splitter: Any, n: int, labels: np.ndarray | None = None) -> Folds:
    return Folds(tuple(splitter.split(np.zeros((n, 1)), labels)), labels)


def rows_at(folds: Folds, size: int, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    return list(Subsampled(folds, folds.orders(seed), size).split(None))


class TestFolds:
    labels = np.random.default_rng(0).choice(4, size=4000, p=[0.6, 0.3, 0.09, 0.01])

    def test_at_full_size_the_folds_are_those_of_the_splitter(self) -> None:
        splitter = StratifiedKFold(3)
        folds = folds_of(splitter, 4000, self.labels)
        for ours, theirs in zip(
            rows_at(folds, folds.max_size), splitter.split(np.zeros((4000, 1)), self.labels), strict=True
        ):
            assert np.array_equal(ours[0], theirs[0])
            assert np.array_equal(ours[1], theirs[1])

    @given(st.integers(30, 2666), st.integers(30, 2666), st.integers(0, 5))
    def test_training_folds_are_nested_and_test_folds_stay(self, a: int, b: int, seed: int) -> None:
        folds = folds_of(StratifiedKFold(3), 4000, self.labels)
        small, large = rows_at(folds, min(a, b), seed), rows_at(folds, max(a, b), seed)
        for (few, test), (more, same), (_, whole) in zip(small, large, folds.splits, strict=True):
            assert set(few) <= set(more)
            assert abs(len(few) - min(a, b)) <= 1
            assert np.array_equal(test, same)
            assert np.array_equal(test, whole)

    def test_every_class_is_in_every_training_fold_in_about_its_share(self) -> None:
        folds = folds_of(StratifiedKFold(3), 4000, self.labels)
        whole = np.bincount(self.labels) / 4000
        for size in (folds.min_size(), 300, 1000):
            for train, _ in rows_at(folds, size):
                share = np.bincount(self.labels[train], minlength=4) / len(train)
                assert (share > 0).all()
                assert np.abs(share - whole).max() < 4 / size

    def test_another_seed_gives_other_rows(self) -> None:
        folds = folds_of(KFold(3), 900)
        assert not np.array_equal(rows_at(folds, 100, 0)[0][0], rows_at(folds, 100, 1)[0][0])

    def test_folds_of_different_sizes_shrink_in_proportion(self) -> None:
        folds = folds_of(TimeSeriesSplit(4), 5000)
        assert [len(train) for train, _ in rows_at(folds, folds.max_size // 2)] == [500, 1000, 1500, 2000]

    def test_the_smallest_size_follows_its_rule(self) -> None:
        assert folds_of(KFold(2), 1000).min_size() == 100
        assert folds_of(KFold(2), 100_000).min_size() == math.ceil(50_000 / 64)
        assert folds_of(KFold(2), 798).min_size() == 399  # a quarter of the rows is not enough
        # 1 % of the rows are of the rarest class: five of them are in 500 rows, but a sixteenth is 125.
        labels = np.repeat([0, 1], [3960, 40])
        assert folds_of(StratifiedKFold(2), 4000, labels).min_size() == 125
        many = np.tile(np.arange(200), 10)
        assert folds_of(StratifiedKFold(2), 2000, many).min_size() == 200

    def test_targets_that_are_no_classes_are_not_stratified(self) -> None:
        assert labels_of(None) is None
        assert labels_of(np.zeros((2, 2, 2))) is None
        assert np.array_equal(labels_of(["b", "a", "b"]), [1, 0, 1])
        assert np.array_equal(labels_of(np.array([[3], [1]])), [1, 0])

    def test_a_row_of_several_labels_counts_for_its_rarest(self) -> None:
        # The first column has 0 four times and 1 twice, the second 0 five times and 5 once.
        y = np.array([[0, 0], [0, 0], [0, 0], [1, 0], [1, 5], [0, 0]])
        labels = labels_of(y)
        assert labels is not None
        assert labels.tolist() == [0, 0, 0, 1, 2, 0]
        assert np.array_equal(labels_of(np.array([["a", "x"], ["b", "x"], ["b", "x"]])), [0, 1, 1])


def test_where_folds_differ_in_size_none_has_fewer_rows_than_the_smallest() -> None:
    folds = folds_of(TimeSeriesSplit(8), 1500)
    few = [len(train) for train, _ in Subsampled(folds, folds.orders(0), 100, 100).split(None)]
    assert min(few) == 100
    all_of_it = [
        len(train) for train, _ in Subsampled(folds, folds.orders(0), folds.max_size, 1000).split(None)
    ]
    assert all_of_it == [len(train) for train, _ in folds.splits]


def test_many_small_classes_are_classes_all_the_same() -> None:
    labels = np.repeat(np.arange(150), 2)[np.random.default_rng(0).permutation(300)]
    folds = Folds(((np.arange(200), np.arange(200, 300)),), labels)
    present = len(np.unique(labels[:200]))
    ((train, _),) = Subsampled(folds, folds.orders(0), present).split(None)
    assert len(np.unique(labels[train])) == present == len(train)
