"""Failures by chance do not count, failures because of the configuration do."""

import numpy as np
import pytest

from fabolas import Float, Study
from fabolas.strategies.failures import WIDTH, by_chance

NUMERIC = (0, 0)


def chance(points: list[list[float]], outcomes: str, n_choices: tuple[int, ...] = NUMERIC) -> list[bool]:
    """`by_chance` of trials whose outcomes are letters: s(uccess), f(ailure), a(bandoned)."""
    failed, complete = (np.array([letter == kind for letter in outcomes]) for kind in "fs")
    return by_chance(np.array(points), failed, complete, n_choices).tolist()


def test_a_failure_that_is_alone_is_the_fault_of_its_configuration() -> None:
    assert chance([[0.1, 0.1, 0.5], [0.9, 0.9, 0.5], [0.9, 0.1, 0.5]], "fss") == [False] * 3
    assert chance([[0.1, 0.1, 0.5]], "f") == [False]


def test_a_failure_among_successes_is_by_chance_and_one_among_failures_is_not() -> None:
    near = [[0.5 + 0.01 * i, 0.5, 0.5] for i in range(4)]
    assert chance(near, "sfss") == [False, True, False, False]
    assert chance(near, "fffs") == [False] * 4
    assert chance(near, "saff")[2:] == [False, False]


def test_it_is_the_sum_of_gaussian_weights_of_successes_against_that_of_failures_and_one() -> None:
    rng = np.random.default_rng(0)
    n, n_choices = 40, (0, 3, 0)
    points = rng.random((n, 4))
    points[:, 1] = (rng.integers(3, size=n) + 0.5) / 3
    points[:, [0, 2, 3]] *= 0.3  # so that neither all are near nor none
    failed = rng.random(n) < 0.4
    expected = np.zeros(n, dtype=bool)
    for i in np.flatnonzero(failed):
        total = {True: 1.0, False: 0.0}
        for j in range(n):
            if i != j:
                squared = sum(
                    float(points[i, c] != points[j, c]) if c == 1 else (points[i, c] - points[j, c]) ** 2
                    for c in range(4)
                )
                total[bool(failed[j])] += np.exp(-squared / (2 * WIDTH**2 * 3))
        expected[i] = total[False] > total[True]
    assert 0 < expected.sum() < failed.sum()
    assert by_chance(points, failed, ~failed, n_choices).tolist() == expected.tolist()


def loss(config: dict[str, float], size: int) -> float:
    return 0.1 + 0.5 * (config["a"] - 0.6) ** 2 + 0.5 * (config["b"] - 0.4) ** 2 + 1.0 / size


def search(fails: object, seed: int) -> tuple[float, int]:
    """Regret and number of failures after 30 trials; `fails` is a probability or the name of a region."""
    space = {"a": Float(0.0, 1.0), "b": Float(0.0, 1.0)}
    rng, n_failed = np.random.default_rng(seed), 0
    with Study(space, {"size": (10, 1000)}, seed=seed, overhead=0.01, effort=0.2) as study:
        for _ in range(30):
            asked = study.ask()
            size = int(asked.fidelity["size"])
            unlucky = rng.random() < fails if isinstance(fails, float) else asked.config["a"] > 0.7
            if unlucky:
                study.fail(
                    asked,
                    "the node went away" if isinstance(fails, float) else "out of memory",
                    cost=size / 100,
                )
                n_failed += 1
            else:
                study.tell(asked, loss(asked.config, size), cost=size / 100)
        best = study.incumbent()
    assert best is not None
    return loss(best.config, 1000) - 0.101, n_failed


@pytest.mark.slow
def test_failures_by_chance_do_not_hide_the_optimum_and_a_region_of_failures_is_avoided() -> None:
    regrets = [search(0.2, seed)[0] for seed in range(8)]
    assert np.mean(regrets) < 0.007  # 0.003; if every failure counts 0.018
    behind_a_wall = [search("region", seed) for seed in range(8)]
    assert np.mean([regret for regret, _ in behind_a_wall]) < 0.02
    assert (
        max(n_failed for _, n_failed in behind_a_wall) <= 12
    )  # 30 % of the space fails, that is 9 of 30 trials
