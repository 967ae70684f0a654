"""The comparison of curves: its summaries, and one short run on a formula."""

import numpy as np
import pytest

import fabolas
from experiments import curves, yahpo


def test_regret_and_times_are_those_of_the_incumbents() -> None:
    run = curves.Run([0.5, 1.0, 2.0, 3.0], [None, 0.02, 0.004, 0.004], [1, 1, 2, 2], [False] * 4)
    assert run.regret_at(0.7) == np.inf
    assert run.regret_at(2.5) == 0.004
    assert run.stays_within(0.01) == 2.0
    assert run.stays_within(0.001) == np.inf


def test_continued_trainings_pay_only_the_difference() -> None:
    fidelities = {"epoch": fabolas.Fidelity(1, 8, reports=True, resume=True)}
    space = {"x": fabolas.Float(0.0, 1.0)}

    class Formula(yahpo.Problem):
        best = 0.1

        def __call__(self, config, rng=None, **fidelity):  # type: ignore[no-untyped-def]
            return 0.1 + config["x"] / 2 + 0.2 / fidelity["epoch"], float(fidelity["epoch"])

    problem = Formula("formula", space, fidelities, network=None)  # type: ignore[arg-type]
    run = curves.simulate(problem, 0, trainings=4.0, strategy="hyperband")
    assert any(run.continued)
    spent = curves.SECONDS_PER_EPOCH * sum(run.epochs) + curves.OVERHEAD * len(run.time)
    assert run.time[-1] == pytest.approx(spent / (8 * curves.SECONDS_PER_EPOCH))
