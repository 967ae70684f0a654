"""``minimize``: the arguments checked, the study opened, a place for its trials found, the loop run."""

import inspect
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabolas.budget import Budget
from fabolas.execution import Limits, place_for
from fabolas.history import Outcome
from fabolas.loop import Loop
from fabolas.result import Result
from fabolas.space import Fidelity, Space
from fabolas.storage import Storage
from fabolas.strategies import Strategy
from fabolas.study import Study

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace

Objective = Callable[..., "float | Outcome"]


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
    workers: int | None = None,
    executor: Executor | None = None,
    data: Any = None,
    trial_timeout: float | str | None = None,
    trial_memory: float | str | None = None,
    max_failures: int = 10,
    fresh_budget: bool = False,
    progress: bool = True,
    clock: Callable[[], float] = time.perf_counter,
    **options: Any,
) -> Result:
    """Find the configuration with the lowest loss at the target fidelity within the budget.

        result = fabolas.minimize(objective, {"C": fabolas.Float(1e-5, 1e5, log=True)},
                                  fidelities={"size": (100, 50_000)}, time_budget="30m")

    An evaluation that raises, returns no finite number, hangs or dies is recorded as failed, and the run goes on.
    Ctrl-C once ends the run when the running trials have ended, twice at once; either way with the result so far.

    Args:
        objective: Called as ``objective(config, size=...)``, and with ``data=`` if there are any; returns a loss or
            an Outcome.
        space: Hyperparameters by name, a ConfigurationSpace, or a Space.
        fidelities: Name -> (low, high) or Fidelity; the upper end is the target.
        time_budget: Seconds, or text such as "90s", "30m", "1h30m"; wall clock with our own thinking. What a
            continued storage has used counts. A running evaluation is not cut off.
        max_trials: Number of trials, failed ones and those of a continued storage included.
        strategy: Name of a strategy, or a strategy.
        storage: File to keep the record in; an existing one is continued. None keeps it in memory.
        seed: Whole number >= 0; None draws one.
        overhead: Seconds to record as thinking time of every suggestion, for exact reproduction.
        workers: Trials at once. One runs in this process; several, or one with a limit, in processes of their own.
        executor: Any ``concurrent.futures.Executor`` to run trials instead, of a cluster for example; ``workers``
            then says how many at once, None as many as it can.
        data: What the objective is to receive as ``data=``, handed to each worker once; None for nothing.
        trial_timeout: Seconds, or text such as "10m", after which a trial is killed and has failed; "auto" for ten
            times as long as predicted.
        trial_memory: Bytes, or text such as "2GB"; a trial that holds more is killed and has failed.
        max_failures: So many failures in a row end the run with an error.
        fresh_budget: Whether the budget counts from now on, and not what a continued storage has used.
        progress: Whether to show how it goes, on standard error.
        clock: Seconds from any origin.
        **options: For the strategy.

    Raises:
        ValueError: If the budget, the space, the storage or another argument is not what it should be.
        TypeError: If the objective cannot be called with the configuration and the fidelities, or not be pickled
            where it has to run in another process.
        RuntimeError: If ``max_failures`` evaluations in a row failed and none ever succeeded, or the storage is
            in use or cannot be written.
    """
    start = clock()
    budget = Budget.of(time_budget, max_trials)
    if not isinstance(max_failures, Real) or not max_failures >= 1:
        raise ValueError(
            f"max_failures must be a number >= 1, got {max_failures!r}; give a large one to go on whatever fails"
        )
    space = space if isinstance(space, Space) and fidelities is None else Space(space, fidelities)
    check_objective(objective, tuple(space.fidelities), data is not None)
    limits = Limits.of(trial_timeout, trial_memory)
    place = place_for(objective, data, workers, executor, limits, clock)
    try:
        study = Study(
            space, strategy=strategy, storage=storage, seed=seed, overhead=overhead, clock=clock, **options
        )
        with study:
            loop = Loop(
                study,
                place,
                budget,
                clock,
                start,
                fresh_budget=fresh_budget,
                max_failures=max_failures,
                limits=limits,
            )
            return loop(progress)
    finally:
        place.close()


def check_objective(objective: Objective, fidelities: tuple[str, ...], data: bool = False) -> None:
    """Refuse an objective that cannot be called as ``objective(config, size=...)``, before it runs.

    Args:
        objective: What will be called.
        fidelities: The names of the arguments it will be called with beside the configuration.
        data: Whether one more of them is ``data``.

    Raises:
        TypeError: If it is not callable, or not with these arguments.
        ValueError: If a fidelity has the name of the data.
    """
    if data and "data" in fidelities:
        raise ValueError(
            "a fidelity named 'data' and data= would arrive by the same name; rename the fidelity"
        )
    names = (*fidelities, "data") if data else fidelities
    wanted = f"def objective({', '.join(('config', *names))})"
    if not callable(objective):
        raise TypeError(f"the objective must be a function such as `{wanted}`, got {objective!r}")
    try:
        signature = inspect.signature(objective)
    except ValueError:
        return  # some built-in functions have none; the first call will tell
    try:
        signature.bind(object(), **dict.fromkeys(names))
    except TypeError as error:
        name = getattr(objective, "__name__", type(objective).__name__)
        raise TypeError(
            f"the objective must take the configuration first and the rest by name, as in `{wanted}`; "
            f"got {name}{signature}, which cannot be called so: {error}"
        ) from None
