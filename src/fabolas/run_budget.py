"""What counts towards the budget of a run: ``RunBudget.usage`` is the only place that decides it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fabolas.budget import Budget
from fabolas.trials import History, Suggestion


@dataclass(frozen=True)
class Usage:
    """What a run has used of its budget at one moment.

    Attributes:
        seconds: Seconds used of the budget.
        trials: Trials used of the budget.
        study_seconds: Seconds that the study has used, those that do not count towards the budget included.
    """

    seconds: float
    trials: int
    study_seconds: float


@dataclass(frozen=True)
class RunBudget:
    """A run's budget, and the rule for what counts towards it.

    The storage keeps it, so that ``fabolas status`` can show how far a run is.

    Attributes:
        budget: The limits of the run.
        started: When the run started, in seconds since the epoch.
        elapsed_before: Seconds that the study had used before the run.
        uncounted_seconds: Seconds of the study that do not count towards the budget.
        uncounted_trials: Trials of the study that do not count towards the budget.
        count_abandoned: Whether abandoned trials count towards the number of trials.
        verify: Whether the answer of the run should be a configuration that was evaluated at the target.
        trials_before: Number of trials that had ended before the run, whatever their origin.
    """

    budget: Budget
    started: float
    elapsed_before: float = 0.0
    uncounted_seconds: float = 0.0
    uncounted_trials: int = 0
    count_abandoned: bool = True
    verify: bool = False
    trials_before: int = 0

    @classmethod
    def start(
        cls,
        budget: Budget,
        started: float,
        history: History,
        elapsed: float,
        *,
        fresh: bool,
        count_abandoned: bool,
        verify: bool,
    ) -> "RunBudget":
        """The budget of a run that starts now.

        Args:
            budget: The limits of the run.
            started: Now, in seconds since the epoch.
            history: The trials that have ended before.
            elapsed: Seconds that the study has used before.
            fresh: Whether what the study has used before does not count.
            count_abandoned: Whether abandoned trials count towards the number of trials.
            verify: As the attribute.
        """
        uncounted = (elapsed, _n_counted(history, count_abandoned)) if fresh else (0.0, 0)
        return cls(budget, started, elapsed, *uncounted, count_abandoned, verify, len(history))

    @property
    def seconds_before(self) -> float:
        """Seconds used of the budget when the run started."""
        return self.elapsed_before - self.uncounted_seconds

    def usage(
        self,
        history: History,
        pending: Sequence[Suggestion] = (),
        *,
        run_seconds: float | None = None,
        workers: int | None = None,
    ) -> Usage:
        """What a study has used of the budget.

        Time counts by the clock, or by the record if that is more: an objective may state costs that take no time.
        Trials that were measured elsewhere do not count.

        Args:
            history: The ended trials of the study.
            pending: Its pending suggestions; their overhead counts if trials run one after another.
            run_seconds: Seconds since the run started; None if it has ended, or if the record alone should count.
            workers: If trials run at the same time, how many: the record then counts as if all workers were always
                busy. None takes the seconds that the record states.
        """
        recorded = history.elapsed + sum(suggestion.overhead for suggestion in pending)
        if workers is not None:
            of_run = slice(self.trials_before, None)
            cost = float(history.costs[of_run][~history.added[of_run]].sum())
            recorded = self.elapsed_before + cost / workers
        by_clock = 0.0 if run_seconds is None else self.elapsed_before + run_seconds
        seconds = max(recorded, by_clock)
        n_trials = _n_counted(history, self.count_abandoned) - self.uncounted_trials
        return Usage(seconds - self.uncounted_seconds, n_trials, seconds)

    def describe(self) -> dict[str, Any]:
        """The same in the types of JSON."""
        return asdict(self)

    @classmethod
    def of(cls, description: dict[str, Any]) -> "RunBudget":
        """The budget that ``describe`` has described."""
        return cls(**{**description, "budget": Budget(**description["budget"])})


def _n_counted(history: History, count_abandoned: bool) -> int:
    """Number of trials without those that were measured elsewhere, and without abandoned ones unless they count."""
    counted = ~history.added if count_abandoned else ~history.added & ~history.abandoned
    return int(counted.sum())
