"""The state of a run at one moment, as frozen records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fabolas.display import error_summary
from fabolas.space import Space
from fabolas.trials import History, Incumbent, Suggestion, Trial

N_BINS = 8  # of the range of a fidelity


@dataclass(frozen=True)
class RunningTrial:
    """A trial that is being evaluated.

    Attributes:
        id: Id of the suggestion.
        fidelity: Its fidelities by name.
        predicted: Seconds that it is expected to take; None if the strategy does not predict them.
        seconds: Seconds that it has been running; 0 if unknown.
    """

    id: int
    fidelity: dict[str, float | int]
    predicted: float | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class FidelityCounts:
    """How many trials ended in each of N_BINS equal parts of a fidelity's axis, from low to high."""

    name: str
    low: float
    high: float
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Snapshot:
    """How far a run is.

    Attributes:
        elapsed: Seconds used of the budget.
        trials: Number of ended trials of the study.
        failed: Number of failed ones among them.
        incumbent: The best configuration so far; None if there is none.
        fidelity: Fidelities of the newest suggestion.
        overhead_share: Overhead as a share of the time that the study has taken.
        abandoned: Number of ended trials that were abandoned.
        at_target: Number of complete trials with every fidelity at its target.
        trials_before: Number of ended trials that do not count towards the budget of this run.
        running: The trials that are being evaluated.
        fidelity_counts: For each fidelity, at which values trials ended.
        failure: Id of the last failed trial, and its error in one line; None if none failed.
        notice: A message for the user; None for none.
        measured: The trial with the best loss at any fidelity; None if none is complete.
    """

    elapsed: float = 0.0
    trials: int = 0
    failed: int = 0
    incumbent: Incumbent | None = None
    fidelity: dict[str, float | int] | None = None
    overhead_share: float = 0.0
    abandoned: int = 0
    at_target: int = 0
    trials_before: int = 0
    running: tuple[RunningTrial, ...] = ()
    fidelity_counts: tuple[FidelityCounts, ...] = ()
    failure: tuple[int, str] | None = None
    notice: str | None = None
    measured: Trial | None = None

    @property
    def budget_trials(self) -> int:
        """Number of ended trials that count towards the budget."""
        return self.trials - self.trials_before

    @classmethod
    def of(
        cls,
        space: Space,
        history: History,
        running: Sequence[Suggestion],
        running_for: Mapping[int, float],
        *,
        elapsed: float,
        study_elapsed: float,
        overhead: float,
        incumbent: Incumbent | None,
        trials_before: int = 0,
        sign: float = 1.0,
    ) -> "Snapshot":
        """Return the state of a study.

        Args:
            space: Its space.
            history: The trials that have ended.
            running: The suggestions that are being evaluated.
            running_for: Suggestion id -> seconds running; unknown ones are missing.
            elapsed: Seconds used of the budget.
            study_elapsed: Seconds that the study has taken, also those that do not count towards the budget.
            overhead: Seconds of overhead of the study.
            incumbent: The best configuration so far.
            trials_before: Number of ended trials that do not count towards the budget.
            sign: 1 if lower losses are better, -1 if higher ones are.
        """
        newest = (*(trial.suggestion for trial in history.trials[-1:]), *running)[-1:]
        u = history.points[:, space.dim :]  # (n, f)
        return cls(
            elapsed=elapsed,
            trials=len(history),
            failed=int(history.failed.sum()),
            incumbent=incumbent,
            measured=history.best_measurement(sign),
            fidelity=newest[0].fidelity if newest else None,
            overhead_share=min(overhead / study_elapsed, 1.0) if study_elapsed > 0 else 0.0,
            abandoned=int(history.abandoned.sum()),
            at_target=int((history.complete & space.is_at_target(history.points)).sum()),
            trials_before=trials_before,
            running=tuple(
                RunningTrial(s.id, s.fidelity, s.predicted_cost, running_for.get(s.id, 0.0)) for s in running
            ),
            # Without trials u is (0, 0), so the column is taken as a slice.
            fidelity_counts=tuple(
                FidelityCounts(name, fidelity.low, fidelity.high, _histogram(u[:, j : j + 1]))
                for j, (name, fidelity) in enumerate(space.fidelities.items())
            ),
            failure=_last_failure(history),
        )


def _histogram(u: np.ndarray) -> tuple[int, ...]:
    counts, _ = np.histogram(u, bins=N_BINS, range=(0.0, 1.0))
    return tuple(int(count) for count in counts)


def _last_failure(history: History) -> tuple[int, str] | None:
    if not history.failed.any():
        return None
    trial = history.trials[int(np.flatnonzero(history.failed)[-1])]
    return trial.id, error_summary(trial.error)
