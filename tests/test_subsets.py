import gc
import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fabolas
from fabolas.subsets import Subsets, _cache, subset


@st.composite
def targets(draw, max_classes=6):
    """Class labels with every class 0 ... K-1 present, at least two rows a class on average."""
    counts = draw(st.lists(st.integers(1, 60), min_size=1, max_size=max_classes))
    labels = np.repeat(np.arange(len(counts)), counts)
    if len(counts) > len(labels) / 2:
        labels = np.concatenate([labels, labels, labels])
    return np.random.default_rng(draw(st.integers(0, 99))).permutation(labels)


@st.composite
def grouped_targets(draw, max_group=12):
    y = draw(targets())
    groups = np.array(draw(st.lists(st.integers(0, max_group), min_size=len(y), max_size=len(y))))
    return y, groups


@given(y=targets(), seed=st.integers(0, 5), stratify=st.booleans())
def test_a_larger_subset_contains_every_smaller_one_and_has_the_size_asked_for(y, seed, stratify):
    order = Subsets(y, seed=seed, stratify=stratify)
    previous: set[int] = set()
    for size in range(order.min_size, len(y) + 1):
        rows = order[size]
        assert len(rows) == len(set(rows.tolist())) == size
        assert previous <= set(rows.tolist())
        previous = set(rows.tolist())
    assert previous == set(range(len(y)))


@given(y=targets(), seed=st.integers(0, 5))
def test_every_class_is_present_if_there_are_at_least_as_many_rows_as_classes(y, seed):
    order = Subsets(y, seed=seed)
    n_classes = len(np.unique(y))
    assert order.min_size == n_classes
    for size in (n_classes, (n_classes + len(y)) // 2):
        assert len(np.unique(y[order[size]])) == n_classes


@given(y=targets(), seed=st.integers(0, 5), share=st.floats(0, 1))
def test_class_counts_are_proportional_except_for_the_rows_of_rare_classes(y, seed, share):
    counts = np.bincount(y)
    size = max(len(counts), round(share * len(y)))
    got = np.bincount(y[Subsets(y, seed=seed)[size]], minlength=len(counts))
    expected = size * counts / len(y)
    assert np.all(np.abs(got - expected) <= 2 + 1.5 * len(counts) * counts / len(y))


def test_class_counts_of_balanced_classes_differ_by_at_most_one():
    y = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 100))
    order = Subsets(y)
    for size in (10, 15, 64, 500, 999):
        assert np.ptp(np.bincount(y[order[size]], minlength=10)) <= 1


@pytest.mark.slow
@given(case=grouped_targets(), seed=st.integers(0, 5), stratify=st.booleans())
def test_groups_are_complete_nested_and_contain_every_class(case, seed, stratify):
    y, groups = case
    order = Subsets(y, seed=seed, stratify=stratify, groups=groups)
    largest = np.bincount(groups).max()
    previous: set[int] = set()
    for size in range(order.min_size, len(y) + 1):
        rows = order[size]
        inside = set(rows.tolist())
        assert inside == set(np.flatnonzero(np.isin(groups, groups[rows])).tolist())
        assert previous <= inside
        assert size - largest < len(rows) <= size
        if stratify:
            assert set(y[rows]) == set(y)
        previous = inside
    assert len(previous) == len(y)


def test_groups_with_one_class_each_keep_the_class_frequencies():
    groups = np.repeat(np.arange(600), 5)
    y = (groups % 6 == 0).astype(int)  # a sixth of the groups
    for size in (100, 500, 1500):
        assert y[subset(y, size, groups=groups)].mean() == pytest.approx(1 / 6, abs=0.04)


@given(y=targets(), seed=st.integers(0, 1000))
def test_the_same_seed_gives_the_same_rows_from_an_equal_copy(y, seed):
    size = max(len(np.unique(y)), len(y) // 2)
    np.testing.assert_array_equal(subset(y, size, seed=seed), subset(y.copy(), size, seed=seed))


def test_another_seed_gives_other_rows():
    y = np.repeat([0, 1], 500)
    assert set(subset(y, 100, seed=0).tolist()) != set(subset(y, 100, seed=1).tolist())


def test_every_row_is_equally_likely_within_a_class():
    y = np.repeat([0, 1], [40, 10])
    hits = np.zeros(50)
    for seed in range(2000):
        hits[Subsets(y, seed=seed)[10]] += 1
    # Binomial(2000, 1/5): standard deviation 18, so 5 of them.
    assert np.all(np.abs(hits - 400) < 90)


def test_a_number_of_rows_gives_a_random_subset():
    rows = subset(1000, 100, seed=3)
    assert len(set(rows.tolist())) == 100
    assert rows.min() >= 0
    assert rows.max() < 1000
    assert not np.array_equal(rows, np.sort(rows))
    np.testing.assert_array_equal(rows, subset(np.int64(1000), 100, seed=3))


@pytest.mark.parametrize(
    "y",
    [
        np.random.default_rng(0).normal(size=200),
        np.random.default_rng(0).integers(0, 10**6, size=200),
        np.arange(21),
        np.arange(4) + 0.5,
        np.round(np.random.default_rng(0).normal(size=2000), 2),
    ],
)
def test_a_regression_target_is_not_stratified(y):
    assert Subsets(y).min_size == 1


@pytest.mark.parametrize(
    "y",
    [
        ["a", "b", "c"] * 10,
        [0.0, 1.0, 2.0] * 10,
        [0.5, 1.5, 2.5] * 10,
        [False, True] * 10 + [True],
        [1, 2, 3, 3],
        [1.0, 2.0, 3.0, 3.0],
        list(range(20)),
        list(range(100)) * 2,
    ],
)
def test_labels_of_any_kind_are_classes(y):
    assert Subsets(y).min_size == len(set(y))


def test_few_rows_with_whole_numbers_never_lose_a_class_silently():
    with pytest.raises(ValueError, match="at least 3, so that each of the 3 classes is present; got 2"):
        subset(np.array([1, 2, 3, 3]), 2)


@pytest.mark.parametrize("stratify", [True, False])
def test_labels_that_cannot_be_compared_are_an_error(stratify):
    labels = np.array(["a", None, "b", "a"], dtype=object)
    message = r"can be compared with each other, .* got values of type NoneType, str; give a label"
    if stratify:
        with pytest.raises(TypeError, match=f"expected targets that {message}"):
            subset(labels, 3)
    with pytest.raises(TypeError, match=f"expected groups that {message}"):
        subset(4, 3, stratify=stratify, groups=labels)


def test_it_is_public_and_takes_lists_and_whole_floats():
    np.testing.assert_array_equal(fabolas.subset([0, 1] * 20, 10.0), subset(np.array([0, 1] * 20), 10))


def test_changing_the_returned_rows_does_not_change_the_next_subset():
    y = np.repeat([0, 1], 50)
    first = subset(y, 20)
    expected = first.copy()
    first[:] = 0
    np.testing.assert_array_equal(subset(y, 20), expected)


def test_a_second_subset_of_a_large_array_is_a_slice():
    y = np.random.default_rng(0).integers(0, 10, size=200_000)
    subset(y, 100)
    start = time.thread_time()  # on a busy machine too
    for _ in range(100):
        subset(y, 100)
    assert time.thread_time() - start < 0.2


@pytest.mark.slow
def test_the_order_of_a_deleted_array_is_removed_from_the_cache():
    y = np.repeat([0, 1], 50)
    subset(y, 20, seed=77)
    assert any(77 in key for key in _cache._entries)
    del y
    gc.collect()
    assert not any(77 in key for key in _cache._entries)


def test_an_array_at_the_address_of_a_deleted_one_gets_its_own_order():
    for k in range(50):
        y = np.repeat([0, 1], [10 + k, 10])
        assert subset(y, 20 + k).max() < 20 + k
        del y


def test_a_size_too_small_for_the_classes_names_the_smallest_possible():
    with pytest.raises(ValueError, match=r"at least 10, so that each of the 10 classes is present; got 9"):
        subset(np.repeat(np.arange(10), 30), 9)


def test_a_size_too_small_for_the_groups_names_the_smallest_possible():
    with pytest.raises(
        ValueError, match=r"at least 7, so that complete groups contain each of the 2 classes; got 6"
    ):
        subset(np.repeat([0, 1], [30, 3]), 6, groups=np.repeat([0, 1, 2], [26, 4, 3]))


def test_one_large_group_may_contain_all_classes_in_fewer_rows_than_several_small_groups():
    y = np.array([0, 1, 2, 2, 2, 0, 0, 1, 1, 2, 2])
    groups = np.repeat([0, 1, 2, 3], [5, 2, 2, 2])  # the first alone does with 5 rows, the others need 6
    with pytest.raises(
        ValueError, match=r"at least 5, so that complete groups contain each of the 3 classes; got 4"
    ):
        subset(y, 4, groups=groups)
    assert set(y[subset(y, 5, groups=groups)]) == {0, 1, 2}


def fewest(y, groups, n_classes):
    """The fewest rows of whole groups that show every class, by trying all choices of groups."""
    units = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    choices = itertools.chain.from_iterable(
        itertools.combinations(units, k) for k in range(1, min(n_classes, len(units)) + 1)
    )
    together = (np.concatenate(choice) for choice in choices)
    return min(len(rows) for rows in together if len(np.unique(y[rows])) == n_classes)


@pytest.mark.slow
@settings(deadline=None)
@given(case=grouped_targets(max_group=7), seed=st.integers(0, 5))
def test_the_smallest_size_with_groups_is_the_smallest_possible(case, seed):
    y, groups = case
    order = Subsets(y, seed=seed, groups=groups)
    assert order.min_size == fewest(y, groups, len(np.unique(y)))


@settings(deadline=None, max_examples=25)
@given(classes=st.integers(13, 40), groups=st.integers(20, 60), seed=st.integers(0, 99), even=st.booleans())
def test_with_many_classes_the_smallest_size_works_and_one_row_less_does_not(classes, groups, seed, even):
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(classes)] * 3)
    y = labels[rng.integers(len(labels), size=600)] if even else rng.geometric(0.1, size=600) % classes
    codes = rng.integers(groups, size=600)
    order = Subsets(y, seed=seed, groups=codes)
    rows = order[order.min_size]
    assert len(rows) == order.min_size
    assert set(y[rows]) == set(y)
    with pytest.raises(ValueError, match=rf"at least {order.min_size}, .*; got {order.min_size - 1}"):
        order[order.min_size - 1]
    # Each of its groups is needed: without it, a class would be missing.
    for group in np.unique(codes[rows]):
        assert set(y[rows[codes[rows] != group]]) != set(y)


def test_two_groups_without_superfluous_rows_are_found_among_many_groups():
    """Twenty classes: two groups show ten each in ten rows, the others show three each in four."""
    rng = np.random.default_rng(0)
    wasteful = [rng.choice(20, size=3, replace=False)[[0, 1, 2, 2]] for _ in range(60)]
    y = np.concatenate([np.arange(10), np.arange(10, 20), *wasteful])
    groups = np.repeat(np.arange(62), [10, 10, *[4] * 60])
    for seed in range(5):
        assert Subsets(y, seed=seed, groups=groups).min_size == 20


def test_without_classes_the_smallest_size_is_that_of_the_smallest_group():
    with pytest.raises(ValueError, match="at least 3, the size of the smallest group; got 2"):
        subset(50, 2, groups=np.repeat(np.arange(10), [5, 5, 5, 5, 5, 7, 5, 5, 5, 3]))


@pytest.mark.parametrize(
    ("size", "message"), [(41, "at most 40.*got 41"), (0, "at least 2"), (-1, "at least 2")]
)
def test_a_size_out_of_range_is_an_error(size, message):
    with pytest.raises(ValueError, match=message):
        subset(np.repeat([0, 1], 20), size)


@pytest.mark.parametrize("size", [1.5, -0.5, "10", None, True, float("nan"), float("inf")])
def test_a_size_that_is_neither_a_whole_number_nor_a_fraction_is_an_error(size):
    with pytest.raises(TypeError, match=r"whole number of rows, or a fraction of them in \(0, 1\], got "):
        subset(100, size)


@pytest.mark.parametrize(
    ("fraction", "rows"), [(0.5, 100), (1.0, 200), (0.29, 58), (np.float32(0.25), 50), (0.012, 2)]
)
def test_a_float_of_at_most_one_is_a_fraction_of_the_rows(fraction, rows):
    y = np.repeat([0, 1], 100)
    np.testing.assert_array_equal(subset(y, fraction), subset(y, rows))


def test_a_fraction_too_small_for_the_classes_says_how_many_rows_it_is():
    with pytest.raises(ValueError, match=r"at least 2, .*; got 0.001, which is 1 of 200 rows"):
        subset(np.repeat([0, 1], 100), 0.001)
    assert len(subset(200, 1)) == 1


@pytest.mark.parametrize("y", [0, -5, [], np.zeros((10, 2)), True])
def test_targets_of_the_wrong_shape_are_an_error(y):
    with pytest.raises(ValueError, match="expected"):
        subset(y, 1)


def test_groups_of_another_length_are_an_error():
    with pytest.raises(ValueError, match=r"groups of shape \(10,\).*got shape \(9,\)"):
        subset(10, 5, groups=np.zeros(9))


@settings(max_examples=20, deadline=None)
@given(sizes=st.lists(st.integers(10, 5000), min_size=2, max_size=5))
def test_subsets_of_the_public_function_are_nested(sizes):
    y = np.random.default_rng(1).integers(0, 10, size=5000)
    subsets = [set(subset(y, size).tolist()) for size in sorted(sizes)]
    assert all(a <= b for a, b in itertools.pairwise(subsets))
