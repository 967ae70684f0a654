"""What a storage has to implement, and the records that it exchanges with a study.

To add a storage, write a class with the ten methods of ``Storage``. ``memory.py`` is the shortest example.
Then add the class to the fixture of ``tests/storage/test_contract.py``: these tests are the contract.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from fabolas._types import Array
from fabolas.budget import RunBudget
from fabolas.curve_reports import Report
from fabolas.direction import Direction
from fabolas.space import Space
from fabolas.storage.option_values import encode
from fabolas.trials import History, Incumbent, Suggestion, Trial


@dataclass(frozen=True)
class Identity:
    """What makes two studies the same study: the space with its fidelities, the direction, the strategy, the seed.

    Attributes:
        space: The space.
        strategy: The strategy's name.
        options: The strategy's options.
        seed: The seed.
        seed_given: Whether the user gave the seed. A seed that was drawn is replaced by the recorded one. A seed
            that was given must equal the recorded one.
        direction: Whether losses are minimised or maximised.
    """

    space: Space
    strategy: str
    options: dict[str, Any]
    seed: int
    seed_given: bool = True
    direction: Direction = "minimize"

    def describe(self) -> dict[str, Any]:
        """The identity as values that JSON can hold."""
        own = {"strategy": self.strategy, "options": encode(self.options), "seed": self.seed}
        return {"space": self.space.describe(), "direction": self.direction, **own}

    def differences(self, recorded: dict[str, Any]) -> list[str]:
        """How a recorded description differs from this identity, one sentence per difference."""
        found = list(self.space.differences(recorded["space"]))
        options = encode(self.options)
        if recorded["direction"] != self.direction:
            found.append(f"its direction is {recorded['direction']!r}, you asked for {self.direction!r}")
        if recorded["strategy"] != self.strategy:
            found.append(f"its strategy is {recorded['strategy']!r}, you asked for {self.strategy!r}")
        elif recorded["options"] != options:
            found.append(f"its strategy options are {recorded['options']}, you asked for {options}")
        if self.seed_given and recorded["seed"] != self.seed:
            found.append(f"its seed is {recorded['seed']}, you asked for {self.seed}")
        return found


@dataclass(frozen=True)
class Record:
    """Everything that a storage knows about a study.

    Attributes:
        seed: The recorded seed. The study uses it instead of the one in its identity.
        suggestions: All suggestions, ordered by id.
        trials: All trials that the study was told, in the order in which they ended.
        state: The strategy's arrays after the last suggestion; None before the first one.
        started: Suggestion id -> when its evaluation started, in seconds since the epoch. A suggestion whose
            evaluation did not start is missing here.
        early_outcomes: Outcomes that workers returned and that the study was not told yet, in the order of their
            arrival.
        trajectory: (elapsed, incumbent) pairs, in the order in which they were computed.
        reports: Suggestion id -> what its training reported on the way, for suggestions without a trial. The reports
            of a trial are in the trial.
    """

    seed: int
    suggestions: tuple[Suggestion, ...] = ()
    trials: tuple[Trial, ...] = ()
    state: dict[str, Array] | None = None
    started: dict[int, float] = field(default_factory=dict)
    early_outcomes: tuple[Trial, ...] = ()
    trajectory: tuple[tuple[float, Incumbent], ...] = ()
    reports: dict[int, tuple[Report, ...]] = field(default_factory=dict)

    @property
    def open_suggestions(self) -> tuple[Suggestion, ...]:
        """Suggestions without a trial."""
        ended = {trial.id for trial in self.trials}
        return tuple(s for s in self.suggestions if s.id not in ended)


class UnwritableError(RuntimeError):
    """A step could not be written. Everything that was written before is still in the storage."""


class Storage(Protocol):
    """Stores the record of one study. A study opens it once, writes every step, and never reads it again.

    Every storage promises:

    - Numbers come back exactly. The point of a suggestion is its exact record: ``config`` and ``fidelity`` are
      ``identity.space.decode(point)``.
    - A process that is killed at any moment leaves a record that can be opened.
    - A step that cannot be written raises ``UnwritableError``, and the record stays as it was before the step.
    - One study at a time uses the record.
    - ``add_start``, ``add_report`` and ``add_early_outcome`` may be called from any thread while the storage is open.
      The other methods are called from the study's own thread only.
    """

    def open(self, identity: Identity) -> Record:
        """Start a study, or continue the recorded one.

        Raises:
            ValueError: If the record belongs to another study (see ``check_same_study``); the record is unchanged.
            RuntimeError: If the record is in use.
        """
        ...

    def add_suggestion(self, suggestion: Suggestion, state: dict[str, Array], started: float | None) -> None:
        """Store a suggestion and the strategy's state after it: both, or neither of them.

        Args:
            suggestion: The suggestion; its id is new.
            state: The strategy's arrays.
            started: When its evaluation started, in seconds since the epoch; None if it has not started.
        """
        ...

    def add_start(self, suggestion_id: int, started: float) -> None:
        """Store when the evaluation of a suggestion started, in seconds since the epoch."""
        ...

    def remove_suggestion(self, suggestion_id: int, state: dict[str, Array]) -> None:
        """Remove a suggestion whose evaluation did not start, and set the strategy's state to ``state``."""
        ...

    def add_report(self, suggestion_id: int, report: Report) -> None:
        """Store a point of a curve as soon as its training reports it.

        Raises:
            ValueError: If the suggestion is unknown or has a trial.
        """
        ...

    def add_early_outcome(self, trial: Trial) -> None:
        """Store an outcome as soon as a worker returns it, before the study is told.

        If the process is killed before ``add_trial``, the next ``open`` returns it in ``Record.early_outcomes``.
        """
        ...

    def add_trial(self, trial: Trial) -> None:
        """Store the trial of a suggestion that has none. It replaces the early outcome, if there is one.

        The reports of the trial replace those that were stored one by one.
        """
        ...

    def add_incumbent(self, elapsed: float, incumbent: Incumbent) -> None:
        """Store an answer: what the study recommended after ``elapsed`` seconds."""
        ...

    def save_run_budget(self, run_budget: RunBudget) -> None:
        """Store the budget of this run, for ``fabolas status``. It replaces the budget of the last run."""
        ...

    def close(self) -> None:
        """Release the record for others. A second call does nothing."""
        ...


def merge_early_outcomes(trials: Iterable[Trial], early: Iterable[Trial]) -> tuple[Trial, ...]:
    """The trials that the study was told, followed by the early outcomes as trials.

    An early outcome may have come before the study was told the trials that stand before it here. So its ``elapsed``
    is raised to that of the trial before it: ``elapsed`` never decreases.
    """
    history = History(tuple(trials))
    for trial in early:
        history = history.append(replace(trial, elapsed=max(trial.elapsed, history.elapsed)))
    return history.trials


class OtherStudyError(ValueError):
    """A storage holds another study. ``recorded`` describes it, see ``Identity.describe``."""

    def __init__(self, message: str, recorded: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.recorded = recorded or {}


def check_same_study(what: str, identity: Identity, recorded: dict[str, Any]) -> None:
    """Refuse a record of another study.

    Raises:
        OtherStudyError: With a sentence that names the record (``what``) and how the two differ.
        ValueError: If the record is damaged.
    """
    try:
        found = identity.differences(recorded)
    except Exception as error:
        raise ValueError(f"{what} is damaged: it does not say which study it holds ({error!r})") from error
    if found:
        raise OtherStudyError(
            f"{what} holds another study and was left as it is: {'; '.join(found)}. "
            "Give the arguments of the study that it holds, or choose another file",
            recorded,
        )
