"""Hyperband: random configurations on little data, the best of them on more and more (Li et al. 2017).

The origin of a trial names its place, such as "bracket 3 rung 1", so everything follows from the history.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from fabolas._types import Array
from fabolas.space import Space
from fabolas.strategies.base import Proposal
from fabolas.strategies.options import changed_options
from fabolas.strategies.random import best_observed, uniform, uniform_at_target
from fabolas.trials import History, Incumbent, Suggestion

_ORIGIN = re.compile(r"bracket (\d+) rung (\d+)")
_ROUNDING = 1e-9  # tolerance of logarithms and powers before floor and ceil


@dataclass(frozen=True)
class Rung:
    """`count` configurations, each fidelity at its target divided by eta^n_reductions."""

    count: int
    n_reductions: int


@dataclass(frozen=True)
class _Member:
    id: int
    x: Array = field(compare=False)  # (d,)
    loss: float | None  # None while pending, infinite where failed


class Hyperband:
    """Successive halving in brackets, from the most aggressive one to random search on all the data, repeatedly.

    The smallest size is the target divided by the largest power of eta that stays within the fidelity's range. A rung
    waits for all trials of the rung below; while they are pending, the next bracket starts. Failed trials are never
    promoted. The incumbent is the best observed at the target; there is none before the first trial there.

    Args:
        space: The search space. Several fidelities are scaled together, each down to its lower end at most.
        eta: One in eta configurations is promoted, to eta times the size.
    """

    name = "hyperband"

    def __init__(self, space: Space, *, eta: float = 3.0) -> None:
        if not (math.isfinite(eta) and eta > 1.0):
            raise ValueError(f"eta: expected a number above 1, usually 3 or 4, got {eta}")
        self._space = space
        self.eta = eta
        self.options = changed_options(Hyperband, eta=eta)
        ratios = [f.high / f.low for f in space.fidelities.values()]
        self.s_max = math.floor(math.log(max(ratios, default=1.0)) / math.log(eta) + _ROUNDING)

    def rungs(self, bracket: int) -> tuple[Rung, ...]:
        """The rungs of a bracket, counted from 0 (Li et al. 2017, algorithm 1, with B = (s_max + 1) R)."""
        s = self.s_max - bracket % (self.s_max + 1)
        n = math.ceil((self.s_max + 1) * self.eta**s / (s + 1) - _ROUNDING)
        return tuple(Rung(math.floor(n * self.eta**-i + _ROUNDING), s - i) for i in range(s + 1))

    def suggest(
        self,
        history: History,
        pending: tuple[Suggestion, ...],
        rng: np.random.Generator,
        *,
        remaining: float | None = None,
        at_target: bool = False,
    ) -> Proposal:
        """The next member of the first bracket that does not wait for pending trials."""
        if at_target:
            return uniform_at_target(self._space, rng)
        members = _members(history, pending, self._space.dim)
        n_brackets = max((bracket for bracket, _ in members), default=-1) + 1
        for bracket in range(n_brackets):
            for i, rung in enumerate(self.rungs(bracket)):
                known = members.get((bracket, i), [])
                if i == 0:
                    if len(known) < rung.count:
                        return self._proposal(uniform(self._space, rng), bracket, i, rung)
                    continue
                below = members.get((bracket, i - 1), [])
                if any(member.loss is None for member in below):
                    break
                winners = best(below, rung.count)
                if len(known) < len(winners):
                    winner = winners[len(known)]
                    continues = winner.id if self._space.resumes else None
                    return replace(self._proposal(winner.x, bracket, i, rung), continues=continues)
        return self._proposal(uniform(self._space, rng), n_brackets, 0, self.rungs(n_brackets)[0])

    def incumbent(self, history: History, *, verified_only: bool = False) -> Incumbent | None:
        """The best observed at the target."""
        return best_observed(self._space, history)

    def state(self) -> dict[str, Array]:
        return {}

    def restore(self, state: dict[str, Array]) -> None:
        if state:
            raise ValueError(f"hyperband has no state to restore, got {', '.join(state)}")

    def _proposal(self, x: Array, bracket: int, i: int, rung: Rung) -> Proposal:
        u = self._space.fidelity_at(self.eta**-rung.n_reductions)
        return Proposal(np.concatenate([x, u]), f"bracket {bracket} rung {i}")


def best(members: list[_Member], count: int) -> list[_Member]:
    """The `count` members with the lowest losses, the earlier suggestion first among equals; failed ones excluded."""
    complete = [member for member in members if member.loss is not None and math.isfinite(member.loss)]
    return sorted(complete, key=lambda member: (member.loss, member.id))[:count]


def _members(
    history: History, pending: tuple[Suggestion, ...], d: int
) -> Mapping[tuple[int, int], list[_Member]]:
    """(bracket, rung) -> its members in the order of their suggestions."""
    ended = [(t.suggestion, math.inf if t.loss is None else t.loss) for t in history.trials]
    found: dict[tuple[int, int], list[_Member]] = defaultdict(list)
    for suggestion, loss in sorted([*ended, *((s, None) for s in pending)], key=lambda pair: pair[0].id):
        if match := _ORIGIN.fullmatch(suggestion.origin):
            found[int(match[1]), int(match[2])].append(_Member(suggestion.id, suggestion.point[:d], loss))
    return dict(found)
