"""FABOLAS: the most information about the best configuration on all the data per second (Klein et al. 2017)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from fabolas import design, surrogate
from fabolas import effort as efforts
from fabolas._types import Array
from fabolas.acquisition.entropy import Form
from fabolas.effort import Effort
from fabolas.history import History, Incumbent, Suggestion
from fabolas.outputs import Warp
from fabolas.space import Space
from fabolas.strategies.base import Proposal
from fabolas.strategies.decide import NIL, Choice, Region, Rules, most_improving, most_informative
from fabolas.surrogate import Data, Spec, Surrogate, Walkers


class Fabolas:
    """Algorithm 1 of the paper: initial design, then the acquisition of eq. 7 on two GPs over (x, u).

    Args:
        space: what to search; without fidelities this is plain entropy search.
        information: `gain`, the expected drop of the entropy of p_min, or `paper`, eq. 7 as printed.
        pmin: by joint `sampling` or by expectation propagation, `ep`.
        representers: by `thompson` sampling or by expected `improvement`.
        maximizer: `candidates`, `direct` or `cma`.
        warp: of the loss, `log`, `excess` or `none`.
        drift: whether smaller sizes may deviate from the paper's basis functions.
        noise_by_fidelity: whether noise may grow towards small sizes.
        checks: seconds at the target for each second on less: after so much on smaller sizes as a trial at the
            target costs, divided by this, the next is there, where it is most likely to improve; 0 for never.
        initial: number of configurations of the initial design.
        share: of the time, for thinking.
        effort: fixes the effort of each suggestion, from 0 (least) to 1 (full), instead.
    """

    name = "fabolas"

    def __init__(
        self,
        space: Space,
        *,
        information: Form = "gain",
        pmin: Literal["sampling", "ep"] = "sampling",
        representers: Literal["thompson", "improvement"] = "thompson",
        maximizer: Literal["candidates", "direct", "cma"] = "candidates",
        warp: Warp = "log",
        drift: bool = True,
        noise_by_fidelity: bool = False,
        checks: float = 1.0,
        initial: int | None = None,
        share: float = efforts.SHARE,
        effort: float | None = None,
    ) -> None:
        self.space = space
        self.rules = Rules(information, pmin, representers, maximizer)
        self.spec = Spec(
            space.choices, space.n_fidelities, warp=warp, drift=drift, noise_by_fidelity=noise_by_fidelity
        )
        self.initial = design.count(space.dim) if initial is None else initial
        self.checks = checks
        self.share = share
        self.effort = effort
        self._design: Array | None = None  # (k, D)
        self._walkers: Walkers | None = None
        self._fitted: tuple[int, Surrogate] | None = None  # trials seen, models

    def suggest(
        self,
        history: History,
        pending: tuple[Suggestion, ...],
        rng: np.random.Generator,
        *,
        remaining: float | None = None,
    ) -> Proposal:
        """The next point: of the design until it is used up, then of the models."""
        if self._design is None:
            self._design = design.initial(self.space, self.initial, rng)
        begun = len(history) + len(pending)
        if begun < len(self._design):
            return Proposal(self._design[begun], "design", effort=0.0)
        if history.failed.all():
            point = design.initial(self.space, 1, rng)[0]  # nothing is known but what fails: keep looking
            return Proposal(point, "design", effort=0.0)
        effort = self._effort(history)
        models = self._fit(history, effort, rng)
        choice, origin = self._decide(models, history, pending, remaining, effort, rng)
        return Proposal(choice.point, origin, effort=effort.level, predicted_cost=choice.seconds)

    def incumbent(self, history: History) -> Incumbent | None:
        """The tried configuration of lowest predicted loss at the target (Algorithm 1, line 6)."""
        if len(history) == 0 or history.failed.all():
            return None
        models = self._models(history)
        complete = np.flatnonzero(~history.failed)
        x = history.points[complete, : self.space.dim]
        mean, variance = models.target_loss(self._region().at_target(x))
        winner = int(np.argmin(mean))
        same = complete[(x == x[winner]).all(axis=1)]
        loss, std = models.loss_output.moments(mean[winner], variance[winner])
        full = (history.points[same, self.space.dim :] == 1.0).all(axis=1)
        return Incumbent(
            config=history.trials[complete[winner]].config,
            loss=float(loss),
            std=float(std),
            verified=bool(full.any()),
            trial_ids=tuple(history.trials[i].id for i in same),
        )

    def state(self) -> dict[str, Array]:
        """The design and the walkers."""
        state: dict[str, Array] = {}
        if self._design is not None:
            state["design"] = self._design
        if self._walkers is not None:
            state |= {"loss_walkers": self._walkers.loss, "cost_walkers": self._walkers.cost}
        return state

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from a saved state."""
        self._design = state.get("design")
        self._walkers = None
        self._fitted = None
        if "loss_walkers" in state:
            self._walkers = Walkers(state["loss_walkers"], state["cost_walkers"])

    def _region(self) -> Region:
        return Region(
            self.space.dim,
            self.space.choices,
            self.space.snap,
            self.space.legal,
            self.space.spread,
            self._fidelities,
        )

    def _fidelities(self, n: int, rng: np.random.Generator) -> Array:
        """(n, f): anywhere in between, and both ends often, since the best is often there."""
        u = rng.random((n, self.space.n_fidelities))
        return np.clip(1.4 * u - 0.2, 0.0, 1.0)

    def _effort(self, history: History) -> Effort:
        n = len(history)
        if self.effort is not None:
            return Effort.at(self.effort, n)
        next_cost = float(np.mean(history.costs[-3:]))
        level = efforts.choose(history.thinking, history.efforts, history.costs, next_cost, n, self.share)
        return Effort.at(level, n)

    def _fit(self, history: History, effort: Effort, rng: np.random.Generator) -> Surrogate:
        steps = effort.steps if len(history) % effort.every == 0 else 0
        models, self._walkers = surrogate.fit(self.spec, _data(history), self._walkers, steps, effort.K, rng)
        self._fitted = (len(history), models)
        return models

    def _models(self, history: History) -> Surrogate:
        """Models given the whole record, without moving the walkers that later suggestions start from."""
        seen, models = self._fitted or (0, None)
        if models is not None and seen <= len(history) and seen >= self.initial:
            return models if seen == len(history) else models.given(_data(history, seen))
        least = Effort.at(0.0, len(history))
        rng = np.random.default_rng(len(history))
        return surrogate.fit(self.spec, _data(history), self._walkers, 0, least.K, rng)[0]

    def _decide(
        self,
        models: Surrogate,
        history: History,
        pending: tuple[Suggestion, ...],
        remaining: float | None,
        effort: Effort,
        rng: np.random.Generator,
    ) -> tuple[Choice, str]:
        region = self._region()
        tried = history.points[:, : self.space.dim]
        waiting = np.array([s.point for s in pending]).reshape(len(pending), history.points.shape[1])
        models = models.awaiting(waiting)
        if self._check_is_due(models, history, pending, remaining):
            return most_improving(region, models, tried, effort, rng), "check"
        choice = most_informative(
            region, models, tried, history.overhead(), remaining, effort, self.rules, rng
        )
        if choice.information > NIL or self.rules.form == "paper":
            return choice, "model"
        return most_improving(region, models, tried, effort, rng), "improvement"

    def _check_is_due(
        self,
        models: Surrogate,
        history: History,
        pending: tuple[Suggestion, ...],
        remaining: float | None,
    ) -> bool:
        """Whether as much was spent since the last trial at the target as one there costs."""
        d = self.space.dim
        if self.checks <= 0 or any((s.point[d:] == 1.0).all() for s in pending):
            return False
        at_target = np.flatnonzero((history.points[:, d:] == 1.0).all(axis=1))
        since = int(at_target[-1]) + 1 if len(at_target) else 0
        spent = float(np.sum(history.costs[since:] + history.thinking[since:]))
        incumbent = self.incumbent(history)
        assert incumbent is not None, "the models were fitted, so a trial is complete"
        price = models.seconds_at_most(self.space.encode(incumbent.config)[None])[0]
        return spent * self.checks >= price and (remaining is None or price <= remaining)


def _data(history: History, since: int = 0) -> Data:
    return Data(history.points[since:], history.losses[since:], history.costs[since:], history.failed[since:])
