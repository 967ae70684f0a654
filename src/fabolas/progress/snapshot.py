"""The facts about a run at one moment, as frozen records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fabolas.history import History, Incumbent, Suggestion
from fabolas.space import Space

BANDS = 8


@dataclass(frozen=True)
class Running:
    """A trial under way.

    Attributes:
        id: The suggestion's number.
        fidelity: Its fidelities by name.
        predicted: Seconds that it is expected to take, None where nothing predicts it.
        seconds: Seconds that it had been running at that moment; 0 where only the display knows.
    """

    id: int
    fidelity: dict[str, float | int]
    predicted: float | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Sizes:
    """How many trials ended in each part of a fidelity's range, equal parts of its axis from low to high."""

    name: str
    low: float
    high: float
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Snapshot:
    """How far a run has come.

    Attributes:
        elapsed: Seconds used of the budget.
        trials: Ended trials.
        failed: Failed ones among them.
        lost: Those among them that nobody waited for.
        at_target: Complete ones among them with every fidelity at its target.
        incumbent: The best so far.
        fidelity: Of the last suggestion.
        thinking_share: Share of the recorded time that was spent thinking.
        running: Trials under way.
        sizes: Where the trials were, for each fidelity.
        failure: (number of the last failed trial, last line of its error).
        notice: What the run has to say now, None for nothing.
    """

    elapsed: float = 0.0
    trials: int = 0
    failed: int = 0
    incumbent: Incumbent | None = None
    fidelity: dict[str, float | int] | None = None
    thinking_share: float = 0.0
    lost: int = 0
    at_target: int = 0
    running: tuple[Running, ...] = ()
    sizes: tuple[Sizes, ...] = ()
    failure: tuple[int, str] | None = None
    notice: str | None = None

    @classmethod
    def of(
        cls,
        space: Space,
        history: History,
        running: Sequence[Suggestion],
        running_for: Mapping[int, float],
        *,
        elapsed: float,
        thinking: float,
        incumbent: Incumbent | None,
    ) -> "Snapshot":
        """What a study's record says.

        Args:
            space: What is searched.
            history: The trials that have ended.
            running: The suggestions under way.
            running_for: Their numbers, and for how many seconds each has been under way; 0 where that is not known.
            elapsed: Seconds used of the budget.
            thinking: Seconds of thinking on record.
            incumbent: The best so far.
        """
        recorded = thinking + float(history.costs.sum())
        last = (*(trial.suggestion for trial in history.trials[-1:]), *running)[-1:]
        u = history.points[:, space.dim :]  # (n, f)
        return cls(
            elapsed=elapsed,
            trials=len(history),
            failed=int(history.failed.sum()),
            incumbent=incumbent,
            fidelity=last[0].fidelity if last else None,
            thinking_share=thinking / recorded if recorded > 0 else 0.0,
            lost=int(history.lost.sum()),
            at_target=int((history.complete & space.are_at_target(history.points)).sum()),
            running=tuple(
                Running(s.id, s.fidelity, s.predicted_cost, running_for.get(s.id, 0.0)) for s in running
            ),
            sizes=tuple(
                Sizes(name, kind.low, kind.high, _counts(u[:, j : j + 1]))
                for j, (name, kind) in enumerate(space.fidelities.items())
            ),
            failure=_last_failure(history),
        )


def _counts(u: np.ndarray) -> tuple[int, ...]:
    counts, _ = np.histogram(u, bins=BANDS, range=(0.0, 1.0))
    return tuple(int(count) for count in counts)


def _last_failure(history: History) -> tuple[int, str] | None:
    if not history.failed.any():
        return None
    trial = history.trials[int(np.flatnonzero(history.failed)[-1])]
    return trial.id, last_line(trial.error)


def last_line(error: str | None) -> str:
    """The line of an error that says what it was: the last of a traceback."""
    return (error or "").strip().splitlines()[-1] if (error or "").strip() else ""
