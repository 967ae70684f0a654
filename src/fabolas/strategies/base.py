"""What a study needs of a strategy, and nothing more."""

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from fabolas._types import Array
from fabolas.history import History, Incumbent, Suggestion


@dataclass(frozen=True)
class Proposal:
    """Where to evaluate next, before the study gives it a number and a name.

    Attributes:
        point: (d + f,) Snapped to what the space can represent.
        origin: What decided, "design" or "model" for example.
        effort: Share of the full effort that went into the decision.
        predicted_cost: Seconds the evaluation is expected to take, None where nothing predicts it.
    """

    point: Array = field(compare=False)
    origin: str
    effort: float = 1.0
    predicted_cost: float | None = None


@runtime_checkable
class Strategy(Protocol):
    """Decides from the record alone, so that the same record and seed give the same suggestion.

    What it carries from one suggestion to the next beyond the history is in ``state``: a study that is closed
    and reopened restores it and goes on as if nothing had happened. ``incumbent`` alters no later suggestion.
    """

    name: str

    def suggest(
        self,
        history: History,
        pending: tuple[Suggestion, ...],
        rng: np.random.Generator,
        *,
        remaining: float | None = None,
    ) -> Proposal:
        """The next point.

        Args:
            history: All trials that have ended.
            pending: Suggestions handed out and not yet ended.
            rng: The only source of randomness.
            remaining: Seconds of the budget that the record leaves, None without a time budget.
        """
        ...

    def incumbent(self, history: History) -> Incumbent | None:
        """The evaluated configuration that the strategy recommends for the target; None before there is one."""
        ...

    def state(self) -> dict[str, Array]:
        """Arrays to carry on from; empty when there is nothing to carry."""
        ...

    def restore(self, state: dict[str, Array]) -> None:
        """Carry on from arrays that ``state`` gave; from none as a new strategy would."""
        ...
