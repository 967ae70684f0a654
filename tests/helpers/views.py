"""Studies to look at, made from a space and a function without a search: `view_of`."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fabolas import History, Incumbent, Space, Suggestion, Trial
from fabolas.curve_reports import Report
from fabolas.direction import Direction
from fabolas.strategies import Strategy, make
from fabolas.strategies.maximized import directed
from fabolas.study.view import RecordCopy, StudyView

Loss = Callable[[dict[str, Any], dict[str, float]], float | None]  # None for a failure
ORIGINS = ("design", "information", "batch", "target", "enqueued", "verification")


class View(StudyView):
    """A study that can only be read."""

    def __init__(self, space: Space, record: RecordCopy, strategy: Strategy) -> None:
        super().__init__(space, record)
        self._made = strategy

    @property
    def strategy(self) -> Strategy:
        return self._made


def view_of(
    space: Space,
    n: int,
    loss: Loss,
    *,
    direction: Direction = "minimize",
    strategy: str = "fabolas",
    fitted: bool = False,
    seed: int = 0,
    **options: Any,
) -> View:
    """A study of n trials at random points, a third of them at the target; every loss is `loss(config, fidelity)`.

    `fitted` says whether the strategy has fitted its hyperparameters, as in a search, or draws them from the prior.
    """
    rng = np.random.default_rng(seed)
    made = directed(make(strategy, space, **options), direction)
    history = History(tuple(_trials(space, n, loss, rng)))
    if fitted:
        made.suggest(history, (), rng)
    answers: list[tuple[float, Incumbent]] = []
    for k in sorted({k for k in (n // 4, n // 2, n) if k}):
        incumbent = made.incumbent(History(history.trials[:k]))
        if incumbent is not None:
            answers.append((history.trials[k - 1].elapsed, incumbent))
    overhead = float(sum(history.overheads))
    return View(space, RecordCopy(seed, direction, history, overhead, tuple(answers)), made)


def _trials(space: Space, n: int, loss: Loss, rng: np.random.Generator) -> list[Trial]:
    x = space.snap(rng.random((n, space.dim)))
    u = rng.random((n, space.n_fidelities))
    u[rng.random(n) < 1 / 3] = 1.0
    trials, elapsed = [], 0.0
    for i, point in enumerate(space.snap(np.concatenate([x, u], axis=1))):
        config, fidelity = space.decode(point)
        suggestion = Suggestion(i, config, fidelity, point, ORIGINS[i % 5], overhead=0.01, predicted_cost=1.0)
        value, cost = loss(config, dict(fidelity)), _cost(fidelity, rng)
        elapsed += cost + 0.01
        error = (
            None if value is not None else "Traceback (most recent call last):\nValueError: no <b>luck</b>"
        )
        status = "complete" if value is not None else "failed"
        reports = _reports(space, suggestion, loss, cost) if value is not None else ()
        trials.append(
            Trial(suggestion, status, value, cost, error=error, elapsed=elapsed, reports=reports)  # type: ignore[arg-type]
        )
    return trials


def _reports(space: Space, suggestion: Suggestion, loss: Loss, cost: float) -> tuple[Report, ...]:
    """Two reports on the way, if a fidelity of the space has reports."""
    named = [name for name, fidelity in space.fidelities.items() if fidelity.reports]
    if not named:
        return ()
    end, low = suggestion.fidelity[named[0]], space.fidelities[named[0]].low
    found = []
    for value in sorted({int(low + part * (end - low)) for part in (0.2, 0.5)} - {end}):
        fidelity = {**suggestion.fidelity, named[0]: value}
        passed = loss(suggestion.config, dict(fidelity))
        if passed is not None:
            point = space.encode(suggestion.config, fidelity)
            found.append(Report(fidelity, point, passed, cost * value / end))
    return tuple(found)


def _cost(fidelity: Mapping[str, float], rng: np.random.Generator) -> float:
    return float(0.02 + 1e-3 * np.prod(list(fidelity.values())) * np.exp(0.1 * rng.normal()))
