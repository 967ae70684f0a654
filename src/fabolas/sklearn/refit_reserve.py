"""The time that a search without verification keeps for the refit. With verification, ``target_plan`` keeps it."""

from fabolas.policy import RunState
from fabolas.target_plan import PredictedCost

# Of a time budget, at most. A refit that is predicted to take longer must not leave the search without time.
_MAX_SHARE = 0.6
# The predicted time is divided by this, unless its limit is shorter. The limit alone is too long as long as the cost on
# all rows is only extrapolated: several times the true one, and the search would end early.
_FITTING_SHARE = 0.8
# If the refit is predicted to take more than this share of the time left, predict it again after each trial.
_CLOSE = 1 / 2


class RefitReserve:
    """Keeps the predicted time of the refit, which is a multiple of that of a trial of the incumbent on all rows.

    Args:
        refit_ratio: This multiple; 0 without a refit.
    """

    def __init__(self, refit_ratio: float) -> None:
        self._refit_ratio = refit_ratio
        self._cost = PredictedCost()  # of a trial on all rows; 0 before the first complete trial
        self._n_predicted = 0  # trials when it was predicted

    def seconds_left(self, run: RunState) -> float:
        """Seconds left of the budget, without those of the refit; infinite without a time budget."""
        budget = run.budget.seconds
        if budget is None or not self._refit_ratio:
            return run.seconds_left
        # If the incumbent is up to date, the models are fitted, and a prediction takes little time.
        up_to_date = run.n_trials_at_update == len(run.study.trials)
        if up_to_date or run.incumbent_is_due or self._seconds(budget) >= _CLOSE * run.seconds_left:
            self._predict(run)
        return run.seconds_left - self._seconds(budget)

    def _seconds(self, budget: float) -> float:
        """Seconds to keep for the refit."""
        one = min(self._cost.limit, self._cost.median / _FITTING_SHARE)
        return min(self._refit_ratio * one, _MAX_SHARE * budget)

    def _predict(self, run: RunState) -> None:
        """Predict the time of a trial of the incumbent on all rows, if a trial has ended since the last time."""
        history = run.study.history
        if len(history) == self._n_predicted or not history.complete.any():
            return
        incumbent = run.update_incumbent() if run.n_trials_at_update < len(history) else run.incumbent
        self._n_predicted = len(history)
        if incumbent is not None:
            self._cost = PredictedCost.of(run.study, incumbent.config)
