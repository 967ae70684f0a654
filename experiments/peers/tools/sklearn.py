"""scikit-learn's HalvingRandomSearchCV, the real one: its rows are the fidelity, its score is minus the loss.

Settings: factor 3, `min_resources` at the smallest fidelity, as many candidates as fill the last round (`n_candidates`
"exhaust"). Halving has no time budget: it is fitted again with another seed until the time is up. The answer is the
`best_params_` of the fit with the best score; there is none before the first fit has ended.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import HalvingRandomSearchCV, PredefinedSplit

from experiments.peers.session import Session, configuration_space


class _Trained(BaseEstimator):  # type: ignore[misc]
    """Its fit is an evaluation of the session on as many rows as it gets."""

    def __init__(self, config: Any = None, session: Session | None = None, scale: float = 1.0) -> None:
        self.config, self.session, self.scale = config, session, scale

    def fit(self, X: np.ndarray, y: np.ndarray) -> _Trained:
        assert self.session is not None
        self.loss_, _ = self.session.evaluate(self.config, len(X) / self.scale)
        self.session.answer(self.session.memory.get("answer"))
        return self

    def score(self, X: np.ndarray, y: np.ndarray) -> float:
        return -self.loss_

    def __deepcopy__(self, memo: dict[int, Any]) -> _Trained:
        return self

    def __sklearn_clone__(self) -> _Trained:
        return _Trained(self.config, self.session, self.scale)


class _Draw:
    """A distribution of whole configurations, for `param_distributions`."""

    def __init__(self, space: Any) -> None:
        self.space = space

    def rvs(self, random_state: np.random.RandomState) -> dict[str, Any]:
        self.space.seed(int(random_state.randint(2**31 - 1)))
        return dict(self.space.sample_configuration())


def run(session: Session) -> None:
    """Halving again and again."""
    low, high = float(session.fidelity.low), session.target
    scale = 1.0 if session.fidelity.integer else 1000.0
    # One split: the first rows train, the last ones, which nobody looks at, are the test fold. Halving shrinks both.
    n_train, n_test = round(high * scale), int(np.ceil(2 * high / low))
    rows = np.arange(n_train + n_test)
    split = PredefinedSplit(np.where(rows < n_train, -1, 0))
    draw = _Draw(configuration_space(session.problem, session.seed))
    best = -np.inf
    for repetition in range(10**6):
        search = HalvingRandomSearchCV(
            _Trained(session=session, scale=scale),
            {"config": draw},
            factor=3,
            resource="n_samples",
            min_resources=max(2, int(np.ceil(low / high * len(rows)))),
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
