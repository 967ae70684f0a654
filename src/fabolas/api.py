"""The public entry points: ``minimize`` and ``maximize`` run a search, ``Result`` holds its answer."""

import inspect
import secrets
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fabolas.budget import Budget, Clock, Duration, Timer, seconds_of
from fabolas.caller_warning import warn_caller
from fabolas.direction import Direction
from fabolas.display import counted, error_summary, safe_lines, safe_text
from fabolas.engine import Callback, Engine, RunSummary
from fabolas.execution import Limits, Objective, backend_for, wants_context
from fabolas.execution.checkpoints import CheckpointLimits
from fabolas.execution.limits import bytes_of
from fabolas.interrupts import Interrupts
from fabolas.keywords import check_keywords
from fabolas.policy import AskUntilUsedUp, Policy
from fabolas.progress import show_progress
from fabolas.progress.text import loss as loss_text
from fabolas.space import Fidelity, Space
from fabolas.stopping import StopRules
from fabolas.storage import Storage
from fabolas.strategies import PredictiveStrategy, Strategy, option_names
from fabolas.study import Study, StudyView
from fabolas.study.initial import InitialConfig, check_initial, enqueue_initial
from fabolas.study.view import RecordCopy
from fabolas.trials import Incumbent
from fabolas.verification import VerifyingPolicy, why_unverified

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace
    from distributed import Client


class Result(StudyView):
    """The answer of a run, and everything that can be read from its study.

    Args:
        study: The study when the run ended.
        summary: How the run ended.
        unverified: Why the answer is not verified; see the attribute.
        n_before: How many trials the study had before the run.

    Attributes:
        interrupted: Whether Ctrl-C ended the run.
        given_up: Why the run ended before its budget was used up, for example too many failures in a row; None
            if it did not.
        stopped: Why ``target_loss``, ``patience`` or ``study.stop()`` ended the run; None if none did.
        unverified: Why the answer is not verified at the target; None if it is, or if the run did not have to verify it
            (see ``verify`` of ``minimize``).
    """

    def __init__(
        self,
        study: StudyView,
        summary: RunSummary,
        unverified: str | None = None,
        *,
        n_before: int = 0,
    ) -> None:
        super().__init__(
            study.space,
            RecordCopy(study.seed, study.direction, study.history, study.overhead, study.trajectory),
        )
        self._strategy, self._summary = study.strategy, summary
        self.interrupted, self.given_up, self.stopped = summary.interrupted, summary.given_up, summary.stopped
        self.unverified, self._n_before = unverified, n_before

    @property
    def strategy(self) -> Strategy:
        """The strategy of the run, as it was at the end."""
        return self._strategy

    @property
    def elapsed(self) -> float:
        """Seconds used of the budget of this run: wall-clock time, or the recorded time if that is more.

        With ``fresh_budget=True`` the time of earlier runs is not included, unlike in ``Study.elapsed``.
        """
        return self._summary.elapsed

    @property
    def overhead_share(self) -> float:
        """Overhead as a share of the time that the study has used."""
        total = self._summary.study_elapsed
        return min(self.overhead / total, 1.0) if total > 0 else 0.0

    def incumbent(self) -> Incumbent | None:
        """The answer when the run ended; None if no trial was completed, or if the strategy recommends none."""
        return self._summary.incumbent

    def _verification_text(self, incumbent: Incumbent) -> str:
        known = super()._verification_text(incumbent)
        if self.unverified is None:
            return known
        return (
            f"{known}; not verified: {self.unverified}"
            if incumbent.preliminary
            else f"{known}: {self.unverified}"
        )

    def _counts_text(self) -> str:
        counts, n_now = super()._counts_text(), len(self.trials) - self._n_before
        if not self._n_before:
            return counts
        if n_now or self.interrupted:
            return (
                f"{counts}\nthe study was continued: {counted(self._n_before, 'trial')} before, {n_now} now"
            )
        ended_early = self.stopped or self.given_up
        why = (
            ", because earlier runs of this study have used up the budget; give a larger one, fresh_budget=True or "
            "another storage"
            if ended_early is None
            else f": {ended_early}"
        )
        return f"{counts}\nno trial was run now{why}"

    def __repr__(self) -> str:
        counts = f"{counted(len(self.trials), 'trial')} in {self.elapsed:.4g} s"
        incumbent = self.incumbent()
        best = (
            "no answer"
            if incumbent is None
            else loss_text(incumbent, self.history.best_measurement(self.sign))
        )
        return f"<Result: {best}, {counts}, seed {self.seed}>"


def minimize(
    objective: Objective,
    space: "Mapping[str, Any] | ConfigurationSpace | Space",
    fidelities: Mapping[str, Fidelity | tuple[float, float]] | None = None,
    *,
    time_budget: Duration | None = None,
    max_trials: int | None = None,
    direction: Direction = "minimize",
    initial: Sequence[InitialConfig] = (),
    strategy: str | Strategy = "fabolas",
    storage: str | Path | Storage | None = None,
    seed: int | None = None,
    overhead: float | None = None,
    workers: int | None = None,
    executor: "Executor | Client | str | None" = None,
    data: Any = None,
    trial_timeout: Duration | None = None,
    trial_memory: float | str | None = None,
    max_failures: int = 10,
    fresh_budget: bool = False,
    verify: bool = True,
    target_loss: float | None = None,
    patience: Duration | None = None,
    min_improvement: float = 0.0,
    grace: Duration | None = None,
    callbacks: Sequence[Callback] = (),
    trial_directory: str | Path | None = None,
    max_checkpoints: int = 20,
    checkpoint_space: float | str = "10GB",
    keep_checkpoints: bool = False,
    progress: bool = True,
    clock: Clock = time.perf_counter,
    **options: Any,
) -> Result:
    """Find the configuration with the lowest loss at the target fidelity within the budget.

        result = fabolas.minimize(objective, {"C": fabolas.Float(1e-5, 1e5, log=True)},
                                  fidelities={"size": (100, 50_000)}, time_budget="30m")

    An evaluation that raises, hangs, dies or does not return a finite number is recorded as failed, and the run
    goes on. The first Ctrl-C ends the run after the running trials, the second one at once; both return the
    result so far.

    The answer is verified: part of the budget is kept to evaluate the best configuration at the target before the run
    ends. If it disappoints there, the next best is evaluated with what is left. If the budget cannot hold one
    evaluation at the target, a warning says so as soon as that is predicted, and ``result.unverified`` says it again.

    Args:
        objective: Called as ``objective(config, size=...)``, and with ``data=`` if ``data`` is given; returns a
            loss or an Outcome. If it has a parameter ``trial``, it also gets a TrialContext: the number of the trial,
            its worker, the budget left, and a directory of its own.
        space: Hyperparameters by name, a ConfigurationSpace, or a Space.
        fidelities: Name -> (low, high) or Fidelity; the upper end is the target.
        time_budget: Seconds, text such as "90s", "30 min" or "1h30m", or a timedelta: wall-clock time, our own
            overhead included. It starts when the first trial can start: after the storage was opened, and after the
            first worker process has loaded the objective and the data. The time that a continued storage has used
            counts. Trials that run at its end are waited for (see ``grace``).
        max_trials: Number of trials, failed ones and those of a continued storage included.
        direction: "minimize", or "maximize" if the objective returns a score: ``fabolas.maximize`` is the same.
        initial: Configurations to evaluate first, for example the one in use today. Each is a dict, evaluated at a
            fidelity that the strategy chooses (cheap at first), or a pair (configuration, fidelities). Those that a
            continued storage already has are not evaluated again.
        strategy: Name of a strategy, or a strategy.
        storage: File that keeps the record; an existing one is continued. None keeps it in memory.
        seed: Whole number >= 0; None draws one.
        overhead: Seconds to record as overhead of every suggestion instead of the measured time. A run is then exactly
            reproducible if it has one worker and ``max_trials`` but no ``time_budget``, and if the objective states its
            costs (``Outcome(loss, cost=...)``).
        workers: Number of trials at once. One runs in this process; several, or one with a limit, run in
            processes of their own.
        executor: Runs the trials instead: any ``concurrent.futures.Executor``, a Dask ``Client``, or the address of
            a Ray cluster such as "auto" or "ray://head:10001". ``workers`` then says how many at once, None as many
            as it can.
        data: Passed to the objective as ``data=``; each worker receives it once. None passes nothing.
        trial_timeout: Seconds, or text such as "10m", after which a trial is killed and recorded as failed;
            "auto" means ten times the predicted time.
        trial_memory: Bytes, or text such as "2GB"; a trial that holds more is killed and recorded as failed.
        max_failures: The run ends after this many failures in a row.
        fresh_budget: Whether to count the budget from now. Time and trials of earlier runs then do not count.
        verify: Whether to verify the answer at the target. If not, the whole budget is spent as the strategy decides,
            and the answer may be a prediction. Strategies without a model, such as "random", are not affected: their
            answer is always one that was measured at the target.
        target_loss: The run ends as soon as a trial at the target has a loss at least this good. Predictions and
            trials below the target do not count.
        patience: The run ends if the answer has improved by at most ``min_improvement`` for this long. The improvement
            is the loss of the answer that long ago minus the loss of the present answer, both as the present models
            predict them at the target. Time counts from the first complete trial at the target. Give it time for
            several trainings on all the data.
        min_improvement: See ``patience``. With 0.0 every new answer with a lower predicted loss is an improvement.
        grace: How long trials that run at the end of the time budget are waited for. After that they are abandoned
            with a warning. By default one minute, or half of the time budget if that is longer. Trials in this
            process (one worker, no limits) cannot be abandoned. Without a time budget there is no such limit; give a
            ``trial_timeout``. The start of worker processes does not count towards the budget, for at most this time.
        callbacks: Functions that are called as ``callback(study, trial)`` after each trial. ``study.stop()`` ends the
            run. If a callback raises an exception, running trials are waited for, and then it is raised here.
        trial_directory: Where each trial gets its ``trial.directory``. By default ``FILE-trials`` beside the storage,
            or a directory for temporary files. Empty directories of trials are removed when the run ends.
        max_checkpoints: How many trainings have a checkpoint at the same time, at most, if a fidelity is declared with
            ``resume=True``. Those that may be continued with the best predicted loss are kept.
        checkpoint_space: Bytes of all checkpoints together, at most, or text such as "10GB".
        keep_checkpoints: Whether checkpoints stay when the run ends. Those of a run that was killed stay too.
        progress: Whether to show progress on standard error.
        clock: A function that returns seconds from any origin.
        **options: Options of the strategy.

    Raises:
        ValueError: If the budget, the space, the storage or another argument is not valid.
        TypeError: If the objective cannot be called with the configuration and the fidelities, or cannot be
            pickled although it has to run in another process.
        RuntimeError: If trials failed and none was completed, with the last error and its traceback, or if the
            storage is in use or cannot be written.
    """
    check_keywords(options, minimize, option_names(strategy))
    budget = Budget.of(time_budget, max_trials)
    space = space if isinstance(space, Space) and fidelities is None else Space(space, fidelities)
    _check_limits_and_hooks(max_failures, callbacks)
    check_initial(space, initial)
    check_objective(objective, tuple(space.fidelities), data is not None, tuple(space.names))
    _warn_without_reports(objective, space)
    limits = Limits.of(trial_timeout, trial_memory)
    stop_rules, grace = StopRules.of(target_loss, patience, min_improvement), _grace_seconds(grace, budget)
    checkpoint_limits = _checkpoint_limits(max_checkpoints, checkpoint_space, keep_checkpoints)
    backend = backend_for(objective, data, workers, executor, limits, clock)
    options |= {"direction": direction, "strategy": strategy, "storage": storage, "seed": seed}
    with (
        Interrupts() as interrupts,
        closing(backend),
        Study(space, overhead=overhead, clock=clock, **options) as study,
    ):
        enqueue_initial(study, initial)
        policy, n_before = _policy(study, verify), len(study.trials)
        engine = Engine(
            study,
            backend,
            budget,
            Timer(clock),
            fresh_budget=fresh_budget,
            max_failures=max_failures,
            policy=policy,
            limits=limits,
            callbacks=callbacks,
            stop_rules=stop_rules,
            trial_directory=_trial_directory(trial_directory, storage),
            checkpoint_limits=checkpoint_limits,
            grace=grace,
        )
        with show_progress(progress, budget, clock) as display:
            summary = engine.run(display if progress else None, interrupts)
        _check_answer(study, summary)
        unverified = why_unverified(study, budget, summary.incumbent) if policy.verifies else None
        return Result(study, summary, unverified, n_before=n_before)


def _policy(study: Study, verify: bool) -> Policy:
    """A policy that verifies the answer if the strategy predicts losses at the target from smaller fidelities."""
    predicts = bool(study.space.fidelities) and isinstance(study.strategy, PredictiveStrategy)
    return VerifyingPolicy() if verify and predicts else AskUntilUsedUp()


def maximize(
    objective: Objective,
    space: "Mapping[str, Any] | ConfigurationSpace | Space",
    fidelities: Mapping[str, Fidelity | tuple[float, float]] | None = None,
    **settings: Any,
) -> Result:
    """Find the configuration with the highest value at the target; the arguments are those of ``minimize``.

    Losses, predictions and tables have the sign of what the objective returns: ``result.predicted_loss`` is the
    predicted value of the best configuration.
    """
    if "direction" in settings:
        raise TypeError("maximize() has no argument 'direction'; minimize has")
    strategy = settings.get("strategy", "fabolas")
    unknown = [name for name in settings if name not in inspect.signature(minimize).parameters]
    check_keywords(unknown, minimize, option_names(strategy), called="maximize")
    return minimize(objective, space, fidelities, **{**settings, "direction": "maximize"})


def _check_limits_and_hooks(max_failures: float, callbacks: object) -> None:
    if not isinstance(max_failures, Real) or not max_failures >= 1:
        raise ValueError(
            f"max_failures must be a number >= 1, got {max_failures!r}; give a large one to never end the run early"
        )
    if not isinstance(callbacks, Sequence) or not all(callable(callback) for callback in callbacks):
        raise TypeError(
            f"callbacks must be a list of functions such as `def callback(study, trial)`, got {callbacks!r}"
        )


def _trial_directory(given: str | Path | None, storage: str | Path | Storage | None) -> str:
    """Where trials get directories of their own; none is created here."""
    if given is not None:
        return str(Path(given).expanduser().absolute())
    file = getattr(storage, "path", storage)
    if isinstance(file, str | Path):
        return f"{Path(file).expanduser().absolute()}-trials"
    return str(Path(tempfile.gettempdir()) / f"fabolas-{secrets.token_hex(6)}")


def _checkpoint_limits(count: int, space: float | str, keep: bool) -> CheckpointLimits:
    if isinstance(count, bool) or not isinstance(count, Integral) or count < 0:
        raise ValueError(f"max_checkpoints must be a whole number >= 0, got {count!r}; 0 continues nothing")
    return CheckpointLimits(int(count), bytes_of(space, "checkpoint_space"), keep)


def _grace_seconds(grace: Duration | None, budget: Budget) -> float | None:
    if grace is None:
        return None
    if budget.seconds is None:
        raise ValueError(
            "grace is the time after the end of a time_budget, got no time_budget; give one, or a trial_timeout"
        )
    return seconds_of(grace, "grace")


def check_objective(
    objective: Objective,
    fidelities: tuple[str, ...],
    has_data: bool = False,
    hyperparameters: tuple[str, ...] = (),
) -> None:
    """Refuse an objective that cannot be called as ``objective(config, size=...)``, before the first trial.

    Args:
        objective: What will be called.
        fidelities: The names of the arguments that it receives beside the configuration.
        has_data: Whether it also receives ``data``.
        hyperparameters: The names of the hyperparameters.

    Raises:
        TypeError: If it is not callable, or not with these arguments, or if its first parameter has the name of a
            hyperparameter: it receives the whole configuration there.
        ValueError: If a fidelity is named "data" and there is data to pass.
    """
    if has_data and "data" in fidelities:
        raise ValueError(
            "a fidelity named 'data' and data= would be passed by the same name; rename the fidelity"
        )
    names = (*fidelities, "data") if has_data else fidelities
    if wants_context(objective, names):
        names = (*names, "trial")
    wanted = f"def objective({', '.join(('config', *names))})"
    if not callable(objective):
        raise TypeError(f"the objective must be a function such as `{wanted}`, got {objective!r}")
    try:
        signature = inspect.signature(objective)
    except ValueError:
        return  # some built-in functions have no signature; the first call will show
    first = next(iter(signature.parameters), "")
    if first in hyperparameters and first != "config":
        raise TypeError(
            f"the objective receives the whole configuration as its first argument, as in `{wanted}`, and takes "
            f"{first} from it: config[{first!r}]; got an objective whose first parameter is named {first!r}, which is "
            "a hyperparameter"
        )
    try:
        signature.bind(object(), **dict.fromkeys(names))
    except TypeError as error:
        name = getattr(objective, "__name__", type(objective).__name__)
        raise TypeError(
            f"the objective must take the configuration first and the rest by name, as in `{wanted}`; "
            f"got {name}{signature}, which cannot be called like this: {error}"
        ) from None


def _warn_without_reports(objective: Objective, space: Space) -> None:
    """Warn if a fidelity is declared with reports, but the objective cannot report."""
    name = space.curve_name
    if name is not None and not wants_context(objective, tuple(space.fidelities)):
        resume = " and continues none" if space.resumes else ""
        warn_caller(
            f"the fidelity {name!r} is declared with reports=True, but the objective has no parameter `trial`, so it "
            f"reports nothing on the way{resume}; add the parameter and call trial.report({name}=..., loss=...), or "
            "leave reports=True out"
        )


class NoAnswerError(RuntimeError):
    """Trials of a run failed, or it gave up, and no trial of its study is complete."""


class GaveUpWarning(RuntimeWarning):
    """The run gave up, and there is an answer. The command line prints it as a message instead."""


def _check_answer(study: Study, summary: RunSummary) -> None:
    """Raise if trials failed and none is complete. If the run gave up otherwise, warn: there is a result."""
    history = study.history
    if history.complete.any():
        if summary.given_up is not None:
            warn_caller(summary.given_up, GaveUpWarning)
        return
    if summary.given_up is not None:
        raise NoAnswerError(summary.given_up)
    if history.failed.any() and not summary.interrupted:
        error = history.trials[int(np.flatnonzero(history.failed)[-1])].error or ""
        last = safe_text(error_summary(error))
        lines = f"\n{safe_lines(error.strip())}" if "\n" in error.strip() else ""
        raise NoAnswerError(
            f"no trial completed: {int(history.failed.sum())} of {len(history)} failed. The last error was: "
            f"{last}{lines}"
        )
