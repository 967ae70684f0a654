"""The suggestions that are out: handed to somebody, and not yet told, failed or lost."""

import operator
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fabolas._types import Array
from fabolas.execution import RESOLUTION
from fabolas.history import Suggestion, Trial, as_cost

_LATE = "late:"  # origin of a trial that was told after it had been given up, with the number it had


class Pending:
    """Which suggestions are out, who has begun with them and when, and how the last one can be taken back.

    Some may wait to be handed out again: those that nobody had begun with when the study was last closed.
    """

    def __init__(self) -> None:
        self._suggestions: dict[int, Suggestion] = {}
        self._waiting: dict[int, Suggestion] = {}
        self._again: set[int] = set()
        self._begun: dict[int, float] = {}
        self._before: dict[int, dict[str, Array]] = {}
        self._reported: dict[int, Trial] = {}

    @property
    def all(self) -> tuple[Suggestion, ...]:
        """In the order in which they were handed out."""
        return tuple(self._suggestions.values())

    @property
    def running(self) -> tuple[Suggestion, ...]:
        """Those that somebody has begun with."""
        return tuple(s for s in self._suggestions.values() if s.id in self._begun)

    def running_for(self, now: float) -> dict[int, float]:
        """Number -> seconds since somebody began with it."""
        return {number: now - begun for number, begun in self._begun.items()}

    @property
    def thinking(self) -> float:
        """Seconds that it took to decide them."""
        return sum(s.thinking for s in self._suggestions.values())

    def get(self, number: int) -> Suggestion | None:
        """The one of this number, None if it is not out; may be asked from any thread."""
        return self._suggestions.get(number)

    def __contains__(self, suggestion: Suggestion) -> bool:
        return suggestion.id in self._suggestions or suggestion.id in self._waiting

    def add(self, suggestion: Suggestion) -> None:
        """Hand out a suggestion; whether anybody begins with it is not known here."""
        self._suggestions[suggestion.id] = suggestion

    def wait(self, suggestion: Suggestion) -> None:
        """Nobody has begun with it, and nobody will: it is to be handed out again."""
        self._suggestions.pop(suggestion.id, None)
        self._waiting[suggestion.id] = suggestion
        self._again.add(suggestion.id)

    def next_waiting(self) -> Suggestion | None:
        """The first of those to be handed out again, which is then out; None if there is none."""
        if not self._waiting:
            return None
        number = min(self._waiting)
        self._suggestions[number] = self._waiting.pop(number)
        return self._suggestions[number]

    def may_wait(self, number: int) -> bool:
        """Whether it has waited before, and nobody has begun with it since."""
        return number in self._again and number not in self._begun

    def queue(self, number: int, before: dict[str, Array]) -> None:
        """Nobody has begun with it yet: it can be taken back, and ``before`` is the strategy's state then."""
        self._before[number] = before

    def begin(self, number: int, now: float) -> None:
        """Somebody begins with it."""
        self._begun[number] = now
        self._before.pop(number, None)

    def report(self, outcome: Trial) -> None:
        """What came of one is known, though the study has not heard of it; may be said from any thread."""
        self._reported[outcome.id] = outcome

    def reported(self, number: int) -> Trial | None:
        """What came of it, None if that is not known."""
        return self._reported.get(number)

    def remove(self, number: int) -> None:
        """It has ended, or was taken back."""
        self._suggestions.pop(number, None)
        self._waiting.pop(number, None)
        self._begun.pop(number, None)
        self._before.pop(number, None)
        self._reported.pop(number, None)

    def before(self, number: int, last: int) -> dict[str, Array]:
        """The strategy's state before a suggestion that nobody has begun with.

        Raises:
            ValueError: If somebody has, or if it is not the last one.
        """
        if number not in self._before or number != last:
            raise ValueError(
                f"only the last suggestion can be withdrawn, and only before it is begun with, got {number}; "
                "lose it instead"
            )
        return self._before[number]

    def cost(self, suggestion: Suggestion, stated: float | None, now: float) -> float:
        """Seconds that a suggestion took: as stated, else since it was begun with.

        Raises:
            ValueError: If nothing is stated, and it is not known when it was begun with.
        """
        if stated is not None:
            return as_cost(stated)
        if suggestion.id not in self._begun:
            raise ValueError(
                f"how long suggestion {suggestion.id} took is not known here; say it: tell(..., cost=12.5)"
            )
        return max(now - self._begun[suggestion.id], RESOLUTION)

    def find(self, given: Suggestion | int, ended: Sequence[Trial], late: bool = False) -> Suggestion:
        """The suggestion that is meant by itself or by its number.

        Args:
            given: What ``ask`` gave, or its id.
            ended: The trials that have ended.
            late: Whether one that was given up will do, if nobody has told it since.

        Raises:
            TypeError: If it is neither a suggestion nor a number.
            ValueError: If it is unknown or has ended.
        """
        try:
            number = given.id if isinstance(given, Suggestion) else operator.index(given)
        except TypeError:
            got = f"got {given!r} of type {type(given).__name__}"
            raise TypeError(f"expected what ask() gave, or its id, {got}") from None
        own = self._suggestions.get(number, self._waiting.get(number))
        trial = next((t for t in ended if t.id == number), None) if own is None else None
        if trial is not None:
            if late and trial.status == "lost" and not _told_late(number, ended):
                return trial.suggestion
            how = f"loss {trial.loss}" if trial.error is None else trial.error.strip().splitlines()[-1]
            raise ValueError(
                f"suggestion {number} has already ended ({trial.status}: {how}); tell each one once"
            )
        if own is None or (isinstance(given, Suggestion) and not np.array_equal(own.point, given.point)):
            waiting = ", ".join(map(str, self._suggestions)) or "none"
            raise ValueError(
                f"suggestion {number} is not of this study, whose pending ones are: {waiting}; "
                "tell what this study's ask() gave"
            )
        return own


def revived(lost: Suggestion, number: int) -> Suggestion:
    """A suggestion that was given up, under a new number, since the record only grows."""
    return replace(lost, id=number, thinking=0.0, effort=0.0, origin=f"{_LATE}{lost.id}")


def _told_late(number: int, ended: Sequence[Trial]) -> bool:
    return any(trial.suggestion.origin == f"{_LATE}{number}" for trial in ended)
