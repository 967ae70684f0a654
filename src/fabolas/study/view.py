"""What can be read from a study: trials, answer, predictions, tables. ``Study``, ``Result`` and ``load`` share it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from fabolas._types import Array
from fabolas.direction import Direction, loss_or_value
from fabolas.display import counted, error_summary, safe_text
from fabolas.numeric_errors import default_error_state
from fabolas.plus_minus import beside
from fabolas.progress.text import loss as loss_text
from fabolas.progress.text import what_is_known
from fabolas.space import Space
from fabolas.strategies import Prediction, PredictiveStrategy, Strategy
from fabolas.strategies.incumbent import prefer_verified
from fabolas.study.html import AnswerText, study_as_html
from fabolas.study.table import frame_of
from fabolas.trials import History, Incumbent, Trial

if TYPE_CHECKING:
    from pandas import DataFrame

    from fabolas.plots import Plots

Trajectory = tuple[tuple[float, Incumbent], ...]


class ReadableRecord(Protocol):
    """The part of a study's record that a view needs."""

    @property
    def seed(self) -> int:
        """The seed of the study."""
        ...

    @property
    def direction(self) -> Direction:
        """Whether losses are minimised or maximised."""
        ...

    @property
    def history(self) -> History:
        """The ended trials."""
        ...

    @property
    def overhead(self) -> float:
        """Seconds of overhead."""
        ...

    @property
    def trajectory(self) -> Trajectory:
        """(seconds, incumbent) pairs."""
        ...


@dataclass(frozen=True)
class RecordCopy:
    """The record of a study at one moment."""

    seed: int
    direction: Direction
    history: History
    overhead: float
    trajectory: Trajectory


class StudyView(ABC):
    """A study that can be read. ``Study`` adds ask and tell, ``Result`` how a run ended.

    Args:
        space: The search space.
        record: The record of the study.
    """

    def __init__(self, space: Space, record: ReadableRecord) -> None:
        self.space = space
        self._record = record

    @property
    @abstractmethod
    def strategy(self) -> Strategy:
        """Computes the incumbent and predictions."""

    @property
    def seed(self) -> int:
        """The seed of the study."""
        return self._record.seed

    @property
    def direction(self) -> Direction:
        """Whether losses are minimised or maximised."""
        return self._record.direction

    @property
    def sign(self) -> float:
        """1 to minimise, -1 to maximise: ``sign * loss`` is always to be minimised."""
        return 1.0 if self.direction == "minimize" else -1.0

    @property
    def history(self) -> History:
        """All ended trials, and the same as arrays."""
        return self._record.history

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All ended trials, in the order in which they ended."""
        return self.history.trials

    @property
    def trajectory(self) -> Trajectory:
        """(seconds, incumbent) pairs: the answers that were computed while the study ran, all runs included.

        The seconds are ``trial.elapsed`` of the last trial that the answer is based on. If trials are very short, not
        each of them is followed by an answer. The last pair of a run that has ended is its answer. If that is not the
        incumbent (see ``verified_incumbent``), the last two pairs have the same seconds.
        """
        return self._record.trajectory

    @property
    def overhead(self) -> float:
        """Seconds that were spent on deciding what to evaluate."""
        return self._record.overhead

    @property
    def elapsed(self) -> float:
        """Seconds that the study has used."""
        return self.history.elapsed

    @property
    def spent(self) -> float:
        """Seconds in the record: all evaluations and all overhead."""
        return self.history.spent

    @property
    def overhead_share(self) -> float:
        """Overhead as a share of the time that the study has used."""
        return min(self.overhead / self.elapsed, 1.0) if self.elapsed > 0 else 0.0

    @default_error_state()
    def incumbent(self) -> Incumbent | None:
        """The evaluated configuration with the best expected loss at the target; None if there is none."""
        return self.strategy.incumbent(self.history)

    @default_error_state()
    def verified_incumbent(self) -> Incumbent | None:
        """The best configuration that was evaluated at the target, unless another one is clearly better.

        This is the answer of a run that verifies it. "Clearly" means by more than two standard deviations.
        """
        incumbent = self.strategy.incumbent(self.history)
        if incumbent is None or incumbent.verified:
            return incumbent
        return prefer_verified(
            incumbent, self.strategy.incumbent(self.history, verified_only=True), self.sign
        )

    @property
    def best_config(self) -> dict[str, Any]:
        """The evaluated configuration with the best expected loss at the target."""
        return dict(self._answer().config)

    @property
    def predicted_loss(self) -> float:
        """The predicted loss of ``best_config`` at the target."""
        return self._answer().loss

    @property
    def predicted_std(self) -> float:
        """The standard deviation of ``predicted_loss``."""
        return self._answer().std

    @property
    def verified(self) -> bool:
        """Whether ``best_config`` was evaluated at the target."""
        return self._answer().verified

    def predict(self, config: Mapping[str, Any], fidelity: Mapping[str, Any] | None = None) -> Prediction:
        """Loss and cost of a configuration as the models predict them, with uncertainty; arrays of length one.

        Args:
            config: A configuration of the space.
            fidelity: Fidelities by name; None for the target.

        Raises:
            TypeError: If the strategy has no model.
            ValueError: If no trial is complete, or the space has no such configuration.
        """
        return self.predict_points(self.space.encode(config, fidelity)[None])

    @default_error_state()
    def predict_points(self, points: Array) -> Prediction:
        """The same for points (m, d + f) of the unit cube."""
        if not isinstance(self.strategy, PredictiveStrategy):
            raise TypeError(
                f"strategy {self.strategy.name!r} has no model to predict with; choose one that has, such as "
                "'fabolas'"
            )
        if not self.history.complete.any():
            raise ValueError("a prediction needs at least one complete trial, got none")
        return self.strategy.predict(self.history, points)

    @property
    def plot(self) -> "Plots":
        """The figures of the study as methods, drawn with Plotly: ``study.plot.curves()``."""
        from fabolas.plots import Plots  # only those who plot wait for its imports

        return Plots(self)

    def report(self, path: str | Path) -> Path:
        """Write the report of the study to one HTML file that needs no network, and return its path.

        It has the answer, all figures, all trials and the record. An existing file is replaced.

        Args:
            path: The file to write, for example "report.html".

        Raises:
            ImportError: If plotly is not installed.
            ValueError: If the path is a database, for example the file of the study.
            OSError: If the file cannot be written.
        """
        from fabolas.report import write_report  # only those who report wait for its imports

        return write_report(self, path)

    def to_frame(self, *, reports: bool = False) -> "DataFrame":
        """The trials as a table of pandas with one row each, in the order in which they ended.

        With ``reports=True`` every point that a training reported on the way has a row of its own before that of its
        trial, with ``status`` "reported", its fidelity, its loss, and its cost since the start of the trial.

        Columns: ``id``, ``status``, ``loss``, ``cost``; ``fidelity_*`` and ``config_*``, what was evaluated;
        ``started`` and ``ended``, times in UTC; ``elapsed``, seconds that the study had used at the end; ``overhead``,
        ``effort``, ``predicted_cost`` and ``origin`` of the decision; ``info_*``, what the objective wanted to
        keep; ``error``. If a fidelity has reports also ``continues``, the trial whose training it continued, and
        ``stopped``, whether it stopped early.

        Raises:
            ImportError: If pandas is not installed.
        """
        return frame_of(self.space, self.trials, reports=reports)

    def __str__(self) -> str:
        if not self.trials:
            return "no answer: no trial has ended"
        incumbent, counts = self.incumbent(), self._counts_text()
        if incumbent is None:
            any_complete = self.history.complete.any()
            return f"{'nothing to recommend yet' if any_complete else 'no trial completed'}: {counts}"
        settings = ", ".join(f"{safe_text(name)}={_short(value)}" for name, value in incumbent.config.items())
        how = self._verification_text(incumbent)
        loss = loss_text(incumbent, self.history.best_measurement(self.sign))
        return f"best configuration: {settings}\n{self._headline(incumbent)}: {loss} ({how})\n{counts}"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        incumbent = self.incumbent()
        parts = None
        if incumbent is not None:
            loss = loss_text(incumbent, self.history.best_measurement(self.sign))
            parts = AnswerText(
                incumbent.config, self._headline(incumbent), loss, self._verification_text(incumbent)
            )
        return study_as_html(type(self).__name__, parts, self._counts_text(), self.trials)

    @property
    def _loss_word(self) -> str:
        """What the numbers of the objective are called."""
        return loss_or_value(self.direction)

    def _headline(self, incumbent: Incumbent) -> str:
        """What the number is that is shown with the answer."""
        return (
            f"best {self._loss_word} so far"
            if incumbent.preliminary
            else f"predicted {self._loss_word} at the target"
        )

    def _counts_text(self) -> str:
        """How many trials there are and how long they took, as text."""
        n, failed = len(self.trials), int(self.history.failed.sum())
        if not n:
            return "no trials yet"
        counts = f"{counted(n, 'trial')}{f' ({failed} failed)' if failed else ''}"
        share = f"{self.overhead_share:.0%} of the time for choosing them"
        return f"{counts} in {self.elapsed:.4g} s, {share}"

    def _verification_text(self, incumbent: Incumbent) -> str:
        """Whether the answer was verified, and what was measured then, as text."""
        if not incumbent.verified:
            return what_is_known(incumbent)
        at_target = self.space.is_at_target(self.history.points)
        trials = zip(self.history.trials, at_target, strict=True)
        there = [t.loss for t, full in trials if full and t.id in incumbent.trial_ids and t.loss is not None]
        measured = f": measured {beside(sum(there) / len(there), incumbent.std)} there" if there else ""
        losses = self.history.losses[self.history.complete]
        alike = measured and len(losses) > 1 and losses.min() == losses.max()
        return what_is_known(incumbent) + measured + (", as in all trials" if alike else "")

    def _answer(self) -> Incumbent:
        incumbent = self.incumbent()
        if incumbent is not None:
            return incumbent
        n_trials = counted(len(self.trials), "trial")
        if self.history.complete.any():
            raise RuntimeError(
                f"there is no best configuration yet: after {n_trials} the strategy recommends none "
                "for the target; continue with a larger budget"
            )
        last = self.trials[-1] if self.trials else None
        how = "was abandoned" if last is not None and last.status == "abandoned" else "failed"
        why = f"; the last one {how}: {safe_text(error_summary(last.error))}" if last else ""
        raise RuntimeError(f"there is no best configuration: of {n_trials} none completed{why}")


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else safe_text(repr(value))
