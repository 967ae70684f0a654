"""Maximise with a strategy that minimises: it sees the negative of every loss.

The negation is done here only: records, storages and results have losses with the user's sign.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fabolas._types import Array
from fabolas.direction import Direction
from fabolas.strategies.base import Prediction, PredictiveStrategy, Proposal, Strategy, SurrogateStrategy
from fabolas.strategies.fitting import SurrogateWithTrials
from fabolas.trials import History, Incumbent, Suggestion, Trial


def directed(strategy: Strategy, direction: Direction) -> Strategy:
    """The strategy itself to minimise, or a wrapper that maximises with it."""
    if direction == "minimize":
        return strategy
    if isinstance(strategy, SurrogateStrategy):
        return _SurrogateMaximized(strategy)
    return (
        _PredictiveMaximized(strategy) if isinstance(strategy, PredictiveStrategy) else _Maximized(strategy)
    )


class _Maximized:
    """Shows the negative losses to a strategy, and takes its answers with the sign back."""

    def __init__(self, strategy: Strategy) -> None:
        self.strategy, self.name = strategy, strategy.name
        self.options = getattr(strategy, "options", {})
        self._negated = History()
        self._last: Trial | None = None  # the trial whose negative is the last one of `_negated`

    def suggest(
        self,
        history: History,
        pending: tuple[Suggestion, ...],
        rng: np.random.Generator,
        *,
        remaining: float | None = None,
        at_target: bool = False,
    ) -> Proposal:
        proposal = self.strategy.suggest(
            self._negative(history), pending, rng, remaining=remaining, at_target=at_target
        )
        rule = proposal.stop_rule
        return proposal if rule is None else replace(proposal, stop_rule=rule.negated())

    def incumbent(self, history: History, *, verified_only: bool = False) -> Incumbent | None:
        incumbent = self.strategy.incumbent(self._negative(history), verified_only=verified_only)
        return None if incumbent is None else replace(incumbent, loss=-incumbent.loss)

    def state(self) -> dict[str, Array]:
        return self.strategy.state()

    def restore(self, state: dict[str, Array]) -> None:
        self.strategy.restore(state)

    def _negative(self, history: History) -> History:
        """The history with negative losses; only new trials are converted."""
        n = len(self._negated)
        if n > len(history) or (n and history.trials[n - 1] is not self._last):
            n, self._negated = 0, History()
        for trial in history.trials[n:]:
            loss = None if trial.loss is None else -trial.loss
            reports = tuple(report.negated() for report in trial.reports)
            self._negated = self._negated.append(replace(trial, loss=loss, reports=reports))
        self._last = history.trials[-1] if len(history) else None
        return self._negated.with_checkpoints(history.checkpoints)


class _PredictiveMaximized(_Maximized):
    """The same for a strategy with a model."""

    strategy: PredictiveStrategy

    def predict(self, history: History, points: Array) -> Prediction:
        prediction = self.strategy.predict(self._negative(history), points)
        return replace(prediction, loss=-prediction.loss)


class _SurrogateMaximized(_PredictiveMaximized):
    """The same for a strategy whose surrogate can be asked for."""

    strategy: SurrogateStrategy

    def surrogate(self, history: History) -> SurrogateWithTrials:
        """The surrogate of the strategy: it models the negative losses."""
        return self.strategy.surrogate(self._negative(history))
