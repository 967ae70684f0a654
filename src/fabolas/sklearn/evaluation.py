"""Runs one trial of a search: scikit-learn cross-validates a candidate on training folds of a given size."""

import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fabolas.execution import MIN_COST_SECONDS, Ended, Job
from fabolas.plain_values import is_loss
from fabolas.sklearn.cv_results import CandidateResult, candidate_result
from fabolas.sklearn.folds import Subsampled
from fabolas.sklearn.prepare import FitSetup

if TYPE_CHECKING:
    from fabolas.sklearn.search import FabolasSearchCV

# What BaseSearchCV.fit passes to _run_search.
EvaluateCandidates = Callable[..., dict[str, Any]]

# Part of scikit-learn's message when it raises because every fit of a call failed.
_ALL_FAILED = "fits failed"


class Evaluation:
    """Evaluates candidates for the engine. scikit-learn trains and scores; this class chooses the training rows.

    Attributes:
        cv_results: What scikit-learn's last call returned: the dict that ``fit`` will take as ``cv_results_``.
        by_trial: Id of a trial of this fit -> its result.
        error: What ended the search: an exception that is not the outcome of a trial; None if there was none.
    """

    def __init__(
        self, search: "FabolasSearchCV", call: EvaluateCandidates, setup: FitSetup, seed: int
    ) -> None:
        self._search, self._call, self._setup = search, call, setup
        self._orders = setup.folds.orders(seed)
        self.cv_results: dict[str, Any] = {}
        self.by_trial: dict[int, CandidateResult] = {}
        self.error: Exception | None = None

    def __call__(self, job: Job) -> Ended:
        """Cross-validate a candidate.

        An exception that scikit-learn raises, as with ``error_score="raise"``, ends the search. It is kept in
        ``error`` so that ``fit`` can raise it after the trial is recorded.
        """
        start = self._setup.clock()
        size = int(next(iter(job.fidelity.values()), self._setup.folds.max_size))
        try:
            result = self._cross_validate(dict(job.config), size)
        except Exception as error:  # noqa: BLE001 - fit raises it again
            self.error = error
            cost = max(self._setup.clock() - start, MIN_COST_SECONDS)
            reason = "".join(traceback.format_exception(error))
            return Ended(job.id, "failed", cost=cost, error=reason, fatal=True)
        self.by_trial[job.id] = result
        cost, score = max(result.seconds, MIN_COST_SECONDS), result.score(self._setup.loss.metric)
        info = result.info() | {"search": self._setup.fingerprint}
        loss = self._setup.loss.to_loss(score)
        if is_loss(loss):
            return Ended(job.id, "complete", loss, cost, info)
        return Ended(job.id, "failed", None, cost, info, result.error or f"its mean score is {score}")

    def _cross_validate(self, params: dict[str, Any], size: int) -> CandidateResult:
        """Return the result of the candidate; a failure if no fold could be fitted."""
        start = self._setup.clock()
        try:
            # verbose=1 shows our progress line; scikit-learn prints its own messages from verbose=2 on.
            with replaced(self._search, verbose=max(0, int(self._search.verbose) - 1)):
                cv = Subsampled(self._setup.folds, self._orders, size, self._setup.min_size)
                results = self._call([params], cv=cv)
        except ValueError as error:
            # scikit-learn raises if all fits of a call fail; here a call is only one candidate of many.
            if self._search.error_score == "raise" or _ALL_FAILED not in str(error):
                raise
            return CandidateResult(params, size, self._setup.clock() - start, (), str(error).strip())
        seconds = self._setup.clock() - start
        folds = results["folds"][-len(self._setup.folds.splits) :]
        if not self.cv_results:
            _check_refit(self._search.refit, folds[0]["test_scores"])
        if not self.cv_results and self._setup.jobs > 1:
            # The first call also starts the worker processes; the trial does not pay for that.
            seconds = min(seconds, sum(fold["fit_time"] + fold["score_time"] for fold in folds))
        self.cv_results = results
        return candidate_result(params, size, seconds, folds, self._setup.loss.metric)


def _check_refit(refit: Any, scores: Any) -> None:
    """Raise after the first trial the error that scikit-learn would raise after the search.

    If the scoring is a callable, the names of its metrics are not known before the first trial.
    """
    if not isinstance(scores, Mapping) or refit is False or callable(refit) or refit in scores:
        return
    raise ValueError(
        f"with several metrics refit must name one of {', '.join(map(repr, scores))}, be a callable or False, got "
        f"{refit!r}"
    )


@contextmanager
def replaced(search: "FabolasSearchCV", **values: Any) -> Iterator[None]:
    """Set other parameters of the search inside the block."""
    before = {name: getattr(search, name) for name in values}
    search.set_params(**values)
    try:
        yield
    finally:
        search.set_params(**before)
