"""The answer of a run, with all that it rests on."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fabolas.history import Incumbent, Trial

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Result:
    """The best configuration on all the data as far as the run could tell, and how sure it is.

    Attributes:
        incumbent: The answer; None if no trial was completed, or none that the strategy would recommend.
        trials: Every ended trial, in the order in which they ended.
        trajectory: (seconds since the start, incumbent) after each trial of this call.
        elapsed: Seconds used of the budget: wall clock, or the recorded time where that is more.
        thinking: Seconds of it that went into deciding what to evaluate.
        seed: The seed that reproduces the run.
        interrupted: Whether Ctrl-C ended the run.
        given_up: Why the run ended itself before its budget did, such as failures in a row; None if it did not.
    """

    incumbent: Incumbent | None
    trials: tuple[Trial, ...] = field(repr=False)
    trajectory: tuple[tuple[float, Incumbent], ...] = field(repr=False)
    elapsed: float
    thinking: float
    seed: int
    interrupted: bool = False
    given_up: str | None = None

    @property
    def best_config(self) -> dict[str, Any]:
        """The evaluated configuration with the lowest expected loss at the target."""
        return dict(self._answer().config)

    @property
    def predicted_loss(self) -> float:
        """Its predicted loss at the target."""
        return self._answer().loss

    @property
    def predicted_std(self) -> float:
        """Standard deviation of that prediction."""
        return self._answer().std

    @property
    def verified(self) -> bool:
        """Whether it was ever run to completion at the target."""
        return self._answer().verified

    @property
    def spent(self) -> float:
        """Seconds the record accounts for: all evaluations and all thinking."""
        return sum(trial.cost for trial in self.trials) + self.thinking

    @property
    def thinking_share(self) -> float:
        """Thinking as a share of all recorded time."""
        return self.thinking / self.spent if self.spent > 0 else 0.0

    def to_frame(self) -> "DataFrame":
        """The trials as a table, a row each; ``config_*`` and ``fidelity_*`` columns for what was tried.

        Raises:
            ImportError: If pandas is not installed.
        """
        try:
            from pandas import DataFrame
        except ImportError as error:
            raise ImportError(
                "to_frame() needs pandas; install it with: pip install 'fabolas[plots]'"
            ) from error
        return DataFrame([row_of(trial) for trial in self.trials])

    def __str__(self) -> str:
        failed = sum(trial.status == "failed" for trial in self.trials)
        counts = f"{len(self.trials)} trials{f' ({failed} failed)' if failed else ''} in {self.elapsed:.4g} s"
        work = f"{counts}, {self.thinking_share:.0%} of the time thinking"
        if self.incumbent is None:
            return f"{'no trial completed' if failed == len(self.trials) else 'nothing to recommend yet'}: {work}"
        settings = ", ".join(f"{name}={_short(value)}" for name, value in self.incumbent.config.items())
        how = "run at the target" if self.incumbent.verified else "not yet run at the target"
        loss = f"{self.incumbent.loss:.4g} ± {self.incumbent.std:.2g}"
        return f"best configuration: {settings}\npredicted loss at the target: {loss} ({how})\n{work}"

    def _answer(self) -> Incumbent:
        if self.incumbent is None:
            if any(trial.status == "complete" for trial in self.trials):
                raise RuntimeError(
                    f"there is no best configuration yet: after {len(self.trials)} trials the strategy has none "
                    "to recommend for the target; go on with a larger budget"
                )
            last = self.trials[-1] if self.trials else None
            how = "was lost" if last is not None and last.status == "lost" else "failed"
            why = f"; the last one {how}: {(last.error or '').strip().splitlines()[-1]}" if last else ""
            raise RuntimeError(
                f"there is no best configuration: of {len(self.trials)} trials none completed{why}"
            )
        return self.incumbent


def row_of(trial: Trial) -> dict[str, Any]:
    """A trial as one row of a table; an inactive hyperparameter has no value."""
    s = trial.suggestion
    return {
        "id": s.id,
        "status": trial.status,
        "loss": trial.loss,
        "cost": trial.cost,
        **{f"fidelity_{name}": value for name, value in s.fidelity.items()},
        **{f"config_{name}": value for name, value in s.config.items()},
        "thinking": s.thinking,
        "effort": s.effort,
        "predicted_cost": s.predicted_cost,
        "origin": s.origin,
        "error": trial.error,
    }


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else repr(value)
