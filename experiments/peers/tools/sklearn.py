"""scikit-learn's HalvingRandomSearchCV, the real one: its rows are the fidelity, its score is minus the loss.

Settings: the defaults, factor 3 and as many candidates as fill the last round (`n_candidates` "exhaust"), with
`min_resources` such that the last round has all the data. Halving has no time budget: it is fitted again with another
seed until the time is up. The answer is the `best_params_` of the fit with the best score; there is none before the
first fit has ended. Every fit is a new training: it clones its estimator.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import HalvingRandomSearchCV, PredefinedSplit

from experiments.peers.session import Session, configuration_space

FACTOR = 3
N_TEST, N_SMALLEST = 20, 200  # rows of the test fold and all rows in the first round; nobody looks into them


class _Trained(BaseEstimator):  # type: ignore[misc]
    """Its fit is an evaluation of the session at the fidelity of the round."""

    def __init__(self, config: Any = None, session: Session | None = None, n_train: int = 1) -> None:
        self.config, self.session, self.n_train = config, session, n_train

    def fit(self, X: np.ndarray, y: np.ndarray) -> _Trained:
        assert self.session is not None
        rounds_to_go = round(np.log(self.n_train / len(X)) / np.log(FACTOR))
        fidelity = self.session.target / FACTOR**rounds_to_go
        self.loss_, _ = self.session.evaluate(self.config, fidelity, resume=False)
        self.session.answer(self.session.memory.get("answer"))
        return self

    def score(self, X: np.ndarray, y: np.ndarray) -> float:
        return -self.loss_

    def __deepcopy__(self, memo: dict[int, Any]) -> _Trained:
        return self

    def __sklearn_clone__(self) -> _Trained:
        return _Trained(self.config, self.session, self.n_train)


class _Draw:
    """A distribution of whole configurations, for `param_distributions`."""

    def __init__(self, space: Any) -> None:
        self.space = space

    def rvs(self, random_state: np.random.RandomState) -> dict[str, Any]:
        self.space.seed(int(random_state.randint(2**31 - 1)))
        return dict(self.space.sample_configuration())


def run(session: Session) -> None:
    """Halving again and again."""
    n_rounds = int(np.floor(np.log(session.target / session.fidelity.low) / np.log(FACTOR) + 1e-9)) + 1
    largest = FACTOR ** (n_rounds - 1)
    rows = np.arange(N_SMALLEST * largest)
    n_train = (N_SMALLEST - N_TEST) * largest
    split = PredefinedSplit(np.where(rows < n_train, -1, 0))  # one split; halving shrinks both of its parts
    draw = _Draw(configuration_space(session.problem, session.seed))
    best = -np.inf
    for repetition in range(10**6):
        search = HalvingRandomSearchCV(
            _Trained(session=session, n_train=n_train),
            {"config": draw},
            factor=FACTOR,
            resource="n_samples",
            min_resources=N_SMALLEST
            - 1,  # one less: log(243, 3) is below 5 in floating point, a round would be lost
            n_candidates="exhaust",
            cv=split,
            refit=False,
            random_state=1000 * session.seed + repetition,
            error_score="raise",
        )
        search.fit(rows[:, None], rows % 2)
        if search.best_score_ > best:
            best = float(search.best_score_)
            session.memory["answer"] = search.best_params_["config"]
