"""What the model-based strategies share: design, fit, decide; the incumbent; the state to go on from."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from fabolas import design, surrogate
from fabolas import effort as efforts
from fabolas._types import Array, BoolArray
from fabolas.effort import Effort
from fabolas.history import History, Incumbent, Suggestion
from fabolas.outputs import Output
from fabolas.space import Space
from fabolas.strategies.base import Proposal
from fabolas.strategies.decide import (
    NIL,
    SHORTLIST,
    Choice,
    Position,
    Region,
    Rules,
    Spare,
    most_improving,
    most_informative,
    pool,
)
from fabolas.strategies.options import number, whole_number
from fabolas.surrogate import Data, Spec, Surrogate, Walkers, Work, settle

# With many workers thinking takes this share of one thread's time at most: without pauses it keeps some waiting.
BUSY = 0.5


@dataclass(frozen=True)
class Forecast:
    """What the models expect of m points."""

    losses: Array  # (m,) expected, in the user's units
    stds: Array  # (m,)
    seconds: Array  # (m,) as likely more as less
    seconds_at_most: Array  # (m,) more with a probability of one in forty


def work_of(space: Space) -> Work:
    """How much is done at each point of the space, for the model of the cost."""
    smallest = np.zeros((1, space.dim + space.n_fidelities))
    return Work(space.log_shares, tuple(float(-share) for share in space.log_shares(smallest)[0]))


class ModelBased:
    """Algorithm 1 of the paper as a template: a strategy says which models, fidelities and decision it has.

    Args:
        space: what to search.
        spec: the models of loss and cost.
        rules: how information is measured and its maximum sought.
        initial: number of configurations of the initial design; None for a number that suits the space.
        share: of the time, for thinking.
        effort: fixes the effort of each suggestion, from 0 (least) to 1 (full), instead.

    Attributes:
        by_work: whether the share of the target's work stands for the seconds of a trial, and thinking counts for
            nothing: with a fixed effort, suggestions then follow from the losses alone, whatever the clock says.
    """

    name: str
    by_work = False

    def __init__(
        self,
        space: Space,
        spec: Spec,
        rules: Rules,
        *,
        initial: int | None = None,
        share: float = efforts.SHARE,
        effort: float | None = None,
    ) -> None:
        if initial is not None:
            whole_number("initial", initial, 1, "a whole number of configurations to begin with, 1 or more")
        number("share", share, 1e-6, 1.0 - 1e-6, "a share of the time between 0 and 1")
        if effort is not None:
            number("effort", effort, 0.0, 1.0, "a number from 0 (least) to 1 (full)")
        # The first suggestion is not to wait for what the first suggestion needs.
        for module in ("emcee", "scipy.optimize", "scipy.stats"):
            import_module(module)
        self.space = space
        self.spec = spec
        self.rules = rules
        self.initial = design.count(space) if initial is None else initial
        self.share = share
        self.effort = effort
        self._design: Array | None = None  # (k, D)
        self._walkers: Walkers | None = None
        self._spare = Spare.none(space.dim + space.n_fidelities)
        self._samples: Walkers | None = None  # those of the walkers that the last suggestion's models had
        self._seen = 0  # trials that these models were given
        self._refitted = 0  # trials when the walkers last moved
        self._fitted: Surrogate | None = None  # these models, unless they are to be built again

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_fitted": None}  # it follows from the rest, and holds functions

    # What a strategy may have otherwise.

    def draw_design(self, k: int, rng: np.random.Generator) -> Array:
        """The first k points (k, D)."""
        return design.initial(self.space, k, rng)

    def design_is_over(self, history: History) -> bool:
        """Whether to leave out the rest of the design."""
        return False

    def draw_fidelities(self, n: int, rng: np.random.Generator) -> Array:
        """Fidelities (n, f) to consider: anywhere, and often at an end, each of its own and all of the same."""
        u = np.clip(1.4 * rng.random((n, self.space.n_fidelities)) - 0.2, 0.0, 1.0)
        if self.space.n_fidelities > 1:
            together = 1.4 * rng.random(n) - 0.2
            u[together <= 0.0], u[together >= 1.0] = 0.0, 1.0
        return u

    def snap(self, points: Array) -> Array:
        """Points (m, D) to the nearest ones that may be evaluated."""
        return self.space.snap(points)

    def overhead(self, history: History) -> float:
        """Seconds that an evaluation costs beside its own: those of thinking (Klein et al. 2017, eq. 7)."""
        return history.overhead()

    def decide(
        self,
        position: Position,
        history: History,
        pending: tuple[Suggestion, ...],
        rng: np.random.Generator,
    ) -> tuple[Choice, str]:
        """The next point and what decided: most information for its price, or improvement if nothing informs."""
        configurations = pool(position, rng)
        choice = most_informative(position, configurations, rng)
        if choice.information > NIL or self.rules.form == "paper":
            return choice, "model"
        improving = most_improving(position, configurations, rng)
        return (choice, "model") if improving is None else (improving, "improvement")

    # What all of them do.

    def suggest(
        self,
        history: History,
        pending: tuple[Suggestion, ...],
        rng: np.random.Generator,
        *,
        remaining: float | None = None,
    ) -> Proposal:
        """The next point: of the design until it is used up, then of the models."""
        history = self._as_seen(history)
        if self._design is None:
            self._design = self.draw_design(self.initial, rng)
        begun = len(history) + len(pending)
        if begun < len(self._design) and not self.design_is_over(history):
            return Proposal(self._design[begun], "design", effort=0.0)
        if not history.complete.any():  # nothing is known but what fails: keep looking
            return Proposal(self.draw_design(1, rng)[0], "design", effort=0.0)
        if len(self._spare) and self._is_no_time_to_think(history, pending, remaining):
            point, seconds, self._spare = self._spare.points[0], self._spare.seconds[0], self._spare.rest
            return Proposal(point, "spare", effort=0.0, predicted_cost=self._in_seconds(seconds))
        choice, origin, effort = self._think(history, pending, remaining, rng)
        self._spare = choice.spare
        seconds = self._in_seconds(choice.seconds)
        return Proposal(choice.point, origin, effort=effort.level, predicted_cost=seconds)

    def _as_seen(self, history: History) -> History:
        """The record as decisions see it."""
        if not (self.by_work and len(history)):
            return history
        return history.priced(np.exp(self.space.log_shares(history.points).sum(axis=1)))

    def _in_seconds(self, cost: float) -> float | None:
        """A predicted cost, if seconds were what it was predicted from."""
        return None if self.by_work else float(cost)

    def incumbent(self, history: History) -> Incumbent | None:
        """The tried configuration of lowest expected loss at the target (Algorithm 1, line 6).

        What was measured there is mostly taken for what it was measured to be. One that has failed there is none,
        as long as there is another. The loss and the deviation that go with it are those of the models, which do
        not believe the luckiest measurement.
        """
        if not history.complete.any():
            return None
        models = self._models(self._as_seen(history))
        complete = np.flatnonzero(history.complete)
        possible = ~self._fails_at_target(history, history.points[complete])
        complete = complete[possible] if possible.any() else complete
        points = history.points[complete]
        x, first, which = np.unique(
            points[:, : self.space.dim], axis=0, return_index=True, return_inverse=True
        )
        which = which.ravel()
        there = self.space.are_at_target(points)
        seen = models.loss_output.forward(history.losses[complete])
        counts: Array = np.bincount(which, there).astype(float)
        averages = np.bincount(which, there * seen) / np.maximum(counts, 1.0)
        target = self.region.at_target(x)
        mean = settle(models.loss.mean_of(target).mean(axis=0), counts, averages)
        order = np.argsort(mean, kind="stable")
        short = np.union1d(order[:SHORTLIST], order[counts[order] > 0][:1])
        # The expected loss, in the units of the loss: under a logarithm it grows with the uncertainty.
        expected, _ = models.loss_output.moments(
            *models.settled(target[short], counts[short], averages[short])
        )
        winner = int(short[np.argmin(expected)])
        (loss,), (std,) = models.loss_output.moments(*models.loss_at(target[[winner]]))
        return Incumbent(
            config=history.trials[complete[first[winner]]].config,
            loss=float(loss),
            std=float(std),
            verified=bool(counts[winner]),
            trial_ids=tuple(history.trials[i].id for i in complete[which == winner]),
        )

    def _fails_at_target(self, history: History, points: Array) -> BoolArray:
        """Which configurations of the points (m, D) were run at the target and never to the end, (m,)."""
        d = self.space.dim
        there = self.space.are_at_target(history.points)
        failed, complete = (
            (points[:, None, :d] == history.points[None, there & outcome, :d]).all(axis=2).any(axis=1)
            for outcome in (history.failed, history.complete)
        )
        return np.asarray(failed & ~complete)

    def forecast(self, history: History, points: Array) -> Forecast:
        """Loss and cost of points (m, D) given the record, which must hold a complete trial."""
        models = self._models(self._as_seen(history))
        losses, stds = models.loss_output.moments(*models.loss_at(points))
        return Forecast(losses, stds, models.seconds(points), models.seconds_at_most(points))

    def state(self) -> dict[str, Array]:
        """The design, the walkers, which of them were the last samples, and the points left over."""
        state: dict[str, Array] = {}
        if self._design is not None:
            state["design"] = self._design
        if self._walkers is not None and self._samples is not None:
            state |= {"loss_walkers": self._walkers.loss, "cost_walkers": self._walkers.cost}
            state |= {"loss_samples": self._samples.loss, "cost_samples": self._samples.cost}
            state |= {
                "seen": np.array([float(self._seen), float(self._refitted)]),
                "spare": self._spare.points,
            }
            state["spare_seconds"] = self._spare.seconds
        return state

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from a saved state; hyperparameters of other models than these, as of another version, are left."""
        self._design = state.get("design")
        self._walkers = self._samples = self._fitted = None
        self._seen, self._refitted = 0, 0
        self._spare = Spare.none(self.space.dim + self.space.n_fidelities)
        if "seen" in state and self._are_ours(state):
            self._walkers = Walkers(state["loss_walkers"], state["cost_walkers"])
            self._samples = Walkers(state["loss_samples"], state["cost_samples"])
            self._seen, self._refitted = (int(n) for n in state["seen"])
            self._spare = Spare(state["spare"], state["spare_seconds"])

    def _are_ours(self, state: dict[str, Array]) -> bool:
        models = {"loss": self.spec.loss_model(), "cost": self.spec.cost_model()}
        return all(state[f"{name}_walkers"].shape[1] == len(model.priors) for name, model in models.items())

    @property
    def region(self) -> Region:
        """The space as arrays and functions of arrays."""
        space = self.space
        return Region(
            space.dim,
            space.n_fidelities,
            space.choices,
            self.snap,
            space.legal,
            space.spread,
            self.draw_fidelities,
        )

    def _is_no_time_to_think(
        self, history: History, pending: tuple[Suggestion, ...], remaining: float | None
    ) -> bool:
        next_cost = float(self._spare.seconds[0])
        if remaining is not None and remaining <= 20.0 * next_cost:
            return False  # the last trials are to be the best ones
        return self._level(history, pending, next_cost) is None

    def _level(self, history: History, pending: tuple[Suggestion, ...], next_cost: float) -> float | None:
        if self.effort is not None:
            return self.effort
        idle = ("design", "spare", "request")
        decided = np.array([t.suggestion.origin not in idle for t in history.trials])
        # One mind thinks for all workers, and is not to be what they wait for.
        share = min(self.share, BUSY / (len(pending) + 1))
        return efforts.choose(
            history.thinking, history.efforts, history.costs, next_cost, len(history), share, decided
        )

    def _think(
        self,
        history: History,
        pending: tuple[Suggestion, ...],
        remaining: float | None,
        rng: np.random.Generator,
    ) -> tuple[Choice, str, Effort]:
        """A decision, what took it, and its effort.

        How hard to think depends on what the evaluation will cost, which is known when it has been decided. So
        a first decision is made in an instant; what it is predicted to cost says whether to think again, harder.
        """
        if self.effort is not None:
            effort = Effort.at(self.effort, len(history))
            return *self._decide(
                history, pending, remaining, effort, self._is_due(history, effort), rng
            ), effort
        least = Effort.at(0.0, len(history))
        choice, origin = self._decide(history, pending, remaining, least, self._walkers is None, rng)
        level = self._level(history, pending, choice.seconds)
        effort = Effort.at(level or 0.0, len(history))
        due = self._is_due(history, effort) and (level is not None or self._is_overdue(history))
        if due or effort.counted:
            choice, origin = self._decide(history, pending, remaining, effort, due, rng)
        return choice, origin, effort

    def _decide(
        self,
        history: History,
        pending: tuple[Suggestion, ...],
        remaining: float | None,
        effort: Effort,
        refit: bool,
        rng: np.random.Generator,
    ) -> tuple[Choice, str]:
        models = self._fit(history, effort, refit, rng)
        waiting = np.array([s.point for s in pending]).reshape(len(pending), history.points.shape[1])
        d = self.space.dim
        tried = history.points[~history.lost, :d]
        # What is under way counts as measured: a second worker is not to ask the same.
        measured = np.vstack([history.points[history.complete], waiting])
        measured = measured[self.space.are_at_target(measured), :d]
        overhead = self.overhead(history)
        position = Position.of(
            self.region, models.awaiting(waiting), tried, measured, overhead, remaining, effort, self.rules
        )
        return self.decide(position, history, pending, rng)

    def _is_due(self, history: History, effort: Effort) -> bool:
        """Whether the hyperparameters are to be fitted again."""
        return self._walkers is None or len(history) - self._refitted >= effort.every

    def _is_overdue(self, history: History) -> bool:
        """Whether they are to be fitted again even where there is no time for it.

        That is if there are twice as many trials as then, or if losses are twice as far apart, or half as far, or
        have another warp: what the hyperparameters say of the losses' spread is then of others.
        """
        then = self._units(history)
        if then is None or len(history) >= 2 * self._refitted:
            return True
        now = _data(history).targets(None, self.spec.warp)[1]
        return now.warp != then.warp or not 0.5 < now.scale / then.scale < 2.0

    def _fit(self, history: History, effort: Effort, refit: bool, rng: np.random.Generator) -> Surrogate:
        steps = effort.steps if refit else 0
        self._refitted = len(history) if refit else self._refitted
        self._fitted = None  # with a thousand trials models fill 100 MB: not two of them at once
        models, self._walkers, self._samples = surrogate.fit(
            self.spec, _data(history), self._walkers, steps, effort.K, rng, units=self._units(history)
        )
        self._fitted, self._seen = models, len(history)
        return models

    def _units(self, history: History) -> Output | None:
        """Of the losses when the walkers last moved: what their hyperparameters say is in these."""
        then = _data(history, slice(self._refitted))
        if then.failed.all():
            return None
        return then.targets(None, self.spec.warp)[1]

    def _models(self, history: History) -> Surrogate:
        """Models given the whole record, without moving the walkers that later suggestions start from."""
        if self._samples is None:  # the design: hyperparameters are little more than their prior
            K = Effort.at(0.0, len(history)).K
            rng = np.random.default_rng(len(history))
            return surrogate.fit(self.spec, _data(history), None, 0, K, rng)[0]
        seen = _data(history, slice(self._seen))
        # A failure that was redeemed since, by a success at the same point, is taken back.
        if self._fitted is None or len(self._fitted.loss.points) != len(seen.points):
            self._fitted = surrogate.build(self.spec, seen, self._samples, self._units(history))
        new = _data(history, slice(self._seen, None))
        if not len(new.points):
            return self._fitted
        if new.lowest < seen.lowest:  # which the map of the losses that were seen does not reach
            return surrogate.build(self.spec, _data(history), self._samples, self._units(history))
        return self._fitted.given(new)


def _data(history: History, which: slice = slice(None)) -> Data:
    kept = np.zeros(len(history), dtype=np.bool_)
    kept[which] = True
    kept &= ~history.lost & ~_redeemed(history)  # what nobody waited for says nothing
    return Data(history.points[kept], history.losses[kept], history.costs[kept], history.failed[kept])


def _redeemed(history: History) -> BoolArray:
    """(n,) Failures at a point where another trial was complete: it was not the point's fault."""
    redeemed = np.zeros(len(history), dtype=np.bool_)
    failed = np.flatnonzero(history.failed)
    if len(failed) and history.complete.any():
        same = (history.points[failed, None] == history.points[None, history.complete]).all(axis=2)
        redeemed[failed] = same.any(axis=1)
    return redeemed
