"""What a study is known by, what is known of it, and what a storage has to do."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

from fabolas._types import Array
from fabolas.budget import Allowance
from fabolas.history import History, Suggestion, Trial, plain
from fabolas.space import Space


@dataclass(frozen=True)
class Identity:
    """What makes a study the same study: its space with the fidelities, its strategy, its seed.

    A seed that was drawn (``seed_given=False``) gives way to the recorded one; a given one must equal it.
    """

    space: Space
    strategy: str
    options: dict[str, Any]
    seed: int
    seed_given: bool = True

    def describe(self) -> dict[str, Any]:
        """The identity in the types of JSON."""
        own = {"strategy": self.strategy, "options": plain(self.options), "seed": self.seed}
        return {"space": self.space.describe(), **own}

    def differences(self, recorded: dict[str, Any]) -> list[str]:
        """Sentences on how a recorded description differs."""
        found = list(self.space.difference(recorded["space"]))
        if recorded["strategy"] != self.strategy:
            found.append(f"its strategy is {recorded['strategy']!r}, asked for was {self.strategy!r}")
        elif recorded["options"] != plain(self.options):
            found.append(
                f"its strategy options are {recorded['options']}, asked for were {plain(self.options)}"
            )
        if self.seed_given and recorded["seed"] != self.seed:
            found.append(f"its seed is {recorded['seed']}, asked for was {self.seed}")
        return found


@dataclass(frozen=True)
class Record:
    """All that a storage knows of a study.

    Attributes:
        seed: The recorded seed, which goes before the one asked for.
        suggestions: Every suggestion, by number.
        trials: Every ended one, in order of ending.
        state: Arrays for the strategy to carry on from; None before the first suggestion.
        started: When each suggestion was begun with, in seconds since the epoch; the others were never begun.
        arrivals: Outcomes of pending suggestions that the study never heard of, in order of arrival.
    """

    seed: int
    suggestions: tuple[Suggestion, ...] = ()
    trials: tuple[Trial, ...] = ()
    state: dict[str, Array] | None = None
    started: dict[int, float] = field(default_factory=dict)
    arrivals: tuple[Trial, ...] = ()

    @property
    def pending(self) -> tuple[Suggestion, ...]:
        """Suggestions without an outcome."""
        ended = {trial.id for trial in self.trials}
        return tuple(s for s in self.suggestions if s.id not in ended)


class UnwritableError(RuntimeError):
    """A step could not be written and is not kept; all that was written before it is."""


def joined(trials: Iterable[Trial], arrivals: Iterable[Trial]) -> tuple[Trial, ...]:
    """Trials that have ended and, after them, outcomes not yet heard of, as the trials that they will be.

    A trial that came before an arrival may have been heard, and recorded, after it had come: time does not go back.
    """
    history = History(tuple(trials))
    for trial in arrivals:
        if trial.elapsed is not None:
            trial = replace(trial, elapsed=max(trial.elapsed, history.elapsed))
        history = history.append(trial)
    return history.trials


class Storage(Protocol):
    """Keeps what a study did; one study at a time."""

    def open(self, identity: Identity) -> Record:
        """Start or continue the study of this identity; another one's is refused and stays as it is."""
        ...

    def add_suggestion(self, suggestion: Suggestion, state: dict[str, Array], started: float | None) -> None:
        """Keep a suggestion and the strategy's state after it, both or neither."""
        ...

    def add_start(self, number: int, started: float) -> None:
        """Keep when a suggestion was begun with, in seconds since the epoch."""
        ...

    def remove_suggestion(self, number: int, state: dict[str, Array]) -> None:
        """Forget a suggestion that was never begun with, and have the strategy's state be the one before it."""
        ...

    def add_trial(self, trial: Trial) -> None:
        """Keep the outcome of a suggestion that is kept and has none."""
        ...

    def close(self) -> None:
        """Let others use it; a second call does nothing."""
        ...


@runtime_checkable
class Witness(Storage, Protocol):
    """A storage that is also written to by the threads that wait for workers, while its study thinks.

    No storage has to be one: without ``add_arrival`` it keeps an outcome when its study hears of it. A storage with
    that method promises that it and ``add_start`` may be called from any thread, as long as it is open.
    """

    def add_arrival(self, trial: Trial) -> None:
        """Keep an outcome that the study has not heard of yet; ``add_trial`` puts its own in the place of it."""
        ...


@runtime_checkable
class Noticeboard(Storage, Protocol):
    """A storage that also keeps what only those want to know who look at it from outside; none has to be one."""

    def keep_allowance(self, allowance: Allowance) -> None:
        """Keep what the run may use that has the study open, in the place of what the last one might."""
        ...


def refuse_others(what: str, identity: Identity, recorded: dict[str, Any]) -> None:
    """Raises ValueError if what is recorded is another study."""
    found = identity.differences(recorded)
    if found:
        raise ValueError(
            f"{what} holds another study and was left as it is: {'; '.join(found)}. "
            "Ask for what it holds, or choose another file"
        )
