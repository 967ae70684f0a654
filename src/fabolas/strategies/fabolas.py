"""FABOLAS: the most information about the best configuration on all the data per second (Klein et al. 2017)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from fabolas import effort as efforts
from fabolas.acquisition.entropy import Form
from fabolas.gp.kernels import loss_basis, power_law_basis
from fabolas.history import History, Suggestion
from fabolas.outputs import Warp
from fabolas.space import Space
from fabolas.strategies.decide import Choice, Position, Rules, most_improving, most_informative, pool
from fabolas.strategies.model_based import ModelBased, work_of
from fabolas.strategies.options import number, one_of
from fabolas.surrogate import Lengths, Spec


class Fabolas(ModelBased):
    """Initial design on small subsets, then the acquisition of eq. 7 on two GPs over (x, u), then checks.

    Args:
        space: what to search. Without fidelities eq. 7 is entropy search per second, the cheaper of two equally
            informative configurations, and about every third trial is a check.
        information: `gain`, the expected drop of the entropy of p_min, or `paper`, eq. 7 as printed.
        pmin: by joint `sampling` or by expectation propagation, `ep`.
        representers: by `thompson` sampling or by expected `improvement`.
        maximizer: `candidates`, `direct` or `cma`.
        warp: of the loss, `log`, `root`, `excess` or `none`.
        curve: how the (warped) loss falls towards the target: `power`, linearly in log-size, a power law under
            a logarithm; or `paper`, quadratically, flat at the target.
        drift: whether losses may deviate from the paper's basis functions, the more the larger the size.
        noise_by_fidelity: whether the noise on all the data may be less than that on small subsets.
        lengths: prior of the length scales, `scaled` with the dimension or `uniform` as in the paper.
        checks: seconds of checks for each second of other trials. Once a trial at the target costs no more than
            this times what was spent since the last check, the next is there, where improvement on the best that
            was measured there is largest: whatever small subsets say, the record keeps up with one made on all the
            data. 0 for never, infinity for every trial that can be one.
        grain: share of all that was spent so far, trials and thinking of all workers, that is added to the
            predicted cost of each evaluation when information is divided by it. Beside it small differences in
            cost do not count, so sizes rise as a search goes on. Budgets and checks do not see it. 0 for the
            overhead of eq. 7.
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
        curve: Literal["power", "paper"] = "power",
        drift: bool = True,
        noise_by_fidelity: bool = True,
        lengths: Lengths = "scaled",
        checks: float = 0.5,
        grain: float = 0.02,
        initial: int | None = None,
        share: float = efforts.SHARE,
        effort: float | None = None,
    ) -> None:
        one_of("curve", curve, ("power", "paper"))
        number(
            "checks",
            checks,
            0.0,
            np.inf,
            "a number of seconds >= 0 of checks at the target for each other one",
        )
        number("grain", grain, 0.0, 1.0, "a share of what was spent, from 0 to 1")
        f = space.n_fidelities
        spec = Spec(
            space.choices,
            f,
            work_of(space),
            loss=power_law_basis if curve == "power" else loss_basis,
            warp=warp,
            drift=drift,
            noise_by_fidelity=noise_by_fidelity,
            lengths=lengths,
        )
        rules = Rules(information, pmin, representers, maximizer)
        super().__init__(space, spec, rules, initial=initial, share=share, effort=effort)
        self.checks = checks
        self.grain = grain

    def design_is_over(self, history: History) -> bool:
        """Whether every trial is to be a check, and there is something to improve on."""
        return bool(np.isinf(self.checks) and history.complete.any())

    def overhead(self, history: History) -> float:
        """Seconds of thinking, and a share of all that was spent: what is less than that is not worth saving.

        What a lost trial took is unknown: its seconds may be those of a machine asleep.
        """
        spent = float(np.sum((history.costs + history.thinking)[~history.lost]))
        return history.overhead() + self.grain * spent

    def decide(
        self,
        position: Position,
        history: History,
        pending: tuple[Suggestion, ...],
        rng: np.random.Generator,
    ) -> tuple[Choice, str]:
        """A check at the target if one is due, else the most informative point."""
        if self._check_is_due(position, history, pending):
            configurations = pool(position, rng)
            check = most_improving(position, configurations, rng)
            if check is not None and position.effort.counted:
                return check, "check"
            if check is not None:  # in a hurry the next ones are decided on too
                return check.and_then(most_informative(position, configurations, rng)), "check"
        return super().decide(position, history, pending, rng)

    def _is_no_time_to_think(
        self, history: History, pending: tuple[Suggestion, ...], remaining: float | None
    ) -> bool:
        # If every trial is to be a check, what was left over for information is not wanted.
        return not np.isinf(self.checks) and super()._is_no_time_to_think(history, pending, remaining)

    def _check_is_due(self, position: Position, history: History, pending: tuple[Suggestion, ...]) -> bool:
        if self.checks <= 0:
            return False
        last = max((trial.id for trial in history.trials if self._is_check(trial.suggestion)), default=-1)
        # With several workers others end while a check is under way: what counts is who was suggested after it.
        since = np.array([trial.id > last for trial in history.trials])
        spent = float(np.sum((history.costs + history.thinking)[since]))
        # What a trial at the target costs is an extrapolation at first: a check must not come by mistake.
        best = position.region.at_target(position.ranked[:1])
        price = float(position.surrogate.seconds_at_most(best)[0])
        under_way = sum(self._is_check(suggestion) for suggestion in pending)
        return spent >= (1 + under_way) * price / self.checks

    def _is_check(self, suggestion: Suggestion) -> bool:
        """Whether it is at the target, and not for information: that seeks the optimum's place, not its value."""
        aimed = suggestion.origin in ("check", "improvement", "request")
        return aimed and bool(self.space.are_at_target(suggestion.point[None])[0])
