"""The answer of a study in numbers and in sentences: what to use, how good it is, and what the search cost."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fabolas.direction import loss_or_value
from fabolas.display import error_summary, safe_text
from fabolas.plots.durations import duration
from fabolas.plots.labels import fidelity_text
from fabolas.plots.ticks import number, power_of_ten
from fabolas.plus_minus import beside, fixed, justified_decimals, justified_digits
from fabolas.report.readable import ReportableStudy, strategy_problem
from fabolas.strategies import PredictiveStrategy
from fabolas.trials import Incumbent, Trial

PLUS_MINUS = "The ± is one standard deviation of the prediction."
_NO_BREAK = "\u00a0"  # a space at which no line ends
_MAX_MEASUREMENTS = 5  # at the target that are listed
_SMALLEST_PLAIN, _LARGEST_PLAIN = 1e-3, 1e9  # beyond these, a loss has a power of ten, as in the figures


@dataclass(frozen=True)
class FullTraining:
    """Time of one training of the best configuration at the target.

    Attributes:
        seconds: The mean of the measured times, or the predicted time.
        measured: Whether it was measured.
    """

    seconds: float
    measured: bool


@dataclass(frozen=True)
class Answer:
    """What a study recommends, and what it rests on.

    Attributes:
        incumbent: The recommended configuration; None if there is none.
        what: What is predicted: "loss" or "value".
        best_trial: The complete trial with the best loss at any fidelity; None if there is none.
        target: The fidelities of the target, empty without fidelities.
        measured: Losses of the configuration that were measured at the target.
        full_training: What one training of it takes at the target; None if nothing is known about it.
        elapsed: Seconds that the search has used.
        overhead_share: Share of them that was spent on choosing trials.
        trials: Number of ended trials.
        failed: How many of them failed.
        last_failure: The newest trial that failed; None if none did.
    """

    incumbent: Incumbent | None
    what: str
    best_trial: Trial | None
    target: dict[str, float | int]
    measured: tuple[float, ...]
    full_training: FullTraining | None
    elapsed: float
    overhead_share: float
    trials: int
    failed: int
    last_failure: Trial | None

    @classmethod
    def of(cls, study: ReportableStudy) -> "Answer":
        """Return the answer of a study."""
        incumbent = recommended(study)
        at_target = () if incumbent is None else _trials_at_target(study, incumbent)
        failures = [trial for trial in study.trials if trial.status == "failed"]
        return cls(
            incumbent=incumbent,
            what=loss_or_value(study.direction),
            best_trial=study.history.best_measurement(study.sign),
            target={name: fidelity.high for name, fidelity in study.space.fidelities.items()},
            measured=tuple(trial.loss for trial in at_target if trial.loss is not None),
            full_training=None if incumbent is None else _full_training(study, incumbent, at_target),
            elapsed=study.elapsed,
            overhead_share=study.overhead_share,
            trials=len(study.trials),
            failed=len(failures),
            last_failure=failures[-1] if failures else None,
        )

    @property
    def full_trainings(self) -> float | None:
        """What the search cost, in full trainings; None if that is not known."""
        return None if self.full_training is None else self.elapsed / self.full_training.seconds

    def loss(self) -> str:
        """The predicted loss: 0.0312 ± 0.0041."""
        assert self.incumbent is not None
        return plus_minus(self.incumbent.loss, self.incumbent.std)

    @property
    def preliminary(self) -> bool:
        """Whether it is too early to predict the loss at the target."""
        return self.incumbent is not None and self.incumbent.preliminary

    def too_early(self) -> str:
        """Say in a sentence that nothing can be said about the target yet, and what was measured."""
        assert self.best_trial is not None
        assert self.best_trial.loss is not None
        return (
            f"It is too early to predict the {self.what}{self.where()}. The best {self.what} so far is "
            f"{plain(self.best_trial.loss)}, measured with {fidelity_text(self.best_trial.fidelity)}."
        )

    def where(self) -> str:
        """Where the loss is predicted, as the end of a sentence."""
        if not self.target:
            return ""
        each = (fidelity_text({name: value}) for name, value in self.target.items())
        return f" at the target ({', '.join(text.replace(' ', _NO_BREAK) for text in each)})"

    def verification(self) -> str:
        """Say in a sentence what the predicted loss rests on."""
        assert self.incumbent is not None
        if not self.measured:
            n = len(self.incumbent.trial_ids)
            trials = "one trial" if n == 1 else f"{number(n)} trials"
            if self.preliminary:
                return f"The configuration was evaluated below the target only, in {trials}."
            return (
                f"This is a prediction: the configuration was evaluated below the target only, in {trials}. "
                f"{PLUS_MINUS}"
            )
        shown = ", ".join(plain(loss, self.incumbent.std) for loss in self.measured[-_MAX_MEASUREMENTS:])
        times = "once" if len(self.measured) == 1 else f"{number(len(self.measured))} times"
        last = "" if len(self.measured) <= _MAX_MEASUREMENTS else "last "
        there = "there" if self.target else ""
        said = f"It was evaluated {there} {times}, with the {last}{self.what} {shown}.".replace("  ", " ")
        return said if self.incumbent.std == 0.0 else f"{said} {PLUS_MINUS}"

    def cost(self, *, running: bool = False) -> str:
        """Say in a sentence what the search cost, or has cost so far."""
        one = self._one_training()
        if not self.elapsed > 0:
            known = f" One training of {one}." if one else ""
            return f"No time is recorded: the trials were measured elsewhere, or their costs are not known.{known}"
        took = f"The search {'has taken' if running else 'took'} {duration(self.elapsed)}"
        overhead = f"{percent(self.overhead_share)} of it for choosing trials"
        if self.full_trainings is None:
            return f"{took}, {overhead}."
        return f"{took}, {overhead}. That is {count(self.full_trainings)}: one training of {one}."

    def _one_training(self) -> str:
        """What one training of the configuration takes, as the end of a sentence; nothing if it is not known."""
        if self.full_training is None:
            return ""
        how = "takes" if self.full_training.measured else "is predicted to take"
        where = " at the target" if self.target else ""
        return f"this configuration{where} {how} {duration(self.full_training.seconds)}"

    def why_none(self) -> str:
        """Say in a sentence why there is no answer."""
        if not self.trials:
            return "There is no answer yet: no trial has ended."
        if self.last_failure is not None and self.failed == self.trials:
            names = {1: "the only trial", 2: "both trials"}
            all_failed = names.get(self.trials, f"all {number(self.trials)} trials")
            return f"There is no answer: {all_failed} failed."
        return (
            f"There is no answer yet: after {number(self.trials)} {'trial' if self.trials == 1 else 'trials'} the "
            "strategy recommends no configuration."
        )

    def last_error(self) -> str:
        """Say in a sentence how the newest failure failed; nothing if there is none."""
        if self.last_failure is None:
            return ""
        return f"The last error was: {safe_text(error_summary(self.last_failure.error))}"


def recommended(study: ReportableStudy) -> Incumbent | None:
    """Return what the strategy recommends; if it cannot be made from the file, the last answer of its run."""
    if strategy_problem(study) is None:
        return study.incumbent()
    return study.trajectory[-1][1] if study.trajectory else None


def _trials_at_target(study: ReportableStudy, incumbent: Incumbent) -> tuple[Trial, ...]:
    """Return the complete trials of the incumbent at the target."""
    ids = set(incumbent.trial_ids)
    own = [trial for trial in study.trials if trial.id in ids]
    points = np.array([trial.suggestion.point for trial in own])
    return tuple(trial for trial, there in zip(own, study.space.is_at_target(points), strict=True) if there)


def _full_training(
    study: ReportableStudy, incumbent: Incumbent, at_target: tuple[Trial, ...]
) -> FullTraining | None:
    if at_target:
        return FullTraining(float(np.mean([trial.cost for trial in at_target])), measured=True)
    if strategy_problem(study) is not None or not isinstance(study.strategy, PredictiveStrategy):
        return None
    predicted = study.predict_points(_at_target(study, incumbent))
    return FullTraining(float(predicted.cost[0]), measured=False)


def _at_target(study: ReportableStudy, incumbent: Incumbent) -> Any:
    """Return the point (1, d + f) of the incumbent at the target."""
    first = next(trial for trial in study.trials if trial.id == incumbent.trial_ids[0])
    point = first.suggestion.point.copy()
    point[study.space.dim :] = 1.0
    return point[None]


def plus_minus(value: float, std: float) -> str:
    """Return a value with its standard deviation, both with the same last digit, which the deviation justifies."""
    if not 0 < std < math.inf or not math.isfinite(value):
        return plain(value)
    size = max(abs(value), std)
    power = 0 if _SMALLEST_PLAIN <= size < _LARGEST_PLAIN else math.floor(math.log10(size))
    value, std = value / 10.0**power, std / 10.0**power
    decimals = justified_decimals(value, std)
    text = f"{fixed(value, decimals)} ± {fixed(max(std, 10.0**-decimals), decimals)}"
    return f"({text})×{power_of_ten(power)}" if power else text


def plain(value: float, std: float = 0.0) -> str:
    """Return a value as text with four digits, or with those that its standard deviation justifies if they are more."""
    if _SMALLEST_PLAIN <= abs(value) < _LARGEST_PLAIN:
        return beside(value, std)
    digits = justified_digits(value, std) if 0 < std < math.inf else 4
    return number(value, digits).replace("−", "-")


def count(full_trainings: float) -> str:
    """Return a number of full trainings as text: "6.3 full trainings"."""
    text = f"{full_trainings:.2g}" if full_trainings < 10 else f"{full_trainings:,.0f}"
    return f"{text} full training{'' if text == '1' else 's'}"


def percent(share: float) -> str:
    """Return a share as text: "3 %"."""
    text = "less than 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"
    return text.replace(" %", f"{_NO_BREAK}%")
