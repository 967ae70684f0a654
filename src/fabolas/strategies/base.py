"""What a study needs from a strategy. To add a strategy, implement `Strategy` and list it in `__init__.py`."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from fabolas._types import Array
from fabolas.curve_reports import EarlyStopRule
from fabolas.trials import History, Incumbent, Suggestion

if TYPE_CHECKING:
    from fabolas.strategies.fitting import SurrogateWithTrials


@dataclass(frozen=True)
class Proposal:
    """Where to evaluate next; the study makes a Suggestion from it.

    Attributes:
        point: (d + f,) snapped to what the space can represent.
        origin: The step of the strategy that chose the point, such as "design", "information" or "target".
        effort: Effort level of the decision, from 0 (least) to 1 (full); 0 without a decision.
        predicted_cost: Predicted seconds of the evaluation; None if it was not predicted.
        continues: The trial whose training it continues from the checkpoint; None to start from scratch.
        stop_rule: When the training should stop early; None for never.
    """

    point: Array = field(compare=False)
    origin: str
    effort: float = 0.0
    predicted_cost: float | None = None
    continues: int | None = None
    stop_rule: EarlyStopRule | None = None


@dataclass(frozen=True)
class Prediction:
    """Predicted loss and cost of m points, in the user's units."""

    loss: Array  # (m,) mean
    loss_std: Array  # (m,)
    cost: Array  # (m,) median, in seconds
    cost_limit: Array  # (m,) seconds that a measurement exceeds with a probability of about one in forty


@runtime_checkable
class Strategy(Protocol):
    """Decides only from its arguments and its state: the same ones give the same suggestion.

    What it carries from one suggestion to the next beyond the history is its `state`. A reopened study restores it
    and continues as if it had never been closed. `incumbent` does not change later suggestions.

    A strategy with options has them in a dict `options`. A study records it, and refuses to continue a storage with
    other options.
    """

    name: str

    def suggest(
        self,
        history: History,
        pending: tuple[Suggestion, ...],
        rng: np.random.Generator,
        *,
        remaining: float | None = None,
        at_target: bool = False,
    ) -> Proposal:
        """The next point to evaluate.

        Args:
            history: All trials that have ended.
            pending: Suggestions handed out that have not ended.
            rng: The only source of randomness.
            remaining: Seconds left of the budget; None without a time budget.
            at_target: Whether the evaluation should be at the target fidelity, if one fits into `remaining`.
        """
        ...

    def incumbent(self, history: History, *, verified_only: bool = False) -> Incumbent | None:
        """The evaluated configuration that the strategy recommends for the target; None before there is one.

        Args:
            history: All trials that have ended.
            verified_only: Whether to consider only configurations that were evaluated at the target.
        """
        ...

    def state(self) -> dict[str, Array]:
        """Arrays to continue from; empty if the history is enough."""
        ...

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from the arrays that `state` returned; an empty dict means a new strategy."""
        ...


@runtime_checkable
class PredictiveStrategy(Strategy, Protocol):
    """A strategy with a model of loss and cost."""

    def predict(self, history: History, points: Array) -> Prediction:
        """Loss and cost of points (m, d + f), given a history with at least one complete trial."""
        ...


@runtime_checkable
class SurrogateStrategy(PredictiveStrategy, Protocol):
    """A strategy whose model is a `Surrogate`, which figures and tables of the model read."""

    def surrogate(self, history: History) -> "SurrogateWithTrials":
        """Both posteriors given a history with at least one complete trial, and which trials their data are.

        They model what the strategy minimises: the losses, or their negatives if the study maximises.
        """
        ...
