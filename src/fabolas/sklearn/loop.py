"""The loop of one fit: search on few rows, and keep enough of the budget to run the best on all of them."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from fabolas._types import Array
from fabolas.budget import Allowance, Budget
from fabolas.execution import RESOLUTION
from fabolas.history import Incumbent, Suggestion
from fabolas.progress import Report, Snapshot
from fabolas.sklearn.candidates import Candidates
from fabolas.sklearn.rows import Row
from fabolas.sklearn.scores import Loss
from fabolas.sklearn.warn import warn
from fabolas.strategies.fabolas import Fabolas
from fabolas.study import Study

Evaluate = Callable[[dict[str, Any], int], Row]

_PATIENCE = 30.0  # after a look at the models, so many times as long passes before the next
_FINALISTS = 3  # trials of `n_iter` at most that are kept for the best candidates on all the rows
_SELECTION = 3  # trials of `n_iter` for each of these: the best of fewer needs no comparison
# Seconds of checks for each other one. The answer is one of the runs on all the rows, so there are to be some.
_CHECKS = 1.0
_FINALE = 1 / 3  # of a time budget, in which all that can be is run on all the rows
_NEAR = 4  # a size is near the full one if it is that part of it: the cost on all the rows is then well known
_GIVE_UP = 100  # failures, with no success at all, after which a fit with time left ends
_FAILED_THERE = 10  # failures on all the rows, with no success there, after which no more are run there late
_SEARCHED = 0.5  # of a time budget at least is for the search, however long a full training may take
_LATE = 5.0  # seconds that a run has to end late for a warning
_EFFORT = 0.3  # of each suggestion where time does not count: beyond it ten seeds show no gain


@dataclass(frozen=True)
class Ending:
    """What comes after the search and has to fit into the budget.

    Attributes:
        verify: Whether the answer is to be run on all the rows.
        refit: The last training as a multiple of a trial on all the rows; 0 without one.
        configurations: (m, d) all that the space has; None unless these are not too many to count.
    """

    verify: bool
    refit: float
    configurations: Array | None


@dataclass(frozen=True)
class _Step:
    """The incumbent on the way to all the rows.

    Attributes:
        config: Its configuration; None if it was run on all of them.
        size: Rows to run it on: all of them, or half the way there if nothing near was ever run.
        seconds: What that is predicted to take.
        full: What a run of it on all the rows takes at most: to be early is better than to be late.
    """

    config: dict[str, Any] | None = None
    size: int = 0
    seconds: float = 0.0
    full: float = 0.0


class _Enough(Exception):  # noqa: N818 - an end, not an error
    """No further trial can change the answer."""


class Loop:
    """Asks, evaluates, tells, until the budget is used up.

    Args:
        study: What decides.
        evaluate: Candidate, rows -> its row of ``cv_results_``.
        loss: What the study is told of a row.
        budget: Seconds and trials, those of a continued study included.
        ending: What to keep of it.
        mark: What identifies the search, kept with each trial.
        full: Rows at full size.
        start: When the fit began.
        clock: Seconds from any origin.

    Attributes:
        rows: What was evaluated, by the trial's number.
        trajectory: (seconds, incumbent) whenever the models were looked at.
    """

    def __init__(
        self,
        study: Study,
        evaluate: Evaluate,
        loss: Loss,
        budget: Budget,
        ending: Ending,
        mark: Mapping[str, Any],
        full: int,
        start: float,
        clock: Callable[[], float],
    ) -> None:
        self._study, self._evaluate, self._loss = study, evaluate, loss
        self._budget, self._ending, self._mark, self._full = budget, ending, mark, full
        self._start, self._clock = start - study.spent, clock
        if budget.seconds is None:
            # Who gave no time gets the same search each time: by the rows of a trial, not by its seconds.
            strategy = cast(Fabolas, study.strategy)
            strategy.by_work, strategy.effort = True, _EFFORT
        study.allow(Allowance(budget, time.time(), study.spent))
        self.rows = {
            trial.id: Row.of_trial(trial, self._size(trial.suggestion))
            for trial in study.trials
            if trial.status != "lost"
        }
        self._candidates = Candidates(study, self.rows, full, ending.configurations)
        self._before = len(study.trials)
        self._step = _Step()
        self._look_again, self._seen = (
            0.0,
            0,
        )  # when to ask the models again; trials when they were asked last
        self._last_step = study.spent  # when the last of these ended
        self._incumbent: Incumbent | None = None
        self.trajectory: list[tuple[float, Incumbent]] = []

    def run(self, report: Report) -> None:
        """Run to the end, or until Ctrl-C; what was found until then is kept, if anything was.

        Raises:
            ValueError: If no candidate of this fit could be evaluated.
        """
        try:
            while (suggestion := self._next()) is not None:
                self._report(report)
                self._try(suggestion)
        except KeyboardInterrupt:
            for pending in self._study.pending:
                self._study.lose(pending, "interrupted: Ctrl-C while it was running")
                self.rows.pop(pending.id, None)
            if not self._study.history.complete[self._before :].any():
                raise
            warn(f"the search was interrupted after {len(self.rows)} candidates; it answers from these")
        self._demand_success()
        self._look()
        self._report(report)

    def elapsed(self) -> float:
        """Seconds used of the budget."""
        return max(self._clock() - self._start, self._study.spent)

    def answer(self) -> int | None:
        """Which of the rows is the incumbent at the largest size it was run at; None if none is complete."""
        incumbent = self._study.incumbent()
        if incumbent is None:
            return None
        largest = max(incumbent.trial_ids, key=lambda number: self.rows[number].size)
        return list(self.rows).index(largest)

    def _next(self) -> Suggestion | None:
        """What to run next; None at the end, but never before anything was run."""
        suggestion = self._wanted()
        return self._at_least_one() if suggestion is None else suggestion

    def _wanted(self) -> Suggestion | None:
        """What to run next; None if nothing can be afforded, or would change the answer."""
        seconds, trials = self._left()
        over = seconds <= 0 or trials <= 0 or self._candidates.are_exhausted() or self._is_hopeless()
        if self._ending.verify and len(self._study.trials):
            suggestion = self._verification(seconds, trials, over)
            if suggestion is not None:
                return suggestion
        if over:
            return None
        if self._are_few(seconds, trials):
            config = self._candidates.any(self._full)
            known = self._study.history.complete.any()
            late = known and float(self._candidates.forecast(config, self._full).seconds_at_most[0]) > seconds
            return None if late else self._study.request(config)
        final = self._ending.verify and self._is_final(seconds, trials)
        if final and trials <= _FINALISTS and (finalist := self._candidates.finalist(seconds)) is not None:
            return self._study.request(finalist)
        # In the end what is learnt on few rows comes too late: all the rows as often as they can be afforded.
        cast(Fabolas, self._study.strategy).checks = math.inf if final else _CHECKS
        if not self._study.history.complete.any() and self._study.history.failed.any():
            return self._on_more_rows()
        keep = self._reserve() if self._ending.verify and self._step.config is not None else 0.0
        suggestion = self._ask(seconds - keep if seconds > keep else seconds, final)
        if suggestion is None and self._ending.verify and self._must_verify():
            return self._late_run()
        return suggestion

    def _late_run(self) -> Suggestion | None:
        """The best on all the rows, though it may end late: without such a run there is no answer."""
        self._look()
        config = self._step.config
        if config is None:
            return None
        self._warn_if_late(config, self._left()[0])
        return self._study.request(config)

    def _ask(self, seconds: float, final: bool) -> Suggestion | None:
        """What the study suggests, or in its place what was not run yet; None if nothing can change the answer."""
        try:
            return self._study.ask(
                remaining=None if math.isinf(seconds) else seconds,
                revise=lambda point: self._revised(point, seconds, final),
            )
        except _Enough:
            return None

    def _revised(self, point: Array, seconds: float, final: bool) -> Array:
        """The point, or in a finite space one that was not run on as many rows: the folds are the same each time.

        Nor is it on so few rows that nothing works there.

        Raises:
            _Enough: If nothing is left to run that fits, or in the end no run on all the rows, and there was one.
        """
        point = self._candidates.on_enough_rows(point)
        if final and not self._candidates.is_full(point) and not self._must_verify():
            raise _Enough
        other = self._candidates.instead_of(point, seconds)
        if other is None:
            raise _Enough
        return other

    def _verification(self, seconds: float, trials: float, over: bool) -> Suggestion | None:
        """A run of what may be the best on more rows, if it is time for one and the budget has it."""
        # Where time does not count, it does not decide when to look either.
        if self._budget.seconds is None or self._clock() >= self._look_again:
            self._look()
        final = over or self._is_final(seconds, trials)
        if not final and not self._is_due(seconds):
            return None
        if over or self._step.config is not None:
            self._look()  # what was told since the last look may have settled it
        step, (seconds, _) = self._step, self._left()
        if step.config is None:
            return None
        if not final:
            return (
                self._study.request(step.config, self._candidates.fidelity(step.size))
                if self._is_due(seconds)
                else None
            )
        if step.full > seconds or over:
            # Where nothing was run on all the rows yet, late is better than never.
            if not self._must_verify():
                return None
            self._warn_if_late(step.config, seconds)
        return self._study.request(step.config)

    def _warn_if_late(self, config: dict[str, Any], seconds: float) -> None:
        """Say so before a run that is predicted to end late by more than a tenth of the budget and some seconds."""
        budget = self._budget.seconds
        if budget is None:
            return
        takes, left = float(self._candidates.forecast(config, self._full).seconds[0]), max(seconds, 0.0)
        if takes - left > max(0.1 * budget, _LATE):
            warn(
                f"the run on all the rows that best_score_ is to come from is predicted to take {takes:.0f} s, and "
                f"{left:.0f} s are left for it; it is made all the same. A longer time_budget, or verify=False, "
                "which answers from fewer rows, avoids this"
            )

    def _is_due(self, seconds: float) -> bool:
        """Whether the next step takes no longer than the search since the last, and leaves time for the end."""
        step = self._step
        if self._budget.seconds is None or step.config is None:
            return False
        # A run on all the rows is what time is kept for. The only one that fits comes last, when most is known.
        needed = 2.0 * step.full if step.size == self._full else step.seconds + self._reserve()
        return self.elapsed() - self._last_step >= step.seconds and needed <= seconds

    def _is_final(self, seconds: float, trials: float) -> bool:
        finale = 0.0 if self._budget.seconds is None else max(_FINALE * self._budget.seconds, self._reserve())
        finalists = min(_FINALISTS, max(1, (self._budget.trials or 0) // _SELECTION))
        return seconds <= finale or trials <= finalists

    def _are_few(self, seconds: float, trials: float) -> bool:
        """Whether all candidates can be run on all the rows, so that nothing need be learnt on few of them."""
        every = self._ending.configurations
        if self._budget.trials is not None and self._budget.trials <= _FINALISTS:
            return True
        if every is None or not self._ending.verify:
            return False
        if len(every) <= _FINALISTS:
            return True
        there = self._candidates.at_full_size()
        if there and all(row.error is not None for row in there):  # it may work on few
            return False
        if math.isinf(seconds):
            # One on few and one on all the rows of each: a search with so many would end there all the same.
            return trials >= 2 * self._candidates.left()
        return trials >= self._candidates.left() and self._candidates.all_fit(seconds)

    def _at_least_one(self) -> Suggestion | None:
        """However short the budget, one candidate is run.

        Of a continued study that is its answer, on all the rows if nobody ran it there, else on the fewest:
        scikit-learn wants to see a result, and there is nothing to learn from it.
        """
        if len(self._study.trials) > self._before:
            return None
        incumbent = self._study.incumbent()
        if incumbent is None:
            return (
                self._study.request(self._candidates.any(self._full))
                if self._ending.verify
                else self._study.ask()
            )
        fewest = self._full if self._ending.verify and not incumbent.verified else self._candidates.smallest
        return self._study.request(incumbent.config, self._candidates.fidelity(fewest))

    def _on_more_rows(self) -> Suggestion:
        """As long as everything failed, any candidate on twice as many rows for each failure: few may be why."""
        failures = int(self._study.history.failed.sum())
        size = min(round(self._candidates.smallest * 2.0 ** min(failures, 64)), self._full)
        return self._study.request(self._candidates.any(size), self._candidates.fidelity(size))

    def _left(self) -> tuple[float, float]:
        """Seconds, less the last training's, and trials of the budget; infinite where there is no limit."""
        seconds, trials = self._budget.seconds, self._budget.trials
        return (
            math.inf if seconds is None else seconds - self.elapsed() - self._ending.refit * self._reserve(),
            math.inf if trials is None else trials - len(self.rows),
        )

    def _reserve(self) -> float:
        """Seconds kept for a run of the best on all the rows; with the last training half of the budget at most."""
        seconds = self._budget.seconds
        most = math.inf if seconds is None else (1 - _SEARCHED) * seconds / (1 + self._ending.refit)
        return min(self._step.full, most)

    def _try(self, suggestion: Suggestion) -> None:
        try:
            row = self._evaluate(suggestion.config, self._size(suggestion))
        except Exception as error:
            self._study.fail(suggestion, error)
            raise
        cost, score = max(row.seconds, RESOLUTION), row.score(self._loss.metric)
        self.rows[suggestion.id] = row
        if suggestion.origin == "request" or row.size == self._full:
            self._last_step = self.elapsed()
        info = row.info() | {"search": dict(self._mark)}
        if math.isfinite(score):
            self._study.tell(suggestion, self._loss.of(score), cost, info)
        else:
            self._study.fail(suggestion, row.error or f"its mean score is {score}", cost, info)

    def _is_hopeless(self) -> bool:
        history = self._study.history
        return not history.complete.any() and int(history.failed.sum()) >= _GIVE_UP

    def _demand_success(self) -> None:
        new = [trial for trial in self._study.trials[self._before :] if trial.status != "lost"]
        if not any(trial.status == "complete" for trial in new):
            before = int(self._study.history.complete.sum())
            kept = (
                f" The storage has {before} complete ones, which a fit with one success will take in."
                if before
                else ""
            )
            raise ValueError(
                f"all {len(new)} candidates of this fit failed, so there is none to choose; try "
                f"error_score='raise' to see the first failure at once.{kept} The last one was:\n{new[-1].error}"
            )

    def _must_verify(self) -> bool:
        """Whether nothing was complete on all the rows yet, and not too much failed there.

        Beyond the number of candidates that were asked for, or twice the time, one is enough.
        """
        there = self._candidates.at_full_size()
        very_late = self._budget.seconds is not None and self.elapsed() > 2 * self._budget.seconds
        enough = 1 if very_late or self._left()[1] <= 0 else _FAILED_THERE
        if len(there) >= enough or self._candidates.are_exhausted():
            return False
        return not any(math.isfinite(row.score(self._loss.metric)) for row in there)

    def _size(self, suggestion: Suggestion) -> int:
        return int(next(iter(suggestion.fidelity.values()), self._full))

    def _look(self) -> None:
        """Ask the models, if there is news, for the incumbent and how it is to be run on all the rows."""
        start = self._clock()
        history = self._study.history
        if len(history) > self._seen and history.complete.any():
            self._seen = len(history)
            self._incumbent = self._study.incumbent()
            if self._incumbent is not None:
                self._step = self._climb(self._incumbent)
                self.trajectory.append((self.elapsed(), self._incumbent))
        now = self._clock()
        self._look_again = now + _PATIENCE * (now - start)

    def _climb(self, incumbent: Incumbent) -> _Step:
        """The incumbent, if it was not run on all the rows yet, with success or without."""
        full = float(self._candidates.forecast(incumbent.config, self._full).seconds_at_most[0])
        if incumbent.verified or self._candidates.failed(incumbent.config):
            return _Step(full=full)
        return self._towards(incumbent.config, full)

    def _towards(self, config: dict[str, Any], full: float) -> _Step:
        """A run on all the rows, or half the way there: what that would cost is a guess at first."""
        largest = max(row.size for row in self.rows.values() if row.folds)
        near = _NEAR * largest >= self._full
        size = self._full if near else round(math.sqrt(largest * self._full))
        return _Step(config, size, float(self._candidates.forecast(config, size).seconds[0]), full)

    def _report(self, report: Report) -> None:
        study, best = self._study, self._incumbent
        # Who gave a scoring thinks in scores.
        shown = None if best is None else replace(best, loss=self._loss.score(best.loss))
        report(
            Snapshot.of(
                study.space,
                study.history,
                study.pending,
                {},
                elapsed=self.elapsed(),
                thinking=study.thinking,
                incumbent=shown,
            )
        )
