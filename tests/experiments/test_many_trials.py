"""Searches that begin with given trials: both limits begin alike, and the table compares them."""

import numpy as np

import fabolas
from experiments import many_trials
from experiments.families import FAMILIES


def test_given_trials_are_half_random_and_half_near_the_best_of_these() -> None:
    problem = FAMILIES["svm_like"].make(0)
    with fabolas.Study(problem.space, problem.fidelities, strategy="random", seed=0) as study:
        many_trials.give(study, problem, 60, np.random.default_rng(0))
        points = study.history.points
    d = len(problem.space)
    best = points[np.argsort(study.history.losses[:30])[:10], :d]
    distance = np.linalg.norm(points[:, None, :d] - best, axis=2).min(axis=1)
    assert len(points) == 60
    assert np.median(distance[30:]) < 0.5 * np.median(distance[:30])


def test_the_table_has_the_factor_of_the_limit_over_exact_inference() -> None:
    runs = {
        ("mixed", limit, seed): {"regret": [regret] * len(many_trials.CHECKPOINTS), "seconds": 1.0}
        for limit, regret in (("exact", 0.1), ("600", 0.3))
        for seed in range(3)
    }
    rows = list(many_trials.table(runs))
    assert rows[-1].startswith("| all | 3.00 (3.00, 3.00)")
