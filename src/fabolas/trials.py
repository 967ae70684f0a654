"""The records of a study: Suggestion (handed out), Trial (ended), Incumbent (the answer), History (all trials)."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from fabolas._types import Array, BoolArray
from fabolas.curve_reports import EarlyStopRule, Report
from fabolas.plain_values import as_loss, encodable, read_as_copies, to_float, to_json

Status = Literal["complete", "failed", "abandoned"]
# Origins: how a suggestion was chosen. These are by a strategy; Hyperband names its brackets and rungs instead.
DESIGN = "design"  # the initial design
INFORMATION = "information"  # most information per second
BATCH = "batch"  # from the batch that an earlier decision kept
TARGET = "target"  # a target evaluation that was due
IMPROVEMENT = "improvement"  # expected improvement, where information is negligible
RANDOM = "random"  # no model chose it
# These are not by a strategy.
ENQUEUED = "enqueued"  # the user asked for it
VERIFICATION = "verification"  # the run verifies its answer
ADDED = "added"  # measured elsewhere
YEAR_10000 = 253_402_300_800.0  # seconds since the epoch; no date of Python is later


@read_as_copies("config", "fidelity")
@dataclass(frozen=True)
class Suggestion:
    """A configuration and the fidelity to evaluate it at, as handed out by a study.

    Attributes:
        id: Number of the suggestion in its study, from 0.
        config: Hyperparameters by name.
        fidelity: Fidelities by name, as the objective receives them.
        point: (d + f,) The same in the unit cube, read-only; the exact record of the suggestion.
        origin: How it was chosen, for example "design" or "information".
        overhead: Seconds that the decision took.
        effort: Effort level of the decision, from 0 (least) to 1 (full); 0 without a decision.
        predicted_cost: Predicted seconds of the evaluation, None if it was not predicted.
        continues: The id of the trial whose training it continues from the checkpoint; None to start from scratch.
        stop_rule: When the training should stop early; None for never. It is not stored: a suggestion that is handed
            out again after a restart does not stop early.
    """

    id: int
    config: dict[str, Any]
    fidelity: dict[str, float | int]
    point: Array = field(compare=False, repr=False)
    origin: str
    overhead: float = 0.0
    effort: float = 0.0
    predicted_cost: float | None = None
    continues: int | None = None
    stop_rule: EarlyStopRule | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.id < 0:
            raise ValueError(f"the id of a suggestion must be >= 0, got {self.id}")
        if not isinstance(self.origin, str):
            raise TypeError(f"the origin of a suggestion must be text, got {self.origin!r}")
        if not (math.isfinite(self.overhead) and self.overhead >= 0):
            raise ValueError(f"overhead must be a number of seconds >= 0, got {self.overhead}")
        if not (math.isfinite(self.effort) and self.effort >= 0):
            raise ValueError(f"effort must be a number >= 0, got {self.effort}")
        if self.predicted_cost is not None:
            predicted = as_cost(
                self.predicted_cost, "a predicted cost", remedy="leave it out if nothing predicts it"
            )
            object.__setattr__(self, "predicted_cost", predicted)
        object.__setattr__(self, "point", _frozen_point(self.point))


@dataclass(frozen=True)
class Outcome:
    """What an objective may return instead of a loss alone.

    Attributes:
        loss: The number to minimise, between -1e100 and 1e100.
        cost: Seconds that the evaluation counts for; None takes the measured time.
        info: Anything to keep. It is stored as JSON: arrays and tensors become lists, keys become strings, and a
            value that JSON cannot represent becomes its ``repr``.
    """

    loss: float
    cost: float | None = None
    info: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "loss", as_loss(self.loss))
        if self.cost is not None:
            object.__setattr__(self, "cost", as_cost(self.cost))
        object.__setattr__(self, "info", as_info(self.info))


@read_as_copies("info")
@dataclass(frozen=True)
class Trial:
    """A suggestion that has ended, with a loss or with the reason why there is none.

    A trial is "failed" if its evaluation failed, and "abandoned" if the study stopped waiting for it: the process
    ended, or the user interrupted it. A failure says something about the configuration; an abandoned trial does not.

    Both have ``loss=None`` and an ``error``. Their cost is 0 only if they never started, or if it is not known how long
    they ran. A trial that was measured elsewhere has the cost 0 if it is not known.

    Attributes:
        suggestion: What was evaluated.
        status: How it ended.
        loss: What the objective returned, with its sign; None without a loss.
        cost: Seconds that the evaluation took, or that the objective stated.
        info: What the objective wanted to keep.
        error: Why there is no loss; None if there is one.
        elapsed: Seconds that the study had used when the trial ended: costs and overhead if trials ran one after
            another, wall-clock time if they ran at the same time. The study sets it.
        started: When the evaluation started, in seconds since the epoch; None if that is not known.
        ended: When its outcome was returned, in seconds since the epoch; None if that is not known.
        reports: What the training reported on the way, ascending in the fidelity. Those of a failed or abandoned
            trial were measured too.
        stopped: Whether the training was stopped early. It is then an evaluation at its last report.
        restarted: Whether it should have continued another training, but had to start from scratch.
    """

    suggestion: Suggestion
    status: Status
    loss: float | None
    cost: float
    info: dict[str, Any] = field(default_factory=dict)
    error: str | None = None
    elapsed: float = 0.0
    started: float | None = field(default=None, compare=False)
    ended: float | None = field(default=None, compare=False)
    reports: tuple[Report, ...] = ()
    stopped: bool = False
    restarted: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.elapsed) and self.elapsed >= 0):
            raise ValueError(f"elapsed must be a number of seconds >= 0, got {self.elapsed}")
        for when in (self.started, self.ended):
            if when is not None and not 0 <= when < YEAR_10000:
                raise ValueError(f"started and ended must be seconds since the epoch, got {when!r}")
        if self.status == "complete":
            if self.error is not None:
                raise ValueError(f"a complete trial has no error, got {self.error!r}; use status 'failed'")
            object.__setattr__(self, "loss", as_loss(self.loss))
            if not (self.cost == 0 and self.suggestion.origin == ADDED):
                object.__setattr__(self, "cost", as_cost(self.cost))
        elif self.status in ("failed", "abandoned"):
            if self.loss is not None:
                raise ValueError(
                    f"a trial with status {self.status!r} has loss=None, got {self.loss}; keep other numbers in info"
                )
            if not self.error:
                raise ValueError(f"a trial with status {self.status!r} needs its reason as error, got none")
            object.__setattr__(self, "error", encodable(self.error))
            if not (math.isfinite(self.cost) and self.cost >= 0):
                raise ValueError(
                    f"the cost of a trial with status {self.status!r} must be seconds >= 0, got {self.cost}"
                )
        else:
            raise ValueError(f"status must be 'complete', 'failed' or 'abandoned', got {self.status!r}")
        if self.stopped and not (self.reports and self.status == "complete"):
            raise ValueError("a stopped trial is complete at its last report, got no report or no loss")
        object.__setattr__(self, "info", as_info(self.info))

    @property
    def id(self) -> int:
        """The id of the suggestion."""
        return self.suggestion.id

    @property
    def config(self) -> dict[str, Any]:
        """The configuration of the suggestion."""
        return self.suggestion.config

    @property
    def fidelity(self) -> dict[str, float | int]:
        """The fidelities of the suggestion, or where a stopped training ended."""
        return dict(self.reports[-1].fidelity) if self.stopped else self.suggestion.fidelity

    @property
    def point(self) -> Array:
        """(d + f,) The configuration and these fidelities in the unit cube."""
        return self.reports[-1].point if self.stopped else self.suggestion.point


@read_as_copies("config")
@dataclass(frozen=True)
class Incumbent:
    """The answer: the evaluated configuration with the lowest expected loss at the target fidelity.

    Attributes:
        config: The configuration.
        loss: Its predicted loss at the target, in the user's units.
        std: Standard deviation of that prediction.
        verified: Whether it was evaluated at the target.
        trial_ids: The complete trials of this configuration, at any fidelity.
        preliminary: Whether the prediction is less certain than the spread of all measured losses. Then ``loss`` and
            ``std`` are those of a uniform distribution from the lowest possible loss to the upper quartile of the
            measured losses, and displays show what was measured.
    """

    config: dict[str, Any]
    loss: float
    std: float
    verified: bool
    trial_ids: tuple[int, ...]
    preliminary: bool = False

    def __post_init__(self) -> None:
        loss = to_float(self.loss, "the loss of an incumbent")
        if not math.isfinite(loss):  # a prediction may lie outside the range of losses
            raise ValueError(f"the loss of an incumbent must be a finite number, got {loss}")
        object.__setattr__(self, "loss", loss)
        if not (math.isfinite(self.std) and self.std >= 0):
            raise ValueError(f"std of an incumbent must be finite and >= 0, got {self.std}")
        if not self.trial_ids:
            raise ValueError("an incumbent is an evaluated configuration, got no trial_ids")


@dataclass(frozen=True)
class History:
    """All ended trials of a study, in the order in which they ended. Appending returns a new history.

    The arrays are computed once and are read-only. Without a trial, ``points`` is (0, 0).

    Attributes:
        trials: The trials.
        checkpoints: Ids of the trials whose checkpoint exists; None assumes that every checkpoint exists.
    """

    trials: tuple[Trial, ...] = ()
    checkpoints: frozenset[int] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "trials", tuple(self.trials))
        ids = [trial.id for trial in self.trials]
        if len(set(ids)) < len(ids):
            twice = sorted({i for i in ids if ids.count(i) > 1})
            raise ValueError(f"a suggestion ends once, got several trials for {twice}")
        widths = {trial.suggestion.point.size for trial in self.trials}
        if len(widths) > 1:
            raise ValueError(f"all points of a history have the same length, got lengths {sorted(widths)}")

    def __len__(self) -> int:
        return len(self.trials)

    def append(self, trial: Trial) -> "History":
        """A new history with this trial at the end. Arrays that were computed before are extended, not recomputed.

        ``checkpoints`` stays as it is, so if it is not None, the new trial counts as having none.

        Raises:
            ValueError: If the suggestion has ended before, or its point has another length.
        """
        trials = (*self.trials, trial)
        if not self.trials or trial.id in self._ids or trial.suggestion.point.size != self.points.shape[1]:
            return History(trials, self.checkpoints)  # which checks all trials
        longer = object.__new__(History)
        longer.__dict__.update(trials=trials, checkpoints=self.checkpoints, _ids=self._ids | {trial.id})
        for name in _ENTRIES.keys() & self.__dict__.keys():
            column = self.__dict__[name]
            last = np.array([_ENTRIES[name](trial)], dtype=column.dtype)
            longer.__dict__[name] = _read_only(np.concatenate([column, last]))
        return longer

    def best_measurement(self, sign: float = 1.0) -> Trial | None:
        """The trial with the lowest loss at any fidelity; None if none is complete.

        Args:
            sign: 1 if lower losses are better, -1 if higher ones are.
        """
        if not self.complete.any():
            return None
        return self.trials[int(np.nanargmin(sign * self.losses))]

    def with_checkpoints(self, ids: frozenset[int] | None) -> "History":
        """The same trials, of which only these have a checkpoint."""
        return self if ids == self.checkpoints else self._copy(checkpoints=ids)

    def _copy(self, **changed: Any) -> "History":
        other = object.__new__(History)
        kept = {"trials", "checkpoints", "_ids", *_ENTRIES} & self.__dict__.keys()
        other.__dict__.update({name: self.__dict__[name] for name in kept} | changed)
        return other

    def with_costs(self, costs: Array) -> "History":
        """The same trials with other costs (n,) and without overhead."""
        other = self._copy()
        other.__dict__.update(costs=_read_only(np.array(costs)), overheads=_read_only(np.zeros(len(self))))
        return other

    def _column(self, name: str, dtype: type = float) -> Any:
        return _read_only(np.array([_ENTRIES[name](trial) for trial in self.trials], dtype=dtype))

    @cached_property
    def _ids(self) -> frozenset[int]:
        return frozenset(trial.id for trial in self.trials)

    @cached_property
    def points(self) -> Array:
        """(n, d + f) The points of the trials in the unit cube."""
        points: Array = self._column("points") if self.trials else _read_only(np.empty((0, 0)))
        return points

    @cached_property
    def losses(self) -> Array:
        """(n,) The losses; NaN without a loss."""
        losses: Array = self._column("losses")
        return losses

    @cached_property
    def costs(self) -> Array:
        """(n,) Seconds that each evaluation took; 0 if that is unknown."""
        costs: Array = self._column("costs")
        return costs

    @cached_property
    def failed(self) -> BoolArray:
        """(n,) Whether the trial failed."""
        failed: BoolArray = self._column("failed", bool)
        return failed

    @cached_property
    def abandoned(self) -> BoolArray:
        """(n,) Whether the trial was abandoned."""
        abandoned: BoolArray = self._column("abandoned", bool)
        return abandoned

    @cached_property
    def complete(self) -> BoolArray:
        """(n,) Whether the trial has a loss."""
        complete: BoolArray = self._column("complete", bool)
        return complete

    @cached_property
    def overheads(self) -> Array:
        """(n,) Seconds that each decision took."""
        overheads: Array = self._column("overheads")
        return overheads

    @cached_property
    def efforts(self) -> Array:
        """(n,) Effort level of each decision, from 0 (least) to 1 (full)."""
        efforts: Array = self._column("efforts")
        return efforts

    @cached_property
    def added(self) -> BoolArray:
        """(n,) Whether the trial was measured elsewhere. Its cost is no part of the study's time."""
        added: BoolArray = self._column("added", bool)
        return added

    @cached_property
    def spent(self) -> float:
        """Seconds of all evaluations and all overhead, without what was measured elsewhere."""
        return math.fsum(self.costs[~self.added].tolist()) + math.fsum(self.overheads.tolist())

    @property
    def elapsed(self) -> float:
        """Seconds that the study had used when the last trial ended; 0.0 before the first."""
        return self.trials[-1].elapsed if self.trials else 0.0

    def typical_overhead(self, last: int = 5) -> float:
        """Median overhead of the last suggestions of this study in seconds; 0.0 before the first."""
        overheads = self.overheads[~self.added][-last:]
        return float(np.median(overheads)) if len(overheads) else 0.0


# The value of a trial in each array of a history.
_ENTRIES: dict[str, Callable[[Trial], Any]] = {
    "points": lambda trial: trial.point,
    "losses": lambda trial: math.nan if trial.loss is None else trial.loss,
    "costs": lambda trial: trial.cost,
    "failed": lambda trial: trial.status == "failed",
    "abandoned": lambda trial: trial.status == "abandoned",
    "complete": lambda trial: trial.status == "complete",
    "added": lambda trial: trial.suggestion.origin == ADDED,
    "overheads": lambda trial: trial.suggestion.overhead,
    "efforts": lambda trial: trial.suggestion.effort,
}


def as_cost(value: object, what: str = "a cost", remedy: str = "leave it out to have it measured") -> float:
    """A cost in seconds as a plain float.

    Raises:
        TypeError: If it is not a single real number.
        ValueError: If it is not positive and finite.
    """
    cost = to_float(value, what)
    if not (math.isfinite(cost) and cost > 0):
        raise ValueError(f"{what} must be a finite number of seconds > 0, got {cost}; {remedy}")
    return cost


def as_info(info: object) -> dict[str, Any]:
    """The info of an outcome in the types of JSON.

    Raises:
        TypeError: If it is not a mapping.
    """
    if info is None:
        return {}
    if not isinstance(info, Mapping):
        raise TypeError(f"info must be a dict such as {{'accuracy': 0.9}}, got {type(info).__name__}")
    as_json: dict[str, Any] = to_json(info)
    return as_json


def _frozen_point(point: Array) -> Array:
    point = np.array(point, dtype=float)
    if point.ndim != 1 or not bool(np.isfinite(point).all()):
        raise ValueError(f"a point must be (d + f,) finite numbers, got shape {point.shape}: {point}")
    frozen: Array = _read_only(point)
    return frozen


def _read_only(array: Any) -> Any:
    array.flags.writeable = False
    return array
