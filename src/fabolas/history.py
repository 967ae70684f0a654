"""What was suggested and what came of it: frozen records, and the same as arrays for the models."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from typing import Any, Literal

import numpy as np

from fabolas._types import Array, BoolArray

Status = Literal["complete", "failed", "lost"]


@dataclass(frozen=True)
class Suggestion:
    """A configuration and the fidelity to evaluate it at, as handed out by a study.

    Attributes:
        id: Number of the suggestion in its study, from 0.
        config: Hyperparameters by name.
        fidelity: Fidelities by name, as the objective receives them.
        point: (d + f,) The same in the unit cube, read-only; the exact record of the suggestion.
        thinking: Seconds it took to decide.
        effort: Share of the full effort that went into the decision.
        predicted_cost: Seconds the evaluation is expected to take, None where nothing predicts it.
        origin: What decided, "design" or "model" for example.
    """

    id: int
    config: dict[str, Any]
    fidelity: dict[str, float | int]
    point: Array = field(compare=False, repr=False)
    thinking: float = 0.0
    effort: float = 1.0
    predicted_cost: float | None = None
    origin: str = "model"

    def __post_init__(self) -> None:
        if self.id < 0:
            raise ValueError(f"the id of a suggestion must be >= 0, got {self.id}")
        if not (math.isfinite(self.thinking) and self.thinking >= 0):
            raise ValueError(f"thinking must be a number of seconds >= 0, got {self.thinking}")
        if not (math.isfinite(self.effort) and self.effort >= 0):
            raise ValueError(f"effort must be a number >= 0, got {self.effort}")
        if self.predicted_cost is not None:
            object.__setattr__(self, "predicted_cost", as_cost(self.predicted_cost, "a predicted cost"))
        object.__setattr__(self, "config", dict(self.config))
        object.__setattr__(self, "fidelity", dict(self.fidelity))
        object.__setattr__(self, "point", _frozen_point(self.point))


@dataclass(frozen=True)
class Outcome:
    """What an objective may return instead of a bare loss.

    Attributes:
        loss: The number to minimise.
        cost: Seconds the evaluation is to count for; None takes the measured time.
        info: Anything worth keeping. It is stored as JSON: arrays become lists, keys become strings, and what
            JSON cannot hold is kept as its ``repr``.
    """

    loss: float
    cost: float | None = None
    info: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "loss", as_loss(self.loss))
        if self.cost is not None:
            object.__setattr__(self, "cost", as_cost(self.cost))
        object.__setattr__(self, "info", as_info(self.info))


@dataclass(frozen=True)
class Trial:
    """A suggestion that has ended, with a loss or with the reason why there is none.

    A trial has failed if the evaluation did; it is lost if nobody waited for it: the process ended, or the user
    interrupted it. A failure says something about its configuration, a loss of this kind nothing.

    A failed trial has ``loss=None`` and an ``error``; its cost is 0 only where nobody knows how long it ran.

    Trials that run side by side cost more seconds than pass. ``elapsed`` is then how many seconds the study had
    used by the clock when the trial ended; None says that trials ran one after another.
    """

    suggestion: Suggestion
    status: Status
    loss: float | None
    cost: float
    info: dict[str, Any] = field(default_factory=dict)
    error: str | None = None
    elapsed: float | None = None

    def __post_init__(self) -> None:
        if self.elapsed is not None and not (math.isfinite(self.elapsed) and self.elapsed >= 0):
            raise ValueError(f"elapsed must be a number of seconds >= 0, got {self.elapsed}")
        if self.status == "complete":
            if self.error is not None:
                raise ValueError(f"a complete trial has no error, got {self.error!r}; make it a failed one")
            object.__setattr__(self, "loss", as_loss(self.loss))
            object.__setattr__(self, "cost", as_cost(self.cost))
        elif self.status in ("failed", "lost"):
            if self.loss is not None:
                raise ValueError(
                    f"a {self.status} trial has loss=None, got {self.loss}; keep other numbers in info"
                )
            if not self.error:
                raise ValueError(f"a {self.status} trial needs its reason as error, got none")
            object.__setattr__(self, "error", _text(self.error))
            if not (math.isfinite(self.cost) and self.cost >= 0):
                raise ValueError(f"the cost of a {self.status} trial must be seconds >= 0, got {self.cost}")
        else:
            raise ValueError(f"status must be 'complete', 'failed' or 'lost', got {self.status!r}")
        object.__setattr__(self, "info", as_info(self.info))

    @property
    def id(self) -> int:
        """The suggestion's number."""
        return self.suggestion.id

    @property
    def config(self) -> dict[str, Any]:
        """The suggestion's configuration."""
        return self.suggestion.config

    @property
    def fidelity(self) -> dict[str, float | int]:
        """The suggestion's fidelities."""
        return self.suggestion.fidelity


@dataclass(frozen=True)
class Incumbent:
    """The one answer: the evaluated configuration with the lowest expected loss at the target fidelity.

    Attributes:
        config: The configuration.
        loss: Its predicted loss at the target, in the user's units.
        std: Standard deviation of that prediction.
        verified: Whether it was ever run to completion at the target.
        trial_ids: The complete trials of this configuration, at any fidelity.
    """

    config: dict[str, Any]
    loss: float
    std: float
    verified: bool
    trial_ids: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "config", dict(self.config))
        object.__setattr__(self, "loss", as_loss(self.loss))
        if not (math.isfinite(self.std) and self.std >= 0):
            raise ValueError(f"std of an incumbent must be finite and >= 0, got {self.std}")
        if not self.trial_ids:
            raise ValueError("an incumbent is an evaluated configuration, got no trial_ids")


@dataclass(frozen=True)
class History:
    """All ended trials of a study in the order in which they ended; appending makes a new history.

    The arrays are computed once and read-only. Without a trial ``points`` is (0, 0).
    """

    trials: tuple[Trial, ...] = ()

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
        """A new history that ends with this trial; what is known of the others is taken over, not worked out anew.

        Raises:
            ValueError: If its suggestion has ended before, or its point is of another length.
        """
        trials = (*self.trials, trial)
        if not self.trials or trial.id in self._ids or trial.suggestion.point.size != self.points.shape[1]:
            return History(trials)  # which checks them all, and says what is wrong
        longer = object.__new__(History)
        longer.__dict__.update(trials=trials, _ids=self._ids | {trial.id})
        for name in _ENTRIES.keys() & self.__dict__.keys():
            column = self.__dict__[name]
            last = np.array([_ENTRIES[name](trial)], dtype=column.dtype)
            longer.__dict__[name] = _read_only(np.concatenate([column, last]))
        return longer

    def priced(self, costs: Array) -> "History":
        """The same record as if each trial had cost so much, (n,), and thinking nothing."""
        other = object.__new__(History)
        kept = {"trials", "_ids", *_ENTRIES} & self.__dict__.keys()
        other.__dict__.update({name: self.__dict__[name] for name in kept})
        other.__dict__.update(costs=_read_only(np.array(costs)), thinking=_read_only(np.zeros(len(self))))
        return other

    def _column(self, name: str, dtype: type = float) -> Any:
        return _read_only(np.array([_ENTRIES[name](trial) for trial in self.trials], dtype=dtype))

    @cached_property
    def _ids(self) -> frozenset[int]:
        return frozenset(trial.id for trial in self.trials)

    @cached_property
    def _stamps(self) -> Array:
        stamps: Array = self._column("_stamps")
        return stamps

    @cached_property
    def points(self) -> Array:
        """(n, d + f) Where each trial was, in the unit cube."""
        points: Array = self._column("points") if self.trials else _read_only(np.empty((0, 0)))
        return points

    @cached_property
    def losses(self) -> Array:
        """(n,) The losses, NaN where there is none."""
        losses: Array = self._column("losses")
        return losses

    @cached_property
    def costs(self) -> Array:
        """(n,) Seconds each evaluation took; 0 where a failed one took nobody knows how long."""
        costs: Array = self._column("costs")
        return costs

    @cached_property
    def failed(self) -> BoolArray:
        """(n,) Whether the trial failed."""
        failed: BoolArray = self._column("failed", bool)
        return failed

    @cached_property
    def lost(self) -> BoolArray:
        """(n,) Whether the trial was lost."""
        lost: BoolArray = self._column("lost", bool)
        return lost

    @cached_property
    def complete(self) -> BoolArray:
        """(n,) Whether there is a loss."""
        complete: BoolArray = self._column("complete", bool)
        return complete

    @cached_property
    def thinking(self) -> Array:
        """(n,) Seconds it took to decide each trial."""
        thinking: Array = self._column("thinking")
        return thinking

    @cached_property
    def efforts(self) -> Array:
        """(n,) Share of the full effort that went into each decision."""
        efforts: Array = self._column("efforts")
        return efforts

    @cached_property
    def spent(self) -> float:
        """Seconds the record accounts for: all evaluations and all thinking."""
        return math.fsum(self.costs.tolist()) + math.fsum(self.thinking.tolist())

    @cached_property
    def elapsed(self) -> float:
        """Seconds that have passed for this record: what is spent, where trials ran one after another.

        Trials that ran side by side say themselves how late it was when they ended.
        """
        told = np.flatnonzero(~np.isnan(self._stamps))
        after = int(told[-1]) + 1 if len(told) else 0
        until = float(self._stamps[told[-1]]) if len(told) else 0.0
        return until + (math.fsum(self.costs[after:].tolist()) + math.fsum(self.thinking[after:].tolist()))

    def overhead(self, last: int = 5) -> float:
        """Median thinking time of the last suggestions in seconds, 0.0 before the first."""
        return float(np.median(self.thinking[-last:])) if self.trials else 0.0


# What each trial contributes to each array of a history.
_ENTRIES: dict[str, Callable[[Trial], Any]] = {
    "points": lambda trial: trial.suggestion.point,
    "losses": lambda trial: math.nan if trial.loss is None else trial.loss,
    "costs": lambda trial: trial.cost,
    "failed": lambda trial: trial.status == "failed",
    "lost": lambda trial: trial.status == "lost",
    "complete": lambda trial: trial.status == "complete",
    "thinking": lambda trial: trial.suggestion.thinking,
    "efforts": lambda trial: trial.suggestion.effort,
    "_stamps": lambda trial: math.nan if trial.elapsed is None else trial.elapsed,
}


def as_loss(value: object) -> float:
    """A loss as a plain float, or an error that says why it is none.

    Raises:
        TypeError: If it is not a single real number.
        ValueError: If it is NaN or infinite.
    """
    loss = _as_float(value, "a loss")
    if not math.isfinite(loss):
        raise ValueError(
            f"a loss must be a finite number, got {loss}; record such an evaluation with fail(...)"
        )
    return loss


def as_cost(value: object, what: str = "a cost") -> float:
    """A cost in seconds as a plain float, or an error that says why it is none.

    Raises:
        TypeError: If it is not a single real number.
        ValueError: If it is not positive and finite.
    """
    cost = _as_float(value, what)
    if not (math.isfinite(cost) and cost > 0):
        raise ValueError(
            f"{what} must be a finite number of seconds > 0, got {cost}; leave it out to have it measured"
        )
    return cost


def as_info(info: object) -> dict[str, Any]:
    """The info of an outcome made of what JSON can hold.

    Raises:
        TypeError: If it is not a mapping.
    """
    if info is None:
        return {}
    if not isinstance(info, Mapping):
        raise TypeError(f"info must be a dict such as {{'accuracy': 0.9}}, got {type(info).__name__}")
    plainly: dict[str, Any] = plain(info)
    return plainly


def plain(value: Any) -> Any:
    """The value in the very types of JSON, not in subclasses of them; what JSON cannot hold becomes its ``repr``.

    Another process may not know the subclass: an enumeration of the user's script, for example.
    """
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        # Python refuses to write out numbers of more than 4,300 digits in base ten.
        return int.__int__(value) if value.bit_length() < 10_000 else hex(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return {_text(key if isinstance(key, str) else str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return shown(value)


def shown(value: object, width: int | None = None) -> str:
    """The ``repr`` of anything, on one line of so many characters if a width is given; also where it raises."""
    try:
        text = _text(repr(value))
    except Exception as error:  # noqa: BLE001 - it is the user's, and may do anything
        text = f"<{type(value).__name__}, whose repr raises {type(error).__name__}>"
    if width is None:
        return text
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 3] + "..."


def _text(value: str) -> str:
    r"""The same text as a plain string that can be encoded: half a surrogate pair is written out as ``\udcff``."""
    return str.__str__(value).encode("utf-8", "backslashreplace").decode()


def _as_float(value: object, what: str) -> float:
    # A 0-d array or tensor is a number too; its item is a Python scalar.
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, Real):
        got = f"{shown(value, 60)} of type {type(value).__name__}"
        raise TypeError(f"{what} must be a single number, got {got}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(
            f"{what} must be a finite number, got {shown(value, 60)}, too large for one"
        ) from None


def _frozen_point(point: Array) -> Array:
    point = np.array(point, dtype=float)
    if point.ndim != 1 or not bool(np.isfinite(point).all()):
        raise ValueError(f"a point must be (d + f,) finite numbers, got shape {point.shape}: {point}")
    frozen: Array = _read_only(point)
    return frozen


def _read_only(array: Any) -> Any:
    array.flags.writeable = False
    return array
