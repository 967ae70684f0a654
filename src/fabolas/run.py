"""The loop that asks, evaluates and tells until the budget is used up."""

import inspect
import textwrap
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabolas.budget import Budget
from fabolas.history import Incumbent, Outcome, Trial
from fabolas.progress import Report, Snapshot, reporting
from fabolas.result import Result
from fabolas.space import Fidelity, Space
from fabolas.storage import Storage
from fabolas.strategies import Strategy
from fabolas.study import RESOLUTION, Study

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace

Objective = Callable[..., "float | Outcome"]


# After looking at the incumbent, so many times as long passes before the next look: with trials of milliseconds a
# look after each of them would be most of our thinking.
_PATIENCE = 100.0


def minimize(
    objective: Objective,
    space: "Mapping[str, Any] | ConfigurationSpace | Space",
    fidelities: Mapping[str, Fidelity | tuple[float, float]] | None = None,
    *,
    time_budget: float | str | None = None,
    max_trials: int | None = None,
    strategy: str | Strategy = "fabolas",
    storage: str | Path | Storage | None = None,
    seed: int | None = None,
    overhead: float | None = None,
    max_failures: int = 10,
    progress: bool = True,
    clock: Callable[[], float] = time.perf_counter,
    **options: Any,
) -> Result:
    """Find the configuration with the lowest loss at the target fidelity within the budget.

        result = fabolas.minimize(objective, {"C": fabolas.Float(1e-5, 1e5, log=True)},
                                  fidelities={"size": (100, 50_000)}, time_budget="30m")

    An evaluation that raises or returns no finite number is recorded as failed, and the run goes on. Ctrl-C
    ends the run with the result so far.

    Args:
        objective: Called as ``objective(config, size=...)``; returns a loss or an Outcome.
        space: Hyperparameters by name, a ConfigurationSpace, or a Space.
        fidelities: Name -> (low, high) or Fidelity; the upper end is the target.
        time_budget: Seconds, or text such as "90s", "30m", "1h30m"; wall clock with our own thinking. What a
            continued storage has spent counts. A running evaluation is not cut off.
        max_trials: Number of trials, failed ones and those of a continued storage included.
        strategy: Name of a strategy, or a strategy.
        storage: File to keep the record in; an existing one is continued. None keeps it in memory.
        seed: Whole number >= 0; None draws one.
        overhead: Seconds to record as thinking time of every suggestion, for exact reproduction.
        max_failures: So many failures in a row end the run with an error.
        progress: Whether to show how it goes, on standard error.
        clock: Seconds from any origin.
        **options: For the strategy.

    Raises:
        ValueError: If the budget, the space, the storage or another argument is not what it should be.
        TypeError: If the objective cannot be called with the configuration and the fidelities.
        RuntimeError: If ``max_failures`` evaluations in a row failed, or the storage is in use.
    """
    start = clock()
    budget = Budget.of(time_budget, max_trials)
    if not max_failures >= 1:
        raise ValueError(f"max_failures must be a number >= 1, got {max_failures!r}")
    space = space if isinstance(space, Space) and fidelities is None else Space(space, fidelities)
    check_objective(objective, tuple(space.fidelities))
    study = Study(
        space, strategy=strategy, storage=storage, seed=seed, overhead=overhead, clock=clock, **options
    )
    with study:
        return _Run(objective, study, budget, max_failures, start, clock)(progress)


class _Run:
    """One call of ``minimize``, from its arguments checked to its result."""

    def __init__(
        self,
        objective: Objective,
        study: Study,
        budget: Budget,
        max_failures: int,
        start: float,
        clock: Callable[[], float],
    ) -> None:
        self._objective = objective
        self._study = study
        self._budget = budget
        self._max_failures = max_failures
        self._clock = clock
        self._start = start - study.spent  # as if the time spent before had just passed
        self._incumbent: Incumbent | None = None
        self._look_again = 0.0  # when to ask for the incumbent next
        self._seen = len(study.trials)  # trials when it was last asked for
        self._trajectory: list[tuple[float, Incumbent]] = []

    def __call__(self, progress: bool) -> Result:
        study, failures = self._study, 0
        with reporting(progress, self._budget, self._by_clock) as report:
            try:
                self._update(report)
                while not self._budget.used_up(self._elapsed(), len(study.trials)):
                    trial = self._step(report)
                    if self._clock() >= self._look_again:
                        self._update(report)
                    failures = failures + 1 if trial.status == "failed" else 0
                    if failures >= self._max_failures:
                        self._give_up(failures, trial)
                        break
                self._update(report)
            except KeyboardInterrupt:
                for suggestion in study.pending:
                    study.lose(suggestion, "interrupted: Ctrl-C while it was running")
                self._update(report)
        trajectory = tuple(self._trajectory)
        return Result(self._incumbent, study.trials, trajectory, self._elapsed(), study.thinking, study.seed)

    def _give_up(self, failures: int, last: Trial) -> None:
        """An error if nothing was ever found; else a warning, and the result so far."""
        if not self._study.history.complete.any():
            raise RuntimeError(_too_many(failures, last))
        warnings.warn(_too_many(failures, last), RuntimeWarning, stacklevel=4)

    def _step(self, report: Report) -> Trial:
        study = self._study
        seconds = self._budget.seconds
        suggestion = study.ask(remaining=None if seconds is None else seconds - study.spent)
        self._report(report)
        start = self._clock()
        try:
            # A copy: what the objective does to its configuration must not reach the record.
            returned = self._objective(dict(suggestion.config), **suggestion.fidelity)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, it is the trial's outcome
            # The traceback starts in the objective, not in this loop.
            inside = error.__traceback__ and error.__traceback__.tb_next
            return study.fail(suggestion, error.with_traceback(inside), cost=self._since(start))
        cost = self._since(start)
        try:
            outcome = returned if isinstance(returned, Outcome) else Outcome(returned)
        except (TypeError, ValueError):
            got = textwrap.shorten(repr(returned), 100)
            reason = f"the objective must return a finite number or an Outcome, got {got}"
            return study.fail(suggestion, reason, cost=cost)
        return study.tell(suggestion, outcome.loss, outcome.cost or cost, outcome.info)

    def _since(self, start: float) -> float:
        return max(self._clock() - start, RESOLUTION)

    def _by_clock(self) -> float:
        return self._clock() - self._start

    def _elapsed(self) -> float:
        """Seconds used of the budget: by the clock, or by the record where an objective states its costs."""
        return max(self._by_clock(), self._study.spent)

    def _update(self, report: Report) -> None:
        start = self._clock()
        self._incumbent = self._study.incumbent()
        now = self._clock()
        self._look_again = now + _PATIENCE * (now - start)
        if self._incumbent is not None and len(self._study.trials) > self._seen:
            self._trajectory.append((self._elapsed(), self._incumbent))
        self._seen = len(self._study.trials)
        self._report(report)

    def _report(self, report: Report) -> None:
        study = self._study
        failed = int(study.history.failed.sum())
        last = (*(trial.suggestion for trial in study.trials[-1:]), *study.pending)[-1:]
        fidelity = last[0].fidelity if last else None
        recorded = study.thinking + float(study.history.costs.sum())
        share = study.thinking / recorded if recorded > 0 else 0.0
        report(Snapshot(self._elapsed(), len(study.trials), failed, self._incumbent, fidelity, share))


def check_objective(objective: Objective, fidelities: tuple[str, ...]) -> None:
    """Refuse an objective that cannot be called as ``objective(config, size=...)``, before it runs.

    Raises:
        TypeError: If it is not callable, or not with these arguments.
    """
    wanted = f"def objective({', '.join(('config', *fidelities))})"
    if not callable(objective):
        raise TypeError(f"the objective must be a function such as `{wanted}`, got {objective!r}")
    try:
        signature = inspect.signature(objective)
    except ValueError:
        return  # some built-in functions have none; the first call will tell
    try:
        signature.bind(object(), **dict.fromkeys(fidelities))
    except TypeError as error:
        name = getattr(objective, "__name__", type(objective).__name__)
        raise TypeError(
            f"the objective must take the configuration first and the fidelities by name, as in `{wanted}`; "
            f"got {name}{signature}, which cannot be called so: {error}"
        ) from None


def _too_many(failures: int, trial: Trial) -> str:
    last = (trial.error or "unknown").strip()
    return (
        f"{failures} evaluations in a row failed (max_failures), so the run has ended; the record stays. "
        f"The last error was: {last.splitlines()[-1]}\n{last}"
    )
