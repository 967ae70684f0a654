"""No two pending evaluations are in the same place."""

import numpy as np
import pytest

from fabolas import Space, Study
from fabolas.study.proposer import MIN_DISTANCE, separate_from_pending
from tests.helpers.marks import slow
from tests.helpers.problems import SIZE, SPACE, bowl


def test_one_configuration_at_two_sizes_is_two_evaluations_and_may_run_twice() -> None:
    space, rng = Space(SPACE, SIZE), np.random.default_rng(0)
    pending = np.array([[0.3, 0.6, 0.5]])
    larger, same = np.array([0.3, 0.6, 0.8]), pending[0]
    np.testing.assert_array_equal(separate_from_pending(space, larger, pending, rng), larger)
    moved = separate_from_pending(space, same, pending, rng)
    assert np.abs(moved - same)[:2].max() >= MIN_DISTANCE
    assert moved[2] == pytest.approx(same[2])


@pytest.mark.parametrize("strategy", ["fabolas", "random", "hyperband", *slow("mtbo", "ei")])
def test_no_two_of_eight_pending_suggestions_are_in_the_same_place(strategy: str) -> None:
    options = {"effort": 0.0} if strategy in ("fabolas", "mtbo", "ei") else {}
    with Study(SPACE, SIZE, strategy=strategy, seed=0, overhead=0.01, **options) as study:
        for _ in range(20):
            for _ in range(8 - len(study.pending)):
                study.ask()
            points = np.array([s.point for s in study.pending])
            distance = np.abs(points[:, None] - points[None]).max(axis=2) + np.eye(8)
            assert distance.min() >= MIN_DISTANCE
            s = study.pending[0]
            study.tell(s, bowl(s.config, int(s.fidelity["size"])), cost=0.01)
