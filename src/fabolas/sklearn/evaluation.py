"""One trial: a candidate cross-validated by scikit-learn on folds of some size."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fabolas.sklearn.folds import Subsampled
from fabolas.sklearn.prepare import Prepared
from fabolas.sklearn.rows import Row, row_of

if TYPE_CHECKING:
    from fabolas.sklearn.search import FabolasSearchCV

# What BaseSearchCV.fit hands to _run_search.
EvaluateCandidates = Callable[..., dict[str, Any]]

# Part of what scikit-learn says when it raises because not a single fit of a call worked.
_ALL_FAILED = "fits failed"


class Evaluation:
    """Calls scikit-learn for one candidate at a time; everything but the choice of rows is scikit-learn's.

    Attributes:
        results: What the last call returned: the dict that ``fit`` will take as ``cv_results_``.
    """

    def __init__(
        self, search: "FabolasSearchCV", call: EvaluateCandidates, prepared: Prepared, seed: int
    ) -> None:
        self._search, self._call, self._prepared = search, call, prepared
        self._orders = prepared.folds.orders(seed)
        self.results: dict[str, Any] = {}

    def __call__(self, params: dict[str, Any], size: int) -> Row:
        """The candidate's row; a failed one if not a single fold could be fitted."""
        start = self._prepared.clock()
        try:
            # Our progress line comes first; scikit-learn speaks from `verbose=2` on.
            with replaced(self._search, verbose=max(0, int(self._search.verbose) - 1)):
                cv = Subsampled(self._prepared.folds, self._orders, size, self._prepared.smallest)
                results = self._call([params], cv=cv)
        except ValueError as error:
            # scikit-learn ends when all fits of a call fail; here a call is one candidate of many.
            if self._search.error_score == "raise" or _ALL_FAILED not in str(error):
                raise
            return Row(params, size, self._prepared.clock() - start, (), str(error).strip())
        seconds = self._prepared.clock() - start
        folds = results["folds"][-len(self._prepared.folds.splits) :]
        if not self.results:
            _check_refit(self._search.refit, folds[0]["test_scores"])
        if not self.results and self._prepared.jobs > 1:
            # The first call also starts the workers, which is nothing that a trial costs.
            seconds = min(seconds, sum(fold["fit_time"] + fold["score_time"] for fold in folds))
        self.results = results
        return row_of(params, size, seconds, folds, self._prepared.loss.metric)


def _check_refit(refit: Any, scores: Any) -> None:
    """Refuse now what scikit-learn refuses when the search is over: a callable's metrics are first known here."""
    if not isinstance(scores, Mapping) or refit is False or callable(refit) or refit in scores:
        return
    raise ValueError(
        f"with several metrics refit must name one of {', '.join(map(repr, scores))}, be a callable or False, got "
        f"{refit!r}"
    )


@contextmanager
def replaced(search: "FabolasSearchCV", **values: Any) -> Iterator[None]:
    """Other parameters for a while."""
    before = {name: getattr(search, name) for name in values}
    search.set_params(**values)
    try:
        yield
    finally:
        search.set_params(**before)
