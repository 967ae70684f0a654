"""What a run tells the user while it runs: lines of the log, and snapshots for the progress display."""

import logging

from fabolas.caller_warning import warn_caller
from fabolas.display import counted, error_summary, safe_text
from fabolas.numeric_errors import default_error_state
from fabolas.policy import RunState
from fabolas.progress import ProgressDisplay, Snapshot, duration
from fabolas.progress.text import loss as loss_text
from fabolas.trials import Trial

log = logging.getLogger("fabolas")
log.addHandler(logging.NullHandler())  # nothing on the terminal unless the user configures logging


def warn(text: str) -> None:
    """Say something that the user should know, in the log and as a Python warning."""
    log.warning("%s", text)
    warn_caller(text, RuntimeWarning)


class RunLog:
    """Logs a run and shows its progress.

    Args:
        run: How far the run is.
        progress: Shows progress; None shows nothing.
    """

    def __init__(self, run: RunState, progress: ProgressDisplay | None) -> None:
        self._run, self._progress = run, progress

    def run_started(self) -> None:
        """The run starts."""
        study, budget = self._run.study, self._run.budget
        limits = [] if budget.seconds is None else [duration(budget.seconds)]
        limits += [] if budget.trials is None else [counted(budget.trials, "trial")]
        at_once = f"{self._run.n_workers} at once" if self._run.n_workers > 1 else "one at a time"
        before = f", after {counted(len(study.trials), 'earlier trial')}" if study.trials else ""
        name, seed = study.strategy.name, study.seed
        log.info("run started: %s, seed %s, %s, %s%s", name, seed, " or ".join(limits), at_once, before)

    def trial_ended(self, trial: Trial) -> None:
        """A trial has ended."""
        where = ", ".join(f"{name}={value}" for name, value in trial.fidelity.items())
        how = f"loss {trial.loss:.6g}" if trial.loss is not None else error_summary(trial.error)
        text = f"trial {trial.id} {trial.status}: {how}, {trial.cost:.4g} s{f', {where}' if where else ''}"
        log.info("%s", safe_text(text))

    def run_ended(self, why: str | None) -> None:
        """The run has ended; ``why`` is None if its budget is used up."""
        run, incumbent, used = self._run, self._run.incumbent, self._run.used
        best = "no answer"
        if incumbent is not None:
            best = f"best {loss_text(incumbent, run.study.history.best_measurement(run.study.sign))}"
        counts = f"{used.trials} trials in {duration(used.seconds)}"
        log.info("run ended: %s, %s%s", counts, best, "" if why is None else f" ({safe_text(why)})")

    def notice(self, text: str) -> None:
        """Show a message in the display; a signal handler may call this."""
        if self._progress is not None:
            self._progress.notice(text)

    @default_error_state()
    def show(self) -> None:
        """Show how far the run is."""
        # A snapshot looks at every trial: with thousands of short ones, that is most of a step.
        if self._progress is None:
            return
        run, study, used = self._run, self._run.study, self._run.used
        self._progress.update(
            Snapshot.of(
                study.space,
                study.history,
                study.running,
                study.running_for,
                elapsed=used.seconds,
                study_elapsed=used.study_seconds,
                overhead=study.overhead,
                incumbent=run.incumbent,
                trials_before=len(study.trials) - used.trials,
                sign=study.sign,
            )
        )
