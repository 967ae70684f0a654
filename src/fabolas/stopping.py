"""How a run ends before its budget is used up: Ctrl-C, failures, a loss that is good enough, or no improvement."""

import math
from dataclasses import dataclass
from numbers import Real

from fabolas.budget import Duration, seconds_of
from fabolas.display import error_summary, safe_lines, safe_text
from fabolas.execution import Ended
from fabolas.strategies import PredictiveStrategy
from fabolas.study import Study
from fabolas.trials import Trial

_ANSWER_SHARE = 0.1  # for patience the answer is computed again when it is older than this share of it


@dataclass(frozen=True)
class StopRules:
    """When a run ends early.

    Attributes:
        target_loss: It ends as soon as a trial at the target has a loss at least as good; None for never. Predictions
            and trials below the target do not count.
        patience: It ends if the answer has improved by at most ``min_improvement`` over this many seconds, see
            ``StopConditions.answer_improvement``. None for never.
        min_improvement: See ``patience``.
    """

    target_loss: float | None = None
    patience: float | None = None
    min_improvement: float = 0.0

    @classmethod
    def of(
        cls, target_loss: float | None, patience: Duration | None, min_improvement: float = 0.0
    ) -> "StopRules":
        """The rules from the user's arguments.

        Raises:
            ValueError: If a number is not finite, or is negative although it must not be.
            TypeError: If an argument has another type.
        """
        if target_loss is not None:
            _check_number("target_loss", target_loss, -math.inf)
        _check_number("min_improvement", min_improvement, 0.0)
        seconds = None if patience is None else seconds_of(patience, "patience")
        return cls(None if target_loss is None else float(target_loss), seconds, float(min_improvement))


NO_STOP_RULES = StopRules()


class StopConditions:
    """Watches the trials and the answers of a run."""

    def __init__(self, rules: StopRules, study: Study) -> None:
        self._rules, self._study = rules, study
        self._best = math.inf  # loss at the target, times the study's sign
        self._first_at_target: float | None = None  # `elapsed` of the first complete trial at the target
        self._n_answers = 0  # in the trajectory when patience was last checked
        for trial in study.trials:
            self.note(trial)

    def note(self, trial: Trial) -> None:
        """Record a trial that has ended."""
        if trial.loss is None or not self._study.space.is_at_target(trial.point[None])[0]:
            return
        self._best = min(self._best, self._study.sign * trial.loss)
        if self._first_at_target is None:
            self._first_at_target = trial.elapsed

    @property
    def answer_is_due(self) -> bool:
        """Whether the answer must be computed again for patience: the last one is older than a tenth of it."""
        if self._rules.patience is None:
            return False
        last = self._study.trajectory[-1][0] if self._study.trajectory else -math.inf
        return self._study.history.elapsed - last >= _ANSWER_SHARE * self._rules.patience

    def why_stop(self) -> str | None:
        """Why the run should end now, as a sentence; None if it should go on."""
        rules, sign = self._rules, self._study.sign
        if rules.target_loss is not None and self._best <= sign * rules.target_loss:
            return (
                f"a trial at the target has the loss {sign * self._best:.6g}, and target_loss is "
                f"{rules.target_loss:.6g}"
            )
        if rules.patience is None or len(self._study.trajectory) == self._n_answers:
            return None
        self._n_answers = len(self._study.trajectory)
        improvement = self.answer_improvement(rules.patience)
        if improvement is None or improvement > rules.min_improvement:
            return None
        return (
            f"the expected improvement of the answer over the last {rules.patience:.4g} s (patience) is "
            f"{improvement:.3g}, and min_improvement is {rules.min_improvement:.3g}"
        )

    def answer_improvement(self, seconds: float) -> float | None:
        """Loss of the answer ``seconds`` ago minus the loss of the present answer; None if it is too early.

        Both losses are predicted at the target by the present models. A strategy without a model compares what it
        measured. It is too early until ``seconds`` have passed since the first complete trial at the target, measured
        by ``trial.elapsed``.
        """
        study = self._study
        if self._first_at_target is None or not study.trajectory:
            return None
        elapsed, answer = study.trajectory[-1]
        earlier = [each for at, each in study.trajectory if at <= elapsed - seconds]
        if not earlier or self._first_at_target > elapsed - seconds:
            return None
        if earlier[-1].config == answer.config:
            return 0.0
        if not isinstance(study.strategy, PredictiveStrategy):
            return study.sign * (earlier[-1].loss - answer.loss)
        before, now = (float(study.predict(each.config).loss[0]) for each in (earlier[-1], answer))
        return study.sign * (before - now)


class Shutdown:
    """Whether a run is ending, and why. It has two steps: no new trial starts; then running trials are stopped too.

    Args:
        max_failures: The run ends after this many failures in a row.

    Attributes:
        begun: Whether no new trial is started.
        at_once: Whether running trials are stopped too.
        interrupted: Whether Ctrl-C ended the run.
        given_up: Why the run gave up, as a sentence; None if it did not.
        stopped: Why a stop condition or ``study.stop()`` ended the run; None if none did.
        error: What a callback raised; None if nothing.
    """

    def __init__(self, max_failures: float) -> None:
        self._max_failures = max_failures
        self._failures = 0  # in a row
        self.begun = self.at_once = self.interrupted = False
        self.given_up: str | None = None
        self.stopped: str | None = None
        self.error: BaseException | None = None

    @property
    def why(self) -> str | None:
        """Why the run ends before its budget is used up; None if it does not."""
        why = self.given_up or self.stopped
        return "interrupted" if why is None and self.interrupted else why

    def stop_if(self, why: str | None) -> None:
        """Start no new trial if there is a reason."""
        if why is not None and not self.begun:
            self.stopped, self.begun = why, True

    def check_failures(self, ended: Ended, trial: Trial) -> None:
        """Give up if no further trial can be run, or if too many trials in a row have failed."""
        self._failures = self._failures + 1 if ended.status == "failed" else 0
        if self.given_up is None and ended.fatal:
            self.given_up = (
                "no trial can be run any more, so the run has ended; its record is kept: "
                f"{safe_lines(ended.error)}"
            )
        if self.given_up is None and self._failures >= self._max_failures:
            last = (trial.error or "unknown").strip()
            in_a_row = "1 trial" if self._failures == 1 else f"{self._failures} trials in a row"
            self.given_up = (
                f"{in_a_row} failed (max_failures), so the run has ended; its record is kept. "
                f"The last error was: {safe_text(error_summary(last))}\n{safe_lines(last)}"
            )
        self.begun = self.begun or self.given_up is not None

    def fail(self, error: BaseException) -> None:
        """Start no new trial, because a callback has raised this."""
        self.error, self.begun = error, True

    def interrupt(self) -> None:
        """Ctrl-C: start no new trial. A signal handler may call this."""
        self.interrupted = self.interrupted or not self.begun
        self.begun = True

    def interrupt_at_once(self) -> None:
        """Ctrl-C: stop running trials too. A signal handler may call this."""
        self.interrupted = self.at_once = True


def _check_number(name: str, value: object, least: float) -> None:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {value!r}")
    if not (math.isfinite(float(value)) and float(value) >= least):
        raise ValueError(f"{name} must be finite{' and >= 0' if least == 0 else ''}, got {value!r}")
